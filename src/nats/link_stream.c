#include "build_config.h"

#include "nats/link_stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/siphash.h"

#define BYTES_FIRST 1024 /* of memory */

/* --- messages --- */

static void write_number(char *to, uint64_t number)
{
    for (int i = 7; i >= 0; i--) {
        to[i] = (char)(unsigned char)(number & 0xff);
        number >>= 8;
    }
}

static uint64_t read_number(const char *from)
{
    uint64_t number = 0;

    for (int i = 0; i < 8; i++)
        number = number << 8 | (unsigned char)from[i];
    return number;
}

uint64_t link_mark(const char *id, uint64_t number)
{
    static const struct siphash_key key; /* both ends have the same one */
    char text[8];

    write_number(text, number);
    return siphash(&key, id, strlen(id)) ^ siphash(&key, text, sizeof text);
}

static bool has_positions(enum link_kind kind)
{
    return kind == LINK_DATA || kind == LINK_END || kind == LINK_ACK || kind == LINK_RESUME;
}

bool link_message_read(struct link_message *message, struct slice bytes)
{
    static const char kinds[] = "OYNDEARCLBQHMV";

    if (bytes.len < LINK_HEAD_LEN || bytes.data[0] == '\0' || strchr(kinds, bytes.data[0]) == NULL)
        return false;
    message->kind = (enum link_kind)bytes.data[0];
    message->position = read_number(bytes.data + 1);
    message->received = read_number(bytes.data + 9);
    message->limit = read_number(bytes.data + 17);
    message->payload = slice_of(bytes.data + LINK_HEAD_LEN, bytes.len - LINK_HEAD_LEN);
    message->mark = read_number(bytes.data + 25) - message->payload.len;
    return message->mark == 0 || has_positions(message->kind);
}

void link_message_write(char to[LINK_HEAD_LEN], const struct link_message *message)
{
    to[0] = (char)message->kind;
    write_number(to + 1, message->position);
    write_number(to + 9, message->received);
    write_number(to + 17, message->limit);
    write_number(to + 25, message->mark + message->payload.len);
}

/* --- bytes --- */

/* Room for more bytes after those that are there. */
static bool make_room(struct link_bytes *bytes, size_t more)
{
    size_t size = bytes->size > 0 ? bytes->size : BYTES_FIRST;
    char *data;

    if (bytes->size - bytes->start - bytes->len >= more)
        return true;
    if (bytes->start > 0 && bytes->len > 0)
        memmove(bytes->data, bytes->data + bytes->start, bytes->len);
    bytes->start = 0;
    while (size < bytes->len + more)
        size *= 2;
    if (size == bytes->size)
        return true;
    data = realloc(bytes->data, size);
    if (data == NULL)
        return false;
    bytes->data = data;
    bytes->size = size;
    return true;
}

static void drop(struct link_bytes *bytes, size_t len)
{
    ASSERT(len <= bytes->len);
    bytes->start += len;
    bytes->len -= len;
    if (bytes->len > 0)
        return;
    free(bytes->data);
    *bytes = (struct link_bytes){.data = NULL};
}

/* --- sending --- */

/* The position after all that is to be sent. */
static uint64_t last_position(const struct link_stream *stream)
{
    return stream->acked + stream->kept.len;
}

size_t link_stream_room(const struct link_stream *stream)
{
    uint64_t last = last_position(stream);

    return stream->ends || stream->limit <= last ? 0 : (size_t)(stream->limit - last);
}

char *link_stream_reserve(struct link_stream *stream, size_t *len)
{
    size_t room = link_stream_room(stream);

    if (*len > room)
        *len = room;
    if (*len == 0 || !make_room(&stream->kept, *len))
        return NULL;
    return stream->kept.data + stream->kept.start + stream->kept.len;
}

void link_stream_add(struct link_stream *stream, size_t len)
{
    ASSERT(len <= stream->kept.size - stream->kept.start - stream->kept.len);
    stream->kept.len += len;
    drop(&stream->kept, 0);
}

struct link_message link_stream_positions(struct link_stream *stream, enum link_kind kind)
{
    stream->said_received = stream->received + stream->has_ended;
    stream->said_limit = stream->taken + LINK_WINDOW;
    return (struct link_message){.kind = kind,
                                 .position = stream->sent,
                                 .received = stream->said_received,
                                 .limit = stream->said_limit};
}

bool link_stream_next(struct link_stream *stream, size_t max, struct link_message *message)
{
    uint64_t last = last_position(stream);
    size_t len = (size_t)(last - stream->sent);

    if (len > max)
        len = max;
    if (len == 0 && (!stream->ends || stream->end_sent))
        return false;
    *message = link_stream_positions(stream, len > 0 ? LINK_DATA : LINK_END);
    if (len == 0) {
        stream->end_sent = true;
        stream->reached = last + 1;
        return true;
    }
    message->payload =
        slice_of(stream->kept.data + stream->kept.start + (size_t)(stream->sent - stream->acked),
                 len);
    stream->sent += len;
    if (stream->reached < stream->sent)
        stream->reached = stream->sent;
    return true;
}

