/* The RMP broker against a plain model (rmp_broker_model.h). The input is a row of events: peers
 * that subscribe, publish few different messages, become busy, leave and come back; time that
 * passes; other brokers that continue from the archive of this one, after one that was offered the
 * archive with a fault.
 *
 * Each delivery, each result and each counter must be the model's, in the model's order. Besides,
 * each drop has a notice or is counted as suppressed, and the broker's deadline is kept. */
#include "build_config.h"

#include "common.h"
#include "rmp/broker.h"
#include "rmp/broker_archive.h"
#include "rmp_broker_model.h"

#define STEPS_MAX 2000
#define FRAME_MAX 1200
#define EPOCH_MS 1000000

struct actor {
    struct rmp_peer peer;
    struct run *run;
    unsigned number;
};

struct run {
    struct tape tape;
    struct rmp_broker *broker;
    struct rmp_time time;
    struct actor actors[MODEL_PEERS];
    struct actor watcher; /* of notices */
    size_t notices;
    struct model model;
    struct model_event events[MODEL_EVENTS]; /* as they come from the broker */
    size_t event_count;
    size_t room[MODEL_PEERS]; /* as in the model, for the broker's calls */
    bool refuses[MODEL_PEERS];
    bool traces;
};

static const char *const topics[MODEL_TOPICS] = {"a", "rlp/runs/1/events", "c/d"};

static struct slice topic_of(unsigned topic)
{
    return slice_of(topics[topic], strlen(topics[topic]));
}

static struct rmp_sub_name name_of(unsigned slot)
{
    struct rmp_sub_name name = {.dialect = RMP_DIALECT_FRAMES};

    if (slot < MODEL_SUB_IDS)
        name = (struct rmp_sub_name){.dialect = RMP_DIALECT_JSON, .sub_id = slot};
    return name;
}

/* --- what the broker calls --- */

static void add_event(struct run *run, struct model_event event)
{
    EXPECT(run->event_count < MODEL_EVENTS, "too many events");
    run->events[run->event_count++] = event;
}

static unsigned slot_of(const struct rmp_sub_name *name, struct slice topic)
{
    unsigned slot = 0;

    if (name->dialect == RMP_DIALECT_JSON)
        return (unsigned)name->sub_id;
    while (slot < MODEL_TOPICS && !slice_equal(topic_of(slot), topic))
        slot++;
    EXPECT(slot < MODEL_TOPICS, "a topic that was not subscribed to");
    return MODEL_SUB_IDS + slot;
}

static enum rmp_taken take(struct rmp_peer *to, const struct rmp_sub_name *name,
                           const struct rmp_publication *publication)
{
    struct actor *actor = list_entry(to, struct actor, peer);
    struct run *run = actor->run;

    for (size_t i = RMP_BODY_OFFSET; i < publication->frame.len; i++)
        EXPECT(publication->frame.data[i] == (char)publication->header.msg_id, "another body");
    if (run->refuses[actor->number])
        return RMP_REFUSED;
    if (run->room[actor->number] == 0)
        return RMP_BUSY;
    run->room[actor->number]--;
    add_event(run, (struct model_event){MODEL_DELIVERED, actor->number,
                                        slot_of(name, publication->topic),
                                        (unsigned)publication->header.msg_id, RMP_RESULT_OK});
    return RMP_TAKEN;
}

static enum rmp_taken take_notice(struct rmp_peer *to, const struct rmp_sub_name *name,
                                  const struct rmp_publication *publication)
{
    (void)name;
    EXPECT(publication->header.schema_id == 3007, "no notice");
    list_entry(to, struct actor, peer)->run->notices++;
    return RMP_TAKEN;
}

static void note_end(struct rmp_peer *publisher, uint64_t token, const struct rmp_result *result)
{
    struct actor *actor = list_entry(publisher, struct actor, peer);

    add_event(actor->run, (struct model_event){MODEL_ENDED, actor->number, 0, (unsigned)token,
                                               result->outcome});
}

static const struct rmp_peer_ops actor_ops = {.deliver = take, .published = note_end};
static const struct rmp_peer_ops watcher_ops = {.deliver = take_notice, .published = note_end};

/* --- comparison --- */

