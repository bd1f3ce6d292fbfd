/* MCP servers whose answers are given to clients while no process runs. */
#include "build_config.h"

#include "router/from_memory.h"

#include "base/archive.h"
#include "pool_mode_fixture.h"
#include "router/errand.h"
#include "router/handshake.h"

#define SHARED STICKY, REWRITE, .protocol = PROTOCOL_MCP, .on_exit = EXIT_REPLAYS

#define INITIALIZE(id, version)                                                                    \
    "{'id':" id ",'method':'initialize','params':{'protocolVersion':'" version "'}}"
#define INITIALIZED "{'method':'notifications/initialized'}"
#define RESULT(id)                                                                                 \
    "{'id':" id ",'result':{'protocolVersion':'v','capabilities':{'tools':{'listChanged':true}}}}"
#define LIST(id) "{'id':" id ",'method':'tools/list'}"
#define TOOLS(id, name) "{'id':" id ",'result':{'tools':['" name "']}}"
#define TOOLS_AND(id, name, next)                                                                  \
    "{'id':" id ",'result':{'tools':['" name "'],'nextCursor':" next "}}"
#define LEVEL(id, level) "{'id':" id ",'method':'logging/setLevel','params':{'level':'" level "'}}"
#define EMPTY(id) "{'jsonrpc':'2.0','id':" id ",'result':{}}"

static struct remembered remembered;
static struct peer *worker = &workers[0];

static void begin(void)
{
    set_up();
    remembered_init(&remembered);
    POOL("p", 1, SHARED);
    pools[0].remembered = &remembered;
}

static void end(void)
{
    tear_down();
    remembered_clear(&remembered);
}

#define expect_answer(delivery_, text_)                                                            \
    do {                                                                                           \
        struct delivery *answered_ = (delivery_);                                                  \
        expect_action(answered_, ACTION_ANSWER);                                                   \
        ck_assert_str_eq(answered_->text, (text_));                                                \
    } while (0)

/* The daemon asks for a page, with this cursor unless it is NULL; otherwise there is no errand. */
static void expect_asked(const char *method, const char *cursor)
{
    struct errand errand;

    ck_assert(errand_next(&router, &errand));
    ck_assert_int_eq(errand.kind, ERRAND_LIST);
    ck_assert_str_eq(errand.method, method);
    ck_assert((errand.text.data == NULL) == (cursor == NULL));
    ck_assert(cursor == NULL || slice_is(errand.text, cursor));
}

static void expect_no_errand(void)
{
    struct errand errand;

    ck_assert(!errand_next(&router, &errand));
}

static void expect_announced(unsigned lists)
{
    struct errand errand;

    ck_assert(errand_next(&router, &errand));
    ck_assert_int_eq(errand.kind, ERRAND_ANNOUNCE);
    ck_assert_uint_eq(errand.lists, lists);
}

/* The first client's handshake; its initialize gets the id 2 at the server, the first list 4. */
static struct peer *teach(void)
{
    struct peer *client = add_client();
    struct errand errand;

    expect_action(give(client, INITIALIZE("0", "v")), ACTION_HOLD);
    ck_assert(errand_next(&router, &errand));
    expect_action(give(worker, RESULT("2")), ACTION_DROP);
    expect_released(client);
    expect_answer(give(client, INITIALIZE("0", "v")), RESULT("0"));
    expect_no_errand();
    expect_action(give(client, INITIALIZED), ACTION_FORWARD);
    expect_asked("tools/list", NULL);
    return client;
}

static void fall_asleep(void)
{
    worker->rest = PEER_ASLEEP;
    waiting_worker_available(&router, worker, PEER_ABSENT);
    departure_worker(&router, worker, note_unanswered, NULL);
}

/* A server that has this list, and sleeps; its client has left. */
static void teach_list(void)
{
    struct peer *client = teach();

    expect_action(give(worker, TOOLS("4", "t")), ACTION_DROP);
    expect_no_errand();
    leave(client);
    fall_asleep();
}

