/* The first peer: it behaves, asks agents and the runner, and reads the metrics. */
#include "build_config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "deadline.h"
#include "rmp/frame.h"
#include "rmp/schemas.h"
#include "rmp_chaos.h"

#define REPLIES "reply/asker"
#define CONTROL "rlp/ctrl"
#define METRICS "rlp/sys/metrics"
#define SLACK_MS 5000
#define TRACE_BIT (UINT64_C(1) << 61) /* unlike all other ids */

static void send_draft(struct chaos *chaos, const struct rmp_draft *draft, enum ask ask)
{
    struct peer *asker = &chaos->peers[0];
    struct asked asked = {.ask = ask, .frames = true, .id = draft->header.trace_id.low};
    size_t len;
    char *frame = rmp_compose(draft, &len);

    peer_ask(chaos, asker, &asked);
    text_add(&asker->output, frame, len);
    free(frame);
    peer_write(chaos, asker);
}

static struct rmp_draft draft_of(const char *type, uint16_t schema, uint64_t trace, uint64_t ttl)
{
    return (struct rmp_draft){.header = {.schema_id = schema,
                                         .created_at_ms = epoch_ms(),
                                         .ttl_ms = ttl,
                                         .trace_id = {0, trace},
                                         .msg_id = trace},
                              .type = type};
}

void asker_begin(struct chaos *chaos)
{
    static const char *const topics[] = {REPLIES, CONTROL, METRICS};

    for (unsigned i = 0; i < 3; i++) {
        char payload[100];
        struct msgpack_writer writer = {.to = payload, .size = sizeof payload};
        struct rmp_draft draft = draft_of("intent.control.v1", RMP_SCHEMA_CONTROL,
                                          TRACE_BIT << 1 | i, 30000);

        msgpack_put_map(&writer, 2);
        msgpack_put_text(&writer, "op");
        msgpack_put_text(&writer, "subscribe");
        msgpack_put_text(&writer, "topic");
        msgpack_put_text(&writer, topics[i]);
        draft.payload = slice_of(payload, writer.len);
        send_draft(chaos, &draft, ASK_SUBSCRIBE);
    }
}

/* --- requests --- */

static void put_execute(struct chaos *chaos, struct msgpack_writer *writer)
{
    static const char *const methods[] = {"echo",  "echo", "echo",     "fail",
                                          "plain", "die",  "no_answer"};

    msgpack_put_map(writer, 4);
    msgpack_put_text(writer, "node");
    msgpack_put_map(writer, 1);
    msgpack_put_text(writer, "method");
    msgpack_put_text(writer, methods[dice_below(&chaos->run.dice, 7)]);
    msgpack_put_text(writer, "inputs");
    msgpack_put_map(writer, 1);
    msgpack_put_text(writer, "result");
    msgpack_put_uint(writer, dice_throw(&chaos->run.dice));
    msgpack_put_text(writer, "attempt");
    msgpack_put_uint(writer, 1);
    msgpack_put_text(writer, "reply_topic");
    msgpack_put_text(writer, REPLIES);
}

static void put_submit(struct chaos *chaos, struct msgpack_writer *writer, uint64_t trace)
{
    static const char *const yamls[] = {"name: a", "fail", "reject", "silence"};
    char id[RMP_ID_LEN];

    rmp_id_write(id, (struct rmp_id){0, trace});
    msgpack_put_map(writer, 1);
    msgpack_put_text(writer, "RunSubmit");
    msgpack_put_map(writer, 2);
    msgpack_put_text(writer, "request_id");
    msgpack_put_bin(writer, slice_of(id, sizeof id));
    msgpack_put_text(writer, "opening_yaml");
    msgpack_put_text(writer, yamls[dice_below(&chaos->run.dice, 4)]);
}

void asker_ask(struct chaos *chaos)
{
    char payload[400];
    struct msgpack_writer writer = {.to = payload, .size = sizeof payload};
    bool runs = dice_chance(&chaos->run.dice, 250);
    uint64_t number = ++chaos->request_count, trace = TRACE_BIT | number;
    uint64_t ttl = dice_between(&chaos->run.dice, 500, 3000);
    struct request *request = &chaos->requests[number % REQUESTS];
    struct rmp_draft draft =
        runs ? draft_of("intent.ctrl.request.v1", RMP_SCHEMA_CTRL_REQ, trace, ttl)
             : draft_of("intent.executor.agent.request.v1", RMP_SCHEMA_AGENT_REQUEST, trace, ttl);

    if (runs)
        put_submit(chaos, &writer, trace);
    else
        put_execute(chaos, &writer);
    *request = (struct request){.trace = trace,
                                .sure = true,
                                .until_ms = now_ms() + (int64_t)ttl +
                                            (int64_t)(SLACK_MS * timeout_factor())};
    draft.payload = slice_of(payload, writer.len);
    draft.topic = runs ? slice_of(CONTROL, strlen(CONTROL)) : slice_of("agent/writer", 12);
    draft.ack = true;
    send_draft(chaos, &draft, ASK_PUBLISH);
}

