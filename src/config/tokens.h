/* The tokens of a listener, from a file. A file of one line is one token, whatever it has: the line
 * without its newline. A file of more lines has a token with a name in each, "NAME:TOKEN"; empty
 * lines and lines that begin with '#' do not count, except that they make the file one of more
 * lines. */
#ifndef STDIO_BUS_CONFIG_TOKENS_H
#define STDIO_BUS_CONFIG_TOKENS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/archive.h"
#include "base/slice.h"

/* The token that a client shows: on TCP in its opening line (framing/first_frame.h). */

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

/* --- files of tokens --- */

#define TOKENS_FILE_MAX 1048576 /* bytes */
#define TOKEN_NAME_MAX 64       /* bytes: letters, digits and . _ @ + - */

struct named_token {
    char name[TOKEN_NAME_MAX + 1]; /* "": the only one of its file */
    char *text;
    size_t len;
    unsigned serial; /* not 0; the same for the same name and token when the file is read again */
};

struct tokens {
    struct named_token *list;
    size_t count;
    unsigned last_serial;
    struct stat seen; /* of the file, when it was read */
    bool seen_young;  /* it had just been written: it may be written again and look the same */
};

/* Reads the file. STDIO_BUS_EINVAL with `reason`, and *tokens as it was, unless the file is right
 * (token_read_file says which may be opened), or out of memory. A zeroed struct is empty. */
int tokens_read(struct tokens *tokens, const char *path, char reason[TOKEN_REASON_MAX]);

/* Whether the file at the path is no longer the one that was read, as far as can be seen. */
bool tokens_changed(const struct tokens *tokens, const char *path);

/* The token that is equal to `given`, or NULL. The time that this takes depends on `given` and the
 * number of tokens, not on them. */
const struct named_token *tokens_find(const struct tokens *tokens, struct slice given);

/* The same for the text between the quotes of a valid JSON string. */
const struct named_token *tokens_find_escaped(const struct tokens *tokens, struct slice raw);

/* Whether a token of this serial number is there. */
bool tokens_has(const struct tokens *tokens, unsigned serial);

/* Saves the tokens, or loads them where there are none. The file is looked at again then. */
void tokens_archive(struct archive *archive, struct tokens *tokens);

/* A zeroed one is fine. */
void tokens_free(struct tokens *tokens);

#endif