TEST(clients_are_answered_without_a_process)
{
    struct peer *a, *b;

    teach_list();
    router.demand = false;
    a = add_client();
    b = add_client();
    expect_answer(give(a, INITIALIZE("'i'", "v")), RESULT("'i'"));
    expect_action(give(a, INITIALIZED), ACTION_DROP);
    expect_answer(give(a, LIST("7")), TOOLS("7", "t"));
    expect_answer(give(b, INITIALIZE("0", "v")), RESULT("0"));
    expect_action(give(b, INITIALIZED), ACTION_DROP);
    expect_answer(give(b, "{'id':1,'method':'ping'}"), EMPTY("1"));
    expect_action(give(b, "{'method':'notifications/roots/list_changed'}"), ACTION_DROP);
    ck_assert_int_eq(worker->rest, PEER_ASLEEP);
    ck_assert(!router.demand);
    ck_assert(affinity_worker(a, &pools[0]) == worker && affinity_worker(b, &pools[0]) == worker);
    ck_assert_uint_eq(worker->handshake->teller, b->number);
    expect_action(give(b, "{'id':2,'method':'tools/call'}"), ACTION_HOLD);
    ck_assert_int_eq(worker->rest, PEER_CALLED);
    ck_assert(router.demand);
    /* while it comes */
    expect_answer(give(a, LIST("8")), TOOLS("8", "t"));
    expect_answer(give(add_client(), INITIALIZE("0", "v")), RESULT("0"));
}

/* The next process gets it with the handshake. */
TEST(level_waits_for_the_process)
{
    struct peer *a, *b;
    struct errand errand;

    teach_list();
    a = add_client();
    b = add_client();
    expect_answer(give(a, INITIALIZE("0", "v")), RESULT("0"));
    expect_answer(give(b, INITIALIZE("0", "v")), RESULT("0"));
    expect_answer(give(a, LEVEL("1", "error")), EMPTY("1"));
    expect_answer(give(a, LEVEL("2", "alert")), EMPTY("2"));
    expect_no_errand();
    ck_assert_int_eq(worker->rest, PEER_ASLEEP);
    expect_action(give(b, LEVEL("1", "loud")), ACTION_HOLD); /* the server may know it */
    ck_assert_int_eq(worker->rest, PEER_CALLED);
    expect_answer(give(a, LEVEL("3", "info")), EMPTY("3"));
    worker->rest = PEER_AWAKE;
    waiting_worker_available(&router, worker, PEER_READY);
    handshake_note_errand(worker->handshake);
    ck_assert(errand_next(&router, &errand));
    ck_assert_int_eq(errand.kind, ERRAND_SET_LEVEL);
    ck_assert(slice_is(errand.text, "info"));
}

static const char *const unknown[] = {
    "{'id':1,'method':'prompts/list'}",
    "{'id':1,'method':'tools/list','params':{'cursor':'c'}}",
    "{'id':1,'method':'tools/list','params':{'cursor':7}}",
    "{'id':1,'method':'tools/list','params':{'cursor':''}}",
    "{'id':1,'method':'tools/list','params':{'x':1}}",
    "{'id':1,'method':'tools/list','params':{'_meta':{'x':1}}}",
    "{'id':1,'method':'tools/list','params':{'_meta':[]}}",
    "{'id':1,'method':'tools/list','params':[]}",
    "{'method':'tools/list'}",
};

TEST_ROWS(requests_that_need_a_process, COUNT(unknown))
{
    struct peer *client;

    teach_list();
    client = add_client();
    expect_answer(give(client, INITIALIZE("0", "v")), RESULT("0"));
    expect_action(give(client, unknown[row]), ACTION_HOLD);
    ck_assert_int_eq(worker->rest, PEER_CALLED);
}

TEST(progress_tokens_and_empty_params_do_not_matter)
{
    struct peer *client;

    teach_list();
    client = add_client();
    give(client, INITIALIZE("0", "v"));
    expect_answer(give(client, "{'id':1,'method':'tools/list','params':{}}"), TOOLS("1", "t"));
    expect_answer(give(client, "{'id':2,'method':'tools/list','params':{'_meta':{'progressToken':"
                               "1}}}"),
                  TOOLS("2", "t"));
}

