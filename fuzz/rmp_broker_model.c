#include "build_config.h"

#include "rmp_broker_model.h"

#include "common.h"

static void add_event(struct model *model, struct model_event event)
{
    EXPECT(model->event_count < MODEL_EVENTS, "the model is full");
    model->events[model->event_count++] = event;
}

bool model_is_full(const struct model *model)
{
    bool full = model->wait_count == MODEL_WAITS ||
                model->event_count > MODEL_EVENTS - MODEL_PEERS * (MODEL_ENTRIES + MODEL_WAITS);

    for (int i = 0; i < MODEL_PEERS; i++)
        full |= model->peers[i].count > MODEL_ENTRIES - MODEL_SLOTS;
    return full;
}

/* --- queues --- */

static bool has_room(const struct model_peer *peer, unsigned slot, size_t bytes)
{
    size_t queued = 0, queued_bytes = 0;

    for (size_t i = 0; i < peer->count; i++) {
        const struct model_entry *entry = &peer->queue[i];

        if (entry->wait < 0) {
            queued += entry->slot == slot;
            queued_bytes += entry->bytes;
        }
    }
    return queued < MODEL_QUEUE_MAX &&
           (queued_bytes == 0 || queued_bytes + bytes <= MODEL_QUEUE_BYTES);
}

static void settle(struct model *model, struct model_entry *entry)
{
    struct model_wait *wait = &model->waits[entry->wait];

    if (--wait->open == 0) {
        wait->waits = false;
        model->ended[model->ended_count++] = entry->wait;
    }
    entry->wait = -1;
}

static void fill_places(struct model *model, struct model_peer *peer)
{
    for (size_t i = 0; i < peer->count; i++) {
        struct model_entry *entry = &peer->queue[i];

        if (entry->wait >= 0 && has_room(peer, entry->slot, entry->bytes))
            settle(model, entry);
    }
}

static void take_out(struct model *model, struct model_peer *peer, size_t at)
{
    if (peer->queue[at].wait >= 0)
        settle(model, &peer->queue[at]);
    for (size_t i = at + 1; i < peer->count; i++)
        peer->queue[i - 1] = peer->queue[i];
    peer->count--;
}

/* The entry does not reach its subscription. */
static void miss(struct model *model, struct model_peer *peer, size_t at, enum rmp_outcome outcome)
{
    struct model_entry *entry = &peer->queue[at];

    if (entry->wait >= 0 && model->waits[entry->wait].outcome == RMP_RESULT_OK)
        model->waits[entry->wait].outcome = outcome;
    peer->subscriptions[entry->slot].known[entry->key] = false;
    if (outcome == RMP_RESULT_MESSAGE_EXPIRED)
        model->drops_ttl++;
    else
        model->drops_backpressure++;
    take_out(model, peer, at);
}

static void deliver(struct model *model, unsigned peer, unsigned slot, unsigned key)
{
    add_event(model, (struct model_event){MODEL_DELIVERED, peer, slot, key, RMP_RESULT_OK});
    model->peers[peer].room--;
    model->sent++;
}

void model_resume(struct model *model, unsigned number)
{
    struct model_peer *peer = &model->peers[number];

    peer->busy = false;
    while (peer->count > 0) {
        if (model->epoch_ms >= peer->queue[0].expires_at_ms) {
            miss(model, peer, 0, RMP_RESULT_MESSAGE_EXPIRED);
        } else if (peer->refuses) {
            peer->stalled = false;
            miss(model, peer, 0, RMP_RESULT_BACKPRESSURE_TIMEOUT);
        } else if (peer->room == 0) {
            peer->busy = true;
            break;
        } else {
            peer->stalled = false;
            deliver(model, number, peer->queue[0].slot, peer->queue[0].key);
            take_out(model, peer, 0);
        }
    }
    fill_places(model, peer);
}

/* --- subscriptions --- */

void model_unsubscribe(struct model *model, unsigned number, unsigned slot)
{
    struct model_peer *peer = &model->peers[number];

    if (!peer->subscriptions[slot].there)
        return;
    peer->subscriptions[slot].there = false;
    for (size_t i = peer->count; i-- > 0;) {
        /* From the front, so that waits end in their order. */
        size_t at = 0;

        while (at < peer->count && peer->queue[at].slot != slot)
            at++;
        if (at == peer->count)
            break;
        take_out(model, peer, at);
    }
    fill_places(model, peer);
}

void model_subscribe(struct model *model, unsigned number, unsigned slot, unsigned topic)
{
    struct model_subscription *subscription = &model->peers[number].subscriptions[slot];

    if (subscription->there && subscription->topic == topic)
        return;
    model_unsubscribe(model, number, slot);
    *subscription =
        (struct model_subscription){.there = true, .topic = topic, .created = ++model->created};
}

void model_leave(struct model *model, unsigned number)
{
    struct model_peer *peer = &model->peers[number];

    while (peer->count > 0)
        take_out(model, peer, 0);
    for (int i = 0; i < model->wait_count; i++) {
        if (model->waits[i].publisher == (int)number)
            model->waits[i].publisher = -1;
    }
    *peer = (struct model_peer){.room = peer->room, .refuses = peer->refuses};
}

/* --- publications --- */

