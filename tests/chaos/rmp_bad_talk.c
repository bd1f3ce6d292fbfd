/* What peers say that is refused. Its time is long: bytes that are held back on their way must not
 * expire there, which would be the error instead. */
#include "build_config.h"

#include <stdlib.h>
#include <string.h>

#include "rmp/frame.h"
#include "rmp_chaos.h"

#define LONG_TOPIC 600

static void bad_command(struct chaos *chaos, struct peer *peer)
{
    struct rmp_header header = {
        .schema_id = 3003, .created_at_ms = epoch_ms(), .ttl_ms = TTL_MAX_MS};
    struct asked asked = {.ask = ASK_BAD, .id = talk_next_id(chaos)};
    struct text json = {0}, body = {0};
    char topic[LONG_TOPIC + 1] = "a/b";

    text_fill(&body, 'x', 5);
    switch (dice_below(&chaos->run.dice, 4)) {
    case 0:
        memset(topic, 't', LONG_TOPIC);
        topic[LONG_TOPIC] = '\0';
        asked.error = "Forbidden";
        break;
    case 1:
        memcpy(topic, "rlp/sys/x", 10);
        asked.error = "Forbidden";
        break;
    case 2:
        header.schema_id = 9999;
        asked.error = "UnknownSchema";
        break;
    default:
        header.body_len = 4;
        asked.error = "BodyLengthMismatch";
        break;
    }
    talk_put_publish(&json, asked.id, topic, &header, &body);
    peer_ask(chaos, peer, &asked);
    talk_send_json(chaos, peer, &json);
    text_free(&json);
    text_free(&body);
}

/* Of a frame that is good but for one thing. */
static void bad_frame(struct chaos *chaos, struct peer *peer, bool fatal)
{
    struct asked asked = {.ask = ASK_BAD, .frames = true, .id = talk_next_id(chaos)};
    struct rmp_draft draft = {.header = {.schema_id = 3003,
                                         .created_at_ms = epoch_ms(),
                                         .ttl_ms = TTL_MAX_MS,
                                         .trace_id = {0, asked.id}},
                              .type = "observation.a.v1",
                              .topic = {"a/b", 3},
                              .payload = {"\x80", 1}};
    unsigned kind = fatal ? 5 : dice_below(&chaos->run.dice, 5);
    struct text big = {0};
    size_t len;
    char *frame;

    if (kind == 0)
        draft.header.schema_id = 9999;
    if (kind == 1)
        draft.type = "artifact.a.v1";
    if (kind == 2) {
        text_add(&big, "\xC6\0\1\x80\0", 5); /* bin of FRAME_BODY_MAX bytes */
        text_fill(&big, 'x', FRAME_BODY_MAX);
        draft.payload = slice_of(big.data, big.len);
    }
    frame = rmp_compose(&draft, &len);
    if (kind == 3)
        frame[RMP_PREFIX_LEN + 11] = 1; /* flags */
    if (kind == 4)
        frame[RMP_BODY_OFFSET] = (char)0xC1;
    if (kind == 5)
        frame[RMP_PREFIX_LEN + 5] = 1; /* header_version */
    asked.error =
        (const char *[]){"UnknownSchema",      "BodyTypeMismatch", "BodyTooLarge",
                         "InvalidHeaderFlags", "BodyDecodeError",  "UnsupportedVersion"}[kind];
    peer_ask(chaos, peer, &asked);
    talk_send_frame(chaos, peer, frame, len);
    text_free(&big);
}

/* After this the daemon closes the connection. */
static void fatally(struct chaos *chaos, struct peer *peer)
{
    static const char *const ends[] = {"R", "{}", "{\"Hello\":{\"kind\":5}}", "{\"Publish\":{",
                                       "\"HelloAck\""};
    const struct asked truncated = {.ask = ASK_BAD, .frames = true, .error = "TruncatedHeader"};
    struct text json = {0};
    uint32_t kind = dice_below(&chaos->run.dice, 6);

    if (kind == 5) {
        bad_frame(chaos, peer, true);
    } else {
        if (kind == 0)
            peer_ask(chaos, peer, &truncated);
        text_printf(&json, "%s", ends[kind]);
        talk_send_json(chaos, peer, &json);
        text_free(&json);
    }
    peer->doomed = true;
}

void talk_badly(struct chaos *chaos, struct peer *peer)
{
    if (dice_chance(&chaos->run.dice, 150))
        fatally(chaos, peer);
    else if (dice_chance(&chaos->run.dice, 500))
        bad_command(chaos, peer);
    else
        bad_frame(chaos, peer, false);
}
