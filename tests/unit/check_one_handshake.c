/* MCP servers whose clients share one handshake. */
#include "build_config.h"

#include "router/one_handshake.h"

#include "pool_mode_fixture.h"
#include "router/deadlines.h"
#include "router/errand.h"
#include "router/handshake.h"

#define SHARED STICKY, REWRITE, .protocol = PROTOCOL_MCP, .on_exit = EXIT_REPLAYS

#define INITIALIZE(id, version)                                                                    \
    "{'id':" id ",'method':'initialize','params':{'protocolVersion':'" version "'}}"
#define INITIALIZED "{'method':'notifications/initialized'}"
#define RESULT(id) "{'id':" id ",'result':{'protocolVersion':'x'}}"
#define ERROR(id) "{'id':" id ",'error':{'code':-1}}"
#define LEVEL(id, level) "{'id':" id ",'method':'logging/setLevel','params':{'level':'" level "'}}"
#define WATCH(id, uri) "{'id':" id ",'method':'resources/subscribe','params':{'uri':'" uri "'}}"
#define UNWATCH(id, uri) "{'id':" id ",'method':'resources/unsubscribe','params':{'uri':'" uri "'}}"
#define UPDATED(uri) "{'method':'notifications/resources/updated','params':{'uri':'" uri "'}}"
#define EMPTY(id) "{'jsonrpc':'2.0','id':" id ",'result':{}}"

static struct peer *a, *b, *worker = &workers[0];

static void two_clients(void)
{
    POOL("p", 1, SHARED);
    a = add_client();
    b = add_client();
}

/* The next errand is this one, as "KIND ID TEXT"; NULL: there is none. */
static void expect_errand(const char *expected)
{
    static const char *const kinds[] = {"initialize", "level", "subscribe", "unsubscribe"};
    struct errand errand;
    char text[200];

    if (!errand_next(&router, &errand)) {
        ck_assert_ptr_null(expected);
        return;
    }
    ck_assert_ptr_nonnull(expected);
    if (errand.kind == ERRAND_INITIALIZE)
        errand.text = slice_of("", 0);
    snprintf(text, sizeof text, "%s %.*s %.*s", kinds[errand.kind],
             (int)errand.request->answerer_id.text.len, errand.request->answerer_id.text.data,
             (int)errand.text.len, errand.text.data);
    ck_assert_str_eq(text, expected);
}

#define expect_answer(delivery_, text_)                                                            \
    do {                                                                                           \
        struct delivery *answered_ = (delivery_);                                                  \
        expect_action(answered_, ACTION_ANSWER);                                                   \
        ck_assert_str_eq(answered_->text, (text_));                                                \
    } while (0)

/* The client's version has been answered. */
static void greet(struct peer *client)
{
    struct delivery *delivery = give(client, INITIALIZE("0", "v"));

    if (delivery->decision.action == ACTION_HOLD) {
        expect_errand("initialize 2 ");
        expect_action(give(worker, RESULT("2")), ACTION_DROP);
        expect_released(client);
        delivery = give(client, INITIALIZE("0", "v"));
    }
    expect_action(delivery, ACTION_ANSWER);
}

TEST(first_initialize_is_asked_once)
{
    two_clients();
    expect_action(give(a, INITIALIZE("1", "v")), ACTION_HOLD);
    expect_action(give(b, INITIALIZE("'b'", "v")), ACTION_HOLD);
    expect_errand("initialize 2 ");
    expect_errand(NULL);
    expect_action(give(worker, RESULT("2")), ACTION_DROP);
    expect_released(a);
    expect_released(b);
    expect_answer(give(a, INITIALIZE("1", "v")), RESULT("1"));
    expect_answer(give(b, INITIALIZE("'b'", "v")), RESULT("'b'"));
    expect_unchanged(b, INITIALIZED, worker);
    expect_action(give(a, INITIALIZED), ACTION_DROP);
}

TEST(first_client_may_leave_before_the_answer)
{
    two_clients();
    expect_action(give(a, INITIALIZE("1", "v")), ACTION_HOLD);
    expect_errand("initialize 2 ");
    leave(a);
    expect_action(give(b, INITIALIZE("2", "v")), ACTION_HOLD);
    expect_action(give(worker, RESULT("2")), ACTION_DROP);
    expect_released(b);
    expect_answer(give(b, INITIALIZE("2", "v")), RESULT("2"));
}

