#include "build_config.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "chaos.h"
#include "hostile.h"

#define LONG_MS 1000000000
/* Of all answers to one member, more than the kernel's buffers hold. */
#define STALL_ANSWERS 12
#define STALL_BYTES 65536
#define STALL_BYTES_TCP (4 * STALL_BYTES)
#define HOARD_BURST 40
#define WAVE_MS 5000 /* from one poisoning to the next */
#define POISONED_IDS 10
#define SUBSCRIBE_BURST 30
#define FLOOD_BURST 4
#define UNFETCHED_BYTES 20000 /* of an answer */
#define UNFETCHED_USES 30     /* of a session, which is left behind then */

const char *const hostile_words[] = {"close", "stall",     "hoard", "poison",    "odd-id",
                                     "big",   "subscribe", "flood", "unfetched", NULL};

/* --- messages --- */

/* A request to this pool; "": to any. `orders`: "h0" is never answered. */
static void ask_pool(struct chaos *chaos, struct hostile *hostile, struct wire_header *header,
                     const char *pool, const char *orders, size_t size)
{
    header->kind = WIRE_HOSTILE;
    header->serial.number = ++chaos->last_serial;
    if (header->key[0] == '\0')
        snprintf(header->key, sizeof header->key, "sh%llx", chaos->last_serial);
    snprintf(header->orders, sizeof header->orders, "%s", orders);
    wire_frame(&hostile->out, wire_compose(&hostile->out, header, pool, size, &chaos->dice));
    hostile->asked++;
    chaos->horde.requests++;
}

static void ask(struct chaos *chaos, struct hostile *hostile, struct wire_header *header,
                const char *orders, size_t size)
{
    unsigned which = dice_below(&chaos->dice, chaos->options.pools + 1);
    char pool[16] = "";

    if (which > 0)
        snprintf(pool, sizeof pool, "p%u", which - 1);
    ask_pool(chaos, hostile, header, pool, orders, size);
}

/* --- the kinds --- */

static void arrive_to_close(struct chaos *chaos, struct hostile *hostile)
{
    for (unsigned left = dice_between(&chaos->dice, 1, 3); left > 0; left--)
        ask(chaos, hostile, &(struct wire_header){0}, "h0", 200);
    hostile->leaves = true;
}

static void act_stalled(struct chaos *chaos, struct hostile *hostile)
{
    char orders[16];

    snprintf(orders, sizeof orders, "s%d", chaos->options.tcp ? STALL_BYTES_TCP : STALL_BYTES);
    ask(chaos, hostile, &(struct wire_header){0}, orders, 200);
    hostile->next_ms = chaos->now_ms + dice_between(&chaos->dice, 20, 100);
}

static void arrive_to_stall(struct chaos *chaos, struct hostile *hostile)
{
    for (unsigned left = STALL_ANSWERS; left > 0; left--)
        act_stalled(chaos, hostile);
    hostile->ends_ms = chaos->now_ms + dice_between(&chaos->dice, 5000, 10000);
}

/* Half of its requests start a session, or make one, where answers name sessions. */
static void act_hoarding(struct chaos *chaos, struct hostile *hostile)
{
    for (unsigned left = HOARD_BURST; left > 0; left--) {
        struct wire_header header = {0};
        bool learned = chaos->options.mode.session_in_params;

        if (left % 2 == 0 && !learned)
            snprintf(header.session, sizeof header.session, "h%llx", chaos->last_serial);
        ask(chaos, hostile, &header, left % 2 == 0 && learned ? "S0" : "h0", 200);
        if (hostile->asked > 2 * HOARD_BURST)
            break;
    }
    hostile->next_ms = chaos->now_ms + dice_between(&chaos->dice, 100, 500);
}

/* The ids of other clients: client_talk.c. */
static void arrive_to_poison(struct chaos *chaos, struct hostile *hostile)
{
    for (unsigned i = 0; i < 2 * POISONED_IDS; i++) {
        struct wire_header header = {0};

        snprintf(header.key, sizeof header.key, "%c%u", i < POISONED_IDS ? 'n' : 's',
                 i % POISONED_IDS);
        ask(chaos, hostile, &header, "h0", 200);
    }
    hostile->leaves = true;
}

