/* One run of the faulty daemon: started, talked to, stopped, judged. A run is a process of its own,
 * which ends with the first thing that is wrong. */
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

#define RUN_TEXT_MAX 4096
#define PEER_ASKED_MAX 64

struct scene;

/* What a run leaves behind; in memory that is shared with the sweep. */
struct outcome {
    bool passed;
    bool told[FAULTS_MAX];   /* the log names this fault */
    char text[RUN_TEXT_MAX]; /* what was wrong, and the end of the log */
    struct board board;
};

struct run {
    const struct scene *scene;
    struct outcome *outcome;
    struct board *board;
    char dir[64], log_path[160];
    struct sockaddr_un address; /* of its socket; sun_path is "" when there is none */
    int listener;        /* of scene->listener; -1: none */
    unsigned port;
    pid_t daemon;        /* 0: it has ended */
    int status;
    int64_t terminated;  /* when it was sent the last SIGTERM; 0: never */
    int to, from, log;   /* our ends of its stdin, stdout, stderr; -1: none */
    struct text log_text;
    bool client_lost;    /* a connection ended that the scene did not expect to end */
};

struct peer { /* a client */
    struct run *run;
    const char *name;    /* a part of everything that is meant for it */
    int in, out;         /* the same for a socket; -1: closed */
    struct text input;
    unsigned asked[PEER_ASKED_MAX]; /* ids without an answer so far */
    size_t asked_count;
    unsigned cancelled;  /* an id: its answer may come or not; 0: none */
    size_t errors;       /* answers that were errors */
    size_t notes;        /* what came without being asked */
};

/* How a scene starts its daemon. */
enum scene_stderr { STDERR_FILE, STDERR_PIPE, STDERR_SOCKET };

/* What there is for a client, before the daemon is one: a listener at DIR/socket, or at @PORT@. */
enum scene_listener { NO_LISTENER, UNIX_LISTENER, TCP_LISTENER };

struct scene {
    const char *name;
    const char *const *arguments; /* @DIR@ and @WORKER@ are spelled out, up to a NULL */
    const char *config;           /* the text of DIR/config, ' for ", or NULL */
    const char *input;            /* stdin is a file with this text, ' for ", and /dev/null if there
                                   * is none; NULL: a pipe */
    void (*play)(struct run *run);
    enum scene_stderr log;
    int exit_status;              /* when nothing fails */
    enum scene_listener listener;
    bool socket;                  /* it listens on DIR/socket, where a stale one is */
    bool no_path;                 /* PATH is not set */
    bool stdin_nonblocking;
    bool repeats;                 /* fails the calls that scenes before it make, too: once each */
    bool forgets;                 /* fails all of its allocations, even without --all */
    rlim_t descriptors;           /* the soft limit; 0: as it is */
};

struct test {
    const struct scene *scene;
    struct fault faults[FAULTS_MAX];
    unsigned fault_count;
    bool repeated; /* with a slower clock: a busy machine may not keep up with the fast one */
};

/* Runs the test; `number` makes the directory's name. Does not return. */
void run_test(const struct test *test, unsigned number, struct outcome *outcome)
    __attribute__((noreturn));

/* Something is wrong: ends the run. */
void run_fail(struct run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));

/* Waits until the daemon has waited for something, or has ended. */
void run_await_wait(struct run *run);

/* Writes the text, spelled out as in a scene, to the daemon's stdin and closes it. */
void run_write_stdin(struct run *run, const char *from);

/* A lasting fault begins. */
void run_arm(struct run *run);

/* Nothing fails from here on. */
void run_lift(struct run *run);

/* SIGTERM. */
void run_terminate(struct run *run);

/* SIGTERM once more, when the last one was long ago: it may have been lost. */
void run_insist(struct run *run);

/* Whether the daemon is still there. */
bool run_alive(struct run *run);

/* Whether this is in its log by now. */
bool run_logged(struct run *run, const char *text);

/* Connects. What is not possible (the daemon has ended) makes a peer that is gone. */
void peer_connect(struct peer *peer, struct run *run, const char *name);

/* Stdin and stdout of the daemon. */
void peer_stdio(struct peer *peer, struct run *run, const char *name);

bool peer_gone(const struct peer *peer);

/* Sends text (printf, ' for ") and a newline. */
void peer_send(struct peer *peer, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sends {"jsonrpc":"2.0","id":ID,"params":{"who":NAME PARAMS}MEMBERS}; params and members begin
 * with a comma or are empty. An answer will be awaited. */
void peer_ask(struct peer *peer, unsigned id, const char *params, const char *members);

/* Waits until all is answered, or the connection has ended; the latter is noted. */
void peer_await(struct peer *peer);

/* Waits until so many notes have come, or the connection has ended; the latter is noted. */
void peer_await_notes(struct peer *peer, size_t count);

/* Waits until the daemon has closed the connection. */
void peer_await_end(struct peer *peer);

void peer_close(struct peer *peer);

#endif