TEST(another_version_needs_a_process)
{
    struct peer *client;

    teach_list();
    client = add_client();
    expect_action(give(client, INITIALIZE("0", "w")), ACTION_HOLD);
}

TEST(pages_are_asked_for_one_after_the_other)
{
    struct peer *client = teach();

    expect_action(give(worker, TOOLS_AND("4", "t", "'a'")), ACTION_DROP);
    expect_asked("tools/list", "a");
    expect_action(give(worker, TOOLS_AND("6", "u", "'b'")), ACTION_DROP);
    ck_assert(!remembered.lists[REMEMBERED_TOOLS].whole);
    expect_asked("tools/list", "b");
    expect_action(give(worker, TOOLS_AND("8", "v", "null")), ACTION_DROP);
    expect_no_errand();
    leave(client);
    fall_asleep();
    client = add_client();
    give(client, INITIALIZE("0", "v"));
    expect_answer(give(client, LIST("1")), TOOLS_AND("1", "t", "'a'"));
    expect_answer(give(client, "{'id':2,'method':'tools/list','params':{'cursor':'a'}}"),
                  TOOLS_AND("2", "u", "'b'"));
    expect_answer(give(client, "{'id':3,'method':'tools/list','params':{'cursor':'\\u0062'}}"),
                  TOOLS_AND("3", "v", "null"));
}

static const char *const useless[] = {
    "{'id':4,'error':{'code':-32601,'message':'none'}}",
    "{'id':4,'result':[]}",
    "{'id':4,'result':{'tools':[],'tools':[]}}",
};

TEST_ROWS(list_that_cannot_be_remembered, COUNT(useless))
{
    teach();
    expect_action(give(worker, useless[row]), ACTION_DROP);
    expect_no_errand();
    ck_assert(!remembered.lists[REMEMBERED_TOOLS].whole);
}

/* row 0: the list is the same; 1: another one; 2: another one of which the server itself tells. */
TEST_ROWS(lists_are_compared, 3)
{
    struct peer *client;

    teach_list();
    client = add_client();
    give(client, INITIALIZE("0", "v"));
    give(client, INITIALIZED);
    worker->rest = PEER_AWAKE;
    waiting_worker_available(&router, worker, PEER_READY);
    from_memory_compare(worker->handshake);
    expect_asked("tools/list", NULL);
    if (row == 2) {
        give(worker, "{'method':'notifications/tools/list_changed'}");
        ck_assert_uint_eq(worker->handshake->remembering.wanted, 1u << REMEMBERED_TOOLS);
    }
    expect_action(give(worker, row == 0 ? TOOLS("6", "t") : TOOLS("6", "new")), ACTION_DROP);
    if (row == 1)
        expect_announced(1u << HANDSHAKE_TOOLS);
    if (row == 2)
        expect_asked("tools/list", NULL);
    expect_no_errand();
    ck_assert_uint_eq(from_memory_compared(worker->handshake), 1u << HANDSHAKE_TOOLS);
}

TEST(answer_to_initialize_is_compared)
{
    struct message_scratch scratch;
    struct scanner scanner;
    struct message message;
    static const char other[] = "{\"id\":\"x\",\"result\":{\"protocolVersion\":\"v\"}}\n";

    teach_list();
    give(add_client(), INITIALIZE("0", "v"));
    scanner_reset(&scanner);
    ck_assert_int_eq(scanner_run(&scanner, other, sizeof other - 1), SCAN_MESSAGE);
    ck_assert_int_eq(message_from_scan(&message, slice_of(other, sizeof other - 1), &scanner.fields,
                                       &scratch),
                     MESSAGE_OK);
    remembered_set_era(&remembered, true);
    ck_assert(from_memory_renew(worker->handshake, &message));
    ck_assert(!remembered.refuses_stateless);
    remembered_set_era(&remembered, true);
    ck_assert(!from_memory_renew(worker->handshake, &message));
    ck_assert(remembered.refuses_stateless);
    message.has_result = false; /* an error */
    ck_assert(!from_memory_renew(worker->handshake, &message));
    ck_assert_ptr_null(remembered_version(&remembered, slice_of("v", 1)));
}

