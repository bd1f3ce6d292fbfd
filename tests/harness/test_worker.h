/* The scripted test worker: reads JSON-RPC messages and obeys their methods.
 *
 * Options (each may come from a pool's "args"):
 *   --name NAME          reported in answers; "worker" without it
 *   --record FILE        appends "PID MILLISECONDS\n" to FILE at start
 *   --exit CODE          exits at once
 *   --crash-once FILE    makes FILE and exits with 1; runs if FILE exists already
 *   --on-sigterm MODE    as the method on_sigterm
 *   --lists FILE         whose line N is the result of tools/list with the cursor "N"; 1: without
 *   --discover WHAT      of server/discover: "exit" (with 1), "error" (-32601) or "silence";
 *                        "odd-exit" and so on: only if it has params.odd
 *   --one-initialize     answers each initialize but the first with the error -32600
 *   --stay               does not exit at the end of its input
 *   --say HEX            writes these bytes at start
 *   --framing NAME       content-length or length: of all that it reads and writes but the bytes
 *                        of --say and of the method garbage
 *   --tunnel PORT        relays stdin and stdout to this port of 127.0.0.1, as TUNNEL_MODE in the
 *                        environment says: "garbage" first, "silent" (makes the file TUNNEL_MARK),
 *                        "words" (says its own) or "flood" of stderr; writes TUNNEL_SAYS to
 *                        stderr and exits. Under the name openssl it does so as s_client;
 *                        TUNNEL_MODE "old" knows no option
 *
 * Methods; "answer" means {"jsonrpc":"2.0","id":ID,"sessionId":S,"result":R}, raw id and session of
 * the request; a notification gets no answer:
 *   (none), echo     R = {"worker":NAME,"pid":PID,"params":PARAMS}
 *   plain            R = PARAMS
 *   length           R = the bytes of the request, newline included
 *   mirror           R = {"line":"the request in hex, newline included"}
 *   big              R = "xxx..." of params.size bytes
 *   split            as echo, written byte by byte
 *   no_answer        nothing
 *   subscriptions/listen  the same
 *   tools/list       a line of the file of --lists, otherwise as echo
 *   server/discover  as echo, or what --discover says
 *   initialize       R = params.result, or as echo. If the file params.mark, which it makes, is
 *                    there already, it obeys params.then: "error" (-32603), "version" (R =
 *                    {"protocolVersion":"other"}), "die" or "silence". With
 *                    params.then "big" it answers as big, marked or not
 *   logging/setLevel, notifications/initialized, resources/subscribe, resources/unsubscribe
 *                    as echo; with params.code as fail
 *   handshake        R = [messages of these methods, in their order]
 *   heard            R = "METHOD,METHOD,...": the same in short, each with its level, URI or
 *                    protocolVersion after a space
 *   answer_twice     the answer of echo two times
 *   answer_as        the answer of echo with the raw id params.id
 *   fail             an error answer, code params.code, with the raw params.data
 *   say              writes params.message and a newline, then answers as echo
 *   say_only         the same without the answer
 *   notify           writes params.n notifications of params.size more bytes to the session (or to
 *                    the raw params.session), numbered from 0, then answers as echo
 *   garbage          writes params.hex decoded, params.times times (negative: for ever)
 *   hold             answers, and keeps all later answers back
 *   release          writes the answers kept back, latest first with params.reverse, then answers
 *   ask              sends the session a request with the raw id params.id and the raw
 *                    params.params; R = the reply, unchanged
 *   reply_text       R = the last reply or error to no ask, or null
 *   progress         reports progress under the raw params._meta.progressToken, with the raw
 *                    params.n, then answers as echo
 *   update           sends session/update with the raw params.sessionId and params.n, then answers
 *                    as echo
 *   last_note        R = the last notification with another method, unchanged, or null
 *   die              with params.answer answers first, with params.cut leaving out the newline;
 *                    then exits with params.code, or by params.signal
 *   close_stdout     with params.answer answers first; closes stdout and continues reading
 *   close_stdin      closes stdin, answers, and does not exit
 *   stop_reading     answers, then reads nothing until SIGUSR1
 *   on_sigterm       params.do: "ignore", "exit" (params.code), "release" (writes the answers kept
 *                    back, exits with 0), "default"; then answers as echo
 *   grandchild       forks a process that sleeps; params.hold: it keeps stdin and stdout;
 *                    params.ignore: it ignores SIGTERM; R = {"pid":PID}
 *   write_stderr     writes params.text and a newline to stderr, then answers as echo
 *   agent/execute    as the method params.node.method with params.inputs
 *   run/submit       params.opening_yaml: "silence": nothing; "reject": as fail; else R =
 *                    {"opening_id":7,"opening_name":"run N"}, N counted, and two run/event, the
 *                    second with the status completed, or failed if the yaml is "fail"; "stay": no
 *                    event
 *   run/cancel       R = {}, and a run/event with the status cancelled
 *   environment      R = the state of the process at its start: see worker_birth */
