/* What clients are sent: each request has its own answer, once; each event comes once, in order,
 * and to nobody else. */
#include "build_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "deadline.h"
#include "http_chaos.h"

#define KILL_MS 12000 /* for so long a kill explains that a process cannot be replaced */

static bool killed_lately(const struct chaos *chaos)
{
    return now_ms() - chaos->last_kill_ms < (int64_t)(KILL_MS * timeout_factor());
}

static struct call *find_call(struct actor *actor, struct span mark)
{
    for (unsigned i = 0; i < CALLS; i++) {
        struct call *call = &actor->calls[i];

        if (call->kind != CALL_NONE && call->mark[0] != '\0' && span_is(mark, call->mark))
            return call;
    }
    return NULL;
}

/* The mark is of this client, in this life. */
static bool is_own(const struct actor *actor, struct span mark)
{
    char own[32];
    int len = snprintf(own, sizeof own, "%u.%u.", actor->index, actor->life);

    return mark.len > (size_t)len && memcmp(mark.data, own, (size_t)len) == 0;
}

static bool is_over(const struct call *call)
{
    unsigned parts = call->parts > 0 ? call->parts : 1;

    return call->answered == (1u << parts) - 1;
}

void check_done(struct chaos *chaos, struct actor *actor, struct call *call)
{
    int64_t waited = now_ms() - call->sent_ms;

    if (call->status == 200 && call->kind != CALL_GET && waited > chaos->slowest_ms)
        chaos->slowest_ms = waited;
    link_forget(actor, call);
    memset(call, 0, sizeof *call);
}

/* Its stream is to be asked for again. */
static void resume_later(struct chaos *chaos, struct actor *actor, struct call *call)
{
    link_forget(actor, call);
    call->link = NULL;
    call->resumes = false;
    call->over_before = actor->over;
    call->next_ms = now_ms() + dice_below(&chaos->run.dice, 400);
}

void check_cut(struct chaos *chaos, struct actor *actor, struct call *call)
{
    bool is_stream = call->kind == CALL_GET || (call->kind == CALL_WORK && call->event[0] != '\0');

    if (is_over(call)) {
        actor->over++;
        check_done(chaos, actor, call);
        return;
    }
    if (is_stream && !call->cancelled) {
        actor->leaky = actor->leaky || call->event[0] == '\0';
        resume_later(chaos, actor, call);
        return;
    }
    if (call->kind == CALL_FIRST)
        actor->phase = NEW; /* a session whose id nobody knows */
    if (call->kind == CALL_DELETE)
        actor->phase = ENDING;
    chaos->lost++;
    actor->leaky = true;
    check_done(chaos, actor, call);
}

/* The session is gone. */
static void check_session_end(struct chaos *chaos, struct actor *actor, struct call *call,
                              const struct text *why)
{
    bool idle = now_ms() - actor->used_ms > IDLE_SEC * 1000 - 200;

    if (actor->phase == IDLING || (idle && !actor->deleted))
        chaos->ended_idle++;
    else if (!actor->deleted && killed_lately(chaos))
        chaos->ended_killed++;
    else if (!actor->deleted)
        violation(chaos, "actor %u: 404 in a session that has not ended, mark %s, %d ms idle: %s",
                  actor->index, call->mark, (int)(now_ms() - actor->used_ms), why->data);
    actor->phase = ENDING;
    actor->next_ms = now_ms();
}

/* --- heads --- */

static bool expects(const struct chaos *chaos, const struct actor *actor, const struct call *call,
                    unsigned status)
{
    switch (call->kind) {
    case CALL_FIRST:
    case CALL_STATELESS:
        return status == 200;
    case CALL_TELL:
        return status == 202 || status == 404;
    case CALL_GET:
        return status == 200 || status == 404;
    case CALL_DELETE:
        return status == 204 || status == 404;
    case CALL_RPC:
        return status == 200 || (call->forever && status == 504 && call->parts == 1);
    default:
        if (call->resumes && (call->cancelled || chaos->forgetful || actor->phase == ENDING ||
                              actor->over - call->over_before > 28))
            return status == 200 || status == 204 || status == 404 || status == 405;
        return status == 200 || status == 404 || (status == 202 && call->cancelled);
    }
}

