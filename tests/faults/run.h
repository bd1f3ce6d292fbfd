/* One run of the faulty daemon: start, messages, stop, verdict. A run is a process of its own and
 * ends at the first failure. */
#ifndef TESTS_FAULTS_RUN_H
#define TESTS_FAULTS_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include "board.h"
#include "text.h"

#define RUN_NO_PAGE "the browser gets no page" /* in the log, it reports any fault */
#define RUN_TEXT_MAX 4096
#define PEER_ASKED_MAX 64

struct scene;

/* The result of a run, in memory shared with the sweep. */
struct outcome {
    bool passed;
    bool crashed;              /* a busy machine is no reason */
    bool reported[FAULTS_MAX]; /* the log names this fault */
    char text[RUN_TEXT_MAX];   /* the failure, and the end of the log */
    struct board board;
};

struct run {
    const struct scene *scene;
    struct outcome *outcome;
    struct board *board;
    char dir[64], log_path[160];
    struct sockaddr_un address; /* of its socket; sun_path "": none */
    int listener;               /* of scene->listener; -1: none */
    int manager;                /* of scene->manager; it stays open */
    unsigned port;
    pid_t daemon; /* 0: it has ended */
    int status;
    int64_t terminated; /* time of the last SIGTERM; 0: never */
    int to, from, log;  /* this program's ends of its stdin, stdout, stderr; -1: none */
    struct text log_text;
    bool client_lost; /* a connection ended unexpectedly */
    bool hung_up;     /* SIGHUP was sent */
};

struct peer { /* a client */
    struct run *run;
    const char *name; /* a part of each message for it */
    int in, out;      /* the same for a socket; -1: closed */
    struct text input;
    unsigned asked[PEER_ASKED_MAX]; /* ids without an answer */
    size_t asked_count;
    unsigned cancelled; /* an id whose answer is optional; 0: none */
    size_t errors;      /* answers that were errors */
    size_t notes;       /* notifications received */
};

/* The stderr of a daemon. SYSTEM_LOG: DIR/syslog is the socket of the system's log, and stderr a
 * file. */
enum scene_stderr { STDERR_FILE, STDERR_PIPE, STDERR_SOCKET, SYSTEM_LOG };

/* For a daemon in client mode: a listener at DIR/socket, at @PORT@, or at the sockets of two shared
 * daemons. */
enum scene_listener { NO_LISTENER, UNIX_LISTENER, TCP_LISTENER, SHARED_LISTENER };

struct scene {
    const char *name;
    const char *const *arguments;     /* @DIR@, @WORKER@ and so on are spelled out, up to a NULL */
    const char *config;               /* the text of DIR/config, ' for ", or NULL */
    const char *included;             /* the same, of DIR/pool-1.json */
    const char *toml;                 /* of config.toml; or NULL */
    const char *input;                /* stdin is a file with this text, ' for "; "": /dev/null;
                                   * NULL: a pipe */
    void (*prepare)(struct run *run); /* before the daemon is started; or NULL */
    void (*play)(struct run *run);
    enum scene_stderr log;
    int exit_status; /* without a fault */
    bool is_verdict; /* the exit status says what is there, which a fault may hide from it */
    enum scene_listener listener;
    bool token;   /* DIR/token holds the token of its clients */
    bool socket;  /* it listens on DIR/socket, where a stale socket is */
    bool manager; /* a service manager listens at DIR/manager, has passed on the listener, if there
                   * is one, twice, and reads stderr for its journal */
    bool no_path; /* PATH is not set */
    bool single;  /* no pairs: each program of an upgrade would have one of the two */
    bool shares;  /* it may start the daemon of a shared server */
    bool stdin_nonblocking;
    bool repeats;       /* also fails the calls of earlier scenes: once each */
    bool forgets;       /* fails all its allocations, even without --all */
    rlim_t descriptors; /* the soft limit; 0: as it is */
};

struct test {
    const struct scene *scene;
    struct fault faults[FAULTS_MAX];
    unsigned fault_count;
    bool repeated; /* with a slower clock, for a busy machine */
};

/* Runs the test in the directory `number`. Does not return. */
void run_test(const struct test *test, unsigned number, struct outcome *outcome)
    __attribute__((noreturn));

/* Records a failure and ends the run. */
void run_fail(struct run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));

/* True if what was begun at `began_ms` may not come any more: a call has failed on purpose, and as
 * many milliseconds have passed as it takes otherwise. */
bool run_is_stalled(const struct run *run, int64_t began_ms, int stall_ms);

/* Makes a directory in that of the run, which the end of the run has to know. */
void run_make_dir(const struct run *run, const char *name);

/* Waits until the daemon has waited for events, or has ended. */
void run_await_wait(struct run *run);

/* Writes the text, spelled out as in a scene, to the daemon's stdin and closes it. */
void run_write_stdin(struct run *run, const char *from);

/* Lasting faults begin. */
void run_arm(struct run *run);

/* Lasting faults end. */
void run_lift(struct run *run);

/* The daemon's clock leaps forward, as it sees after its next event. */
void run_skip(struct run *run, unsigned seconds);

/* SIGTERM. */
void run_terminate(struct run *run);

/* Repeats SIGTERM if the last one was long ago: it may have been lost. */
void run_insist(struct run *run);

/* True while the daemon runs. */
bool run_alive(struct run *run);

/* True if its log contains this text. */
bool run_logged(struct run *run, const char *text);

/* Its log; NULL: nothing was written. It lives until the next call. */
const char *run_log(struct run *run);

/* Writes another DIR/config in place of that of the scene, spelled out as that is. */
void run_write_config(struct run *run, const char *config);

/* Connects. If the daemon has ended the peer is gone. */
void peer_connect(struct peer *peer, struct run *run, const char *name);

/* A peer on stdin and stdout of the daemon. */
void peer_stdio(struct peer *peer, struct run *run, const char *name);

bool peer_gone(const struct peer *peer);

/* Sends text (printf, ' for ") and a newline. */
void peer_send(struct peer *peer, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sends {"jsonrpc":"2.0","id":ID,"params":{"who":NAME PARAMS}MEMBERS}; params and members begin
 * with a comma or are empty. The request is open until its answer. */
void peer_ask(struct peer *peer, unsigned id, const char *params, const char *members);

/* Waits for the answers to all open requests. This and peer_await_notes also return at the end of
 * the connection, which sets client_lost. */
void peer_await(struct peer *peer);

/* peer_ask and peer_await. */
void peer_call(struct peer *peer, unsigned id, const char *params, const char *members);

/* Waits until this number of notifications has come. */
void peer_await_notes(struct peer *peer, size_t count);

/* Waits until the daemon has closed the connection. */
void peer_await_end(struct peer *peer);

void peer_close(struct peer *peer);

#endif
