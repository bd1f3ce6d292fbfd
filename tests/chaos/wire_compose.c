#include "build_config.h"

#include "wire.h"

#include <stdio.h>
#include <string.h>

/* Sixteen bytes each; no character and no escape is cut. */
#define PADDING_BYTES 16
static const char paddings[][PADDING_BYTES + 1] = {
    "0123456789abcdef",
    "the quick brown ",
    "\\\"quoted\\\" text.",
    "{[()]},:{}[]null",
    "caf\xc3\xa9 na\xc3\xafve....",
    "\\u00e9\\u6f22....",
    "\\ud83d\\ude00 ...",
    "\xe6\xbc\xa2\xe5\xad\x97 kanji....",
    "\xf0\x9f\x98\x80\xf0\x9f\x98\x81\xf0\x9f\x98\x82\xf0\x9f\x98\x83",
    "\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\",
    "\\n\\r\\t\\b\\f\\/....",
    "                ",
    "\\u0000\\u001f....",
    "\x7f\x7f\x7f\x7f~~~~}}}}{{{{",
};
#define PADDINGS (sizeof paddings / sizeof paddings[0])

enum member { JSONRPC, ID, METHOD, SESSION, POOL, BODY, MEMBERS };

struct line {
    struct text *out;
    size_t start, size;
    const struct wire_header *header;
    const char *pool;
    struct dice *dice;
    bool spaced;    /* blanks wherever JSON allows them */
    bool escaped;   /* keys and ids with escapes in them */
    bool pad_first; /* the padding comes before the other members */
    bool any;       /* there is a member already */
};

static void add(struct line *line, const char *text)
{
    text_add(line->out, text, strlen(text));
}

static void add_padding(struct line *line)
{
    size_t so_far = line->out->len - line->start + (line->pad_first ? 200 : 8);
    size_t count = line->size > so_far ? (line->size - so_far) / PADDING_BYTES : 0;
    size_t at = dice_below(line->dice, PADDINGS), step = dice_below(line->dice, PADDINGS);
    char *to = text_room(line->out, count * PADDING_BYTES);

    for (size_t i = 0; i < count; i++, at = (at + step) % PADDINGS)
        memcpy(to + i * PADDING_BYTES, paddings[at], PADDING_BYTES);
    to[count * PADDING_BYTES] = '\0';
    line->out->len += count * PADDING_BYTES;
}

static void add_key(struct line *line, const char *key)
{
    if (line->any)
        add(line, line->spaced ? " ,\t" : ",");
    line->any = true;
    if (line->escaped)
        text_printf(line->out, "\"\\u%04x%s\"", (unsigned)key[0], key + 1);
    else
        text_printf(line->out, "\"%s\"", key);
    add(line, line->spaced ? " : " : ":");
}

/* The same integer in one of the spellings of JSON. */
static void add_number(struct line *line, const char *digits)
{
    static const char *const endings[] = {"", "", "", ".0", "e0", "0e-1", ".000", "E+0"};
    size_t which = dice_below(line->dice, sizeof endings / sizeof endings[0]);

    if (digits[0] == '0' && endings[which][0] == '0') /* no number begins with 00 */
        which = 0;
    text_printf(line->out, "%s%s", digits, endings[which]);
}

static void add_id(struct line *line)
{
    const char *key = line->header->key;

    if (line->header->raw_id[0] != '\0')
        add(line, line->header->raw_id);
    else if (key[0] == 'n')
        add_number(line, key + 1);
    else if (line->escaped)
        text_printf(line->out, "\"\\u%04x%s\"", (unsigned)key[1], key + 2);
    else
        text_printf(line->out, "\"%s\"", key + 1);
}

static void add_header(struct line *line)
{
    const struct wire_header *header = line->header;

    text_printf(line->out, "\"chaos\":\"%c %llx.%llx %llx.%llx %s %s %s %s\"", header->kind,
                header->serial.origin, header->serial.number, header->ref.origin,
                header->ref.number, header->key[0] != '\0' ? header->key : "-",
                header->session[0] != '\0' ? header->session : "-",
                header->orders[0] != '\0' ? header->orders : "-", WIRE_NO_SUM);
}

/* Routing fields where the daemon must not read them. */
static void add_decoys(struct line *line)
{
    if (dice_chance(line->dice, 800))
        return;
    add(line, wire_session_in_params ? "\"deep\":{" : "");
    add(line, "\"id\":0,\"sessionId\":\"nested\",\"method\":\"nested\",\"result\":[{\"id\":1}],"
              "\"error\":null,\"pool\":\"nested\"");
    add(line, wire_session_in_params ? "}," : ",");
}

static void add_meta(struct line *line, const char *key)
{
    const char *token = line->header->token;
    const char *version = line->escaped ? "io.modelcontextprotocol\\/protocolVersion"
                                        : "io.modelcontextprotocol/protocolVersion";

    if (token[0] == '\0' && !wire_stateless)
        return;
    add(line, "\"_meta\":{");
    if (wire_stateless)
        text_printf(line->out, "\"%s\":\"2026-07-28\"%s", version, token[0] != '\0' ? "," : "");
    if (token[0] != '\0')
        text_printf(line->out, "\"%s\":%s", key, token);
    add(line, "},");
}