static void act_oddly(struct chaos *chaos, struct hostile *hostile)
{
    static const char *const ids[] = {
        "1e400",
        "-1e400",
        "1E+999999999",
        "1e-400",
        "-0",
        "-0.0",
        "0e7",
        "123456789012345678901234567890",
        "9007199254740993",
        "1.7976931348623157e308",
        "1.7976931348623159e308",
        "0.30000000000000004",
        "100000000000000000000000000000000000000000000e400",
        "1e-44444444444444444444444444444444444444444444",
    };
    const char *id = ids[dice_below(&chaos->dice, sizeof ids / sizeof ids[0])];
    struct wire_header header = {0};

    snprintf(header.key, sizeof header.key, "n%s", id);
    snprintf(header.raw_id, sizeof header.raw_id, "%s", id);
    if (dice_chance(&chaos->dice, 300))
        snprintf(header.token, sizeof header.token, "%s", id);
    ask(chaos, hostile, &header, "f0", 200);
    hostile->next_ms = chaos->now_ms + dice_between(&chaos->dice, 1, 30);
}

/* Most messages stop in the middle, and keep what the daemon holds of them. */
static void arrive_big(struct chaos *chaos, struct hostile *hostile)
{
    size_t size = SIEGE_INPUT - 1000;

    ask(chaos, hostile, &(struct wire_header){0}, "h0", size);
    if (dice_chance(&chaos->dice, 800))
        hostile->out.len -= dice_between(&chaos->dice, 1, SIEGE_INPUT / 2);
    hostile->ends_ms = chaos->now_ms + dice_between(&chaos->dice, 500, 4000);
}

static void act_big(struct chaos *chaos, struct hostile *hostile)
{
    hostile->next_ms = chaos->now_ms + LONG_MS;
}

/* Some URIs are those of the other members, too. */
static void change_subscription(struct chaos *chaos, struct hostile *hostile)
{
    bool is_shared = dice_chance(&chaos->dice, 200), ends = dice_chance(&chaos->dice, 200);
    unsigned long long serial = ++chaos->last_serial;
    size_t start = hostile->out.len;

    text_printf(&hostile->out,
                "{\"jsonrpc\":\"2.0\",\"id\":\"sh%llx\",\"method\":\"resources/%s\","
                "\"params\":{\"uri\":\"x:/%llx/%u\"},\"pool\":\"p0\"}\n",
                serial, ends ? "unsubscribe" : "subscribe", is_shared ? 0 : serial,
                dice_below(&chaos->dice, 20));
    wire_frame(&hostile->out, start);
    hostile->asked++;
    chaos->horde.requests++;
}

static void act_subscribing(struct chaos *chaos, struct hostile *hostile)
{
    for (unsigned left = SUBSCRIBE_BURST; left > 0; left--)
        change_subscription(chaos, hostile);
    hostile->next_ms = chaos->now_ms + dice_between(&chaos->dice, 5, 50);
}

static void arrive_to_subscribe(struct chaos *chaos, struct hostile *hostile)
{
    act_subscribing(chaos, hostile);
    hostile->ends_ms = chaos->now_ms + dice_between(&chaos->dice, 200, 3000);
}

static void act_flooding(struct chaos *chaos, struct hostile *hostile)
{
    for (unsigned left = FLOOD_BURST; left > 0; left--)
        ask_pool(chaos, hostile, &(struct wire_header){0}, "p0", "d0", 200);
    hostile->next_ms = chaos->now_ms + dice_between(&chaos->dice, 10, 60);
}

/* --- answers that are not fetched --- */

/* The message from `start` on, to the first pool, without its newline. */
static void post(struct hostile *hostile, const struct text *message, size_t start)
{
    size_t len = message->len - start - 1;

    text_printf(&hostile->out,
                "POST /mcp/p0 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                "Accept: application/json, text/event-stream\r\nContent-Length: %zu\r\n",
                len);
    if (hostile->session[0] != '\0')
        text_printf(&hostile->out, "Mcp-Session-Id: %s\r\n", hostile->session);
    text_printf(&hostile->out, "\r\n");
    text_add(&hostile->out, message->data + start, len);
}

static void post_initialize(struct hostile *hostile)
{
    struct text message = {0};

    text_printf(&message, "{\"jsonrpc\":\"2.0\",\"id\":\"h\",\"method\":\"initialize\",\"params\":{"
                          "\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\"clientInfo\":{"
                          "\"name\":\"0\",\"version\":\"1\"}}}\n");
    post(hostile, &message, 0);
    text_free(&message);
    hostile->uses = 0;
}