TEST(versions_are_asked_one_at_a_time)
{
    two_clients();
    expect_action(give(a, INITIALIZE("1", "v")), ACTION_HOLD);
    expect_errand("initialize 2 ");
    expect_action(give(b, INITIALIZE("1", "w")), ACTION_HOLD);
    expect_errand(NULL);
    expect_action(give(worker, ERROR("2")), ACTION_DROP);
    expect_released(a);
    expect_released(b);
    expect_answer(give(a, INITIALIZE("1", "v")), ERROR("1"));
    expect_action(give(b, INITIALIZE("1", "w")), ACTION_HOLD);
    expect_errand("initialize 4 ");
    expect_action(give(worker, RESULT("4")), ACTION_DROP);
    expect_released(b);
    expect_answer(give(b, INITIALIZE("1", "w")), RESULT("1"));
}

/* The first one is kept. row: the server accepts the others, or refuses them. */
TEST_ROWS(versions_are_bounded, 2)
{
    char text[200], id[12];

    two_clients();
    greet(a);
    for (int i = 0; i < 3 * VERSIONS_MAX; i++) {
        snprintf(text, sizeof text, INITIALIZE("1", "%d"), i);
        expect_action(give(b, text), ACTION_HOLD);
        snprintf(id, sizeof id, "%d", 2 * i + 4);
        snprintf(text, sizeof text, "initialize %s ", id);
        expect_errand(text);
        snprintf(text, sizeof text, row == 0 ? RESULT("%s") : ERROR("%s"), id);
        expect_action(give(worker, text), ACTION_DROP);
        expect_released(b);
        snprintf(text, sizeof text, INITIALIZE("1", "%d"), i);
        if (row == 0)
            expect_answer(give(b, text), RESULT("1"));
        ck_assert_uint_le(list_count(&worker->handshake->versions), VERSIONS_MAX);
    }
    expect_answer(give(add_client(), INITIALIZE("1", "v")), RESULT("1"));
}

TEST(refused_version_gets_a_process_of_its_own)
{
    POOL("p", 2, SHARED);
    a = add_client();
    b = add_client();
    waiting_worker_available(&router, &workers[1], PEER_ABSENT);
    greet(a);
    expect_action(give(b, INITIALIZE("1", "w")), ACTION_HOLD);
    expect_errand("initialize 4 ");
    expect_action(give(worker, ERROR("4")), ACTION_DROP);
    expect_released(b);
    expect_action(give(b, INITIALIZE("1", "w")), ACTION_HOLD);
    ck_assert_ptr_null(affinity_worker(b, &pools[0]));
    waiting_worker_available(&router, &workers[1], PEER_READY);
    expect_released(b);
    expect_action(give(b, INITIALIZE("1", "w")), ACTION_HOLD);
    ck_assert_ptr_eq(affinity_worker(b, &pools[0]), &workers[1]);
    expect_errand("initialize 2 ");
    /* No other client joins it. */
    expect_action(give(add_client(), INITIALIZE("1", "v")), ACTION_ANSWER);
    ck_assert_ptr_eq(affinity_worker(&clients[2], &pools[0]), worker);
}

/* The id may stand after what is changed. */
TEST(initialize_is_kept_with_all_capabilities)
{
    static const char initialize[] =
        " {'params' :{ 'protocolVersion':'v','capabilities':{'roots':{'listChanged':1}, "
        "'elicitation':{'form':[],'x':0}}},'method':'initialize','id':'a1'}";
    struct errand errand;
    struct splice_edit id;
    char line[500];
    size_t len;

    two_clients();
    expect_action(give(a, initialize), ACTION_HOLD);
    ck_assert(errand_next(&router, &errand));
    id = errand.initialize->at;
    id.text = slice_of("2", 1);
    len = splice_len(errand.initialize->line.len, &id, 1);
    splice_write(line, errand.initialize->line.data, 0, errand.initialize->line.len, &id, 1);
    line[len] = '\0';
    for (size_t i = 0; i < len; i++)
        line[i] = line[i] == '"' ? '\'' : line[i];
    ck_assert_str_eq(line,
                     " {'params' :{ 'protocolVersion':'v','capabilities':{'sampling':{'tools':{}},"
                     "'roots':{'listChanged':true}, 'elicitation':{'url':{},'form':{},'x':0}}},"
                     "'method':'initialize','id':2}\n");
}

