#include "build_config.h"

#include "http_scene.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "deadline.h"
#include "upgrade_scene.h"
#include "web.h"

#define SILENCE_SEC 15 /* after which the daemon looks after an exchange */
#define QUESTIONS 16   /* more than are kept */
#define HOST "Host: localhost\r\n"
#define TOKEN "Authorization: Bearer faults\r\n"
#define REVISION "MCP-Protocol-Version: 2025-11-25\r\n"
#define POSTED                                                                                     \
    HOST TOKEN "Content-Type: application/json\r\n"                                                \
               "Accept: application/json, text/event-stream\r\n"

/* --- sessions of MCP --- */

/* The heads of the requests of a session. */
struct session {
    struct text post, get, delete;
};

/* False: there is none, for want of memory. */
static bool session_begin(struct session *session, struct web *web)
{
    const char *at;
    char field[128];

    *session = (struct session){{0}, {0}, {0}};
    if (!web_ask(web, "POST /mcp/a HTTP/1.1\r\n" POSTED,
                 "{'jsonrpc':'2.0','id':0,'method':'initialize','params':{'protocolVersion':"
                 "'2025-11-25','capabilities':{},'clientInfo':{'name':'x','version':'1'}}}"))
        return false;
    at = strstr(web->input.data, "Mcp-Session-Id: ");
    if (at == NULL)
        return false;
    snprintf(field, sizeof field, "%.*s\r\n", (int)strcspn(at, "\r"), at);
    text_printf(&session->post, "POST /mcp/a HTTP/1.1\r\n" POSTED REVISION "%s", field);
    text_printf(&session->get,
                "GET /mcp/a HTTP/1.1\r\n" HOST TOKEN REVISION "Accept: text/event-stream\r\n%s",
                field);
    text_printf(&session->delete, "DELETE /mcp/a HTTP/1.1\r\n" HOST TOKEN "%s", field);
    web_ask(web, session->post.data, "{'jsonrpc':'2.0','method':'notifications/initialized'}");
    return true;
}

static void session_free(struct session *session)
{
    text_free(&session->post);
    text_free(&session->get);
    text_free(&session->delete);
}

static void session_end(struct session *session, struct web *web)
{
    web_ask(web, session->delete.data, "");
    session_free(session);
}

/* From its beginning to its end. */
static void have_session(struct web *web)
{
    struct session session;

    if (!session_begin(&session, web))
        return;
    web_ask(web, session.post.data, "{'jsonrpc':'2.0','id':1,'method':'plain'}");
    session_end(&session, web);
}

/* --- the scene of all kinds of requests --- */

static void talk(struct web *web)
{
    web_ask(web, "GET /healthz HTTP/1.1\r\n" HOST, "");
    web_ask(web, "GET /readyz HTTP/1.1\r\n" HOST, "");
    web_ask(web, "GET /metrics HTTP/1.1\r\n" HOST TOKEN, "");
    web_ask(web, "GET / HTTP/1.1\r\n" HOST "Accept: text/html\r\n", "");
    web_ask(web, "GET / HTTP/1.1\r\n" HOST TOKEN "Accept: text/html\r\n", "");
    web_ask(web, "GET /page.json HTTP/1.1\r\n" HOST TOKEN, "");
    web_ask(web, "GET /.well-known/oauth-protected-resource HTTP/1.1\r\n" HOST, "");
    web_ask(web, "GET /mcp/a HTTP/1.1\r\n" HOST, "");
    web_ask(web,
            "OPTIONS /mcp/a HTTP/1.1\r\n" HOST "Origin: https://app.example\r\n"
            "Access-Control-Request-Method: POST\r\n",
            "");
    web_ask(web, "POST /rpc/b HTTP/1.1\r\n" POSTED "Origin: https://app.example\r\n",
            "{'jsonrpc':'2.0','id':1,'method':'plain'}");
    web_ask(web, "POST /rpc/b HTTP/1.1\r\n" POSTED,
            "[{'jsonrpc':'2.0','id':1,'method':'plain'},{'jsonrpc':'2.0','id':2,"
            "'method':'plain'}]");
    have_session(web);
}

