#include "build_config.h"

#include <stdio.h>
#include <string.h>

#include "chaos.h"
#include "chaos_client.h"
#include "check_up.h"
#include "orders.h"

#define SMALL_NUMBERS 6
#define SMALL_STRINGS 4
#define SHARED_SESSIONS 6
#define CALM_SESSIONS 4
#define ID_MAX 128

/* --- ids and sessions --- */

static bool in_flight(const struct client *client, const char *key)
{
    uint64_t hash = wire_key_hash(key);

    each_entry(struct entry, entry, &client->in_flight, in_flight) {
        if (entry->key == hash)
            return true;
    }
    return false;
}

static void unique_key(struct chaos *chaos, const struct client *client, char *key)
{
    int len;

    if (dice_chance(&chaos->dice, 500)) {
        snprintf(key, WIRE_KEY_MAX, "n%llu", 1000000000ull + chaos->last_serial);
        return;
    }
    len = snprintf(key, WIRE_KEY_MAX, "su%llx-%llx", client->conn, chaos->last_serial);
    if (dice_chance(&chaos->dice, 100)) {
        memset(key + len, 'x', (size_t)(ID_MAX + 1 - len));
        key[ID_MAX + 1] = '\0';
    }
}

/* True: the id is never used again. */
static bool choose_key(struct chaos *chaos, const struct client *client, char *key)
{
    struct dice *dice = &chaos->dice;

    if (dice_chance(dice, client->profile.small_ids)) {
        uint32_t which = dice_below(dice, SMALL_NUMBERS + SMALL_STRINGS);

        if (which < SMALL_NUMBERS)
            snprintf(key, WIRE_KEY_MAX, "n%u", which);
        else
            snprintf(key, WIRE_KEY_MAX, "s%u", which - SMALL_NUMBERS);
        if (!in_flight(client, key) || (client->profile.repeats_ids && chaos->phase == PHASE_STORM))
            return false;
    }
    unique_key(chaos, client, key);
    return true;
}

/* Where tokens are not rewritten, each is unique. */
static void choose_token(struct chaos *chaos, const struct client *client, char *token)
{
    static const char *const spellings[] = {"1", "2.0", "3e0", "\"1\"", "\"\\u0061b\"", "\"\""};

    if (!chaos_knows_tokens(chaos) || dice_chance(&chaos->dice, 700))
        return;
    if (wire_ids_rewritten && dice_chance(&chaos->dice, 700))
        snprintf(token, WIRE_TOKEN_MAX, "%s", spellings[dice_below(&chaos->dice, 6)]);
    else
        snprintf(token, WIRE_TOKEN_MAX, "\"t%llx-%llx\"", client->conn, chaos->last_serial);
}

/* NULL: the client has `max` sessions already. */
static struct session *use_session(struct chaos *chaos, struct client *client, const char *name,
                                   size_t max)
{
    struct session *session;

    for (size_t i = 0; i < client->session_count; i++) {
        if (strcmp(client->sessions[i]->name, name) == 0)
            return client->sessions[i];
    }
    if (client->session_count >= max)
        return NULL;
    session = ledger_session(&chaos->ledger, name);
    session->users++;
    if (client->profile.loose)
        session->loose = true;
    client->sessions[client->session_count++] = session;
    return session;
}

void client_use_named(struct chaos *chaos, struct client *client, const char *name)
{
    if (use_session(chaos, client, name, CLIENT_SESSIONS_MAX) == NULL)
        violation(chaos, "client %llu has too many sessions for this program", client->conn);
}

static struct session *use_own_session(struct chaos *chaos, struct client *client)
{
    char name[WIRE_NAME_MAX];

    snprintf(name, sizeof name, "o%llx.%u", client->conn,
             dice_below(&chaos->dice, client->profile.own_sessions));
    return use_session(chaos, client, name, CLIENT_SESSIONS_NAMED);
}

static struct session *choose_session(struct chaos *chaos, struct client *client)
{
    struct dice *dice = &chaos->dice;
    unsigned own = client->profile.own_sessions;
    char name[WIRE_NAME_MAX];

