#include "build_config.h"

#include "federation/places.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bus/deliver.h"
#include "bus/origins.h"
#include "federation/link_sessions.h"
#include "federation/place_text.h"
#include "federation/remotes.h"
#include "router/waiting.h"
#include "supervisor/pools.h"
#include "supervisor/workers.h"

#define ANSWER_MS 3000   /* a node that has the session, and is silent for so long */
#define KNOWN_MS 1000    /* what was answered holds for so long */
#define SETTLED_MS 2000  /* a session that is older by so much stays, whatever the ids are */
#define SPREAD_MS 100    /* in a cluster, a subscription is known everywhere after that */
#define CLAIMED_AGAIN 30 /* seconds, or fewer */
#define DECLINED_MAX 16
#define CONTEXT "nats"

enum place_state {
    PLACE_ASKED,     /* nothing is known yet */
    PLACE_NEW,       /* no node has it */
    PLACE_ELSEWHERE, /* `node` has it */
    PLACE_SILENT,    /* the node that has it does not answer */
    PLACE_HERE       /* this node has it */
};

/* A session that was asked for, or that this node has. Where it may begin here, the node subscribes
 * first, and asks then: of two that do so at the same time each hears the other, or the later one
 * the earlier one. The session is that of the lower id. */
struct held_session {
    struct session_claim base; /* PLACE_HERE: the session's */
    struct list_node link;     /* places->asked, or places->here */
    struct list waiting;       /* peers */
    struct nats_hub *hub;
    struct session *session; /* PLACE_HERE */
    struct nats_subscription subscription;
    const struct group *pool;
    uint64_t number, hash;
    int64_t since_ms; /* when it was asked for, answered, or has begun */
    enum place_state state;
    unsigned declined;
    int64_t again_ms; /* when it is asked for again, after the subscription has spread; 0: not */
    bool has_spread;
    char node[NATS_NODE_ID_LEN + 1];
    char *subject;
    size_t len;
    char id[];
};

static struct nats_hub *hub_of(struct placement *placement)
{
    return list_entry(placement, struct nats_hub, places.placement);
}

static int64_t now_ms(const struct nats_hub *hub)
{
    return stdio_bus_event_loop_now_ms(hub->bus->loop);
}

static struct pool *pool_of_group(const struct group *group)
{
    return list_entry(group, struct pool, group);
}

/* --- all of them --- */

struct place_key {
    const struct group *pool;
    struct slice id;
};

static bool is_of(const void *item, const void *key)
{
    const struct held_session *place = item;
    const struct place_key *wanted = key;

    return place->pool == wanted->pool && slice_equal(slice_of(place->id, place->len), wanted->id);
}

static bool has_number(const void *item, const void *key)
{
    const struct held_session *place = item;
    const uint64_t *number = key;

    return place->number == *number;
}

static struct held_session *find_place(const struct nats_places *places, const struct group *pool,
                                       struct slice id)
{
    struct place_key key = {pool, id};

    return hash_table_find(&places->by_session, place_hash(id), is_of, &key);
}

static void release(struct held_session *place)
{
    waiting_release_all(&place->hub->bus->router, &place->waiting);
}

static void forget(struct held_session *place)
{
    struct nats_places *places = &place->hub->places;

    release(place);
    broker_unsubscribe(&place->hub->broker, &place->subscription);
    if (place->session != NULL) {
        place->session->claim = NULL;
        places->here_count--;
    }
    hash_table_remove(&places->by_session, place->hash, place);
    hash_table_remove(&places->by_number, place->number, place);
    list_remove(&place->link);
    free(place->subject);
    free(place);
}

static bool enter(struct held_session *place)
{
    struct nats_places *places = &place->hub->places;

    if (hash_table_insert(&places->by_session, place->hash, place) != STDIO_BUS_OK)
        return false;
    if (hash_table_insert(&places->by_number, place->number, place) == STDIO_BUS_OK)
        return true;
    hash_table_remove(&places->by_session, place->hash, place);
    return false;
}

static void came(struct nats_subscription *subscription, const struct nats_frame *frame);

/* Where the session may begin here, it is subscribed. NULL: out of memory. */
static struct held_session *add_place(struct nats_hub *hub, const struct group *pool,
                                      struct slice id)
{
    struct held_session *place = calloc(1, sizeof *place + id.len);
    bool may_begin = pool_of_group(pool)->config->is_exported;