/* What waits for the answer does not wait for the next process. */
TEST(process_that_dies_of_initialize)
{
    two_clients();
    greet(a);
    expect_action(give(b, INITIALIZE("1", "w")), ACTION_HOLD);
    expect_errand("initialize 4 ");
    departure_worker(&router, worker, note_unanswered, NULL);
    expect_released(b);
    expect_refused(give(b, INITIALIZE("1", "w")), "worker exited before answering");
    ck_assert_str_eq(reported, "");
    ck_assert_ptr_nonnull(worker->handshake);
    leave(a);
    leave(b);
    departure_worker(&router, worker, note_unanswered, NULL);
    ck_assert_ptr_null(worker->handshake);
}

TEST(answer_that_never_comes)
{
    two_clients();
    expect_action(give(a, INITIALIZE("1", "v")), ACTION_HOLD);
    expect_errand("initialize 2 ");
    waiting_expire(&router, a);
    expect_released(a);
    expect_refused(give(a, INITIALIZE("1", "v")), "has not answered initialize");
    expect_action(give(a, INITIALIZE("2", "v")), ACTION_HOLD);
    expect_errand(NULL);
}

/* The server takes long. row: longer than abandoned_id_sec, or other requests are given up. */
TEST_ROWS(answer_that_comes_late, 2)
{
    two_clients();
    router.from_clients.max = 2;
    expect_action(give(a, INITIALIZE("1", "v")), ACTION_HOLD);
    expect_errand("initialize 2 ");
    for (int i = 0; row == 1 && i < 4; i++) {
        expect_action(give(b, "{'id':1,'method':'m'}"), ACTION_FORWARD);
        give(b, "{'method':'notifications/cancelled','params':{'requestId':1}}");
    }
    if (row == 0)
        router.now_ms += (int64_t)limits.abandoned_id_sec * 1000;
    deadlines_free_abandoned(&router);
    expect_action(give(worker, RESULT("2")), ACTION_DROP);
    expect_released(a);
    expect_answer(give(a, INITIALIZE("1", "v")), RESULT("1"));
    expect_answer(give(b, INITIALIZE("1", "v")), RESULT("1"));
    ck_assert_uint_eq(list_count(&router.from_clients.awaited), 0);
}

TEST(subscriptions_survive_the_process)
{
    two_clients();
    greet(a);
    greet(b);
    expect(give(a, WATCH("1", "u")), worker, WATCH("4", "u"));
    expect_action(give(b, WATCH("1", "u")), ACTION_HOLD);
    expect(give(worker, RESULT("4")), a, RESULT("1"));
    expect_released(b);
    expect_answer(give(b, WATCH("1", "u")), EMPTY("1"));
    expect_answer(give(b, UNWATCH("1.0", "u")), EMPTY("1.0"));
    expect_action(give(worker, UPDATED("u#x")), ACTION_BROADCAST);
    ck_assert(affinity_binding(a, worker)->chosen && !affinity_binding(b, worker)->chosen);
    expect_action(give(worker, UPDATED("ux")), ACTION_DROP);
    departure_worker(&router, worker, note_unanswered, NULL);
    waiting_worker_available(&router, worker, PEER_READY);
    handshake_note_errand(worker->handshake);
    expect_errand("subscribe 6 u");
    expect_errand(NULL);
    leave(a);
    expect_errand("unsubscribe 8 u");
    expect_errand(NULL);
    ck_assert_uint_eq(router.handshakes.subscriptions.bytes, 0);
}

/* A drained worker serves its clients as before. */
TEST(drained_process_has_one_handshake)
{
    two_clients();
    greet(a);
    greet(b);
    expect(give(a, WATCH("1", "u")), worker, WATCH("4", "u"));
    expect(give(worker, RESULT("4")), a, RESULT("1"));
    waiting_set_drained(&router, worker, true);
    expect_answer(give(b, INITIALIZE("1", "v")), RESULT("1"));
    expect_unchanged(a, INITIALIZED, worker);
    expect_action(give(b, INITIALIZED), ACTION_DROP);
    expect_answer(give(b, WATCH("2", "u")), EMPTY("2"));
    expect_answer(give(a, UNWATCH("2", "u")), EMPTY("2"));
    expect(give(b, UNWATCH("3", "u")), worker, UNWATCH("6", "u"));
    expect(give(worker, RESULT("6")), b, RESULT("3"));
    expect(give(a, LEVEL("4", "info")), worker, LEVEL("8", "info"));
    expect(give(worker, RESULT("8")), a, RESULT("4"));
    expect_answer(give(b, LEVEL("5", "error")), EMPTY("5"));
    expect_unchanged(b, "{'method':'notifications/roots/list_changed'}", worker);
    ck_assert_uint_eq(worker->handshake->teller, b->number);
}

