#include "build_config.h"

#include "json/param_fields.h"

#include <string.h>

#include "json/byte_runs.h"
#include "json/number.h"
#include "json/string.h"

/* The objects whose keys are read. */
enum place { AT_TOP, IN_PARAMS, IN_META, IN_RELATED, IN_RESULT, IN_RESULT_META, IN_TASK, IN_ERROR };

static const enum place around[] = {
    [IN_PARAMS] = AT_TOP, [IN_META] = IN_PARAMS,        [IN_RELATED] = IN_META,
    [IN_RESULT] = AT_TOP, [IN_RESULT_META] = IN_RESULT, [IN_TASK] = IN_RESULT,
    [IN_ERROR] = AT_TOP};

/* The meaning of a key: an enum param_field, an object to enter, or nothing. */
#define INTO(place) (PARAM_FIELDS_COUNT + (place))
#define NOTHING INTO(IN_ERROR + 1)

struct walk {
    position start, end;
    struct window marks;
};

#define MCP "io.modelcontextprotocol/"
#define KEY_MAX sizeof MCP "clientCapabilities"

/* Marks: quotes, brackets of objects and arrays, backslashes. Without the bit in which '{' and '['
 * differ, all marks but the quote are three codes in a row, and the vertical bar is one of them. */
static inline block mark_block(position p)
{
    block bytes = BLOCK_LOAD(p), folded = BLOCK_OR(bytes, BLOCK_OF(0x20));

    return BLOCK_OR(BLOCK_INSIDE(folded, '{', '}'), BLOCK_EQUAL(bytes, BLOCK_OF('"')));
}

static inline uint64_t marks_64(position p)
{
    return BITS_64(mark_block, p);
}

/* The next mark. There is one. */
static inline position find_mark(struct window *w, position p)
{
    for (;;) {
        uint64_t stops;

        if ((uintptr_t)p >= (uintptr_t)w->seen_end)
            window_move(w, p, marks_64);
        stops = w->stops >> ((uintptr_t)p - w->base);
        if (stops != 0)
            return p + lowest_bit(stops);
        p = w->seen_end;
    }
}

/* True if an even number of backslashes precedes the quote at p. */
static bool ends_string(position p)
{
    position before = p;

    while (before[-1] == '\\')
        before--;
    return (p - before) % 2 == 0;
}

/* The quote at the end of the string that p is inside of. A search for quotes alone is fastest. */
static position find_quote(const struct walk *walk, position p)
{
    for (;; p++) {
        p = memchr(p, '"', (size_t)(walk->end - p));
        if (ends_string(p))
            return p;
    }
}

/* The quote at the end of the string whose first character is at p. Most are short and have no
 * mark. */
static inline position string_end(struct walk *walk, position p)
{
    p = find_mark(&walk->marks, p);
    return *p == '"' ? p : find_quote(walk, p);
}

/* The end of the object or array that opens at p. */
static position container_end(struct walk *walk, position p)
{
    unsigned depth = 1;

    for (p++;; p++) {
        p = find_mark(&walk->marks, p);
        if (*p == '"')
            p = string_end(walk, p + 1);
        else if (*p == '{' || *p == '[')
            depth++;
        else if (--depth == 0)
            return p + 1;
    }
}

static position scalar_end(position p)
{
    while (*p > ' ' && *p != ',' && *p != '}' && *p != ']')
        p++;
    return p;
}

/* Between tokens, all bytes up to the blank are white space. */
static inline position skip_blanks(position p)
{
    while (*p <= ' ')
        p++;
    return p;
}

/* --- keys --- */

struct key {
    const char *name;
    unsigned char len, meaning;
};

#define KEY(name, meaning)                                                                         \
    {                                                                                              \
        name, sizeof(name) - 1, meaning                                                            \
    }

/* In the order of their lengths. */
static const struct key top_keys[] = {KEY("error", INTO(IN_ERROR)), KEY("params", INTO(IN_PARAMS)),
                                      KEY("result", INTO(IN_RESULT))};
