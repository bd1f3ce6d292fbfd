/* The last warnings and errors of the log. */
#ifndef STDIO_BUS_PAGE_ERRORS_H
#define STDIO_BUS_PAGE_ERRORS_H

#include "base/log.h"
#include "json/text.h"

#define PAGE_ERRORS_MAX 20
#define PAGE_ERRORS_MS 600000 /* older ones are not listed */

struct page_error {
    uint64_t epoch_ms;
    enum log_level level;
    char context[48], text[200]; /* cut to fit */
};

struct page_errors {
    struct page_error ring[PAGE_ERRORS_MAX];
    unsigned count; /* ever */
};

void page_errors_note(struct page_errors *errors, enum log_level level, const char *context,
                      const char *text);

/* Writes an object with the list, the newest first, and their number. */
void page_errors_write(const struct page_errors *errors, struct json_text *to);

#endif
