#include "build_config.h"

#include "base/repetition.h"

#include <stdio.h>

/* The kind of a call site and source, or NULL. *sources: how many more the call site has. */
static struct repetition *find(struct repetition kinds[], const char *format, enum log_level level,
                               struct slice source, int64_t now_ms, size_t *sources)
{
    *sources = 0;
    for (size_t i = 0; i < REPETITION_KINDS; i++) {
        struct repetition *kind = &kinds[i];

        if (kind->format != format || kind->level != level)
            continue;
        if (slice_equal(slice_of(kind->source, strlen(kind->source)), source))
            return kind;
        *sources += !repetition_is_over(kind, now_ms);
    }
    return NULL;
}

/* A free place, or that of the earliest window. */
static struct repetition *find_place(struct repetition kinds[])
{
    struct repetition *oldest = &kinds[0];

    for (size_t i = 0; i < REPETITION_KINDS && oldest->format != NULL; i++) {
        if (kinds[i].format == NULL || kinds[i].window_start_ms < oldest->window_start_ms)
            oldest = &kinds[i];
    }
    return oldest;
}

struct repetition *repetition_get(struct repetition kinds[REPETITION_KINDS], const char *format,
                                  enum log_level level, struct slice source, int64_t now_ms,
                                  struct repetition *evicted)
{
    static const char others[] = "various origins";
    struct repetition *kind;
    size_t sources;

    evicted->left_out = 0;
    if (source.len >= REPETITION_SOURCE_MAX)
        source.len = REPETITION_SOURCE_MAX - 1;
    kind = find(kinds, format, level, source, now_ms, &sources);
    if (kind == NULL && source.len > 0 && sources >= REPETITION_SOURCES) {
        source = slice_of(others, sizeof others - 1);
        kind = find(kinds, format, level, source, now_ms, &sources);
    }
    if (kind == NULL) {
        kind = find_place(kinds);
        *evicted = *kind;
        *kind = (struct repetition){.format = format, .level = level, .window_start_ms = now_ms};
        if (source.len > 0)
            memcpy(kind->source, source.data, source.len);
    }
    if (repetition_is_over(kind, now_ms)) {
        kind->window_start_ms = now_ms;
        kind->count = 0;
    }
    return kind;
}
