/* Pools over NATS (federation.md): the daemon beside a scripted server. */
#include "build_config.h"

#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control.h"
#include "nats_broker.h"
#include "steps.h"

#define CONFIG(members)                                                                            \
    test_format("{'pools':[{'id':'a','command':'@WORKER@','args':['--name','a'],'export':true}],"  \
                "'nats':{'servers':['127.0.0.1:%u']%s}}",                                          \
                broker.port, members)

#define ECHO(id) "{'jsonrpc':'2.0','id':" id ",'method':'echo'}"

/* A server, and a daemon that has subscribed there. */
static struct broker begin(void)
{
    struct broker broker = {.port = 0};

    broker_listen(&broker);
    START(.config = CONFIG(""));
    broker_begin(&broker);
    return broker;
}

/* --- requests --- */

TEST(nats_rpc_request_has_its_answer)
{
    struct broker broker = {.port = 0};

    broker_listen(&broker);
    START(.config = CONFIG(",'node':'n1'"));
    broker_begin(&broker);
    broker_ask(&broker, "r.1", ECHO("1"));
    ck_assert(span_is(json_get(message_result(broker_answer(&broker, "r.1"), "1"), "worker"),
                      "\"a\""));
    broker_ask(&broker, "r.2", ECHO("'x'"));
    message_result(broker_answer(&broker, "r.2"), "\"x\"");
    broker_ask(&broker, "r.3", "{'jsonrpc':'2.0','method':'note','params':5}");
    broker_expect(&broker, "PUB r.3 0");
    broker_expect(&broker, "");
    broker_ask(&broker, "", ECHO("4")); /* no reply is wanted */
    broker_ask(&broker, "r.5", "{'id':5,'method':'last_note'}");
    ck_assert(span_is(json_get(message_result(broker_answer(&broker, "r.5"), "5"), "params"), "5"));
}

static const struct {
    const char *json, *id;
    int code;
} refused[] = {
    {"rubbish", "null", -32700},
    {"[]", "null", -32700},
    {"[" ECHO("1") ",7]", "null", -32700},
    {"[" ECHO("1"), "null", -32700},
    {"[" ECHO("1") ",{'id':[],'method':'echo'}," ECHO("3") "]", "null", -32600},
    {"{'jsonrpc':'2.0','id':{},'method':'echo'}", "null", -32600},
    {"{'jsonrpc':'2.0','id':1,'result':1}", "1", -32600},
    {"{'jsonrpc':'2.0','id':1,'method':'echo','pool':'b'}", "1", -32602},
};

TEST_ROWS(nats_rpc_is_refused, COUNT(refused))
{
    struct broker broker = begin();

    broker_ask(&broker, "r", refused[row].json);
    message_error(broker_answer(&broker, "r"), refused[row].id, refused[row].code, "");
    broker_ask(&broker, "s", ECHO("2"));
    message_result(broker_answer(&broker, "s"), "2");
}

/* Requests wait for the worker at most; the same id of two of them is no matter. */
TEST(nats_rpc_requests_wait)
{
    struct broker broker = begin();

    broker_ask(&broker, "r.1", "{'id':1,'method':'hold'}");
    message_result(broker_answer(&broker, "r.1"), "1");
    broker_ask(&broker, "r.2", ECHO("2"));
    broker_ask(&broker, "r.3", ECHO("2"));
    broker_ask(&broker, "r.4", "{'id':3,'method':'release'}");
    for (int i = 0; i < 3; i++) {
        broker_expect(&broker, "PUB r.");
        client_line(broker.link);
    }
}

TEST(nats_rpc_worker_exits)
{
    struct broker broker = begin();

    broker_ask(&broker, "r.1", "{'id':1,'method':'die'}");
    message_error(broker_answer(&broker, "r.1"), "1", -32000, "worker exited");
}

/* The server has the last word about sizes. */
TEST(nats_rpc_answer_exceeds_max_payload)
{
    struct broker broker = begin();

    broker_say(&broker, "INFO {\"headers\":true,\"max_payload\":150}");
    broker_ask(&broker, "r.1", test_format("{'id':1,'method':'echo','params':'%0*d'}", 200, 0));
    message_error(broker_answer(&broker, "r.1"), "1", -32000, "max_payload");
}

