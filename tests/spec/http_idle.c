/* Sessions of MCP over HTTP without use give way (protocol.md, "MCP: sessions"). */
#include "build_config.h"

#include "harness.h"

#define INITIALIZE "{'jsonrpc':'2.0','id':1,'method':'initialize'}"

#define ECHO(id) "{'jsonrpc':'2.0','id':" id ",'method':'echo'}"

#define OTHER_ADDRESS "127.0.0.2"

#define POOL_OF(instances)                                                                         \
    .mode = SETUP_HTTP, .pools = "{'id':'p','command':'@WORKER@','instances':" instances           \
                                 ",'protocol':'mcp','spare':0,'busy_timeout_sec':600}"

static void expect_gone(struct http *http)
{
    message_error(http_expect(http, 404), "null", -32000, "no such session");
}

/* Hosts leave without DELETE: their processes are for the sessions that come. */
TEST(http_idle_session_gives_its_process_to_the_next_one)
{
    struct daemon *daemon = START(POOL_OF("2"), .limits = "'session_idle_sec':86400");
    struct http *http = http_connect(daemon), *other = http_connect(daemon);
    const char *first = http_session(http), *second = http_session(http);
    for (int i = 0; i < 3; i++) {
        http_post(http, second, ECHO("2")); /* the first one is idle longer */
        message_result(http_expect(http, 200), "2");
        const char *next = http_session(other);
        http_post(http, first, ECHO("1"));
        expect_gone(http);
        first = second;
        second = next;
    }
    daemon_wait_log(daemon, "it was idle, and gave way to another client");
}

/* A stream or a request in flight keeps a session that is idle longest. */
TEST(http_session_in_use_keeps_its_process)
{
    struct daemon *daemon = START(POOL_OF("3"), .limits = "'session_idle_sec':86400");
    struct http *a = http_connect(daemon), *b = http_connect(daemon), *c = http_connect(daemon);
    const char *streams = http_session(a), *asks = http_session(b), *idle = http_session(c);
    http_open_stream(a, streams);
    http_post(b, asks, "{'jsonrpc':'2.0','id':1,'method':'hold'}");
    message_result(http_expect(b, 200), "1");
    http_post(b, asks, ECHO("2"));
    http_post(c, idle, ECHO("3"));
    message_result(http_expect(c, 200), "3");
    http_session(http_connect(daemon));
    http_post(c, idle, ECHO("4"));
    expect_gone(c);
    http_post(c, streams, ECHO("5"));
    message_result(http_expect(c, 200), "5");
    http_post(c, asks, "{'jsonrpc':'2.0','id':6,'method':'release'}");
    message_result(http_expect(c, 200), "6");
    message_result(http_expect(b, 200), "2");
}

/* It waits for the end of a stream, and of a request whose client has left. */
TEST_ROWS(http_session_gives_way_after_its_last_use, 2)
{
    struct daemon *daemon = START(POOL_OF("1"), .limits = "'session_idle_sec':86400");
    struct http *a = http_connect(daemon), *b = http_connect(daemon), *c = http_connect(daemon);
    const char *session = http_session(a);
    if (row == 0) {
        http_open_stream(b, session);
    } else {
        http_post(b, session, "{'jsonrpc':'2.0','id':1,'method':'hold'}");
        message_result(http_expect(b, 200), "1");
        http_post(b, session, ECHO("2"));
    }
    http_post(c, NULL, INITIALIZE);
    client_abort(b->client);
    if (row == 1) {
        http_post(a, session, "{'jsonrpc':'2.0','id':3,'method':'release'}");
        message_result(http_expect(a, 200), "3");
    }
    message_result(http_expect(c, 200), "1");
    http_post(a, session, ECHO("4"));
    expect_gone(a);
}

/* At max_connections. */
TEST(http_idle_session_gives_its_place_to_the_next_one)
{
    struct daemon *daemon = START(POOL_OF("4"),
                                  .limits = "'max_connections':3,'session_idle_sec':86400");
    struct http *http = http_connect(daemon);
    const char *first = http_session(http), *second = http_session(http);
    int64_t start = now_ms();
    WAIT_UNTIL(now_ms() - start >= 2500, "time stands still");
    http_session(http);
    http_post(http, first, ECHO("1"));
    expect_gone(http);
    http_post(http, second, ECHO("2"));
    message_result(http_expect(http, 200), "2");
}

/* An origin takes processes from itself, and from an origin that has more of them. */
TEST(http_idle_session_is_kept_from_an_origin_that_has_more)
{
    struct daemon *daemon = START(POOL_OF("3"), .limits = "'session_idle_sec':86400");
    struct http *few = http_connect_from(daemon, OTHER_ADDRESS), *many = http_connect(daemon);
    const char *kept = http_session(few), *first = http_session(many);
    const char *second = http_session(many);
    http_session(many);
    http_post(many, first, ECHO("1"));
    expect_gone(many);
    http_post(few, kept, ECHO("2"));
    message_result(http_expect(few, 200), "2");
    http_session(few);
    http_post(many, second, ECHO("3"));
    expect_gone(many);
}