/* Its pool is removed: it gets no request any more, and still one notifications/initialized. */
TEST(leaving_process_has_one_handshake)
{
    two_clients();
    greet(a);
    greet(b);
    waiting_worker_available(&router, worker, PEER_LEAVING);
    expect_unchanged(a, INITIALIZED, worker);
    expect_action(give(b, INITIALIZED), ACTION_DROP);
    expect_action(give(b, WATCH("1", "u")), ACTION_REFUSE);
}

/* The server may have subscribed. row: it leaves, or gives its request up. */
TEST_ROWS(subscription_that_is_given_up, 2)
{
    two_clients();
    greet(a);
    greet(b);
    expect(give(a, WATCH("1", "u")), worker, WATCH("4", "u"));
    expect_action(give(b, WATCH("1", "u")), ACTION_HOLD);
    if (row == 0)
        leave(a);
    else
        give(a, "{'method':'notifications/cancelled','params':{'requestId':1}}");
    expect_errand("unsubscribe 6 u");
    expect_errand(NULL);
    expect_released(b);
    expect(give(b, WATCH("1", "u")), worker, WATCH("8", "u"));
    expect_action(give(worker, RESULT("4")), ACTION_DROP);
}

/* The client goes on with another process, and its request to this one is still in flight. */
TEST(subscription_of_a_client_that_gets_another_process)
{
    two_clients();
    greet(a);
    greet(b);
    expect(give(a, WATCH("1", "u")), worker, WATCH("4", "u"));
    expect_action(give(b, WATCH("1", "u")), ACTION_HOLD);
    expect_action(give(a, INITIALIZE("2", "w")), ACTION_HOLD);
    expect_errand("initialize 6 ");
    expect_action(give(worker, ERROR("6")), ACTION_DROP);
    expect_released(a);
    expect_action(give(a, INITIALIZE("2", "w")), ACTION_HOLD);
    ck_assert_ptr_null(affinity_worker(a, &pools[0]));
    expect_errand("unsubscribe 8 u");
    expect_released(b);
    expect(give(b, WATCH("1", "u")), worker, WATCH("10", "u"));
    expect(give(worker, RESULT("4")), a, RESULT("1"));
    expect(give(worker, RESULT("10")), b, RESULT("1"));
    expect_action(give(worker, UPDATED("u")), ACTION_BROADCAST);
}

/* The client has subscribed to u0, u1 and so on. */
static void watch_many(struct peer *client, int count)
{
    for (int i = 0; i < count; i++) {
        struct delivery *asked = give(client, test_format("{'id':1,'method':'resources/subscribe',"
                                                          "'params':{'uri':'u%d'}}",
                                                          i));
        struct slice id;

        expect_action(asked, ACTION_FORWARD);
        id = asked->decision.recorded->answerer_id.text;
        expect_action(give(worker, test_format(RESULT("%.*s"), (int)id.len, id.data)),
                      ACTION_FORWARD);
    }
}

/* The errands that there are now; the id of the last one is in `last_id`. */
static int count_errands(enum errand_kind kind, char last_id[16])
{
    struct errand errand;
    int count = 0;

    for (; errand_next(&router, &errand); count++) {
        struct slice id = errand.request->answerer_id.text;

        ck_assert_int_eq(errand.kind, kind);
        snprintf(last_id, 16, "%.*s", (int)id.len, id.data);
    }
    return count;
}

/* What a new process is sent waits for its answers, and the messages of clients pass. */
TEST(subscriptions_are_repeated_a_few_at_once)
{
    char id[16];

    two_clients();
    greet(a);
    watch_many(a, 40);
    departure_worker(&router, worker, note_unanswered, NULL);
    waiting_worker_available(&router, worker, PEER_READY);
    handshake_note_errand(worker->handshake);
    ck_assert_int_eq(count_errands(ERRAND_SUBSCRIBE, id), ERRANDS_IN_FLIGHT);
    expect_action(give(b, "{'id':1,'method':'m'}"), ACTION_FORWARD);
    ck_assert_int_eq(count_errands(ERRAND_SUBSCRIBE, id), 0);
    expect_action(give(worker, test_format(RESULT("%s"), id)), ACTION_DROP);
    ck_assert_int_eq(count_errands(ERRAND_SUBSCRIBE, id), 1);
    waiting_set_full(&router, worker, true);
    expect_action(give(worker, test_format(ERROR("%s"), id)), ACTION_DROP);
    ck_assert_int_eq(count_errands(ERRAND_SUBSCRIBE, id), 0);
    waiting_set_full(&router, worker, false);
    ck_assert_int_eq(count_errands(ERRAND_SUBSCRIBE, id), 1);
    router.now_ms += (int64_t)limits.abandoned_id_sec * 1000; /* a server that never answers */
    deadlines_free_abandoned(&router);
    ck_assert_int_eq(count_errands(ERRAND_SUBSCRIBE, id), ERRANDS_IN_FLIGHT);
}