/* --- arrays --- */

/* So many answers, in any order: the sum of their ids. */
static long ids_of(struct span answers, int expected)
{
    struct json_cursor cursor;
    struct span key, value;
    int count = 0;
    long sum = 0;

    json_open(&cursor, answers);
    for (; json_next(&cursor, &key, &value); count++)
        sum += json_number(value, "id");
    ck_assert_int_eq(count, expected);
    return sum;
}

TEST(nats_rpc_array_has_an_array)
{
    struct broker broker = begin();

    broker_ask(&broker, "r.1", " [ " ECHO("1") " ] ");
    ck_assert_int_eq(ids_of(broker_answer(&broker, "r.1"), 1), 1);
    broker_ask(&broker, "r.2",
               "[" ECHO("1") ",{'method':'n'}, " ECHO(
                   "2") ",{'id':9,'result':1},"
                        "{'id':4,'method':'echo','pool':'b'},{'id':8,'method':'fail'}]");
    ck_assert_int_eq(ids_of(broker_answer(&broker, "r.2"), 4), 15);
    broker_ask(&broker, "r.3", "[{'method':'n'},{'method':'note','params':5}]");
    broker_expect(&broker, "PUB r.3 0");
    broker_expect(&broker, "");
    broker_ask(&broker, "", "[" ECHO("1") "]"); /* no reply is wanted */
    broker_ask(&broker, "r.4", "{'id':5,'method':'last_note'}");
    ck_assert(span_is(json_get(message_result(broker_answer(&broker, "r.4"), "5"), "params"), "5"));
    broker_say(&broker, "MSG $SRV.STATS.a.x 11 r.5 0\r\n");
    expect_member(broker_answer(&broker, "r.5"), "endpoints.0.num_requests", "5");
}

TEST(nats_rpc_array_has_errors_of_its_members)
{
    struct broker broker = begin();
    struct span answers;

    broker_ask(&broker, "r.1", "[{'id':1,'method':'no_answer'},{'id':2,'method':'die'}]");
    answers = broker_answer(&broker, "r.1");
    expect_member(answers, "0.error.code", "-32000");
    expect_member(answers, "1.error.code", "-32000");
    ck_assert_int_eq(json_number(answers, "0.id") + json_number(answers, "1.id"), 3);
}

TEST(nats_rpc_array_exceeds_max_payload)
{
    struct broker broker = begin();

    broker_say(&broker, "INFO {\"headers\":true,\"max_payload\":600}");
    broker_ask(&broker, "r.1",
               test_format("[{'id':1,'method':'echo','params':'%0*d'},"
                           "{'id':2,'method':'echo','params':'%0*d'}," ECHO("3") "]",
                           200, 0, 200, 0));
    message_error(broker_answer(&broker, "r.1"), "null", -32000, "max_payload");
    broker_ask(&broker, "r.2", "[" ECHO("1") "]");
    ck_assert_int_eq(ids_of(broker_answer(&broker, "r.2"), 1), 1);
}

/* 64 MiB wait for requests that are never answered. */
TEST(nats_rpc_array_exceeds_what_may_wait)
{
    struct broker broker = begin();

    broker_say(&broker, "INFO {\"headers\":true,\"max_payload\":100000000}");
    for (int i = 1; i <= 5; i++) {
        struct text *array = test_text();

        text_printf(array, "[{'id':%d,'method':'no_answer'}", i);
        for (int n = 0; n < 14; n++)
            text_printf(array, ",{'id':%d,'method':'big','params':{'size':1000000}}", i * 100 + n);
        text_printf(array, "]");
        broker_ask(&broker, test_format("r.%d", i), test_format("%s", array->data));
    }
    message_error(broker_answer(&broker, "r.5"), "null", -32000, "too many wait");
}

static void expect_pong(struct broker *broker)
{
    broker_say(broker, "PING");
    broker_expect(broker, "PONG");
}

/* One of the arrays waits for an id that is taken, the other one has some of its answers. */
static void begin_arrays(struct broker *broker)
{
    broker_ask(broker, "r.0", ECHO("0"));
    message_result(broker_answer(broker, "r.0"), "0");
    broker_ask(broker, "r.1", "[" ECHO("1") ",{'id':4,'method':'hold'}," ECHO("5") "]");
    broker_ask(broker, "r.2", "[" ECHO("6") "," ECHO("5") "," ECHO("7") "]");
    expect_pong(broker);
}

