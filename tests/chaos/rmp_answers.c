/* What the daemon says to peers: each command is answered, in order. */
#include "build_config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "deadline.h"
#include "rmp/schemas.h"
#include "rmp_chaos.h"

#define SHOWN_MAX 160

static bool contains(struct slice payload, const char *word)
{
    return memmem(payload.data, payload.len, word, strlen(word)) != NULL;
}

/* --- answers --- */

/* Subscriptions that were ended before a command that is answered now get nothing more. */
static void end_subscriptions(struct peer *peer, uint64_t event)
{
    for (unsigned i = 0; i < SUBSCRIPTIONS; i++) {
        struct subscription *at = &peer->subscriptions[i];

        if (at->live && at->ended != 0 && at->ended <= event)
            at->live = false;
    }
}

static void take_head(struct chaos *chaos, struct peer *peer, enum told told)
{
    struct asked *asked = &peer->asked[peer->first_asked];
    struct publication *publication = ledger_find(chaos, asked->number);

    if (asked->ask == ASK_PUBLISH && publication != NULL)
        ledger_answered(chaos, publication, told);
    if (asked->ask == ASK_SUBSCRIBE && asked->subscription != NULL && told == TOLD_OK)
        asked->subscription->answered = ++chaos->event;
    if (asked->ask == ASK_SUBSCRIBE && asked->subscription != NULL && told == TOLD_ERROR)
        asked->subscription->live = false;
    end_subscriptions(peer, asked->event);
    peer->first_asked = (peer->first_asked + 1) % ASKED;
    peer->asked_count--;
    peer->head_ms = now_ms();
}

static enum told judge_publish(struct chaos *chaos, const struct asked *asked, struct slice payload)
{
    const struct publication *publication = ledger_find(chaos, asked->number);
    uint64_t expires =
        publication == NULL ? 0 : publication->header.created_at_ms + publication->header.ttl_ms;

    if (contains(payload, "BackpressureTimeout")) {
        chaos->seen.backpressure++;
        chaos->told_timeouts++;
        return TOLD_MAYBE;
    }
    if (!contains(payload, "Expired"))
        return TOLD_NOTHING;
    if (publication != NULL && epoch_ms() < expires)
        violation(chaos, "message %" PRIu64 " is said to have expired, %" PRIu64 " ms early",
                  asked->number, expires - epoch_ms());
    chaos->seen.ttl++;
    return TOLD_MAYBE;
}

/* What the answer says to the head of what was asked. */
static enum told judge(struct chaos *chaos, const struct peer *peer, const struct asked *asked,
                       struct slice payload, bool ok)
{
    int shown = payload.len < SHOWN_MAX ? (int)payload.len : SHOWN_MAX;
    enum told told = TOLD_NOTHING;

    if (asked->error != NULL && contains(payload, asked->error)) {
        chaos->told_errors++;
        chaos->seen.ttl += strcmp(asked->error, "Expired") == 0;
        return TOLD_ERROR;
    }
    if (asked->error == NULL && ok) {
        chaos->told_ok++;
        return TOLD_OK;
    }
    if (asked->error == NULL && asked->ask == ASK_PUBLISH)
        told = judge_publish(chaos, asked, payload);
    if (told == TOLD_NOTHING) {
        violation(chaos, "peer %u: %.*s instead of %s (%" PRIu64 ")", peer->index, shown,
                  payload.data, asked->error != NULL ? asked->error : "Ok", asked->id);
        told = TOLD_MAYBE;
    }
    return told;
}

/* `id` is that of the command, or the trace_id of the frame. */
static void take_answer(struct chaos *chaos, struct peer *peer, bool frames, uint64_t id,
                        struct slice payload, bool ok)
{
    const struct asked *head = NULL;

    while (peer->asked_count > 0) {
        head = &peer->asked[peer->first_asked];
        if (head->frames == frames && head->id == id && !(head->optional && ok))
            break;
        if (!head->optional)
            break;
        take_head(chaos, peer, TOLD_OK); /* it was not answered, but this one comes after it */
        head = NULL;
    }
    if (head == NULL || peer->asked_count == 0 || head->frames != frames || head->id != id) {
        violation(chaos, "peer %u: an answer to %" PRIu64 " instead of %" PRIu64 ": %.*s",
                  peer->index, id, head != NULL ? head->id : 0,
                  payload.len < SHOWN_MAX ? (int)payload.len : SHOWN_MAX, payload.data);
        peer_close(chaos, peer);
        return;
    }
    take_head(chaos, peer, judge(chaos, peer, head, payload, ok));
}

/* --- the dialect of commands --- */

/* The number after the word, which *at moves past. */
static bool take_number(const char **at, const char *word, uint64_t *number)
{
    char *end;

    if (strncmp(*at, word, strlen(word)) != 0)
        return false;
    *number = strtoull(*at + strlen(word), &end, 10);
    *at = end;
    return true;
}

