/* Pools for MCP: no process before a message needs one, and none for a server that is not called
 * (protocol.md, "Sleep"). */
#include "build_config.h"

#include "control.h"
#include "harness.h"
#include "share.h"

#define POOL_OF(id, keys) "{'id':'" id "','command':'@WORKER@','protocol':'mcp'" keys "}"
#define MCP(keys) POOL_OF("p", keys)
#define SLEEPS ",'idle_stop_sec':1"
#define STICKY ",'clients':'sticky'"

#define REVISION "'protocolVersion':'2025-11-25'"
#define INITIALIZE                                                                                 \
    "{%s'id':0,'method':'initialize','params':{" REVISION ",'result':{" REVISION                   \
    ",'capabilities':{'tools':{'listChanged':true}}}}}"
#define INITIALIZED "{%s'method':'notifications/initialized'}"
#define ERA "'_meta':{'io.modelcontextprotocol/protocolVersion':'2026-07-28'}"
#define LIST_CHANGED "notifications/tools/list_changed"
#define CHANGED "{'jsonrpc':'2.0','method':'" LIST_CHANGED "'}"
#define ASLEEP "not called for 1 s"

/* With the default pool if that is NULL. */
static void greet_by(struct client *client, const char *pool)
{
    const char *member = pool != NULL ? test_format("'pool':'%s',", pool) : "";
    client_send(client, INITIALIZE, member);
    client_result(client, "0");
    client_send(client, INITIALIZED, member);
}

static struct client *greet(const struct daemon *daemon)
{
    struct client *client = client_connect(daemon);
    greet_by(client, "p");
    return client;
}

static long greeted_pid(struct client **client, const struct daemon *daemon)
{
    *client = greet(daemon);
    return client_pid(*client, "1", NULL);
}

#define SHAKEN "initialize 2025-11-25,notifications/initialized"

/* The next process may have other lists. */
static long woken_pid(struct client *client)
{
    client_request(client, "2", NULL, "echo", NULL);
    client_expect(client, CHANGED);
    return (long)json_number(client_result(client, "2"), "pid");
}

/* The next process has got the handshake, and its clients are told of its lists: before the answer
 * that they wait for, or after it if an upgrade came between the lists and their answer, since they
 * are asked for again. */
static void expect_woken(struct client *client)
{
    struct span line = client_line(client);
    bool answered = json_get(line, "id").data != NULL;
    if (!answered) {
        ck_assert(span_is(json_text(json_get(line, "method")), LIST_CHANGED));
        line = client_line(client);
    }
    ck_assert(span_is(json_text(message_result(line, "\"h\"")), SHAKEN));
    if (answered)
        client_expect(client, CHANGED);
}

/* --- start on demand --- */

static const char *const lazy_pools[] = {
    MCP(",'lazy':true"),
    MCP(",'lazy':true,'clients':'exclusive','instances':2"),
    MCP(",'lazy':true" STICKY),
    MCP(",'lazy':true" STICKY ",'instances':2"),
};

TEST_ROWS(agents_lazy_pool_starts_at_the_first_message, 4)
{
    struct daemon *daemon = CONTROL_DAEMON(.pools = lazy_pools[row]);
    struct client *control = control_connect(daemon), *client;
    daemon_wait_workers(daemon, 0);
    control_wait(control, "workers", "workers.0.state", "'not started'");
    greeted_pid(&client, daemon);
    control_wait(control, "workers", "workers.0.state", "'running'");
    ck_assert(!daemon_logged(daemon, "restarting"));
}

TEST(agents_lazy_pool_starts_for_the_stateless_era)
{
    struct daemon *daemon = START(.pools = MCP(",'lazy':true" STICKY));
    struct client *client = client_connect(daemon);
    daemon_wait_workers(daemon, 0);
    client_send(client, "{'id':1,'method':'echo','params':{" ERA "}}");
    client_result(client, "1");
    daemon_wait_workers(daemon, 1);
}

/* --- sleep --- */

#define SLEEPING                                                                                   \
    POOL_OF("a", SLEEPS ",'spare':0,'instances':1")                                                \
    "," POOL_OF("b", SLEEPS STICKY) "," POOL_OF("c", SLEEPS STICKY ",'lazy':true") "," POOL_OF(    \
        "d", SLEEPS ",'clients':'shared','instances':1")

static long pid_in(struct client *client, const char *pool)
{
    client_send(client, "{'pool':'%s','id':1,'method':'echo'}", pool);
    return (long)json_number(client_result(client, "1"), "pid");
}

static int count_sleeps(struct client *control, int worker)
{
    return (int)json_number(control_ask(control, "workers", NULL),
                            test_format("workers.%d.sleeps", worker));
}

