#include "build_config.h"

#include "remote/fields.h"

#include "base/error.h"
#include "http/base64.h"
#include "json/document.h"

#define METHOD_MAX 256
#define CODED_BEGIN "=?base64?"
#define CODED_END "?="

static void add(struct json_output *out, const char *text)
{
    json_output_add(out, slice_of(text, strlen(text)));
}

bool fields_is_plain(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] <= ' ' || text.data[i] > '~')
            return false;
    }
    return text.len > 0;
}

/* --- values --- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool begins_with(struct slice text, const char *word)
{
    size_t len = strlen(word);

    return text.len >= len && memcmp(text.data, word, len) == 0;
}

static bool needs_code(struct slice value)
{
    if (value.len == 0 || is_blank(value.data[0]) || is_blank(value.data[value.len - 1]) ||
        begins_with(value, CODED_BEGIN))
        return true;
    for (size_t i = 0; i < value.len; i++) {
        if ((value.data[i] < ' ' && value.data[i] != '\t') || value.data[i] > '~')
            return true;
    }
    return false;
}

static void add_base64(struct json_output *out, struct slice bytes)
{
    char text[BASE64_LEN(FIELDS_VALUE_MAX)];

    base64_encode(text, bytes);
    json_output_add(out, slice_of(text, BASE64_LEN(bytes.len)));
}

void fields_add_value(struct json_output *out, struct slice value)
{
    if (!needs_code(value)) {
        json_output_add(out, value);
        return;
    }
    add(out, CODED_BEGIN);
    add_base64(out, value);
    add(out, CODED_END);
}

/* --- the fields of a message --- */

/* The parameter that Mcp-Name has. */
static const struct {
    const char *method, *key;
} names[] = {
    {"tools/call", "name"},  {"prompts/get", "name"},    {"resources/read", "uri"},
    {"tasks/get", "taskId"}, {"tasks/update", "taskId"}, {"tasks/cancel", "taskId"},
};

static void add_field(struct json_output *out, const char *name, struct slice value)
{
    add(out, name);
    add(out, ": ");
    fields_add_value(out, value);
    add(out, "\r\n");
}

/* False: out of memory. */
static bool add_name(struct json_output *out, struct slice bytes, const char *key)
{
    const struct json_value *params, *value = NULL;
    struct document_error error;
    struct document document;
    int status = document_read(&document, bytes, &error);

    if (status != STDIO_BUS_OK)
        return status != STDIO_BUS_ERR;
    params = document_member(document.root, "params");
    if (params != NULL && params->type == JSON_OBJECT)
        value = document_member(params, key);
    if (value != NULL && value->type == JSON_STRING && value->text.len <= FIELDS_VALUE_MAX)
        add_field(out, "Mcp-Name", value->text);
    document_free(&document);
    return true;
}

bool fields_write(struct json_output *out, const struct message *message,
                  const struct param_fields *found)
{
    char decoded[METHOD_MAX];
    struct slice value;

    if (param_fields_string(found, PARAM_VERSION, message->bytes, decoded, METHOD_MAX, &value) &&
        fields_is_plain(value))
        add_field(out, "MCP-Protocol-Version", value);
    if (message->method.data != NULL && message->method.len <= METHOD_MAX &&
        fields_is_plain(message->method))
        add_field(out, "Mcp-Method", message->method);
    for (size_t i = 0; message->method.data != NULL && i < sizeof names / sizeof names[0]; i++) {
        if (slice_equal(message->method, slice_of(names[i].method, strlen(names[i].method))))
            return add_name(out, message->bytes, names[i].key);
    }
    return true;
}