    if (place == NULL)
        return NULL;
    list_init(&place->waiting);
    place->hub = hub;
    place->number = ++hub->links.last_number;
    place->hash = place_hash(id);
    place->pool = pool;
    place->since_ms = now_ms(hub);
    place->len = id.len;
    if (id.len > 0)
        memcpy(place->id, id.data, id.len);
    place->subject = place_subject(hub, pool->id, place->hash);
    place->subscription.subject = place->subject;
    place->subscription.message = came;
    if (place->subject == NULL || !enter(place)) {
        free(place->subject);
        free(place);
        return NULL;
    }
    list_append(&hub->places.asked, &place->link);
    if (!may_begin || broker_subscribe(&hub->broker, &place->subscription) == STDIO_BUS_OK)
        return place;
    forget(place);
    return NULL;
}

/* --- what other nodes have --- */

static void settle(struct held_session *place, enum place_state state)
{
    place->state = state;
    place->again_ms = 0;
    place->since_ms = now_ms(place->hub);
    if (state != PLACE_NEW)
        broker_unsubscribe(&place->hub->broker, &place->subscription);
    release(place);
}

/* position: whether the session may begin here. */
static void ask(const struct held_session *place)
{
    struct nats_hub *hub = place->hub;
    char reply[NODES_SUBJECT_MAX], text[PLACE_TEXT_MAX];
    const struct nats_head head = {
        .subject = slice_of_text(place->subject),
        .reply = slice_of_text(node_subject(reply, hub, hub->links.id, place->number))};
    const struct link_message message = {
        .kind = LINK_ASK,
        .position = place->subscription.sid != 0,
        .payload = place_text_write(text, hub, slice_of(place->id, place->len))};

    node_send(hub, &head, &message);
}

static void answer(struct nats_hub *hub, struct slice reply, enum link_kind kind)
{
    char address[NODES_ADDRESS_MAX];
    const struct link_message message = {.kind = kind,
                                         .payload = node_address_write(address, hub, 0)};

    node_send(hub, &(struct nats_head){.subject = reply}, &message);
}

static void start_spread(struct nats_hub *hub, int64_t ms)
{
    if (!timer_started(&hub->places.spread))
        stdio_bus_event_loop_start_timer(hub->bus->loop, &hub->places.spread, ms > 0 ? ms : 1);
}

static void spread(void *user_data)
{
    struct nats_hub *hub = user_data;
    int64_t now = now_ms(hub);
    struct list_node *node, *following;

    list_each(&hub->places.asked, node, following) {
        struct held_session *place = list_entry(node, struct held_session, link);

        if (place->state != PLACE_ASKED || place->again_ms == 0)
            continue;
        if (place->again_ms > now) {
            start_spread(hub, place->again_ms - now);
            continue;
        }
        place->again_ms = 0;
        ask(place);
    }
}

/* No node has answered. In a cluster, one that asks at the same time may not have been heard. */
static void found_none(struct held_session *place)
{
    struct nats_hub *hub = place->hub;

    if (!hub->broker.info.clustered || place->subscription.sid == 0 || place->has_spread) {
        settle(place, PLACE_NEW);
        return;
    }
    place->has_spread = true;
    place->again_ms = now_ms(hub) + SPREAD_MS;
    start_spread(hub, SPREAD_MS);
}

/* DECLINE: another node of a higher id gives way, or it has another session of that hash. */
void places_answered(struct nats_hub *hub, uint64_t number, const struct link_message *message)
{
    struct held_session *place = hash_table_find(&hub->places.by_number, number, has_number,
                                                 &number);
    struct node_address node;

    if (place == NULL || place->state != PLACE_ASKED)
        return;
    if (message == NULL) {
        found_none(place);
    } else if (message->kind == LINK_DECLINE) {
        if (place->declined++ < DECLINED_MAX)
            ask(place);
        else
            settle(place, PLACE_NEW);
    } else if (node_address_read(&node, message->payload)) {
        memcpy(place->node, node.id, sizeof place->node);
        settle(place, PLACE_ELSEWHERE);
    }
}

/* Where no pool is named, and there is one alone that serves such messages, it is that. */
static struct group *only_shared(struct router *router)
{
    struct group *only = NULL;

    for (struct list_node *node = router->pools.head.next; node != &router->pools.head;
         node = node->next) {
        struct group *group = list_entry(node, struct group, link);

        if (group->mode.clients != CLIENTS_SHARED || group->stateless)
            continue;
        if (only != NULL)
            return NULL;
        only = group;
    }
    return only;
}

