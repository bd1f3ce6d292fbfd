/* The identity of a shared server: all that it would see of the client that starts it. Clients with
 * the same identity share it.
 *
 * It is one line of text: fields with a name and a value, each followed by a space. In values
 * spaces, quotes, backslashes, percent signs and bytes that are not printable ASCII are written as
 * %XX, so that the text is a JSON string as it stands. */
#ifndef STDIO_BUS_SHARE_IDENTITY_H
#define STDIO_BUS_SHARE_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

#define IDENTITY_MAX ((size_t)4 << 20) /* bytes */
#define IDENTITY_NAME_MAX 40
#define IDENTITY_DIRECTORY "the working directory" /* among what differs */

struct identity_parts {
    char *const *words;     /* the command and its arguments */
    char *const *variables; /* sorted */
    const char *names;      /* of the variables that count; NULL: those of variables.h */
    const char *directory;  /* NULL: does not count */
    const char *protocol;   /* NULL: none */
    const char *clients, *instances, *framing;
    unsigned mask; /* of the files that the server makes */
};

/* The text, NUL-terminated, to be freed. NULL if out of memory. */
char *identity_write(const struct identity_parts *parts);

/* A name for it: a hash of all that a client cannot leave out. */
void identity_name(char to[IDENTITY_NAME_MAX], const char *identity);

/* The same text with a hash in place of the value of each variable, to be freed. NULL if out of
 * memory. */
char *identity_hide(const char *identity);

/* Whether a client that wants the server `wanted` may have `own`: they are the same, but for
 * variables of the machine that `wanted` is without. */
bool identity_fits(struct slice wanted, struct slice own);

/* Writes the names of what keeps a client that wants the server `wanted` from `own`, never a value:
 * "the working directory, API_KEY". Cut to fit. */
void identity_difference(char *to, size_t size, struct slice own, struct slice wanted);

/* Adds to the names that `to` has those of what differs between two servers, which it does not
 * have. */
void identity_add_differences(char *to, size_t size, struct slice a, struct slice b);

/* Writes the command and its arguments, as they were, with blanks between them. Cut to fit, control
 * characters escaped. */
void identity_command(char *to, size_t size, struct slice identity);

/* Takes the first word of the command off `rest`, which begins as the identity, and writes it as it
 * was: any bytes, at most rest->len, without a NUL. False: there are no more. */
bool identity_take_word(char *to, size_t *len, struct slice *rest);

/* Writes the directory in the same way. False: it does not count. */
bool identity_directory(char *to, size_t *len, struct slice identity);

/* Whether both have the same command and arguments. */
bool identity_same_command(struct slice a, struct slice b);

#endif