TEST(server_that_asks_for_roots_is_not_remembered)
{
    struct peer *client = teach();

    give(worker, "{'id':1,'method':'roots/list'}");
    ck_assert(remembered.unfit);
    expect_action(give(worker, TOOLS("4", "t")), ACTION_DROP);
    leave(client);
    fall_asleep();
    expect_action(give(add_client(), INITIALIZE("0", "v")), ACTION_HOLD);
}

/* A process that starts is waited for: no other one is begun from memory. */
/* Its program was replaced while it had a page of a list to send, and another version to settle. */
TEST(nothing_is_learnt_from_an_outdated_process)
{
    struct peer *other = add_client();
    struct errand errand;

    teach();
    remembered_clear(&remembered);
    worker->outdated = true;
    expect_action(give(worker, TOOLS("4", "t")), ACTION_DROP);
    ck_assert_ptr_null(remembered_next_page(&remembered, REMEMBERED_TOOLS, NULL));
    expect_no_errand();
    expect_action(give(other, INITIALIZE("0", "w")), ACTION_HOLD);
    ck_assert(errand_next(&router, &errand));
    expect_action(give(worker, RESULT("6")), ACTION_DROP);
    ck_assert_ptr_null(remembered_version(&remembered, slice_of("w", 1)));
    give(worker, "{'method':'notifications/tools/list_changed'}");
    expect_no_errand();
    give(worker, "{'id':1,'method':'roots/list'}");
    ck_assert(!remembered.unfit);
    fall_asleep();
    ck_assert(!worker->outdated);
}

TEST(clients_join_a_process_that_comes)
{
    struct peer *a, *b;

    teach_list();
    workers[1].rest = PEER_ASLEEP;
    ck_assert_int_eq(router_add_worker(&router, &workers[worker_count++], &pools[0]), STDIO_BUS_OK);
    a = add_client();
    b = add_client();
    expect_answer(give(a, INITIALIZE("0", "v")), RESULT("0"));
    workers[0].rest = PEER_AWAKE;
    expect_action(give(b, INITIALIZE("0", "v")), ACTION_HOLD);
}

/* --- the archive --- */

static void save(struct archive *archive)
{
    archive_begin_saving(archive);
    remembered_archive(&remembered, archive);
    ck_assert(archive_ok(archive));
}

static bool load(struct remembered *to, struct slice bytes)
{
    struct archive archive;
    bool loaded;

    remembered_init(to);
    archive_begin_loading(&archive, bytes, -1);
    remembered_archive(to, &archive);
    loaded = archive_ok(&archive);
    archive_free(&archive);
    return loaded;
}

TEST(memory_is_saved_and_loaded)
{
    struct archive archive;
    struct remembered loaded;
    struct peer *client;

    teach_list();
    save(&archive);
    ck_assert(load(&loaded, slice_of(archive.data, archive.len)));
    archive_free(&archive);
    pools[0].remembered = &loaded;
    client = add_client();
    expect_answer(give(client, INITIALIZE("0", "v")), RESULT("0"));
    expect_answer(give(client, LIST("1")), TOOLS("1", "t"));
    remembered_clear(&loaded);
}

TEST(memory_that_is_cut_or_changed_is_no_crash)
{
    struct archive archive;
    struct remembered loaded;

    teach_list();
    save(&archive);
    for (size_t len = 0; len < archive.len; len++) {
        char *cut = malloc(len + 1); /* reading on is noticed */

        memcpy(cut, archive.data, len);
        ck_assert(!load(&loaded, slice_of(cut, len)));
        remembered_clear(&loaded);
        free(cut);
        archive.data[len] ^= 0x55;
        load(&loaded, slice_of(archive.data, archive.len));
        remembered_clear(&loaded);
        archive.data[len] ^= 0x55;
    }
    archive_free(&archive);
}

FIXTURE(begin, end)