void link_stream_send_again(struct link_stream *stream)
{
    stream->sent = stream->acked;
    stream->end_sent = stream->end_acked;
}

bool link_stream_is_unacked(const struct link_stream *stream)
{
    return stream->sent > stream->acked || (stream->end_sent && !stream->end_acked);
}

/* --- receiving --- */

/* The other end has received this much. */
static bool take_ack(struct link_stream *stream, uint64_t received)
{
    uint64_t last = last_position(stream);
    bool is_end = stream->ends && received == last + 1;
    uint64_t acked = is_end ? last : received;

    if (received > stream->reached)
        return false;
    if (acked > stream->acked) {
        drop(&stream->kept, (size_t)(acked - stream->acked));
        stream->acked = acked;
        if (stream->sent < acked) /* after they were to be sent again, they came */
            stream->sent = acked;
    }
    if (is_end)
        stream->end_sent = stream->end_acked = true;
    return true;
}

static enum link_verdict keep(struct link_stream *stream, struct slice fresh)
{
    struct link_bytes *pending = &stream->pending;

    if (fresh.len == 0)
        return LINK_FINE;
    if (!make_room(pending, fresh.len))
        return LINK_NO_MEMORY;
    memcpy(pending->data + pending->start + pending->len, fresh.data, fresh.len);
    pending->len += fresh.len;
    stream->received += fresh.len;
    stream->asks = false;
    return LINK_FINE;
}

static enum link_verdict miss(struct link_stream *stream)
{
    if (stream->asks)
        return LINK_FINE;
    stream->asks = true;
    return LINK_MISSING;
}

static enum link_verdict take_bytes(struct link_stream *stream, const struct link_message *message)
{
    uint64_t end = message->position + message->payload.len;
    size_t known;

    if (end < message->position || end > stream->taken + LINK_WINDOW ||
        (stream->has_ended && end > stream->received))
        return LINK_IMPOSSIBLE;
    if (message->position > stream->received)
        return miss(stream);
    if (end <= stream->received)
        return LINK_FINE;
    known = (size_t)(stream->received - message->position);
    return keep(stream, slice_of(message->payload.data + known, message->payload.len - known));
}

static enum link_verdict take_end(struct link_stream *stream, uint64_t position)
{
    if (position < stream->received || (stream->has_ended && position != stream->received))
        return LINK_IMPOSSIBLE;
    if (position > stream->received)
        return miss(stream);
    stream->has_ended = true;
    return LINK_FINE;
}

/* What an old message says of positions, a later one has said better. */
enum link_verdict link_stream_take(struct link_stream *stream, const struct link_message *message)
{
    if (!take_ack(stream, message->received))
        return LINK_IMPOSSIBLE;
    if (message->limit > stream->limit)
        stream->limit = message->limit;
    if (message->kind == LINK_DATA)
        return take_bytes(stream, message);
    if (message->kind == LINK_END)
        return take_end(stream, message->position);
    return LINK_FINE;
}

void link_stream_taken(struct link_stream *stream, size_t len)
{
    drop(&stream->pending, len);
    stream->taken += len;
}

bool link_stream_owes(const struct link_stream *stream, bool soon)
{
    uint64_t limit = stream->taken + LINK_WINDOW;

    if (soon)
        return limit - stream->said_limit >= LINK_WINDOW / 4;
    return limit != stream->said_limit ||
           stream->received + stream->has_ended != stream->said_received;
}

bool link_stream_is_over(const struct link_stream *stream)
{
    return stream->end_acked && stream->has_ended && stream->pending.len == 0;
}

void link_stream_free(struct link_stream *stream)
{
    free(stream->kept.data);
    free(stream->pending.data);
    stream->kept = stream->pending = (struct link_bytes){.data = NULL};
}

/* --- the archive --- */

static void archive_bytes_in_order(struct archive *archive, struct link_bytes *bytes)
{
    struct slice text = slice_of(NULL, 0);

    if (bytes->len > 0)
        text = slice_of(bytes->data + bytes->start, bytes->len);
    text = archive_slice(archive, text);
    if (!archive_loads(archive) || text.len == 0 ||
        !archive_made(archive, make_room(bytes, text.len)))
        return;
    memcpy(bytes->data, text.data, text.len);
    bytes->len = text.len;
}

void link_stream_archive(struct archive *archive, struct link_stream *stream)
{
    static const struct archive_field fields[] = {
        ARCHIVE_INTEGERS(struct link_stream, acked, sent, limit, reached, received, taken,
                         said_received, said_limit),
        ARCHIVE_FLAGS(struct link_stream, ends, end_sent, end_acked, has_ended, asks),
    };

    ARCHIVE_FIELDS(archive, stream, fields);
    archive_bytes_in_order(archive, &stream->kept);
    archive_bytes_in_order(archive, &stream->pending);
    archive_expect(archive,
                   stream->sent >= stream->acked && stream->reached >= stream->sent &&
                       stream->sent - stream->acked <= stream->kept.len &&
                       stream->received - stream->taken == stream->pending.len,
                   "the positions of a link do not fit its bytes");
}
