/* Decisions carried out on endpoints without a descriptor (recording_endpoint.h). */
#include "build_config.h"

#include "bus/deliver.h"

#include "recording_endpoint.h"
#include "router/departure.h"
#include "router/waiting.h"
#include "suite.h"

#define PEERS 2

static struct config config;
static struct log test_log;
static FILE *log_file;
static struct stdio_bus bus;
static struct group pool;
static struct recording_endpoint clients[PEERS], workers[PEERS];
static const char *last_text[2 * PEERS]; /* of each endpoint: clients, then workers */

static void set_up(void)
{
    const struct siphash_key key = {5, 6};

    config = (struct config){.limits = LIMITS_DEFAULT};
    log_file = tmpfile();
    ck_assert_ptr_nonnull(log_file);
    log_open(&test_log, fileno(log_file), LOG_LEVEL_WARN);
    memset(&bus, 0, sizeof bus);
    bus.options.config = &config;
    bus.log = &test_log;
    bus.loop = stdio_bus_event_loop_create();
    ck_assert_ptr_nonnull(bus.loop);
    list_init(&bus.starved);
    timer_init(&bus.starved_retry, deliver_retry_starved, &bus);
    router_init(&bus.router, &config.limits, &key);
}

static void leave(struct peer *client);

static void tear_down(void)
{
    for (int i = 0; i < PEERS; i++) {
        leave(&clients[i].endpoint.peer);
        recording_endpoint_free(&clients[i]);
        recording_endpoint_free(&workers[i]);
    }
    router_free(&bus.router);
    group_free(&pool);
    stdio_bus_event_loop_destroy(bus.loop);
    log_close(&test_log);
    fclose(log_file);
}

static void ignore_unanswered(void *user_data, const struct request *request)
{
    (void)user_data, (void)request;
}

static void leave(struct peer *client)
{
    departure_client(&bus.router, client, ignore_unanswered, NULL);
}

static void add(struct recording_endpoint *recorder, bool is_worker)
{
    struct endpoint *endpoint = &recorder->endpoint;

    recording_endpoint_init(recorder);
    endpoint->bus = &bus;
    timer_init(&endpoint->hold_timer, deliver_hold_expired, endpoint);
    endpoint->is_worker = is_worker;
    if (!is_worker) {
        router_add_client(&bus.router, &endpoint->peer);
        router_admit_client(&bus.router, &endpoint->peer);
        return;
    }
    ck_assert_int_eq(router_add_worker(&bus.router, &endpoint->peer, &pool), STDIO_BUS_OK);
    waiting_worker_available(&bus.router, &endpoint->peer, PEER_READY);
}

/* Two clients, and a pool "p" of this number of ready workers. */
static void add_peers(int worker_count, struct pool_mode mode)
{
    group_init(&pool, slice_of("p", 1), &mode);
    router_add_pool(&bus.router, &pool);
    for (int i = 0; i < PEERS; i++)
        add(&clients[i], false);
    for (int i = 0; i < worker_count; i++)
        add(&workers[i], true);
}

static const char **last_of(const struct recording_endpoint *from)
{
    return from->endpoint.is_worker ? &last_text[PEERS + (from - workers)]
                                    : &last_text[from - clients];
}

/* Delivers a line without its newline. */
static void give(struct recording_endpoint *from, const char *text)
{
    char line[200];
    struct message_scratch scratch;
    struct scanner scanner;
    struct message message;
    size_t len = (size_t)snprintf(line, sizeof line, "%s\n", text);

    *last_of(from) = text;
    scanner_reset(&scanner);
    ck_assert_int_eq(scanner_run(&scanner, line, len), SCAN_MESSAGE);
    ck_assert_int_eq(message_from_scan(&message, slice_of(line, len), &scanner.fields, &scratch),
                     MESSAGE_OK);
    deliver_message(&from->endpoint, &message);
}

/* The endpoint is the next that is released; its message is delivered again. */
static void expect_retry(struct recording_endpoint *from)
{
    struct peer *peer = waiting_next_released(&bus.router);
    int resumes = from->resumes;

    ck_assert_ptr_eq(peer, &from->endpoint.peer);
    if (from->endpoint.is_worker) /* deliver_resume knows workers as streams only */
        from->endpoint.ops->resume(&from->endpoint);
    else
        deliver_resume(peer);
    ck_assert_int_eq(from->resumes, resumes + 1);
    ck_assert(!timer_started(&from->endpoint.hold_timer));
    give(from, *last_of(from));
}

