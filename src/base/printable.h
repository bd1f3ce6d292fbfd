/* Text of other programs for a terminal, a log or a message. */
#ifndef STDIO_BUS_BASE_PRINTABLE_H
#define STDIO_BUS_BASE_PRINTABLE_H

#include <stddef.h>

/* The bytes of the UTF-8 character that the NUL-terminated text begins with; 0: it begins with
 * none. */
size_t printable_character_bytes(const char *text);

/* Makes the NUL-terminated text printable UTF-8, in place: no longer than it was, without escape
 * sequences of terminals, with a space for each other control character and a question mark for
 * what is no UTF-8, a C1 control or changes the direction of writing. Returns the new length. */
size_t printable_clean(char *text);

#endif
