#include "build_config.h"

#include "rmp_scene.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "deadline.h"

#define BODY 30000 /* bytes; eight such messages fill all queues of a subscriber */
#define MESSAGES 8
#define TOPICS 40

/* A client of the RMP socket, in the JSON dialect. */
struct link {
    struct run *run;
    int fd; /* -1: closed */
    struct text input;
};

static void link_close(struct link *link)
{
    if (link->fd >= 0)
        close(link->fd);
    link->fd = -1;
    text_free(&link->input);
}

/* The connection has ended, which only a fault brings about. */
static void link_lost(struct link *link)
{
    link->run->client_lost = true;
    link_close(link);
}

static void link_open(struct link *link, struct run *run)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int64_t deadline = deadline_usual();

    *link = (struct link){.run = run, .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/bus/rmp.sock", run->dir);
    while (connect(link->fd, (struct sockaddr *)&address, sizeof address) < 0) {
        if (!run_alive(run)) {
            link_lost(link);
            return;
        }
        if (deadline_over(deadline))
            run_fail(run, "the RMP socket cannot be connected to");
        nap();
    }
}

/* Sends a command (' for "). */
static void link_send(struct link *link, const struct text *command)
{
    struct text frame = {0};
    size_t sent = 0;

    for (int shift = 24; shift >= 0; shift -= 8)
        text_add(&frame, &(char){(char)(command->len >> shift & 0xFF)}, 1);
    text_add(&frame, command->data, command->len);
    text_quote(&frame, 4);
    while (link->fd >= 0 && sent < frame.len) {
        ssize_t n = send(link->fd, frame.data + sent, frame.len - sent, MSG_NOSIGNAL);

        if (n < 0)
            link_lost(link);
        else
            sent += (size_t)n;
    }
    text_free(&frame);
}

/* Reads until a frame begins with this text (' for "). */
static void link_await(struct link *link, const char *start)
{
    int64_t deadline = deadline_usual();
    struct text wanted = {0};
    bool found = false;

    text_printf(&wanted, "%s", start);
    text_quote(&wanted, 0);
    while (link->fd >= 0 && !found) {
        const unsigned char *head = (const unsigned char *)link->input.data;
        size_t len = 0;
        ssize_t n;

        if (link->input.len >= 4)
            len = 4 +
                  ((size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3]);
        if (len > 0 && link->input.len >= len) {
            found = len - 4 >= wanted.len &&
                    memcmp(link->input.data + 4, wanted.data, wanted.len) == 0;
            link->input.len -= len;
            memmove(link->input.data, link->input.data + len, link->input.len);
            continue;
        }
        if (!wait_fd(link->fd, POLLIN, deadline))
            run_fail(link->run, "no answer with %s", start);
        n = read(link->fd, text_room(&link->input, 65536), 65536);
        if (n <= 0)
            link_lost(link);
        else
            link->input.len += (size_t)n;
    }
    text_free(&wanted);
}

static void hello(struct link *link)
{
    struct text command = {0};

    text_printf(&command, "{'Hello':{'kind':'Ui'}}");
    link_send(link, &command);
    link_await(link, "'HelloAck'");
    text_free(&command);
}

static void subscribe(struct link *link, const char *topic, unsigned id)
{
    struct text command = {0};

    text_printf(&command, "{'Subscribe':{'id':%u,'topic':'%s','sub_id':%u}}", id, topic, id);
    link_send(link, &command);
    link_await(link, "{'SubscribeAck'");
    text_free(&command);
}

static void publish(struct link *link, const char *topic, unsigned id, size_t len, bool late)
{
    struct text command = {0};

    text_printf(&command,
                "{'Publish':{'id':%u,'topic':'%s','message':{'header':{'header_version':0,"
                "'header_len':64,'flags':0,'schema_id':3003,'body_len':0,'created_at_ms':%" PRIu64
                ",'ttl_ms':3600000,'trace_id':1,'msg_id':%u},'body':[1",
                id, topic, late ? (uint64_t)1 : (uint64_t)time(NULL) * 1000, id);
    while (len-- > 1)
        text_add(&command, ",255", 4);
    text_printf(&command, "]}}}");
    link_send(link, &command);
    text_free(&command);
}

/* A subscriber that does not read for a while, duplicates, expired messages, notices. */
static void talk(struct link *ann, struct link *ben)
{
    char topic[16];

    for (unsigned i = 1; i <= TOPICS; i++) {
        snprintf(topic, sizeof topic, "topic %u", i);
        subscribe(ann, topic, i);
    }
    subscribe(ann, "rlp/sys/drops", TOPICS + 1);
    for (unsigned i = 1; i <= MESSAGES; i++) {
        publish(ben, "topic 1", i, BODY, false);
        link_await(ben, "{'PublishAck'");
    }
    hello(ann);
    for (unsigned i = 0; i < 3; i++) {
        publish(ben, "topic 2", 100, 10, false);
        link_await(ben, "{'PublishAck'");
    }
    publish(ben, "topic 2", 101, 10, true);
    link_await(ben, "{'PublishAck'");
    hello(ann);
}

void play_rmp(struct run *run)
{
    struct link ann, ben, zoe;
    bool lost = false;

    link_open(&ann, run);
    hello(&ann);
    run_arm(run);
    link_open(&ben, run);
    hello(&ben);
    talk(&ann, &ben);
    run_lift(run);
    for (int i = 0; i < 3 && run_alive(run); i++) { /* a connection may be lost */
        lost = run->client_lost;
        link_open(&zoe, run);
        hello(&zoe);
        lost = zoe.fd < 0;
        link_close(&zoe);
        if (!lost)
            break;
    }
    if (lost && run_alive(run))
        run_fail(run, "the daemon is alive but does not serve");
    run_terminate(run);
    link_close(&ann);
    link_close(&ben);
}
