/* TOML: what was read and is written again, in inline tables, is read as the same. */
#include "build_config.h"

#include "cli/toml.h"

#include "base/error.h"
#include "common.h"
#include "json/text.h"

static void write_value(struct json_text *text, const struct json_value *value);

static void write_members(struct json_text *text, const struct json_value *value,
                          const char *between)
{
    const struct json_value *member;

    for (member = value->first; member != NULL; member = member->next) {
        if (value->type == JSON_OBJECT) {
            json_text_string(text, member->key);
            json_text_literal(text, " = ");
        }
        write_value(text, member);
        if (member->next != NULL)
            json_text_literal(text, between);
    }
}

static void write_value(struct json_text *text, const struct json_value *value)
{
    if (value->type == JSON_STRING)
        json_text_string(text, value->text);
    else if (value->type == JSON_NUMBER)
        json_text_add(text, value->text);
    else if (value->type == JSON_BOOLEAN)
        json_text_literal(text, value->boolean ? "true" : "false");
    else
        json_text_literal(text, value->type == JSON_ARRAY ? "[" : "{");
    write_members(text, value, ", ");
    if (value->type == JSON_ARRAY || value->type == JSON_OBJECT)
        json_text_literal(text, value->type == JSON_ARRAY ? "]" : "}");
}

static void expect_same(const struct json_value *a, const struct json_value *b)
{
    EXPECT(a->type == b->type && a->boolean == b->boolean && a->count == b->count &&
               slice_equal(a->text, b->text) && slice_equal(a->key, b->key),
           "the values of %s differ", a->key.data != NULL ? a->key.data : "(none)");
    for (a = a->first, b = b->first; a != NULL; a = a->next, b = b->next)
        expect_same(a, b);
}

/* Tables with headers may be nested deeper than what is nested in one value. */
static bool is_deep(const struct json_value *value, unsigned depth)
{
    if (value->first != NULL && depth >= TOML_MAX_DEPTH)
        return true;
    for (value = value->first; value != NULL; value = value->next) {
        if (is_deep(value, depth + 1))
            return true;
    }
    return false;
}

static void check_again(const struct json_value *root)
{
    struct json_text text = {.data = NULL};
    struct document_error error;
    struct toml again;

    json_text_literal(&text, "#\n"); /* it is not empty */
    write_members(&text, root, "\n");
    if (text.failed)
        abort();
    EXPECT(toml_read(&again, json_text_slice(&text), &error) == STDIO_BUS_OK, "%s: %.*s",
           error.text, (int)text.len, text.data);
    expect_same(root, again.root);
    toml_free(&again);
    json_text_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = fuzz_copy(data, size);
    struct document_error error;
    struct toml toml;
    int code = toml_read(&toml, slice_of(copy, size), &error);

    EXPECT(code == STDIO_BUS_OK || code == STDIO_BUS_EINVAL, "%d", code);
    if (code == STDIO_BUS_OK && !is_deep(toml.root, 0))
        check_again(toml.root);
    else if (code != STDIO_BUS_OK)
        EXPECT(error.text[0] != '\0' && error.at.line > 0 && error.at.column > 0, "no reason");
    toml_free(&toml);
    free(copy);
    return 0;
}
