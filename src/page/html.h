/* Text in HTML, and values as the page shows them. */
#ifndef STDIO_BUS_PAGE_HTML_H
#define STDIO_BUS_PAGE_HTML_H

#include "json/document.h"
#include "json/text.h"

/* How a value is shown; the script of the page does the same (show). */
enum html_kind {
    HTML_TEXT = 't',
    HTML_NUMBER = 'n',
    HTML_TENTHS = 'd', /* a number of tenths */
    HTML_BYTES = 'b',
    HTML_MS = 'm',
    HTML_US = 'u',
    HTML_CLOCK = 'c' /* a time since 1970 in milliseconds, as that of the day (UTC) */
};

/* Adds text that is never markup, neither between tags nor in an attribute with quotes. */
void html_text(struct json_text *to, struct slice text);

/* Adds a value; one that is absent (NULL) or null is a dash, an array its elements. */
void html_value(struct json_text *to, enum html_kind kind, const struct json_value *value);

#endif
