/* For the tests of the router: a router with peers, messages made by hand, what becomes of them.
 * The router's tables are compiled into the test with an allocator that fails on demand: they take
 * the place of the library's. */
#ifndef CHECK_ROUTER_FIXTURE_H
#define CHECK_ROUTER_FIXTURE_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "quick_assert.h"
#include "router/router.h"

static long allocations_left = -1; /* negative: no limit */

static inline bool may_allocate(void)
{
    if (allocations_left == 0)
        return false;
    if (allocations_left > 0)
        allocations_left--;
    return true;
}

static inline void *failing_malloc(size_t size)
{
    return may_allocate() ? malloc(size) : NULL;
}

static inline void *failing_calloc(size_t count, size_t size)
{
    return may_allocate() ? calloc(count, size) : NULL;
}

static inline void *failing_realloc(void *memory, size_t size)
{
    return may_allocate() ? realloc(memory, size) : NULL;
}

#define malloc failing_malloc
#define calloc failing_calloc
#define realloc failing_realloc
#include "base/hash_table.c"
#include "router/requests.c"
#include "router/roster.c"
#include "router/sessions.c"
#undef malloc
#undef calloc
#undef realloc

#define PEERS_MAX 16
#define TOLD_MAX 64
#define RELEASES_MAX 1000 /* more in a row than any test can cause: the router spins */

struct told {
    struct peer *asker;
    char id[16];
};

/* The world of the test that runs. */
static struct limits limits;
static struct router router;
static struct peer clients[PEERS_MAX], workers[PEERS_MAX];
static int client_count, worker_count;
static struct message last_offered[2 * PEERS_MAX]; /* by peer_index */
static struct told told[TOLD_MAX];                 /* what the unanswered callback was told */
static int told_count;

static inline void set_up(void)
{
    const struct siphash_key key = {5, 6};
    const struct limits defaults = LIMITS_DEFAULT;

    limits = defaults;
    router_init(&router, &limits, &key);
    memset(clients, 0, sizeof clients);
    memset(workers, 0, sizeof workers);
    client_count = worker_count = told_count = 0;
}