static void end_arrays(struct broker *broker)
{
    broker_ask(broker, "r.3", "{'id':3,'method':'release'}");
    for (int i = 0; i < 3; i++) {
        char number = broker_expect(broker, "PUB r.")[6];
        struct span answer = client_line(broker->link);

        if (number == '1') /* the sums of the ids */
            ck_assert_int_eq(ids_of(answer, 3), 1 + 4 + 5);
        else if (number == '2')
            ck_assert_int_eq(ids_of(answer, 3), 6 + 5 + 7);
        else
            message_result(answer, "3");
    }
}

TEST(nats_rpc_arrays_wait)
{
    struct broker broker = begin();

    begin_arrays(&broker);
    end_arrays(&broker);
}

/* --- the service convention --- */

/* The subjects are subscribed in this order: sids 3 to 11. */
TEST(nats_pool_is_a_service)
{
    struct broker broker = begin();
    struct span answer;

    broker_ask(&broker, "r.0", ECHO("1"));
    message_result(broker_answer(&broker, "r.0"), "1");
    broker_say(&broker, "MSG $SRV.PING 3 r.1 0\r\n");
    answer = broker_answer(&broker, "r.1");
    expect_member(answer, "type", "\"io.nats.micro.v1.ping_response\"");
    expect_member(answer, "name", "\"a\"");
    expect_member(answer, "metadata.pool", "\"a\"");
    broker_say(&broker, "MSG $SRV.INFO.a 7 r.2 0\r\n");
    answer = broker_answer(&broker, "r.2");
    expect_member(answer, "type", "\"io.nats.micro.v1.info_response\"");
    expect_member(answer, "endpoints.0.subject", "\"stdio_bus.rpc.a\"");
    broker_say(&broker, "MSG $SRV.STATS.a.x 11 r.3 0\r\n");
    answer = broker_answer(&broker, "r.3");
    expect_member(answer, "type", "\"io.nats.micro.v1.stats_response\"");
    expect_member(answer, "endpoints.0.num_requests", "1");
    expect_member(answer, "endpoints.0.num_errors", "0");
    broker_say(&broker, "MSG $SRV.PING 3 0\r\n"); /* without a reply */
    broker_ask(&broker, "r.4", ECHO("4"));
    message_result(broker_answer(&broker, "r.4"), "4");
}

/* An answer that took a while, among others. */
TEST(nats_service_has_times)
{
    struct broker broker = begin();
    struct span answer;
    long total;

    broker_ask(&broker, "r.1", "{'id':1,'method':'hold'}");
    message_result(broker_answer(&broker, "r.1"), "1");
    broker_ask(&broker, "r.2", ECHO("2"));
    broker_say(&broker, "PING");
    broker_expect(&broker, "PONG"); /* it is there */
    poll(NULL, 0, 100);
    broker_ask(&broker, "r.3", "{'id':3,'method':'release'}");
    broker_expect(&broker, "PUB r."), client_line(broker.link);
    broker_expect(&broker, "PUB r."), client_line(broker.link);
    broker_say(&broker, "MSG $SRV.STATS.a.x 11 r.4 0\r\n");
    answer = broker_answer(&broker, "r.4");
    total = json_number(answer, "endpoints.0.processing_time");
    ck_assert_int_ge(total, 80000000);
    ck_assert_int_eq(json_number(answer, "endpoints.0.average_processing_time"), total / 3);
}

/* The id of a pool is no part of a subject: it would be another command. */
TEST(nats_pool_cannot_be_exported)
{
    const struct setup setup = {.mode = SETUP_STDIO,
                                .config =
                                    "{'pools':[{'id':'a b','command':'@WORKER@','export':true}],"
                                    "'nats':{'servers':['127.0.0.1']}}"};

    expect_word(daemon_run(&setup, 78, NULL), "pools[0].export: needs an \"id\" without spaces");
}

/* --- nodes --- */

