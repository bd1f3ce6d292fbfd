#include "build_config.h"

#include "hostile.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "chaos.h"

#define READ_BYTES 65536
#define FIRST_MS 300 /* at most, before a member's first connection */
#define WRITE_BYTES ((size_t)256 << 10)
#define SMALL_BUFFER 4096 /* socket buffer of a member that does not read */

static bool is_open(const struct hostile *hostile)
{
    return hostile->fd >= 0;
}

static bool reads(const struct hostile *hostile)
{
    return hostile->kind != HOSTILE_STALL &&
           (hostile->kind != HOSTILE_UNFETCHED || hostile->session[0] == '\0');
}

/* --- the slots --- */

void horde_gather(struct chaos *chaos, unsigned kinds)
{
    struct horde *horde = &chaos->horde;

    horde->count = 0;
    for (unsigned kind = 0; kind < HOSTILE_KINDS; kind++) {
        size_t number = (kinds >> kind & 1) != 0 ? hostile_number(chaos, kind) : 0;

        for (; number > 0 && horde->count < HOSTILE_MAX; number--) {
            struct hostile *hostile = &horde->members[horde->count++];

            hostile->fd = -1;
            hostile->kind = (enum hostile_kind)kind;
            hostile->session[0] = '\0';
            hostile->next_ms = chaos->now_ms + dice_between(&chaos->dice, 1, FIRST_MS);
        }
    }
}

static void leave(struct chaos *chaos, struct hostile *hostile)
{
    close(hostile->fd);
    hostile->fd = -1;
    hostile->out.len = hostile->out_at = hostile->in.len = 0;
    hostile->next_ms = chaos->now_ms + hostile_pause_ms(chaos, hostile->kind);
}

void horde_leave(struct chaos *chaos)
{
    struct horde *horde = &chaos->horde;

    for (size_t i = 0; i < horde->count; i++) {
        if (is_open(&horde->members[i]))
            leave(chaos, &horde->members[i]);
    }
    horde->count = 0;
}

/* A full backlog is no fault: the member tries again. */
static void arrive(struct chaos *chaos, struct hostile *hostile)
{
    int small = SMALL_BUFFER;

    hostile->fd = subject_connect_hostile(chaos, hostile->kind);
    hostile->next_ms = chaos->now_ms + hostile_pause_ms(chaos, hostile->kind);
    if (!is_open(hostile))
        return;
    if (!reads(hostile) || hostile->kind == HOSTILE_UNFETCHED)
        setsockopt(hostile->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    chaos->horde.connections++;
    hostile->asked = 0;
    hostile->leaves = false;
    hostile_arrive(chaos, hostile);
}

/* --- input and output --- */

size_t horde_poll(const struct chaos *chaos, struct pollfd fds[HOSTILE_MAX])
{
    const struct horde *horde = &chaos->horde;

    for (size_t i = 0; i < horde->count; i++) {
        const struct hostile *hostile = &horde->members[i];
        short events = reads(hostile) ? POLLIN : 0;

        if (hostile->out_at < hostile->out.len)
            events |= POLLOUT;
        fds[i] = (struct pollfd){hostile->fd, events, 0};
    }
    return horde->count;
}

static void write_some(struct chaos *chaos, struct hostile *hostile)
{
    size_t left = hostile->out.len - hostile->out_at;
    ssize_t written = send(hostile->fd, hostile->out.data + hostile->out_at,
                           left < WRITE_BYTES ? left : WRITE_BYTES, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (written >= 0)
        wire_written(&hostile->out, &hostile->out_at, (size_t)written);
    else if (errno != EAGAIN && errno != EINTR)
        leave(chaos, hostile);
}

static void read_some(struct chaos *chaos, struct hostile *hostile)
{
    static char bytes[READ_BYTES];
    ssize_t got = recv(hostile->fd, bytes, sizeof bytes, MSG_DONTWAIT);

    if (got > 0 && hostile->kind == HOSTILE_UNFETCHED)
        text_add(&hostile->in, bytes, (size_t)got);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR) ||
        (got > 0 && hostile->kind == HOSTILE_UNFETCHED && !hostile_read(hostile)))
        leave(chaos, hostile);
}

static void handle(struct chaos *chaos, struct hostile *hostile, short revents)
{
    if (is_open(hostile) && reads(hostile) && (revents & (POLLIN | POLLHUP | POLLERR)) != 0)
        read_some(chaos, hostile);
    else if (is_open(hostile) && (revents & (POLLHUP | POLLERR)) != 0)
        leave(chaos, hostile);
    if (is_open(hostile) && (revents & POLLOUT) != 0 && hostile->out_at < hostile->out.len)
        write_some(chaos, hostile);
}

static void act(struct chaos *chaos, struct hostile *hostile)
{
    bool written = hostile->out_at == hostile->out.len;

    if (!is_open(hostile)) {
        if (chaos->now_ms >= hostile->next_ms)
            arrive(chaos, hostile);
        return;
    }
    if (chaos->now_ms >= hostile->ends_ms || (hostile->leaves && written))
        leave(chaos, hostile);
    else if (chaos->now_ms >= hostile->next_ms && written)
        hostile_act(chaos, hostile);
}

void horde_step(struct chaos *chaos, const struct pollfd fds[HOSTILE_MAX])
{
    struct horde *horde = &chaos->horde;

    for (size_t i = 0; i < horde->count; i++) {
        handle(chaos, &horde->members[i], fds[i].revents);
        act(chaos, &horde->members[i]);
    }
}