static void check_first(struct chaos *chaos, struct link *link)
{
    struct slice id = http_response_field(&link->reader, "mcp-session-id");
    struct actor *actor = link->actor;

    if (id.data == NULL)
        return;
    snprintf(actor->session, sizeof actor->session, "%.*s", (int)id.len, id.data);
    for (unsigned i = 0; i < ACTORS; i++) {
        if (i != actor->index && strcmp(chaos->actors[i].session, actor->session) == 0)
            violation(chaos, "two sessions have one id");
    }
    chaos->sessions++;
}

void check_head(struct chaos *chaos, struct link *link)
{
    struct call *call = link->calls[0];
    unsigned status = link->reader.status;

    if (call == NULL)
        return;
    call->status = status;
    if (!expects(chaos, link->actor, call, status)) {
        violation(chaos, "actor %u: status %u, kind %d, mark %s%s", link->actor->index, status,
                  (int)call->kind, call->mark, call->resumes ? ", resumed" : "");
        check_done(chaos, link->actor, call);
        return;
    }
    if (call->kind == CALL_FIRST)
        check_first(chaos, link);
    if (status == 200 && call->kind == CALL_WORK && link->actor->phase == IDLING)
        violation(chaos, "actor %u: an idle session has not ended", link->actor->index);
    if (call->resumes && status == 200)
        chaos->resumed++;
}

/* --- messages --- */

static void check_question(struct chaos *chaos, struct actor *actor, struct call *call,
                           struct span id, struct span mark)
{
    struct question *question = &actor->questions[actor->question_count];

    if (call != NULL && call->asked)
        violation(chaos, "actor %u: the question of %s came twice", actor->index, call->mark);
    if (call != NULL)
        call->asked = true;
    if (actor->question_count == QUESTIONS)
        return;
    snprintf(question->id, sizeof question->id, "%.*s", (int)id.len, id.data);
    snprintf(question->mark, sizeof question->mark, "%.*s", (int)mark.len, mark.data);
    actor->question_count++;
}

static void check_note(struct chaos *chaos, struct actor *actor, struct call *call, long number)
{
    bool may_miss = chaos->forgetful || (call->takes_json_only && actor->leaky);

    if (number <= call->last_note)
        violation(chaos, "actor %u: note %ld of %s after %ld", actor->index, number, call->mark,
                  call->last_note);
    else if (number > call->last_note + 1 && !may_miss)
        violation(chaos, "actor %u: of %s, notes %ld to %ld were lost", actor->index, call->mark,
                  call->last_note + 1, number - 1);
    call->last_note = number;
}

static void check_method(struct chaos *chaos, struct actor *actor, struct call *call,
                         struct span message)
{
    struct span mark = json_text(json_get(message, "params.mark"));
    struct span id = json_get(message, "id");
    struct call *about = find_call(actor, mark);
    bool is_loose = json_get(message, "params.loose").data != NULL;

    if (!is_own(actor, mark)) {
        violation(chaos, "actor %u, life %u: a message for another: %.*s", actor->index,
                  actor->life, SHOWN(message));
        return;
    }
    chaos->events++;
    if (call != NULL && call->kind == CALL_WORK && about != NULL && about != call &&
        !about->cancelled && id.data == NULL && !is_loose)
        violation(chaos, "actor %u: on the stream of %s: %.*s", actor->index, call->mark,
                  SHOWN(message));
    if (id.data != NULL) {
        check_question(chaos, actor, about, id, mark);
        return;
    }
    if (is_loose || (call != NULL && call->kind == CALL_GET))
        actor->got++;
    if (about != NULL && !is_loose)
        check_note(chaos, actor, about, json_number(message, "params.progress"));
}

