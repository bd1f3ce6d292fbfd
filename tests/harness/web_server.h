/* A server of HTTP/1.1 that does what a test says: requests come out one by one, whatever their
 * connections, and are answered in any way. Every wait has a deadline. In texts that a test passes,
 * ' stands for ". */
#ifndef TESTS_HARNESS_WEB_SERVER_H
#define TESTS_HARNESS_WEB_SERVER_H

#include "text.h"

#define WEB_PEERS_MAX 256

struct web_peer {
    int fd; /* -1: closed */
    struct text input;
    bool eof;
};

struct web_server {
    int listener;
    unsigned port;
    struct web_peer peers[WEB_PEERS_MAX];
    size_t count; /* connections so far */
};

struct web_request {
    struct web_server *server;
    size_t peer;      /* the number of its connection */
    struct text head; /* with the empty line */
    struct text body;
};

/* Listens on 127.0.0.1. Closed at the test's end. */
struct web_server *web_start(void);

/* A server on a port on which nobody listens, until web_listen. */
struct web_server *web_start_later(void);
void web_listen(struct web_server *server);

/* Its URL with this path; lives until the test ends. */
const char *web_url(const struct web_server *server, const char *path);

/* The next whole request; it must be of this method and path, "POST /mcp", and have this text in
 * its body (NULL: any). Lives until the test ends. */
struct web_request *web_next(struct web_server *server, const char *line, const char *word);

/* The next whole request, whatever it is. */
struct web_request *web_next_any(struct web_server *server);

/* The value of a field; NULL: there is none. */
const char *web_field(const struct web_request *request, const char *name);

/* Sends bytes as they are (printf). */
void web_send(const struct web_request *request, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void web_send_bytes(const struct web_request *request, const char *bytes, size_t len);

/* Answers with a status ("200 OK"), further fields (each with its \r\n, or ""), and a body (printf)
 * that is JSON unless a field says otherwise; "" is none. */
void web_answer(const struct web_request *request, const char *status, const char *fields,
                const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Starts a stream of events in chunks; sends an event of this id (NULL: none) and data; ends it. */
void web_stream(const struct web_request *request, const char *fields);
void web_event(const struct web_request *request, const char *id, const char *data);
void web_stream_end(const struct web_request *request);

/* Closes the connection. */
void web_cut(const struct web_request *request);

/* Waits until the client has closed it. */
void web_wait_gone(const struct web_request *request);

#endif
