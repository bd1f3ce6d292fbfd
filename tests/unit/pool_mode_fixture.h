/* For the tests of pools with a mode: a router, peers, messages as text, and where each arrives. */
#ifndef CHECK_POOL_MODE_FIXTURE_H
#define CHECK_POOL_MODE_FIXTURE_H

#include "base/error.h"
#include "quick_assert.h"
#include "router/affinity.h"
#include "router/departure.h"
#include "router/eras.h"
#include "router/to_client.h"
#include "router/to_worker.h"
#include "router/waiting.h"
#include "suite.h"

#define PEERS_MAX 12
#define TEXT_MAX 8192

static struct limits limits;
static struct router router;
static struct peer clients[PEERS_MAX], workers[PEERS_MAX];
static struct group pools[4];
static int client_count, worker_count, pool_count;
static char reported[1024]; /* "c0:1 ": client 0's request 1 will not be answered */

static inline void set_up(void)
{
    const struct siphash_key key = {5, 6};
    const struct limits defaults = LIMITS_DEFAULT;

    limits = defaults;
    router_init(&router, &limits, &key);
    memset(clients, 0, sizeof clients);
    memset(workers, 0, sizeof workers);
    client_count = worker_count = pool_count = 0;
    reported[0] = '\0';
}

static inline void note_unanswered(void *user_data, const struct request *request)
{
    const struct peer *asker = request->asker;
    struct message_id id = request->asker_id;
    size_t used = strlen(reported);
    bool is_client = asker >= clients && asker < clients + PEERS_MAX;

    (void)user_data;
    snprintf(reported + used, sizeof reported - used, "%s%d:%.*s ", is_client ? "c" : "w",
             (int)(is_client ? asker - clients : asker - workers), (int)id.text.len, id.text.data);
}

static inline void leave(struct peer *client)
{
    departure_client(&router, client, note_unanswered, NULL);
}

static inline void tear_down(void)
{
    for (int i = 0; i < client_count; i++) {
        waiting_leave(&router, &clients[i]);
        affinity_clear_client(&clients[i]);
    }
    for (int i = 0; i < worker_count; i++)
        handshake_forget(&workers[i]);
    router_free(&router);
    while (pool_count > 0)
        group_free(&pools[--pool_count]);
}

static inline struct peer *add_client(void)
{
    router_add_client(&router, &clients[client_count]);
    router_admit_client(&router, &clients[client_count]);
    return &clients[client_count++];
}

/* Workers that take messages; they are the next ones in `workers`. */
static inline void add_workers(struct group *pool, int count)
{
    for (; count > 0; count--) {
        struct peer *worker = &workers[worker_count++];

        ck_assert_int_eq(router_add_worker(&router, worker, pool), STDIO_BUS_OK);
        waiting_worker_available(&router, worker, PEER_READY);
    }
}

/* A pool of such workers. */
static inline void add_pool(const char *id, int count, struct pool_mode mode)
{
    struct group *pool = &pools[pool_count++];

    group_init(pool, slice_of(id, strlen(id)), &mode);
    router_add_pool(&router, pool);
    add_workers(pool, count);
}

/* The first pool for both eras of MCP, as process/pool.c makes it: pools[0] is that of the
 * handshake, pools[1] the stateless one. */
static inline void add_pool_of_eras(const struct pool_mode *mode)
{
    const struct pool_mode other = pool_mode_of_stateless(mode);

    pool_count = 2;
    group_init(&pools[0], slice_of("p", 1), mode);
    group_init(&pools[1], slice_of("p", 1), &other);
    eras_join(&pools[0], &pools[1]);
    router_add_pool(&router, &pools[0]);
    router_add_pool(&router, &pools[1]);
}

#define STICKY .clients = CLIENTS_STICKY
#define EXCLUSIVE .clients = CLIENTS_EXCLUSIVE
#define REWRITE .rewrite_ids = true
#define NESTED .session_in_params = true
#define POOL(id, count, ...) add_pool((id), (count), (struct pool_mode){__VA_ARGS__})

struct delivery {
    struct decision decision;
    char text[TEXT_MAX]; /* as it arrives, or the answer; "": neither */
};