static bool allowed_error(struct chaos *chaos, const struct actor *actor, const struct call *call,
                          struct span text)
{
    static const char *const busy[] = {"every worker serves another client",
                                       "another user or address"};
    char words[200];

    snprintf(words, sizeof words, "%.*s", (int)text.len, text.data != NULL ? text.data : "");
    for (int i = 0; i < 2; i++) {
        if (strstr(words, busy[i]) != NULL) {
            chaos->busy++;
            return true;
        }
    }
    if (strstr(words, "not fetched in time") != NULL)
        return chaos->forgetful;
    if (strstr(words, "worker exited before answering") != NULL ||
        strstr(words, "has not answered initialize") != NULL)
        return killed_lately(chaos);
    if (strstr(words, "request timed out") != NULL) {
        chaos->timeouts++;
        return call->forever;
    }
    return actor->deleted || actor->phase == ENDING;
}

static void check_result(struct chaos *chaos, struct actor *actor, struct call *call,
                         struct span message)
{
    struct span mark = json_text(json_get(message, "result.mark"));
    long notes = json_number(message, "result.notes");

    if (call->kind == CALL_FIRST)
        return;
    if (!span_is(mark, call->mark))
        violation(chaos, "actor %u: the answer to %s is that of another: %.*s", actor->index,
                  call->mark, SHOWN(message));
    if ((call->kind == CALL_WORK || call->kind == CALL_STATELESS || call->kind == CALL_WEB) &&
        !call->takes_json_only && notes != call->last_note && !chaos->forgetful)
        violation(chaos, "actor %u: %s has got %ld of %ld notes", actor->index, call->mark,
                  call->last_note, notes);
    if (call->forever)
        violation(chaos, "actor %u: %s is answered", actor->index, call->mark);
    if (call->kind == CALL_WORK)
        actor->expected += call->loose + (call->takes_json_only ? notes : 0);
}

/* An answer; the caller ends the call. */
static void check_answer(struct chaos *chaos, struct actor *actor, struct call *call,
                         struct span message)
{
    long id = json_number(message, "id");
    unsigned part = (unsigned)(id - (long)call->id);
    struct span error = json_get(message, "error");

    if (id < (long)call->id || part >= (call->parts > 0 ? call->parts : 1) ||
        (call->answered >> part & 1) != 0) {
        violation(chaos, "actor %u: an answer that is not to %s: %.*s", actor->index, call->mark,
                  SHOWN(message));
        return;
    }
    call->answered |= 1u << part;
    if (error.data == NULL) {
        chaos->answers++;
        check_result(chaos, actor, call, message);
        return;
    }
    chaos->errors++;
    actor->leaky = true;
    if (!allowed_error(chaos, actor, call, json_text(json_get(error, "message"))))
        violation(chaos, "actor %u: %s gets %.*s", actor->index, call->mark, SHOWN(message));
}

void check_message(struct chaos *chaos, struct actor *actor, struct call *call, struct span message)
{
    if (json_get(message, "method").data != NULL)
        check_method(chaos, actor, call, message);
    else if (call == NULL || call->kind == CALL_GET)
        violation(chaos, "actor %u: an answer to nothing: %.*s", actor->index, SHOWN(message));
    else
        check_answer(chaos, actor, call, message);
}

/* --- streams and bodies --- */

