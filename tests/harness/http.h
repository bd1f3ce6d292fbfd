/* A client of an HTTP listener: sends requests, reads answers piece by piece. In texts that a test
 * passes ' stands for ". Every wait has a deadline; a wait that fails, fails the test. */
#ifndef TESTS_HARNESS_HTTP_H
#define TESTS_HARNESS_HTTP_H

#include "client.h"

/* The usual fields of a POST to an MCP server. */
#define HTTP_BOTH "Accept: application/json, text/event-stream\r\n"
#define HTTP_JSON "Content-Type: application/json\r\n"
#define HTTP_POST_FIELDS HTTP_BOTH HTTP_JSON

struct http {
    struct client *client;
    struct text head;  /* of the last answer, with its empty line */
    struct text event; /* the fields of the last event */
    struct text body;  /* of the last answer, as far as it was read */
    int status;
    bool chunked;
    size_t left; /* bytes of the body, or of the current chunk */
    bool over;   /* the answer was read to its end */
};

/* Connects to a daemon in SETUP_HTTP. It lives until the test ends. */
struct http *http_connect(const struct daemon *daemon);

/* The same over a connection that is there already. */
struct http *http_adopt(struct client *client);

/* The same, from this address; see client_try_connect_from. */
struct http *http_connect_from(const struct daemon *daemon, const char *address);

/* A client of the HTTP listener that the log names, at an IPv4 address of loopback. */
struct client *http_client(struct daemon *daemon);

/* The same at this port. */
struct client *http_client_at(unsigned port);

/* Sends a request that ends the connection: `head` has its line and fields, but for those of the
 * body, which may be NULL. Returns the whole answer, and closes the client. */
const char *http_ask(struct client *client, const char *head, const char *body);

/* Sends a request; `fields` are whole lines, "" or NULL: none; body NULL: none. */
void http_send(struct http *http, const char *method, const char *target, const char *fields,
               const char *body);

/* POST to /mcp with the usual fields and, unless it is NULL, the session; the body is printf's. */
void http_post(struct http *http, const char *session, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Reads the head of the next answer. Returns its status. */
int http_status(struct http *http);

/* The value of a field of that head; data NULL: there is none. The name is in lower case or as it
 * is sent. */
struct span http_field(const struct http *http, const char *name);

/* The whole body of the answer, which lives until the next answer. */
struct span http_body(struct http *http);

/* Reads an answer with this status, and returns its body. */
struct span http_expect(struct http *http, int status);

/* The next event of a stream: its data, which lives until the next call; comments are left out. */
struct span http_event(struct http *http);

/* The id of that event; data NULL: it has none. */
struct span http_event_id(const struct http *http);

/* The stream must end now, without another event. */
void http_expect_end(struct http *http);

/* Begins a session: initialize, and notifications/initialized. Returns its id, which lives until
 * the test ends. */
const char *http_session(struct http *http);

/* Opens the stream of the session by GET. */
void http_open_stream(struct http *http, const char *session);

#endif
