#include "build_config.h"

#include "chaos_worker.h"

#include "handshake.h"

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
        _exit(1); /* the chaos program is gone */
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
        wire_written(&worker->out, &worker->out_at, (size_t)written);
    }
    if (worker->out_closed)
        worker->out_at = worker->out.len = 0;
}

void worker_say(struct worker *worker, struct wire_header *header, size_t size)
{
    struct record record = {.type = RECORD_SAY, .kind = (uint8_t)header->kind, .ref = header->ref};
    size_t start, len;

    if (worker->out_closed || worker->leaving)
        return;
    record.serial = header->serial = (struct serial){worker->origin, ++worker->said};
    start = wire_compose(&worker->out, header, "", size, &worker->dice);
    record.hash = wire_line_hash(worker->out.data + start, worker->out.len - start, &len);
    record.len = (uint32_t)len;
    record.key = wire_key_hash(header->key);
    memcpy(record.name, header->session, sizeof record.name);
    if (header->kind != WIRE_SPOIL)
        worker_note(worker, record);
    wire_frame(&worker->out, start);
}

/* --- input --- */

static void note_bad(struct worker *worker, const char *line, size_t len, const char *what)
{
    struct record record = {.type = RECORD_BAD, .len = (uint32_t)len};

    fprintf(stderr, "chaos_worker: %s: %.*s\n", what, len < 300 ? (int)len : 300, line);
    snprintf(record.name, sizeof record.name, "%s", what);
    worker_note(worker, record);
}

static void note_got(struct worker *worker, const struct wire_header *header, const char *line,
                     size_t len)
{
    const char *id = header->raw_id[0] != '\0' ? header->raw_id : header->key;
    struct record record = {.type = RECORD_GOT,
                            .kind = (uint8_t)header->kind,
                            .serial = header->serial,
                            .ref = header->ref,
                            .key = wire_key_hash(header->kind == WIRE_CANCEL ? header->token : id)};

    record.hash = wire_line_hash(line, len, &len);
    record.len = (uint32_t)len;
    memcpy(record.name, header->session, sizeof record.name);
    worker_note(worker, record);
}

/* MCP: the daemon asks whether the server serves the stateless era. */
static bool answer_probe(struct worker *worker, const char *line, size_t len)
{
    static const char probe[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\",";
    static const char answer[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n";
    size_t start = worker->out.len;

    if (!wire_stateless || len < sizeof probe - 1 || memcmp(line, probe, sizeof probe - 1) != 0)
        return false;
    text_add(&worker->out, answer, sizeof answer - 1);
    wire_frame(&worker->out, start);
    return true;
}

/* MCP: a hostile client's subscription, or one that the daemon repeats or ends. */
static bool answer_subscription(struct worker *worker, const char *line, size_t len)
{
    static const char method[] = "\"method\":\"resources/", before_id[] = "\"id\":";
    const char *id = memmem(line, len, before_id, sizeof before_id - 1), *end;
    size_t start = worker->out.len;

    if (id == NULL || memmem(line, len, method, sizeof method - 1) == NULL)
        return false;
    id += sizeof before_id - 1;
    end = memchr(id, ',', (size_t)(line + len - id));
    if (end == NULL)
        return false;
    text_printf(&worker->out, "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":{}}\n", (int)(end - id),
                id);
    wire_frame(&worker->out, start);
    return true;
}

static void handle_line(struct worker *worker, const char *line, size_t len)
{
    struct wire_header header;
    struct wire_error error;
    struct record record;
    char id[WIRE_TOKEN_MAX];

    if (wire_parse(&header, line, len)) {
        if (!wire_sum_ok(line, len)) {
            note_bad(worker, line, len, "wrong checksum");
            return;
        }
        if (header.kind != WIRE_HOSTILE)
            note_got(worker, &header, line, len);
        worker_obey(worker, &header);
    } else if (wire_parse_cancel(id, line, len)) {
        worker_cancelled(worker, id);
    } else if (answer_probe(worker, line, len) || answer_subscription(worker, line, len)) {
        return;
    } else if (handshake_answer(&worker->out, &record, line, len)) {
        worker_note(worker, record);
        worker_tire(worker);
    } else if (!wire_parse_error(&error, line, len)) {
        note_bad(worker, line, len, "not a message");
    } else if (!worker_refused(worker, &error)) {
        note_bad(worker, line, len, "error for no question");
    }
}

void worker_read(struct worker *worker)
{
    ssize_t got = read(STDIN_FILENO, text_room(&worker->in.bytes, READ_BYTES), READ_BYTES);
    const char *line;
    size_t len;

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got > 0) {
        worker->in.bytes.len += (size_t)got;
        while (!worker->leaving && !worker->in_closed && wire_next(&worker->in, &line, &len))
            handle_line(worker, line, len);
        return;
    }
    worker->in_closed = true;
    worker_note(worker, (struct record){.type = RECORD_EOF, .len = (uint32_t)worker->in.bytes.len});
    worker_begin_dying(worker);
}
