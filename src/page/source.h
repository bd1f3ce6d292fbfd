/* page.html, as it was packed at make time. */
#ifndef STDIO_BUS_PAGE_SOURCE_H
#define STDIO_BUS_PAGE_SOURCE_H

#include <stddef.h>

extern const char page_source[];
extern const size_t page_source_len;

#endif
