/* Results of MCP's stateless era that their server lets clients keep. */
#include "build_config.h"

#include "router/fresh.h"

#include "base/archive.h"
#include "pool_mode_fixture.h"
#include "router/eras.h"

#define META "'_meta':{'io.modelcontextprotocol/protocolVersion':'2026-07-28'}"
#define ASK(id, method, more) "{'id':" id ",'method':'" method "','params':{" more META "}}"
#define RESULT(id, ttl, text)                                                                      \
    "{'id':" id ",'result':{'ttlMs':" ttl ",'cacheScope':'public','a':'" text "'}}"

static struct group *handshake = &pools[0], *stateless = &pools[1];
static struct fresh fresh;
static struct peer *worker = &workers[0];

static void begin(void)
{
    struct pool_mode mode = {.clients = CLIENTS_STICKY,
                             .protocol = PROTOCOL_MCP,
                             .stateless = CLIENTS_STICKY,
                             .rewrite_ids = true};

    set_up();
    fresh_init(&fresh);
    add_pool_of_eras(&mode);
    stateless->support = ERA_SERVED;
    stateless->fresh = &fresh;
    add_workers(handshake, 1);
    router.now_ms = 1000;
}

static void end(void)
{
    tear_down();
    fresh_clear(&fresh);
}

/* The worker gets the request, and answers; `to` gets this text. */
#define exchange(from_, request_, answer_)                                                         \
    do {                                                                                           \
        ck_assert_ptr_eq(give((from_), (request_))->decision.to, worker);                          \
        expect_action(give(worker, (answer_)), ACTION_FORWARD);                                    \
    } while (0)

static void expect_known(struct peer *from, const char *request, const char *text)
{
    struct delivery *delivery = give(from, request);

    expect_action(delivery, ACTION_ANSWER);
    ck_assert_str_eq(delivery->text, text);
}

static void expect_asked(struct peer *from, const char *request)
{
    struct delivery *delivery = give(from, request);

    expect_action(delivery, ACTION_FORWARD);
    ck_assert_ptr_eq(delivery->decision.to, worker);
}

static const char *const methods[] = {
    "server/discover",          "tools/list",    "prompts/list", "resources/list",
    "resources/templates/list", "resources/read"};

TEST_ROWS(fresh_results_are_given_to_others, COUNT(methods))
{
    struct peer *a = add_client(), *b = add_client();

    exchange(a, test_format(ASK("1", "%s", ""), methods[row]), RESULT("2", "500", "one"));
    router.now_ms += 200;
    expect_known(b, test_format(ASK("'long'", "%s", ""), methods[row]),
                 RESULT("'long'", "300", "one"));
    router.now_ms += 299;
    expect_known(b, test_format(ASK("7", "%s", ""), methods[row]), RESULT("7", "1", "one"));
    router.now_ms += 1;
    expect_asked(b, test_format(ASK("8", "%s", ""), methods[row]));
    expect_action(give(worker, RESULT("4", "9", "two")), ACTION_FORWARD);
    expect_known(a, test_format(ASK("9", "%s", ""), methods[row]), RESULT("9", "9", "two"));
}

/* The id is after the result. */
TEST(fresh_result_before_its_id)
{
    struct peer *a = add_client();

    exchange(a, ASK("1", "tools/list", ""), "{'result':{'ttlMs':500},'id':2}");
    expect_known(a, ASK("3", "tools/list", ""), "{'result':{'ttlMs':500},'id':3}");
}

static const char *const answers[] = {
    "{'id':2,'result':{}}",
    "{'id':2,'result':{'ttlMs':-1}}",
    "{'id':2,'result':{'ttlMs':1.5}}",
    "{'id':2,'result':{'ttlMs':'500'}}",
    "{'id':2,'result':{'ttlMs':0}}",
    "{'id':2,'result':{'ttlMs':500,'resultType':'input_required'}}",
    "{'id':2,'error':{'code':1,'message':'','ttlMs':500}}",
    "{'id':2,'result':{'a':{'ttlMs':500}}}",
    "{'id':2,'result':[]}",
};