/* Closes its connection at once, or reads nothing from it for a while. */
static void post_request(struct chaos *chaos, struct hostile *hostile)
{
    struct wire_header header = {.kind = WIRE_HOSTILE};
    struct text message = {0};

    header.serial.number = ++chaos->last_serial;
    snprintf(header.key, sizeof header.key, "sh%llx", chaos->last_serial);
    snprintf(header.orders, sizeof header.orders, "s%d", UNFETCHED_BYTES);
    post(hostile, &message, wire_compose(&message, &header, "", 200, &chaos->dice));
    text_free(&message);
    hostile->asked++;
    chaos->horde.requests++;
    hostile->leaves = dice_chance(&chaos->dice, 500);
    hostile->ends_ms = chaos->now_ms + dice_between(&chaos->dice, 50, 1000);
}

static void act_unfetched(struct chaos *chaos, struct hostile *hostile)
{
    if (hostile->session[0] != '\0' && hostile->asked == 0)
        post_request(chaos, hostile);
    hostile->next_ms = chaos->now_ms + 10;
}

static void arrive_unfetched(struct chaos *chaos, struct hostile *hostile)
{
    if (++hostile->uses > UNFETCHED_USES)
        hostile->session[0] = '\0';
    if (hostile->session[0] == '\0')
        post_initialize(hostile);
    act_unfetched(chaos, hostile);
}

bool hostile_read(struct hostile *hostile)
{
    static const char field[] = "mcp-session-id: ";
    const char *head = hostile->in.data;
    const char *end = memmem(head, hostile->in.len, "\r\n\r\n", 4);
    const char *at;
    size_t len;

    if (end == NULL)
        return true;
    for (at = head; at < end && strncasecmp(at, field, strlen(field)) != 0; at++)
        ;
    if (at == end)
        return false;
    at += strlen(field);
    len = strcspn(at, "\r");
    if (len >= sizeof hostile->session)
        return false;
    snprintf(hostile->session, sizeof hostile->session, "%.*s", (int)len, at);
    return true;
}

static const struct behaviour {
    void (*arrive)(struct chaos *chaos, struct hostile *hostile);
    void (*act)(struct chaos *chaos, struct hostile *hostile);
    uint32_t pause_ms; /* at most, before a connection */
    /* Connections and processes are shared out by origin: where all clients have one, the hostile
     * must leave some to the honest. */
    uint8_t number, number_of_one, exclusive_number_of_one;
} behaviours[HOSTILE_KINDS] = {
    [HOSTILE_CLOSE] = {arrive_to_close, NULL, 100, 6, 6, 2},
    [HOSTILE_STALL] = {arrive_to_stall, act_stalled, 50, 8, 6, 3},
    [HOSTILE_HOARD] = {act_hoarding, act_hoarding, 200, 110, 16, 4},
    [HOSTILE_POISON] = {arrive_to_poison, NULL, 0, 6, 6, 2},
    [HOSTILE_ODD_ID] = {act_oddly, act_oddly, 100, 3, 3, 2},
    [HOSTILE_BIG] = {arrive_big, act_big, 100, 12, 12, 3},
    [HOSTILE_SUBSCRIBE] = {arrive_to_subscribe, act_subscribing, 50, 16, 12, 3},
    [HOSTILE_FLOOD] = {act_flooding, act_flooding, 100, 90, 16, 3},
    [HOSTILE_UNFETCHED] = {arrive_unfetched, act_unfetched, 30, 24, 12, 3},
};

void hostile_arrive(struct chaos *chaos, struct hostile *hostile)
{
    hostile->ends_ms = chaos->now_ms + LONG_MS;
    behaviours[hostile->kind].arrive(chaos, hostile);
}

void hostile_act(struct chaos *chaos, struct hostile *hostile)
{
    behaviours[hostile->kind].act(chaos, hostile);
}

size_t hostile_number(const struct chaos *chaos, enum hostile_kind kind)
{
    if (chaos->origins)
        return behaviours[kind].number;
    return chaos_exclusive(chaos) ? behaviours[kind].exclusive_number_of_one
                                  : behaviours[kind].number_of_one;
}

int64_t hostile_pause_ms(struct chaos *chaos, enum hostile_kind kind)
{
    if (kind == HOSTILE_POISON) /* all together */
        return WAVE_MS - chaos->now_ms % WAVE_MS;
    if (!chaos->origins) /* honest clients wait behind them */
        return dice_between(&chaos->dice, 1, 20 * behaviours[kind].pause_ms);
    return dice_between(&chaos->dice, 1, behaviours[kind].pause_ms);
}
