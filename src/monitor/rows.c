#include "build_config.h"

#include "monitor/rows.h"

#include "json/text.h"

static const char *const hold_names[] = {
    [HELD_FOR_WORKER] = "a worker",  [HELD_FOR_PROCESS] = "a worker that is free",
    [HELD_FOR_ID] = "an id",         [HELD_FOR_QUEUE] = "a queue",
    [HELD_FOR_ANSWER] = "an answer", [HELD_FOR_REPLIES] = "its replies to be read",
    [HELD_FOR_MEMORY] = "memory",
};

static void put_number(struct json_text *to, const char *key, uint64_t value)
{
    row_number(to, key, value > INT64_MAX ? INT64_MAX : (int64_t)value);
}

static void write_traffic(struct json_text *to, const struct traffic *traffic)
{
    put_number(to, "messages_in", traffic->frames_in);
    put_number(to, "messages_out", traffic->frames_out);
    put_number(to, "bytes_in", traffic->bytes_in);
    put_number(to, "bytes_out", traffic->bytes_out);
}

static void write_hold(struct json_text *to, const struct hold_report *hold)
{
    if (hold->is_held)
        row_number(to, "held_ms", hold->ms);
    else
        row_string(to, "held_ms", NULL);
    row_string(to, "held_for", hold->is_held ? hold_names[hold->what] : NULL);
}

void rows_pool(struct json_text *to, const struct pool_report *pool)
{
    row_begin(to, NULL, '{');
    row_slice(to, "pool", pool->id);
    row_slice(to, "url", pool->url);
    row_string(to, "protocol", pool->protocol);
    row_string(to, "sharing", pool->clients);
    put_number(to, "instances", pool->instances);
    put_number(to, "running", pool->running);
    put_number(to, "drained", pool->drained);
    put_number(to, "failed", pool->failed);
    put_number(to, "clients", pool->connected);
    put_number(to, "requests", pool->requests);
    put_number(to, "sessions", pool->sessions);
    put_number(to, "queue", pool->queue);
    put_number(to, "starts", pool->starts);
    put_number(to, "restarts", pool->restarts);
    write_traffic(to, &pool->traffic);
    row_end(to, '}');
}

void rows_worker(struct json_text *to, const struct worker_report *worker)
{
    row_begin(to, NULL, '{');
    put_number(to, "worker", worker->number);
    row_string(to, "pool", worker->pool);
    row_string(to, "state", worker->state);
    row_boolean(to, "drained", worker->drained);
    row_boolean(to, "leaving", worker->leaving);
    row_number(to, "pid", (int64_t)worker->pid);
    row_number(to, "runs_ms", worker->runs_ms);
    put_number(to, "clients", worker->clients);
    put_number(to, "requests", worker->requests);
    put_number(to, "sessions", worker->sessions);
    put_number(to, "queue", worker->queue);
    put_number(to, "starts", worker->starts);
    put_number(to, "restarts", worker->restarts);
    put_number(to, "sleeps", worker->sleeps);
    write_traffic(to, &worker->traffic);
    write_hold(to, &worker->hold);
    row_end(to, '}');
}

void rows_client(struct json_text *to, const struct client_report *client)
{
    row_begin(to, NULL, '{');
    put_number(to, "client", client->number);
    row_string(to, "program", client->program[0] != '\0' ? client->program : NULL);
    row_string(to, "kind", client->kind);
    row_string(to, "peer", client->peer);
    row_slice(to, "pool", client->pool);
    row_number(to, "since_ms", client->since_ms);
    put_number(to, "requests", client->requests);
    put_number(to, "sessions", client->sessions);
    put_number(to, "queue", client->queue);
    write_traffic(to, &client->traffic);
    write_hold(to, &client->hold);
    row_end(to, '}');
}

void rows_session(struct json_text *to, const struct session_report *session)
{
    row_begin(to, NULL, '{');
    row_slice(to, "session", session->id);
    row_string(to, "client", session->client);
    row_string(to, "worker", session->worker);
    row_end(to, '}');
}

void rows_pending(struct json_text *to, const struct request_report *request)
{
    row_begin(to, NULL, '{');
    row_slice(to, "request", request->id);
    row_string(to, "from", request->from);
    row_string(to, "to", request->to);
    row_number(to, "age_ms", request->age_ms);
    row_end(to, '}');
}