    if (dice_chance(dice, 400))
        return NULL;
    if (wire_session_in_params) /* such sessions begin with the answers that name them */
        return client->session_count > 0
                   ? client->sessions[dice_below(dice, (uint32_t)client->session_count)]
                   : NULL;
    if (client->profile.visits)
        return use_own_session(chaos, client);
    if (dice_chance(dice, 400))
        own = 0;
    if (own > 0)
        return use_own_session(chaos, client);
    if (client->profile.calm)
        snprintf(name, sizeof name, "c%u.%u", chaos->calm_number, dice_below(dice, CALM_SESSIONS));
    else
        snprintf(name, sizeof name, "%c%u", client->profile.loose ? 'l' : 's',
                 dice_below(dice, SHARED_SESSIONS));
    return use_session(chaos, client, name, CLIENT_SESSIONS_NAMED);
}

/* --- messages --- */

static size_t throw_size(struct chaos *chaos, const struct client *client)
{
    struct dice *dice = &chaos->dice;

    if (dice_chance(dice, 880))
        return dice_between(dice, 100, 400);
    if (dice_chance(dice, 800))
        return dice_between(dice, 400, 8000);
    /* A longer one waits for the memory of big hostile ones of the same origin. */
    if (chaos->phase == PHASE_SIEGE && (chaos->options.hostile >> HOSTILE_BIG & 1) != 0 &&
        !chaos->origins)
        return dice_between(dice, 8000, 60000);
    if (dice_chance(dice, 700))
        return dice_between(dice, 8000, 70000);
    if (client->profile.dribbles)
        return 1000;
    return orders_huge(chaos);
}

/* Puts the message into the output and its entry into the ledger. */
static struct entry *send_message(struct chaos *chaos, struct client *client,
                                  struct wire_header *header, struct session *session,
                                  const char *pool, size_t size)
{
    char raw_id[sizeof header->raw_id];
    struct entry *entry;
    size_t start;

    header->serial.number = ++chaos->last_serial;
    if (session != NULL)
        memcpy(header->session, session->name, sizeof header->session);
    start = wire_compose(&client->out, header, pool, size, &chaos->dice);
    entry = ledger_add(&chaos->ledger, header->serial, header->kind, chaos_calm(chaos));
    entry->ref = header->ref;
    entry->hash = wire_line_hash(client->out.data + start, client->out.len - start, &entry->len);
    wire_raw_id(raw_id, sizeof raw_id, client->out.data + start, client->out.len - start);
    wire_frame(&client->out, start);
    entry->raw_id = wire_key_hash(raw_id);
    snprintf(entry->spelled_id, sizeof entry->spelled_id, "%s", raw_id);
    entry->key = wire_key_hash(header->key);
    entry->token = wire_key_hash(header->token);
    entry->conn = client->conn;
    entry->session = session;
    entry->sent_ms = chaos->now_ms;
    chaos->stats.sent++;
    return entry;
}

/* The pool to ask for, as text and as in struct entry. */
static uint8_t choose_pool(struct chaos *chaos, const struct client *client, char *pool,
                           size_t size)
{
    uint32_t index = dice_below(&chaos->dice, chaos->options.pools);

    pool[0] = '\0';
    if (!client->profile.calm && dice_chance(&chaos->dice, 5)) {
        snprintf(pool, size, "nobody's");
        return POOL_UNKNOWN;
    }
    if (!dice_chance(&chaos->dice, 700))
        snprintf(pool, size, "p%u", index);
    else if (chaos_binds(chaos))
        index = 0; /* the default if no pool is shared */
    else
        return POOL_ANY;
    return (uint8_t)(index + 1);
}

static void await_answer(struct chaos *chaos, struct client *client, struct entry *request)
{
    list_append(&client->in_flight, &request->in_flight);
    client->in_flight_count++;
    chaos->stats.requests++;
}

/* One of its requests that is in flight, or NULL. */
static struct entry *choose_request(struct chaos *chaos, const struct client *client)
{
    struct entry *chosen = NULL;
    uint32_t count = 0;

    each_entry(struct entry, entry, &client->in_flight, in_flight) {
        if (entry->unique && !entry->given_up && entry->spelled_id[0] != '\0' &&
            dice_below(&chaos->dice, ++count) == 0)
            chosen = entry;
    }
    return chosen;
}

