#include "build_config.h"

#include "rmp/notices.h"

#include <string.h>

#include "base/error.h"
#include "rmp/own_message.h"
#include "rmp/schemas.h"

#define TOKEN 1000 /* thousandths */

struct notice {
    enum rmp_drop_reason reason;
    const struct rmp_publication *publication;
    uint64_t expires_at_ms, observed_at_ms, suppressed;
};

static const char *const reasons[] = {
    [RMP_DROP_TTL_EXPIRED] = "ttl_expired",
    [RMP_DROP_DUPLICATE] = "duplicate",
    [RMP_DROP_BACKPRESSURE_TIMEOUT] = "backpressure_timeout",
};

void rmp_notices_init(struct rmp_broker *broker)
{
    broker->notice_tokens = RMP_NOTICE_TOKENS_MAX;
}

static void put_uint(struct msgpack_writer *writer, const char *name, uint64_t value)
{
    msgpack_put_text(writer, name);
    msgpack_put_uint(writer, value);
}

static void put_payload(struct msgpack_writer *writer, const void *argument)
{
    const struct notice *notice = argument;
    const struct rmp_publication *publication = notice->publication;
    bool has_body = notice->reason == RMP_DROP_TTL_EXPIRED;
    struct slice body = rmp_publication_body(publication);
    char trace_id[RMP_ID_LEN];

    rmp_id_write(trace_id, publication->header.trace_id);
    if (body.len > RMP_NOTICE_BODY_MAX)
        body.len = RMP_NOTICE_BODY_MAX;
    msgpack_put_map(writer, 7U + has_body + (notice->suppressed > 0));
    put_uint(writer, "v", 1);
    msgpack_put_text(writer, "reason");
    msgpack_put_text(writer, reasons[notice->reason]);
    msgpack_put_text(writer, "topic");
    msgpack_put_str(writer, publication->topic);
    msgpack_put_text(writer, "trace_id");
    msgpack_put_bin(writer, slice_of(trace_id, sizeof trace_id));
    put_uint(writer, "msg_id", publication->header.msg_id);
    put_uint(writer, "expires_at_ms", notice->expires_at_ms);
    put_uint(writer, "observed_at_ms", notice->observed_at_ms);
    if (has_body) {
        msgpack_put_text(writer, "body");
        msgpack_put_bin(writer, body);
    }
    if (notice->suppressed > 0)
        put_uint(writer, "suppressed", notice->suppressed);
}

static bool take_token(struct rmp_broker *broker, uint64_t now_ms)
{
    const uint64_t full = RMP_NOTICE_TOKENS_MAX;
    uint64_t passed_ms = now_ms - broker->notices_at_ms;

    broker->notices_at_ms = now_ms;
    if (passed_ms >= full / RMP_NOTICES_PER_SECOND)
        broker->notice_tokens = full;
    else
        broker->notice_tokens += passed_ms * RMP_NOTICES_PER_SECOND;
    if (broker->notice_tokens > full)
        broker->notice_tokens = full;
    if (broker->notice_tokens < TOKEN)
        return false;
    broker->notice_tokens -= TOKEN;
    return true;
}

static void publish_notice(struct rmp_broker *broker, const struct notice *notice,
                           struct rmp_time time)
{
    const struct rmp_own_message own = {
        .topic = RMP_TOPIC_DROPS,
        .schema_id = RMP_SCHEMA_BUS_DROP_NOTICE,
        .trace_id = notice->publication->header.trace_id,
        .put_payload = put_payload,
        .argument = notice,
    };

    if (take_token(broker, time.now_ms) &&
        rmp_own_message_add(broker, &own, time) == STDIO_BUS_OK) {
        broker->notices_suppressed = 0;
        return;
    }
    broker->notices_suppressed++;
    broker->counters.notices_suppressed++;
}

void rmp_notices_add(struct rmp_broker *broker, enum rmp_drop_reason reason,
                     const struct rmp_publication *publication, uint64_t expires_at_ms,
                     struct rmp_time time)
{
    const struct notice notice = {
        .reason = reason,
        .publication = publication,
        .expires_at_ms = expires_at_ms,
        .observed_at_ms = time.epoch_ms,
        .suppressed = broker->notices_suppressed,
    };

    switch (reason) {
    case RMP_DROP_TTL_EXPIRED:
        broker->counters.drops_ttl++;
        break;
    case RMP_DROP_DUPLICATE:
        broker->counters.drops_duplicate++;
        break;
    case RMP_DROP_BACKPRESSURE_TIMEOUT:
        broker->counters.drops_backpressure++;
        break;
    }
    if (!rmp_topic_is_system(publication->topic) &&
        rmp_topics_find(&broker->topics, slice_of(RMP_TOPIC_DROPS, strlen(RMP_TOPIC_DROPS))) !=
            NULL)
        publish_notice(broker, &notice, time);
}
