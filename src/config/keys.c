#include "build_config.h"

#include "config/keys.h"

#include <string.h>

#define KEY_MAX 64 /* longer ones resemble nothing */

static int lower(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

/* How many characters to insert, remove or replace to make one of the other; case is no matter. */
static size_t edit_distance(struct slice a, struct slice b)
{
    size_t row[KEY_MAX + 1]; /* distances of a's first i + 1 bytes from each beginning of b */
    size_t i, j;

    for (j = 0; j <= b.len; j++)
        row[j] = j;
    for (i = 0; i < a.len; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (j = 0; j < b.len; j++) {
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

/* The known key that `key` may have been meant to be, or NULL. */
static const char *nearest(struct slice key, const char *const *known, size_t count)
{
    const char *found = NULL;
    size_t i, distance, least = KEY_MAX;

    if (key.len > KEY_MAX)
        return NULL;
    for (i = 0; i < count; i++) {
        size_t len = strlen(known[i]);
        distance = edit_distance(key, slice_of(known[i], len));
        if (distance < least && distance <= (len < 6 ? 1 : len / 3)) {
            least = distance;
            found = known[i];
        }
    }
    return found;
}

static bool is_known(struct slice key, const char *const *known, size_t count)
{
    size_t i;

    for (i = 0; i < count; i++) {
        if (slice_equal(key, slice_of(known[i], strlen(known[i]))))
            return true;
    }
    return false;
}

void config_warn_unknown_keys(struct config_report *report, const struct json_value *object,
                              const char *const *known, size_t count)
{
    const struct json_value *member;
    const char *near;

    for (member = object->first; member != NULL; member = member->next) {
        if (is_known(member->key, known, count))
            continue;
        near = nearest(member->key, known, count);
        if (near != NULL)
            config_warn_key(report, member, "unknown key, did you mean \"%s\"?", near);
        else
            config_warn_key(report, member, "unknown key");
    }
}
