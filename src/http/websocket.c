#include "build_config.h"

#include "http/websocket.h"

#include "base/archive.h"
#include "base/assert.h"
#include "base/base64.h"
#include "framing/sized_frame.h"
#include "http/event_log.h"
#include "http/sha1.h"

#define GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
#define KEY_LEN BASE64_LEN((size_t)16)
#define FINAL 0x80u
#define MASKED 0x80u

size_t websocket_write_head(char to[WEBSOCKET_HEAD_MAX], enum websocket_opcode opcode, uint64_t len,
                            const unsigned char *mask)
{
    size_t extra = len < 126 ? 0 : len < 65536 ? 2 : 8, at = 2;

    to[0] = (char)(FINAL | (unsigned)opcode);
    to[1] = (char)((mask != NULL ? MASKED : 0u) | (extra == 0   ? (unsigned)len
                                                   : extra == 2 ? 126u
                                                                : 127u));
    while (extra > 0)
        to[at++] = (char)(len >> 8 * --extra & 0xFF);
    if (mask != NULL) {
        memcpy(to + at, mask, WEBSOCKET_MASK_LEN);
        at += WEBSOCKET_MASK_LEN;
    }
    return at;
}

void websocket_mask(char *data, size_t len, const unsigned char mask[WEBSOCKET_MASK_LEN],
                    uint64_t at)
{
    unsigned char turned[sizeof(uint64_t)];
    uint64_t word, words;
    size_t i = 0;

    for (size_t k = 0; k < sizeof turned; k++)
        turned[k] = mask[(at + k) % WEBSOCKET_MASK_LEN];
    memcpy(&words, turned, sizeof words);
    for (; len - i >= sizeof word; i += sizeof word) {
        memcpy(&word, data + i, sizeof word);
        word ^= words;
        memcpy(data + i, &word, sizeof word);
    }
    for (; i < len; i++)
        data[i] = (char)(data[i] ^ turned[i % WEBSOCKET_MASK_LEN]);
}

size_t websocket_write_control(char to[WEBSOCKET_HEAD_MAX + WEBSOCKET_CONTROL_MAX],
                               enum websocket_opcode opcode, struct slice data)
{
    size_t len = websocket_write_head(to, opcode, data.len, NULL);

    ASSERT(data.len <= WEBSOCKET_CONTROL_MAX);
    if (data.len > 0)
        memcpy(to + len, data.data, data.len);
    return len + data.len;
}

size_t websocket_write_close(char to[WEBSOCKET_HEAD_MAX + WEBSOCKET_CONTROL_MAX], unsigned code,
                             const char *reason)
{
    struct slice text = slice_of_text(reason);
    char data[WEBSOCKET_CONTROL_MAX];

    if (code == WEBSOCKET_NO_CODE)
        return websocket_write_control(to, WEBSOCKET_CLOSE, slice_of(NULL, 0));
    if (text.len > sizeof data - 2)
        text.len = sizeof data - 2;
    data[0] = (char)(code >> 8);
    data[1] = (char)(code & 0xFF);
    memcpy(data + 2, text.data, text.len);
    return websocket_write_control(to, WEBSOCKET_CLOSE, slice_of(data, text.len + 2));
}

bool websocket_code_valid(unsigned code)
{
    return (code >= 3000 && code <= 4999) ||
           (code >= 1000 && code <= 1014 && (code < 1004 || code > 1006));
}

bool websocket_key_valid(struct slice key)
{
    char bytes[KEY_LEN / 4 * 3];
    size_t len;

    return key.len == KEY_LEN && base64_decode(bytes, key, &len) && len == 16;
}

void websocket_accept(char to[WEBSOCKET_ACCEPT_LEN], struct slice key)
{
    char text[KEY_LEN + sizeof GUID - 1];
    unsigned char digest[SHA1_LEN];

    ASSERT(key.len == KEY_LEN);
    memcpy(text, key.data, KEY_LEN);
    memcpy(text + KEY_LEN, GUID, sizeof GUID - 1);
    sha1_digest(digest, slice_of(text, sizeof text));
    base64_encode(to, slice_of((const char *)digest, sizeof digest));
}

#define RESERVED 0x70u
#define OPCODE 0x0Fu

