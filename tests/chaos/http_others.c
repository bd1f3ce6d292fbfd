/* Clients without a session: requests that stand alone and end with their connection, WebSocket
 * clients, and those that break the rules of HTTP. */
#include "build_config.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "deadline.h"
#include "http_chaos.h"

#define BATCH_MAX 4

/* --- requests that stand alone --- */

static void ask_stateless(struct chaos *chaos, struct actor *actor)
{
    struct link *link = link_free(chaos, actor, false);
    struct call *call = link != NULL ? talk_new_call(chaos, actor, CALL_STATELESS) : NULL;
    struct text body = {0}, request = {0};

    if (call == NULL)
        return;
    call->notes = dice_chance(&chaos->run.dice, 400) ? (long)dice_below(&chaos->run.dice, 6) : 0;
    call->forever = !chaos->calm && dice_chance(&chaos->run.dice, 80);
    talk_put_work(chaos, &body, call, call->id, true);
    talk_post(chaos, &request, "/mcp/own",
              "Accept: application/json, text/event-stream\r\n"
              "MCP-Protocol-Version: " STATELESS "\r\nMcp-Method: work\r\n",
              &body);
    link_send(link, &request, call);
    call->next_ms = now_ms() + dice_below(&chaos->run.dice, 1500);
    text_free(&request);
    text_free(&body);
}

static void put_parts(struct chaos *chaos, struct text *body, struct call *call)
{
    text_printf(body, "[");
    for (unsigned i = 0; i < call->parts; i++) {
        text_add(body, ",", i > 0 ? 1 : 0);
        talk_put_work(chaos, body, call, call->id + i, false);
    }
    text_printf(body, "]");
}

static void ask_rpc(struct chaos *chaos, struct actor *actor, bool pipelined)
{
    struct link *link = link_free(chaos, actor, pipelined);
    struct call *call = link != NULL ? talk_new_call(chaos, actor, CALL_RPC) : NULL;
    struct text body = {0}, request = {0};
    char target[40];
    bool plain = dice_chance(&chaos->run.dice, 400);

    if (call == NULL)
        return;
    call->parts =
        dice_chance(&chaos->run.dice, 300) ? 2 + dice_below(&chaos->run.dice, BATCH_MAX - 1) : 1;
    call->forever = !chaos->calm && !plain && dice_chance(&chaos->run.dice, 60);
    snprintf(target, sizeof target, "/rpc/%s%s", plain ? "plain" : "all",
             call->forever ? "?timeout=1" : "");
    if (call->parts == 1)
        talk_put_work(chaos, &body, call, call->id, false);
    else
        put_parts(chaos, &body, call);
    actor->last_id += BATCH_MAX;
    chaos->batches += call->parts > 1;
    talk_post(chaos, &request, target, "", &body);
    link_send(link, &request, call);
    text_free(&request);
    text_free(&body);
}

/* What nobody answers is cancelled by the end of its connection. */
static bool give_up(struct chaos *chaos, struct actor *actor)
{
    for (unsigned i = 0; i < CALLS; i++) {
        struct call *call = &actor->calls[i];

        if (call->kind == CALL_STATELESS && call->forever && now_ms() >= call->next_ms &&
            call->link != NULL && call->link->fd >= 0) {
            link_close(chaos, call->link);
            chaos->cancels++;
            return true;
        }
    }
    return false;
}

static void act_as_caller(struct chaos *chaos, struct actor *actor)
{
    uint32_t dice = dice_below(&chaos->run.dice, 1000);

    actor->question_count = 0;
    if (give_up(chaos, actor) || chaos->calm)
        return;
    if (dice < 400)
        ask_stateless(chaos, actor);
    else if (dice < 800)
        ask_rpc(chaos, actor, dice_chance(&chaos->run.dice, 400));
    else if (dice < 850)
        link_close(chaos, &actor->links[dice_below(&chaos->run.dice, LINKS)]);
    else if (dice < 852)
        talk_end_life(chaos, actor);
}

/* --- WebSocket --- */

static void put_frame(struct chaos *chaos, struct text *to, unsigned first, const char *data,
                      size_t len)
{
    uint32_t mask = (uint32_t)dice_throw(&chaos->run.dice);
    char head[8] = {(char)first, (char)(0x80 | (len > 125 ? 126 : len)), (char)(len >> 8),
                    (char)len};

    text_add(to, head, len > 125 ? 4 : 2);
    text_add(to, &mask, 4);
    for (size_t i = 0; i < len; i++) {
        char byte = (char)(data[i] ^ ((const char *)&mask)[i % 4]);

        text_add(to, &byte, 1);
    }
}

static void put_ping(struct chaos *chaos, struct text *to, struct actor *actor)
{
    char data[24];
    int len = snprintf(data, sizeof data, "ping %u", ++actor->pings);

    put_frame(chaos, to, 0x89, data, (size_t)len);
}

