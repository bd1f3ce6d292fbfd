/* A growing run of bytes, always NUL-terminated; running out of memory ends the program. */
#ifndef TESTS_HARNESS_TEXT_H
#define TESTS_HARNESS_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct text { /* all zero: empty */
    char *data;
    size_t len, capacity;
};

/* Makes room for `more` further bytes. Returns the place of the first. */
char *text_room(struct text *text, size_t more);

void text_add(struct text *text, const void *bytes, size_t len);
void text_fill(struct text *text, char byte, size_t count);
void text_printf(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_vprintf(struct text *text, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

/* From byte `from` on, every ' becomes ": tests write JSON without backslashes. */
void text_quote(struct text *text, size_t from);

/* Every occurrence of `from` becomes `to`. */
void text_replace(struct text *text, const char *from, const char *to);

/* Appends each byte as two hexadecimal digits. */
void text_hex(struct text *text, const void *bytes, size_t len);

/* True when a line of the text matches the extended regular expression. */
bool text_matches(const char *text, const char *pattern);

/* Frees the bytes; the text is empty and can be used again. */
void text_free(struct text *text);

#endif
