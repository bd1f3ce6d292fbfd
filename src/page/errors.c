#include "build_config.h"

#include "page/errors.h"

#include <stdio.h>

#include "base/clock.h"

void page_errors_note(struct page_errors *errors, enum log_level level, const char *context,
                      const char *text)
{
    struct page_error *error = &errors->ring[errors->count++ % PAGE_ERRORS_MAX];

    error->epoch_ms = clock_epoch_ms();
    error->level = level;
    (void)snprintf(error->context, sizeof error->context, "%s", context);
    (void)snprintf(error->text, sizeof error->text, "%s", text);
}

static void write_error(const struct page_error *error, struct json_text *to)
{
    row_begin(to, NULL, '{');
    row_number(to, "time_ms", (int64_t)error->epoch_ms);
    row_string(to, "level", error->level == LOG_LEVEL_WARN ? "warning" : "error");
    row_string(to, "of", error->context);
    row_string(to, "text", error->text);
    row_end(to, '}');
}

void page_errors_write(const struct page_errors *errors, struct json_text *to)
{
    uint64_t now_ms = clock_epoch_ms();
    unsigned count = 0;

    row_begin(to, "errors", '{');
    row_begin(to, "errors", '[');
    while (count < errors->count && count < PAGE_ERRORS_MAX) {
        const struct page_error *error =
            &errors->ring[(errors->count - 1 - count) % PAGE_ERRORS_MAX];

        if (now_ms - error->epoch_ms > PAGE_ERRORS_MS)
            break;
        write_error(error, to);
        count++;
    }
    row_end(to, ']');
    row_number(to, "total", (int64_t)count);
    row_end(to, '}');
}
