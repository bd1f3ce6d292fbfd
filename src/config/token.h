/* The token that a client shows: on TCP in its opening line (framing/first_frame.h). */
#ifndef STDIO_BUS_CONFIG_TOKEN_H
#define STDIO_BUS_CONFIG_TOKEN_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/slice.h"

#define TOKEN_MAX 1024 /* bytes */
#define TOKEN_REASON_MAX 128

struct token {
    char text[TOKEN_MAX + 2]; /* room for the newline of the file, which is not part of it */
    size_t len;
};

/* Reads the token: the content of the file without the newline at its end. STDIO_BUS_EINVAL, with
 * `reason` filled, unless it is one line of UTF-8 in a file that token_open takes. */
int token_read_file(struct token *token, const char *path, char reason[TOKEN_REASON_MAX]);

/* Opens a regular file that neither others nor, if the file is the caller's own, its group can
 * open. -1 with `reason`. */
int token_open(const char *path, struct stat *status, char reason[TOKEN_REASON_MAX]);

/* Whether the text is UTF-8 without control characters: others could not be sent in a line of
 * JSON. */
bool token_is_text(struct slice text);

/* Whether both are the same. The time that this takes depends on `given`, not on the token. */
bool token_is(struct slice token, struct slice given);

#endif