static const struct key params_keys[] = {
    KEY("id", PARAM_ID),
    KEY("uri", PARAM_URI),
    KEY("name", PARAM_NAME),
    KEY("task", PARAM_NEW_TASK),
    KEY("_meta", INTO(IN_META)),
    KEY("token", PARAM_TOKEN),
    KEY("level", PARAM_LEVEL),
    KEY("taskId", PARAM_TASK),
    KEY("status", PARAM_STATUS),
    KEY("sessionId", PARAM_SESSION),
    KEY("requestId", PARAM_REQUEST_ID),
    KEY("progressToken", PARAM_PROGRESS_TOKEN),
    KEY("workDoneToken", PARAM_WORK_TOKEN),
    KEY("protocolVersion", PARAM_PROTOCOL),
    KEY("partialResultToken", PARAM_PARTIAL_TOKEN),
};
static const struct key meta_keys[] = {
    KEY("progressToken", PARAM_META_TOKEN),    KEY(MCP "logLevel", PARAM_LOG_LEVEL),
    KEY(MCP "related-task", INTO(IN_RELATED)), KEY(MCP "subscriptionId", PARAM_SUBSCRIPTION),
    KEY(MCP "protocolVersion", PARAM_VERSION), KEY(MCP "clientCapabilities", PARAM_CAPABILITIES),
};
static const struct key related_keys[] = {KEY("taskId", PARAM_RELATED_TASK)};
static const struct key result_keys[] = {
    KEY("task", INTO(IN_TASK)), KEY("_meta", INTO(IN_RESULT_META)),
    KEY("sessionId", RESULT_SESSION), KEY("stopReason", RESULT_STOP),
    KEY("protocolVersion", RESULT_VERSION)};
static const struct key result_meta_keys[] = {KEY(MCP "subscriptionId", RESULT_SUBSCRIPTION)};
static const struct key task_keys[] = {KEY("taskId", RESULT_TASK)};
static const struct key error_keys[] = {KEY("code", ERROR_CODE)};

#define KEYS(keys, lengths)                                                                        \
    {                                                                                              \
        keys, sizeof(keys) / sizeof *(keys), lengths                                               \
    }
#define LEN(name) (UINT64_C(1) << (sizeof(name) - 1))

static const struct {
    const struct key *keys;
    size_t count;
    uint64_t lengths; /* bit n: some key has n bytes */
} places[] = {
    [AT_TOP] = KEYS(top_keys, LEN("params") | LEN("error")),
    [IN_PARAMS] = KEYS(params_keys, LEN("id") | LEN("uri") | LEN("task") | LEN("_meta") |
                                        LEN("taskId") | LEN("sessionId") | LEN("progressToken") |
                                        LEN("protocolVersion") | LEN("partialResultToken")),
    [IN_META] = KEYS(meta_keys, LEN("progressToken") | LEN(MCP "protocolVersion") |
                                    LEN(MCP "logLevel") | LEN(MCP "subscriptionId") |
                                    LEN(MCP "related-task") | LEN(MCP "clientCapabilities")),
    [IN_RELATED] = KEYS(related_keys, LEN("taskId")),
    [IN_RESULT] = KEYS(result_keys, LEN("task") | LEN("_meta") | LEN("sessionId") |
                                        LEN("stopReason") | LEN("protocolVersion")),
    [IN_RESULT_META] = KEYS(result_meta_keys, LEN(MCP "subscriptionId")),
    [IN_TASK] = KEYS(task_keys, LEN("taskId")),
    [IN_ERROR] = KEYS(error_keys, LEN("code")),
};

static unsigned key_named(enum place place, struct slice key)
{
    size_t i;

    if (key.len >= 64 || (places[place].lengths >> key.len & 1) == 0)
        return NOTHING;
    for (i = 0; i < places[place].count && places[place].keys[i].len <= key.len; i++) {
        const struct key *known = &places[place].keys[i];

        /* The last byte spares most comparisons: many keys begin alike. */
        if (known->len == key.len && key.data[key.len - 1] == known->name[key.len - 1] &&
            memcmp(key.data, known->name, key.len) == 0)
            return known->meaning;
    }
    return NOTHING;
}

