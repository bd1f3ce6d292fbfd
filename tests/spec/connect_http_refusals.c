/* stdio_bus(1), "Servers with a URL": what a program gets that --connect http:// cannot serve. */
#include "build_config.h"

#include "harness.h"
#include "joined.h"

static const struct {
    const char *status, *fields, *body;
    const char *error; /* in the error of the program; it begins with { where it is the answer */
} refusals[] = {
#define HTML "Content-Type: text/html; charset=utf-8\r\n"
    {"401 Unauthorized", "WWW-Authenticate: Bearer\r\n", "", "--token-file): Bearer"},
    {"401 Unauthorized", "WWW-Authenticate: Bearer error=\"invalid_token\", scope=\"all\"\r\n",
     "{'error':'invalid_token'}", "(the server asks for a token: --token-file): Bearer error="},
    {"401 Unauthorized", "", "{'id':1,'error':{'code':-32000,'message':'m'}}", "401 Unauthorized"},
    {"401 Unauthorized", "", "{'jsonrpc':'2.0','id':1,'error':'m'}", "401 Unauthorized"},
    {"403 Forbidden", "", "", "403 Forbidden (the server does not allow this"},
    {"403 Forbidden", "WWW-Authenticate: Bearer error=\"insufficient_scope\"\r\n", "",
     "insufficient_scope"},
    {"404 Not Found", "", "", "is the path right"},
    {"405 Method Not Allowed", "", "", "is the path that of an MCP server"},
    {"500 Internal Server Error", "", "{'nonsense':true}", "500 Internal Server Error: {"},
    {"502 Bad Gateway", "", "<html>", "502 Bad Gateway: <html>"},
    {"502 Bad Gateway", HTML,
     "<html>\n<head><title>502 Bad Gateway</title><style>b{}</style></head>\n<body>\n"
     "<h1>It's &lt;gone&gt; &amp; away</h1><!-- <b>unseen</b> --><hr>nginx/1.22.1\n</body></html>",
     "s <gone> & away nginx/1.22.1"},
    {"200 OK", HTML, "<title>Log in</title>", "has no answer to the request: Log in"},
    {"429 Too Many Requests", "Retry-After: 5\r\n", "", "429 Too Many Requests"},
    {"302 Found", "Location: http://example.org/\r\n", "", "moved to http://example.org/"},
    {"202 Accepted", "", "", "has no answer"},
    {"200 OK", "", "", "has no answer"},
    {"200 OK", "", "<html>", "has no answer"},
    {"200 OK", "", "{'id':2,'result':{}}", "has no answer"},
    {"404 Not Found", "", "{'jsonrpc':'2.0','id':1,'error':{'code':-32601,'message':'m'}}",
     "{'jsonrpc':'2.0','id':1,'error':{'code':-32601,'message':'m'}}"},
    {"400 Bad Request", "", "{'jsonrpc':'2.0','error':{'code':-32020,'message':'m'},'id':null}",
     "{'jsonrpc':'2.0','error':{'code':-32020,'message':'m'},'id':1}"},
    {"400 Bad Request", "",
     "{ 'jsonrpc':'2.0','error':{'code':-32022,'message':'m','data':{'id':3}}}",
     "{'id':1, 'jsonrpc':'2.0','error':{'code':-32022,'message':'m','data':{'id':3}}}"},
    {"200 OK", "", "[{'method':'n'},{'id':1,'result':{}}]", "{'method':'n'}"},
    {"200 OK", "", "{\n 'id': 1,\n 'result': {}\n}\n", "{  'id': 1,  'result': {} }"},
};