/* Decides about a message of one line or several, and delivers it. */
static inline struct delivery *give_bytes(struct peer *from, const char *bytes, size_t len)
{
    static struct delivery delivery;
    struct message_scratch scratch;
    struct scanner scanner;
    struct message message;
    struct slice line = slice_of(bytes, len);
    struct decision *decision = &delivery.decision;
    size_t out;

    memset(&delivery, 0xa5, sizeof delivery);
    delivery.text[0] = '\0';
    scanner_reset(&scanner);
    QUICK_ASSERT_MSG(scanner_run(&scanner, bytes, len) == SCAN_MESSAGE, "%s", bytes);
    QUICK_ASSERT(message_from_scan(&message, line, &scanner.fields, &scratch) == MESSAGE_OK);
    decision_begin(decision, &router, from, &message);
    if (from >= clients && from < clients + PEERS_MAX)
        to_worker(decision);
    else
        to_client(decision);
    QUICK_ASSERT(peer_held(from) == (decision->action == ACTION_HOLD));
    if (decision->action == ACTION_FAIL)
        decision_delivered(decision);
    if (decision->action == ACTION_ANSWER)
        line = decision->stored;
    else if (decision->action != ACTION_FORWARD)
        return &delivery;
    out = splice_len(line.len, decision->edits, decision->edit_count);
    QUICK_ASSERT(out < sizeof delivery.text);
    splice_write(delivery.text, line.data, 0, line.len, decision->edits, decision->edit_count);
    delivery.text[out] = '\0';
    if (decision->action == ACTION_FORWARD)
        decision_delivered(decision);
    return &delivery;
}

/* The same with a line without its newline; ' stands for ". */
static inline struct delivery *give(struct peer *from, const char *text)
{
    char *line = malloc(strlen(text) + 2); /* no byte more: reading on is noticed */
    struct delivery *delivery;
    size_t len = strlen(text), i;

    ck_assert_ptr_nonnull(line);
    for (i = 0; i < len; i++)
        line[i] = text[i] == '\'' ? '"' : text[i];
    line[len++] = '\n';
    line[len] = '\0';
    delivery = give_bytes(from, line, len);
    free(line);
    for (i = 0; delivery->text[i] != '\0'; i++)
        delivery->text[i] = delivery->text[i] == '"' ? '\'' : delivery->text[i];
    if (i > 0)
        delivery->text[i - 1] = '\0';
    return delivery;
}

/* The message arrives at `to_` as this text. */
#define expect(delivery_, to_, text_)                                                              \
    do {                                                                                           \
        struct delivery *expected_ = (delivery_);                                                  \
        ck_assert_int_eq(expected_->decision.action, ACTION_FORWARD);                              \
        ck_assert_ptr_eq(expected_->decision.to, (to_));                                           \
        ck_assert_str_eq(expected_->text, (text_));                                                \
    } while (0)

/* The message arrives at `to_` as it was sent. */
#define expect_unchanged(from_, text_, to_) expect(give(from_, text_), to_, text_)

#define expect_action(delivery_, action_) ck_assert_int_eq((delivery_)->decision.action, (action_))

#define expect_refused(delivery_, word_)                                                           \
    do {                                                                                           \
        struct delivery *refused_ = (delivery_);                                                   \
        ck_assert_int_eq(refused_->decision.action, ACTION_REFUSE);                                \
        ck_assert_ptr_nonnull(strstr(refused_->decision.text, (word_)));                           \
    } while (0)

/* The client gets an error in place of this answer. */
#define expect_failed(delivery_, to_, word_)                                                       \
    do {                                                                                           \
        struct delivery *failed_ = (delivery_);                                                    \
        ck_assert_int_eq(failed_->decision.action, ACTION_FAIL);                                   \
        ck_assert_ptr_eq(failed_->decision.to, (to_));                                             \
        ck_assert_ptr_nonnull(strstr(failed_->decision.text, (word_)));                            \
    } while (0)

/* The peer is the next that is released. */
#define expect_released(peer_) ck_assert_ptr_eq(waiting_next_released(&router), (peer_))
#define expect_none_released() ck_assert_ptr_null(waiting_next_released(&router))

#endif
