/* The token that the clients of a TCP listener show in their opening line (framing/opening.h). */
#ifndef STDIO_BUS_CONFIG_TOKEN_H
#define STDIO_BUS_CONFIG_TOKEN_H

#include <stdbool.h>

#include "base/slice.h"
#include "config/diagnostics.h"

#define TOKEN_MAX 1024 /* bytes */
#define TOKEN_REASON_MAX 128

struct token {
    char text[TOKEN_MAX + 2]; /* room for the newline of the file, which is not part of it */
    size_t len;
};

/* Reads the token: the content of the file without the newline at its end. STDIO_BUS_EINVAL, with
 * `reason` filled, unless it is one line of UTF-8 in a regular file that neither others nor, if the
 * file is the caller's own, its group can open. */
int token_read_file(struct token *token, const char *path, char reason[TOKEN_REASON_MAX]);

/* Check the keys token_file and open of the configuration, which exclude each other. */
void token_check_file(struct diagnostics *diagnostics, const struct json_value *file);
void token_check_open(struct diagnostics *diagnostics, const struct json_value *open);

/* Whether `raw`, the text between the quotes of a valid string, is this token. The time that this
 * takes depends on `raw`, not on the token. */
bool token_matches(const struct token *token, struct slice raw);

#endif
