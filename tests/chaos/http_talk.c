/* Clients with a session of MCP: several requests in flight over several connections, streams that
 * are cut and resumed, replies to questions, and every kind of end. */
#include "build_config.h"

#include <stdio.h>
#include <string.h>

#include "deadline.h"
#include "http_chaos.h"

#define FIELDS "Content-Type: application/json\r\n"
#define BOTH "Accept: application/json, text/event-stream\r\n"
#define IDLE_MS ((IDLE_SEC + 7) * 1000) /* requests that nobody waits for are over, too */

/* --- requests --- */

static void put_chunks(struct chaos *chaos, struct text *to, const struct text *body)
{
    for (size_t at = 0; at < body->len;) {
        size_t len = 1 + dice_below(&chaos->run.dice, (uint32_t)(body->len - at));

        text_printf(to, "%zx%s\r\n", len, dice_chance(&chaos->run.dice, 200) ? ";a=b" : "");
        text_add(to, body->data + at, len);
        text_printf(to, "\r\n");
        at += len;
    }
    text_printf(to, "0\r\n%s\r\n", dice_chance(&chaos->run.dice, 200) ? "X-Trailer: 1\r\n" : "");
}

void talk_post(struct chaos *chaos, struct text *to, const char *target, const char *fields,
               const struct text *body)
{
    text_printf(to, "POST %s HTTP/1.1\r\nHost: localhost\r\n%s" FIELDS, target, fields);
    if (dice_chance(&chaos->run.dice, 250)) {
        text_printf(to, "Transfer-Encoding: chunked\r\n\r\n");
        put_chunks(chaos, to, body);
        return;
    }
    text_printf(to, "Content-Length: %zu\r\n\r\n", body->len);
    text_add(to, body->data, body->len);
}

struct call *talk_new_call(struct chaos *chaos, struct actor *actor, enum call_kind kind)
{
    for (unsigned i = 0; i < CALLS; i++) {
        struct call *call = &actor->calls[i];

        if (call->kind != CALL_NONE)
            continue;
        memset(call, 0, sizeof *call);
        call->kind = kind;
        call->id = ++actor->last_id;
        snprintf(call->mark, sizeof call->mark, "%u.%u.%u", actor->index, actor->life, call->id);
        chaos->requests++;
        return call;
    }
    return NULL;
}

void talk_put_work(struct chaos *chaos, struct text *body, struct call *call, unsigned id,
                   bool stateless)
{
    long pad = dice_chance(&chaos->run.dice, 30) ? (long)dice_below(&chaos->run.dice, 40000)
                                                 : (long)dice_below(&chaos->run.dice, 40);
    bool slow = dice_chance(&chaos->run.dice, 300), odd = stateless && id % 2 == 1;

    text_printf(body, "{'jsonrpc':'2.0','id':%u,'method':'work','params':{'mark':'%s','pad':%ld",
                id, call->mark, pad);
    text_printf(body, ",'delay':%u,'notes':%ld,'loose':%ld,'ask':%s,'forever':%s",
                slow ? dice_below(&chaos->run.dice, 1000) : dice_below(&chaos->run.dice, 10),
                call->notes, call->loose, call->asked ? "true" : "false",
                call->forever ? "true" : "false");
    text_printf(body, ",'_meta':{'progressToken':%s%u%s", odd ? "'t" : "", id, odd ? "'" : "");
    if (stateless)
        text_printf(body, ",'io.modelcontextprotocol/protocolVersion':'" STATELESS
                          "','io.modelcontextprotocol/clientCapabilities':{}");
    text_printf(body, "}}}");
    text_quote(body, 0);
    call->asked = false;
}

static void target_of(const struct actor *actor, char target[24])
{
    snprintf(target, 24, "/mcp/%s", actor->pool);
}

static void session_fields(const struct actor *actor, char *fields, size_t size, const char *accept)
{
    snprintf(fields, size, "%sMcp-Session-Id: %s\r\nMCP-Protocol-Version: 2025-11-25\r\n", accept,
             actor->session);
}

