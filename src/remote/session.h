/* The session of the handshake era: its stream for what belongs to no request, its end, and a new
 * one when the server has forgotten it. */
#ifndef STDIO_BUS_REMOTE_SESSION_H
#define STDIO_BUS_REMOTE_SESSION_H

#include "remote/call.h"

/* The head of the answer to initialize has come: notes the name of the session, if it has one. */
void session_note(struct remote *remote, const struct http_response_reader *response);

/* The answer to initialize agrees on this version: the session has begun. */
void session_begin(struct remote *remote, const struct message *answer);

/* Keeps the program's initialize for later. Without memory there is no new session later. */
void session_keep(struct remote *remote, struct slice initialize);

/* Opens the stream, after notifications/initialized. */
void session_listen(struct remote *remote);

/* The server does not know the session of the call any more, and has not taken its message: once
 * there is a new one, the message is sent again; otherwise the call fails. False: that is not the
 * case, or no help. */
bool session_renew(struct call *call);

/* Ends the session, if there is one: remote->phase becomes REMOTE_PHASE_FLUSHING. */
void session_part(struct remote *remote);

/* The messages of a text of the server. Those that are no answers go to the program. */
typedef void session_answer_fn(struct call *call, const struct message *answer);
const char *session_take(struct call *call, struct slice text, session_answer_fn *fn);

/* The same for the answers in the body of a refusal, which may be anything. */
void session_take_refusal(struct call *call, session_answer_fn *fn);

/* When to continue after `attempts` failures in a row. */
int64_t session_retry_ms(const struct call *call);

#endif
