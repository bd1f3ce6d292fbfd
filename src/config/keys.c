#include "build_config.h"

#include "config/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framing/framing.h"

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

/* --- the check of a value, by its kind --- */

int key_word(const struct json_value *value, const char *const *words)
{
    for (int i = 0; words[i] != NULL; i++) {
        if (slice_is(value->text, words[i]))
            return i;
    }
    return -1;
}

bool key_check_filled(struct diagnostics *diagnostics, const struct json_value *value)
{
    if (!diagnostics_check_string(diagnostics, value))
        return false;
    if (value->text.len > 0)
        return true;
    diagnostics_value(diagnostics, value, "must not be empty");
    return false;
}

typedef bool kind_fn(struct diagnostics *diagnostics, const struct json_value *value,
                     const struct key *key);

static bool check_boolean(struct diagnostics *diagnostics, const struct json_value *value,
                          const struct key *key)
{
    (void)key;
    return diagnostics_check_type(diagnostics, value, JSON_BOOLEAN, "true or false");
}

static bool check_integer(struct diagnostics *diagnostics, const struct json_value *value,
                          const struct key *key)
{
    long long min = key->min, max = key->max;
    int64_t integer;

    if (value->type != JSON_NUMBER)
        diagnostics_value(diagnostics, value, "must be an integer >= %lld, not %s", min,
                          document_type_name(value->type));
    else if (!document_integer(value, &integer) || integer < min)
        diagnostics_value(diagnostics, value, "must be an integer >= %lld", min);
    else if (integer > max)
        diagnostics_value(diagnostics, value, "must be an integer <= %lld", max);
    else
        return true;
    return false;
}

static bool check_word(struct diagnostics *diagnostics, const struct json_value *value,
                       const struct key *key)
{
    const char *const *words = key->words;
    char list[100];
    size_t len = 0;

    if (!diagnostics_check_type(diagnostics, value, JSON_STRING, "a string"))
        return false;
    if (key_word(value, words) >= 0)
        return true;
    for (int i = 0; words[i] != NULL; i++) {
        const char *before = i == 0 ? "" : words[i + 1] == NULL ? " or " : ", ";
        len += (size_t)snprintf(list + len, sizeof list - len, "%s\"%s\"", before, words[i]);
    }
    diagnostics_value(diagnostics, value, "must be %s", list);
    return false;
}

static bool check_framing(struct diagnostics *diagnostics, const struct json_value *value,
                          const struct key *key)
{
    (void)key;
    if (!diagnostics_check_string(diagnostics, value))
        return false;
    if (framing_named(value->text.data) != NULL)
        return true;
    diagnostics_value(diagnostics, value, "must be " FRAMING_NAMES);
    return false;
}

static bool check_text(struct diagnostics *diagnostics, const struct json_value *value,
                       const struct key *key)
{
    if (key->min > 0 ? !key_check_filled(diagnostics, value)
                     : !diagnostics_check_string(diagnostics, value))
        return false;
    if (key->max > 0 && value->text.len > (uint64_t)key->max)
        diagnostics_value(diagnostics, value, "must be at most %lld bytes long",
                          (long long)key->max);
    else if (key->is_right != NULL && !key->is_right(value->text))
        diagnostics_value(diagnostics, value, "%s", key->wanted);
    else
        return true;
    return false;
}

static bool check_texts(struct diagnostics *diagnostics, const struct json_value *value,
                        const struct key *key)
{
    const struct key item = {.is_right = key->is_right, .wanted = key->wanted};

    if (!diagnostics_check_type(diagnostics, value, JSON_ARRAY, "an array of strings"))
        return false;
    for (const struct json_value *each = value->first; each != NULL; each = each->next)
        check_text(diagnostics, each, &item);
    return true;
}

static bool check_object(struct diagnostics *diagnostics, const struct json_value *value,
                         const struct key *key)
{
    (void)key;
    return diagnostics_check_type(diagnostics, value, JSON_OBJECT, "an object");
}

/* --- unknown keys --- */

/* The key of the table that is likely to be meant, or NULL. */
static const char *nearest(struct slice key, const struct key_table *table)
{
    const char *found = NULL;
    size_t least = SPELLING_MAX;

    if (key.len > SPELLING_MAX)
        return NULL;
    for (size_t i = 0; i < table->count; i++) {
        size_t len = strlen(table->keys[i].name),
               distance = spelling_distance(key, slice_of(table->keys[i].name, len));
        if (distance < least && distance <= (len < 6 ? 1 : len / 3)) {
            least = distance;
            found = table->keys[i].name;
        }
    }
    return found;
}

const struct key *key_find(const struct key_table *table, struct slice name)
{
    for (size_t i = 0; i < table->count; i++) {
        if (slice_is(name, table->keys[i].name))
            return &table->keys[i];
    }
    return NULL;
}

void keys_check_unknown(struct diagnostics *diagnostics, const struct json_value *object,
                        const struct key_table *table)
{
    const struct json_value *member;
    const char *near;

    for (member = object->first; member != NULL; member = member->next) {
        if (diagnostics_is_comment(member) || key_find(table, member->key) != NULL)
            continue;
        near = table->unknown == UNKNOWN_SUGGESTS ? nearest(member->key, table) : NULL;
        if (table->unknown == UNKNOWN_FAILS)
            diagnostics_value(diagnostics, member, "unknown key");
        else if (near == NULL)
            diagnostics_warn(diagnostics, member, "unknown key");
        else
            diagnostics_warn(diagnostics, member, "unknown key, did you mean \"%s\"?", near);
    }
}

/* --- objects --- */