static void post(struct chaos *chaos, struct actor *actor, struct link *link, struct call *call,
                 const struct text *body)
{
    struct text request = {0};
    char target[24], fields[256];

    target_of(actor, target);
    session_fields(actor, fields, sizeof fields,
                   call->takes_json_only ? "Accept: application/json\r\n" : BOTH);
    talk_post(chaos, &request, target, call->kind == CALL_FIRST ? BOTH : fields, body);
    link_send(link, &request, call);
    text_free(&request);
}

/* A request without a body. */
static void ask_for(struct actor *actor, struct link *link, struct call *call, const char *method)
{
    struct text request = {0};
    char target[24], fields[256];

    target_of(actor, target);
    session_fields(actor, fields, sizeof fields, "Accept: text/event-stream\r\n");
    text_printf(&request, "%s %s HTTP/1.1\r\nHost: localhost\r\n%s", method, target, fields);
    if (call->event[0] != '\0')
        text_printf(&request, "Last-Event-ID: %s\r\n", call->event);
    text_printf(&request, "\r\n");
    link_send(link, &request, call);
    text_free(&request);
}

/* --- the acts of a session --- */

static void begin(struct chaos *chaos, struct actor *actor)
{
    struct link *link = link_free(chaos, actor, false);
    struct call *call = link != NULL ? talk_new_call(chaos, actor, CALL_FIRST) : NULL;
    struct text body = {0};

    if (call == NULL)
        return;
    text_printf(&body,
                "{'jsonrpc':'2.0','id':%u,'method':'initialize','params':{'protocolVersion':"
                "'2025-11-25','capabilities':{},'clientInfo':{'name':'c','version':'1'}}}",
                call->id);
    text_quote(&body, 0);
    post(chaos, actor, link, call, &body);
    actor->phase = BEGINNING;
    text_free(&body);
}

/* A notification or a reply. */
static void tell(struct chaos *chaos, struct actor *actor, const struct text *body)
{
    struct link *link = link_free(chaos, actor, false);
    struct call *call = link != NULL ? talk_new_call(chaos, actor, CALL_TELL) : NULL;

    if (call != NULL)
        post(chaos, actor, link, call, body);
}

static bool can_tell(const struct actor *actor)
{
    unsigned links = 0, calls = 0;

    for (unsigned i = 0; i < LINKS; i++)
        links += actor->links[i].count == 0;
    for (unsigned i = 0; i < CALLS; i++)
        calls += actor->calls[i].kind == CALL_NONE;
    return links > 0 && calls > 0;
}

static void reply(struct chaos *chaos, struct actor *actor)
{
    const struct question *question = &actor->questions[0];
    struct text body = {0};

    text_printf(&body, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"mark\":\"%s\"}}", question->id,
                question->mark);
    tell(chaos, actor, &body);
    text_free(&body);
    actor->question_count--;
    memmove(actor->questions, actor->questions + 1,
            actor->question_count * sizeof actor->questions[0]);
}

static void work(struct chaos *chaos, struct actor *actor, bool pipelined)
{
    struct link *link = link_free(chaos, actor, pipelined);
    struct call *call = link != NULL ? talk_new_call(chaos, actor, CALL_WORK) : NULL;
    struct text body = {0};

    if (call == NULL)
        return;
    call->takes_json_only = dice_chance(&chaos->run.dice, 150);
    call->notes = dice_chance(&chaos->run.dice, 500) ? (long)dice_below(&chaos->run.dice, 8) : 0;
    call->asked = dice_chance(&chaos->run.dice, 150);
    if (strcmp(actor->pool, "own") == 0 && dice_chance(&chaos->run.dice, 200))
        call->loose = 1 + (long)dice_below(&chaos->run.dice, 3);
    talk_put_work(chaos, &body, call, call->id, false);
    post(chaos, actor, link, call, &body);
    text_free(&body);
}

static struct call *any_call(struct chaos *chaos, struct actor *actor, enum call_kind kind)
{
    struct call *found = NULL;
    unsigned count = 0;

