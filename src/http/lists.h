/* Fields of a head that are lists, over one line or several (RFC 9110, 5.6.1). `bytes` are those of
 * the head, which was read. */
#ifndef STDIO_BUS_HTTP_LISTS_H
#define STDIO_BUS_HTTP_LISTS_H

#include "http/head.h"

/* Whether a list has this member (before any parameters; in any case of letters), on any of its
 * lines: "websocket" in Upgrade, "text/event-stream" in Accept. `word` is in lower case. */
bool http_head_lists(const struct http_head *head, struct slice bytes, enum http_field field,
                     const char *word);

/* Walks the members of a list over all its lines: *at is 0 at first. False: there is no more.
 * *member is without blanks, with its parameters. Empty members are left out. */
bool http_head_next_member(const struct http_head *head, struct slice bytes, enum http_field field,
                           size_t *at, struct slice *member);

/* Whether Accept allows this media type ("application/json", in lower case): it is absent, or lists
 * the type or a range of it, without q=0. */
bool http_head_accepts(const struct http_head *head, struct slice bytes, const char *type);

/* Whether the client wants the connection to continue after the answer: the field Connection, and
 * the version. */
bool http_head_keeps_alive(const struct http_head *head, struct slice bytes);

#endif
