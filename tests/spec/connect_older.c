/* stdio_bus(1), "Servers with a URL": servers of the transport of 2024-11-05, HTTP+SSE. */
#include "build_config.h"

#include <string.h>

#include "harness.h"
#include "joined.h"

/* Answers initialize as such a server does, and opens the stream with this endpoint. */
static struct web_request *begin(struct web_server *server, const struct joined *joined,
                                 const char *endpoint)
{
    struct web_request *stream;
    const char *event = test_format("event: endpoint\ndata: %s\n\n", endpoint);
    client_send(joined->client, INITIALIZE);
    web_answer(web_next(server, "POST /a/sse?x", "'initialize'"), "405 Method Not Allowed", "",
               "%s", "");
    stream = web_next(server, "GET /a/sse?x", NULL);
    web_expect_field(stream, "Accept", "text/event-stream");
    web_stream(stream, "");
    web_send(stream, "%zx\r\n%s\r\n", strlen(event), event);
    return stream;
}

static void accept_message(struct web_server *server, const char *line, const char *word)
{
    web_answer(web_next(server, line, word), "202 Accepted", "Content-Type: text/plain\r\n", "%s",
               "Accepted");
}

static struct joined joined_at(const struct web_server *server)
{
    return JOINED(web_url(server, "/a/sse?x"), "--header", "X-Key: k");
}

/* A session that has begun. */
static struct web_request *shake_hands(struct web_server *server, const struct joined *joined)
{
    struct web_request *stream = begin(server, joined, "/m");
    accept_message(server, "POST /m", "'initialize'");
    web_event(stream, NULL, WELCOME);
    client_expect(joined->client, WELCOME);
    client_send(joined->client, INITIALIZED);
    accept_message(server, "POST /m", "initialized");
    return stream;
}

static const struct {
    const char *endpoint, *line; /* @: the server */
} endpoints[] = {
    {"/m?session=1", "POST /m?session=1"},
    {"m?session=1", "POST /a/m?session=1"},
    {"@/m?to=http://other", "POST /m?to=http://other"},
    {"/m?to=http://other", "POST /m?to=http://other"},
};

TEST_ROWS(connect_http_speaks_the_older_transport, COUNT(endpoints))
{
    struct web_server *server = web_start();
    struct joined joined = joined_at(server);
    struct web_request *stream, *request;
    struct text *endpoint = test_text();
    const char *line = endpoints[row].line;
    text_printf(endpoint, "%s", endpoints[row].endpoint);
    text_replace(endpoint, "@", web_url(server, ""));
    stream = begin(server, &joined, endpoint->data);
    request = web_next(server, line, "'initialize'");
    web_expect_field(request, "X-Key", "k");
    web_answer(request, "202 Accepted", "", "%s", "");
    web_event(stream, NULL, WELCOME);
    client_expect(joined.client, WELCOME);
    client_send(joined.client, INITIALIZED);
    accept_message(server, line, "initialized");
    joined_ask(&joined, 1);
    accept_message(server, line, "'id':1,");
    joined_ask(&joined, 2);
    request = web_next(server, line, "'id':2,");
    web_event(stream, NULL, "{'method':'news'}");
    client_expect(joined.client, "{'method':'news'}");
    web_event(stream, NULL, test_format(ANSWER, 2)); /* before its request was accepted */
    client_expect(joined.client, ANSWER, 2);
    web_answer(request, "202 Accepted", "", "%s", "");
    web_event(stream, NULL, "{'id':'q','method':'ping'}");
    client_expect(joined.client, "{'id':'q','method':'ping'}");
    client_send(joined.client, "{'id':'q','result':{}}");
    accept_message(server, line, "{'id':'q','result':{}}");
    web_event(stream, NULL, test_format(ANSWER, 1));
    client_expect(joined.client, ANSWER, 1);
    client_half_close(joined.client);
    client_expect_eof(joined.client);
    joined_expect_status(&joined, 0);
}

/* What the server refuses ends nothing else. */
TEST(connect_http_older_refusals)
{
    struct web_server *server = web_start();
    struct joined joined = joined_at(server);
    struct web_request *stream = shake_hands(server, &joined);
    joined_ask(&joined, 1);
    web_answer(web_next(server, "POST /m", "'id':1,"), "500 Internal Server Error", "", "%s", "");
    client_error(joined.client, "1", -32000, "500 Internal Server Error");
    web_event(stream, NULL, "no message");
    web_event(stream, NULL, test_format(ANSWER, 1)); /* which nobody waits for */
    web_send(stream, "22\r\nevent: endpoint\ndata: /elsewhere\n\n\r\n");
    joined_ask(&joined, 2);
    accept_message(server, "POST /m", "'id':2,");
    client_send(joined.client, "{'method':'notifications/cancelled','params':{'requestId':2}}");
    accept_message(server, "POST /m", "cancelled");
    web_event(stream, NULL, test_format(ANSWER, 2));
    joined_ask(&joined, 3);
    accept_message(server, "POST /m", "'id':3,");
    web_event(stream, NULL, test_format(ANSWER, 3));
    client_expect(joined.client, ANSWER, 3);
}

/* The session ends with the stream: what is in flight gets an error, and the status says so. */
TEST_ROWS(connect_http_older_stream_ends, 2)
{
    struct web_server *server = web_start();
    struct joined joined = joined_at(server);
    struct web_request *stream = shake_hands(server, &joined);
    joined_ask(&joined, 1);
    accept_message(server, "POST /m", "'id':1,");
    if (row == 0)
        web_stream_end(stream);
    else
        web_cut(stream);
    client_error(joined.client, "1", -32000,
                 row == 0 ? "the server ended its stream" : "the server closed the connection");
    client_expect_eof(joined.client);
    joined_expect_status(&joined, 76);
}

/* The token and the fields of the user are for this server alone. */
TEST_ROWS(connect_http_older_endpoint_elsewhere, 4)
{
    static const char *const elsewhere[] = {"http://other.example/m", "//other.example/m", "",
                                            "/m n"};
    struct web_server *server = web_start();
    struct joined joined = joined_at(server);
    begin(server, &joined, row == 2 ? test_fill('x', 3000) : elsewhere[row]);
    client_error(joined.client, "0", -32000, "endpoint of HTTP+SSE is not at the same host");
}

/* The client gives up before the endpoint comes. */
TEST(connect_http_older_is_cancelled)
{
    struct web_server *server = web_start();
    struct joined joined = joined_at(server);
    struct web_request *stream;
    client_send(joined.client, INITIALIZE);
    web_answer(web_next(server, "POST /a/sse?x", "'initialize'"), "404 Not Found", "", "%s", "");
    stream = web_next(server, "GET /a/sse?x", NULL);
    client_half_close(joined.client);
    web_cut(stream);
    client_error(joined.client, "0", -32000, "404 Not Found");
    client_expect_eof(joined.client);
    joined_expect_status(&joined, 0);
}