static bool find(struct placement *placement, struct group *group, struct slice id,
                 struct place *to)
{
    struct nats_hub *hub = hub_of(placement);
    const struct group *pool = group->id.data != NULL ? group : only_shared(&hub->bus->router);
    struct held_session *place;

    if (pool == NULL || !broker_is_ready(&hub->broker))
        return true;
    place = find_place(&hub->places, pool, id);
    if (place == NULL) {
        place = add_place(hub, pool, id);
        if (place == NULL)
            return false;
        ask(place);
        hub->places.counters.asked++;
        nodes_start_tick(hub);
    }
    if (place->state == PLACE_ASKED) {
        *to = (struct place){.kind = PLACE_LATER, .waiting = &place->waiting};
    } else if (place->state == PLACE_SILENT) {
        *to = (struct place){.kind = PLACE_UNKNOWN,
                             .reason = "the node that has the session does not answer: try again"};
    } else if (place->state == PLACE_ELSEWHERE) {
        to->kind = PLACE_WORKER;
        to->worker = remotes_passage(hub, pool, place->node);
        return to->worker != NULL;
    }
    return true;
}

/* --- what this node has --- */

static void publish_claim(const struct held_session *place)
{
    struct nats_hub *hub = place->hub;
    char text[PLACE_TEXT_MAX];
    const struct link_message message = {
        .kind = LINK_CLAIM,
        .position = (uint64_t)(now_ms(hub) - place->since_ms),
        .payload = place_text_write(text, hub, slice_of(place->id, place->len))};

    node_send(hub, &(struct nats_head){.subject = slice_of_text(place->subject)}, &message);
}

/* Servers of NATS that were apart, and are together again, tell nobody: a session that has begun at
 * two nodes meanwhile is found by this. */
static void claim_again(struct nats_places *places)
{
    size_t count = (places->here_count + CLAIMED_AGAIN - 1) / CLAIMED_AGAIN;

    for (; count > 0; count--) {
        struct held_session *place = list_entry(places->here.head.next, struct held_session, link);

        list_remove(&place->link);
        list_append(&places->here, &place->link);
        publish_claim(place);
    }
}

static void ended(struct session_claim *base)
{
    forget(list_entry(base, struct held_session, base));
}

/* What the session's client has asked of the worker since it began: any of it may be of this
 * session. */
static void fail_requests(const struct held_session *place)
{
    struct stdio_bus *bus = place->hub->bus;
    const struct session *session = place->session;
    struct list_node *node, *following;

    bus_read_clock(bus);
    list_each(&session->owner->asked, node, following) {
        struct request *request = list_entry(node, struct request, in_asker);

        if (request->state != REQUEST_ACTIVE || request->answerer != session->worker ||
            request->asked_ms < place->since_ms)
            continue;
        deliver_error(endpoint_of_peer(request->asker), request->asker_id, JSONRPC_SERVER_ERROR,
                      "the session has begun on another node at the same time: try again");
        waiting_abandon(&bus->router, request, OUTCOME_CANCELLED);
    }
}

static void give_up(struct held_session *place)
{
    struct nats_hub *hub = place->hub;

    log_repeated(hub->bus->log, LOG_LEVEL_WARN, CONTEXT, LOG_NO_SOURCE,
                 "a session of pool %.*s has begun on another node, too: it stays there",
                 (int)place->pool->id.len, place->pool->id.data);
    hub->places.counters.yielded++;
    fail_requests(place);
    session_remove(&hub->bus->router.sessions, place->session); /* and the place */
}

static void tell_to_yield(const struct held_session *place, const char *node)
{
    char text[PLACE_TEXT_MAX];

    node_tell(place->hub, node, 0, LINK_YIELD,
              slice_join(text, place->pool->id, '\n', slice_of(place->id, place->len)));
}

/* Another node has begun the same session, which servers of NATS allow that learn late of a
 * subscription. The older one stays; at the same age, that of the lower id. */
static void compare(struct held_session *place, const struct node_address *other, uint64_t age_ms)
{
    uint64_t mine_ms = (uint64_t)(now_ms(place->hub) - place->since_ms);
    bool is_mine = strcmp(place->hub->links.id, other->id) < 0;

    if (mine_ms > age_ms + SETTLED_MS || age_ms > mine_ms + SETTLED_MS)
        is_mine = mine_ms > age_ms;
    if (is_mine)
        tell_to_yield(place, other->id);
    else
        give_up(place);
}

