#include "build_config.h"

#include "http/reader_archive.h"

/* --- HTTP --- */

/* The parts of an incomplete head are found again; of one that was taken its body counts. */
static void archive_head(struct archive *archive, struct http_head *parts, struct slice head)
{
    const char *problem = NULL;

    ARCHIVE_ENUM(archive, parts->body, HTTP_BODY_CHUNKED);
    ARCHIVE_INTEGER(archive, parts->length);
    archive_flag(archive, &parts->expects_continue);
    if (!archive->saves && archive_ok(archive) && head.len > 0)
        archive_expect(archive, http_head_read(parts, head, &problem) == 0,
                       "a head is no head any more");
}

static void archive_chunks(struct archive *archive, struct chunked_reader *chunks)
{
    ARCHIVE_INTEGER(archive, chunks->left);
    ARCHIVE_INTEGER(archive, chunks->extra);
    ARCHIVE_INTEGER(archive, chunks->state);
    ARCHIVE_INTEGER(archive, chunks->digits);
}

void http_reader_archive(struct archive *archive, struct http_reader *reader, struct slice head)
{
    archive_mark(archive, "httpread");
    ARCHIVE_ENUM(archive, reader->part, HTTP_PART_END);
    archive_head(archive, &reader->head, head);
    archive_flag(archive, &reader->closes);
    archive_flag(archive, &reader->in_batch);
    ARCHIVE_INTEGER(archive, reader->status);
    archive_flag(archive, &reader->skips);
    archive_flag(archive, &reader->takes_batch);
    archive_flag(archive, &reader->has_body);
    archive_chunks(archive, &reader->chunks);
    ARCHIVE_INTEGER(archive, reader->clean);
    ARCHIVE_INTEGER(archive, reader->gap);
    ARCHIVE_INTEGER(archive, reader->timed);
    archive_flag(archive, &reader->is_over);
    archive_flag(archive, &reader->is_bad);
    archive_flag(archive, &reader->is_array);
    ARCHIVE_INTEGER(archive, reader->batch.checked);
    ARCHIVE_INTEGER(archive, reader->batch.part);
}

/* --- WebSocket --- */

static void archive_control(struct archive *archive, struct websocket_reader *reader)
{
    ARCHIVE_ENUM(archive, reader->opcode, WEBSOCKET_PONG);
    ARCHIVE_ENUM(archive, reader->control_len, WEBSOCKET_CONTROL_MAX);
    archive_bytes(archive, reader->control, sizeof reader->control);
    ARCHIVE_INTEGER(archive, reader->code);
    ARCHIVE_INTEGER(archive, reader->fault_code);
    ARCHIVE_INTEGER(archive, reader->failed_code);
}

static void archive_frame(struct archive *archive, struct websocket_head *frame)
{
    ARCHIVE_ENUM(archive, frame->opcode, WEBSOCKET_PONG);
    archive_flag(archive, &frame->is_final);
    archive_bytes(archive, frame->mask, sizeof frame->mask);
    ARCHIVE_INTEGER(archive, frame->len);
}

static void archive_message(struct archive *archive, struct websocket_reader *reader)
{
    archive_flag(archive, &reader->in_message);
    archive_flag(archive, &reader->in_frame);
    archive_flag(archive, &reader->is_whole);
    archive_flag(archive, &reader->is_refused);
    archive_flag(archive, &reader->has_note);
    archive_flag(archive, &reader->has_failed);
    archive_flag(archive, &reader->is_closed);
    archive_flag(archive, &reader->skips_utf8);
    ARCHIVE_INTEGER(archive, reader->utf8.left);
    ARCHIVE_INTEGER(archive, reader->utf8.low);
    ARCHIVE_INTEGER(archive, reader->utf8.high);
    ARCHIVE_INTEGER(archive, reader->frame_left);
    ARCHIVE_INTEGER(archive, reader->total);
    ARCHIVE_INTEGER(archive, reader->dropped);
    ARCHIVE_INTEGER(archive, reader->timed);
    ARCHIVE_INTEGER(archive, reader->clean);
    ARCHIVE_INTEGER(archive, reader->gap);
    ARCHIVE_INTEGER(archive, reader->rest);
}

/* The problem of a failure is static text of the program before. */
void websocket_reader_archive(struct archive *archive, struct websocket_reader *reader)
{
    archive_mark(archive, "wsread");
    archive_flag(archive, &reader->is_client);
    archive_control(archive, reader);
    archive_message(archive, reader);
    archive_frame(archive, &reader->frame);
    if (!archive->saves && reader->has_failed)
        reader->problem = "a frame is malformed";
}
