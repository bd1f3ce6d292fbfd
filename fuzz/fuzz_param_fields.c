/* The fields of params: one pass finds the same as a search of one object after the other, and
 * replacing a value and putting it back leaves every other byte as it was. An initialize that
 * offers everything is a message with all abilities and the same id. */
#include "build_config.h"

#include "json/param_fields.h"

#include "base/slice.h"
#include "common.h"
#include "reference_json.h"
#include "router/abilities.h"
#include "json/message.h"

/* --- the plain way: each object is searched from its start for one key --- */

struct value {
    const char *start, *end; /* start NULL: there is none */
};

static const char *skip(const char *p)
{
    while (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n')
        p++;
    return p;
}

static const char *string_end(const char *p)
{
    for (p++; *p != '"'; p++)
        p += *p == '\\';
    return p + 1;
}

static const char *value_end(const char *p)
{
    unsigned depth = 0;

    do {
        if (*p == '"') {
            p = string_end(p);
            continue;
        }
        depth += *p == '{' || *p == '[';
        depth -= *p == '}' || *p == ']';
        p++;
    } while (depth > 0);
    if (p[-1] == '"' || p[-1] == '}' || p[-1] == ']')
        return p;
    while (*p != ',' && *p != '}' && *p != ']' && *p > ' ')
        p++;
    return p;
}

/* The last value of that key in the object at p. */
static struct value member(struct value object, const char *name)
{
    struct value found = {NULL, NULL};
    const char *p = object.start;

    if (p == NULL || *p != '{')
        return found;
    for (p = skip(p + 1); *p != '}'; p = skip(p + (*p == ','))) {
        const char *end = string_end(p);
        size_t len = (size_t)(end - p) - 2;
        char *decoded = malloc(len + 1);

        if (decoded == NULL)
            abort();
        len = reference_decode(decoded, p + 1, len);
        p = skip(skip(end) + 1);
        end = value_end(p);
        if (len == strlen(name) && memcmp(decoded, name, len) == 0)
            found = (struct value){p, end};
        free(decoded);
        p = skip(end);
    }
    return found;
}

static struct value wanted(const char *text, enum param_field field)
{
    static const char *const paths[PARAM_FIELDS_COUNT][4] = {
        [PARAM_SESSION] = {"params", "sessionId"},
        [PARAM_META_TOKEN] = {"params", "_meta", "progressToken"},
        [PARAM_WORK_TOKEN] = {"params", "workDoneToken"},
        [PARAM_PARTIAL_TOKEN] = {"params", "partialResultToken"},
        [PARAM_PROGRESS_TOKEN] = {"params", "progressToken"},
        [PARAM_TOKEN] = {"params", "token"},
        [PARAM_REQUEST_ID] = {"params", "requestId"},
        [PARAM_ID] = {"params", "id"},
        [PARAM_NEW_TASK] = {"params", "task"},
        [PARAM_TASK] = {"params", "taskId"},
        [PARAM_STATUS] = {"params", "status"},
        [PARAM_URI] = {"params", "uri"},
        [PARAM_LEVEL] = {"params", "level"},
        [PARAM_PROTOCOL] = {"params", "protocolVersion"},
        [PARAM_NAME] = {"params", "name"},
        [PARAM_VERSION] = {"params", "_meta", "io.modelcontextprotocol/protocolVersion"},
        [PARAM_CAPABILITIES] = {"params", "_meta", "io.modelcontextprotocol/clientCapabilities"},
        [PARAM_LOG_LEVEL] = {"params", "_meta", "io.modelcontextprotocol/logLevel"},
        [PARAM_SUBSCRIPTION] = {"params", "_meta", "io.modelcontextprotocol/subscriptionId"},
        [PARAM_RELATED_TASK] = {"params", "_meta", "io.modelcontextprotocol/related-task",
                                "taskId"},
        [RESULT_SESSION] = {"result", "sessionId"},
        [RESULT_STOP] = {"result", "stopReason"},
        [RESULT_VERSION] = {"result", "protocolVersion"},
        [RESULT_TASK] = {"result", "task", "taskId"},
        [RESULT_SUBSCRIPTION] = {"result", "_meta", "io.modelcontextprotocol/subscriptionId"},
        [ERROR_CODE] = {"error", "code"},
    };
    struct value object = {skip(text), NULL};

    for (unsigned i = 0; i < 4 && paths[field][i] != NULL; i++)
        object = member(object, paths[field][i]);
    return object;
}

/* --- the checks --- */

static void check_splice(const char *text, size_t len, struct slice raw)
{
    size_t offset = (size_t)(raw.data - text), new_len;
    struct splice_edit edit = {offset, raw.len, {"4711", 4}}, back = {offset, 4, raw};
    char *changed, *again;

    new_len = splice_len(len, &edit, 1);
    EXPECT(new_len == len - raw.len + 4, "%zu bytes of %zu", new_len, len);
    changed = malloc(new_len);
    again = malloc(len);
    if (changed == NULL || again == NULL)
        abort();
    splice_write(changed, text, 0, len, &edit, 1);
    EXPECT(splice_len(new_len, &back, 1) == len, "the way back has another length");
    splice_write(again, changed, 0, new_len, &back, 1);
    EXPECT(memcmp(again, text, len) == 0, "replaced and put back, the bytes differ");
    EXPECT(memcmp(changed + offset, "4711", 4) == 0, "not replaced");
    free(changed);
    free(again);
}

static size_t hint_after(const struct scan_field *field)
{
    return field->offset + field->len + (field->type == SCAN_STRING ? 1 : 0);
}

static void check(const char *text, size_t len, size_t hint)
{
    struct param_fields found;

    memset(&found, 0xA5, sizeof found);
    EXPECT(param_fields_may_have_token(slice_of(text, len)) ||
               (wanted(text, PARAM_META_TOKEN).start == NULL &&
                wanted(text, PARAM_WORK_TOKEN).start == NULL &&
                wanted(text, PARAM_PARTIAL_TOKEN).start == NULL),
           "a token was overlooked");
    EXPECT(param_fields_may_have_token(slice_of(text, len)) ||
               (wanted(text, PARAM_NEW_TASK).start == NULL &&
                wanted(text, PARAM_TASK).start == NULL &&
                wanted(text, PARAM_RELATED_TASK).start == NULL),
           "a task was overlooked");
    EXPECT(param_fields_may_have_version(slice_of(text, len)) ||
               wanted(text, PARAM_VERSION).start == NULL,
           "a version was overlooked");
    param_fields_find(&found, slice_of(text, len), hint);
    for (unsigned i = 0; i < PARAM_FIELDS_COUNT; i++) {
        struct value value = wanted(text, (enum param_field)i);
        bool has = param_fields_has(&found, (enum param_field)i);
        struct slice raw;

        EXPECT(has == (value.start != NULL), "field %u, hint %zu", i, hint);
        if (!has)
            continue;
        raw = param_fields_raw(slice_of(text, len), &found.at[i]);
        EXPECT(raw.data == value.start && raw.len == (size_t)(value.end - value.start),
               "field %u, hint %zu: %zu+%zu and %zu+%zu", i, hint, (size_t)(raw.data - text),
               raw.len, (size_t)(value.start - text), (size_t)(value.end - value.start));
        check_splice(text, len, raw);
    }
}

static void check_members(const char *text, size_t len)
{
    static const char *const path[] = {"params", "capabilities", "elicitation", "url"};
    struct value value = {skip(text), NULL};
    struct slice object = slice_of(text, len), found;

    for (unsigned i = 0; i < sizeof path / sizeof *path; i++) {
        bool has = param_fields_member(object, path[i], &found);

        value = member(value, path[i]);
        EXPECT(has == (value.start != NULL), "member %s", path[i]);
        if (!has)
            return;
        EXPECT(found.data == value.start && found.len == (size_t)(value.end - value.start),
               "the place of the member %s", path[i]);
        object = found;
    }
}

static void check_offer(const char *text, size_t len, const struct scan_fields *fields)
{
    struct message_scratch scratch;
    struct message message, again;
    struct scanner scanner;
    struct slice params;
    struct offer offer;

    if (message_from_scan(&message, slice_of(text, len), fields, &scratch) != MESSAGE_OK)
        return;
    if (offer_make(&offer, &message) != 0)
        abort();
    EXPECT(offer.message.bytes.len <= len + OFFER_BYTES_MAX, "it grew too much");
    scanner_reset(&scanner);
    EXPECT(scanner_run(&scanner, offer.message.bytes.data, offer.message.bytes.len) ==
                   SCAN_MESSAGE &&
               scanner.position == offer.message.bytes.len,
           "the offer is no message");
    EXPECT(message_from_scan(&again, offer.message.bytes, &scanner.fields, &scratch) ==
                   MESSAGE_OK &&
               scanner.fields.id.offset == offer.fields.id.offset &&
               scanner.fields.id.len == fields->id.len,
           "the id has moved");
    if (param_fields_member(message.bytes, "params", &params) && params.data[0] == '{')
        EXPECT(abilities_read(&again) == (1u << ABILITIES) - 1, "an ability is missing");
    offer_free(&offer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct scanner scanner;
    char *line = malloc(size + 1);

    if (line == NULL)
        abort();
    if (size > 0)
        memcpy(line, data, size);
    line[size] = '\n';
    scanner_reset(&scanner);
    if (scanner_run(&scanner, line, size + 1) == SCAN_MESSAGE) {
        check(line, scanner.position, 0);
        check_members(line, scanner.position);
        check_offer(line, scanner.position, &scanner.fields);
        if (scanner.fields.id.type != SCAN_ABSENT)
            check(line, scanner.position, hint_after(&scanner.fields.id));
        if (scanner.fields.method.type != SCAN_ABSENT)
            check(line, scanner.position, hint_after(&scanner.fields.method));
    }
    free(line);
    return 0;
}