/* A message in fragments, with pings between them. */
static void put_message(struct chaos *chaos, struct link *link, const struct text *body)
{
    size_t at = 0;

    while (at < body->len) {
        size_t rest = body->len - at;
        size_t len = dice_chance(&chaos->run.dice, 600)
                         ? rest
                         : dice_below(&chaos->run.dice, (uint32_t)rest);
        unsigned first = (at == 0 ? 1 : 0);

        if (len > 60000)
            len = 60000;
        if (len == 0 && at == 0)
            len = 1;
        put_frame(chaos, &link->output, first | (len == rest ? 0x80 : 0), body->data + at, len);
        at += len;
        if (dice_chance(&chaos->run.dice, 100))
            put_ping(chaos, &link->output, link->actor);
    }
}

static void open_web(struct chaos *chaos, struct actor *actor)
{
    struct link *link = link_free(chaos, actor, false);

    if (link == NULL)
        return;
    text_printf(&link->output,
                "GET /mcp/%s HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
                "Upgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                "Sec-WebSocket-Version: 13\r\n\r\n",
                actor->pool);
    link->web = WEB_ASKED;
    actor->phase = BEGINNING;
    actor->pings = actor->pongs = 0;
}

static void ask_over_web(struct chaos *chaos, struct actor *actor)
{
    bool first = actor->phase == LIVE;
    struct call *call = talk_new_call(chaos, actor, first ? CALL_FIRST : CALL_WEB);
    struct text body = {0};

    if (call == NULL)
        return;
    call->status = 200;
    call->sent_ms = now_ms();
    call->link = &actor->links[0];
    if (first) {
        text_printf(&body,
                    "{'jsonrpc':'2.0','id':%u,'method':'initialize','params':{'protocolVersion':"
                    "'2025-11-25','capabilities':{},'clientInfo':{'name':'c','version':'1'}}}",
                    call->id);
        text_quote(&body, 0);
    } else {
        call->notes = strcmp(actor->pool, "plain") == 0 ? 0 : (long)dice_below(&chaos->run.dice, 4);
        talk_put_work(chaos, &body, call, call->id, false);
    }
    put_message(chaos, &actor->links[0], &body);
    actor->phase = first ? IDLING : DRAINING; /* initialize is on its way; it was answered */
    text_free(&body);
    chaos->web_messages++;
}

static void close_web(struct chaos *chaos, struct actor *actor)
{
    put_frame(chaos, &actor->links[0].output, 0x88,
              "\x03\xe8"
              "bye",
              5);
    actor->links[0].web = WEB_CLOSING;
    actor->phase = ENDING;
    actor->deadline_ms = now_ms() + (int64_t)(20000 * timeout_factor());
}

static void act_as_web(struct chaos *chaos, struct actor *actor)
{
    uint32_t dice = dice_below(&chaos->run.dice, 1000);
    struct link *link = &actor->links[0];

    actor->question_count = 0;
    if (link->fd < 0) {
        talk_end_life(chaos, actor);
        if (!chaos->calm)
            open_web(chaos, actor);
    } else if (actor->phase == LIVE && !chaos->calm) {
        ask_over_web(chaos, actor);
    } else if (actor->phase == DRAINING && !chaos->calm) {
        if (dice < 970)
            ask_over_web(chaos, actor);
        else if (dice < 980)
            link_close(chaos, link);
        else if (dice < 990)
            close_web(chaos, actor);
        else
            put_ping(chaos, &link->output, actor);
    } else if (actor->phase == ENDING && now_ms() > actor->deadline_ms) {
        violation(chaos, "actor %u: a close is not answered", actor->index);
        link_close(chaos, link);
    }
}

static void take_close(struct chaos *chaos, struct link *link, const unsigned char *data,
                       size_t len)
{
    unsigned code = len >= 2 ? (unsigned)(data[0] << 8 | data[1]) : 0;

    if (link->web == WEB_CLOSING ? code != 1000 : chaos->run.pid != 0)
        violation(chaos, "actor %u: a close with %u: %.*s", link->actor->index, code,
                  len > 2 ? (int)len - 2 : 0, (const char *)data + 2);
    link->web = WEB_CLOSING;
    link->doomed = true;
}

static void take_text(struct chaos *chaos, struct link *link, struct span message)
{
    struct actor *actor = link->actor;
    struct call *call = NULL;
    long id = json_number(message, "id");

    for (unsigned i = 0; i < CALLS && json_get(message, "method").data == NULL; i++) {
        if (actor->calls[i].kind != CALL_NONE && (long)actor->calls[i].id == id)
            call = &actor->calls[i];
    }
    check_message(chaos, actor, call, message);
    if (call == NULL)
        return;
    if (call->kind == CALL_FIRST)
        actor->phase = json_get(message, "error").data == NULL ? DRAINING : LIVE;
    check_done(chaos, actor, call);
}

