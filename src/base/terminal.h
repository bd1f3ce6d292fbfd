/* Text for a terminal. What other programs say (names, reasons, messages, file names) may hold
 * characters that a terminal obeys, or that turn the text around. No control character of ASCII or
 * of C1, no mark of direction, no separator of lines and no byte that is not UTF-8 leaves the
 * functions of this file; all other characters do, unchanged. Whatever the programs print that
 * is not a constant of their own passes one of them. */
#ifndef STDIO_BUS_BASE_TERMINAL_H
#define STDIO_BUS_BASE_TERMINAL_H

#include <stddef.h>
#include <stdio.h>

#include "base/slice.h"

#define TERMINAL_ESCAPE_MAX 6 /* bytes, as in \u202e */

enum terminal_form {
    TERMINAL_TEXT, /* \x1b for a byte, \u202e for a character */
    TERMINAL_JSON  /* \u001b for both, as in a string of JSON */
};

/* Looks at the character that the text, which is not empty, begins with. Writes the escape that
 * stands for it, or "" if a terminal may get it. Returns how many bytes of the text it has; a byte
 * that is not UTF-8 counts as a character. */
size_t terminal_escape(char escape[TERMINAL_ESCAPE_MAX + 1], enum terminal_form form,
                       struct slice text);

/* Writes the text with its escapes, in the form TERMINAL_TEXT: at most `size - 1` bytes and a NUL;
 * a text that is cut ends in "...", after a whole character. Returns `to`. */
const char *terminal_text(char *to, size_t size, struct slice text);

/* The columns that a terminal needs for a text without control characters: its characters. */
size_t terminal_columns(const char *text);

/* Cuts such a text to this number of columns; one that is cut ends in "...", if there is room for
 * that. */
void terminal_cut(char *text, size_t columns);

/* The columns and lines of the terminal that the descriptor is; TERMINAL_WIDTH and TERMINAL_HEIGHT
 * where it is none, or does not say. */
#define TERMINAL_WIDTH 80
#define TERMINAL_HEIGHT 24
size_t terminal_width(int fd);
size_t terminal_height(int fd);

/* The following print to a stream. STDIO_BUS_ERR with errno set if it takes no more. */

/* Prints one line: the format is printf's, without the newline. Newlines in it are escaped. */
int terminal_line(FILE *to, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints a text of any number of lines: newlines are not escaped. JSON means the same in the form
 * TERMINAL_JSON: its control characters of ASCII, which only stand between tokens, become
 * blanks. */
int terminal_lines(FILE *to, enum terminal_form form, struct slice text);

/* Prints what a terminal is to obey, a constant of the caller. */
int terminal_sequence(FILE *to, const char *sequence);

/* --- Text of other programs for a terminal, a log or a message. --- */

/* The bytes of the UTF-8 character that the NUL-terminated text begins with; 0: it begins with
 * none. */
size_t printable_character_bytes(const char *text);

/* Makes the NUL-terminated text printable UTF-8, in place: no longer than it was, without escape
 * sequences of terminals, with a space for each other control character and a question mark for
 * what is no UTF-8, a C1 control or changes the direction of writing. Returns the new length. */
size_t printable_clean(char *text);

#endif
