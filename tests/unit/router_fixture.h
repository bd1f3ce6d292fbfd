/* For the tests of the router: a router with peers, messages made by hand, and the decisions about
 * them. The router's tables are compiled into the test with an allocator that fails on demand. */
#ifndef CHECK_ROUTER_FIXTURE_H
#define CHECK_ROUTER_FIXTURE_H

#include "base/error.h"
#include "quick_assert.h"
#include "router/departure.h"
#include "router/to_client.h"
#include "router/to_worker.h"
#include "router/waiting.h"
#include "suite.h"
#include "table_fixture.h"

#define malloc failing_malloc
#define calloc failing_calloc
#define realloc failing_realloc
#include "base/hash_table.c"
#include "router/group.c"
#include "router/pending.c"
#include "router/router.c"
#include "router/sessions.c"
#undef malloc
#undef calloc
#undef realloc

#define PEERS_MAX 16
#define REPORTED_MAX 64
#define RELEASES_MAX 1000 /* more in a row: the router releases peers without end */

struct reported {
    struct peer *asker;
    char id[16];
};

static struct limits limits;
static struct router router;
static struct peer clients[PEERS_MAX], workers[PEERS_MAX];
static struct group pools[4];
static int client_count, worker_count, pool_count;
static struct message last_message[2 * PEERS_MAX]; /* by peer_index */
static struct reported reported[REPORTED_MAX];     /* by the unanswered callback */
static int reported_count;

static inline void set_up(void)
{
    const struct siphash_key key = {5, 6};
    const struct limits defaults = LIMITS_DEFAULT;

    limits = defaults;
    router_init(&router, &limits, &key);
    memset(clients, 0, sizeof clients);
    memset(workers, 0, sizeof workers);
    client_count = worker_count = pool_count = reported_count = 0;
}

static inline void tear_down(void)
{
    allocations_left = -1;
    router_free(&router);
    while (pool_count > 0)
        group_free(&pools[--pool_count]);
}

/* As set_up, with these limits. */
static inline void limit_to(size_t max_sessions, size_t max_pending_requests)
{
    const struct siphash_key key = {5, 6};

    router_free(&router);
    limits.max_sessions = max_sessions;
    limits.max_pending_requests = max_pending_requests;
    router_init(&router, &limits, &key);
}

static inline struct slice text(const char *string)
{
    return slice_of(string, strlen(string));
}

/* The next one in `workers`, ready. */
static inline struct peer *add_worker(struct group *pool)
{
    struct peer *worker = &workers[worker_count++];

    ck_assert_int_eq(router_add_worker(&router, worker, pool), STDIO_BUS_OK);
    ck_assert_int_eq(worker->availability, PEER_ABSENT);
    waiting_worker_available(&router, worker, PEER_READY);
    return worker;
}

/* A pool of ready workers. */
static inline struct group *add_pool(const char *id, int count)
{
    static const struct pool_mode plain;
    struct group *pool = &pools[pool_count++];

    group_init(pool, text(id), &plain);
    router_add_pool(&router, pool);
    for (; count > 0; count--)
        add_worker(pool);
    return pool;
}

static inline struct peer *add_client(void)
{
    struct peer *client = &clients[client_count++];

    router_add_client(&router, client);
    router_admit_client(&router, client);
    return client;
}

static inline int peer_index(const struct peer *peer)
{
    if (peer >= clients && peer < clients + PEERS_MAX)
        return (int)(peer - clients);
    QUICK_ASSERT(peer >= workers && peer < workers + PEERS_MAX);
    return PEERS_MAX + (int)(peer - workers);
}

static inline bool is_client(const struct peer *peer)
{
    return peer_index(peer) < PEERS_MAX;
}

/* --- messages --- */

/* An id that begins with a digit is a number. */
static inline struct message_id id_of(const char *string)
{
    bool number = string[0] >= '0' && string[0] <= '9';

    return (struct message_id){number ? ID_NUMBER : ID_STRING, text(string)};
}

static inline struct message notification(void)
{
    return (struct message){.bytes = {"{}\n", 3}, .method = {"m", 1}};
}

static inline struct message request(const char *id)
{
    struct message message = notification();

    message.id = id_of(id);
    return message;
}

static inline struct message response(const char *id)
{
    return (struct message){.bytes = {"{}\n", 3}, .id = id_of(id), .has_result = true};
}

static inline struct message error_response(const char *id)
{
    return (struct message){.bytes = {"{}\n", 3}, .id = id_of(id), .has_error = true};
}

static inline struct message in_session(struct message message, const char *session_id)
{
    message.session_id = text(session_id);
    return message;
}

static inline struct message in_pool(struct message message, const char *pool)
{
    message.pool = text(pool);
    return message;
}

/* --- decisions --- */

/* True after each decision. */
static inline void check_decision(struct peer *from, const struct decision *decision)
{
    QUICK_ASSERT((decision->action == ACTION_HOLD) == peer_held(from));
    if (decision->action != ACTION_HOLD) {
        QUICK_ASSERT(from->reserved == NULL);
        QUICK_ASSERT(!list_linked(&from->roam));
        QUICK_ASSERT(!from->hold_expired);
        QUICK_ASSERT(decision->hold_ms == 0);
    }
    if (decision->action == ACTION_FORWARD) {
        QUICK_ASSERT(decision->to != NULL);
        QUICK_ASSERT(is_client(from) != is_client(decision->to));
        QUICK_ASSERT(!decision->to->full);
        /* A worker that is stopping may still get answers. */
        QUICK_ASSERT(decision->answered != NULL || decision->to->availability == PEER_READY);
    } else {
        QUICK_ASSERT(decision->recorded == NULL);
        QUICK_ASSERT(decision->answered == NULL);
    }
    if (decision->action == ACTION_REFUSE || decision->action == ACTION_DISCARD) {
        QUICK_ASSERT(strlen(decision->text) > 0);
        QUICK_ASSERT(strlen(decision->text) < sizeof decision->text - 1); /* not cut */
    }
}