TEST_ROWS(fresh_is_not_what_the_server_does_not_say, COUNT(answers))
{
    struct peer *a = add_client();

    exchange(a, ASK("1", "tools/list", ""), answers[row]);
    expect_asked(a, ASK("2", "tools/list", ""));
}

static const char *const requests[] = {
    ASK("2", "tools/list", "'cursor':'other',"),
    ASK("2", "tools/list", "'cursor':1,"),
    ASK("2", "tools/list", "'inputResponses':{},"),
    ASK("2", "tools/list", "'requestState':'s',"),
    ASK("2", "tools/call", ""),
    ASK("2", "prompts/list", ""),
    "{'id':2,'method':'tools/list','params':{'_meta':{'io.modelcontextprotocol/protocolVersion':"
    "'2027-01-01'}}}",
    "{'id':2,'method':'tools/list','params':{'_meta':{'io.modelcontextprotocol/protocolVersion':"
    "'2026-07-28','io.modelcontextprotocol/logLevel':'debug'}}}",
};

TEST_ROWS(fresh_is_for_the_same_request, COUNT(requests))
{
    struct peer *a = add_client();

    exchange(a, ASK("1", "tools/list", ""), RESULT("2", "500", "one"));
    expect_asked(a, requests[row]);
}

TEST(fresh_pages_and_resources)
{
    struct peer *a = add_client();

    exchange(a, ASK("1", "tools/list", "'cursor':'2',"), RESULT("2", "500", "page"));
    exchange(a, ASK("2", "resources/read", "'uri':'x',"), RESULT("4", "500", "x"));
    exchange(a, ASK("3", "resources/read", "'uri':'y',"), RESULT("6", "500", "y"));
    expect_known(a, ASK("4", "tools/list", "'cursor':'2',"), RESULT("4", "500", "page"));
    expect_known(a, ASK("5", "resources/read", "'uri':'y',"), RESULT("5", "500", "y"));
    expect_known(a, ASK("6", "resources/read", "'uri':'x',"), RESULT("6", "500", "x"));
}

/* As a client hears that listens. */
#define NOTICE(method, more)                                                                       \
    "{'method':'notifications/" method "','params':{" more                                         \
    "'_meta':{'io.modelcontextprotocol/subscriptionId':2}}}"

TEST(fresh_results_that_have_changed)
{
    struct peer *a = add_client();

    expect_asked(a, "{'id':1,'method':'subscriptions/listen','params':{" META "}}");
    exchange(a, ASK("2", "tools/list", ""), RESULT("4", "500", "t"));
    exchange(a, ASK("3", "resources/read", "'uri':'x',"), RESULT("6", "500", "x"));
    exchange(a, ASK("4", "resources/read", "'uri':'y',"), RESULT("8", "500", "y"));
    expect_action(give(worker, NOTICE("resources/updated", "'uri':'x',")), ACTION_FORWARD);
    expect_known(a, ASK("5", "resources/read", "'uri':'y',"), RESULT("5", "500", "y"));
    expect_known(a, ASK("6", "tools/list", ""), RESULT("6", "500", "t"));
    expect_asked(a, ASK("7", "resources/read", "'uri':'x',"));
    expect_action(give(worker, NOTICE("tools/list_changed", "")), ACTION_FORWARD);
    expect_asked(a, ASK("8", "tools/list", ""));
}

/* Stale lists are better than a process; what a resource says is not. */
TEST(fresh_while_no_process_runs)
{
    struct peer *a = add_client();

    exchange(a, ASK("1", "tools/list", ""), RESULT("2", "500", "t"));
    exchange(a, ASK("2", "resources/read", "'uri':'x',"), RESULT("4", "500", "x"));
    router.now_ms += 1000;
    worker->rest = PEER_ASLEEP;
    waiting_worker_available(&router, worker, PEER_ABSENT);
    expect_known(a, ASK("3", "tools/list", ""), RESULT("3", "0", "t"));
    expect_action(give(a, ASK("4", "resources/read", "'uri':'x',")), ACTION_HOLD);
}

