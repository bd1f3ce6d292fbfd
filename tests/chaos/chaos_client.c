#include "build_config.h"

#include "chaos_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "chaos.h"
#include "check_up.h"

#define READ_BYTES 65536
#define READS_PER_ROUND 4
#define SMALL_BUFFER 4096 /* of a slow reader's socket: the daemon is to notice */

void client_init(struct client *client)
{
    memset(client, 0, sizeof *client);
    client->fd = -1;
    list_init(&client->in_flight);
    list_init(&client->given_up);
}

void client_free(struct client *client)
{
    if (client->fd >= 0)
        close(client->fd);
    text_free(&client->in);
    text_free(&client->out);
    text_free(&client->frame);
    free(client->replies);
}

static void reset_state(struct client *client)
{
    struct client fresh;

    client_init(&fresh);
    fresh.in = client->in;
    fresh.out = client->out;
    fresh.in.len = fresh.out.len = 0;
    fresh.frame = client->frame;
    fresh.replies = client->replies;
    fresh.reply_room = client->reply_room;
    *client = fresh;
    list_init(&client->in_flight);
    list_init(&client->given_up);
}

void client_open(struct chaos *chaos, struct client *client, const struct profile *profile)
{
    int small = SMALL_BUFFER;
    int fd = subject_connect(chaos);

    if (fd < 0) {
        if (chaos->phase != PHASE_END)
            violation(chaos, "cannot connect: %s", strerror(errno));
        return;
    }
    reset_state(client);
    client->fd = fd;
    client->conn = ++chaos->last_conn;
    client->profile = *profile;
    client->opened_ms = chaos->now_ms;
    client->ends_ms = chaos->now_ms + profile->life_ms;
    if (profile->reading != READING_FAST)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    chaos->stats.clients++;
}

void client_begin_going(struct client *client)
{
    size_t i;

    if (client->going)
        return;
    client->going = true;
    for (i = 0; i < client->session_count; i++)
        client->sessions[i]->endings++;
}

const struct client *client_find(const struct chaos *chaos, uint64_t conn)
{
    size_t i;

    for (i = 0; i < CLIENTS_MAX; i++) {
        if (client_is_open(&chaos->clients[i]) && chaos->clients[i].conn == conn)
            return &chaos->clients[i];
    }
    return NULL;
}

bool client_stays(const struct client *client)
{
    return client != NULL && client_is_open(client) && !client->going && !client->profile.loose;
}

void client_close(struct chaos *chaos, struct client *client, bool reset)
{
    struct linger linger = {1, 0};
    size_t i;

    client_begin_going(client);
    for (i = 0; i < client->session_count; i++)
        client->sessions[i]->users--;
    client->session_count = 0;
    while (list_take_first(&client->in_flight) != NULL)
        chaos->stats.cut_off++;
    client->in_flight_count = 0;
    while (list_take_first(&client->given_up) != NULL)
        continue;
    if (reset)
        setsockopt(client->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    close(client->fd);
    client->fd = -1;
    client->next_say_ms =
        chaos->now_ms + dice_between(&chaos->dice, 1, client->turned_away ? 900 : 200);
}

/* --- output --- */

bool client_wants_write(const struct chaos *chaos, const struct client *client)
{
    return client->out_at < client->out.len && !client->shut &&
           chaos->now_ms >= client->next_write_ms;
}

static size_t write_share(struct chaos *chaos, struct client *client)
{
    size_t left = client->out.len - client->out_at, share = READ_BYTES * 4;

    if (client->profile.dribbles && chaos->phase == PHASE_STORM) {
        share = dice_between(&chaos->dice, 1, 40);
        client->next_write_ms = chaos->now_ms + dice_between(&chaos->dice, 1, 6);
    }
    return left < share ? left : share;
}

void client_write(struct chaos *chaos, struct client *client)
{
    size_t share = write_share(chaos, client);
    ssize_t written =
        send(client->fd, client->out.data + client->out_at, share, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (written < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (written < 0) { /* the reason is found by reading */
        client->out_at = client->out.len = 0;
        client->silent = client->shut = true;
        client_begin_going(client);
        return;
    }
    client->out_at += (size_t)written;
    chaos->stats.sent_bytes += (uint64_t)written;
    if (client->out_at == client->out.len) {
        client->out_at = client->out.len = 0;
    } else if (client->out_at > client->out.len / 2 && client->out_at > READ_BYTES) {
        memmove(client->out.data, client->out.data + client->out_at,
                client->out.len - client->out_at);
        client->out.len -= client->out_at;
        client->out_at = 0;
    }
}

/* --- input --- */

bool client_wants_read(const struct chaos *chaos, const struct client *client)
{
    if (chaos->phase != PHASE_STORM)
        return true;
    if (client->profile.reading == READING_NEVER)
        return chaos->now_ms >= client->ends_ms; /* looks what has become of it */
    return chaos->now_ms >= client->next_read_ms;
}

static void take_line(struct chaos *chaos, struct client *client, const char *line, size_t len)
{
    chaos->stats.received++;
    client->lines++;
    check_line(chaos, client, line, len);
}

static void take_lines(struct chaos *chaos, struct client *client, size_t looked_at)
{
    struct text *in = &client->in;
    size_t start = 0, used;

    check_up_drain(chaos); /* what was said is known before it is looked at */
    while (wire_framing != WIRE_LINES &&
           (used = wire_unframe(&client->frame, in->data + start, in->len - start)) > 0) {
        take_line(chaos, client, client->frame.data, client->frame.len);
        start += used;
    }
    while (wire_framing == WIRE_LINES && looked_at < in->len) {
        const char *found = memchr(in->data + looked_at, '\n', in->len - looked_at);
        size_t end;

        if (found == NULL)
            break;
        end = (size_t)(found - in->data) + 1;
        take_line(chaos, client, in->data + start, end - start);
        start = looked_at = end;
    }
    memmove(in->data, in->data + start, in->len - start);
    in->len -= start;
}

static size_t read_share(struct chaos *chaos, struct client *client)
{
    if (client->profile.reading != READING_SLOWLY || chaos->phase != PHASE_STORM)
        return READ_BYTES;
    client->next_read_ms = chaos->now_ms + dice_between(&chaos->dice, 10, 100);
    return dice_between(&chaos->dice, 100, 3000);
}

/* False: there is no more for now. */
static bool read_once(struct chaos *chaos, struct client *client)
{
    size_t share = read_share(chaos, client), before = client->in.len;
    ssize_t got = recv(client->fd, text_room(&client->in, share), share, MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (got <= 0) {
        check_up_drain(chaos);
        check_ended(chaos, client, got < 0 ? errno : 0);
        client_close(chaos, client, false);
        return false;
    }
    client->in.len += (size_t)got;
    chaos->stats.received_bytes += (uint64_t)got;
    take_lines(chaos, client, before);
    return share == READ_BYTES && (size_t)got == share;
}

void client_read(struct chaos *chaos, struct client *client)
{
    int count = READS_PER_ROUND;

    while (count-- > 0 && read_once(chaos, client))
        continue;
}

bool client_settled(const struct client *client)
{
    return !client_is_open(client) ||
           (!client->going && client->out_at == client->out.len && client->reply_count == 0 &&
            client->in_flight_count == 0 && client->bad_frames == 0);
}