/* All that the endpoint was sent since the last call, newlines left out. */
static void expect(struct recording_endpoint *to, const char *text)
{
    char lines[1000];
    size_t len = 0, i;

    for (i = 0; i < to->len; i++) {
        if (to->text[i] != '\n')
            lines[len++] = to->text[i];
    }
    lines[len] = '\0';
    ck_assert_str_eq(lines, text);
    to->len = 0;
}

TEST(requests_and_answers_reach_their_endpoints_rewritten)
{
    add_peers(2, (struct pool_mode){.rewrite_ids = true});
    give(&clients[0], "{\"id\":\"a\",\"method\":\"m\"}");
    give(&clients[1], "{\"id\":\"a\",\"method\":\"m\",\"sessionId\":\"s\"}");
    expect(&workers[0], "{\"id\":2,\"method\":\"m\"}");
    expect(&workers[1], "{\"id\":2,\"method\":\"m\",\"sessionId\":\"s\"}");
    give(&workers[1], "{\"id\":9,\"method\":\"q\",\"sessionId\":\"s\"}");
    expect(&clients[1], "{\"id\":2,\"method\":\"q\",\"sessionId\":\"s\"}");
    give(&clients[1], "{\"id\":2,\"result\":1}");
    expect(&workers[1], "{\"id\":9,\"result\":1}");
    give(&workers[1], "{\"id\":2,\"result\":1}");
    expect(&clients[1], "{\"id\":\"a\",\"result\":1}");
    give(&workers[0], "{\"id\":2,\"error\":1}");
    expect(&clients[0], "{\"id\":\"a\",\"error\":1}");
    ck_assert_uint_eq(bus.router.from_clients.by_answerer.count, 0);
    ck_assert_uint_eq(bus.router.from_workers.by_answerer.count, 0);
}

static void expect_subject(const struct recording_endpoint *to, const char *about, bool answers,
                           bool asks)
{
    ck_assert_str_eq(to->about, about);
    ck_assert(to->subject.answers == answers);
    ck_assert(to->subject.asks == asks);
}

/* As the receiver of a message knows it. */
TEST(delivery_names_the_request_that_it_is_about)
{
    add_peers(1, (struct pool_mode){
                     .protocol = PROTOCOL_MCP, .clients = CLIENTS_STICKY, .rewrite_ids = true});
    give(&clients[0], "{\"id\":\"a\",\"method\":\"m\",\"params\":{\"_meta\":{"
                      "\"progressToken\":\"t\"}}}");
    give(&workers[0], "{\"method\":\"notifications/progress\",\"params\":{"
                      "\"progressToken\":2}}");
    expect_subject(&clients[0], "a", false, false);
    give(&workers[0], "{\"method\":\"other\"}");
    expect_subject(&clients[0], "", false, false);
    give(&workers[0], "{\"id\":1,\"method\":\"q\"}");
    expect_subject(&clients[0], "", false, true);
    give(&workers[0], "{\"id\":2,\"result\":1}");
    expect_subject(&clients[0], "a", true, false);
    deliver_error(&clients[0].endpoint, (struct message_id){ID_STRING, {"b", 1}}, -1, "e");
    expect_subject(&clients[0], "b", true, false);
}

/* row: the answer comes, or the time limit. */
TEST_ROWS(held_endpoint_is_paused_and_resumed, 2)
{
    static const char request[] = "{\"id\":1,\"method\":\"m\"}";

    add_peers(1, (struct pool_mode){.clients = CLIENTS_SHARED});
    give(&clients[0], request);
    give(&clients[1], request);
    ck_assert_int_eq(clients[1].pauses, 1);
    ck_assert(timer_started(&clients[1].endpoint.hold_timer));
    expect(&workers[0], request);
    if (row == 0)
        give(&workers[0], "{\"id\":1,\"result\":1}");
    else
        deliver_hold_expired(&clients[1].endpoint);
    expect_retry(&clients[1]);
    expect(&workers[0], row == 0 ? request : "");
    if (row == 1)
        expect_word(clients[1].text, "id is still in use");
}