static void take_answer(struct chaos *chaos, const struct arrival *arrival)
{
    uint64_t trace = arrival->header.trace_id.low;
    struct request *request = &chaos->requests[(trace & ~TRACE_BIT) % REQUESTS];

    if (request->trace != trace)
        violation(chaos, "an answer of an agent to %" PRIu64 ", which nobody has asked", trace);
    else if (request->answered)
        violation(chaos, "an agent's request %" PRIu64 " is answered twice", trace & ~TRACE_BIT);
    request->answered = true;
    chaos->agent_answers++;
}

/* --- metrics --- */

static uint64_t number_of(struct slice map, const char *key)
{
    struct msgpack_value value;

    return msgpack_find(map, key, &value, NULL) ? value.as.uint : 0;
}

static void take_metrics(struct chaos *chaos, const struct arrival *arrival)
{
    struct rmp_envelope envelope;
    struct msgpack_value value;
    struct slice gauges, counters;

    if (rmp_envelope_read(&envelope, arrival->body) != RMP_OK ||
        !msgpack_find(envelope.payload, "gauges", &value, &gauges) ||
        !msgpack_find(envelope.payload, "counters", &value, &counters)) {
        violation(chaos, "the metrics cannot be read");
        return;
    }
    chaos->snapshots++;
    chaos->gauges[0] = number_of(gauges, "subscriptions");
    chaos->gauges[1] = number_of(gauges, "queued_messages");
    chaos->gauges[2] = number_of(gauges, "queued_bytes");
    chaos->gauges[3] = number_of(gauges, "waiting_publications");
    chaos->known.ttl = number_of(counters, "drops_ttl");
    chaos->known.duplicate = number_of(counters, "drops_duplicate");
    chaos->known.backpressure = number_of(counters, "drops_backpressure");
}

void asker_take(struct chaos *chaos, const struct arrival *arrival)
{
    switch (arrival->header.schema_id) {
    case RMP_SCHEMA_AGENT_RESPONSE:
    case RMP_SCHEMA_CTRL_RESP:
        take_answer(chaos, arrival);
        break;
    case RMP_SCHEMA_METRICS_SNAPSHOT:
        take_metrics(chaos, arrival);
        break;
    case RMP_SCHEMA_CTRL_REQ: /* its own */
        break;
    default:
        violation(chaos, "the asker got schema %u", arrival->header.schema_id);
        break;
    }
}

/* --- checks --- */

static void check_drops(struct chaos *chaos, const char *what, uint64_t seen, uint64_t known)
{
    if (seen > known)
        violation(chaos, "the metrics have %" PRIu64 " drops (%s), but there were %" PRIu64, known,
                  what, seen);
}

static void check_rest(struct chaos *chaos)
{
    check_drops(chaos, "ttl", chaos->seen.ttl, chaos->known.ttl);
    check_drops(chaos, "duplicate", chaos->seen.duplicate, chaos->known.duplicate);
    check_drops(chaos, "backpressure", chaos->seen.backpressure, chaos->known.backpressure);
    /* Three of the asker, two of the pools. */
    if (chaos->gauges[0] != 5 || chaos->gauges[1] + chaos->gauges[2] + chaos->gauges[3] != 0)
        violation(chaos,
                  "at rest there are %" PRIu64 " subscriptions, %" PRIu64 " messages (%" PRIu64
                  " bytes) and %" PRIu64 " publications that wait",
                  chaos->gauges[0], chaos->gauges[1], chaos->gauges[2], chaos->gauges[3]);
}

void asker_check(struct chaos *chaos, bool at_end)
{
    for (unsigned i = 0; i < REQUESTS; i++) {
        struct request *request = &chaos->requests[i];

        if (request->trace == 0 || request->answered || now_ms() < request->until_ms)
            continue;
        violation(chaos, "the agent's request %" PRIu64 " has no answer",
                  request->trace & ~TRACE_BIT);
        request->answered = true;
    }
    if (at_end)
        check_rest(chaos);
}