    for (unsigned i = 0; i < CALLS; i++) {
        if (actor->calls[i].kind == kind && dice_below(&chaos->run.dice, ++count) == 0)
            found = &actor->calls[i];
    }
    return found;
}

static void cancel(struct chaos *chaos, struct actor *actor)
{
    struct call *call = any_call(chaos, actor, CALL_WORK);
    struct text body = {0};

    if (call == NULL || call->cancelled || !can_tell(actor))
        return;
    text_printf(&body,
                "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
                "\"requestId\":%u}}",
                call->id);
    call->cancelled = true;
    actor->leaky = true;
    tell(chaos, actor, &body);
    text_free(&body);
    chaos->cancels++;
    if (call->link == NULL)
        check_done(chaos, actor, call);
}

static void listen_to(struct chaos *chaos, struct actor *actor)
{
    struct link *link;
    struct call *call;

    if (any_call(chaos, actor, CALL_GET) != NULL || (link = link_free(chaos, actor, false)) == NULL)
        return;
    call = talk_new_call(chaos, actor, CALL_GET);
    if (call != NULL)
        ask_for(actor, link, call, "GET");
}

/* The stream continues, on another connection. */
static void resume(struct chaos *chaos, struct actor *actor, struct call *call)
{
    struct link *link;

    if (call->link == NULL) {
        call->over_before = call->over_before > 0 ? call->over_before : actor->over;
    } else { /* the newer connection wins */
        link_forget(actor, call);
        call->over_before = actor->over;
    }
    link = link_free(chaos, actor, false);
    call->link = NULL;
    call->next_ms = now_ms() + 20;
    if (link == NULL)
        return;
    call->unseen += call->status == 0;
    call->status = 0;
    call->resumes = true;
    ask_for(actor, link, call, "GET");
}

static void resume_all(struct chaos *chaos, struct actor *actor)
{
    for (unsigned i = 0; i < CALLS; i++) {
        struct call *call = &actor->calls[i];

        if (call->kind != CALL_NONE && call->link == NULL && now_ms() >= call->next_ms)
            resume(chaos, actor, call);
    }
}

/* Asks on another connection for a stream that is being sent. A GET whose response has not begun
 * may come to the daemon after the next one, and then it is the newer. */
static void take_over(struct chaos *chaos, struct actor *actor)
{
    struct call *call = any_call(chaos, actor,
                                 dice_chance(&chaos->run.dice, 300) ? CALL_GET : CALL_WORK);

    if (call != NULL && call->link != NULL && call->event[0] != '\0' && !call->cancelled &&
        call->link->fd >= 0 && call->link->calls[0] == call && call->link->in_response)
        resume(chaos, actor, call);
}

static void cut(struct chaos *chaos, struct actor *actor)
{
    struct link *link = &actor->links[dice_below(&chaos->run.dice, LINKS)];

    if (link->fd >= 0)
        link_close(chaos, link);
}

static void close_session(struct chaos *chaos, struct actor *actor)
{
    struct link *link = link_free(chaos, actor, false);
    struct call *call = link != NULL ? talk_new_call(chaos, actor, CALL_DELETE) : NULL;

    if (call == NULL)
        return;
    actor->deleted = true;
    ask_for(actor, link, call, "DELETE");
}

static void leave_all(struct chaos *chaos, struct actor *actor)
{
    for (unsigned i = 0; i < LINKS; i++)
        link_close(chaos, &actor->links[i]);
    for (unsigned i = 0; i < CALLS; i++) {
        if (actor->calls[i].kind != CALL_NONE)
            check_done(chaos, actor, &actor->calls[i]);
    }
}

void talk_end_life(struct chaos *chaos, struct actor *actor)
{
    leave_all(chaos, actor);
    actor->phase = NEW;
    actor->life++;
    actor->session[0] = actor->tag[0] = '\0';
    actor->deleted = actor->leaky = actor->greeted = false;
    actor->expected = actor->got = 0;
    actor->question_count = 0;
    actor->over = 0;
    actor->last_id = dice_below(&chaos->run.dice, 3);
    actor->tcp = dice_chance(&chaos->run.dice, 600);
    actor->resets = actor->kind != SESSION || dice_chance(&chaos->run.dice, 500);
    chaos->lives++;
}

