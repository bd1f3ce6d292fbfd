#include "build_config.h"

#include "cli/rmp_params.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/yaml_block.h"
#include "json/document.h"

#define OVERRIDES_MAX 256

struct override {
    struct slice key;
    struct json_text value; /* JSON, in one line */
    bool done;              /* it has its place in the text */
};

struct merge {
    struct json_text *to;
    struct override overrides[OVERRIDES_MAX];
    size_t count;
    char *problem;
};

static bool refuse(struct merge *merge, const char *problem)
{
    snprintf(merge->problem, RMP_PARAMS_PROBLEM_MAX, "%s", problem);
    return false;
}

/* --- values --- */

/* One line of JSON, which is YAML too: no character is written as a pair of escapes. */
static void put_value(struct json_text *to, const struct json_value *value)
{
    const struct json_value *child;

    switch (value->type) {
    case JSON_NULL:
        json_text_literal(to, "null");
        break;
    case JSON_BOOLEAN:
        json_text_literal(to, value->boolean ? "true" : "false");
        break;
    case JSON_NUMBER:
        json_text_add(to, value->text);
        break;
    case JSON_STRING:
        json_text_string(to, value->text);
        break;
    case JSON_ARRAY:
    case JSON_OBJECT:
        json_text_literal(to, value->type == JSON_ARRAY ? "[" : "{");
        for (child = value->first; child != NULL; child = child->next) {
            if (value->type == JSON_OBJECT) {
                json_text_string(to, child->key);
                json_text_literal(to, ": ");
            }
            put_value(to, child);
            if (child->next != NULL)
                json_text_literal(to, ", ");
        }
        json_text_literal(to, value->type == JSON_ARRAY ? "]" : "}");
        break;
    }
}

static struct override *find(struct merge *merge, struct slice key)
{
    for (size_t i = 0; i < merge->count; i++) {
        if (!merge->overrides[i].done && slice_equal(merge->overrides[i].key, key))
            return &merge->overrides[i];
    }
    return NULL;
}

/* --- overrides --- */

/* The override of the key, with room for its value. NULL after a problem, which is reported. */
static struct override *add_override(struct merge *merge, struct slice key)
{
    struct override *override = find(merge, key);
    char *copy;

    if (override == NULL) {
        if (merge->count == OVERRIDES_MAX) {
            refuse(merge, "--params: there are too many");
            return NULL;
        }
        copy = malloc(key.len + 1);
        if (copy == NULL) {
            refuse(merge, "out of memory");
            return NULL;
        }
        memcpy(copy, key.data, key.len);
        override = &merge->overrides[merge->count++];
        override->key = slice_of(copy, key.len);
    }
    json_text_free(&override->value);
    return override;
}

static bool add_member(struct merge *merge, const struct json_value *member)
{
    struct override *override = add_override(merge, member->key);

    if (override == NULL)
        return false;
    put_value(&override->value, member);
    return true;
}

static bool add_object(struct merge *merge, const char *given)
{
    struct document document;
    struct document_error error;
    const struct json_value *member;
    bool added = true;

    if (document_read(&document, slice_of_text(given), &error) != STDIO_BUS_OK) {
        snprintf(merge->problem, RMP_PARAMS_PROBLEM_MAX, "--params is no JSON: %zu:%zu: %s",
                 error.at.line, error.at.column, error.text);
        return false;
    }
    for (member = document.root->first; added && member != NULL; member = member->next)
        added = add_member(merge, member);
    document_free(&document);
    return added;
}

/* KEY=VALUE: what is no JSON is a text. */
static bool add_pair(struct merge *merge, const char *given)
{
    const char *equals = strchr(given, '=');
    struct override *override;
    struct document document;
    struct document_error error;
    struct slice value;

    if (equals == NULL || equals == given)
        return refuse(merge, "--params is neither KEY=VALUE nor a JSON object");
    value = slice_of(equals + 1, strlen(equals + 1));
    override = add_override(merge, slice_of(given, (size_t)(equals - given)));
    if (override == NULL)
        return false;
    if (document_read(&document, value, &error) == STDIO_BUS_OK) {
        put_value(&override->value, document.root);
        document_free(&document);
    } else {
        json_text_string(&override->value, value);
    }
    return true;
}