/* The oldest make way. */
TEST(fresh_has_bounds)
{
    struct peer *a = add_client();

    for (int i = 0; i <= FRESH_COUNT_MAX; i++) {
        expect_asked(a, test_format(ASK("%d", "tools/list", "'cursor':'%d',"), i, i));
        expect_action(give(worker, test_format(RESULT("%d", "500", "p"), 2 * i + 2)),
                      ACTION_FORWARD);
    }
    ck_assert_uint_eq(fresh.count, FRESH_COUNT_MAX);
    expect_asked(a, ASK("1000", "tools/list", "'cursor':'0',"));
    expect_known(a, ASK("1001", "tools/list", "'cursor':'1',"), RESULT("1001", "500", "p"));
    expect_asked(a, test_format(ASK("1002", "tools/list", "'cursor':'%s',"),
                                test_fill('x', SUBSCRIPTION_URI_MAX)));
}

/* --- the archive --- */

static void save(struct archive *archive)
{
    archive_begin_saving(archive);
    fresh_archive(&fresh, archive);
    ck_assert(archive_ok(archive));
}

/* Whatever is loaded is what a server can answer, and as many bytes as are counted. */
static bool load(struct fresh *to, struct slice bytes)
{
    struct archive archive;
    bool loaded;

    fresh_init(to);
    archive_begin_loading(&archive, bytes, -1);
    fresh_archive(to, &archive);
    loaded = archive_ok(&archive);
    archive_free(&archive);
    ck_assert(to->count > 0 || to->bytes == 0);
    return loaded;
}

/* What is left of the time counts on. */
TEST(fresh_results_are_saved_and_loaded)
{
    struct peer *a = add_client();
    struct archive archive;
    struct fresh loaded;

    exchange(a, ASK("1", "tools/list", ""), RESULT("2", "500", "t"));
    exchange(a, ASK("2", "resources/read", "'uri':'x',"), RESULT("4", "900", "x"));
    save(&archive);
    router.now_ms += 200;
    ck_assert(load(&loaded, slice_of(archive.data, archive.len)));
    archive_free(&archive);
    ck_assert_uint_eq(loaded.count, fresh.count);
    ck_assert_uint_eq(loaded.bytes, fresh.bytes);
    stateless->fresh = &loaded;
    expect_known(a, ASK("3", "tools/list", ""), RESULT("3", "300", "t"));
    expect_known(a, ASK("'x'", "resources/read", "'uri':'x',"), RESULT("'x'", "700", "x"));
    router.now_ms += 300;
    expect_asked(a, ASK("4", "tools/list", ""));
    fresh_clear(&loaded);
}

TEST(fresh_results_that_are_cut_or_changed_are_no_crash)
{
    struct peer *a = add_client();
    struct archive archive;
    struct fresh loaded;

    exchange(a, ASK("1", "tools/list", ""), RESULT("2", "500", "t"));
    exchange(a, ASK("2", "prompts/list", ""), "{'result':{'ttlMs':500},'id':4}");
    save(&archive);
    for (size_t len = 0; len < archive.len; len++) {
        char *cut = malloc(len + 1); /* reading on is noticed */

        memcpy(cut, archive.data, len);
        ck_assert(!load(&loaded, slice_of(cut, len)));
        fresh_clear(&loaded);
        free(cut);
        for (int bit = 0; bit < 8; bit++) {
            archive.data[len] ^= (char)(1 << bit);
            load(&loaded, slice_of(archive.data, archive.len));
            stateless->fresh = &loaded;
            give(a, ASK("3", "tools/list", ""));
            give(a, ASK("4", "prompts/list", ""));
            stateless->fresh = &fresh;
            fresh_clear(&loaded);
            archive.data[len] ^= (char)(1 << bit);
        }
    }
    archive_free(&archive);
}

FIXTURE(begin, end)