/* Ids of events are TAG-STREAM-NUMBER; they grow. */
static void check_event_id(struct chaos *chaos, struct link *link, struct call *call)
{
    const char *id = link->events.id, *old = call->event, *hyphen = strrchr(id, '-');
    size_t tag = strcspn(id, "-"), prefix = hyphen != NULL ? (size_t)(hyphen - id) : 0;
    bool is_empty = link->events.len == 0;
    unsigned long number = strtoul(id + prefix + 1, NULL, 10);
    unsigned long before = old[0] != '\0' ? strtoul(old + prefix + 1, NULL, 10) : 0;

    if (link->actor->tag[0] == '\0')
        snprintf(link->actor->tag, sizeof link->actor->tag, "%.*s", (int)tag, id);
    if (strncmp(link->actor->tag, id, tag) != 0)
        violation(chaos, "actor %u: event %s is of another session", link->actor->index, id);
    if (old[0] != '\0' && strncmp(id, old, prefix + 1) != 0)
        violation(chaos, "actor %u: event %s in the stream of %s", link->actor->index, id, old);
    if (is_empty ? number < before : number <= before)
        violation(chaos, "actor %u: event %s after %s", link->actor->index, id, old);
    if (number > before + 1 && old[0] != '\0' && !chaos->forgetful)
        violation(chaos, "actor %u: event %s after %s", link->actor->index, id, old);
    snprintf(call->event, sizeof call->event, "%s", id);
}

void check_event(struct chaos *chaos, struct link *link)
{
    struct call *call = link->count > 0 ? link->calls[0] : NULL;
    struct span message = {link->events.data, link->events.len};

    link->used_ms = link->actor->used_ms = now_ms();
    if (call == NULL)
        return;
    if (is_over(call)) {
        violation(chaos, "actor %u: an event after the answer of %s", link->actor->index,
                  call->mark);
        return;
    }
    if (link->events.id[0] != '\0' && call->kind != CALL_STATELESS)
        check_event_id(chaos, link, call);
    if (message.len > 0)
        check_message(chaos, link->actor, call, message);
}

static void check_body(struct chaos *chaos, struct link *link, struct call *call)
{
    struct span body = {link->body.data, link->body.len}, key, value;
    struct json_cursor cursor;

    if (call->parts <= 1) {
        check_message(chaos, link->actor, call, body);
        return;
    }
    json_open(&cursor, body);
    while (json_next(&cursor, &key, &value))
        check_message(chaos, link->actor, call, value);
}

/* A GET that was cut came to the daemon after this one: the stream went there. */
static bool is_overtaken(const struct actor *actor, const struct call *call)
{
    return call->unseen > 0 && call->status == 200 && !is_over(call) && !call->cancelled &&
           !actor->deleted && actor->phase != ENDING;
}

/* What follows from the whole response. */
static void check_whole(struct chaos *chaos, struct actor *actor, struct call *call)
{
    bool must = call->status == 200 && !call->cancelled && call->kind != CALL_GET;

    if (must && !is_over(call) && actor->phase != ENDING)
        violation(chaos,
                  "actor %u: the response ends without the answer to %s, %lld ms after it was sent "
                  "(kind %d, event %s%s, parts %u, answered %x)",
                  actor->index, call->mark, (long long)(now_ms() - call->sent_ms), (int)call->kind,
                  call->event, call->resumes ? ", resumed" : "", call->parts, call->answered);
    if (call->kind == CALL_GET && !actor->deleted && actor->phase != ENDING &&
        !killed_lately(chaos) && call->status == 200)
        violation(chaos, "actor %u: the stream of a GET has ended", actor->index);
    if (call->kind == CALL_FIRST)
        actor->phase = actor->session[0] != '\0' ? LIVE : NEW;
    if (call->kind == CALL_DELETE)
        actor->phase = ENDING;
}

void check_end(struct chaos *chaos, struct link *link)
{
    struct call *call = link->count > 0 ? link->calls[0] : NULL;
    struct actor *actor = link->actor;

    if (call != NULL && call->status == 404)
        check_session_end(chaos, actor, call, &link->body);
    actor->used_ms = now_ms();
    if (call == NULL)
        return;
    if (http_response_is(&link->reader, "text/event-stream"))
        actor->over++;
    else if (call->status == 200 || call->status == 504)
        check_body(chaos, link, call);
    if (call->kind == CALL_NONE)
        return;
    if (is_overtaken(actor, call)) {
        call->unseen--;
        resume_later(chaos, actor, call);
        return;
    }
    check_whole(chaos, actor, call);
    check_done(chaos, actor, call);
}