static bool is_served(struct run *run)
{
    struct web web;
    bool served;

    web_open(&web, run);
    served = web_ask(&web, "POST /rpc/b HTTP/1.1\r\n" POSTED,
                     "{'jsonrpc':'2.0','id':1,'method':'plain'}") &&
             strstr(web.input.data, "200 OK") != NULL;
    web_close(&web);
    return served;
}

static void check_recovery(struct run *run)
{
    int64_t deadline = deadline_usual();

    run_lift(run);
    while (run_alive(run) && !is_served(run)) {
        if (deadline_over(deadline))
            run_fail(run, "the daemon is alive but does not serve");
    }
}

void play_http(struct run *run)
{
    struct web web, other;

    web_open(&web, run);
    web_ask(&web, "GET /healthz HTTP/1.1\r\n" HOST, "");
    run_arm(run);
    talk(&web);
    if (run_alive(run))
        kill(run->daemon, SIGUSR1); /* the tokens are read again */
    web_open(&other, run);
    talk(&other);
    check_recovery(run);
    run_terminate(run);
    web_close(&web);
    web_close(&other);
}

/* --- the scene of what lasts longer than a request --- */

/* A stream ends with the answer, and is had once more from its first event on. */
static void resume(const struct session *session, struct web *web)
{
    struct text head = {0};
    const char *id;

    if (!web_ask(web, session->post.data,
                 "{'jsonrpc':'2.0','id':1,'method':'progress','params':{'_meta':"
                 "{'progressToken':1}}}"))
        return;
    id = strstr(web->input.data, "\nid: ");
    if (id == NULL) /* an error */
        return;
    text_printf(&head, "%sLast-Event-ID: %.*s\r\n", session->get.data, (int)strcspn(id + 5, "\r\n"),
                id + 5);
    web_ask(web, head.data, "");
    text_free(&head);
}

/* Sends a message on the other connection, after which the answer ends; it does not if the message
 * was refused. */
static void web_await_after(struct web *web, struct web *other, const char *head, const char *body)
{
    if (web_ask(other, head, body) && strstr(other->input.data, " 202 ") != NULL)
        web_await(web);
    else
        web_close(web);
}

/* A question of the worker on the stream of a request, which the client answers. */
static void answer(const struct session *session, struct web *web, struct web *other)
{
    struct text reply = {0};
    const char *id;

    web_send(web, session->post.data, "{'jsonrpc':'2.0','id':2,'method':'ask','params':{'id':7}}");
    if (!web_await_words(web, "question")) {
        web_close(web);
        return;
    }
    id = strstr(web->input.data, "\"id\":");
    text_printf(&reply, "{'jsonrpc':'2.0',%.*s,'result':{}}", (int)strcspn(id, ","), id);
    web_await_after(web, other, session->post.data, reply.data);
    text_free(&reply);
}

/* The client asks on one connection and cancels on another. */
static void cancel(const struct session *session, struct web *web, struct web *other)
{
    web_send(web, session->post.data, "{'jsonrpc':'2.0','id':3,'method':'no_answer'}");
    web_ask(other, session->post.data, "{'jsonrpc':'2.0','id':4,'method':'plain'}");
    web_await_after(web, other, session->post.data,
                    "{'jsonrpc':'2.0','method':'notifications/cancelled',"
                    "'params':{'requestId':3}}");
}

/* A notification on the stream of a GET. */
static void hear(const struct session *session, struct web *web, struct web *other)
{
    web_ask(other, session->post.data,
            "{'jsonrpc':'2.0','method':'say_only','params':{'message':"
            "{'jsonrpc':'2.0','method':'notifications/any'}}}");
    web_await_words(web, "notifications/any");
}

/* The same from the beginning; the stream ends with the session. */
static void listen_to(const struct session *session, struct web *web, struct web *other)
{
    web_send(web, session->get.data, "");
    if (web_await_words(web, "id: "))
        hear(session, web, other);
}