/* What is wrong with the first two bytes of a frame; NULL: nothing. */
static const char *judge(unsigned first, unsigned second, bool is_client)
{
    unsigned opcode = first & OPCODE;

    if (first & RESERVED)
        return "a reserved bit is set";
    if (is_client && (second & MASKED))
        return "a frame of a server is masked";
    if (!is_client && !(second & MASKED))
        return "a frame of a client is not masked";
    if (opcode > WEBSOCKET_PONG || (opcode > WEBSOCKET_BINARY && opcode < WEBSOCKET_CLOSE))
        return "an opcode is unknown";
    if (opcode >= WEBSOCKET_CLOSE && !(first & FINAL))
        return "a control frame is in parts";
    if (opcode >= WEBSOCKET_CLOSE && (second & ~MASKED) > WEBSOCKET_CONTROL_MAX)
        return "a control frame is too long";
    return NULL;
}

/* The length, in `extra` bytes at the third one. False: it has a shorter form, or is too long. */
static bool read_length(struct websocket_head *head, const unsigned char *bytes, size_t extra)
{
    head->len = extra == 0 ? bytes[1] & ~MASKED : 0;
    for (size_t i = 0; i < extra; i++)
        head->len = head->len << 8 | bytes[2 + i];
    return extra == 0 || (extra == 2 && head->len >= 126) ||
           (extra == 8 && head->len >= 65536 && head->len >> 63 == 0);
}

static enum websocket_head_status fail_head(enum websocket_code *code, enum websocket_code is,
                                            const char **problem, const char *text)
{
    *code = is;
    *problem = text;
    return WEBSOCKET_HEAD_BAD;
}

/* Reads a head from the first bytes of the input; *head_len: how many. WEBSOCKET_HEAD_BAD with the
 * problem, static text, and the code to close with: a reserved bit or opcode, a mask that is absent
 * or (is_client: the peer is a server) should not be, a control frame that is too long or in parts,
 * a length that is not in its shortest form; or binary data. */
static enum websocket_head_status websocket_head_read(struct websocket_head *head,
                                                      struct slice input, bool is_client,
                                                      size_t *head_len, enum websocket_code *code,
                                                      const char **problem)
{
    const unsigned char *bytes = (const unsigned char *)input.data;
    size_t extra, mask_len = is_client ? 0 : WEBSOCKET_MASK_LEN;
    const char *wrong;

    if (input.len < 2)
        return WEBSOCKET_HEAD_MORE;
    wrong = judge(bytes[0], bytes[1], is_client);
    if (wrong != NULL)
        return fail_head(code, WEBSOCKET_PROTOCOL_ERROR, problem, wrong);
    *head = (struct websocket_head){.opcode = (enum websocket_opcode)(bytes[0] & OPCODE),
                                    .is_final = (bytes[0] & FINAL) != 0};
    if (head->opcode == WEBSOCKET_BINARY)
        return fail_head(code, WEBSOCKET_UNSUPPORTED, problem, "binary messages are not accepted");
    extra = (bytes[1] & ~MASKED) == 126 ? 2 : (bytes[1] & ~MASKED) == 127 ? 8 : 0;
    if (input.len < 2 + extra)
        return WEBSOCKET_HEAD_MORE;
    if (!read_length(head, bytes, extra))
        return fail_head(code, WEBSOCKET_PROTOCOL_ERROR, problem,
                         "a length is not in its shortest form");
    if (input.len < 2 + extra + mask_len)
        return WEBSOCKET_HEAD_MORE;
    memcpy(head->mask, bytes + 2 + extra, mask_len);
    *head_len = 2 + extra + mask_len;
    return WEBSOCKET_HEAD_WHOLE;
}

static struct websocket_reader *reader_of(const struct framing_state *state)
{
    return state->reader;
}

static void reset(struct framing_state *state)
{
    struct websocket_reader *reader = reader_of(state);

    sized_frame_reset(state);
    *reader = (struct websocket_reader){.is_client = reader->is_client,
                                        .fault_code = WEBSOCKET_POLICY};
}

/* The current message is over. */
static void end_message(struct framing_state *state)
{
    struct websocket_reader *reader = reader_of(state);

    reader->in_message = reader->is_whole = reader->is_refused = false;
    reader->total = reader->dropped = reader->timed = 0;
    reader->clean = 0;
    sized_frame_reset(state);
}

static void fail_message(struct websocket_reader *reader, enum websocket_code code,
                         const char *problem)
{
    reader->has_failed = true;
    reader->failed_code = code;
    reader->problem = problem;
}

/* --- UTF-8 --- */