static void expect_same(const struct run *run)
{
    const struct model *model = &run->model;
    const struct rmp_counters *counters = rmp_broker_counters(run->broker);

    EXPECT(run->event_count == model->event_count, "%zu events, not %zu", run->event_count,
           model->event_count);
    for (size_t i = 0; i < run->event_count; i++) {
        const struct model_event *real = &run->events[i], *wanted = &model->events[i];

        EXPECT(real->what == wanted->what && real->peer == wanted->peer &&
                   real->slot == wanted->slot && real->key == wanted->key &&
                   real->outcome == wanted->outcome,
               "event %zu: peer %u slot %u key %u outcome %d, not peer %u slot %u key %u outcome "
               "%d",
               i, real->peer, real->slot, real->key, (int)real->outcome, wanted->peer, wanted->slot,
               wanted->key, (int)wanted->outcome);
    }
    EXPECT(counters->drops_ttl == model->drops_ttl, "drops_ttl");
    EXPECT(counters->drops_duplicate == model->drops_duplicate, "drops_duplicate");
    EXPECT(counters->drops_backpressure == model->drops_backpressure, "drops_backpressure");
    EXPECT(counters->sent == model->sent + run->notices, "sent");
    EXPECT(run->notices + counters->notices_suppressed ==
               model->drops_ttl + model->drops_duplicate + model->drops_backpressure,
           "%zu notices", run->notices);
    for (size_t i = 0; i < MODEL_PEERS; i++)
        EXPECT(run->actors[i].peer.busy == model->peers[i].busy, "busy");
}

/* Events that were compared are forgotten. */
static void check(struct run *run)
{
    expect_same(run);
    run->event_count = run->model.event_count = 0;
}

/* --- steps --- */

static void subscribe(struct run *run, unsigned peer)
{
    unsigned slot = tape_below(&run->tape, MODEL_SLOTS);
    unsigned topic = slot < MODEL_SUB_IDS ? tape_below(&run->tape, MODEL_TOPICS)
                                          : slot - MODEL_SUB_IDS;
    struct rmp_result result;

    if (tape_below(&run->tape, 3) == 0) {
        rmp_broker_unsubscribe(run->broker, &run->actors[peer].peer, name_of(slot),
                               topic_of(topic));
        model_unsubscribe(&run->model, peer, slot);
        return;
    }
    result = rmp_broker_subscribe(run->broker, &run->actors[peer].peer, name_of(slot),
                                  topic_of(topic), run->time);
    EXPECT(result.outcome == RMP_RESULT_OK, "outcome %d", (int)result.outcome);
    model_subscribe(&run->model, peer, slot, topic);
}

static enum rmp_outcome refusal_of(const struct run *run, const struct rmp_header *header,
                                   enum rmp_kind kind)
{
    if (header->schema_id == 3006 && kind == RMP_KIND_AGENT)
        return RMP_RESULT_FORBIDDEN;
    if (header->ttl_ms == 0 || header->ttl_ms > MODEL_MAX_TTL_MS)
        return RMP_RESULT_INVALID_TTL;
    if (header->created_at_ms + header->ttl_ms <= run->time.epoch_ms)
        return RMP_RESULT_MESSAGE_EXPIRED;
    return RMP_RESULT_OK;
}

static void publish(struct run *run, unsigned peer)
{
    static const uint64_t ttls[] = {1000, 1000, 1000, 1000, 20, 60, 0, 1001};
    char frame[FRAME_MAX];
    struct rmp_publication publication = {.header.created_at_ms = run->time.epoch_ms};
    struct rmp_header *header = &publication.header;
    unsigned topic = tape_below(&run->tape, MODEL_TOPICS), how = tape_byte(&run->tape);
    struct model_message message = {.topic = topic};
    enum rmp_outcome expected;
    struct rmp_result result;
    bool ended, wanted = true;

    message.key = tape_below(&run->tape, MODEL_KEYS);
    header->msg_id = message.key;
    header->ttl_ms = ttls[how % 8];
    header->schema_id = how / 8 % 8 == 7 ? 3006 : 3003;
    header->body_len = how / 64 == 3 ? 1000 : 100 + how / 64;
    if (how / 64 == 2)
        header->created_at_ms -= 30;
    message.bytes = RMP_BODY_OFFSET + header->body_len;
    message.expires_at_ms = header->created_at_ms + header->ttl_ms;
    rmp_header_write_prefixed(frame, header);
    memset(frame + RMP_BODY_OFFSET, (int)message.key, header->body_len);
    publication.topic = topic_of(topic);
    publication.frame = slice_of(frame, message.bytes);
    expected = refusal_of(run, header, run->actors[peer].peer.kind);
    ended = rmp_broker_publish(run->broker, &run->actors[peer].peer, &publication, run->time,
                               message.key, &result);
    if (expected == RMP_RESULT_OK)
        wanted = model_publish(&run->model, peer, &message, &expected);
    else
        run->model.drops_ttl += expected == RMP_RESULT_MESSAGE_EXPIRED;
    EXPECT(ended == wanted, "waits: %d", !ended);
    EXPECT(!ended || result.outcome == expected, "outcome %d, not %d", (int)result.outcome,
           (int)expected);
}