/* Cancels a request. */
static void say_cancel(struct chaos *chaos, struct client *client)
{
    struct entry *request = choose_request(chaos, client), *entry;
    struct wire_header header = {.kind = WIRE_CANCEL};
    char pool[16] = "";

    if (request == NULL)
        return;
    header.ref = request->serial;
    snprintf(header.token, sizeof header.token, "%s", request->spelled_id);
    if (request->pool != POOL_ANY && request->pool != POOL_UNKNOWN)
        snprintf(pool, sizeof pool, "p%u", request->pool - 1u);
    entry = send_message(chaos, client, &header, NULL, pool, 150);
    entry->pool = request->pool;
    request->given_up = true;
    if (!wire_cancels_for_good)
        return; /* it still gets an answer */
    list_remove(&request->in_flight);
    client->in_flight_count--;
    list_append(&client->given_up, &request->in_flight);
    check_given_up(chaos, request);
}

/* Only for framed clients. */
static void say_bad_frame(struct chaos *chaos, struct client *client)
{
    static const char *const bodies[] = {"not JSON", "{\"a\":", "[]", "{\"id\":{}}",
                                         "{\"pool\":1}"};
    const char *body = bodies[dice_below(&chaos->dice, 5)];
    bool of_headers = wire_framing == WIRE_CONTENT_LENGTH;

    if (of_headers && dice_chance(&chaos->dice, 200)) { /* skipped after another bad frame */
        client->odd_frames++;
        text_printf(&client->out, dice_chance(&chaos->dice, 500) ? "Content-Length: many\r\n\r\n"
                                                                 : "X: Y\r\n\r\n{}");
        return;
    }
    client->bad_frames++;
    if (of_headers && dice_chance(&chaos->dice, 200))
        text_printf(&client->out, "Content-Length: 2\r\nContent-Type: text/plain\r\n\r\n{}");
    else
        wire_add_frame(&client->out, body, strlen(body));
}

void client_say(struct chaos *chaos, struct client *client)
{
    struct session *session = choose_session(chaos, client);
    bool asks = client->in_flight_count < client->profile.window;
    bool unique = false;
    struct wire_header header = {.kind = WIRE_NOTE};
    struct entry *entry;
    char pool[16] = "";
    uint8_t pool_number = POOL_ANY;

    if (chaos->phase == PHASE_STORM && wire_ids_rewritten && dice_chance(&chaos->dice, 30))
        say_cancel(chaos, client);
    if (chaos->phase == PHASE_STORM && wire_framing != WIRE_LINES && client->known &&
        dice_chance(&chaos->dice, 20))
        say_bad_frame(chaos, client);
    if (!asks && (client->profile.visits || dice_chance(&chaos->dice, 900)))
        return;
    if (!client->profile.visits && dice_chance(&chaos->dice, 150))
        asks = false;
    if (session == NULL || chaos_binds(chaos))
        pool_number = choose_pool(chaos, client, pool, sizeof pool);
    if (handshake_wanted(chaos) && pool_number != POOL_UNKNOWN &&
        !handshake_ready(chaos, client, pool_number - 1u))
        return;
    if (asks)
        unique = choose_key(chaos, client, header.key);
    if (asks) {
        header.kind = WIRE_REQUEST;
        choose_token(chaos, client, header.token);
    }
    orders_write(chaos, &header, session != NULL || chaos_binds(chaos), unique,
                 session == NULL && !client->profile.visits &&
                     client->session_count < CLIENT_SESSIONS_MAX / 4);
    entry = send_message(chaos, client, &header, session, pool, throw_size(chaos, client));
    entry->pool = pool_number;
    client->known = true;
    if (pool_number != POOL_ANY && pool_number != POOL_UNKNOWN) {
        client->asked[pool_number - 1] = true;
        entry->level = client->greetings[pool_number - 1].level;
    }
    entry->unique = unique;
    if (asks)
        await_answer(chaos, client, entry);
}

void client_say_last(struct chaos *chaos, struct client *client)
{
    struct entry *entry;
    char pool[16];

    for (unsigned i = 0; i < chaos->options.pools && chaos_binds(chaos); i++) {
        struct wire_header header = {.kind = WIRE_REQUEST};

        if (!client->asked[i] || (handshake_wanted(chaos) &&
                                  (!client->greetings[i].confirmed || client->greetings[i].open)))
            continue;
        unique_key(chaos, client, header.key);
        snprintf(pool, sizeof pool, "p%u", i);
        entry = send_message(chaos, client, &header, NULL, pool, 150);
        entry->pool = (uint8_t)(i + 1);
        entry->level = client->greetings[i].level;
        await_answer(chaos, client, entry);
    }
}

