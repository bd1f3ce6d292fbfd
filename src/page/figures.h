/* What the page shows, as one text of JSON: made at most once a second for all browsers. */
#ifndef STDIO_BUS_PAGE_FIGURES_H
#define STDIO_BUS_PAGE_FIGURES_H

#include "bus/state.h"
#include "page/errors.h"
#include "router/request_counts.h"
#include "json/text.h"

#define FIGURES_ROWS_MAX 100 /* of a list */
#define FIGURES_LIFE_MS 1000

/* What a page shows that is not of its own bus, at a path that is known to its user alone. */
struct figures_source {
    const char *path; /* begins and ends with a slash */
    /* Adds the text; nothing, or text.failed: there is none now. */
    void (*write)(void *user_data, struct json_text *to);
    void *user_data;
    const char *nothing; /* a line for that case */
};

struct figures {
    struct stdio_bus *bus;
    const struct figures_source *source; /* NULL: the bus */
    struct page_errors errors;
    struct json_text text; /* len 0: none was computed */
    int64_t computed_ms;
    struct request_counts counts; /* as they were then: rates are of the time since */
};

/* The text, which lives until the next call; data NULL: out of memory, or the source has none. The
 * bus measures from the first call on. */
struct slice figures_read(struct figures *figures);

void figures_free(struct figures *figures);

/* The time in microseconds within which `percent` of the answers came, between the bounds of a
 * bucket; -1: there was none. */
int64_t figures_quantile_us(const struct request_counts *counts, unsigned percent);

#endif
