#include "build_config.h"

#include "chaos_worker.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES 65536

/* --- the journal --- */

void worker_write_journal(struct worker *worker)
{
    size_t len = worker->record_count * sizeof worker->records[0];
    ssize_t written;

    if (len == 0)
        return;
    do
        written = write(worker->journal, worker->records, len);
    while (written < 0 && errno == EINTR);
    if (written != (ssize_t)len)
        _exit(1); /* whoever watched us is gone */
    worker->record_count = 0;
}

void worker_note(struct worker *worker, struct record record)
{
    if (worker->record_count == WORKER_RECORDS_MAX)
        worker_write_journal(worker);
    record.origin = worker->origin;
    record.pid = (uint32_t)getpid();
    record.pool = worker->pool;
    worker->records[worker->record_count++] = record;
}

/* --- output --- */

void worker_write(struct worker *worker)
{
    while (!worker->out_closed && worker->out_at < worker->out.len) {
        ssize_t written = write(STDOUT_FILENO, worker->out.data + worker->out_at,
                                worker->out.len - worker->out_at);

        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0 && errno != EAGAIN)
            worker->out_closed = true;
        if (written < 0)
            break;
        worker->out_at += (size_t)written;
    }
    if (worker->out_at == worker->out.len || worker->out_closed) {
        worker->out_at = worker->out.len = 0;
    } else if (worker->out_at > worker->out.len / 2) {
        memmove(worker->out.data, worker->out.data + worker->out_at,
                worker->out.len - worker->out_at);
        worker->out.len -= worker->out_at;
        worker->out_at = 0;
    }
}

void worker_say(struct worker *worker, struct wire_header *header, size_t size)
{
    struct record record;
    size_t start, len;

    if (worker->out_closed || worker->leaving)
        return;
    header->serial.origin = worker->origin;
    header->serial.number = ++worker->said;
    start = wire_compose(&worker->out, header, "", size, &worker->dice);
    memset(&record, 0, sizeof record);
    record.type = RECORD_SAY;
    record.kind = (uint8_t)header->kind;
    record.serial = header->serial;
    record.ref = header->ref;
    record.hash = wire_line_hash(worker->out.data + start, worker->out.len - start, &len);
    record.len = (uint32_t)len;
    record.key = wire_key_hash(header->key);
    memcpy(record.name, header->session, sizeof record.name);
    worker_note(worker, record);
    wire_frame(&worker->out, start);
}

/* --- input --- */

static void note_bad(struct worker *worker, const char *line, size_t len, const char *what)
{
    struct record record;

    fprintf(stderr, "chaos_worker: %s: %.*s\n", what, len < 300 ? (int)len : 300, line);
    memset(&record, 0, sizeof record);
    record.type = RECORD_BAD;
    record.len = (uint32_t)len;
    snprintf(record.name, sizeof record.name, "%s", what);
    worker_note(worker, record);
}

static void note_got(struct worker *worker, const struct wire_header *header, const char *line,
                     size_t len)
{
    struct record record;

    memset(&record, 0, sizeof record);
    record.type = RECORD_GOT;
    record.kind = (uint8_t)header->kind;
    record.serial = header->serial;
    record.ref = header->ref;
    record.hash = wire_line_hash(line, len, &len);
    record.len = (uint32_t)len;
    /* The id as it is here: no two requests at a time may have the same. */
    record.key = wire_key_hash(header->raw_id[0] != '\0' ? header->raw_id : header->key);
    if (header->kind == WIRE_CANCEL)
        record.key = wire_key_hash(header->token);
    memcpy(record.name, header->session, sizeof record.name);
    worker_note(worker, record);
}

static void handle_line(struct worker *worker, const char *line, size_t len)
{
    struct wire_header header;
    struct wire_error error;
    char id[WIRE_TOKEN_MAX];

    if (wire_parse(&header, line, len)) {
        if (!wire_sum_ok(line, len)) {
            note_bad(worker, line, len, "wrong checksum");
            return;
        }
        note_got(worker, &header, line, len);
        worker_obey(worker, &header);
    } else if (wire_parse_cancel(id, line, len)) {
        worker_cancelled(worker, id);
    } else if (!wire_parse_error(&error, line, len)) {
        note_bad(worker, line, len, "not a message");
    } else if (!worker_refused(worker, &error)) {
        note_bad(worker, line, len, "error for no question");
    }
}

static void handle_lines(struct worker *worker, size_t looked_at)
{
    struct text *in = &worker->in;
    size_t start = 0, used;

    while (wire_framing != WIRE_LINES && !worker->leaving && !worker->in_closed &&
           (used = wire_unframe(&worker->frame, in->data + start, in->len - start)) > 0) {
        handle_line(worker, worker->frame.data, worker->frame.len);
        start += used;
    }
    while (wire_framing == WIRE_LINES && looked_at < in->len && !worker->leaving &&
           !worker->in_closed) {
        const char *found = memchr(in->data + looked_at, '\n', in->len - looked_at);
        size_t end;

        if (found == NULL)
            break;
        end = (size_t)(found - in->data) + 1;
        handle_line(worker, in->data + start, end - start);
        start = looked_at = end;
    }
    memmove(in->data, in->data + start, in->len - start);
    in->len -= start;
}

void worker_read(struct worker *worker)
{
    struct record record;
    size_t before = worker->in.len;
    ssize_t got = read(STDIN_FILENO, text_room(&worker->in, READ_BYTES), READ_BYTES);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got > 0) {
        worker->in.len += (size_t)got;
        handle_lines(worker, before);
        return;
    }
    worker->in_closed = true;
    memset(&record, 0, sizeof record);
    record.type = RECORD_EOF;
    record.len = (uint32_t)before;
    worker_note(worker, record);
    if (!worker->ignores_term && worker->dying_at_ms == 0)
        worker->dying_at_ms = worker->now_ms + worker->slow_ms + 1;
}