/* More than once where a step takes long. */
TEST(agents_sleep_until_the_next_request)
{
    static const char *const pools[] = {"a", "b", "c", "d"};
    struct daemon *daemon = CONTROL_DAEMON(.pools = SLEEPING);
    struct client *control = control_connect(daemon), *clients[4];
    long pids[4];
    for (int i = 0; i < 4; i++) {
        clients[i] = client_connect(daemon);
        greet_by(clients[i], pools[i]);
        pids[i] = pid_in(clients[i], pools[i]);
    }
    for (int round = 1; round <= 2; round++) {
        daemon_wait_workers(daemon, 0);
        for (int i = 0; i < 4; i++) {
            control_wait(control, "workers", test_format("workers.%d.state", i), "'asleep'");
            ck_assert_int_ge(count_sleeps(control, i), round);
            client_send(clients[i], "{'pool':'%s','id':'h','method':'heard'}", pools[i]);
            expect_woken(clients[i]);
            ck_assert_int_ne(pid_in(clients[i], pools[i]), pids[i]);
            expect_member(control_ask(control, "workers", NULL),
                          test_format("workers.%d.restarts", i), "0");
        }
    }
    ck_assert(daemon_logged(daemon, ASLEEP));
    ck_assert(daemon_logged(daemon, "a message needs it"));
    ck_assert(!daemon_logged(daemon, "restarting in"));
}

/* Those that are left are served by the next process, as well as those that come. */
TEST(agents_sleep_of_a_process_that_clients_share)
{
    struct daemon *daemon = START(.pools = MCP(SLEEPS STICKY));
    struct client *first, *second = NULL, *third;
    long pid = greeted_pid(&first, daemon), next;
    ck_assert_int_eq(greeted_pid(&second, daemon), pid);
    wait_gone(pid);
    client_close(first);
    third = greet(daemon);
    next = client_pid(third, "1", NULL);
    ck_assert_int_ne(next, pid);
    ck_assert_int_eq(woken_pid(second), next);
    client_close(second);
    client_close(third);
    wait_gone(next);
    daemon_wait_workers(daemon, 0);
    ck_assert_int_ne(greeted_pid(&first, daemon), next);
}

TEST(agents_sleep_ends_with_the_client)
{
    struct daemon *daemon = CONTROL_DAEMON(.pools = MCP(SLEEPS ",'spare':0,'instances':1"));
    struct client *client;
    long pid = greeted_pid(&client, daemon);
    wait_gone(pid);
    client_close(client);
    control_wait(control_connect(daemon), "workers", "workers.0.clients", "0");
    ck_assert_int_ne(greeted_pid(&client, daemon), pid);
}

/* The server that is not called any more starts no probe when it is. */
TEST(agents_sleep_of_a_stateless_process)
{
    struct daemon *daemon = START(.pools = MCP(SLEEPS ",'spare':0"));
    struct client *client = client_connect(daemon);
    long pid;
    client_send(client, "{'id':1,'method':'echo','params':{" ERA "}}");
    pid = (long)json_number(client_result(client, "1"), "pid");
    wait_gone(pid);
    client_send(client, "{'id':2,'method':'echo','params':{" ERA "}}");
    ck_assert_int_ne((long)json_number(client_result(client, "2"), "pid"), pid);
    ck_assert_uint_eq(daemon_count_log(daemon, "asked whether its server"), 1);
}

/* --- what keeps a process awake --- */

static const struct {
    const char *request; /* to the pool of this number, or of the next one */
    bool is_answered, greets;
} needs[] = {
    {"'method':'no_answer'", false, true},
    {"'method':'no_answer'", false, true},
    {"'method':'resources/subscribe','params':{'uri':'u'}", true, true},
    {"'method':'resources/subscribe','params':{'uri':'u'}", true, true},
    {"'method':'subscriptions/listen','params':{" ERA "}", false, false},
    {"'method':'subscriptions/listen','params':{" ERA "}", false, false},
    {"'method':'plain','params':{'task':{'taskId':'t'}}", true, true},
    {"'method':'plain','params':{'task':{'taskId':'t'}}", true, true},
    {"'method':'echo'", true, false},
};

#define BUSY(id) POOL_OF(id, SLEEPS ",'spare':0,'instances':1")
#define SHARED(id) POOL_OF(id, SLEEPS STICKY)

/* While the process of another pool falls asleep twice. */
TEST(agents_sleep_waits)
{
    static const char pools[] = SHARED("p") "," BUSY("0") "," SHARED("1") "," BUSY("2") "," SHARED(
        "3") "," BUSY("4") "," SHARED("5") "," BUSY("6") "," SHARED("7") "," BUSY("8");
    struct daemon *daemon = CONTROL_DAEMON(.pools = pools);
    struct client *control = control_connect(daemon), *other;
    int sleeps[COUNT(needs)]; /* before its client came, where a step takes long */
    for (size_t i = 0; i < COUNT(needs); i++) {
        struct client *busy = client_connect(daemon);
        if (needs[i].greets)
            greet_by(busy, test_format("%zu", i));
        client_send(busy, "{'pool':'%zu','id':5,%s}", i, needs[i].request);
        if (needs[i].is_answered)
            client_line(busy);
        sleeps[i] = count_sleeps(control, (int)i + 1);
    }
    wait_gone(greeted_pid(&other, daemon));
    wait_gone(woken_pid(other));
    for (size_t i = 0; i < COUNT(needs); i++) {
        control_wait(control, "workers", test_format("workers.%zu.state", i + 1), "'running'");
        ck_assert_int_eq(count_sleeps(control, (int)i + 1), sleeps[i]);
    }
}

