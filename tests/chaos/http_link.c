/* Connections that misbehave: they read late, write byte by byte, and are cut anywhere. */
#include "build_config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "deadline.h"
#include "http_chaos.h"

static void take_first(struct link *link)
{
    link->count--;
    memmove(link->calls, link->calls + 1, link->count * sizeof link->calls[0]);
    link->in_response = false;
    link->used_ms = now_ms();
}

static bool open_link(struct chaos *chaos, struct actor *actor, struct link *link)
{
    struct text output = link->output, body = link->body;
    struct http_event_reader events = link->events;

    memset(link, 0, sizeof *link);
    output.len = body.len = 0;
    link->output = output;
    link->body = body;
    link->events = events;
    link->actor = actor;
    link->cut_after = -1;
    link->used_ms = now_ms();
    link->fd = subject_connect(chaos, actor->tcp);
    if (link->fd < 0) {
        violation(chaos, "a connection is refused: %s", strerror(errno));
        return false;
    }
    fcntl(link->fd, F_SETFL, O_NONBLOCK);
    chaos->connections++;
    if (chaos->calm)
        return true;
    link->drips = dice_chance(&chaos->run.dice, 60);
    if (dice_chance(&chaos->run.dice, 150))
        link->cut_after = dice_below(&chaos->run.dice,
                                     dice_chance(&chaos->run.dice, 300) ? 20000 : 1500);
    if (dice_chance(&chaos->run.dice, 60))
        link->until_ms = now_ms() + dice_between(&chaos->run.dice, 50, 2500);
    return true;
}

/* A stream without an end is in front. */
static bool is_blocked(const struct link *link)
{
    for (unsigned i = 0; i < link->count; i++) {
        if (link->calls[i] == NULL || link->calls[i]->kind == CALL_GET || link->calls[i]->forever)
            return true;
    }
    return false;
}

struct link *link_free(struct chaos *chaos, struct actor *actor, bool pipelined)
{
    struct link *closed = NULL;

    for (unsigned i = 0; i < LINKS; i++) {
        struct link *link = &actor->links[i];

        if (link->fd < 0)
            closed = closed != NULL ? closed : link;
        else if (link->web == WEB_NOT && !link->doomed && !link->refused &&
                 link->count < (pipelined ? PIPELINED : 1) && !is_blocked(link) &&
                 now_ms() - link->used_ms < 20000)
            return link;
    }
    return closed != NULL && open_link(chaos, actor, closed) ? closed : NULL;
}

void link_send(struct link *link, const struct text *request, struct call *call)
{
    text_add(&link->output, request->data, request->len);
    link->calls[link->count++] = call;
    link->used_ms = now_ms();
    if (call != NULL) {
        call->link = link;
        call->sent_ms = now_ms();
    }
}

void link_forget(struct actor *actor, const struct call *call)
{
    for (unsigned i = 0; i < LINKS; i++) {
        for (unsigned k = 0; k < actor->links[i].count; k++) {
            if (actor->links[i].calls[k] == call)
                actor->links[i].calls[k] = NULL;
        }
    }
}

