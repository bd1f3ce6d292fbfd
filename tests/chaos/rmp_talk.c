/* What peers say: commands and frames. */
#include "build_config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "rmp/frame.h"
#include "rmp_chaos.h"

#define REPEAT_WITHIN 3000 /* publications */
#define LONG_TOPIC 600

static const uint16_t schemas[] = {1, 3, 5, 8, 3003, 3004};
static const char *const types[] = {"observation.a.v1", "intent.b.v1",      "artifact.c.v1",
                                    "observation.d.v1", "observation.e.v1", "observation.f.v1"};

/* --- bytes on their way --- */

static void put_prefix(struct text *to, size_t len)
{
    char prefix[4] = {(char)(len >> 24), (char)(len >> 16), (char)(len >> 8), (char)len};

    text_add(to, prefix, sizeof prefix);
}

/* Sometimes the last bytes are held back for the next turn. */
static void push(struct chaos *chaos, struct peer *peer)
{
    size_t left = peer->output.len - peer->written;

    peer->output_hold = 0;
    if (!chaos->calm && left > 0 && dice_chance(&chaos->run.dice, 150))
        peer->output_hold = dice_below(&chaos->run.dice, (uint32_t)left);
    peer_write(chaos, peer);
}

void talk_send_json(struct chaos *chaos, struct peer *peer, const struct text *json)
{
    put_prefix(&peer->output, json->len);
    text_add(&peer->output, json->data, json->len);
    push(chaos, peer);
}

void talk_send_frame(struct chaos *chaos, struct peer *peer, char *frame, size_t len)
{
    text_add(&peer->output, frame, len);
    free(frame);
    push(chaos, peer);
}

static void send_control(struct chaos *chaos, struct peer *peer, const char *op, const char *key,
                         const char *value, uint64_t id)
{
    char payload[LONG_TOPIC + 100];
    struct msgpack_writer writer = {.to = payload, .size = sizeof payload};
    struct rmp_draft draft = {.header = {.schema_id = 9,
                                         .created_at_ms = epoch_ms(),
                                         .ttl_ms = 30000,
                                         .trace_id = {0, id}},
                              .type = "intent.control.v1"};
    size_t len;
    char *frame;

    msgpack_put_map(&writer, 2);
    msgpack_put_text(&writer, "op");
    msgpack_put_text(&writer, op);
    msgpack_put_text(&writer, key);
    msgpack_put_text(&writer, value);
    draft.payload = slice_of(payload, writer.len);
    frame = rmp_compose(&draft, &len);
    talk_send_frame(chaos, peer, frame, len);
}

uint64_t talk_next_id(struct chaos *chaos)
{
    return UINT64_C(1) << 60 | ++chaos->last_id;
}

/* --- the other commands --- */

void talk_hello(struct chaos *chaos, struct peer *peer, bool frames)
{
    struct asked asked = {.ask = ASK_HELLO, .frames = frames};
    struct text json = {0};

    if (frames)
        asked.id = talk_next_id(chaos);
    peer_ask(chaos, peer, &asked);
    if (frames) {
        send_control(chaos, peer, "hello", "kind", "agent", asked.id);
        return;
    }
    text_printf(&json, "{\"Hello\":{\"kind\":\"Agent\"}}");
    talk_send_json(chaos, peer, &json);
    text_free(&json);
}

static bool slot_taken(const struct chaos *chaos, unsigned slot)
{
    for (unsigned i = 0; i < PEERS; i++) {
        for (unsigned j = 0; j < SUBSCRIPTIONS; j++) {
            const struct subscription *at = &chaos->peers[i].subscriptions[j];

            if (at->live && at->slot == slot)
                return true;
        }
    }
    return false;
}

static unsigned new_slot(struct chaos *chaos)
{
    while (slot_taken(chaos, (unsigned)(++chaos->last_slot % SLOTS)))
        continue;
    return (unsigned)(chaos->last_slot % SLOTS);
}

static struct subscription *free_subscription(struct peer *peer)
{
    for (unsigned i = 0; i < SUBSCRIPTIONS; i++) {
        if (!peer->subscriptions[i].live)
            return &peer->subscriptions[i];
    }
    return NULL;
}

/* One that the peer has, by the same name. */
static struct subscription *same_name(struct peer *peer, bool frames, uint64_t sub_id,
                                      unsigned topic)
{
    for (unsigned i = 0; i < SUBSCRIPTIONS; i++) {
        struct subscription *at = &peer->subscriptions[i];

        if (at->live && at->ended == 0 && at->frames == frames &&
            (frames ? at->topic == topic : at->sub_id == sub_id))
            return at;
    }
    return NULL;
}