static unsigned escaped_key(enum place place, struct slice key)
{
    char decoded[KEY_MAX]; /* a longer key is none of these */

    return key_named(place, slice_of(decoded, json_string_decode(decoded, sizeof decoded, key)));
}

/* The key whose quote is at *p, as written. *p becomes the first byte of its value. */
static inline struct slice take_key(struct walk *walk, position *p, bool *escaped)
{
    position start = *p + 1, mark = find_mark(&walk->marks, start), end = mark;

    if (*mark != '"')
        end = find_quote(walk, mark);
    *escaped = mark != end;
    *p = skip_blanks(end + 1);
    *p = skip_blanks(*p + 1);
    return slice_of((const char *)start, (size_t)(end - start));
}

static unsigned read_key(struct walk *walk, enum place place, position *p)
{
    bool escaped;
    struct slice key = take_key(walk, p, &escaped);

    return escaped ? escaped_key(place, key) : key_named(place, key);
}

/* --- values --- */

/* Inlined: it is in the road of each request whose ids are rewritten. */
__attribute__((always_inline)) static inline position value_end(struct walk *walk, position p)
{
    if (*p == '"')
        return string_end(walk, p + 1) + 1;
    if (*p == '{' || *p == '[')
        return container_end(walk, p);
    return scalar_end(p);
}

static void note(struct scan_field *field, const struct walk *walk, position p, position end)
{
    field->offset = (size_t)(p - walk->start);
    field->len = (size_t)(end - p);
    field->escaped = false;
    if (*p == '"') {
        field->type = SCAN_STRING;
        field->offset++;
        field->len -= 2;
        field->escaped = memchr(p, '\\', (size_t)(end - p)) != NULL;
    } else if (*p == '-' || is_digit(*p)) {
        field->type = SCAN_NUMBER;
    } else {
        field->type = *p == 'n' ? SCAN_NULL : SCAN_OTHER;
    }
}

/* The fields in an object, and in the objects in it. */
#define IN_PLACE(first, last) ((2u << (last)) - (1u << (first)))

static const unsigned fields_in[] = {
    [IN_PARAMS] = IN_PLACE(PARAM_SESSION, PARAM_RELATED_TASK),
    [IN_META] = IN_PLACE(PARAM_VERSION, PARAM_RELATED_TASK) | 1u << PARAM_META_TOKEN,
    [IN_RELATED] = 1u << PARAM_RELATED_TASK,
    [IN_RESULT] = IN_PLACE(RESULT_SESSION, RESULT_SUBSCRIPTION),
    [IN_RESULT_META] = 1u << RESULT_SUBSCRIPTION,
    [IN_TASK] = 1u << RESULT_TASK,
    [IN_ERROR] = 1u << ERROR_CODE,
};

#define PARAMS_AS_USUAL ",\"params\":{"

/* Reads from p, which is at the top level after a value or the opening brace, to the end of the
 * message. Returns whether there were params. */
static bool walk_from(struct walk *walk, struct param_fields *found, position p)
{
    enum place place = AT_TOP;
    bool params = false;
    position end;
    unsigned meaning;

    if ((size_t)(walk->end - p) >= sizeof PARAMS_AS_USUAL - 1 &&
        memcmp(p, PARAMS_AS_USUAL, sizeof PARAMS_AS_USUAL - 1) == 0) {
        p += sizeof PARAMS_AS_USUAL - 1;
        place = IN_PARAMS;
        params = true;
    }
    for (;;) {
        p = skip_blanks(p);
        if (*p == ',') {
            p++;
        } else if (*p == '"') {
            meaning = read_key(walk, place, &p);
            if (meaning >= PARAM_FIELDS_COUNT && meaning < NOTHING) {
                enum place entered = (enum place)(meaning - PARAM_FIELDS_COUNT);

                params = params || entered == IN_PARAMS;
                found->present &= ~fields_in[entered]; /* an earlier one is replaced */
                if (*p == '{') {
                    place = entered;
                    p++;
                    continue;
                }
            }
            end = value_end(walk, p);
            if (meaning < PARAM_FIELDS_COUNT) {
                note(&found->at[meaning], walk, p, end);
                found->present |= 1u << meaning;
            }
            p = end;
        } else if (place == AT_TOP) {
            return params;
        } else {
            place = around[place];
            p++;
        }
    }
}