/* Continues with a text. False: it is not UTF-8. */
static bool utf8_goes_on(struct utf8_rest *rest, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];

        if (rest->left > 0) {
            if (c < rest->low || c > rest->high)
                return false;
            *rest = (struct utf8_rest){(unsigned char)(rest->left - 1), 0x80, 0xBF};
        } else if (c >= 0x80) {
            *rest = utf8_rest_of(c);
            if (rest->left == 0)
                return false;
        }
    }
    return true;
}

static bool is_utf8(const char *text, size_t len)
{
    struct utf8_rest rest = {0, 0, 0};

    return utf8_goes_on(&rest, text, len) && rest.left == 0;
}

/* The start of the character that the byte before `at` belongs to. */
static size_t character_before(const char *text, size_t at)
{
    size_t start = at;

    while (start > 0 && start + 3 > at && utf8_is_continuation((unsigned char)text[start - 1]))
        start--;
    return start > 0 && (unsigned char)text[start - 1] >= 0xC0 ? start - 1 : start;
}

/* The current message is no JSON, which shows at the byte `wrong`. The rest of it must be UTF-8 all
 * the same. */
static void refuse_message(struct framing_state *state, const char *input, size_t wrong)
{
    struct websocket_reader *reader = reader_of(state);
    size_t start = character_before(input, wrong);

    state->reported = true;
    state->cut = false;
    state->part = PART_SKIP;
    reader->is_refused = true;
    reader->fault_code = WEBSOCKET_INVALID_DATA;
    reader->skips_utf8 = state->max_long > 0 && reader->dropped + wrong > state->max_long;
    reader->utf8 = (struct utf8_rest){0, 0, 0};
    if (!reader->skips_utf8 && !utf8_goes_on(&reader->utf8, input + start, reader->clean - start))
        fail_message(reader, WEBSOCKET_INVALID_DATA, "a message is not UTF-8");
    reader->gap += reader->clean;
    reader->clean = 0;
}

/* --- putting the pieces together --- */

static void take_close(struct websocket_reader *reader)
{
    const unsigned char *bytes = (const unsigned char *)reader->control;

    reader->is_closed = true;
    reader->code = WEBSOCKET_NO_CODE;
    if (reader->control_len == 0)
        return;
    if (reader->control_len > 1)
        reader->code = (unsigned)bytes[0] << 8 | bytes[1];
    if (!websocket_code_valid(reader->code))
        fail_message(reader, WEBSOCKET_PROTOCOL_ERROR, "the code of a close frame is not valid");
    else if (!is_utf8(reader->control + 2, reader->control_len - 2u))
        fail_message(reader, WEBSOCKET_INVALID_DATA, "the reason of a close frame is not UTF-8");
}

/* A control frame with its data. */
static void take_control(struct websocket_reader *reader, const struct websocket_head *head,
                         const char *data)
{
    reader->opcode = head->opcode;
    reader->control_len = (unsigned char)head->len;
    memcpy(reader->control, data, reader->control_len);
    websocket_mask(reader->control, reader->control_len, head->mask, 0);
    if (reader->opcode == WEBSOCKET_CLOSE)
        take_close(reader);
    reader->has_note = !reader->has_failed;
}

static void start_message(struct framing_state *state)
{
    struct websocket_reader *reader = reader_of(state);

    reader->in_message = true;
    reader->fault_code = WEBSOCKET_POLICY;
    state->begun = true;
    state->part = reader->frame.is_final ? PART_BODY : PART_GROWING;
    state->left = reader->frame.len;
    state->cut = reader->frame.is_final && state->max_long > 0 && state->left > state->max_long;
    state->check->reset(state->check_state, true);
}

static void start_frame(struct framing_state *state, const struct websocket_head *head)
{
    struct websocket_reader *reader = reader_of(state);

    if ((head->opcode == WEBSOCKET_CONTINUATION) != reader->in_message) {
        fail_message(reader, WEBSOCKET_PROTOCOL_ERROR,
                     reader->in_message ? "a message begins within another one"
                                        : "a message begins with a continuation");
        return;
    }
    if (state->max_long == 0 &&
        (head->len > state->max_body || reader->total > state->max_body - head->len)) {
        fail_message(reader, WEBSOCKET_TOO_BIG, "message exceeds max_input_buffer");
        return;
    }
    reader->frame = *head;
    reader->frame_left = head->len;
    reader->in_frame = true;
    if (!reader->in_message)
        start_message(state);
}

/* The head at `at`, and the data of a control frame. Returns where the input continues; `at`: more
 * is awaited. */