/* A frame with this header; its body is the msg_id, again and again. */
static struct slice frame_of(char frame[FRAME_MAX], const struct rmp_header *header)
{
    rmp_header_write_prefixed(frame, header);
    memset(frame + RMP_BODY_OFFSET, (int)header->msg_id, header->body_len);
    return slice_of(frame, RMP_BODY_OFFSET + header->body_len);
}

/* Some older messages for one subscription, as the history of a run has them. */
static void replay(struct run *run, unsigned peer)
{
    unsigned slot = tape_below(&run->tape, MODEL_SLOTS), count = tape_below(&run->tape, 4);
    const struct model_subscription *subscription = &run->model.peers[peer].subscriptions[slot];
    struct rmp_publication publication = {
        .header = {
            .schema_id = 8, .created_at_ms = run->time.epoch_ms, .ttl_ms = 100, .body_len = 100}};
    char frame[FRAME_MAX];

    if (!subscription->there)
        return;
    publication.topic = topic_of(subscription->topic);
    for (; count > 0 && !model_is_full(&run->model); count--) {
        struct model_message message = {.topic = subscription->topic,
                                        .key = tape_below(&run->tape, MODEL_KEYS)};

        publication.header.msg_id = message.key;
        publication.frame = frame_of(frame, &publication.header);
        message.bytes = publication.frame.len;
        message.expires_at_ms = publication.header.created_at_ms + publication.header.ttl_ms;
        rmp_broker_replay(run->broker, &run->actors[peer].peer, name_of(slot), &publication,
                          run->time);
        model_replay(&run->model, peer, slot, &message);
    }
}

static void change_room(struct run *run, unsigned peer)
{
    unsigned how = tape_below(&run->tape, 8);
    size_t room = how == 7 ? 1000000 : how;

    run->room[peer] = run->model.peers[peer].room = room;
    run->refuses[peer] = run->model.peers[peer].refuses = tape_below(&run->tape, 16) == 15;
    if (!run->actors[peer].peer.busy)
        return;
    rmp_broker_resume(run->broker, &run->actors[peer].peer, run->time);
    model_resume(&run->model, peer);
}

static void pass(struct run *run)
{
    static const unsigned times[] = {0, 1, 10, 49, 50, 500, 29000, 31000};
    unsigned ms = times[tape_below(&run->tape, 8)];

    run->time.now_ms += ms;
    run->time.epoch_ms += ms;
    run->model.now_ms = run->time.now_ms;
    run->model.epoch_ms = run->time.epoch_ms;
    rmp_broker_run(run->broker, run->time);
    model_run(&run->model);
    EXPECT(rmp_broker_deadline(run->broker) > run->time.now_ms, "a deadline that has passed");
}

static struct rmp_broker *create(uint64_t key)
{
    const struct rmp_broker_options options = {.key = {key, 2},
                                               .max_ttl_ms = MODEL_MAX_TTL_MS,
                                               .queue_max = MODEL_QUEUE_MAX,
                                               .queue_bytes = MODEL_QUEUE_BYTES};
    struct rmp_broker *broker = rmp_broker_create(&options);

    EXPECT(broker != NULL, "no memory");
    return broker;
}

static void join_all(struct run *run)
{
    for (unsigned i = 0; i < MODEL_PEERS; i++)
        rmp_broker_join(run->broker, &run->actors[i].peer, &actor_ops, RMP_KIND_AGENT);
    rmp_broker_join(run->broker, &run->watcher.peer, &watcher_ops, RMP_KIND_AGENT);
}