void keys_check_object(struct diagnostics *diagnostics, const struct json_value *value,
                       const struct key_table *table)
{
    if (!diagnostics_check_type(diagnostics, value, JSON_OBJECT, "an object"))
        return;
    keys_check_members(diagnostics, value, table);
    keys_check_unknown(diagnostics, value, table);
}

static void check_value(struct diagnostics *diagnostics, const struct json_value *value,
                        const struct key *key)
{
    static kind_fn *const checks[] = {
        [KEY_BOOLEAN] = check_boolean, [KEY_INTEGER] = check_integer, [KEY_WORD] = check_word,
        [KEY_FRAMING] = check_framing, [KEY_TEXT] = check_text,       [KEY_TEXTS] = check_texts,
        [KEY_OBJECT] = check_object,   [KEY_OBJECTS] = NULL};

    if (checks[key->kind] != NULL && !checks[key->kind](diagnostics, value, key))
        return;
    if (key->check != NULL)
        key->check(diagnostics, value);
    if (key->kind == KEY_OBJECT)
        keys_check_object(diagnostics, value, key->members);
}

bool keys_check_members(struct diagnostics *diagnostics, const struct json_value *object,
                        const struct key_table *table)
{
    bool command_right = true;

    for (size_t i = 0; i < table->count; i++) {
        const struct key *key = &table->keys[i];
        const struct json_value *value = document_member(object, key->name);
        size_t before = diagnostics->errors;

        if (value != NULL)
            check_value(diagnostics, value, key);
        else if (key->required)
            diagnostics_missing(diagnostics, object, key->name);
        if (key->of_command && diagnostics->errors > before)
            command_right = false;
    }
    return command_right;
}

/* --- from the object to the struct --- */

static void store_integer(char *to, size_t size, int64_t integer)
{
    uint32_t narrow = (uint32_t)integer;
    uint64_t wide = (uint64_t)integer;
    bool is_set = integer != 0;

    if (size == sizeof is_set)
        memcpy(to, &is_set, sizeof is_set);
    else if (size == sizeof narrow)
        memcpy(to, &narrow, sizeof narrow);
    else
        memcpy(to, &wide, sizeof wide);
}

static void apply_value(char *to, const struct key *key, const struct json_value *value)
{
    const struct framing *framing;
    int64_t integer;

    if (key->kind == KEY_INTEGER && document_integer(value, &integer)) {
        store_integer(to, key->size, integer);
    } else if (key->kind == KEY_BOOLEAN) {
        store_integer(to, key->size, value->boolean != key->is_negated);
    } else if (key->kind == KEY_WORD) {
        store_integer(to, key->size, key_word(value, key->words) + key->min);
    } else if (key->kind == KEY_FRAMING) {
        framing = framing_named(value->text.data);
        memcpy(to, &framing, key->size);
    } else if (key->kind == KEY_OBJECT) {
        keys_apply(to, key->members, value);
    }
}

void keys_apply(void *to, const struct key_table *table, const struct json_value *object)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct key *key = &table->keys[i];
        const struct json_value *value = document_member(object, key->name);

        if (key->size > 0 && value != NULL)
            apply_value((char *)to + key->offset, key, value);
    }
}

static bool copy_text(char **to, const struct json_value *value)
{
    if (value->text.len == 0)
        return true;
    *to = slice_copy(value->text);
    return *to != NULL;
}

static bool copy_texts(char ***to, const struct json_value *value)
{
    const struct json_value *item;
    size_t i = 0;

    *to = calloc(value->count + 1, sizeof **to);
    if (*to == NULL)
        return false;
    for (item = value->first; item != NULL; item = item->next) {
        (*to)[i] = slice_copy(item->text);
        if ((*to)[i++] == NULL)
            return false;
    }
    return true;
}

bool keys_copy(void *to, const struct key_table *table, const struct json_value *object)
{
    bool copied = true;

    for (size_t i = 0; i < table->count && copied; i++) {
        const struct key *key = &table->keys[i];
        const struct json_value *value = document_member(object, key->name);
        void *at = (char *)to + key->offset;

        if (key->size == 0 || value == NULL)
            continue;
        if (key->kind == KEY_TEXT)
            copied = copy_text(at, value);
        else if (key->kind == KEY_TEXTS)
            copied = copy_texts(at, value);
        else if (key->kind == KEY_OBJECT)
            copied = keys_copy(at, key->members, value);
    }
    return copied;
}

static void free_texts(char **texts)
{
    for (size_t i = 0; texts != NULL && texts[i] != NULL; i++)
        free(texts[i]);
    free(texts);
}

void keys_free(void *of, const struct key_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct key *key = &table->keys[i];
        void *at = (char *)of + key->offset;

        if (key->size == 0)
            continue;
        if (key->kind == KEY_TEXT)
            free(*(char **)at);
        else if (key->kind == KEY_TEXTS)
            free_texts(*(char ***)at);
        else if (key->kind == KEY_OBJECT)
            keys_free(at, key->members);
    }
}

/* --- what changes --- */

bool key_texts_differ(const char *before, const char *after)
{
    if (before == NULL || after == NULL)
        return before != after;
    return strcmp(before, after) != 0;
}

bool keys_differ(const void *before, const void *after, const struct key_table *table,
                 enum key_change change)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct key *key = &table->keys[i];
        const char *one = (const char *)before + key->offset;
        const char *other = (const char *)after + key->offset;

        if (key->size == 0 || key->change != change)
            continue;
        if (key->kind == KEY_TEXT ? key_texts_differ(*(char *const *)one, *(char *const *)other)
                                  : memcmp(one, other, key->size) != 0)
            return true;
    }
    return false;
}
