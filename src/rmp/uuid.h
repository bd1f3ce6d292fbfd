/* An id as text: 8-4-4-4-12 hexadecimal digits. */
#ifndef STDIO_BUS_RMP_UUID_H
#define STDIO_BUS_RMP_UUID_H

#include "rmp/header.h"

#define RMP_UUID_LEN 36

/* Writes the id in lower case, with a NUL after it. Returns `to`. */
const char *rmp_uuid_write(char to[RMP_UUID_LEN + 1], struct rmp_id id);

/* False: the text is no UUID. Letters may be of either case. */
bool rmp_uuid_read(struct slice text, struct rmp_id *id);

#endif