/* Questions that the client does not fetch, until the first of them are forgotten. The last request
 * takes no stream, which they would be on. False: the connection was lost. */
static bool fetch_nothing(const struct session *session, struct web *web)
{
    struct text head = {0};
    char question[128];
    bool answered;

    for (int i = 0; i < QUESTIONS; i++) {
        snprintf(question, sizeof question,
                 "{'jsonrpc':'2.0','method':'say_only','params':{'message':"
                 "{'jsonrpc':'2.0','id':%d,'method':'roots/list'}}}",
                 i);
        web_ask(web, session->post.data, question);
    }
    text_printf(&head, "%s", session->post.data);
    text_replace(&head, ", text/event-stream", "");
    answered = web_ask(web, head.data, "{'jsonrpc':'2.0','id':5,'method':'reply_text'}");
    text_free(&head);
    return answered;
}

static void have_streams(struct run *run, struct web *web)
{
    struct session session;
    struct web other;

    web_open(&other, run);
    if (session_begin(&session, web)) {
        resume(&session, web);
        answer(&session, web, &other);
        cancel(&session, web, &other);
        listen_to(&session, web, &other);
        session_end(&session, &other);
    }
    web_close(web); /* which a GET may still hold */
    web_open(web, run);
    if (session_begin(&session, web)) {
        if (fetch_nothing(&session, web)) {
            web_send(&other, session.get.data, "");
            web_await_words(&other, "roots/list");
        }
        session_end(&session, web);
    }
    web_close(&other);
}

/* A request whose name is written in another way than in its head. */
static void stand_alone(struct web *web)
{
    web_ask(web,
            "POST /mcp/a HTTP/1.1\r\n" POSTED "MCP-Protocol-Version: 2026-07-28\r\n"
            "Mcp-Method: tools/call\r\nMcp-Name: t\r\n",
            "{'jsonrpc':'2.0','id':1,'method':'tools/call','params':{'name':'\\u0074','_meta':"
            "{'io.modelcontextprotocol/protocolVersion':'2026-07-28',"
            "'io.modelcontextprotocol/clientCapabilities':{}}}}");
}

/* --- WebSocket --- */

static bool begin_websocket(struct web *web)
{
    return web_ask(web,
                   "GET /rpc/b HTTP/1.1\r\n" HOST TOKEN "Connection: Upgrade\r\n"
                   "Upgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                   "Sec-WebSocket-Version: 13\r\n",
                   "") &&
           strstr(web->input.data, " 101 ") != NULL;
}

static void ask_websocket(struct web *web, unsigned id)
{
    static const unsigned char mask[4] = {1, 2, 3, 4};
    char message[64];
    unsigned char frame[64] = {0x81};
    size_t len = (size_t)snprintf(message, sizeof message, "{\"id\":%u,\"method\":\"plain\"}", id);

    frame[1] = (unsigned char)(0x80 | len);
    memcpy(frame + 2, mask, 4);
    for (size_t i = 0; i < len; i++)
        frame[6 + i] = (unsigned char)message[i] ^ mask[i % 4];
    web_send_bytes(web, frame, 6 + len);
}

/* A message each way, and the end. */
static void speak_websocket(struct run *run)
{
    static const unsigned char bye[] = {0x88, 0x80, 1, 2, 3, 4};
    struct web web;

    web_open(&web, run);
    if (begin_websocket(&web)) {
        ask_websocket(&web, 1);
        if (web_await_words(&web, "\"id\":1"))
            web_send_bytes(&web, bye, sizeof bye);
    }
    web_close(&web);
}

/* --- */

/* A client that is owed an answer leaves, and its next request hides the end of its input. The
 * daemon looks for it from time to time. */