#ifndef TESTS_HARNESS_TEST_WORKER_H
#define TESTS_HARNESS_TEST_WORKER_H

#include <stdbool.h>
#include <sys/types.h>

#include "json.h"
#include "text.h"

struct request {      /* raw values of one message read */
    struct span line; /* newline included */
    struct span id, session, method, params;
    bool is_reply; /* has result or error */
};

struct held_answer {
    struct text text;
    struct held_answer *next;
};

struct asked { /* a request of this worker that waits for its reply */
    struct text id, origin_id, origin_session;
    struct asked *next;
};

struct worker {
    const char *name;
    const char *framing; /* NULL: lines */
    const char *lists;
    const char *discover;
    pid_t pid;
    struct text input;
    size_t consumed; /* bytes of input that were handled */
    struct text output;
    struct text birth; /* JSON: descriptors, signals and so on at the start of main */
    struct text stray_reply, last_note;
    struct text handshake;    /* messages, with commas between them */
    struct held_answer *held; /* in order of arrival */
    struct asked *asked;
    struct text heard;
    bool holding, stay, one_initialize, initialized;
    bool wait_with_signals; /* signals must end the wait for input */
    bool release_on_term;
    bool exit_on_term;
    int term_code;
    unsigned runs;
};

/* The state of the process at its start, as a JSON object: pid, ppid, pgid, sid, cwd, args, open
 * descriptors 0 to 1023 with their kinds, blocked and ignored signals. */
void worker_birth(struct text *to, int argc, char *const argv[]);

/* Obeys the options. Returns false after printing an unknown one. */
bool worker_options(struct worker *worker, int argc, char *const argv[]);

/* Handles one line. */
void worker_handle(struct worker *worker, struct span line);

/* Turns the lines of the output into frames. */
void worker_frame_lines(struct worker *worker);

/* The next whole frame's body; false when there is none yet. */
bool worker_next_body(struct worker *worker, struct span *body);

/* Writes these bytes, or ends the process when stdout is closed. */
void worker_write(const char *bytes, size_t len);

/* Appends the bytes that the hexadecimal digits stand for. */
void worker_decode_hex(struct text *to, struct span hex);

/* Writes the whole output, or ends the process when stdout is closed. */
void worker_flush(struct worker *worker);

/* Keeps or writes an answer with `result`. */
void worker_answer(struct worker *worker, const struct request *request, const char *result,
                   size_t len);

/* Writes the answers that were kept back. */
void worker_release(struct worker *worker, bool reverse);

/* Sets the effect of SIGTERM from now on. */
void worker_on_sigterm(struct worker *worker, struct span mode, int code);

/* Waits for SIGUSR1. */
void worker_wait_usr1(struct worker *worker);

/* Waits for any signal and acts on it. */
void worker_wait_signal(struct worker *worker);

/* Waits for input, and acts on signals meanwhile. */
void worker_wait_input(struct worker *worker);

/* Of --tunnel and openssl. Returns the exit status. */
int worker_tunnel(int argc, char *argv[]);

#endif