struct offering {
    struct model *model;
    unsigned publisher;
    const struct model_message *message;
    int wait; /* -1: none */
    bool dropped;
};

static int begin_wait(struct offering *offering)
{
    struct model *model = offering->model;

    if (offering->wait < 0) {
        offering->wait = model->wait_count++;
        model->waits[offering->wait] =
            (struct model_wait){.publisher = (int)offering->publisher,
                                .token = offering->message->key,
                                .deadline_ms = model->now_ms + MODEL_WAIT_MS,
                                .waits = true};
    }
    return offering->wait;
}

static void enqueue(struct offering *offering, struct model_peer *peer, unsigned slot)
{
    const struct model_message *message = offering->message;
    struct model_entry entry = {.slot = slot,
                                .key = message->key,
                                .bytes = message->bytes,
                                .expires_at_ms = message->expires_at_ms,
                                .wait = -1};

    if (!has_room(peer, slot, message->bytes)) {
        if (peer->stalled) {
            peer->subscriptions[slot].known[message->key] = false;
            offering->model->drops_backpressure++;
            offering->dropped = true;
            return;
        }
        entry.wait = begin_wait(offering);
        offering->model->waits[entry.wait].open++;
    }
    peer->queue[peer->count++] = entry;
}

static void offer(struct offering *offering, unsigned number, unsigned slot)
{
    struct model *model = offering->model;
    struct model_peer *peer = &model->peers[number];
    struct model_subscription *subscription = &peer->subscriptions[slot];
    unsigned key = offering->message->key;
    bool is_known = subscription->known[key] &&
                    model->now_ms - subscription->seen_ms[key] < MODEL_HORIZON_MS;

    subscription->known[key] = true;
    subscription->seen_ms[key] = model->now_ms;
    if (is_known) {
        model->drops_duplicate++;
    } else if (peer->busy) {
        enqueue(offering, peer, slot);
    } else if (peer->refuses) {
        subscription->known[key] = false;
        model->drops_backpressure++;
        offering->dropped = true;
    } else if (peer->room == 0) {
        peer->busy = true;
        enqueue(offering, peer, slot);
    } else {
        deliver(model, number, slot, key);
    }
}

bool model_publish(struct model *model, unsigned publisher, const struct model_message *message,
                   enum rmp_outcome *outcome)
{
    struct offering offering = {
        .model = model, .publisher = publisher, .message = message, .wait = -1};
    uint64_t last = 0;

    /* The subscriptions of the topic, the oldest first. */
    for (;;) {
        unsigned number = 0, slot = 0;
        uint64_t next = UINT64_MAX;

        for (unsigned i = 0; i < MODEL_PEERS * MODEL_SLOTS; i++) {
            const struct model_subscription *subscription =
                &model->peers[i / MODEL_SLOTS].subscriptions[i % MODEL_SLOTS];

            if (subscription->there && subscription->topic == message->topic &&
                subscription->created > last && subscription->created < next) {
                next = subscription->created;
                number = i / MODEL_SLOTS;
                slot = i % MODEL_SLOTS;
            }
        }
        if (next == UINT64_MAX)
            break;
        offer(&offering, number, slot);
        last = next;
    }
    *outcome = offering.dropped ? RMP_RESULT_BACKPRESSURE_TIMEOUT : RMP_RESULT_OK;
    if (offering.wait >= 0)
        model->waits[offering.wait].outcome = *outcome;
    return offering.wait < 0;
}

void model_replay(struct model *model, unsigned number, unsigned slot,
                  const struct model_message *message)
{
    struct model_peer *peer = &model->peers[number];

    if (!peer->busy && peer->refuses) {
        model->drops_backpressure++;
        peer->subscriptions[slot].known[message->key] = false;
        return;
    }
    if (!peer->busy && peer->room > 0) {
        deliver(model, number, slot, message->key);
        return;
    }
    peer->busy = true;
    peer->queue[peer->count++] = (struct model_entry){.slot = slot,
                                                      .key = message->key,
                                                      .bytes = message->bytes,
                                                      .expires_at_ms = message->expires_at_ms,
                                                      .wait = -1};
}

/* --- time --- */

static void end_wait(struct model *model, int number)
{
    struct model_wait *wait = &model->waits[number];

    wait->outcome = RMP_RESULT_BACKPRESSURE_TIMEOUT;
    for (int i = 0; i < MODEL_PEERS; i++) {
        struct model_peer *peer = &model->peers[i];

        for (size_t at = peer->count; at-- > 0;) {
            if (peer->queue[at].wait == number) {
                peer->stalled = true;
                miss(model, peer, at, RMP_RESULT_BACKPRESSURE_TIMEOUT);
            }
        }
    }
}

void model_run(struct model *model)
{
    for (int i = 0; i < model->wait_count; i++) {
        if (model->waits[i].waits && model->waits[i].deadline_ms <= model->now_ms)
            end_wait(model, i);
    }
    for (size_t i = 0; i < model->ended_count; i++) {
        const struct model_wait *wait = &model->waits[model->ended[i]];

        if (wait->publisher >= 0)
            add_event(model, (struct model_event){MODEL_ENDED, (unsigned)wait->publisher, 0,
                                                  wait->token, wait->outcome});
    }
    model->ended_count = 0;
}
