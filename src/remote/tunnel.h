/* A tunnel: a program that speaks TLS with the server, and plain text with this process over its
 * stdin and stdout, as ProxyCommand of ssh. openssl s_client, unless another one is named. */
#ifndef STDIO_BUS_REMOTE_TUNNEL_H
#define STDIO_BUS_REMOTE_TUNNEL_H

#include <sys/types.h>

#include "config/url.h"
#include "event/event_loop.h"
#include "remote/proxy.h"

/* The variable of its environment that has the password of the proxy. */
#define TUNNEL_PASSWORD "STDIO_BUS_PROXY_PASSWORD"

#define TUNNEL_REASON_MAX 512
#define TUNNEL_SAID_MAX 4096 /* bytes of its stderr that are kept */

/* How it is started. */
struct tunnel_command {
    const struct remote_url *url;
    const struct remote_proxy *proxy; /* of openssl; another program has its own settings */
    const char *text; /* words with blanks between them, %h for the host, %p for the port, %% for %;
                         NULL: openssl s_client, which verifies chain and name */
};

/* The ends of a tunnel that serves, non-blocking or not, which belong to the receiver; or -1 with
 * the reason, which lives until the call returns. */
typedef void tunnel_fn(void *user_data, int fd_to, int fd_from, const char *reason);

/* Zeroed with loop NULL: there is none. */
struct tunnel {
    struct stdio_bus_event_loop *loop;
    const struct tunnel_command *command;
    int64_t until_ms; /* a server that is not there is tried again, until then */
    tunnel_fn *fn;
    void *user_data;
    pid_t pid; /* 0: none */
    bool is_ready;
    bool again;                          /* the timer starts another attempt */
    int fd_to, fd_from, fd_err, fd_exec; /* -1: closed, or not the tunnel's any more */
    char reason[TUNNEL_REASON_MAX];      /* of the last attempt; "": none failed */
    struct timer timer;
    size_t said_len;
    char said[TUNNEL_SAID_MAX + 1]; /* the end of its stderr */
};

/* Whether the program can be run, and knows the options that are needed; starts it for that, and
 * waits a minute at most. Returns NULL, or the reason in `to`. */
const char *tunnel_try(const struct tunnel_command *command, char to[TUNNEL_REASON_MAX]);

/* Starts one with the first members set. fn is called after the return, once. */
void tunnel_start(struct tunnel *tunnel);

/* Kills the program; idempotent. */
void tunnel_stop(struct tunnel *tunnel);

/* Why the last attempt failed, if fn was not called yet; NULL: none did. */
const char *tunnel_failure(const struct tunnel *tunnel);

/* What the program has said of the end of its connection: NULL, or a line in `to`. */
const char *tunnel_last_words(struct tunnel *tunnel, char to[TUNNEL_REASON_MAX]);

#endif
