/* The scripted test worker: reads JSON-RPC lines and does what their method says.
 *
 * Options (each may come from a pool's "args"):
 *   --name NAME          reported in answers; "worker" without it
 *   --record FILE        appends "PID MILLISECONDS\n" to FILE at start
 *   --exit CODE          exits at once
 *   --crash-once FILE    makes FILE and exits with 1; where it is there already, runs
 *   --crash-unless FILE  exits with 1 unless FILE is there
 *   --wait-fifo FILE     waits until somebody opens the fifo for writing
 *   --on-sigterm MODE    as the method on_sigterm
 *   --stay               does not exit at the end of its input
 *   --say HEX            writes these bytes at start
 *   --stderr BYTES       writes so many bytes to stderr at start, in lines
 *   --framing NAME       content-length or length: what it reads and writes is framed so, but for
 *                        the bytes of --say and of the method garbage
 *
 * Methods; "answer" means {"jsonrpc":"2.0","id":ID,"sessionId":S,"result":R}, raw id and session of
 * the request, and nothing at all for a notification:
 *   (none), echo     R = {"worker":NAME,"pid":PID,"params":PARAMS}
 *   plain            R = PARAMS
 *   length           R = the bytes of the request, newline included
 *   mirror           R = {"line":"the request in hex, newline included"}
 *   big              R = "xxx..." of params.size bytes
 *   split            as echo, written byte by byte
 *   no_answer        nothing
 *   answer_twice     the answer of echo two times
 *   answer_as        the answer of echo with the raw id params.id
 *   fail             an error answer, code params.code
 *   say              writes params.message and a newline, then answers as echo
 *   say_only         the same without the answer
 *   notify           writes params.n notifications of params.size more bytes to the session (or to
 *                    the raw params.session), numbered from 0, then answers as echo
 *   garbage          writes params.hex decoded, params.times times (negative: for ever)
 *   hold             answers; the answers to all that follows are kept back
 *   release          gives out what was kept, latest first with params.reverse, then answers
 *   ask              sends the session a request with the raw id params.id and the raw
 *                    params.params; its answer is R = the reply as it came
 *   reply_text       R = the last reply or error that came without an ask waiting for it, or null
 *   progress         reports progress under the raw params._meta.progressToken, with the raw
 *                    params.n, then answers as echo
 *   update           tells the raw params.sessionId the raw params.n, then answers as echo
 *   last_note        R = the last notification whose method is none of these, as it came, or null
 *   die              with params.answer answers first, with params.cut leaving out the newline;
 *                    then exits with params.code, or by params.signal
 *   close_stdout     with params.answer answers first; closes stdout and goes on reading
 *   close_stdin      closes stdin, answers, and goes on living
 *   stop_reading     answers, then reads nothing until SIGUSR1
 *   on_sigterm       params.do: "ignore", "exit" (params.code), "release" (gives out what was kept,
 *                    exits with 0), "default"; answers as echo when done
 *   grandchild       forks a process that sleeps; params.hold: it keeps stdin and stdout;
 *                    params.ignore: it ignores SIGTERM; R = {"pid":PID}
 *   write_stderr     writes params.text and a newline to stderr, then answers as echo
 *   environment      R = what the process was born with: see worker_birth */
#ifndef TESTS_HARNESS_TEST_WORKER_H
#define TESTS_HARNESS_TEST_WORKER_H

#include <stdbool.h>
#include <sys/types.h>

#include "json.h"
#include "text.h"

struct request { /* raw values of one message that came in */
    struct span line; /* newline included */
    struct span id, session, method, params;
    bool is_reply; /* has result or error */
};

struct held_answer {
    struct text text;
    struct held_answer *next;
};

struct asked { /* a question of ours that waits for its reply */
    struct text id, origin_id, origin_session;
    struct asked *next;
};

struct worker {
    const char *name;
    const char *framing; /* NULL: lines */
    pid_t pid;
    struct text input;
    size_t consumed; /* bytes of input done with */
    struct text output;
    struct text birth; /* JSON: descriptors, signals and so on at the start of main */
    struct text stray_reply, last_note;
    struct held_answer *held; /* in order of arrival */
    struct asked *asked;
    bool holding, stay;
    bool wait_with_signals; /* signals must end the wait for input */
    bool release_on_term;
    bool exit_on_term;
    int term_code;
};

/* What the process was born with, as a JSON object: pid, ppid, pgid, sid, cwd, args, open
 * descriptors 0 to 1023 with what they are, blocked and ignored signals. */
void worker_birth(struct text *to, int argc, char *const argv[]);

/* Does what the options say. Returns false after printing the word that it does not know. */
bool worker_options(struct worker *worker, int argc, char *const argv[]);

/* Handles one line. */
void worker_handle(struct worker *worker, struct span line);

/* Moves what was written as lines into frames. */
void worker_frame_lines(struct worker *worker);

/* The next whole frame's body; false when there is none yet. */
bool worker_next_body(struct worker *worker, struct span *body);

/* Writes these bytes as they are, or ends the process when nobody reads. */
void worker_write(const char *bytes, size_t len);

/* Writes out everything, or ends the process when nobody reads. */
void worker_flush(struct worker *worker);

/* Keeps or writes an answer with `result`. */
void worker_answer(struct worker *worker, const struct request *request, const char *result,
                   size_t len);

/* Gives out the answers that were kept back. */
void worker_release(struct worker *worker, bool reverse);

/* Sets what SIGTERM does from now on. */
void worker_on_sigterm(struct worker *worker, struct span mode, int code);

/* Waits for SIGUSR1. */
void worker_wait_usr1(struct worker *worker);

/* Waits for any signal and acts on it. */
void worker_wait_signal(struct worker *worker);

/* Waits for input; acts on signals meanwhile. Returns when there is something to read. */
void worker_wait_input(struct worker *worker);

#endif