/* Another node asks for what this one asks for, or has. */
static void asked(struct held_session *place, const struct node_address *other, bool may_begin,
                  struct slice reply)
{
    enum link_kind kind = LINK_HAS;

    if (place->state == PLACE_ASKED && may_begin && strcmp(other->id, place->hub->links.id) < 0) {
        memcpy(place->node, other->id, sizeof place->node);
        settle(place, PLACE_ELSEWHERE);
        kind = LINK_DECLINE;
    }
    answer(place->hub, reply, kind);
}

static void came(struct nats_subscription *subscription, const struct nats_frame *frame)
{
    struct held_session *place = list_entry(subscription, struct held_session, subscription);
    struct nats_hub *hub = place->hub;
    struct link_message message;
    struct node_address other;
    struct slice id;
    bool is_it;

    if (!link_message_read(&message, frame->payload) ||
        !place_text_read(&other, &id, message.payload) || strcmp(other.id, hub->links.id) == 0 ||
        !slice_is(frame->line.subject, place->subject))
        return;
    is_it = slice_equal(id, slice_of(place->id, place->len));
    if (message.kind == LINK_CLAIM && is_it && place->state == PLACE_HERE)
        compare(place, &other, message.position);
    else if (message.kind == LINK_ASK && frame->line.reply.data != NULL && is_it)
        asked(place, &other, message.position != 0, frame->line.reply);
    else if (message.kind == LINK_ASK && frame->line.reply.data != NULL)
        answer(hub, frame->line.reply, LINK_DECLINE);
}

void places_yield(struct nats_hub *hub, const struct link_message *message)
{
    struct slice id = message->payload, pool;
    struct session *session;

    if (!slice_cut(&id, '\n', &pool))
        return;
    session = sessions_find(&hub->bus->router.sessions, id);
    if (session != NULL && session->claim != NULL && slice_equal(session->worker->pool->id, pool))
        give_up(list_entry(session->claim, struct held_session, base));
}

/* At a passage, or a link, the node at its other end has it. */
static bool is_here(const struct session *session)
{
    const struct worker *worker = list_entry(endpoint_of_peer(session->worker), struct worker,
                                             stream.endpoint);

    return worker->program.dialer == NULL && !worker->stream.endpoint.peer.is_passage &&
           session_id(session).len == session->id_len;
}

static struct held_session *place_of(struct nats_hub *hub, const struct session *session)
{
    const struct group *pool = session->worker->pool;
    struct held_session *place = find_place(&hub->places, pool, session_id(session));

    if (place == NULL)
        return add_place(hub, pool, session_id(session));
    if (place->subscription.sid == 0 &&
        broker_subscribe(&hub->broker, &place->subscription) != STDIO_BUS_OK)
        return NULL;
    return place;
}

static void keep(struct nats_hub *hub, struct session *session)
{
    struct held_session *place;

    if (session->claim != NULL || !is_here(session))
        return;
    place = place_of(hub, session);
    if (place == NULL) {
        log_repeated(hub->bus->log, LOG_LEVEL_ERROR, CONTEXT, slice_of_text("sessions"),
                     "out of memory: other nodes do not find a session");
        return;
    }
    place->base.ended = ended;
    place->session = session;
    place->state = PLACE_HERE;
    place->since_ms = now_ms(hub);
    session->claim = &place->base;
    list_remove(&place->link);
    list_append(&hub->places.here, &place->link);
    hub->places.here_count++;
    publish_claim(place);
    release(place);
    nodes_start_tick(hub);
}

static void began(struct placement *placement, struct session *session)
{
    if (session->worker->is_passage)
        link_sessions_joined(session);
    else
        keep(hub_of(placement), session);
}

/* --- the connection to NATS --- */

/* Meanwhile another node may have begun one of the sessions. */
static void connected(struct broker_watcher *watcher)
{
    struct nats_hub *hub = list_entry(watcher, struct nats_hub, places.watcher);
    struct list_node *node, *following;

    list_each(&hub->places.here, node, following)
        publish_claim(list_entry(node, struct held_session, link));
}