TEST(nats_node_answers)
{
    struct broker broker = {.port = 0};
    struct span answer;

    broker_listen(&broker);
    START(.config = CONFIG(",'node':'n1'"));
    broker_begin(&broker);
    broker_say(&broker, "MSG stdio_bus.nodes 12 0\r\n"); /* without a reply */
    broker_say(&broker, "MSG stdio_bus.nodes 12 r.1 0\r\n");
    answer = broker_answer(&broker, "r.1");
    expect_member(answer, "node", "\"n1\"");
    ck_assert_uint_eq(json_get(answer, "id").len, 18);
    ck_assert_uint_gt(json_get(answer, "version").len, 2);
    ck_assert_uint_gt(json_get(answer, "up_ms").len, 0);
}

/* The reply's subject of the question that the daemon asks. */
static const char *broker_asked(struct broker *broker)
{
    const char *reply = broker_expect(broker, "PUB stdio_bus.nodes stdio_bus.nodes.") +
                        strlen("PUB stdio_bus.nodes ");

    broker_expect(broker, "");
    return test_format("%.*s", (int)strcspn(reply, " "), reply);
}

static void broker_node(struct broker *broker, const char *reply, const char *json)
{
    struct text *text = test_text();

    text_printf(text, "%s", json);
    text_replace(text, "'", "\"");
    broker_say(broker,
               test_format("MSG %s 13 %zu\r\n%.*s", reply, text->len, (int)text->len, text->data));
}

static const char *const no_nodes[] = {
    "rubbish",
    "[]",
    "{'id':'2','node':'x','version':'1','up_ms':1}",
    "{'id':'0000000000000002','node':'x','version':'1'}",
    "{'id':'0000000000000002','node':'x','version':'1','up_ms':-1}",
    "{'id':'0000000000000002','node':'x','version':1,'up_ms':1}",
    "{'id':'0000000000000002','version':'1','up_ms':1}",
};

TEST(nats_nodes_are_listed)
{
    struct broker broker = {.port = 0};
    struct daemon *daemon;
    struct client *control;
    struct rmp_program program;
    const char *reply, *own;

    broker_listen(&broker);
    daemon = CONTROL_DAEMON(.config = CONFIG(""));
    control = control_connect(daemon);
    broker_begin(&broker);
    expect_member(control_ask(control, "nodes", NULL), "total", "0");
    reply = broker_asked(&broker);
    for (size_t i = 0; i < COUNT(no_nodes); i++)
        broker_node(&broker, reply, no_nodes[i]);
    own = test_format("{'id':'%.16s','node':'x','version':'1','up_ms':1}",
                      reply + strlen("stdio_bus.nodes."));
    broker_node(&broker, reply, own);
    broker_node(&broker, "stdio_bus.nodes.x.ffffffffffffffff",
                "{'id':'0000000000000003','node':'b','version':'9','up_ms':3600000}");
    broker_node(&broker, reply, "{'id':'0000000000000001','node':'a','version':'9','up_ms':1}");
    broker_node(&broker, reply,
                "{'id':'0000000000000001','node':'b','version':'9','up_ms':3600000}");
    broker_say(&broker, "PING");
    broker_expect(&broker, "PONG");
    control_wait(control, "nodes", "total", "1");
    broker_asked(&broker);
    program = CONTROL_PROGRAM(daemon, "ctl", "@CONTROL@", "nodes", "--table");
    for (int i = 0; i < 2; i++)
        broker_node(&broker, broker_asked(&broker),
                    "{'id':'0000000000000001','node':'b','version':'9','up_ms':3600000}");
    RMP_PROGRAM_EXPECT(&program, "NODE", "b");
    rmp_program_end(&program, 0);
}

/* The connection comes and goes, for those who watch. */
TEST(nats_connection_has_events)
{
    struct broker broker = {.port = 0};
    struct daemon *daemon;
    struct client *control;
    struct span event;

    steps_without("they are events, too");
    broker_listen(&broker);
    daemon = CONTROL_DAEMON(.config = CONFIG(""));
    broker_begin(&broker);
    control = control_connect(daemon);
    control_wait(control, "status", "phase", "'serving'"); /* "started" is an event, too */
    control_ask(control, "events", NULL);
    client_abort(broker.link);
    event = client_line(control);
    expect_member(event, "params.event", "\"disconnected\"");
    expect_member(event, "params.of", "\"nats\"");
    broker_begin(&broker);
    event = client_line(control);
    expect_member(event, "params.event", "\"connected\"");
    expect_member(event, "params.text", test_format("\"127.0.0.1:%u\"", broker.port));
}

