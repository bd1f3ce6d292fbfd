#include "build_config.h"

#include "config/spelling.h"

static int lower(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

size_t spelling_distance(struct slice a, struct slice b)
{
    size_t row[SPELLING_MAX + 1]; /* distances of a's first i bytes to each prefix of b */

    for (size_t j = 0; j <= b.len; j++)
        row[j] = j;
    for (size_t i = 0; i < a.len; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < b.len; j++) {
            size_t best = diagonal + (lower(a.data[i]) != lower(b.data[j]));
            diagonal = row[j + 1];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j + 1] + 1 < best)
                best = row[j + 1] + 1;
            row[j + 1] = best;
        }
    }
    return row[b.len];
}
