/* JSON as editors have it in their settings: with comments and trailing commas. */
#ifndef STDIO_BUS_JSON_COMMENTS_H
#define STDIO_BUS_JSON_COMMENTS_H

#include <stddef.h>

/* Replaces each comment, each comma between a value and a closing bracket, and a byte order mark by
 * spaces. All other bytes keep their lines, and their columns but for those after a mark or comment
 * that is not ASCII. Text that is no JSON all the same stays none. */
void comments_blank(char *text, size_t len);

#endif