/* 128 bits in decimal. */
static struct rmp_id take_id(const char **at)
{
    uint32_t limbs[4] = {0}; /* the least significant one first */

    for (; **at >= '0' && **at <= '9'; ++*at) {
        uint64_t carry = (uint64_t)(**at - '0');

        for (unsigned i = 0; i < 4; i++) {
            carry += (uint64_t)limbs[i] * 10;
            limbs[i] = (uint32_t)carry;
            carry >>= 32;
        }
    }
    return (struct rmp_id){(uint64_t)limbs[3] << 32 | limbs[2],
                           (uint64_t)limbs[1] << 32 | limbs[0]};
}

static bool take_header(const char **at, struct rmp_header *header)
{
    static const char trace[] = ",\"trace_id\":";
    uint64_t number;

    if (!take_number(at, ",\"message\":{\"header\":{\"header_version\":", &number) || number != 0 ||
        !take_number(at, ",\"header_len\":", &number) || number != RMP_HEADER_LEN ||
        !take_number(at, ",\"flags\":", &number) || number != 0 ||
        !take_number(at, ",\"schema_id\":", &number))
        return false;
    header->schema_id = (uint16_t)number;
    if (!take_number(at, ",\"body_len\":", &number))
        return false;
    header->body_len = (uint32_t)number;
    if (!take_number(at, ",\"created_at_ms\":", &header->created_at_ms) ||
        !take_number(at, ",\"ttl_ms\":", &header->ttl_ms) ||
        strncmp(*at, trace, sizeof trace - 1) != 0)
        return false;
    *at += sizeof trace - 1;
    header->trace_id = take_id(at);
    return take_number(at, ",\"msg_id\":", &header->msg_id);
}

/* [1,2,3] and what follows it. */
static bool take_body(const char *at, struct text *body)
{
    static const char start[] = "},\"body\":[";

    if (strncmp(at, start, sizeof start - 1) != 0)
        return false;
    at += sizeof start - 1;
    while (*at != ']') {
        char *end;
        char byte = (char)strtoul(at, &end, 10);

        if (end == at || (*end != ',' && *end != ']'))
            return false;
        text_add(body, &byte, 1);
        at = *end == ',' ? end + 1 : end;
    }
    return strcmp(at, "]}}}") == 0;
}

static void take_command(struct chaos *chaos, struct peer *peer, const char *json, size_t len,
                         uint64_t offset)
{
    struct slice payload = {json, len};
    struct arrival arrival = {.offset = offset};
    struct text body = {0};
    const char *at = json;
    bool ok = contains(payload, "\"result\":{\"Ok\":null}");
    uint64_t id;

    if (strcmp(json, "\"HelloAck\"") == 0) {
        take_answer(chaos, peer, false, 0, payload, true);
    } else if (take_number(&at, "{\"PublishAck\":{\"id\":", &id) ||
               take_number(&at, "{\"SubscribeAck\":{\"id\":", &id)) {
        take_answer(chaos, peer, false, id, payload, ok);
    } else if (take_number(&at, "{\"Message\":{\"sub_id\":", &arrival.sub_id) &&
               take_header(&at, &arrival.header) && take_body(at, &body)) {
        arrival.body = slice_of(body.data, body.len);
        ledger_arrived(chaos, peer, &arrival);
    } else {
        violation(chaos, "peer %u: %.160s", peer->index, json);
    }
    text_free(&body);
}

/* --- the dialect of frames --- */

static void take_frame(struct chaos *chaos, struct peer *peer, struct slice payload,
                       uint64_t offset)
{
    struct arrival arrival = {.frames = true, .offset = offset};
    enum rmp_error error = rmp_header_read(&arrival.header, payload);
    bool ok = arrival.header.schema_id == RMP_SCHEMA_TOOL_RESULT;

    if (error != RMP_OK || arrival.header.body_len != payload.len - RMP_HEADER_LEN) {
        violation(chaos, "peer %u: a bad frame: %s", peer->index, rmp_error_name(error));
        return;
    }
    arrival.body = slice_of(payload.data + RMP_HEADER_LEN, payload.len - RMP_HEADER_LEN);
    if (ok || arrival.header.schema_id == RMP_SCHEMA_ERROR_REPORT)
        take_answer(chaos, peer, true, arrival.header.trace_id.low, arrival.body, ok);
    else if (peer->index == 0)
        asker_take(chaos, &arrival);
    else
        ledger_arrived(chaos, peer, &arrival);
}

void answers_take(struct chaos *chaos, struct peer *peer, struct slice payload, uint64_t offset)
{
    struct text json = {0};

    if (peer->fd < 0)
        return;
    if (payload.len > 0 && payload.data[0] == 'R') {
        take_frame(chaos, peer, payload, offset);
        return;
    }
    text_add(&json, payload.data, payload.len);
    take_command(chaos, peer, json.data, json.len, offset);
    text_free(&json);
}
