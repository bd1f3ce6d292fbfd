#include "build_config.h"

#include "supervisor/first_answer.h"

#include <string.h>

#include "base/error.h"
#include "bus/state.h"
#include "process/pool.h"
#include "json/document.h"

#define LOOKED_AT_MAX 65536 /* bytes; the answer to "initialize" is short */

#define KEY "protocolVersion"

static bool has_key(struct slice text)
{
    const char *at = text.data, *end = text.data + text.len;

    while ((at = memchr(at, KEY[0], (size_t)(end - at))) != NULL) {
        if ((size_t)(end - at) < sizeof KEY - 1)
            return false;
        if (memcmp(at, KEY, sizeof KEY - 1) == 0)
            return true;
        at++;
    }
    return false;
}

/* The protocol whose "initialize" has such an answer; NULL: none. */
static const char *protocol_of(const struct json_value *answer)
{
    const struct json_value *version = document_member(document_member(answer, "result"), KEY);

    if (version == NULL)
        return NULL;
    return version->type == JSON_STRING ? "mcp" : version->type == JSON_NUMBER ? "acp" : NULL;
}

void first_answer_check_refusal(struct worker *worker, const struct message *answer)
{
    struct stdio_bus *bus = worker->stream.endpoint.bus;
    struct slice why = slice_of(NULL, 0);

    if (worker_is_front(worker) && answer->id.type == ID_NONE && answer->has_error)
        why = message_refusal_text(answer->bytes);
    bus->was_refused = why.data != NULL;
    if (why.data == NULL)
        return;
    worker->refused = true;
    if (bus->reason == BUS_DONE) /* the client has left already */
        bus->reason = BUS_NO_WORKER_LEFT;
    log_repeated(bus->log, LOG_LEVEL_ERROR, "", LOG_NO_SOURCE,
                 "the daemon refuses this client: %.*s", (int)why.len, why.data);
}

/* The server's last words, a line each. */
static void log_stderr(struct log *log, struct slice text)
{
    while (text.len > 0) {
        const char *newline = memchr(text.data, '\n', text.len);
        size_t len = newline != NULL ? (size_t)(newline - text.data) : text.len;

        log_error(log, "", "stderr: %.*s", (int)len, text.data);
        len += newline != NULL;
        text = slice_of(text.data + len, text.len - len);
    }
}

static struct slice text_member(const struct json_value *object, const char *key)
{
    const struct json_value *value = document_member_of(object, key, JSON_STRING);

    return value != NULL ? value->text : slice_of("", 0);
}

void first_answer_check_failure(struct worker *worker, const struct message *answer)
{
    struct stdio_bus *bus = worker->stream.endpoint.bus;
    const struct json_value *error, *data;
    struct document_error problem;
    struct document document;
    struct slice text;

    if (!answer->has_error || answer->bytes.len > LOOKED_AT_MAX ||
        document_read(&document, answer->bytes, &problem) != STDIO_BUS_OK)
        return;
    error = document_member(document.root, "error");
    data = document_member(error, "data");
    if (slice_is(text_member(data, "stdio_bus"), "exited")) {
        text = text_member(error, "message");
        log_error(bus->log, "", "%.*s", (int)text.len, text.data);
        log_stderr(bus->log, text_member(data, "stderr"));
        bus_note_stop(bus, BUS_NO_WORKER_LEFT);
    }
    document_free(&document);
}

void first_answer_check(struct worker *worker, const struct message *answer)
{
    struct endpoint *endpoint = &worker->stream.endpoint;
    struct pool *pool = pool_of(worker);
    struct stdio_bus *bus = endpoint->bus;
    struct document_error error;
    struct document document;
    const char *protocol;

    if (pool->group.mode.is_front) {
        first_answer_check_refusal(worker, answer);
        first_answer_check_failure(worker, answer);
        return;
    }
    if (pool->group.mode.protocol != PROTOCOL_UNKNOWN || pool->seen_protocol ||
        answer->bytes.len > LOOKED_AT_MAX || !has_key(answer->bytes) ||
        document_read(&document, answer->bytes, &error) != STDIO_BUS_OK)
        return;
    protocol = protocol_of(document.root);
    document_free(&document);
    if (protocol == NULL)
        return;
    pool->seen_protocol = true;
    log_warn(bus->log, endpoint->context,
             "has answered \"initialize\": in pool \"%s\" without \"protocol\": \"%s\" clients get "
             "in each other's way, and what the worker sends unasked is lost",
             worker->pool_id, protocol);
}
