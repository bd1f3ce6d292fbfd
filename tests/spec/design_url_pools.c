/* stdio_bus.conf(5), "url": pools whose workers are clients of a server with a URL. */
#include "build_config.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "joined.h"

#define POOL_AT "{'id':'docs','protocol':'mcp','url':'%s'%s}"
#define SHARED ",'clients':'sticky'"

static const char *pool_at(const struct web_server *server, const char *keys)
{
    return test_format(POOL_AT, web_url(server, "/mcp"), keys);
}

/* The handshake that the server sees, in a session of this name. */
static void welcome(struct web_server *server, const char *session)
{
    struct web_request *request = web_next(server, "POST /mcp", "'initialize'");
    int id = (int)json_number(span_of(request->body.data), "id");
    web_expect_field(request, "X-Key", "k=1");
    web_answer(request, "200 OK", test_format("Mcp-Session-Id: %s\r\n", session),
               "{'jsonrpc':'2.0','id':%d,'result':{'protocolVersion':'2025-11-25'}}", id);
}

static void confirm(struct web_server *server)
{
    web_answer(web_next(server, "POST /mcp", "initialized"), "202 Accepted", "", "%s", "");
    web_answer(web_next(server, "GET /mcp", NULL), "405 Method Not Allowed", "", "%s", "");
}

/* The client asks; the server answers. */
static void exchange(struct web_server *server, struct client *client, int number)
{
    struct web_request *request;
    client_send(client, "{'jsonrpc':'2.0','id':%d,'method':'tools/call'}", number);
    request = web_next(server, "POST /mcp", "tools/call");
    web_expect_field(request, "X-Key", "k=1");
    web_answer(request, "200 OK", "", "{'jsonrpc':'2.0','id':%d,'result':{'n':%d}}",
               (int)json_number(span_of(request->body.data), "id"), number);
    client_result(client, test_format("%d", number));
}

#define KEYED ",'headers':{'X-Key':'k=${URL_POOL_KEY}'}"

/* A wrapper is not in front of the workers, which are this program once more. */
static bool is_wrapped(void)
{
    return getenv("STDIO_BUS_WRAPPER") != NULL;
}

static struct daemon *start_for(const struct web_server *server, const char *keys)
{
    setenv("URL_POOL_KEY", "1", 1);
    return START(.pools = pool_at(server, keys));
}

/* The field is in the environment of the worker, not in its command. */
TEST(design_url_pool_serves_a_client)
{
    if (is_wrapped())
        return;
    struct web_server *server = web_start();
    struct daemon *daemon = start_for(server, KEYED);
    struct client *client = client_connect(daemon);
    client_send(client, INITIALIZE);
    welcome(server, "s");
    client_expect(client, WELCOME);
    client_send(client, INITIALIZED);
    confirm(server);
    exchange(server, client, 1);
    daemon_wait_log(daemon, test_format("started %s for pool docs", web_url(server, "/mcp")));
    ck_assert_int_ne(system(test_format("ps -o args= --ppid %ld | grep k=1", (long)daemon->pid)),
                     0);
    ck_assert_int_eq(system(test_format("ps -o args= --ppid %ld | grep -q 'stdio_bus --connect %s'",
                                        (long)daemon->pid, web_url(server, "/mcp"))),
                     0);
    client_close(client);
    web_answer(web_next(server, "DELETE /mcp", NULL), "204 No Content", "", "%s", "");
}

enum { CLIENTS = 20 };

/* One session for twenty clients. The server forgets it: the handshake is repeated. So it is when
 * the process of the session dies. */
