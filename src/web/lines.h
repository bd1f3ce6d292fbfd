/* Replies that the daemon makes in place of a session's client: to questions of workers that the
 * client cannot be asked. */
#ifndef STDIO_BUS_WEB_LINES_H
#define STDIO_BUS_WEB_LINES_H

#include "base/archive.h"
#include "web/stream.h"

/* Notes that the question of the event gets an error. To be offered later: this may be called while
 * a message is delivered. */
void http_lines_refuse(struct http_session *session, const struct event *event);

/* Offers the lines to the router, until it holds one. */
void http_lines_offer(struct http_session *session);

/* Saves the lines, or loads them where there are none. */
void http_lines_archive(struct archive *archive, struct http_session *session);

/* Frees the lines. */
void http_lines_clear(struct http_session *session);

#endif