/* Decides about a message, and does not deliver it. */
static inline struct decision decide(struct peer *from, struct message message)
{
    struct decision decision;

    QUICK_ASSERT(!peer_held(from));
    memset(&decision, 0xa5, sizeof decision);
    last_message[peer_index(from)] = message;
    decision_begin(&decision, &router, from, &message);
    if (is_client(from))
        to_worker(&decision);
    else
        to_client(&decision);
    check_decision(from, &decision);
    return decision;
}

/* Decides about a message, and delivers it if it is to be forwarded. */
static inline struct decision give(struct peer *from, struct message message)
{
    struct decision decision = decide(from, message);

    if (decision.action == ACTION_FORWARD)
        decision_delivered(&decision);
    return decision;
}

/* Decides again about the held message of a released peer. */
static inline struct decision retry(struct peer *from)
{
    return give(from, last_message[peer_index(from)]);
}

#define expect_forward(decision_, to_)                                                             \
    do {                                                                                           \
        struct decision expected_ = (decision_);                                                   \
        ck_assert_int_eq(expected_.action, ACTION_FORWARD);                                        \
        ck_assert_ptr_eq(expected_.to, (to_));                                                     \
    } while (0)

#define expect_hold(decision_) ck_assert_int_eq((decision_).action, ACTION_HOLD)

#define expect_hold_for_id(decision_)                                                              \
    do {                                                                                           \
        struct decision expected_ = (decision_);                                                   \
        ck_assert_int_eq(expected_.action, ACTION_HOLD);                                           \
        ck_assert_int_gt(expected_.hold_ms, 0);                                                    \
    } while (0)

#define expect_refuse(decision_, code_)                                                            \
    do {                                                                                           \
        struct decision expected_ = (decision_);                                                   \
        ck_assert_int_eq(expected_.action, ACTION_REFUSE);                                         \
        ck_assert_int_eq(expected_.code, (code_));                                                 \
    } while (0)

/* With a word of the text. */
#define expect_refuse_naming(decision_, code_, word_)                                              \
    do {                                                                                           \
        struct decision refused_ = (decision_);                                                    \
        expect_refuse(refused_, code_);                                                            \
        ck_assert_ptr_nonnull(strstr(refused_.text, (word_)));                                     \
    } while (0)

#define expect_discard(decision_) ck_assert_int_eq((decision_).action, ACTION_DISCARD)

/* Not delivered: a refusal is for requests. */
#define expect_dropped(decision_)                                                                  \
    do {                                                                                           \
        struct decision expected_ = (decision_);                                                   \
        ck_assert(expected_.action == ACTION_DISCARD || expected_.action == ACTION_REFUSE);        \
    } while (0)

#define expect_released(peer_) ck_assert_ptr_eq(waiting_next_released(&router), (peer_))

#define expect_none_released() ck_assert_ptr_null(waiting_next_released(&router))

/* Decides again about the messages of released peers until no peer is released. */
static inline void settle(void)
{
    struct peer *peer;
    int count = 0;

    while ((peer = waiting_next_released(&router)) != NULL) {
        retry(peer);
        if (++count > RELEASES_MAX)
            ck_abort_msg("peers are released again and again");
    }
}

/* --- events of peers --- */

static inline void note_unanswered(void *user_data, const struct request *request)
{
    struct reported *entry = &reported[reported_count++];
    struct message_id id = request->asker_id;

    ck_assert_ptr_eq(user_data, &router);
    ck_assert_int_lt(reported_count, REPORTED_MAX);
    ck_assert_uint_lt(id.text.len, sizeof entry->id);
    entry->asker = request->asker;
    memset(entry->id, 0, sizeof entry->id);
    memcpy(entry->id, id.text.data, id.text.len);
}

static inline void worker_gone(struct peer *worker)
{
    departure_worker(&router, worker, note_unanswered, &router);
}

/* Takes a worker whose process has ended out of the router. */
static inline void remove_worker(struct peer *worker)
{
    departure_remove_worker(&router, worker);
    memset(worker, 0x5a, sizeof *worker);
}

static inline void client_input_ended(struct peer *client)
{
    departure_client_input(&router, client, note_unanswered, &router);
}

/* Overwrites the peer: the router must not read it any more. */
static inline void client_gone(struct peer *client)
{
    departure_client(&router, client, note_unanswered, &router);
    memset(client, 0x5a, sizeof *client);
}

#define expect_reported(index_, asker_, id_)                                                       \
    do {                                                                                           \
        ck_assert_int_gt(reported_count, (index_));                                                \
        ck_assert_ptr_eq(reported[index_].asker, (asker_));                                        \
        ck_assert_str_eq(reported[index_].id, (id_));                                              \
    } while (0)

static inline void worker_is(struct peer *worker, enum peer_availability availability)
{
    waiting_worker_available(&router, worker, availability);
}

static inline void set_full(struct peer *peer, bool full)
{
    waiting_set_full(&router, peer, full);
}

#endif