TEST(worker_is_paused_while_its_client_is_full)
{
    static const char notification[] = "{\"method\":\"n\",\"sessionId\":\"s\"}";

    add_peers(1, (struct pool_mode){.clients = CLIENTS_SHARED});
    give(&clients[0], notification);
    waiting_set_full(&bus.router, &clients[0].endpoint.peer, true);
    give(&workers[0], notification);
    ck_assert_int_eq(workers[0].pauses, 1);
    expect(&clients[0], "");
    waiting_set_full(&bus.router, &clients[0].endpoint.peer, false);
    expect_retry(&workers[0]);
    expect(&clients[0], notification);
}

static const struct refusal {
    const char *text, *word; /* word "": no reply */
    bool from_worker, strict;
} refusals[] = {
    {"{\"id\":1,\"method\":\"m\",\"pool\":\"none\"}", "\"id\":1,\"error\":{\"code\":-32602", false,
     false},
    {"{\"id\":1,\"method\":\"m\",\"pool\":\"none\"}", "", false, true},
    {"{\"method\":\"m\",\"pool\":\"none\"}", "", false, false},
    {"{\"id\":\"q\",\"method\":\"m\"}", "\"id\":\"q\",\"error\":{\"code\":-32000", true, false},
    {"{\"id\":1,\"result\":1}", "", true, false},
};

TEST_ROWS(refused_request_gets_an_error, COUNT(refusals))
{
    const struct refusal *refusal = &refusals[row];
    struct recording_endpoint *from = refusal->from_worker ? &workers[0] : &clients[0];
    char log[1000] = "";

    add_peers(1, (struct pool_mode){.clients = CLIENTS_SHARED});
    config.strict = refusal->strict;
    give(from, refusal->text);
    ck_assert_int_eq(from->deliveries, refusal->word[0] != '\0');
    if (from->deliveries > 0)
        expect_word(from->text, refusal->word);
    ck_assert_int_eq(clients[0].deliveries + workers[0].deliveries, from->deliveries);
    rewind(log_file);
    ck_assert_uint_gt(fread(log, 1, sizeof log - 1, log_file), 0);
    expect_word(log, "discarded a message");
}

/* row: a request, its answer, or a notification. */
TEST_ROWS(failed_delivery_changes_nothing_and_is_repeated, 3)
{
    static const char *const texts[] = {"{\"id\":1,\"method\":\"m\",\"sessionId\":\"s\"}",
                                        "{\"id\":1,\"result\":1}",
                                        "{\"method\":\"n\",\"sessionId\":\"s\"}"};
    struct recording_endpoint *from = row == 0 ? &clients[0] : &workers[0];
    struct recording_endpoint *to = row == 0 ? &workers[0] : &clients[0];

    add_peers(1, (struct pool_mode){.clients = CLIENTS_SHARED});
    if (row > 0)
        give(&clients[0], texts[0]);
    to->refuse = 2;
    give(from, texts[row]);
    ck_assert_int_eq(from->pauses, 1);
    ck_assert(timer_started(&bus.starved_retry));
    ck_assert_uint_eq(bus.router.from_clients.active_count, row > 0);
    deliver_retry_starved(&bus);
    expect_retry(from);
    ck_assert_int_eq(from->pauses, 2);
    deliver_retry_starved(&bus);
    expect_retry(from);
    expect(to, texts[row]);
    ck_assert_uint_eq(bus.router.from_clients.active_count, row != 1);
}

/* Each client gets a copy; after a failure only the clients that have not got one. */
TEST(broadcast_reaches_each_client_once)
{
    static const char notification[] = "{\"method\":\"n\"}";

    add_peers(1, (struct pool_mode){.clients = CLIENTS_STICKY});
    give(&clients[0], notification);
    give(&clients[1], notification);
    clients[1].refuse = 1;
    give(&workers[0], notification);
    ck_assert_int_eq(workers[0].pauses, 1);
    deliver_retry_starved(&bus);
    expect_retry(&workers[0]);
    for (int i = 0; i < PEERS; i++) {
        expect(&clients[i], notification);
        ck_assert_int_eq(clients[i].kept, 1);
    }
    ck_assert_uint_eq(workers[0].endpoint.peer.broadcast, 0);
}

FIXTURE(set_up, tear_down)