static void leave(struct run *run, struct web *web)
{
    int64_t deadline = deadline_usual();
    bool client_lost;
    struct web mia;

    web_open(&mia, run);
    web_send(&mia, "POST /rpc/b HTTP/1.1\r\n" POSTED,
             "{'jsonrpc':'2.0','id':'Mia','method':'no_answer'}");
    web_send(&mia, "GET /healthz HTTP/1.1\r\n" HOST, "");
    if (mia.fd >= 0)
        shutdown(mia.fd, SHUT_WR);
    client_lost = run->client_lost;
    while (mia.fd >= 0 && web->fd >= 0) {
        run_skip(run, SILENCE_SEC);
        web_ask(web, "GET /healthz HTTP/1.1\r\n" HOST, "");
        if (!web_read(&mia) && deadline_over(deadline))
            run_fail(run, "a client that has left is still there");
    }
    run->client_lost = client_lost || web->fd < 0;
    web_close(&mia);
}

void play_streams(struct run *run)
{
    struct web web;

    web_open(&web, run);
    web_ask(&web, "GET /healthz HTTP/1.1\r\n" HOST, "");
    run_arm(run);
    have_streams(run, &web);
    stand_alone(&web);
    speak_websocket(run);
    leave(run, &web);
    check_recovery(run);
    run_terminate(run);
    web_close(&web);
}

/* --- the scene of upgrades --- */

/* What lasts longer than an upgrade. */
struct lasting {
    struct session session;
    struct web asker, listener, array, socket, other;
};

/* False: a part of it was lost. */
static bool begin_lasting(struct lasting *lasting)
{
    if (!session_begin(&lasting->session, &lasting->other))
        return false;
    web_send(&lasting->listener, lasting->session.get.data, "");
    if (!web_await_words(&lasting->listener, "id: ") ||
        !web_ask(&lasting->other, lasting->session.post.data,
                 "{'jsonrpc':'2.0','id':1,'method':'hold'}"))
        return false;
    web_send(&lasting->asker, lasting->session.post.data,
             "{'jsonrpc':'2.0','id':2,'method':'say','params':{'message':"
             "{'jsonrpc':'2.0','method':'notifications/any'}}}");
    if (!web_await_words(&lasting->asker, "notifications/any"))
        return false;
    web_send(&lasting->array, "POST /rpc/b?timeout=3000 HTTP/1.1\r\n" POSTED,
             "[{'id':1,'method':'hold'},{'id':2,'method':'plain'}]");
    return web_await_words(&lasting->array, "\"id\":1") && begin_websocket(&lasting->socket);
}

/* Has the held answer come, if this is taken. */
static void release(struct web *web, struct web *other, const char *head)
{
    if (web_ask(other, head, "{'jsonrpc':'2.0','id':3,'method':'release'}") &&
        strstr(other->input.data, "\"result\"") != NULL)
        web_await(web);
    else
        web_close(web);
}

static void end_lasting(struct lasting *lasting)
{
    release(&lasting->asker, &lasting->other, lasting->session.post.data);
    release(&lasting->array, &lasting->other, "POST /rpc/b HTTP/1.1\r\n" POSTED);
    ask_websocket(&lasting->socket, 5);
    web_await_words(&lasting->socket, "\"id\":5");
    hear(&lasting->session, &lasting->listener, &lasting->other);
}

void play_upgraded(struct run *run)
{
    struct lasting lasting = {.session = {{0}, {0}, {0}}};
    struct web *webs[] = {&lasting.other, &lasting.asker, &lasting.listener, &lasting.array,
                          &lasting.socket};
    const size_t count = sizeof webs / sizeof webs[0];
    bool lasts;

    for (size_t i = 0; i < count; i++)
        web_open(webs[i], run);
    lasts = begin_lasting(&lasting);
    run_arm(run);
    upgrade_once(run);
    if (lasts)
        end_lasting(&lasting);
    run_lift(run);
    upgrade_once(run);
    for (size_t i = 0; i < count; i++)
        web_close(webs[i]);
    web_open(&lasting.other, run);
    web_ask(&lasting.other, "POST /rpc/b HTTP/1.1\r\n" POSTED, "{'id':1,'method':'release'}");
    web_close(&lasting.other);
    session_free(&lasting.session);
    check_recovery(run);
    run_terminate(run);
}
