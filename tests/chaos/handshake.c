#include "build_config.h"

#include "handshake.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "chaos.h"
#include "check_bound.h"

#define CHANGED "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n"

bool handshake_wanted(const struct chaos *chaos)
{
    const struct pool_mode *mode = &chaos->options.mode;

    return mode->protocol == PROTOCOL_MCP && mode->on_exit == EXIT_REPLAYS &&
           chaos->options.hostile == 0;
}

/* --- the client's messages --- */

static void write_id(char *to, size_t size, const struct client *client, unsigned pool)
{
    snprintf(to, size, "h%llx.%u.%u", client->conn, pool, client->greetings[pool].requests);
}

static void say(struct chaos *chaos, struct client *client, const char *format, ...)
{
    size_t start = client->out.len;
    char text[400];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    text_add(&client->out, text, strlen(text));
    wire_frame(&client->out, start);
    client->known = true;
    chaos->stats.sent++;
}

static void ask(struct chaos *chaos, struct client *client, unsigned pool)
{
    struct greeting *greeting = &client->greetings[pool];
    char id[40];

    greeting->requests++;
    greeting->open = true;
    greeting->request = (struct entry){.conn = client->conn,
                                       .calm = chaos_calm(chaos),
                                       .pool = (uint8_t)(pool + 1),
                                       .sent_ms = chaos->now_ms};
    write_id(id, sizeof id, client, pool);
    if (greeting->asks > 0) {
        say(chaos, client,
            "{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"method\":\"logging/setLevel\","
            "\"params\":{\"level\":\"%s\"},\"pool\":\"p%u\"}\n",
            id, handshake_levels[greeting->asks], pool);
        return;
    }
    greeting->initializes++;
    client->asked[pool] = true;
    say(chaos, client,
        "{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"method\":\"initialize\",\"params\":{"
        "\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\"clientInfo\":{"
        "\"name\":\"%llx\",\"version\":\"1\"}},\"pool\":\"p%u\"}\n",
        id, client->conn, pool);
}

bool handshake_ready(struct chaos *chaos, struct client *client, unsigned pool)
{
    struct greeting *greeting = &client->greetings[pool];

    if (greeting->open)
        return false;
    if (!greeting->answered) {
        greeting->asks = 0;
        ask(chaos, client, pool);
        return false;
    }
    if (!greeting->confirmed) {
        greeting->confirmed = true;
        say(chaos, client,
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\",\"pool\":\"p%u\"}\n",
            pool);
    }
    if (!dice_chance(&chaos->dice, 20))
        return true;
    greeting->asks = (uint8_t)dice_between(&chaos->dice, 1, HANDSHAKE_LEVELS - 1);
    ask(chaos, client, pool);
    return false;
}

/* --- what it gets --- */

static bool contains(const char *line, size_t len, const char *text)
{
    return memmem(line, len, text, strlen(text)) != NULL;
}

struct greeting *handshake_find(struct client *client, const char *key)
{
    char id[40];

    for (unsigned i = 0; i < POOLS_MAX && key[0] == 's'; i++) {
        write_id(id, sizeof id, client, i);
        if (client->greetings[i].open && strcmp(key + 1, id) == 0)
            return &client->greetings[i];
    }
    return NULL;
}

void handshake_refused(struct greeting *greeting, bool kept)
{
    greeting->open = false;
    if (kept && greeting->asks > 0)
        greeting->level = greeting->asks;
}

/* The answer to initialize is that of its own process, unless clients share one. */
static void check_result(struct chaos *chaos, struct client *client, const char *line, size_t len)
{
    char name[40];

    snprintf(name, sizeof name, "\"for\":\"%llx\"", client->conn);
    if (!contains(line, len, "\"protocolVersion\":\"2025-06-18\"") ||
        (chaos_exclusive(chaos) && !contains(line, len, name)))
        client_violation(chaos, client, "got another answer to initialize: %.*s",
                         len < 200 ? (int)len : 200, line);
}