/* While it waits to be repeated, the server knows nothing of it. */
TEST(subscription_ends_before_it_is_repeated)
{
    char id[16];

    two_clients();
    greet(a);
    greet(b);
    watch_many(a, 40);
    departure_worker(&router, worker, note_unanswered, NULL);
    waiting_worker_available(&router, worker, PEER_READY);
    handshake_note_errand(worker->handshake);
    ck_assert_int_eq(count_errands(ERRAND_SUBSCRIBE, id), ERRANDS_IN_FLIGHT);
    expect_answer(give(a, WATCH("1", "u39")), EMPTY("1"));
    expect_answer(give(a, UNWATCH("1", "u39")), EMPTY("1"));
    expect_action(give(a, UNWATCH("1", "u0")), ACTION_FORWARD);
    expect_action(give(b, WATCH("1", "u39")), ACTION_FORWARD);
}

/* Requests in flight count, too. */
TEST(subscriptions_in_flight_have_a_limit)
{
    two_clients();
    greet(a);
    watch_many(a, SUBSCRIPTIONS_MAX - 1);
    expect_action(give(a, WATCH("'x'", "x")), ACTION_FORWARD);
    expect_refused(give(a, WATCH("'y'", "y")), "too many subscriptions (256 for a client)");
    give(a, "{'method':'notifications/cancelled','params':{'requestId':'x'}}");
    expect_action(give(a, WATCH("'y'", "y")), ACTION_FORWARD);
}

static size_t subscribe_all(struct peer *client, const char *name)
{
    for (int i = 0;; i++) {
        struct delivery *asked = give(client, test_format("{'id':'%s%d','method':"
                                                          "'resources/subscribe',"
                                                          "'params':{'uri':'%s%d'}}",
                                                          name, i, name, i));

        if (asked->decision.action != ACTION_FORWARD) {
            expect_refused(asked, "too many subscriptions (16384 bytes, a sixteenth of max_memory");
            return client->held[PEER_SUBSCRIPTIONS];
        }
    }
}

/* All of them together have a limit, and each client its share. */
TEST(subscriptions_share_the_memory)
{
    size_t account = 0, most;

    two_clients();
    limits.max_memory = 16 * 16384;
    router_set_limits(&router, &limits);
    router_count_memory(&router, &account);
    greet(a);
    greet(b);
    most = subscribe_all(a, "a");
    ck_assert_uint_gt(most, 16000);
    ck_assert_uint_eq(account, most);
    ck_assert_uint_ge(subscribe_all(b, "b"), 16384 / 4);
    ck_assert_uint_le(account, 16384 / 4 * 5 + 300);
    subscribe_all(a, "c");
    leave(a);
    leave(b);
    ck_assert_uint_le(account, 16384 / 4); /* what the server is still to end */
    departure_worker(&router, worker, note_unanswered, NULL);
    ck_assert_uint_eq(account, 0);
}

TEST(levels_follow_the_clients)
{
    two_clients();
    greet(a);
    greet(b);
    expect(give(a, LEVEL("1", "error")), worker, LEVEL("4", "error"));
    expect(give(b, LEVEL("1", "alert")), worker, LEVEL("6", "alert")); /* not known yet */
    expect(give(worker, RESULT("4")), a, RESULT("1"));
    expect_errand(NULL);
    expect(give(worker, RESULT("6")), b, RESULT("1"));
    expect_errand("level 8 error");
    expect_errand(NULL);
    expect(give(b, LEVEL("1", "info")), worker, LEVEL("10", "info"));
    expect(give(worker, ERROR("10")), b, ERROR("1"));
    expect_errand(NULL);
    expect_answer(give(b, LEVEL("1", "emergency")), EMPTY("1"));
    leave(a);
    expect_errand("level 12 emergency");
    expect_errand(NULL);
}

FIXTURE(set_up, tear_down)