/* --- the moment of falling asleep --- */

#define STAYS ",'args':['--stay']"

/* The processes stay after the end of their input: they are being ended for seconds. */
TEST(agents_sleep_request_while_the_process_ends)
{
    static const char *const pools[] = {"a", "b"};
    struct daemon *daemon =
        START(.pools = POOL_OF("a", SLEEPS ",'spare':0" STAYS) "," POOL_OF("b",
                                                                           SLEEPS STICKY STAYS));
    struct client *clients[2];
    long pids[2];
    for (int i = 0; i < 2; i++) {
        clients[i] = client_connect(daemon);
        greet_by(clients[i], pools[i]);
        pids[i] = pid_in(clients[i], pools[i]);
    }
    daemon_wait_log(daemon, "pool=a.*" ASLEEP);
    daemon_wait_log(daemon, "pool=b.*" ASLEEP);
    for (int i = 0; i < 2; i++)
        client_send(clients[i], "{'pool':'%s','id':2,'method':'echo'}", pools[i]);
    for (int i = 0; i < 2; i++) {
        client_expect(clients[i], CHANGED);
        ck_assert_int_ne((long)json_number(client_result(clients[i], "2"), "pid"), pids[i]);
        client_expect_quiet(clients[i]);
    }
}

TEST(agents_sleep_client_leaves_while_the_process_ends)
{
    struct daemon *daemon = START(.pools = MCP(SLEEPS ",'spare':0,'args':['--stay']"));
    struct client *client;
    long pid = greeted_pid(&client, daemon);
    daemon_wait_log(daemon, ASLEEP);
    client_request(client, "2", NULL, "echo", NULL);
    client_abort(client);
    wait_gone(pid);
    daemon_wait_workers(daemon, 0);
    ck_assert_int_ne(greeted_pid(&client, daemon), pid);
}

/* A server that does not come back is an error for the request, and not a loop. */
TEST(agents_sleep_without_waking)
{
    static const char once[] =
        "{'id':'p','command':'sh','args':['-c','test ! -e @DIR@/test-once && touch "
        "@DIR@/test-once && exec @WORKER@'],'protocol':'mcp'" SLEEPS STICKY "}";
    struct daemon *daemon = START(.pools = once);
    struct client *client;
    long pid = greeted_pid(&client, daemon);
    wait_gone(pid);
    client_request(client, "2", NULL, "echo", NULL);
    client_error(client, "2", -32000, "exited");
    client_expect_eof(client);
    daemon_wait_workers(daemon, 0);
}

/* --- upgrades and reloads --- */

TEST(agents_sleep_goes_on_after_an_upgrade)
{
    static const char *const pools[] = {"a", "b"};
    struct daemon *daemon;
    struct client *clients[2];
    long pids[2];
    if (!daemon_can_upgrade())
        return;
    daemon = START(.pools = SLEEPING);
    for (int i = 0; i < 2; i++) {
        clients[i] = client_connect(daemon);
        greet_by(clients[i], pools[i]);
        pids[i] = pid_in(clients[i], pools[i]);
    }
    daemon_upgrade(daemon);
    daemon_wait_workers(daemon, 0);
    daemon_upgrade(daemon);
    for (int i = 0; i < 2; i++) {
        client_send(clients[i], "{'pool':'%s','id':'h','method':'heard'}", pools[i]);
        client_expect(clients[i], CHANGED);
        ck_assert(span_is(json_text(client_result(clients[i], "\"h\"")), SHAKEN));
        ck_assert_int_ne(pid_in(clients[i], pools[i]), pids[i]);
    }
}

/* --- one line --- */

TEST(agents_sleep_of_a_shared_server)
{
    const char *idle = timeout_factor() > 8 ? "20" : "1"; /* with valgrind each program is slow */
    struct sharer *one = SHARE(.arguments = {"--idle-stop", idle}), *other;
    long pid;
    greet_by(one->client, NULL);
    other = SHARE(.cwd = NULL);
    greet_by(other->client, NULL);
    pid = client_pid(one->client, "1", NULL);
    ck_assert_int_eq(client_pid(other->client, "1", NULL), pid);
    share_wait_gone((pid_t)pid);
    ck_assert_int_ne(woken_pid(other->client), pid);
    ck_assert_uint_eq(share_logged("not called for"), 1);
    client_expect(one->client, CHANGED);
    share_finish(one);
    share_finish(other);
}