/* --- the mapping --- */

static void put_line(struct merge *merge, size_t column, struct override *override)
{
    while (column-- > 0)
        json_text_literal(merge->to, " ");
    json_text_string(merge->to, override->key);
    json_text_literal(merge->to, ": ");
    json_text_add(merge->to, json_text_slice(&override->value));
    json_text_literal(merge->to, "\n");
    override->done = true;
}

static void put_others(struct merge *merge, size_t column)
{
    for (size_t i = 0; i < merge->count; i++) {
        if (!merge->overrides[i].done)
            put_line(merge, column, &merge->overrides[i]);
    }
}

static void put_text(struct merge *merge, struct slice text, size_t from, size_t to)
{
    json_text_add(merge->to, slice_of(text.data + from, to - from));
    if (to > from && text.data[to - 1] != '\n')
        json_text_literal(merge->to, "\n");
}

/* The mapping's own entries from `at` on, each in a line of its own. */
static bool merge_block(struct merge *merge, struct slice text, size_t at, size_t column)
{
    struct yaml_entry entry;
    enum yaml_found found;

    while ((found = yaml_block_next(text, at, column, &entry)) == YAML_ENTRY) {
        struct override *override = find(merge, entry.key);

        put_text(merge, text, at, override != NULL ? entry.start : entry.end);
        if (override != NULL)
            put_line(merge, column, override);
        at = entry.end;
    }
    if (found == YAML_OTHER)
        return refuse(merge, "params of the opening is no mapping");
    put_others(merge, column);
    put_text(merge, text, at, text.len);
    return true;
}

/* {"a": 1}, in one or more lines: each member gets a line. */
static bool merge_object(struct merge *merge, struct slice object)
{
    struct document document;
    struct document_error error;
    const struct json_value *member;

    if (document_read(&document, object, &error) != STDIO_BUS_OK)
        return refuse(merge, "params of the opening is in braces and no JSON");
    json_text_literal(merge->to, "params:\n");
    for (member = document.root->first; member != NULL; member = member->next) {
        if (find(merge, member->key) != NULL)
            continue;
        json_text_literal(merge->to, "  ");
        json_text_string(merge->to, member->key);
        json_text_literal(merge->to, ": ");
        put_value(merge->to, member);
        json_text_literal(merge->to, "\n");
    }
    document_free(&document);
    put_others(merge, 2);
    return true;
}

/* Its value, without white space and comments before it, up to the end of the entry. */
static struct slice value_of(struct slice text, const struct yaml_entry *entry)
{
    size_t at = entry->value;

    while (at < entry->end && (text.data[at] == ' ' || text.data[at] == '\t'))
        at++;
    return slice_of(text.data + at, entry->end - at);
}

static bool merge_params(struct merge *merge, struct slice text, const struct yaml_entry *entry)
{
    struct slice value = value_of(text, entry), first_line = value;
    struct slice rest = {text.data, entry->end};
    size_t column, line;

    if (value.len > 0 && value.data[0] == '{')
        return merge_object(merge, slice_of(value.data, yaml_block_flow(value, 0)));
    first_line.len = 0;
    while (first_line.len < value.len && strchr(" \t\r\n#", value.data[first_line.len]) == NULL)
        first_line.len++;
    line = yaml_block_line(rest, entry->end - (value.len - first_line.len), &column);
    if (slice_is(first_line, "~") || slice_is(first_line, "null") ||
        (first_line.len == 0 && line >= rest.len)) {
        json_text_literal(merge->to, "params:\n");
        put_others(merge, 2);
        return true;
    }
    if (first_line.len > 0 || column == 0)
        return refuse(merge, "params of the opening is no mapping");
    put_text(merge, text, entry->start, line);
    return merge_block(merge, rest, line, column);
}

/* --- the opening --- */

static bool is_blank_line(struct slice line)
{
    while (line.len > 0 && strchr(" \t\r", line.data[line.len - 1]) != NULL)
        line.len--;
    return line.len == 0;
}