TEST(nats_nodes_need_nats)
{
    struct daemon *daemon = CONTROL_DAEMON(.pools = "{'id':'a','command':'@WORKER@'}");
    struct client *control = control_connect(daemon);

    client_send(control, "{'id':1,'method':'nodes'}");
    client_error(control, "1", -32000, "this daemon has no");
}

/* --- the connection --- */

TEST(nats_connection_is_lost_and_comes_back)
{
    struct broker broker = {.port = 0};
    struct client *client;
    struct daemon *daemon;

    broker_listen(&broker);
    daemon = START(.config = CONFIG(""));
    broker_begin(&broker);
    daemon_wait_log(daemon, "connected to 127.0.0.1");
    broker_ask(&broker, "r.1", "{'id':1,'method':'hold'}");
    message_result(broker_answer(&broker, "r.1"), "1");
    broker_ask(&broker, "r.2", ECHO("2"));
    broker_say(&broker, "PING");
    broker_expect(&broker, "PONG");
    client_abort(broker.link);
    broker_accept(&broker);
    client = client_connect(daemon);
    client_request(client, "3", NULL, "release", NULL);
    client_result(client, "3");
    broker_greet(&broker, "");
    broker_expect(&broker, "CONNECT {");
    broker_expect(&broker, "PING");
    broker_say(&broker, "PONG");
    message_result(broker_answer(&broker, "r.2"), "2"); /* it was kept */
    broker_expect(&broker, "SUB stdio_bus.rpc.a stdio_bus.rpc.a 1");
    broker_expect(&broker, "SUB stdio_bus.open.a");
    broker_expect_looks(&broker);
    broker_expect_nodes(&broker);
    broker_ask(&broker, "r.4", ECHO("4"));
    message_result(broker_answer(&broker, "r.4"), "4");
}

static const struct {
    const char *bytes, *log;
} bad[] = {
    {"HTTP/1.1 400 Bad Request", "not a line of a NATS server"},
    {"-ERR 'Authorization Violation'", "Authorization Violation"},
    {"INFO {", "an INFO that is no JSON"},
    {"INFO {\"headers\":true,\"tls_required\":true}", "demands TLS"},
    {"INFO {\"headers\":true,\"nonce\":\"abc\"}", "demands a signature"},
    {"INFO {}", "no headers"},
    {"MSG a 1 1 1 1 1", "a message that cannot be read"},
};

/* Each problem is in the log once, however often the daemon tries. */
TEST_ROWS(nats_server_cannot_be_used, COUNT(bad))
{
    struct broker broker = {.port = 0};
    struct daemon *daemon;

    broker_listen(&broker);
    daemon = START(.config = CONFIG(""));
    for (int i = 0; i < 3; i++) {
        broker_accept(&broker);
        broker_say(&broker, bad[row].bytes);
        client_expect_eof(broker.link);
    }
    daemon_wait_log(daemon, bad[row].log);
    ck_assert_uint_eq(daemon_count_log(daemon, bad[row].log), 1);
}

TEST(nats_next_server_is_tried)
{
    struct broker broker = {.port = 0}, other = {.port = 0};

    broker_listen(&broker);
    broker_listen(&other);
    START(.config = CONFIG(""));
    broker_accept(&broker);
    broker_greet(&broker, test_format(",'connect_urls':['127.0.0.1:%u','name:1']", other.port));
    broker_expect(&broker, "CONNECT");
    client_abort(broker.link);
    broker_begin(&other);
}

TEST(nats_server_pings)
{
    struct broker broker = begin();

    broker_say(&broker, "PING");
    broker_expect(&broker, "PONG");
    broker_say(&broker, "+OK");
    broker_say(&broker, "-ERR 'Permissions Violation for Subscription to \"x\"'");
    broker_ask(&broker, "r", ECHO("1"));
    message_result(broker_answer(&broker, "r"), "1");
}

static const struct {
    const char *members, *connect;
} logins[] = {
    {",'user':'u','password_file':'@DIR@/secret'", "\"user\":\"u\",\"pass\":\"p w\"}"},
    {",'token_file':'@DIR@/secret'", "\"auth_token\":\"p w\"}"},
};

