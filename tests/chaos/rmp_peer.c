/* The connections of peers. */
#include "build_config.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "deadline.h"
#include "rmp_chaos.h"

#define INPUT_BYTES 65536
#define MESSAGE_MOST (4 * FRAME_BODY_MAX + 1024) /* bytes of one message, in either dialect */
#define WAIT_MS 50                               /* for a full queue */
#define SLACK_MS 4000

bool peer_connect(struct chaos *chaos, struct peer *peer)
{
    unsigned index = peer->index;
    int fd = run_connect(&chaos->run, 0);

    if (fd < 0) {
        violation(chaos, "peer %u cannot connect: %s", index, strerror(errno));
        return false;
    }
    text_free(&peer->output);
    text_free(&peer->input);
    memset(peer, 0, sizeof *peer);
    peer->fd = fd;
    peer->index = index;
    peer->connection = ++chaos->last_connection;
    peer->read_ms = peer->head_ms = now_ms();
    chaos->connections++;
    return true;
}

void peer_close(struct chaos *chaos, struct peer *peer)
{
    if (peer->fd < 0)
        return;
    close(peer->fd);
    peer->fd = -1;
    for (unsigned i = 0; i < peer->asked_count; i++) {
        const struct asked *asked = &peer->asked[(peer->first_asked + i) % ASKED];
        struct publication *lost = ledger_find(chaos, asked->number);

        if (asked->ask == ASK_PUBLISH && lost != NULL)
            lost->told = TOLD_MAYBE;
    }
    peer->asked_count = 0;
    for (unsigned i = 0; i < SUBSCRIPTIONS; i++)
        peer->subscriptions[i].live = false;
}

void peer_ask(struct chaos *chaos, struct peer *peer, const struct asked *asked)
{
    struct asked *to = &peer->asked[(peer->first_asked + peer->asked_count) % ASKED];

    if (peer->asked_count == 0)
        peer->head_ms = now_ms();
    *to = *asked;
    to->event = ++chaos->event;
    peer->asked_count++;
}

static void ended(struct chaos *chaos, struct peer *peer, int error)
{
    bool done = peer->half_closed || peer->doomed;

    chaos->closed_slow += !done && peer->stalled;
    if (!done && !peer->stalled)
        violation(chaos, "peer %u: the daemon closed it: %s", peer->index,
                  error != 0 ? strerror(error) : "end of stream");
    for (unsigned i = 0; done && !peer->stalled && i < peer->asked_count; i++) {
        const struct asked *asked = &peer->asked[(peer->first_asked + i) % ASKED];

        if (!asked->optional && error == 0)
            violation(chaos, "peer %u: closed before answer %" PRIu64 " came", peer->index,
                      asked->id);
    }
    peer_close(chaos, peer);
}

void peer_write(struct chaos *chaos, struct peer *peer)
{
    size_t len = peer->output.len - peer->output_hold - peer->written;
    ssize_t sent;

    if (len == 0)
        return;
    sent = send(peer->fd, peer->output.data + peer->written, len, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
        /* What it has sent before it closed may still be read. */
        peer->written += len;
        if (!peer->doomed && !peer->stalled)
            ended(chaos, peer, errno);
    }
    if (sent > 0)
        peer->written += (size_t)sent;
    if (peer->written == peer->output.len) {
        text_free(&peer->output);
        peer->written = 0;
    }
}

/* What begins beyond what the kernel and the daemon's queue can hold now is handed over later. */
static void sample(struct peer *peer, uint64_t begun)
{
    int held = 0;

    if (begun < peer->sample_at)
        return;
    if (peer->sample_ms > peer->handed_ms)
        peer->handed_ms = peer->sample_ms;
    if (ioctl(peer->fd, FIONREAD, &held) != 0)
        return;
    peer->sample_ms = epoch_ms();
    peer->sample_at = peer->received + (uint64_t)held + OUTPUT_QUEUE + MESSAGE_MOST;
}

static size_t length_at(const char *at)
{
    const unsigned char *bytes = (const unsigned char *)at;

    return (size_t)bytes[0] << 24 | (size_t)bytes[1] << 16 | (size_t)bytes[2] << 8 | bytes[3];
}

static void take_payloads(struct chaos *chaos, struct peer *peer)
{
    size_t used = 0, left, len;

    while ((left = peer->input.len - used) >= 4) {
        uint64_t offset = peer->received - left;

        len = length_at(peer->input.data + used);
        if (len > 64u << 20) {
            violation(chaos, "peer %u: a payload of %zu bytes", peer->index, len);
            peer_close(chaos, peer);
            return;
        }
        if (left < 4 + len)
            break;
        sample(peer, offset);
        answers_take(chaos, peer, slice_of(peer->input.data + used + 4, len), offset);
        used += 4 + len;
    }
    memmove(peer->input.data, peer->input.data + used, peer->input.len - used);
    peer->input.len -= used;
}

void peer_read(struct chaos *chaos, struct peer *peer)
{
    size_t most = peer->manners == READS_SLOWLY ? 2048 : INPUT_BYTES;
    char *room = text_room(&peer->input, most);
    ssize_t got = recv(peer->fd, room, most, MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    peer->read_ms = now_ms();
    if (got <= 0) {
        ended(chaos, peer, got < 0 ? errno : 0);
        return;
    }
    peer->input.len += (size_t)got;
    peer->received += (uint64_t)got;
    take_payloads(chaos, peer);
}

/* A peer that reads gets its answers soon, whatever other ones do. */
void peer_check(struct chaos *chaos, struct peer *peer)
{
    int64_t waited = now_ms() - peer->head_ms;
    const struct asked *head = &peer->asked[peer->first_asked];

    if (peer->fd >= 0 && peer->doomed && peer->asked_count == 0 && peer->manners == READS &&
        now_ms() - peer->read_ms > (int64_t)(SLACK_MS * timeout_factor())) {
        violation(chaos, "peer %u: the daemon does not close it", peer->index);
        peer_close(chaos, peer);
    }
    if (peer->fd < 0 || peer->asked_count == 0 || head->optional || peer->manners != READS ||
        peer->output.len > 0)
        return;
    if (waited > chaos->slowest_ms)
        chaos->slowest_ms = waited;
    if (waited > (int64_t)((WAIT_MS + SLACK_MS) * timeout_factor())) {
        violation(chaos, "peer %u: no answer %" PRIu64 " for %" PRId64 " ms", peer->index, head->id,
                  waited);
        peer_close(chaos, peer);
    }
}