/* A name that is in use already replaces that subscription, unless the topic is the same. */
static struct subscription *note_subscription(struct chaos *chaos, struct peer *peer, bool frames,
                                              uint64_t sub_id, unsigned topic)
{
    struct subscription *old = same_name(peer, frames, sub_id, topic);
    struct subscription *now = free_subscription(peer);

    if (now == NULL || (old != NULL && old->topic == topic))
        return NULL;
    if (old != NULL)
        old->ended = chaos->event + 1; /* that of the command */
    memset(now, 0, sizeof *now);
    now->live = true;
    now->frames = frames;
    now->topic = topic;
    now->sub_id = sub_id;
    now->slot = new_slot(chaos);
    now->asked = chaos->event + 1;
    return now;
}

void talk_subscribe(struct chaos *chaos, struct peer *peer, unsigned topic)
{
    bool frames = dice_chance(&chaos->run.dice, 150) ? !peer->frames : peer->frames;
    uint64_t sub_id = 1 + dice_below(&chaos->run.dice, SUBSCRIPTIONS);
    struct asked asked = {.ask = ASK_SUBSCRIBE, .frames = frames, .id = talk_next_id(chaos)};
    const struct subscription *old = same_name(peer, frames, sub_id, topic);
    struct text json = {0};

    asked.subscription = note_subscription(chaos, peer, frames, sub_id, topic);
    if (asked.subscription == NULL && (old == NULL || old->topic != topic))
        return; /* it has enough */
    peer_ask(chaos, peer, &asked);
    if (frames) {
        send_control(chaos, peer, "subscribe", "topic", topic_names[topic], asked.id);
        return;
    }
    text_printf(&json,
                "{\"Subscribe\":{\"id\":%" PRIu64 ",\"topic\":\"%s\",\"sub_id\":%" PRIu64 "}}",
                asked.id, topic_names[topic], sub_id);
    talk_send_json(chaos, peer, &json);
    text_free(&json);
}

/* In the dialect of commands there is no answer; that to a Hello after it proves the end. */
void talk_unsubscribe(struct chaos *chaos, struct peer *peer)
{
    struct subscription *at = &peer->subscriptions[dice_below(&chaos->run.dice, SUBSCRIPTIONS)];
    struct asked asked = {.ask = ASK_UNSUBSCRIBE, .frames = true, .id = talk_next_id(chaos)};
    struct text json = {0};

    if (!at->live || at->ended != 0)
        return;
    if (at->frames) {
        peer_ask(chaos, peer, &asked);
        at->ended = chaos->event;
        send_control(chaos, peer, "unsubscribe", "topic", topic_names[at->topic], asked.id);
        return;
    }
    at->ended = ++chaos->event;
    text_printf(&json, "{\"Unsubscribe\":{\"sub_id\":%" PRIu64 "}}", at->sub_id);
    talk_send_json(chaos, peer, &json);
    text_free(&json);
    if (dice_chance(&chaos->run.dice, 800))
        talk_hello(chaos, peer, false);
}

/* --- publications --- */

/* The mark by which it is known again, and some bytes. */
static void put_filling(struct chaos *chaos, struct text *to, uint64_t number)
{
    uint32_t most = dice_chance(&chaos->run.dice, 30) ? BODY_MAX : 500;
    uint32_t len = dice_below(&chaos->run.dice, most);

    text_add(to, "PUB!", 4);
    for (unsigned i = 0; i < 8; i++)
        text_add(to, &(char){(char)(number >> (56 - 8 * i))}, 1);
    for (uint32_t i = 0; i < len; i++)
        text_add(to, &(char){(char)dice_throw(&chaos->run.dice)}, 1);
}

static void send_as_frame(struct chaos *chaos, struct peer *peer, struct publication *publication,
                          bool ack, const struct text *filling)
{
    struct text payload = {0};
    struct msgpack_writer writer = {.size = filling->len + 16};
    struct rmp_draft draft = {.header = publication->header, .ack = ack};
    const char *topic = topic_names[publication->topic];
    size_t len;
    char *frame;

    writer.to = text_room(&payload, writer.size);
    msgpack_put_bin(&writer, slice_of(filling->data, filling->len));
    draft.payload = slice_of(payload.data, writer.len);
    draft.topic = slice_of(topic, strlen(topic));
    for (size_t i = 0; i < sizeof schemas / sizeof schemas[0]; i++) {
        if (schemas[i] == publication->header.schema_id)
            draft.type = types[i];
    }
    frame = rmp_compose(&draft, &len);
    publication->header.body_len = (uint32_t)(len - RMP_BODY_OFFSET);
    publication->body_hash = ledger_hash(frame + RMP_BODY_OFFSET, len - RMP_BODY_OFFSET);
    talk_send_frame(chaos, peer, frame, len);
    text_free(&payload);
}

