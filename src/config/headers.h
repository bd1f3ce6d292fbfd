/* Fields that the user adds to each request: --header, --header-env. */
#ifndef STDIO_BUS_CONFIG_HEADERS_H
#define STDIO_BUS_CONFIG_HEADERS_H

#include <stdbool.h>

#include "base/slice.h"

#define REMOTE_HEADERS_MAX 32
#define HEADERS_BYTES_MAX 16384 /* of all of them */

struct remote_header {
    struct slice name; /* points into the text that was read */
    const char *value;
};

struct remote_headers {
    struct remote_header all[REMOTE_HEADERS_MAX];
    size_t count, bytes;
};

/* Adds the field: of a name and a value, of the text "NAME: VALUE", or of "NAME=VARIABLE" with the
 * value of that variable of the environment. Text and environment must outlive it. Returns NULL, or
 * what is wrong: static. */
const char *headers_add_pair(struct remote_headers *headers, struct slice name, const char *value);
const char *headers_add(struct remote_headers *headers, const char *text);
const char *headers_add_variable(struct remote_headers *headers, const char *text);

/* Whether there is a field of this name, in lower case. */
bool headers_have(const struct remote_headers *headers, const char *name);

#endif