static inline void tear_down(void)
{
    allocations_left = -1;
    router_free(&router);
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

/* A pool of workers that take messages; they are the next ones in `workers`. */
static inline void add_pool(const char *id, int count)
{
    int pool = router_add_pool(&router, text(id));

    ck_assert_int_ge(pool, 0);
    for (; count > 0; count--) {
        struct peer *worker = &workers[worker_count++];

        ck_assert_int_eq(router_add_worker(&router, worker, (size_t)pool), STDIO_BUS_OK);
        ck_assert_int_eq(worker->availability, PEER_AWAY);
        router_worker_available(&router, worker, PEER_HERE);
    }
}

static inline struct peer *add_client(void)
{
    struct peer *client = &clients[client_count++];

    router_add_client(&router, client);
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

/* --- offering them --- */

/* What holds after each decision. */
static inline void check_decision(struct peer *from, const struct route *route)
{
    QUICK_ASSERT((route->action == ROUTE_HOLD) == peer_held(from));
    if (route->action != ROUTE_HOLD) {
        QUICK_ASSERT(from->reserved == NULL);
        QUICK_ASSERT(!list_linked(&from->roam));
        QUICK_ASSERT(!from->hold_expired);
        QUICK_ASSERT(!route->waits_for_id);
    }
    if (route->action == ROUTE_FORWARD) {
        QUICK_ASSERT(route->to != NULL);
        QUICK_ASSERT(is_client(from) != is_client(route->to));
        QUICK_ASSERT(!route->to->full);
        /* A worker that is stopping may still get what it asked for. */
        QUICK_ASSERT(route->answered != NULL || route->to->availability == PEER_HERE);
    } else {
        QUICK_ASSERT(route->recorded == NULL);
        QUICK_ASSERT(route->answered == NULL);
    }
    if (route->action == ROUTE_REFUSE || route->action == ROUTE_DISCARD) {
        QUICK_ASSERT(strlen(route->text) > 0);
        QUICK_ASSERT(strlen(route->text) < sizeof route->text - 1); /* not cut */
    }
}

/* Offers a message without delivering it. */
static inline struct route offer_message(struct peer *from, struct message message)
{
    struct route route;

    QUICK_ASSERT(!peer_held(from)); /* or it could not offer anything */
    memset(&route, 0xa5, sizeof route);
    last_offered[peer_index(from)] = message;
    if (is_client(from))
        router_from_client(&router, from, &message, &route);
    else
        router_from_worker(&router, from, &message, &route);
    check_decision(from, &route);
    return route;
}

/* Offers a message and delivers it when it can be forwarded. */
static inline struct route give(struct peer *from, struct message message)
{
    struct route route = offer_message(from, message);

    if (route.action == ROUTE_FORWARD)
        router_forwarded(&router, &route);
    return route;
}

/* Offers the held message of a released peer again. */
static inline struct route retry(struct peer *from)
{
    return give(from, last_offered[peer_index(from)]);
}

#define expect_forward(route_, to_)                                                                \
    do {                                                                                           \
        struct route expected_ = (route_);                                                         \
        ck_assert_int_eq(expected_.action, ROUTE_FORWARD);                                         \
        ck_assert_ptr_eq(expected_.to, (to_));                                                     \
    } while (0)

#define expect_hold(route_) ck_assert_int_eq((route_).action, ROUTE_HOLD)

#define expect_hold_for_id(route_)                                                                 \
    do {                                                                                           \
        struct route expected_ = (route_);                                                         \
        ck_assert_int_eq(expected_.action, ROUTE_HOLD);                                            \
        ck_assert(expected_.waits_for_id);                                                         \
    } while (0)

#define expect_refuse(route_, code_)                                                               \
    do {                                                                                           \
        struct route expected_ = (route_);                                                         \
        ck_assert_int_eq(expected_.action, ROUTE_REFUSE);                                          \
        ck_assert_int_eq(expected_.code, (code_));                                                 \
    } while (0)

/* The same with a word that the text must contain. */
#define expect_refuse_naming(route_, code_, word_)                                                 \
    do {                                                                                           \
        struct route refused_ = (route_);                                                          \
        expect_refuse(refused_, code_);                                                            \
        ck_assert_ptr_nonnull(strstr(refused_.text, (word_)));                                     \
    } while (0)

#define expect_discard(route_) ck_assert_int_eq((route_).action, ROUTE_DISCARD)

/* Logged and dropped, whatever the sender is told. */
#define expect_dropped(route_)                                                                     \
    do {                                                                                           \
        struct route expected_ = (route_);                                                         \
        ck_assert(expected_.action == ROUTE_DISCARD || expected_.action == ROUTE_REFUSE);          \
    } while (0)

#define expect_released(peer_) ck_assert_ptr_eq(router_next_released(&router), (peer_))

#define expect_none_released() ck_assert_ptr_null(router_next_released(&router))

/* Lets every released peer try again until no one is released any more. */
static inline void settle(void)
{
    struct peer *peer;
    int count = 0;

    while ((peer = router_next_released(&router)) != NULL) {
        retry(peer);
        if (++count > RELEASES_MAX)
            ck_abort_msg("peers are released again and again");
    }
}

/* --- what happens to peers --- */

static inline void note_unanswered(void *user_data, struct peer *asker, struct message_id id)
{
    struct told *entry = &told[told_count++];

    ck_assert_ptr_eq(user_data, &router);
    ck_assert_int_lt(told_count, TOLD_MAX);
    ck_assert_uint_lt(id.text.len, sizeof entry->id);
    entry->asker = asker;
    memset(entry->id, 0, sizeof entry->id);
    memcpy(entry->id, id.text.data, id.text.len);
}

static inline void worker_gone(struct peer *worker)
{
    router_worker_gone(&router, worker, note_unanswered, &router);
}

static inline void client_input_ended(struct peer *client)
{
    router_client_input_ended(&router, client, note_unanswered, &router);
}

/* Its memory is not to be touched any more. */
static inline void client_gone(struct peer *client)
{
    router_client_gone(&router, client, note_unanswered, &router);
    memset(client, 0x5a, sizeof *client);
}

#define expect_told(index_, asker_, id_)                                                           \
    do {                                                                                           \
        ck_assert_int_gt(told_count, (index_));                                                    \
        ck_assert_ptr_eq(told[index_].asker, (asker_));                                            \
        ck_assert_str_eq(told[index_].id, (id_));                                                  \
    } while (0)

static inline void worker_is(struct peer *worker, enum peer_availability availability)
{
    router_worker_available(&router, worker, availability);
}

static inline void set_full(struct peer *peer, bool full)
{
    router_set_full(&router, peer, full);
}

#endif