/* The session is left alone until it has ended by itself, or for good. */
static void go_idle(struct chaos *chaos, struct actor *actor)
{
    if (!actor->resets || dice_chance(&chaos->run.dice, 500)) {
        talk_end_life(chaos, actor);
        return;
    }
    leave_all(chaos, actor);
    actor->phase = IDLING;
    actor->used_ms = now_ms();
    actor->next_ms = now_ms() + (int64_t)(IDLE_MS * timeout_factor());
}

/* What belongs to no stream of a request has to come on that of the GET. */
static void drain(struct chaos *chaos, struct actor *actor)
{
    resume_all(chaos, actor);
    listen_to(chaos, actor);
    if (any_call(chaos, actor, CALL_WORK) != NULL && now_ms() < actor->deadline_ms)
        return;
    if (actor->got < actor->expected && !actor->leaky && !chaos->forgetful &&
        now_ms() < actor->deadline_ms)
        return;
    if (!actor->leaky && !chaos->forgetful && actor->got != actor->expected)
        violation(chaos, "actor %u, life %u: %ld notes in place of %ld", actor->index, actor->life,
                  actor->got, actor->expected);
    close_session(chaos, actor);
}

static void greet(struct chaos *chaos, struct actor *actor)
{
    struct text body = {0};

    text_printf(&body, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
    tell(chaos, actor, &body);
    text_free(&body);
    actor->greeted = true;
}

static void live(struct chaos *chaos, struct actor *actor)
{
    uint32_t dice = dice_below(&chaos->run.dice, 1000);

    if (!actor->greeted) {
        greet(chaos, actor);
        return;
    }
    resume_all(chaos, actor);
    if (actor->question_count > 0 && can_tell(actor))
        reply(chaos, actor);
    else if (chaos->calm)
        return;
    else if (dice < 500)
        work(chaos, actor, dice < 50);
    else if (dice < 530)
        cancel(chaos, actor);
    else if (dice < 600)
        listen_to(chaos, actor);
    else if (dice < 640)
        cut(chaos, actor);
    else if (dice < 660)
        take_over(chaos, actor);
    else if (dice < 664)
        close_session(chaos, actor);
    else if (dice < 668)
        go_idle(chaos, actor);
    else if (dice < 680) {
        actor->phase = DRAINING;
        actor->deadline_ms = now_ms() + (int64_t)(8000 * timeout_factor());
    }
}

static void wake(struct chaos *chaos, struct actor *actor)
{
    work(chaos, actor, false);
    actor->next_ms = now_ms() + 1000;
}

static void act_in_session(struct chaos *chaos, struct actor *actor)
{
    switch (actor->phase) {
    case NEW:
        if (!chaos->calm)
            begin(chaos, actor);
        break;
    case LIVE:
        live(chaos, actor);
        break;
    case IDLING:
        wake(chaos, actor);
        break;
    case DRAINING:
        if (actor->question_count > 0 && can_tell(actor))
            reply(chaos, actor);
        else if (!actor->deleted)
            drain(chaos, actor);
        break;
    case ENDING:
        talk_end_life(chaos, actor);
        break;
    default:
        break;
    }
}

void talk_act(struct chaos *chaos, struct actor *actor)
{
    actor->next_ms = now_ms() + dice_below(&chaos->run.dice, 40);
    if (actor->kind == SESSION)
        act_in_session(chaos, actor);
    else
        others_act(chaos, actor);
}

bool talk_busy(const struct actor *actor)
{
    if (actor->kind == SESSION && (actor->phase == IDLING || actor->phase == DRAINING))
        return true;
    for (unsigned i = 0; i < CALLS; i++) {
        enum call_kind kind = actor->calls[i].kind;

        if (kind != CALL_NONE && kind != CALL_GET)
            return true;
    }
    return false;
}