void link_close(struct chaos *chaos, struct link *link)
{
    static const struct linger reset = {.l_onoff = 1};
    struct call *calls[PIPELINED];
    unsigned count = link->count;

    if (link->fd < 0)
        return;
    memcpy(calls, link->calls, sizeof calls);
    if (chaos->calm || link->actor->resets || dice_chance(&chaos->run.dice, 500))
        setsockopt(link->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(link->fd);
    link->fd = -1;
    link->count = 0;
    if (count > 0)
        chaos->cuts++;
    for (unsigned i = 0; i < count; i++) {
        if (calls[i] != NULL)
            check_cut(chaos, link->actor, calls[i]);
    }
}

void link_write(struct chaos *chaos, struct link *link)
{
    size_t len = link->output.len - link->written;
    ssize_t n;

    if (len == 0)
        return;
    if (link->drips && !chaos->calm)
        len = 1 + dice_below(&chaos->run.dice, len < 12 ? (uint32_t)len : 12);
    else if (dice_chance(&chaos->run.dice, 100))
        len = 1 + dice_below(&chaos->run.dice, (uint32_t)len);
    n = send(link->fd, link->output.data + link->written, len, MSG_NOSIGNAL);
    if (n > 0)
        link->written += (size_t)n;
    if (link->written == link->output.len)
        link->written = link->output.len = 0;
}

/* --- reading --- */

static void read_events(struct chaos *chaos, struct link *link, struct slice bytes)
{
    link->events.max_data = 1 << 20;
    for (;;) {
        enum http_event_status status = http_event_next(&link->events, &bytes);

        if (status == HTTP_EVENT_MORE || link->fd < 0)
            return;
        if (status == HTTP_EVENT_WHOLE)
            check_event(chaos, link);
        else
            violation(chaos, "an event is too long");
    }
}

static void begin_response(struct chaos *chaos, struct link *link)
{
    link->in_response = true;
    link->body.len = 0;
    http_event_reset(&link->events);
    link->events.id[0] = '\0';
    if (link->refused)
        return;
    check_head(chaos, link);
}

static void end_response(struct chaos *chaos, struct link *link)
{
    bool keeps = link->reader.keep_alive;

    if (link->refused) {
        if (link->reader.status < 400)
            violation(chaos, "a bad request is answered with %u", link->reader.status);
        chaos->refusals++;
    } else {
        check_end(chaos, link);
    }
    if (link->count > 0)
        take_first(link);
    if (!keeps)
        link->doomed = true;
}

static void read_responses(struct chaos *chaos, struct link *link, struct slice bytes)
{
    struct slice body;

    while (link->fd >= 0) {
        switch (http_response_next(&link->reader, &bytes, &body)) {
        case HTTP_RESPONSE_MORE:
            return;
        case HTTP_RESPONSE_HEAD:
            if (link->count == 0 && !link->refused) {
                violation(chaos, "a response that nobody asked for: %u", link->reader.status);
                link_close(chaos, link);
                return;
            }
            begin_response(chaos, link);
            break;
        case HTTP_RESPONSE_BODY:
            if (http_response_is(&link->reader, "text/event-stream"))
                read_events(chaos, link, body);
            else
                text_add(&link->body, body.data, body.len);
            break;
        case HTTP_RESPONSE_END:
            end_response(chaos, link);
            break;
        case HTTP_RESPONSE_MALFORMED:
            violation(chaos, "a malformed response: %s", link->reader.problem);
            link_close(chaos, link);
            return;
        }
    }
}

/* The daemon has closed the connection. */
static void see_end(struct chaos *chaos, struct link *link, const char *how)
{
    bool waits = link->count > 0 && link->web == WEB_NOT && !link->doomed && !link->refused;

    if (waits && chaos->run.pid != 0)
        violation(chaos, "actor %u: %s in place of a response%s, mark %s", link->actor->index, how,
                  link->in_response ? " or the rest of it" : "",
                  link->calls[0] != NULL ? link->calls[0]->mark : "none");
    if (link->web == WEB_ASKED || (link->web == WEB_OPEN && !link->doomed))
        violation(chaos, "actor %u: %s of a WebSocket without a close", link->actor->index, how);
    link_close(chaos, link);
}

void link_read(struct chaos *chaos, struct link *link)
{
    char bytes[16384];
    size_t size = dice_chance(&chaos->run.dice, 100) ? 1 + dice_below(&chaos->run.dice, 60)
                                                     : sizeof bytes;
    ssize_t n;

    if (link->cut_after >= 0 && (int64_t)size > link->cut_after)
        size = (size_t)link->cut_after;
    if (size == 0) {
        link_close(chaos, link);
        return;
    }
    n = recv(link->fd, bytes, size, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        see_end(chaos, link, n == 0 ? "the end" : "a reset");
        return;
    }
    if (link->cut_after >= 0)
        link->cut_after -= n;
    if (link->web == WEB_NOT) {
        read_responses(chaos, link, slice_of(bytes, (size_t)n));
        return;
    }
    text_add(&link->body, bytes, (size_t)n);
    others_web(chaos, link);
}