TEST_ROWS(connect_http_reports_refusals, COUNT(refusals))
{
    struct web_server *server = web_start();
    struct joined joined = joined_to(server);
    struct web_request *request;
    joined_ask(&joined, 1);
    request = joined_asked(server, 1);
    web_answer(request, refusals[row].status, refusals[row].fields, "%s", refusals[row].body);
    if (strncmp(refusals[row].status, "401", 3) == 0)
        web_answer(web_next(server, "GET /.well-known/oauth-protected-resource/mcp", NULL),
                   "404 Not Found", "", "%s", "");
    if (refusals[row].error[0] == '{')
        client_expect(joined.client, "%s", refusals[row].error);
    else
        client_error(joined.client, "1", -32000, refusals[row].error);
    if (strstr(refusals[row].body, "method") != NULL)
        client_expect(joined.client, "{'id':1,'result':{}}");
    joined_ask(&joined, 3); /* and it continues */
    joined_answer(joined_asked(server, 3), 3);
    client_expect(joined.client, ANSWER, 3);
}

static const struct {
    const char *refusal, *status, *fields, *event, *word;
} older[] = {
    {"405 Method Not Allowed", "200 OK", "Content-Type: text/event-stream\r\n", "data: {}\n\n",
     "405 Method Not Allowed"},
    {"405 Method Not Allowed", "200 OK", "Content-Type: text/event-stream\r\n", ": nothing\n\n",
     "405 Method Not Allowed"}, /* and no end */
    {"404 Not Found", "404 Not Found", "", "", "404 Not Found (is the path right?)"},
    {"404 Not Found", "200 OK", "Content-Type: text/html\r\n", "<p>", "404 Not Found"},
};

/* A GET shows that the server has no HTTP+SSE either: the first refusal is the reason. */
TEST_ROWS(connect_http_looks_for_the_older_transport, COUNT(older))
{
    struct web_server *server = web_start();
    struct joined joined = joined_to(server);
    struct web_request *request;
    client_send(joined.client, INITIALIZE);
    request = web_next(server, "POST /mcp", "'initialize'");
    web_answer(request, older[row].refusal, "", "%s", "");
    request = web_next(server, "GET /mcp", NULL);
    web_expect_field(request, "Accept", "text/event-stream");
    web_send(request, "HTTP/1.1 %s\r\n%sConnection: close\r\n\r\n%s", older[row].status,
             older[row].fields, older[row].event);
    if (row == 2)
        web_cut(request);
    client_error(joined.client, "0", -32000, older[row].word);
}

TEST(connect_http_reports_other_protocols)
{
    struct web_server *server = web_start();
    struct joined joined = joined_to(server);
    joined_ask(&joined, 1);
    web_send(joined_asked(server, 1), "SSH-2.0-OpenSSH_9.2\r\n\r\n");
    client_error(joined.client, "1", -32000, "does not speak HTTP");
}

static bool log_has(const struct joined *joined, const char *word)
{
    char text[4096];
    FILE *file = fopen(joined->log, "r");
    size_t len;

    ck_assert_ptr_nonnull(file);
    len = fread(text, 1, sizeof text - 1, file);
    text[len] = '\0';
    fclose(file);
    return strstr(text, word) != NULL;
}

/* On stderr, which may be a terminal. */
TEST(connect_http_shows_no_control_character_of_a_reason)
{
    struct web_server *server = web_start();
    struct joined joined = joined_to(server);

    joined_ask(&joined, 1);
    joined_answer(joined_asked(server, 1), 1);
    client_expect(joined.client, ANSWER, 1);
    client_send(joined.client, "{'method':'notifications/any'}");
    web_answer(web_next(server, "POST /mcp", "notifications/any"),
               "500 \xc3\xa9\xc2\x9b"
               "31m\xe2\x80\xae\x1b[2J\x7f\x9b"
               "x",
               "", "%s", "");
    WAIT_UNTIL(log_has(&joined, "500 \xc3\xa9\\u009b31m\\u202e\\x1b[2J\\x7f\\x9bx"),
               "the reason is not on stderr");
}

enum { LABEL_TOO_LONG = 64 }; /* no name server is asked for such a name */

TEST_ROWS(connect_http_without_a_server, 2)
{
    struct web_server *server = web_start_later();
    struct joined joined =
        JOINED(row == 0 ? web_url(server, "/mcp")
                        : test_format("http://%s.invalid/mcp", test_fill('x', LABEL_TOO_LONG)),
               NULL);
    joined_ask(&joined, 1);
    client_error(joined.client, "1", -32000, "cannot connect");
    client_half_close(joined.client);
    client_expect_eof(joined.client);
    joined_expect_status(&joined, 0);
}