static size_t take_head(struct framing_state *state, const char *input, size_t at, size_t len)
{
    struct websocket_reader *reader = reader_of(state);
    enum websocket_code code;
    struct websocket_head head;
    const char *problem;
    size_t head_len;

    switch (websocket_head_read(&head, slice_of(input + at, len - at), reader->is_client, &head_len,
                                &code, &problem)) {
    case WEBSOCKET_HEAD_MORE:
        return at;
    case WEBSOCKET_HEAD_BAD:
        fail_message(reader, code, problem);
        return at;
    case WEBSOCKET_HEAD_WHOLE:
        break;
    }
    if (!websocket_is_control(head.opcode)) {
        start_frame(state, &head);
        return at + head_len;
    }
    if (len - at < head_len + head.len)
        return at;
    take_control(reader, &head, input + at + head_len);
    return at + head_len + (size_t)head.len;
}

/* The data at `at`. Returns where they end. */
static size_t take_data(struct websocket_reader *reader, char *input, size_t at, size_t len)
{
    size_t count = len - at;

    if (count > reader->frame_left)
        count = (size_t)reader->frame_left;
    websocket_mask(input + at, count, reader->frame.mask, reader->frame.len - reader->frame_left);
    reader->frame_left -= count;
    reader->total += count;
    if (reader->is_refused) {
        if (!reader->skips_utf8 && !utf8_goes_on(&reader->utf8, input + at, count))
            fail_message(reader, WEBSOCKET_INVALID_DATA, "a message is not UTF-8");
    } else {
        if (at > reader->clean)
            memmove(input + reader->clean, input + at, count);
        reader->clean += count;
    }
    return at + count;
}

static bool has_news(const struct websocket_reader *reader)
{
    return reader->is_whole || reader->has_note || reader->has_failed;
}

/* The head or the data at *at. False: more is awaited. */
static bool take_piece(struct framing_state *state, char *input, size_t *at, size_t len)
{
    struct websocket_reader *reader = reader_of(state);
    size_t start = *at;

    if (!reader->in_frame) {
        *at = take_head(state, input, start, len);
        return *at > start || reader->has_failed;
    }
    *at = take_data(reader, input, start, len);
    if (reader->frame_left > 0)
        return reader->has_failed;
    reader->in_frame = false;
    reader->is_whole = reader->frame.is_final;
    return true;
}

/* Less than a control frame is left at `at`. */
static size_t keep_rest(struct websocket_reader *reader, char *input, size_t at, size_t len)
{
    if (at > reader->clean)
        memmove(input + reader->clean, input + at, len - at);
    reader->gap = 0;
    reader->rest = len - at;
    return reader->clean + reader->rest;
}

static size_t rewrite(struct framing_state *state, char *input, size_t len)
{
    struct websocket_reader *reader = reader_of(state);
    size_t at = reader->clean + reader->gap;

    while (!has_news(reader)) {
        if (!take_piece(state, input, &at, len))
            return keep_rest(reader, input, at, len);
        /* When next has skipped this head, the data are where they should be. */
        if (reader->in_frame && reader->frame_left > 0 && reader->clean == 0 && !reader->is_refused)
            break;
    }
    reader->gap = at - reader->clean;
    reader->rest = 0;
    return len;
}

/* --- the framing --- */

static enum frame_status malformed(struct framing_state *state, struct frame *frame)
{
    struct websocket_reader *reader = reader_of(state);

    reader->fault_code = reader->failed_code;
    state->reported = true;
    frame->consumed = 0;
    frame->fault = reader->fault_code == WEBSOCKET_TOO_BIG ? FRAME_FAULT_TOO_LONG
                                                           : FRAME_FAULT_SYNTAX;
    frame->problem = reader->problem;
    return FRAME_MALFORMED;
}

static enum frame_status whole(struct framing_state *state, struct frame *frame)
{
    if (state->cut)
        state->check->mark(state->check_state, true);
    frame->consumed = reader_of(state)->clean;
    end_message(state);
    return FRAME_WHOLE;
}

/* FRAME_SKIP: the current message is good so far. */
static enum frame_status check_message(struct framing_state *state, struct slice input,
                                       struct frame *frame)
{
    struct websocket_reader *reader = reader_of(state);
    enum body_status status = state->check->run(state->check_state,
                                                slice_of(input.data, reader->clean), frame);