TEST_ROWS(design_url_pool_is_shared, 2)
{
    if (is_wrapped())
        return;
    struct web_server *server = web_start();
    struct daemon *daemon = start_for(server, KEYED SHARED);
    struct client *clients[CLIENTS];
    pid_t worker;
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = client_connect(daemon);
        client_send(clients[i], INITIALIZE);
        if (i == 0)
            welcome(server, "old");
        client_expect(clients[i], WELCOME);
        client_send(clients[i], INITIALIZED);
        if (i == 0)
            confirm(server);
    }
    for (int i = 0; i < CLIENTS; i++)
        exchange(server, clients[i], i);
    if (row == 0) {
        client_send(clients[7], "{'jsonrpc':'2.0','id':100,'method':'tools/list'}");
        web_answer(web_next(server, "POST /mcp", "tools/list"), "404 Not Found", "", "%s", "");
        welcome(server, "new");
        web_answer(web_next(server, "POST /mcp", "initialized"), "202 Accepted", "", "%s", "");
        for (int i = 0; i < 2; i++) { /* the request and the stream, in any order */
            struct web_request *request = web_next_any(server);
            web_expect_field(request, "Mcp-Session-Id", "new");
            if (strncmp(request->head.data, "GET ", 4) == 0)
                web_answer(request, "405 Method Not Allowed", "", "%s", "");
            else
                web_answer(request, "200 OK", "", "{'jsonrpc':'2.0','id':%d,'result':{}}",
                           (int)json_number(span_of(request->body.data), "id"));
        }
        client_result(clients[7], "100");
    } else {
        ck_assert_uint_eq(daemon_workers(daemon, &worker, 1), 1);
        kill(worker, SIGKILL);
        welcome(server, "new");
        confirm(server);
    }
    for (int i = 0; i < CLIENTS; i++)
        exchange(server, clients[i], 200 + i);
    daemon_kill(daemon);
}

/* What the server refuses is the answer of the client. */
TEST(design_url_pool_without_a_server)
{
    if (is_wrapped())
        return;
    struct web_server *server = web_start_later();
    struct daemon *daemon = start_for(server, "");
    struct client *client = client_connect(daemon);
    client_send(client, INITIALIZE);
    client_error(client, "0", -32000, "cannot connect: Connection refused");
}

/* The session stays. */
TEST(design_url_pool_through_an_upgrade_and_a_reload)
{
    if (is_wrapped())
        return;
    struct web_server *server = web_start();
    struct daemon *daemon = start_for(server, KEYED);
    struct client *client = client_connect(daemon);
    client_send(client, INITIALIZE);
    welcome(server, "s");
    client_expect(client, WELCOME);
    client_send(client, INITIALIZED);
    confirm(server);
    if (daemon_can_upgrade()) {
        daemon_upgrade(daemon);
        exchange(server, client, 1);
    }
    daemon_signal(daemon, SIGHUP);
    daemon_wait_log(daemon, "reloaded");
    exchange(server, client, 2);
    daemon_kill(daemon);
}

static const struct {
    const char *pool, *problem;
} refused[] = {
    {"{'id':'a','protocol':'mcp','url':'ftp://h'}", "must begin with https:// or http://"},
    {"{'id':'a','protocol':'mcp','url':'http://h:0'}", "port must be"},
    {"{'id':'a','url':'http://h'}", "needs \"protocol\": \"mcp\""},
    {"{'id':'a','protocol':'acp','url':'http://h'}", "needs \"protocol\": \"mcp\""},
    {"{'id':'a','protocol':'mcp'}", "is required"},
    {"{'id':'a','protocol':'mcp','url':'http://h','command':'x'}", "has no such key"},
    {"{'id':'a','protocol':'mcp','url':'http://h','args':[]}", "has no such key"},
    {"{'id':'a','command':'sh','headers':{}}", "only a pool with \"url\" has this key"},
    {"{'id':'a','command':'sh','tls_command':'x'}", "only a pool with \"url\" has this key"},
    {"{'id':'a','protocol':'mcp','url':'http://h','headers':{'Host':'x'}}", "stdio_bus itself"},
    {"{'id':'a','protocol':'mcp','url':'http://h','headers':{'X':'${NO_SUCH_ONE}'}}",
     "not set in the environment"},
    {"{'id':'a','protocol':'mcp','url':'http://h','headers':{'X':1}}", "a string"},
    {"{'id':'a','protocol':'mcp','url':'http://h','headers':[]}", "an object"},
};

TEST_ROWS(design_url_pool_checks_its_keys, COUNT(refused))
{
    const char *said = RUN(78, .mode = SETUP_STDIO, .pools = refused[row].pool,
                           .arguments = {"--check-config"});
    expect_word(said, refused[row].problem);
}