/* What is served here goes on. */
static void lost(struct broker_watcher *watcher)
{
    struct nats_hub *hub = list_entry(watcher, struct nats_hub, places.watcher);
    struct list_node *node, *following;

    list_each(&hub->places.asked, node, following) {
        struct held_session *place = list_entry(node, struct held_session, link);

        if (place->state == PLACE_ASKED)
            settle(place, PLACE_NEW);
    }
}

/* A question may reach a node that has just unsubscribed. */
static void look_at(struct held_session *place, int64_t now)
{
    int64_t age_ms = now - place->since_ms;

    if (place->again_ms != 0)
        return;
    if (place->state == PLACE_ASKED && age_ms < ANSWER_MS)
        ask(place);
    else if (place->state == PLACE_ASKED)
        settle(place, PLACE_SILENT);
    else if (age_ms >= KNOWN_MS)
        forget(place);
}

bool places_tick(struct nats_hub *hub)
{
    int64_t now = now_ms(hub);
    struct list_node *node, *following;

    list_each(&hub->places.asked, node, following)
        look_at(list_entry(node, struct held_session, link), now);
    if (broker_is_ready(&hub->broker))
        claim_again(&hub->places);
    return pools_tidy_passages(hub->bus) || !list_empty(&hub->places.asked) ||
           hub->places.here_count > 0;
}

/* --- pools --- */

static void each_session(struct pool *pool, void (*fn)(struct session *session))
{
    struct list_node *node, *following, *at, *next;

    list_each(&pool->workers, node, following) {
        struct peer *peer = &list_entry(node, struct worker, link)->stream.endpoint.peer;

        list_each(&peer->sessions, at, next)
            fn(list_entry(at, struct session, in_worker));
    }
}

static void end_claim(struct session *session)
{
    if (session->claim != NULL)
        session->claim->ended(session->claim);
}

/* One that is there already. */
static void claim(struct session *session)
{
    keep(hub_of(session->worker->pool->placement), session);
}

/* NULL: it serves no other node, and no other one serves it. */
static struct placement *wanted_placement(struct nats_places *places, const struct pool *pool)
{
    const struct pool_config *config = pool->config;
    enum pool_clients clients = pool->group.mode.clients;

    if (pool->fate != POOL_SERVES || (!config->is_exported && !config->is_remote))
        return NULL;
    if (clients == CLIENTS_SHARED && pool->group.other_era == NULL)
        return &places->placement;
    return config->is_remote && clients != CLIENTS_EXCLUSIVE ? &places->leaving : NULL;
}

static void set_placement(struct nats_places *places, struct pool *pool)
{
    bool has_any = pool->group.placement != NULL;

    pool->group.placement = wanted_placement(places, pool);
    if (pool->group.placement == &places->placement)
        each_session(pool, claim);
    else if (has_any)
        each_session(pool, end_claim);
}

static void forget_all(struct list *list)
{
    struct list_node *node, *following;

    list_each(list, node, following)
        forget(list_entry(node, struct held_session, link));
}

void places_renew(struct nats_hub *hub)
{
    struct router *router = &hub->bus->router;
    struct list_node *node, *following;
    const struct group *only;

    forget_all(&hub->places.asked);
    list_each(&hub->bus->pools, node, following) {
        struct pool *pool = list_entry(node, struct pool, link);

        set_placement(&hub->places, pool);
        router->clocked |= pool->group.placement == &hub->places.placement;
    }
    only = only_shared(router);
    router->all.placement = only != NULL ? only->placement : NULL;
}

void places_end(struct nats_hub *hub)
{
    struct list_node *node, *following;

    list_each(&hub->bus->pools, node, following)
        list_entry(node, struct pool, link)->group.placement = NULL;
    hub->bus->router.all.placement = NULL;
    stdio_bus_event_loop_stop_timer(hub->bus->loop, &hub->places.spread);
    forget_all(&hub->places.asked);
    forget_all(&hub->places.here);
    hash_table_free(&hub->places.by_session);
    hash_table_free(&hub->places.by_number);
}

/* --- the beginning --- */

void places_create(struct nats_hub *hub)
{
    struct nats_places *places = &hub->places;

    timer_init(&places->spread, spread, hub);
    list_init(&places->asked);
    list_init(&places->here);
    places->placement =
        (struct placement){.find = find, .began = began, .left = link_sessions_left};
    link_sessions_init(&places->leaving);
    places->watcher = (struct broker_watcher){.ready = connected, .lost = lost};
    broker_watch(&hub->broker, &places->watcher);
}