static void archive_broker(struct archive *archive, struct run *run)
{
    struct rmp_archive state;

    rmp_archive_begin(&state, archive, run->broker);
    for (unsigned i = 0; i < MODEL_PEERS; i++)
        rmp_archive_peer(&state, &run->actors[i].peer);
    rmp_archive_peer(&state, &run->watcher.peer);
    rmp_archive_topics(&state);
    rmp_archive_queues(&state);
    rmp_archive_end(&state);
}

/* Another broker loads the archive. Returns whether it could. */
static bool load(struct run *run, struct slice bytes)
{
    struct archive archive;
    bool loaded;

    rmp_broker_free(run->broker);
    run->broker = create(run->time.now_ms);
    join_all(run);
    archive_begin_loading(&archive, bytes, -1);
    archive_broker(&archive, run);
    loaded = archive_ok(&archive);
    EXPECT(archive.at <= bytes.len, "read %zu of %zu bytes", archive.at, bytes.len);
    archive_free(&archive);
    return loaded;
}

/* One number of the archive is another one, or the archive is cut. */
static void damage(struct run *run, struct archive *archive)
{
    static const uint64_t values[] = {0, 1, 2, 3, 8, UINT32_MAX, INT64_MAX, UINT64_MAX};
    unsigned how = tape_below(&run->tape, 9);
    size_t at = (tape_byte(&run->tape) << 8 | tape_byte(&run->tape)) % archive->len;
    char *bytes = fuzz_copy((const uint8_t *)archive->data, archive->len);

    if (how < 8 && at + sizeof *values <= archive->len)
        memcpy(bytes + at, &values[how], sizeof *values);
    (void)load(run, slice_of(bytes, how < 8 ? archive->len : at));
    free(bytes);
}

static void hand_over(struct run *run)
{
    struct archive archive;

    archive_begin_saving(&archive);
    archive_broker(&archive, run);
    EXPECT(archive_ok(&archive), "%s", archive.problem);
    damage(run, &archive);
    EXPECT(load(run, slice_of(archive.data, archive.len)), "a good archive is refused");
    archive_free(&archive);
}

static void leave_and_join(struct run *run, unsigned peer)
{
    struct rmp_peer *member = &run->actors[peer].peer;
    unsigned kind = tape_below(&run->tape, 4);

    if (kind == 3) {
        hand_over(run);
        return;
    }
    rmp_broker_leave(run->broker, member);
    model_leave(&run->model, peer);
    rmp_broker_join(run->broker, member, &actor_ops, (enum rmp_kind)kind);
}

static void step(struct run *run)
{
    unsigned what = tape_below(&run->tape, 16), peer = tape_below(&run->tape, MODEL_PEERS);

    if (run->traces)
        fprintf(stderr, "step %u of peer %u at %llu\n", what, peer,
                (unsigned long long)run->time.now_ms);
    if (what < 8)
        publish(run, peer);
    else if (what < 11)
        subscribe(run, peer);
    else if (what < 12)
        change_room(run, peer);
    else if (what < 13)
        replay(run, peer);
    else if (what < 15)
        pass(run);
    else
        leave_and_join(run, peer);
    check(run);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct run run;

    memset(&run, 0, sizeof run);
    run.tape = (struct tape){data, data + size};
    run.traces = fuzz_traces();
    run.time = (struct rmp_time){.epoch_ms = EPOCH_MS, .now_ms = 1};
    run.model.epoch_ms = EPOCH_MS;
    run.model.now_ms = 1;
    run.broker = create(1);
    for (unsigned i = 0; i < MODEL_PEERS; i++) {
        run.actors[i].run = &run;
        run.actors[i].number = i;
        run.room[i] = run.model.peers[i].room = 1000000;
    }
    run.watcher.run = &run;
    join_all(&run);
    rmp_broker_subscribe(run.broker, &run.watcher.peer, name_of(0),
                         slice_of(RMP_TOPIC_DROPS, strlen(RMP_TOPIC_DROPS)), run.time);
    for (int i = 0; i < STEPS_MAX && !tape_over(&run.tape) && !model_is_full(&run.model); i++)
        step(&run);
    rmp_broker_free(run.broker);
    return 0;
}