static unsigned seen_in(const struct client *client, unsigned *pools, unsigned *sent)
{
    unsigned seen = 0;

    *pools = *sent = 0;
    for (unsigned i = 0; i < POOLS_MAX; i++) {
        seen += client->greetings[i].seen;
        *pools += client->greetings[i].seen > 0;
        *sent += client->greetings[i].initializes;
    }
    return seen;
}

/* Each replay is followed by one such notification. */
static void check_changed(struct chaos *chaos, struct client *client)
{
    unsigned pools, sent, seen = seen_in(client, &pools, &sent);

    client->changes++;
    if (chaos_exclusive(chaos) ? client->changes > seen - pools : chaos->fleet.dooms == 0)
        client_violation(chaos, client, "got list_changed %u times, and %u initialize were seen",
                         client->changes, seen);
}

bool handshake_take_line(struct chaos *chaos, struct client *client, const char *line, size_t len)
{
    struct greeting *greeting;
    char id[40], beginning[80];

    if (!handshake_wanted(chaos))
        return false;
    if (len == strlen(CHANGED) && memcmp(line, CHANGED, len) == 0) {
        check_changed(chaos, client);
        return true;
    }
    for (unsigned i = 0; i < POOLS_MAX; i++) {
        greeting = &client->greetings[i];
        write_id(id, sizeof id, client, i);
        snprintf(beginning, sizeof beginning, "{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"result\":{",
                 id);
        if (!greeting->open || strncmp(line, beginning, strlen(beginning)) != 0)
            continue;
        greeting->open = false;
        if (greeting->asks > 0) {
            greeting->level = greeting->asks;
        } else {
            greeting->answered = true;
            check_result(chaos, client, line, len);
        }
        return true;
    }
    return false;
}

bool handshake_settled(const struct chaos *chaos, const struct client *client)
{
    unsigned pools, sent, seen = seen_in(client, &pools, &sent);

    for (unsigned i = 0; i < POOLS_MAX; i++) {
        if (client->greetings[i].open)
            return false;
    }
    return !chaos_exclusive(chaos) || client->changes + sent >= seen;
}

/* --- the process --- */

void handshake_seen(struct chaos *chaos, struct incarnation *worker, const struct record *record)
{
    struct client *client;

    if (record->detail != HANDSHAKE_ASKED) {
        if (!worker->greeted)
            worker_violation(chaos, worker, "got a message of the handshake before initialize");
        if (record->detail == HANDSHAKE_LISTED && !worker->confirmed)
            worker_violation(chaos, worker, "got tools/list before notifications/initialized");
        if (record->detail == HANDSHAKE_LISTED)
            return;
        if (record->detail != HANDSHAKE_CONFIRMED)
            worker->level = record->detail;
        else if (worker->confirmed)
            worker_violation(chaos, worker, "got notifications/initialized twice");
        else
            worker->confirmed = true;
        return;
    }
    if (worker->greeted)
        worker_violation(chaos, worker, "got initialize twice");
    worker->greeted = true;
    client = client_find(chaos, record->serial.number);
    if (client != NULL)
        client->greetings[worker->pool].seen++;
    if (chaos_exclusive(chaos))
        check_bound(chaos, worker, record->serial.number);
}

void handshake_check(struct chaos *chaos, struct incarnation *worker, const struct entry *entry)
{
    bool asked = entry->kind == WIRE_REPLY || entry->kind == WIRE_STRAY;

    worker->served = true;
    if (!handshake_wanted(chaos) || asked) /* a process may ask before it is initialized */
        return;
    if (!worker->greeted || !worker->confirmed)
        worker_violation(chaos, worker, "got message %llu of client %llu before %s",
                         entry->serial.number, entry->conn,
                         worker->greeted ? "notifications/initialized" : "initialize");
    if (chaos_exclusive(chaos) && entry->kind != WIRE_CANCEL && entry->level != worker->level)
        worker_violation(chaos, worker, "got message %llu, with level %u in place of %u",
                         entry->serial.number, worker->level, entry->level);
}