void param_fields_find(struct param_fields *found, struct slice message, size_t hint)
{
    struct walk walk = {.start = (position)message.data,
                        .end = (position)message.data + message.len};

    found->present = 0;
    window_open(&walk.marks, walk.start, walk.end);
    if (hint > 0 && walk_from(&walk, found, walk.start + hint))
        return;
    found->present = 0;
    window_open(&walk.marks, walk.start, walk.end);
    walk_from(&walk, found, skip_blanks(walk.start) + 1);
}

bool param_fields_member(struct slice object, const char *name, struct slice *value)
{
    struct walk walk = {.start = (position)object.data, .end = (position)object.data + object.len};
    const struct slice wanted = slice_of_text(name);
    position p = skip_blanks(walk.start);
    bool found = false;

    if (*p++ != '{')
        return false;
    window_open(&walk.marks, walk.start, walk.end);
    for (p = skip_blanks(p); *p != '}'; p = skip_blanks(p)) {
        char decoded[KEY_MAX];
        struct slice key;
        position start;
        bool escaped;

        if (*p == ',')
            p = skip_blanks(p + 1);
        key = take_key(&walk, &p, &escaped);
        start = p;
        p = value_end(&walk, p);
        if (escaped)
            key = slice_of(decoded, json_string_decode(decoded, sizeof decoded, key));
        if (!slice_equal(key, wanted))
            continue;
        *value = slice_of((const char *)start, (size_t)(p - start));
        found = true;
    }
    return found;
}

bool param_fields_may_have_token(struct slice message)
{
    const char *end = message.data + message.len, *p = message.data;

    if (memchr(p, '\\', message.len) != NULL) /* a key may be escaped */
        return true;
    /* These keys end in "oken" or "ask", or begin with "task". */
    while ((p = memchr(p, 'k', (size_t)(end - p))) != NULL) {
        if ((p[-1] == 'o' && p[1] == 'e') || (p[-1] == 's' && (p[1] == '"' || p[1] == 'I')))
            return true;
        p++;
    }
    return false;
}

bool param_fields_may_have_version(struct slice message)
{
    static const char rest[] = "/protocolVersion";
    const char *end = message.data + message.len, *p = message.data;

    if (memchr(p, '\\', message.len) != NULL) /* a key may be escaped */
        return true;
    while ((p = memchr(p, '/', (size_t)(end - p))) != NULL) {
        if ((size_t)(end - p) > sizeof rest && memcmp(p, rest, sizeof rest - 1) == 0)
            return true;
        p++;
    }
    return false;
}

bool param_fields_string(const struct param_fields *found, enum param_field field,
                         struct slice message, char *to, size_t max, struct slice *text)
{
    return param_fields_has(found, field) && found->at[field].type == SCAN_STRING &&
           scan_field_string(&found->at[field], message, to, max, text);
}

bool param_fields_integer(const struct param_fields *found, enum param_field field,
                          struct slice message, int64_t *value)
{
    struct decimal decimal;

    if (!param_fields_has(found, field) || found->at[field].type != SCAN_NUMBER)
        return false;
    decimal_read(&decimal, param_fields_raw(message, &found->at[field]));
    return decimal_integer(&decimal, value);
}

struct slice param_fields_raw(struct slice message, const struct scan_field *field)
{
    size_t quote = field->type == SCAN_STRING ? 1 : 0;

    return slice_of(message.data + field->offset - quote, field->len + 2 * quote);
}
