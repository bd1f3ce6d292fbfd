#include "build_config.h"

#include "config/rules.h"

#include <stdio.h>
#include <string.h>

#include "config/pool_mode.h"

/* --- how far a key is from another one, to find the one that was meant --- */

#define SPELLING_MAX 64 /* bytes; a longer key resembles none */

static int lower(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

/* The number of characters to insert, remove or replace to turn a into b, whatever their case. b
 * has at most SPELLING_MAX bytes. */
static size_t spelling_distance(struct slice a, struct slice b)
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

/* --- checks of one value --- */

void rules_check_boolean(struct diagnostics *diagnostics, const struct json_value *value)
{
    diagnostics_check_type(diagnostics, value, JSON_BOOLEAN, "true or false");
}

bool rules_check_filled(struct diagnostics *diagnostics, const struct json_value *value)
{
    if (!diagnostics_check_string(diagnostics, value))
        return false;
    if (value->text.len > 0)
        return true;
    diagnostics_value(diagnostics, value, "must not be empty");
    return false;
}

void rules_check_string(struct diagnostics *diagnostics, const struct json_value *value)
{
    rules_check_filled(diagnostics, value);
}

static void check_integer(struct diagnostics *diagnostics, const struct json_value *value,
                          long long min, long long max)
{
    int64_t integer;

    if (value->type != JSON_NUMBER)
        diagnostics_value(diagnostics, value, "must be an integer >= %lld, not %s", min,
                          document_type_name(value->type));
    else if (!document_integer(value, &integer) || integer < min)
        diagnostics_value(diagnostics, value, "must be an integer >= %lld", min);
    else if (integer > max)
        diagnostics_value(diagnostics, value, "must be an integer <= %lld", max);
}

static bool check_word(struct diagnostics *diagnostics, const struct json_value *value,
                       const char *const *words)
{
    char list[100];
    size_t len = 0;

    if (!diagnostics_check_type(diagnostics, value, JSON_STRING, "a string"))
        return false;
    if (pool_mode_word(value, words) >= 0)
        return true;
    for (int i = 0; words[i] != NULL; i++) {
        const char *before = i == 0 ? "" : words[i + 1] == NULL ? " or " : ", ";
        len += (size_t)snprintf(list + len, sizeof list - len, "%s\"%s\"", before, words[i]);
    }
    diagnostics_value(diagnostics, value, "must be %s", list);
    return false;
}

/* --- unknown keys --- */

/* The key of a rule that is likely to be meant, or NULL. */
static const char *nearest(struct slice key, const struct rule *rules, size_t count)
{
    const char *found = NULL;
    size_t least = SPELLING_MAX;

    if (key.len > SPELLING_MAX)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(rules[i].key),
               distance = spelling_distance(key, slice_of(rules[i].key, len));
        if (distance < least && distance <= (len < 6 ? 1 : len / 3)) {
            least = distance;
            found = rules[i].key;
        }
    }
    return found;
}

void rules_warn_unknown(struct diagnostics *diagnostics, const struct json_value *object,
                        const struct rule *rules, size_t count)
{
    const struct json_value *member;

    for (member = object->first; member != NULL; member = member->next) {
        const char *near = nearest(member->key, rules, count);

        if (diagnostics_is_comment(member))
            continue;
        if (near == NULL)
            diagnostics_warn(diagnostics, member, "unknown key");
        else if (!slice_equal(member->key, slice_of(near, strlen(near))))
            diagnostics_warn(diagnostics, member, "unknown key, did you mean \"%s\"?", near);
    }
}

/* --- objects --- */

void rules_check_object(struct diagnostics *diagnostics, const struct json_value *value,
                        const struct rule *rules, size_t count)
{
    if (!diagnostics_check_type(diagnostics, value, JSON_OBJECT, "an object"))
        return;
    rules_check_members(diagnostics, value, rules, count);
    rules_warn_unknown(diagnostics, value, rules, count);
}

static void check_value(struct diagnostics *diagnostics, const struct json_value *value,
                        const struct rule *rule)
{
    if (rule->words != NULL && !check_word(diagnostics, value, rule->words))
        return;
    if (rule->max > 0)
        check_integer(diagnostics, value, rule->min, rule->max);
    else if (rule->members != NULL)
        rules_check_object(diagnostics, value, rule->members, rule->member_count);
    else if (rule->check != NULL)
        rule->check(diagnostics, value);
}

bool rules_check_members(struct diagnostics *diagnostics, const struct json_value *object,
                         const struct rule *rules, size_t count)
{
    bool command_right = true;

    for (size_t i = 0; i < count; i++) {
        const struct json_value *value = document_member(object, rules[i].key);
        size_t before = diagnostics->errors;

        if (value != NULL)
            check_value(diagnostics, value, &rules[i]);
        else if (rules[i].required)
            diagnostics_missing(diagnostics, object, rules[i].key);
        if (rules[i].of_command && diagnostics->errors > before)
            command_right = false;
    }
    return command_right;
}

/* --- from the object to the struct --- */

void rules_apply(void *to, const struct rule *rules, size_t count, const struct json_value *object)
{
    for (size_t i = 0; i < count; i++) {
        const struct rule *rule = &rules[i];
        const struct json_value *value = document_member(object, rule->key);
        uint32_t narrow;
        uint64_t wide;
        int64_t integer;

        if (rule->size == 0 || value == NULL || !document_integer(value, &integer))
            continue;
        wide = (uint64_t)integer;
        narrow = (uint32_t)integer;
        memcpy((char *)to + rule->offset,
               rule->size == sizeof wide ? (const void *)&wide : (const void *)&narrow, rule->size);
    }
}