static void take_frame(struct chaos *chaos, struct link *link, unsigned first,
                       const unsigned char *data, size_t len)
{
    struct actor *actor = link->actor;
    char pong[24];

    switch (first) {
    case 0x81:
        take_text(chaos, link, (struct span){(const char *)data, len});
        break;
    case 0x88:
        take_close(chaos, link, data, len);
        break;
    case 0x89:
        put_frame(chaos, &link->output, 0x8a, (const char *)data, len);
        break;
    case 0x8a:
        snprintf(pong, sizeof pong, "ping %u", ++actor->pongs);
        if (len != strlen(pong) || memcmp(pong, data, len) != 0)
            violation(chaos, "actor %u: pong %.*s in place of %s", actor->index, (int)len,
                      (const char *)data, pong);
        break;
    default:
        violation(chaos, "actor %u: a frame with %02x", actor->index, first);
    }
}

static bool take_upgrade(struct chaos *chaos, struct link *link, size_t *taken)
{
    const char *end = memmem(link->body.data, link->body.len, "\r\n\r\n", 4);

    if (end == NULL)
        return false;
    if (strncmp(link->body.data, "HTTP/1.1 101 ", 13) != 0)
        violation(chaos, "an upgrade is refused: %.60s", link->body.data);
    *taken = (size_t)(end - link->body.data) + 4;
    link->web = WEB_OPEN;
    link->actor->phase = strcmp(link->actor->pool, "plain") == 0 ? DRAINING : LIVE;
    return true;
}

void others_web(struct chaos *chaos, struct link *link)
{
    size_t at = 0;

    if (link->web == WEB_ASKED && !take_upgrade(chaos, link, &at))
        return;
    while (link->body.len - at >= 2) {
        const unsigned char *bytes = (const unsigned char *)link->body.data + at;
        size_t len = bytes[1], head = 2;

        if (len == 126 || len == 127)
            head = len == 126 ? 4 : 10;
        if (link->body.len - at < head)
            break;
        for (size_t i = 2; i < head; i++)
            len = (i == 2 ? 0 : len << 8) | bytes[i];
        if (link->body.len - at - head < len)
            break;
        at += head + len;
        take_frame(chaos, link, bytes[0], bytes + head, len);
    }
    memmove(link->body.data, link->body.data + at, link->body.len - at);
    link->body.len -= at;
}

/* --- who breaks the rules --- */

#define HOST "Host: localhost\r\n"

static const char *const bad_requests[] = {
    "GET\r\n\r\n",
    "GET /mcp HTTP/1.1\r\n\r\n",
    "GET /mcp HTTP/1.1\nHost: localhost\n\n",
    "GET /mcp HTTP/2.0\r\n" HOST "\r\n",
    "POST /rpc/all HTTP/1.1\r\n" HOST "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
    "POST /rpc/all HTTP/1.1\r\n" HOST "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "POST /rpc/all HTTP/1.1\r\n" HOST "Content-Length: -2\r\n\r\n",
    "POST /rpc/all HTTP/1.1\r\n" HOST "Content-Length : 2\r\n\r\n{}",
    "POST /rpc/all HTTP/1.1\r\n" HOST " folded: 1\r\n\r\n",
    "POST /rpc/all HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip\r\n\r\n",
    "POST /rpc/all HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    "POST /rpc/all HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\n{]}",
    "POST /rpc/all HTTP/1.1\r\n" HOST "Content-Length: 99999999999\r\n\r\n",
    "POST /mcp/nobody HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\n{}",
    "GET /mcp HTTP/1.1\r\nHost: attacker.example\r\n\r\n",
    "GET /mcp HTTP/1.1\r\n" HOST "Origin: http://attacker.example\r\n\r\n",
    "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"work\"}\n",
    "PUT /mcp HTTP/1.1\r\n" HOST "\r\n",
    "POST /mcp/all HTTP/1.1\r\n" HOST "Content-Type: application/json\r\n"
    "Mcp-Session-Id: 00000000000000000000000000000000\r\nContent-Length: 2\r\n\r\n{}",
};

/* A bad request, or the beginning of one: perhaps the daemon's patience ends first. */
static void act_as_vandal(struct chaos *chaos, struct actor *actor)
{
    struct link *link = &actor->links[0];
    const char *bad =
        bad_requests[dice_below(&chaos->run.dice, sizeof bad_requests / sizeof bad_requests[0])];
    size_t len = strlen(bad);

    if (link->fd >= 0) {
        if (chaos->calm || now_ms() > actor->deadline_ms)
            link_close(chaos, link);
        return;
    }
    if (chaos->calm || (link = link_free(chaos, actor, false)) == NULL)
        return;
    link->refused = true;
    if (dice_chance(&chaos->run.dice, 300))
        len = dice_below(&chaos->run.dice, (uint32_t)len);
    text_add(&link->output, bad, len);
    if (dice_chance(&chaos->run.dice, 100))
        text_fill(&link->output, 'a', 20000);
    actor->deadline_ms = now_ms() + dice_below(&chaos->run.dice,
                                               dice_chance(&chaos->run.dice, 50) ? 14000 : 400);
}

void others_act(struct chaos *chaos, struct actor *actor)
{
    if (actor->kind == CALLER)
        act_as_caller(chaos, actor);
    else if (actor->kind == WEB)
        act_as_web(chaos, actor);
    else
        act_as_vandal(chaos, actor);
}
