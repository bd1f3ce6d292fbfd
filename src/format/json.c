#include "build_config.h"

#include "format/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "format/json_token.h"

static bool read_value(struct json_document *document, struct json_reader *reader,
                       struct json_value *value);

/* ---- reading -------------------------------------------------------------------------------- */

/* A new value, held by the document from now on; it has no place in the tree yet. A failure leaves
 * error->text empty, which no error in the text does. */
static struct json_value *new_value(struct json_document *document, struct json_value *parent)
{
    struct json_value *value = calloc(1, sizeof(*value));

    if (value == NULL)
        return NULL;
    value->older = document->newest;
    document->newest = value;
    value->parent = parent;
    if (parent != NULL)
        value->index = parent->count;
    return value;
}

/* Past the opening bracket. */
static bool enter(struct json_reader *reader)
{
    if (reader->depth == JSON_MAX_DEPTH)
        return json_fail(reader, reader->at, "nested deeper than %d levels", JSON_MAX_DEPTH);
    reader->depth++;
    json_advance(reader, 1);
    json_skip_space(reader);
    return true;
}

/* Behind a child: sets *more when a comma says that another one follows. */
static bool read_separator(struct json_reader *reader, struct json_value *parent, bool *more)
{
    bool is_array = parent->type == JSON_ARRAY;

    reader->value = parent;
    json_skip_space(reader);
    *more = json_accept(reader, ',');
    if (!*more && json_peek(reader) != (is_array ? ']' : '}'))
        return json_fail_expected(reader, is_array ? "',' or ']'" : "',' or '}'");
    json_skip_space(reader);
    return true;
}

static bool read_key(struct json_reader *reader, const struct json_value *object,
                     struct json_value *member)
{
    const struct json_value *earlier;
    char shown[64];

    member->key_at = reader->at;
    if (json_peek(reader) != '"')
        return json_fail_expected(reader, object->count == 0 ? "a key in double quotes or '}'"
                                                             : "a key in double quotes after ','");
    if (!json_read_string(reader, &member->key))
        return false;
    for (earlier = object->first; earlier != NULL; earlier = earlier->next) {
        if (slice_equal(earlier->key, member->key))
            return json_fail(reader, member->key_at, "duplicate key \"%s\", first at %zu:%zu",
                             log_escape(shown, sizeof(shown), member->key), earlier->key_at.line,
                             earlier->key_at.column);
    }
    json_skip_space(reader);
    return json_accept(reader, ':') || json_fail_expected(reader, "':' after the key");
}

/* The children of an array or object, and its brackets. */
static bool read_children(struct json_document *document, struct json_reader *reader,
                          struct json_value *parent, char closing)
{
    struct json_value **link = &parent->first;
    bool more;

    if (!enter(reader))
        return false;
    more = json_peek(reader) != closing;
    while (more) {
        struct json_value *child = new_value(document, parent);

        if (child == NULL || (parent->type == JSON_OBJECT && !read_key(reader, parent, child)) ||
            !read_value(document, reader, child))
            return false;
        *link = child;
        link = &child->next;
        parent->count++;
        if (!read_separator(reader, parent, &more))
            return false;
    }
    json_advance(reader, 1);
    reader->depth--;
    return true;
}

static bool read_word(struct json_reader *reader, struct json_value *value)
{
    struct slice word = json_word(reader);

    value->boolean = slice_equal(word, slice_of("true", 4));
    if (value->boolean || slice_equal(word, slice_of("false", 5)))
        value->type = JSON_BOOLEAN;
    else if (slice_equal(word, slice_of("null", 4)))
        value->type = JSON_NULL;
    else
        return json_fail_expected(reader, "a value");
    reader->next += word.len;
    reader->at.column += word.len;
    return true;
}

static bool read_value(struct json_document *document, struct json_reader *reader,
                       struct json_value *value)
{
    int c;

    json_skip_space(reader);
    reader->value = value;
    value->at = reader->at;
    c = json_peek(reader);
    if (c == '{') {
        value->type = JSON_OBJECT;
        return read_children(document, reader, value, '}');
    }
    if (c == '[') {
        value->type = JSON_ARRAY;
        return read_children(document, reader, value, ']');
    }
    if (c == '"') {
        value->type = JSON_STRING;
        return json_read_string(reader, &value->text);
    }
    if (c == '-' || (c >= '0' && c <= '9')) {
        value->type = JSON_NUMBER;
        return json_read_number(reader, &value->text);
    }
    return read_word(reader, value);
}

