/* Numbers of the daemon's in place of ids and tokens, in the message that is forwarded. */
#ifndef STDIO_BUS_ROUTER_NUMBERS_H
#define STDIO_BUS_ROUTER_NUMBERS_H

#include "router/decision.h"

/* A request has two numbers, for its id and two tokens. Its third token is its first number as a
 * string, "N#". */
#define NUMBERS_THIRD_TOKEN 2

#define NUMBERS_TOKEN_MAX (PENDING_DIGITS + 1)

/* The name of token `which` of the request with this number; `text` lives as long as it. */
struct message_id numbers_token(char text[NUMBERS_TOKEN_MAX], uint32_t number, uint32_t which);

/* The value becomes a number of the daemon's. */
void numbers_replace_id(struct decision *decision, const struct scan_field *field, uint32_t number);

/* The same for a token. */
void numbers_replace_token(struct decision *decision, const struct scan_field *field,
                           uint32_t number, uint32_t which);

#endif
