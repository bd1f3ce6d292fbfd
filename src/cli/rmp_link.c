#include "build_config.h"

#include "cli/rmp_link.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "base/siphash.h"
#include "base/unix_path.h"
#include "rmp/frame.h"
#include "rmp/msgpack.h"
#include "rmp/schemas.h"

#define READ_SIZE 65536
#define CONTROL_TTL_MS 30000

/* --- ids and time --- */

struct rmp_id rmp_link_new_id(void)
{
    struct siphash_key random = siphash_random_key();

    return (struct rmp_id){
        .high = (random.k0 & ~UINT64_C(0xf000)) | 0x4000,
        .low = (random.k1 & ~(UINT64_C(3) << 62)) | UINT64_C(1) << 63,
    };
}

/* Other publishers of the same trace have others. */
uint64_t rmp_link_new_msg_id(void)
{
    return siphash_random_key().k0 >> 12;
}

/* --- the connection --- */

bool rmp_link_open(struct rmp_link *link, const char *path)
{
    *link = (struct rmp_link){.fd = unix_path_connect(path), .id = rmp_link_new_id()};
    return link->fd >= 0;
}

void rmp_link_close(struct rmp_link *link)
{
    if (link->fd >= 0)
        descriptor_close(link->fd);
    free(link->in);
    *link = (struct rmp_link){.fd = -1};
}

bool rmp_link_send(struct rmp_link *link, const struct rmp_header *header, const char *type,
                   struct slice topic, struct slice payload)
{
    const struct rmp_draft draft = {
        .header = *header, .type = type, .topic = topic, .payload = payload, .ack = topic.len > 0};
    size_t len;
    char *frame = rmp_compose(&draft, &len);
    bool sent = frame != NULL && descriptor_write_all(link->fd, frame, len);

    free(frame);
    return sent;
}

bool rmp_link_fill(struct rmp_link *link)
{
    ssize_t got;
    char *in;

    if (link->start > 0) {
        memmove(link->in, link->in + link->start, link->len - link->start);
        link->len -= link->start;
        link->start = 0;
    }
    in = array_grow(link->in, &link->capacity, link->len + READ_SIZE, 1);
    if (in == NULL)
        return false;
    link->in = in;
    got = read(link->fd, in + link->len, READ_SIZE);
    if (got < 0)
        return errno == EINTR || errno == EAGAIN;
    link->len += (size_t)got;
    return got > 0;
}

bool rmp_link_next(struct rmp_link *link, struct rmp_received *frame)
{
    size_t left = link->len - link->start, whole;
    const char *at;

    if (left < RMP_PREFIX_LEN)
        return false;
    at = link->in + link->start;
    whole = (size_t)RMP_PREFIX_LEN + wire_get_u32(at);
    if (left < whole)
        return false;
    link->start += whole;
    *frame = (struct rmp_received){.wire = {at, whole}};
    if (rmp_header_read(&frame->header, slice_of(at + RMP_PREFIX_LEN, whole - RMP_PREFIX_LEN)) ==
        RMP_OK)
        frame->has_envelope =
            rmp_envelope_read(&frame->envelope,
                              slice_of(at + RMP_BODY_OFFSET, whole - RMP_BODY_OFFSET)) == RMP_OK;
    return true;
}

static int wait_ms(int64_t until_ms)
{
    int64_t left = until_ms - clock_now_ms();

    if (until_ms < 0)
        return -1;
    return left > 0 ? (int)left : 0;
}

enum rmp_wait rmp_link_wait(struct rmp_link *links, size_t count, int64_t until_ms,
                            struct rmp_received *frame, size_t *which)
{
    struct pollfd ready[RMP_LINKS_MAX];

    for (;;) {
        int status;

        for (size_t i = 0; i < count; i++) {
            *which = i;
            if (rmp_link_next(&links[i], frame))
                return RMP_WAIT_FRAME;
            ready[i] = (struct pollfd){.fd = links[i].fd, .events = POLLIN};
        }
        status = poll(ready, (nfds_t)count, wait_ms(until_ms));
        if (status == 0 && until_ms >= 0 && clock_now_ms() >= until_ms)
            return RMP_WAIT_TIMEOUT;
        for (size_t i = 0; status > 0 && i < count; i++) {
            if (ready[i].revents != 0 && !rmp_link_fill(&links[i]))
                return RMP_WAIT_ENDED;
        }
    }
}

/* --- talking to the broker --- */

bool rmp_link_error(const struct rmp_received *frame, char *text, size_t size)
{
    struct msgpack_value code, message;

    if (frame->header.schema_id != RMP_SCHEMA_ERROR_REPORT || !frame->has_envelope)
        return false;
    if (!msgpack_find(frame->envelope.payload, "code", &code, NULL) || code.type != MSGPACK_STR)
        code.bytes = slice_of_text("error");
    if (!msgpack_find(frame->envelope.payload, "message", &message, NULL) ||
        message.type != MSGPACK_STR)
        message.bytes = slice_of("", 0);
    snprintf(text, size, "%.*s: %.*s", (int)code.bytes.len, code.bytes.data, (int)message.bytes.len,
             message.bytes.data);
    return true;
}

bool rmp_link_subscribe(struct rmp_link *link, const char *topic, bool replay)
{
    const struct rmp_header header = {.schema_id = RMP_SCHEMA_CONTROL,
                                      .created_at_ms = clock_epoch_ms(),
                                      .ttl_ms = CONTROL_TTL_MS,
                                      .trace_id = link->id,
                                      .msg_id = rmp_link_new_msg_id()};
    char payload[1024];
    struct msgpack_writer writer = {.to = payload, .size = sizeof payload};

    msgpack_put_map(&writer, replay ? 3 : 2);
    msgpack_put_text(&writer, "op");
    msgpack_put_text(&writer, "subscribe");
    msgpack_put_text(&writer, "topic");
    msgpack_put_text(&writer, topic);
    if (replay) {
        msgpack_put_text(&writer, "replay");
        msgpack_put_bool(&writer, true);
    }
    link->topic = topic;
    return msgpack_fits(&writer) && rmp_link_send(link, &header, "intent.control.v1",
                                                  slice_of(NULL, 0), slice_of(payload, writer.len));
}