static bool read_document(struct json_document *document, struct json_reader *reader)
{
    /* A decoded string is never longer than its source, and its NUL takes less than the quotes. */
    document->strings = malloc((size_t)(reader->end - reader->next) + 1);
    if (document->strings == NULL)
        return false;
    reader->string_end = document->strings;
    document->root = new_value(document, NULL);
    if (document->root == NULL || !read_value(document, reader, document->root))
        return false;
    json_skip_space(reader);
    return json_peek(reader) == -1 || json_fail_expected(reader, "the end of the file");
}

int json_read(struct json_document *document, struct slice source, struct json_error *error)
{
    struct json_reader reader = {.at = {1, 1}, .error = error};

    memset(document, 0, sizeof(*document));
    memset(error, 0, sizeof(*error));
    reader.next = source.len > 0 ? source.data : "";
    reader.end = reader.next + source.len;
    if (read_document(document, &reader))
        return STDIO_BUS_OK;
    json_free(document);
    return error->text[0] == '\0' ? STDIO_BUS_ERR : STDIO_BUS_EINVAL;
}

void json_free(struct json_document *document)
{
    struct json_value *value = document->newest;

    while (value != NULL) {
        struct json_value *older = value->older;
        free(value);
        value = older;
    }
    free(document->strings);
    memset(document, 0, sizeof(*document));
}

/* ---- looking -------------------------------------------------------------------------------- */

const struct json_value *json_member(const struct json_value *object, const char *key)
{
    const struct json_value *member;

    for (member = object->first; member != NULL; member = member->next) {
        if (slice_equal(member->key, slice_of(key, strlen(key))))
            return member;
    }
    return NULL;
}

/* Behind the 'e'. What is out of all reach is cut, so that sums with a text's length fit. */
static int64_t read_exponent(const char *p, const char *end)
{
    bool negative = *p == '-';
    int64_t exponent = 0;

    if (*p == '-' || *p == '+')
        p++;
    for (; p < end; p++) {
        if (exponent < INT64_MAX / 1000)
            exponent = exponent * 10 + (*p - '0');
    }
    return negative ? -exponent : exponent;
}

static int64_t append_digit(int64_t magnitude, int digit)
{
    return magnitude > (INT64_MAX - digit) / 10 ? INT64_MAX : magnitude * 10 + digit;
}

bool json_integer(const struct json_value *value, int64_t *integer)
{
    const char *p, *end, *point, *e;
    int64_t magnitude = 0, places; /* digits before the point, the exponent applied */
    bool negative;

    if (value->type != JSON_NUMBER)
        return false;
    p = value->text.data;
    end = p + value->text.len;
    negative = *p == '-';
    p += negative;
    for (e = p; e < end && *e != 'e' && *e != 'E'; e++)
        ;
    for (point = p; point < e && *point != '.'; point++)
        ;
    places = (point - p) + (e < end ? read_exponent(e + 1, end) : 0);
    for (; p < e; p++) {
        if (*p == '.')
            continue;
        if (places-- > 0)
            magnitude = append_digit(magnitude, *p - '0');
        else if (*p != '0')
            return false;
    }
    while (places-- > 0 && magnitude > 0 && magnitude < INT64_MAX)
        magnitude = append_digit(magnitude, 0);
    *integer = negative ? -magnitude : magnitude;
    return true;
}

const char *json_type_name(enum json_type type)
{
    static const char *const names[] = {
        [JSON_NULL] = "null",       [JSON_BOOLEAN] = "a boolean", [JSON_NUMBER] = "a number",
        [JSON_STRING] = "a string", [JSON_ARRAY] = "an array",    [JSON_OBJECT] = "an object",
    };

    return names[type];
}

static bool is_plain_key(struct slice key)
{
    size_t i;

    for (i = 0; i < key.len; i++) {
        char c = key.data[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '_' || c == '-'))
            return false;
    }
    return key.len > 0;
}

size_t json_path(char *to, size_t size, const struct json_value *value)
{
    const struct json_value *parent = value->parent;
    char key[64];
    size_t used;
    int n;

    to[0] = '\0';
    if (parent == NULL)
        return 0;
    used = json_path(to, size, parent);
    if (parent->type == JSON_ARRAY) {
        n = snprintf(to + used, size - used, "[%zu]", value->index);
    } else {
        bool plain = is_plain_key(value->key);
        log_escape(key, sizeof(key), value->key);
        n = snprintf(to + used, size - used, plain ? "%s%s" : "%s[\"%s\"]",
                     plain && used > 0 ? "." : "", key);
    }
    if (n < 0)
        return used;
    return used + (size_t)n < size ? used + (size_t)n : size - 1;
}