/* The fields of params and results that the daemon reads in pools with a mode. */
static void add_references(struct line *line)
{
    const struct wire_header *header = line->header;
    const char *key = line->escaped ? "\\u0070rogressToken" : "progressToken";

    if (header->kind == WIRE_CANCEL)
        key = line->escaped ? "\\u0072equestId" : "requestId";

    if (wire_session_in_params && header->session[0] != '\0')
        text_printf(line->out, "\"%s\":\"%s\",", line->escaped ? "session\\u0049d" : "sessionId",
                    header->session);
    if (header->kind == WIRE_REQUEST || header->kind == WIRE_HOSTILE || header->kind == WIRE_NOTE)
        add_meta(line, key);
    else if (header->token[0] != '\0')
        text_printf(line->out, "\"%s\":%s,", key, header->token);
}

static void add_payload(struct line *line)
{
    add(line, "{");
    add_decoys(line);
    if (!line->pad_first)
        add_references(line);
    if (line->pad_first) {
        add(line, "\"pad\":\"");
        add_padding(line);
        add(line, "\",");
        add_references(line);
        add_header(line);
    } else {
        add_header(line);
        add(line, ",\"pad\":\"");
        add_padding(line);
        add(line, "\"");
    }
    add(line, "}");
}

static bool is_response(const struct line *line)
{
    char kind = line->header->kind;

    return kind == WIRE_REPLY || kind == WIRE_STRAY || kind == WIRE_ANSWER || kind == WIRE_SPOIL;
}

static void add_body(struct line *line)
{
    if (!is_response(line)) {
        add_key(line, "params");
        add_payload(line);
    } else if (dice_chance(line->dice, 100) &&
               !(wire_session_in_params && line->header->session[0] != '\0')) {
        add_key(line, "error");
        add(line, "{\"code\":-1,\"message\":\"worse\",\"data\":");
        add_payload(line);
        add(line, "}");
    } else {
        add_key(line, "result");
        add_payload(line);
    }
}

/* With duplicate keys the last one counts. */
static void add_overruled(struct line *line, const char *key, const char *value)
{
    if (dice_chance(line->dice, 970))
        return;
    add_key(line, key);
    add(line, value);
}

static void add_method(struct line *line)
{
    if (line->header->kind == WIRE_PROGRESS)
        add(line, line->escaped ? "\"notifications\\/progress\"" : "\"notifications/progress\"");
    else if (line->header->kind == WIRE_CANCEL)
        add(line, wire_cancels_for_good ? "\"notifications/cancelled\"" : "\"$/cancel_request\"");
    else
        add(line, "\"do\"");
}

static void add_member(struct line *line, enum member member)
{
    switch (member) {
    case JSONRPC:
        add_key(line, "jsonrpc");
        add(line, "\"2.0\"");
        break;
    case ID:
        if (line->header->key[0] == '\0')
            break;
        add_overruled(line, "id", "4711");
        add_key(line, "id");
        add_id(line);
        break;
    case METHOD:
        if (is_response(line))
            break;
        add_key(line, "method");
        add_method(line);
        break;
    case SESSION:
        if (wire_session_in_params) /* a member without a meaning */
            add_overruled(line, "sessionId", "\"overruled\"");
        if (line->header->session[0] == '\0' || wire_session_in_params)
            break;
        add_overruled(line, "sessionId", "\"overruled\"");
        add_key(line, "sessionId");
        text_printf(line->out, "\"%s\"", line->header->session);
        break;
    case POOL:
        if (line->pool[0] == '\0')
            break;
        add_key(line, "pool");
        text_printf(line->out, "\"%s\"", line->pool);
        break;
    case BODY:
        add_body(line);
        break;
    case MEMBERS:
        break;
    }
}

size_t wire_compose(struct text *out, const struct wire_header *header, const char *pool,
                    size_t size, struct dice *dice)
{
    struct line line = {.out = out, .size = size, .header = header, .pool = pool, .dice = dice};
    unsigned first = 0, step = 1, i;

    if (dice_chance(dice, 300)) { /* another order: steps of 1 and 5 reach all 6 members */
        first = dice_below(dice, MEMBERS);
        step = dice_chance(dice, 500) ? 1 : MEMBERS - 1;
    }
    line.spaced = dice_chance(dice, 50);
    line.escaped = dice_chance(dice, 50);
    line.pad_first = dice_chance(dice, 100);
    if (dice_chance(dice, 20) && wire_framing == WIRE_LINES)
        add(&line, dice_chance(dice, 500) ? "\n \t\r\n" : "\r\n");
    line.start = out->len;
    add(&line, line.spaced ? " { " : "{");
    for (i = 0; i < MEMBERS; i++)
        add_member(&line, (enum member)((first + i * step) % MEMBERS));
    add(&line, line.spaced ? (wire_bridged ? " } \n" : " } \r\n") : "}\n");
    wire_enter_sum(out->data + line.start, out->len - line.start);
    return line.start;
}
