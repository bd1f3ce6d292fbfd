#include "build_config.h"

#include "remote/messages.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/slice.h"
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

/* The value, of at most FIELDS_VALUE_MAX bytes, as a field may have it: as it is, or as
 * =?base64?...?=. */
static void fields_add_value(struct json_output *out, struct slice value)
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
        if (slice_is(message->method, names[i].method))
            return add_name(out, message->bytes, names[i].key);
    }
    return true;
}

/* The object without what surrounds it. Its fields are moved along. */
static struct slice object_of(struct slice line, struct scan_fields *fields)
{
    struct scan_field *all[] = {&fields->id, &fields->session_id, &fields->method, &fields->pool};
    const char *brace = memchr(line.data, '{', line.len);
    size_t before = (size_t)(brace - line.data), len = line.len - before;

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i]->type != SCAN_ABSENT)
            all[i]->offset -= before;
    }
    while (brace[len - 1] != '}')
        len--;
    return slice_of(brace, len);
}

const char *messages_make(struct message *message, struct slice text, struct scan_fields *fields,
                          struct message_scratch *scratch)
{
    enum message_problem problem = message_from_scan(message, object_of(text, fields), fields,
                                                     scratch);

    /* The daemon's own fields mean nothing here: a session or a pool of any type is good. */
    return problem == MESSAGE_ID_TYPE || problem == MESSAGE_ID_LENGTH || problem == MESSAGE_ID_RANGE
               ? message_problem_text(problem)
               : NULL;
}

bool messages_is_error(const struct message *message)
{
    const struct json_value *version, *error;
    struct document_error problem;
    struct document document;
    bool is_error;

    if (!message->has_error || document_read(&document, message->bytes, &problem) != STDIO_BUS_OK)
        return false;
    version = document_member(document.root, "jsonrpc");
    error = document_member(document.root, "error");
    is_error = version != NULL && version->type == JSON_STRING &&
               slice_equal(version->text, slice_of("2.0", 3)) && error != NULL &&
               error->type == JSON_OBJECT;
    document_free(&document);
    return is_error;
}

static const char *report(struct slice line, struct scanner *scanner,
                          void (*fn)(void *user, const struct message *message), void *user)
{
    struct message_scratch scratch;
    struct message message;
    const char *problem = messages_make(&message, line, &scanner->fields, &scratch);

    if (problem == NULL)
        fn(user, &message);
    return problem;
}

/* Reads a line that is an object or an array of objects. */
static const char *read_line(struct slice line,
                             void (*fn)(void *user, const struct message *message), void *user)
{
    struct scanner scanner = {.position = 0};
    const char *problem = NULL;

    scanner_reset(&scanner);
    scanner.form = SCAN_LINE_OR_ARRAY;
    while (line.len > 0 && problem == NULL) {
        switch (scanner_run(&scanner, line.data, line.len)) {
        case SCAN_MESSAGE: {
            size_t len = scanner.position;

            problem = report(slice_of(line.data, len), &scanner, fn, user);
            line = slice_of(line.data + len, line.len - len);
            scanner_next(&scanner);
            break;
        }
        case SCAN_BLANK:
            line = slice_of(line.data + scanner.position, line.len - scanner.position);
            scanner_next(&scanner);
            break;
        case SCAN_MORE:
            return "the JSON is not complete";
        case SCAN_INVALID:
            return scan_error_text(scanner.error);
        }
    }
    return problem;
}

const char *messages_read(struct slice text, void (*fn)(void *user, const struct message *message),
                          void *user)
{
    char *line = malloc(text.len + 1);
    const char *problem;

    if (line == NULL)
        return "out of memory";
    if (text.len > 0)
        memcpy(line, text.data, text.len);
    splice_blank(line, text.len, '\n');
    line[text.len] = '\n';
    problem = read_line(slice_of(line, text.len + 1), fn, user);
    free(line);
    return problem;
}