static void put_decimal(struct text *to, struct rmp_id id)
{
    char digits[40];
    size_t at = sizeof digits;

    do {
        /* 128 bits by 10, in four steps of 32 bits. */
        uint64_t parts[4] = {id.high >> 32, id.high & UINT32_MAX, id.low >> 32,
                             id.low & UINT32_MAX};
        uint64_t rest = 0;

        for (unsigned i = 0; i < 4; i++) {
            rest = rest << 32 | parts[i];
            parts[i] = rest / 10;
            rest %= 10;
        }
        id = (struct rmp_id){parts[0] << 32 | parts[1], parts[2] << 32 | parts[3]};
        digits[--at] = (char)('0' + rest);
    } while (id.high != 0 || id.low != 0);
    text_add(to, digits + at, sizeof digits - at);
}

void talk_put_publish(struct text *json, uint64_t id, const char *topic,
                      const struct rmp_header *header, const struct text *body)
{
    text_printf(json,
                "{\"Publish\":{\"id\":%" PRIu64 ",\"topic\":\"%s\",\"message\":{\"header\":{"
                "\"header_version\":0,\"header_len\":64,\"flags\":0,\"schema_id\":%u,"
                "\"body_len\":%u,\"created_at_ms\":%" PRIu64 ",\"ttl_ms\":%" PRIu64
                ",\"trace_id\":",
                id, topic, header->schema_id, header->body_len, header->created_at_ms,
                header->ttl_ms);
    put_decimal(json, header->trace_id);
    text_printf(json, ",\"msg_id\":%" PRIu64 "},\"body\":[", header->msg_id);
    for (size_t i = 0; i < body->len; i++)
        text_printf(json, "%s%u", i > 0 ? "," : "", (unsigned char)body->data[i]);
    text_printf(json, "]}}}");
}

static void send_as_command(struct chaos *chaos, struct peer *peer, struct publication *publication,
                            uint64_t id, const struct text *filling)
{
    struct text json = {0};

    publication->header.body_len = (uint32_t)filling->len;
    publication->body_hash = ledger_hash(filling->data, filling->len);
    talk_put_publish(&json, id, topic_names[publication->topic], &publication->header, filling);
    talk_send_json(chaos, peer, &json);
    text_free(&json);
}

/* Most live for long enough; some expire on the way, some before. */
static const char *choose_time(struct chaos *chaos, struct rmp_header *header)
{
    header->created_at_ms = epoch_ms();
    header->ttl_ms = dice_between(&chaos->run.dice, 20000, TTL_MAX_MS);
    if (dice_chance(&chaos->run.dice, 150))
        header->ttl_ms = dice_between(&chaos->run.dice, 1, 800);
    if (chaos->calm || !dice_chance(&chaos->run.dice, 30))
        return NULL;
    switch (dice_below(&chaos->run.dice, 4)) {
    case 0:
        header->ttl_ms = 0;
        return "InvalidTtl";
    case 1:
        header->ttl_ms = TTL_MAX_MS + 1;
        return "InvalidTtl";
    case 2:
        header->created_at_ms = UINT64_MAX - header->ttl_ms + 1;
        return "InvalidExpiry";
    default:
        header->created_at_ms -= header->ttl_ms + 1;
        return "Expired";
    }
}

/* One that was answered of late, or 0. A refused one has left no key. */
static uint64_t choose_repeated(struct chaos *chaos)
{
    uint64_t back = 1 + dice_below(&chaos->run.dice, REPEAT_WITHIN);
    const struct publication *old = NULL;

    if (!dice_chance(&chaos->run.dice, 100) || back >= chaos->last_number)
        return 0;
    old = ledger_find(chaos, chaos->last_number - back);
    return old != NULL && (old->told == TOLD_OK || old->told == TOLD_MAYBE) && old->answered != 0
               ? old->number
               : 0;
}

void talk_publish(struct chaos *chaos, struct peer *peer)
{
    bool frames = dice_chance(&chaos->run.dice, 150) ? !peer->frames : peer->frames;
    uint64_t repeated = choose_repeated(chaos);
    unsigned topic = dice_below(&chaos->run.dice, TOPICS);
    struct publication *publication = ledger_publish(chaos, peer, topic, repeated);
    bool ack = repeated != 0 || dice_chance(&chaos->run.dice, 700);
    struct asked asked = {.ask = ASK_PUBLISH, .frames = frames, .optional = frames && !ack};
    struct text filling = {0};

    asked.error = choose_time(chaos, &publication->header);
    publication->header.schema_id =
        schemas[dice_below(&chaos->run.dice, sizeof schemas / sizeof schemas[0])];
    asked.number = publication->number;
    asked.id = frames ? publication->header.trace_id.low : publication->number;
    asked.optional &= asked.error == NULL;
    peer_ask(chaos, peer, &asked);
    put_filling(chaos, &filling, publication->number);
    if (frames)
        send_as_frame(chaos, peer, publication, ack, &filling);
    else
        send_as_command(chaos, peer, publication, publication->number, &filling);
    text_free(&filling);
    chaos->published++;
}
