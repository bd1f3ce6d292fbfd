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
#define SMALL_BUFFER 4096 /* socket buffer of a slow reader, so that the daemon notices */

void client_init(struct client *client)
{
    memset(client, 0, sizeof *client);
    client->fd = -1;
    list_init(&client->in_flight);
    list_init(&client->given_up);
}

/* The buffers keep their memory. */
static void reset_state(struct client *client)
{
    struct client old = *client;

    client_init(client);
    client->in.bytes = old.in.bytes;
    client->in.frame = old.in.frame;
    client->out = old.out;
    client->in.bytes.len = client->out.len = 0;
    client->replies = old.replies;
    client->reply_room = old.reply_room;
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
    if (client->going)
        return;
    client->going = true;
    for (size_t i = 0; i < client->session_count; i++)
        client->sessions[i]->endings++;
}

struct client *client_find(const struct chaos *chaos, unsigned long long conn)
{
    each_client(client, chaos) {
        if (client_is_open(client) && client->conn == conn)
            return client;
    }
    return NULL;
}

unsigned clients_open(const struct chaos *chaos)
{
    unsigned count = 0;

    each_client(client, chaos)
        count += client_is_open(client);
    return count;
}

bool client_stays(const struct chaos *chaos, unsigned long long conn)
{
    const struct client *client = client_find(chaos, conn);

    return client != NULL && !client->going && !client->profile.loose && !client->profile.visits &&
           !fleet_may_end_client(chaos, client);
}

void client_close(struct chaos *chaos, struct client *client, bool reset)
{
    struct linger linger = {1, 0};

    client_begin_going(client);
    for (size_t i = 0; i < client->session_count; i++)
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
    client->next_say_ms = chaos->now_ms +
                          dice_between(&chaos->dice, 1, client->turned_away ? 900 : 200);
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
    ssize_t written = send(client->fd, client->out.data + client->out_at, share,
                           MSG_NOSIGNAL | MSG_DONTWAIT);

    if (written < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (written < 0) { /* a read will find the reason */
        client->out_at = client->out.len = 0;
        client->silent = client->shut = true;
        client_begin_going(client);
        return;
    }
    chaos->stats.sent_bytes += (unsigned long long)written;
    wire_written(&client->out, &client->out_at, (size_t)written);
}

/* --- input --- */

bool client_wants_read(const struct chaos *chaos, const struct client *client)
{
    if (chaos->phase != PHASE_STORM)
        return true;
    if (client->profile.reading == READING_NEVER)
        return chaos->now_ms >= client->ends_ms; /* to find the end of its connection */
    return chaos->now_ms >= client->next_read_ms;
}

static void take_lines(struct chaos *chaos, struct client *client)
{
    const char *line;
    size_t len;

    check_up_drain(chaos); /* what a worker sent is known before the client's copy is checked */
    while (wire_next(&client->in, &line, &len)) {
        chaos->stats.received++;
        client->lines++;
        check_line(chaos, client, line, len);
    }
}

static size_t read_share(struct chaos *chaos, struct client *client)
{
    if (client->profile.reading != READING_SLOWLY || chaos->phase != PHASE_STORM)
        return READ_BYTES;
    client->next_read_ms = chaos->now_ms + dice_between(&chaos->dice, 10, 100);
    return dice_between(&chaos->dice, 100, 3000);
}

/* False: no more input for now. */
static bool read_once(struct chaos *chaos, struct client *client)
{
    size_t share = read_share(chaos, client);
    ssize_t got = recv(client->fd, text_room(&client->in.bytes, share), share, MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (got <= 0) {
        check_up_drain(chaos);
        check_ended(chaos, client, got < 0 ? errno : 0);
        client_close(chaos, client, false);
        return false;
    }
    client->in.bytes.len += (size_t)got;
    chaos->stats.received_bytes += (unsigned long long)got;
    take_lines(chaos, client);
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