TEST_ROWS(nats_login_is_from_a_file, COUNT(logins))
{
    struct broker broker = {.port = 0};
    struct daemon *daemon;
    const char *path, *connect;

    broker_listen(&broker);
    daemon = START(.config = CONFIG(logins[row].members));
    broker_accept(&broker);
    broker_greet(&broker, "");
    client_expect_eof(broker.link); /* there is no file yet */
    daemon_write_file(daemon, "@DIR@/secret", "p w\n");
    path = test_format("%s/secret", daemon->dir);
    ck_assert_int_eq(chmod(path, 0644), 0);
    broker_accept(&broker);
    broker_greet(&broker, "");
    client_expect_eof(broker.link); /* others can read it */
    ck_assert_int_eq(chmod(path, 0600), 0);
    broker_accept(&broker);
    broker_greet(&broker, "");
    connect = broker_expect(&broker, "CONNECT");
    expect_word(connect, logins[row].connect);
    ck_assert_int_eq(unlink(path), 0);
}

/* --- reloads, upgrades, the end --- */

TEST(nats_reload_exports_other_pools)
{
    struct broker broker = {.port = 0};
    struct daemon *daemon;

    broker_listen(&broker);
    daemon = START(.config = CONFIG(""));
    broker_begin(&broker);
    daemon_write_file(daemon, daemon->config_path,
                      test_format("{'pools':[{'id':'b','command':'@WORKER@','export':true}],"
                                  "'nats':{'servers':['127.0.0.1:%u']}}",
                                  broker.port));
    daemon_signal(daemon, SIGHUP);
    broker_expect(&broker, "SUB stdio_bus.rpc.b stdio_bus.rpc.b 15");
    broker_expect(&broker, "SUB stdio_bus.open.b stdio_bus.open.b 16");
    broker_expect_looks(&broker);
    for (int i = 0; i < LOOKS; i++)
        broker_expect(&broker, "UNSUB ");
    broker_expect(&broker, "UNSUB 1");
    broker_expect(&broker, "UNSUB 2");
}

TEST(nats_upgrade_keeps_requests)
{
    struct broker broker = {.port = 0};
    struct daemon *daemon;

    broker_listen(&broker);
    daemon = START(.config = CONFIG(""));
    if (!daemon_can_upgrade())
        return;
    broker_begin(&broker);
    broker_ask(&broker, "r.1", "{'id':1,'method':'hold'}");
    message_result(broker_answer(&broker, "r.1"), "1");
    broker_ask(&broker, "r.2", ECHO("2"));
    broker_say(&broker, "PING");
    broker_expect(&broker, "PONG");
    daemon_upgrade(daemon);
    client_expect_eof(broker.link);
    broker_begin(&broker);
    broker_ask(&broker, "r.3", "{'id':3,'method':'release'}");
    broker_expect(&broker, "PUB r."), client_line(broker.link);
    broker_expect(&broker, "PUB r."), client_line(broker.link);
}

TEST(nats_upgrade_keeps_arrays)
{
    struct broker broker = {.port = 0};
    struct daemon *daemon;

    broker_listen(&broker);
    daemon = START(.config = CONFIG(""));
    if (!daemon_can_upgrade())
        return;
    broker_begin(&broker);
    begin_arrays(&broker);
    daemon_upgrade(daemon);
    client_expect_eof(broker.link);
    broker_begin(&broker);
    end_arrays(&broker);
}

TEST(nats_end_unsubscribes)
{
    struct broker broker = {.port = 0};
    struct daemon *daemon;

    broker_listen(&broker);
    daemon = START(.config = CONFIG(""));
    broker_begin(&broker);
    daemon_signal(daemon, SIGTERM);
    for (int i = 0; i < LOOKS; i++)
        broker_expect(&broker, "UNSUB ");
    broker_expect(&broker, "UNSUB 1");
    broker_expect(&broker, "UNSUB 2");
    broker_expect(&broker, "UNSUB 12");
    broker_expect(&broker, "UNSUB 13");
    broker_expect(&broker, "UNSUB 14");
    client_expect_eof(broker.link);
    ck_assert_int_eq(daemon_wait(daemon), 0);
}