/* Where the first document begins, after its directives and its marker. */
static size_t first_entry(struct slice text)
{
    size_t column, at = yaml_block_line(text, 0, &column), end;

    while (at < text.len && column == 0 && text.data[at] == '%') {
        while (at < text.len && text.data[at] != '\n')
            at++;
        at = yaml_block_line(text, at, &column);
    }
    end = at;
    while (end < text.len && text.data[end] != '\n')
        end++;
    if (end - at >= 3 && memcmp(text.data + at, "---", 3) == 0 &&
        is_blank_line(slice_of(text.data + at + 3, end - at - 3)))
        at = yaml_block_line(text, end, &column);
    return at;
}

static bool merge_yaml(struct merge *merge, struct slice text)
{
    size_t begin = first_entry(text), at = begin;
    struct yaml_entry entry, params = {.end = 0};
    enum yaml_found found;

    while ((found = yaml_block_next(text, at, 0, &entry)) == YAML_ENTRY) {
        if (slice_is(entry.key, "params"))
            params = entry;
        at = entry.end;
    }
    if (found == YAML_OTHER || at == begin)
        return refuse(merge, "the opening is no mapping: --params has no place in it");
    put_text(merge, text, 0, params.end > 0 ? params.start : at);
    if (params.end > 0) {
        if (!merge_params(merge, text, &params))
            return false;
    } else {
        json_text_literal(merge->to, "params:\n");
        put_others(merge, 2);
    }
    put_text(merge, text, params.end > 0 ? params.end : at, text.len);
    return true;
}

static bool merge_json(struct merge *merge, struct slice text)
{
    struct document document;
    struct document_error error;
    const struct json_value *member;
    bool merged = true;

    if (document_read(&document, text, &error) != STDIO_BUS_OK)
        return refuse(merge, "the opening is in braces and no JSON");
    for (member = document.root->first; member != NULL; member = member->next) {
        if (slice_is(member->key, "params"))
            continue;
        json_text_string(merge->to, member->key);
        json_text_literal(merge->to, ": ");
        put_value(merge->to, member);
        json_text_literal(merge->to, "\n");
    }
    member = document_member(document.root, "params");
    if (member != NULL && member->type != JSON_OBJECT && member->type != JSON_NULL) {
        merged = refuse(merge, "params of the opening is no mapping");
    } else if (member != NULL && member->type == JSON_OBJECT) {
        struct json_text object = {.data = NULL};

        put_value(&object, member);
        merged = !object.failed && merge_object(merge, json_text_slice(&object));
        json_text_free(&object);
    } else {
        json_text_literal(merge->to, "params:\n");
        put_others(merge, 2);
    }
    document_free(&document);
    return merged;
}

bool rmp_params_merge(struct json_text *to, struct slice opening, const char *const *overrides,
                      size_t count, char problem[RMP_PARAMS_PROBLEM_MAX])
{
    struct merge *merge = calloc(1, sizeof *merge);
    size_t column, at = yaml_block_line(opening, 0, &column);
    bool merged = true;

    if (merge == NULL) {
        snprintf(problem, RMP_PARAMS_PROBLEM_MAX, "out of memory");
        return false;
    }
    merge->to = to;
    merge->problem = problem;
    for (size_t i = 0; merged && i < count; i++)
        merged = overrides[i][0] == '{' ? add_object(merge, overrides[i])
                                        : add_pair(merge, overrides[i]);
    if (merged && at < opening.len && opening.data[at + column] == '{')
        merged = merge_json(merge, opening);
    else if (merged)
        merged = merge_yaml(merge, opening);
    for (size_t i = 0; i < merge->count; i++) {
        merged = merged && !merge->overrides[i].value.failed;
        json_text_free(&merge->overrides[i].value);
        free((char *)(uintptr_t)merge->overrides[i].key.data);
    }
    free(merge);
    if (merged && to->failed)
        snprintf(problem, RMP_PARAMS_PROBLEM_MAX, "out of memory");
    return merged && !to->failed;
}
