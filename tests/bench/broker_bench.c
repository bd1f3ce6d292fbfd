/* The cost of a delivery in the RMP broker, without sockets: one publisher, 1, 10 and 100
 * subscribers that copy the frame into a buffer of 64 KiB each, beside the copy alone.
 *
 *     broker_bench [seconds per figure]
 *
 * Each figure is the best of many short rounds. */
#include "build_config.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rmp/broker.h"
#include "rmp/dedupe.h"

#define SUBSCRIBERS_MAX 100
#define BODY_LEN 256
#define FRAME_LEN (RMP_BODY_OFFSET + BODY_LEN)
#define OUTPUT_LEN 65536
#define ROUND 2000 /* publications */
#define TOPIC "rlp/runs/trace:0190b3c4/events"

struct subscriber {
    struct rmp_peer peer;
    size_t len;
    char output[OUTPUT_LEN];
};

static struct subscriber subscribers[SUBSCRIBERS_MAX];
static struct rmp_peer publisher;

static enum rmp_taken copy(struct rmp_peer *to, const struct rmp_sub_name *name,
                           const struct rmp_publication *publication)
{
    struct subscriber *subscriber = list_entry(to, struct subscriber, peer);

    (void)name;
    if (OUTPUT_LEN - subscriber->len < publication->frame.len)
        subscriber->len = 0;
    memcpy(subscriber->output + subscriber->len, publication->frame.data, publication->frame.len);
    subscriber->len += publication->frame.len;
    return RMP_TAKEN;
}

static const struct rmp_peer_ops ops = {.deliver = copy};

static double now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static struct rmp_broker *broker_of(int count)
{
    const struct rmp_broker_options options = {.key = {1, 2}};
    const struct rmp_sub_name name = {.dialect = RMP_DIALECT_FRAMES};
    const struct rmp_time time = {.epoch_ms = 1};
    struct rmp_broker *broker = rmp_broker_create(&options);

    if (broker == NULL)
        exit(EXIT_FAILURE);
    rmp_broker_join(broker, &publisher, &ops, RMP_KIND_AGENT);
    for (int i = 0; i < count; i++) {
        rmp_broker_join(broker, &subscribers[i].peer, &ops, RMP_KIND_AGENT);
        rmp_broker_subscribe(broker, &subscribers[i].peer, name, slice_of(TOPIC, strlen(TOPIC)),
                             time);
    }
    return broker;
}

/* One round; `broker` NULL: the copies alone. */
static double round_ns(struct rmp_broker *broker, int count, uint64_t *msg_id)
{
    static char frame[FRAME_LEN];
    struct rmp_publication publication = {
        .header = {.schema_id = 3003, .body_len = BODY_LEN, .created_at_ms = 1, .ttl_ms = 30000},
        .topic = slice_of(TOPIC, strlen(TOPIC)),
        .frame = slice_of(frame, sizeof frame),
    };
    const struct rmp_sub_name name = {.sub_id = 0};
    const struct rmp_time time = {.epoch_ms = 1};
    struct rmp_result result;
    double start = now_ns();

    for (int i = 0; i < ROUND; i++) {
        publication.header.msg_id = ++*msg_id;
        rmp_header_write_prefixed(frame, &publication.header);
        if (broker != NULL) {
            rmp_broker_publish(broker, &publisher, &publication, time, 0, &result);
            continue;
        }
        for (int k = 0; k < count; k++)
            ops.deliver(&subscribers[k].peer, &name, &publication);
    }
    return (now_ns() - start) / ((double)ROUND * count);
}

static double best_ns(bool with_broker, int count, double seconds)
{
    struct rmp_broker *broker = with_broker ? broker_of(count) : NULL;
    double best = 1e9, end = now_ns() + seconds * 1e9;
    uint64_t msg_id = 0;

    while (now_ns() < end || msg_id < 3 * (uint64_t)RMP_DEDUPE_MAX) {
        double ns = round_ns(broker, count, &msg_id);

        /* The memory of duplicates is full first. */
        if (ns < best && (broker == NULL || msg_id > 2 * (uint64_t)RMP_DEDUPE_MAX))
            best = ns;
    }
    rmp_broker_free(broker);
    return best;
}

int main(int argc, char **argv)
{
    static const int counts[] = {1, 10, 100};
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 0.5;

    printf("subscribers   copy alone   through the broker   ns per delivery\n");
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        printf("%11d   %10.1f   %18.1f\n", counts[i], best_ns(false, counts[i], seconds),
               best_ns(true, counts[i], seconds));
    return EXIT_SUCCESS;
}