TEST(connect_http_waits_for_a_server)
{
    struct web_server *server = web_start_later();
    struct joined joined = JOINED(web_url(server, "/mcp"), "--wait", "60");
    joined_ask(&joined, 1);
    for (int64_t until = now_ms() + 200; now_ms() < until;)
        nap();
    web_listen(server);
    joined_answer(joined_asked(server, 1), 1);
    client_expect(joined.client, ANSWER, 1);
}

TEST(connect_http_shows_the_token)
{
    struct web_server *server = web_start();
    const char *path = test_format("%s/token", test_dir());
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    struct joined joined;
    struct web_request *request;
    ck_assert_int_eq(write(fd, "s3cret\n", 7), 7);
    close(fd);
    joined = JOINED(web_url(server, "/mcp"), "--token-file", path);
    joined_ask(&joined, 1);
    request = joined_asked(server, 1);
    web_expect_field(request, "Authorization", "Bearer s3cret");
    web_answer(request, "401 Unauthorized", "", "%s", "");
    client_error(joined.client, "1", -32000, "does not accept the token");
}

/* Only within the server, which may have the token. */
TEST(connect_http_follows_a_redirect)
{
    struct web_server *server = web_start(), *other = web_start();
    struct joined joined = joined_to(server);
    joined_ask(&joined, 1);
    web_answer(joined_asked(server, 1), "307 Temporary Redirect",
               test_format("Location: %s\r\n", web_url(server, "/mcp/")), "%s", "");
    joined_answer(web_next(server, "POST /mcp/", "'id':1,"), 1);
    client_expect(joined.client, ANSWER, 1);
    joined_ask(&joined, 2);
    web_answer(web_next(server, "POST /mcp/", "'id':2,"), "308 Permanent Redirect",
               "Location: /a?b\r\n", "%s", "");
    joined_answer(web_next(server, "POST /a?b", "'id':2,"), 2);
    client_expect(joined.client, ANSWER, 2);
    joined_ask(&joined, 3);
    web_answer(web_next(server, "POST /a?b", "'id':3,"), "307 Temporary Redirect",
               test_format("Location: %s\r\n", web_url(other, "/mcp")), "%s", "");
    client_error(joined.client, "3", -32000, "moved to");
}

/* row: a place that no request line can have, with a body or without. */
TEST_ROWS(connect_http_follows_no_redirect_into_a_head, 2)
{
    struct web_server *server = web_start();
    struct joined joined = joined_to(server);
    joined_ask(&joined, 1);
    web_answer(joined_asked(server, 1), "307 Temporary Redirect",
               row == 0 ? "Location: /a HTTP/1.1\r\n" : "Location: /a\rB: c\r\n", "%s",
               row == 0 ? "" : "{}");
    client_error(joined.client, "1", -32000, "moved to");
}

/* A stream that ends at once, each time after an event, is not asked for without a pause. */
TEST(connect_http_does_not_retry_at_once)
{
    struct web_server *server = web_start();
    struct joined joined = joined_to(server);
    joined_ask(&joined, 1);
    struct web_request *request = joined_asked(server, 1);
    for (int i = 0; i < 3; i++) {
        web_stream(request, "");
        web_send(request, "12\r\nid: 1-%d\nretry: 1\n\n\r\n", i);
        web_event(request, NULL, "{'jsonrpc':'2.0','method':'x'}");
        client_expect(joined.client, "{'jsonrpc':'2.0','method':'x'}");
        int64_t start = now_ms();
        web_cut(request);
        request = web_next(server, "GET /mcp", NULL);
        ck_assert_int_ge(now_ms() - start, 100);
    }
    web_stream(request, "");
    web_event(request, NULL, "{'jsonrpc':'2.0','id':1,'result':{'n':1}}");
    client_result(joined.client, "1");
}