    if (status == BODY_MORE && reader->is_whole)
        status = state->check->end(state->check_state, frame);
    if (status == BODY_MORE)
        return FRAME_SKIP;
    if (status == BODY_WHOLE)
        return whole(state, frame);
    refuse_message(state, input.data, frame->consumed);
    frame->consumed = 0;
    frame->fault = FRAME_FAULT_SYNTAX;
    return FRAME_REFUSED;
}

static enum frame_status wait_for_more(struct framing_state *state, struct slice input)
{
    struct websocket_reader *reader = reader_of(state);

    state->begun = reader->in_message || input.len > 0;
    if (reader->in_message)
        progress_note(state, &reader->timed, reader->total, state->left);
    if (state->part == PART_GROWING)
        state->cut = state->max_long > 0 && reader->total > state->max_long;
    return FRAME_WAIT;
}

static enum frame_status skip(struct frame *frame, size_t len)
{
    frame->consumed = len;
    return FRAME_SKIP;
}

static enum frame_status end_refused(struct framing_state *state, struct frame *frame)
{
    struct websocket_reader *reader = reader_of(state);

    if (!reader->skips_utf8 && reader->utf8.left > 0) {
        fail_message(reader, WEBSOCKET_INVALID_DATA, "a message is not UTF-8");
        return malformed(state, frame);
    }
    end_message(state);
    return skip(frame, 0);
}

static enum frame_status next(struct framing_state *state, struct slice input, struct frame *frame)
{
    struct websocket_reader *reader = reader_of(state);
    enum frame_status status = FRAME_SKIP;
    size_t gap = reader->gap;

    if (gap > 0 && reader->clean == 0) {
        reader->gap = 0;
        return skip(frame, gap);
    }
    if (reader->in_message && !reader->is_refused)
        status = check_message(state, input, frame);
    if (status != FRAME_SKIP)
        return status;
    if (reader->has_failed)
        return malformed(state, frame);
    if (reader->is_whole)
        return end_refused(state, frame);
    if (reader->has_note) {
        reader->has_note = false;
        frame->consumed = 0;
        return FRAME_NOTED;
    }
    if (reader->is_closed) {
        end_message(state); /* if one has begun, the rest of it never comes */
        reader->gap = reader->rest = 0;
        return input.len > 0 ? skip(frame, input.len) : FRAME_WAIT;
    }
    if (input.len > reader->clean + gap + reader->rest)
        return FRAME_REWRITE;
    return wait_for_more(state, input);
}

static size_t cut(struct framing_state *state, char *input, size_t len)
{
    struct websocket_reader *reader = reader_of(state);
    size_t kept = state->check->cut(state->check_state, input, reader->clean);
    size_t at = reader->clean + reader->gap;

    ASSERT(at <= len);
    state->cut = true;
    reader->dropped += reader->clean - kept;
    reader->clean = kept;
    return keep_rest(reader, input, at, len);
}

static size_t prefix(char to[FRAME_PREFIX_MAX], size_t body_len)
{
    return websocket_write_head(to, WEBSOCKET_TEXT, body_len, NULL);
}

const struct framing framing_websocket = {
    .name = "websocket",
    .reset = reset,
    .next = next,
    .cut = cut,
    .rewrite = rewrite,
    .prefix = prefix,
};

/* --- the archive --- */

/* The problem of a failure is static text of the program before. */
void websocket_reader_archive(struct archive *archive, struct websocket_reader *reader)
{
    static const struct archive_field fields[] = {
        ARCHIVE_CHOICE(struct websocket_reader, opcode, WEBSOCKET_PONG),
        ARCHIVE_CHOICE(struct websocket_reader, control_len, WEBSOCKET_CONTROL_MAX),
        ARCHIVE_CHOICE(struct websocket_reader, frame.opcode, WEBSOCKET_PONG),
        ARCHIVE_INTEGERS(struct websocket_reader, control, code, fault_code, failed_code),
        ARCHIVE_FLAGS(struct websocket_reader, is_client, in_message, in_frame, is_whole,
                      is_refused, has_note, has_failed, is_closed, skips_utf8, frame.is_final),
        ARCHIVE_INTEGERS(struct websocket_reader, utf8.left, utf8.low, utf8.high, frame.mask,
                         frame.len, frame_left, total, dropped, timed, clean, gap, rest),
    };

    archive_mark(archive, "wsread");
    ARCHIVE_FIELDS(archive, reader, fields);
    if (!archive->saves && reader->has_failed)
        reader->problem = "a frame is malformed";
}
