/* For the tests of pools with keys of their own: a router, peers, messages as text, and what of
 * them arrives where. */
#ifndef CHECK_SHARING_FIXTURE_H
#define CHECK_SHARING_FIXTURE_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "quick_assert.h"
#include "router/bindings.h"
#include "router/router.h"

#define PEERS_MAX 12
#define TEXT_MAX 8192

static struct limits limits;
static struct router router;
static struct peer clients[PEERS_MAX], workers[PEERS_MAX];
static int client_count, worker_count;
static char told[1024]; /* what was told of requests that nobody will answer */

static inline void set_up(void)
{
    const struct siphash_key key = {5, 6};
    const struct limits defaults = LIMITS_DEFAULT;

    limits = defaults;
    router_init(&router, &limits, &key);
    memset(clients, 0, sizeof clients);
    memset(workers, 0, sizeof workers);
    client_count = worker_count = 0;
    told[0] = '\0';
}

static inline void note_told(void *user_data, struct peer *asker, struct message_id id)
{
    size_t used = strlen(told);
    bool is_client = asker >= clients && asker < clients + PEERS_MAX;

    (void)user_data;
    snprintf(told + used, sizeof told - used, "%s%d:%.*s ", is_client ? "c" : "w",
             (int)(is_client ? asker - clients : asker - workers), (int)id.text.len, id.text.data);
}

static inline void leave(struct peer *client)
{
    router_client_gone(&router, client, note_told, NULL);
}

static inline void tear_down(void)
{
    int i;

    for (i = 0; i < client_count; i++)
        bindings_clear_client(&clients[i]);
    router_free(&router);
}

static inline struct peer *add_client(void)
{
    router_add_client(&router, &clients[client_count]);
    return &clients[client_count++];
}

/* A pool of workers that take messages; they are the next ones in `workers`. */
static inline void add_pool(const char *id, int count, struct sharing sharing)
{
    int pool = router_add_pool(&router, slice_of(id, strlen(id)));

    ck_assert_int_ge(pool, 0);
    router_set_sharing(&router, (size_t)pool, &sharing);
    for (; count > 0; count--) {
        struct peer *worker = &workers[worker_count++];

        ck_assert_int_eq(router_add_worker(&router, worker, (size_t)pool), STDIO_BUS_OK);
        router_worker_available(&router, worker, PEER_HERE);
    }
}

#define STICKY .clients = CLIENTS_STICKY
#define EXCLUSIVE .clients = CLIENTS_EXCLUSIVE
#define REWRITE .rewrite_ids = true
#define NESTED .session_in_params = true
#define POOL(id, count, ...) add_pool((id), (count), (struct sharing){__VA_ARGS__})

struct delivery {
    struct route route;
    char text[TEXT_MAX]; /* what the destination gets; "" when it is not forwarded */
};

/* Offers bytes, which are a line or several, and delivers. */
static inline struct delivery *give_bytes(struct peer *from, const char *bytes, size_t len)
{
    static struct delivery delivery;
    struct message_scratch scratch;
    struct scanner scanner;
    struct message message;
    struct slice line = slice_of(bytes, len);
    struct route *route = &delivery.route;
    size_t out;

    memset(&delivery, 0xa5, sizeof delivery);
    delivery.text[0] = '\0';
    scanner_reset(&scanner);
    QUICK_ASSERT_MSG(scanner_run(&scanner, bytes, len) == SCAN_MESSAGE, "%s", bytes);
    QUICK_ASSERT(message_from_scan(&message, line, &scanner.fields, &scratch) == MESSAGE_OK);
    if (from >= clients && from < clients + PEERS_MAX)
        router_share_from_client(&router, from, &message, &scanner.fields, route);
    else
        router_share_from_worker(&router, from, &message, &scanner.fields, route);
    QUICK_ASSERT(peer_held(from) ==
                 (route->action == ROUTE_HOLD || route->action == ROUTE_HOLD_UNTIL));
    QUICK_ASSERT(route->edit_count == 0 || route->action != ROUTE_FORWARD);
    if (route->action != ROUTE_FORWARD && route->action != ROUTE_FORWARD_EDITED)
        return &delivery;
    out = len;
    if (route->action == ROUTE_FORWARD_EDITED)
        out = splice_len(len, route->edits, route->edit_count);
    QUICK_ASSERT(out < sizeof delivery.text);
    splice_write(delivery.text, bytes, 0, len, route->edits,
                 route->action == ROUTE_FORWARD_EDITED ? route->edit_count : 0);
    delivery.text[out] = '\0';
    router_forwarded(&router, route);
    if (route->cancelled != NULL)
        router_cancelled(&router, route);
    return &delivery;
}

/* The same with a line without its newline; ' stands for ". */
static inline struct delivery *give(struct peer *from, const char *text)
{
    char *line = malloc(strlen(text) + 2); /* just as much as it needs */
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

/* It arrives there like that. */
#define expect(delivery_, to_, text_)                                                              \
    do {                                                                                           \
        struct delivery *expected_ = (delivery_);                                                  \
        ck_assert_msg(expected_->route.action == ROUTE_FORWARD ||                                  \
                          expected_->route.action == ROUTE_FORWARD_EDITED,                         \
                      "action %d", (int)expected_->route.action);                                  \
        ck_assert_ptr_eq(expected_->route.to, (to_));                                              \
        ck_assert_str_eq(expected_->text, (text_));                                                \
    } while (0)

#define expect_action(delivery_, action_)                                                          \
    ck_assert_int_eq((delivery_)->route.action, (action_))

#define expect_refused(delivery_, word_)                                                           \
    do {                                                                                           \
        struct delivery *refused_ = (delivery_);                                                   \
        ck_assert_int_eq(refused_->route.action, ROUTE_REFUSE);                                    \
        ck_assert_ptr_nonnull(strstr(refused_->route.text, (word_)));                              \
    } while (0)

/* The peer may try again; nobody else. */
#define expect_released(peer_) ck_assert_ptr_eq(router_next_released(&router), (peer_))
#define expect_none_released() ck_assert_ptr_null(router_next_released(&router))

#endif