void client_say_reply(struct chaos *chaos, struct client *client, const struct reply *reply)
{
    struct wire_header header = {.kind = WIRE_REPLY, .ref = reply->question};

    memcpy(header.key, reply->key, sizeof header.key);
    memcpy(header.raw_id, reply->raw_id, sizeof header.raw_id);
    send_message(chaos, client, &header, NULL, "", throw_size(chaos, client));
    if (client->profile.calm || wire_ids_rewritten || !dice_chance(&chaos->dice, 20))
        return;
    /* A reply to no question: a worker may get it. */
    header = (struct wire_header){.kind = WIRE_STRAY};
    snprintf(header.key, sizeof header.key, "sy%llu", chaos->last_serial);
    send_message(chaos, client, &header, NULL, "", 150);
}

/* --- unacceptable input --- */

/* Composes a message that is unknown to the ledger: it must not arrive. */
static void say_unknown(struct chaos *chaos, struct client *client)
{
    struct wire_header header = {.kind = WIRE_NOTE, .serial.number = ++chaos->last_serial};

    wire_frame(&client->out, wire_compose(&client->out, &header, "", 300, &chaos->dice));
}

void client_say_half(struct chaos *chaos, struct client *client)
{
    size_t before = client->out.len;

    say_unknown(chaos, client);
    client->out.len -= (client->out.len - before) / 2;
    if (wire_framing != WIRE_LINES)
        client->bad_frames++; /* at the end of the input */
}

static const struct bad_line {
    const char *line;
    int code;
    const char *text;
} bad_lines[] = {
    {"this is no JSON\n", -32700, "not a JSON object"},
    {"[1,2,3]\n", -32700, "not a JSON object"},
    {"{\"id\":1,\"method\":\"m\"\n", -32700, "the line ends inside the JSON object"},
    {"{\"id\":1,\"method\":\"m\"} {}\n", -32700, "more text behind the JSON object"},
    {"{\"id\":1,\"method\":\"\xc3\x28\"}\n", -32700, "invalid UTF-8"},
    {"{\"id\":1,\"method\":\"a\tb\"}\n", -32700, "a control character inside a string"},
    {"{\"id\":1,\"method\":\"\\x\"}\n", -32700, "an invalid escape sequence"},
    {"{\"id\":01,\"method\":\"m\"}\n", -32700, "an invalid number"},
    {"{\"id\":1,\"method\":nul}\n", -32700, "not valid JSON"},
    {"{\"id\":{},\"method\":\"m\"}\n", -32600, "id must be a string or a number"},
    {"{\"id\":[1],\"method\":\"m\"}\n", -32600, "id must be a string or a number"},
    {"{\"id\":true,\"method\":\"m\"}\n", -32600, "id must be a string or a number"},
    {"{\"id\":1,\"method\":\"m\",\"sessionId\":3}\n", -32600, "sessionId must be a string"},
    {"{\"id\":1,\"method\":\"m\",\"pool\":{}}\n", -32600, "pool must be a string"},
};

/* The unacceptable line is in the output; a message after it must not be read. */
static void expect_rejection(struct chaos *chaos, struct client *client, int code, const char *text)
{
    client->wanted_code = code;
    client->wanted_text = text;
    say_unknown(chaos, client);
    chaos->stats.rejected++;
}

void client_say_bad(struct chaos *chaos, struct client *client)
{
    const struct bad_line *line =
        &bad_lines[dice_below(&chaos->dice, sizeof bad_lines / sizeof bad_lines[0])];

    text_add(&client->out, line->line, strlen(line->line));
    expect_rejection(chaos, client, line->code, line->text);
}

void client_say_oversize(struct chaos *chaos, struct client *client)
{
    if (chaos->options.mode.protocol !=
        PROTOCOL_UNKNOWN) { /* max_message counts, and ends nothing */
        client_say_bad(chaos, client);
        return;
    }
    text_printf(&client->out, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":\"");
    text_fill(&client->out, 'x', LIMIT_INPUT);
    text_printf(&client->out, "\"}\n");
    expect_rejection(chaos, client, -32600, "message exceeds max_input_buffer");
}
