/* The text of a page that was made for people, as one line for an error message. */
#ifndef STDIO_BUS_REMOTE_PAGE_H
#define STDIO_BUS_REMOTE_PAGE_H

#include <stddef.h>

#include "base/slice.h"

/* Writes what the bytes say in one line, without blanks around it; of HTML without tags, styles,
 * scripts and comments. What has no room is left out. The text may have control characters.
 * Returns its length. */
size_t page_line(char *to, size_t size, struct slice bytes, bool is_html);

#endif
