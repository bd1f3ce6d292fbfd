#include "build_config.h"

#include "supervisor/early_exit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bus/deliver.h"
#include "bus/state.h"
#include "process/pool.h"
#include "router/pending.h"
#include "json/string.h"

#define EXITED "worker exited before answering"
#define LINE_MAX_SHOWN 300
#define LINES_MAX_SHOWN 2048

#define DATA "{\"stdio_bus\":\"exited\",\"stderr\":"
#define DATA_MAX (sizeof DATA + (size_t)6 * LINES_MAX_SHOWN + 4)

static struct stdio_bus *bus_of(const struct worker *worker)
{
    return worker->stream.endpoint.bus;
}

/* Clients that are all of this user may be told what the server has written to stderr. */
static bool tells_stderr(const struct worker *worker)
{
    return bus_of(worker)->options.told_log != NULL && worker->errors != NULL;
}

/* What has become of the process: "exited with status 1". */
static void describe_end(const struct worker *worker, char *to, size_t size)
{
    if (worker->exec_error != 0)
        snprintf(to, size, "cannot be executed: %s%s", strerror(worker->exec_error),
                 worker->exec_error == ENOENT ? " (it, or what its first line names)" : "");
    else if (worker->child.pid > 0)
        snprintf(to, size, "closed its stdout");
    else
        process_status_text(to, size, worker->child.status);
}

static void write_text(struct worker *worker, const char *end, const char *line)
{
    struct pool *pool = pool_of(worker);

    if (tells_stderr(worker))
        snprintf(pool->failure_text, sizeof pool->failure_text, "server %s%s%s%s (log: %s)", end,
                 worker->exec_error == 0 ? " before answering" : "", *line != '\0' ? ": " : "",
                 line, bus_of(worker)->options.told_log);
    else
        snprintf(pool->failure_text, sizeof pool->failure_text, EXITED ": it %s", end);
}

/* Without memory the clients get no more than the text. */
static void write_data(struct worker *worker)
{
    struct pool *pool = pool_of(worker);
    struct json_output out = {.size = DATA_MAX};
    char lines[LINES_MAX_SHOWN];

    free(pool->failure_data);
    pool->failure_data = NULL;
    if (!tells_stderr(worker))
        return;
    out.to = pool->failure_data = malloc(DATA_MAX);
    if (out.to == NULL) {
        log_error(bus_of(worker)->log, worker->stream.endpoint.context,
                  "out of memory: its clients are not told its stderr");
        return;
    }
    stderr_reader_last_lines(worker->errors, lines, sizeof lines);
    json_output_add(&out, slice_of_text(DATA));
    json_output_string(&out, slice_of_text(lines));
    json_output_add(&out, slice_of("}", 2)); /* with its NUL */
}

static void note_failure(struct pool *pool, unsigned count, const struct worker *worker)
{
    struct start_failure *failure = &pool->group.failure;

    failure->count = count;
    failure->total++;
    failure->at_ms = stdio_bus_event_loop_now_ms(bus_of(worker)->loop);
    failure->text = pool->failure_text;
    failure->data = pool->failure_data;
}

/* What was dialled is another machine, which may be there again at any time: the next attempts are
 * not delayed more and more. */
static void note_unreached(struct worker *worker, const char *reason)
{
    struct pool *pool = pool_of(worker);

    snprintf(pool->failure_text, sizeof pool->failure_text, "%s", reason);
    note_failure(pool, 1, worker);
    log_repeated(bus_of(worker)->log, LOG_LEVEL_WARN, worker->stream.endpoint.context,
                 LOG_NO_SOURCE, "%s", reason);
}

void early_exit_note(struct worker *worker)
{
    struct pool *pool = pool_of(worker);
    struct start_failure *failure = &pool->group.failure;
    const struct dialer *dialer = worker->program.dialer;
    char end[128], line[LINE_MAX_SHOWN] = "";

    if (worker_is_front(worker) || worker->stream.endpoint.peer.is_passage ||
        worker->after_end != WORKER_RESTARTS)
        return;
    if (worker->answered) {
        failure->count = 0;
        return;
    }
    if (dialer != NULL) {
        note_unreached(worker, dialer->reason(dialer->user_data));
        return;
    }
    describe_end(worker, end, sizeof end);
    if (worker->errors != NULL)
        stderr_reader_last_line(worker->errors, line, sizeof line);
    write_text(worker, end, line);
    write_data(worker);
    note_failure(pool, failure->count + 1, worker);
    log_warn(bus_of(worker)->log, worker->stream.endpoint.context, "it %s%s%s%s", end,
             worker->exec_error == 0 ? " before it has answered anything" : "",
             *line != '\0' ? ": " : "", line);
}

void early_exit_answer(const struct worker *worker, const struct request *request)
{
    const struct start_failure *failure = &pool_of(worker)->group.failure;
    struct endpoint *to = endpoint_of_peer(request->asker);

    if (failure->count > 0 && !worker->answered && !worker_is_front(worker))
        deliver_error_data(to, request->asker_id, JSONRPC_SERVER_ERROR, failure->text,
                           failure->data);
    else
        deliver_error(to, request->asker_id, JSONRPC_SERVER_ERROR, EXITED);
}

/* A client that waits for a process is served by the supply. */
int64_t early_exit_delay(struct worker *worker)
{
    struct pool *pool = pool_of(worker);

    if (!pool_is_supplied(pool) || !pool_is_failing(pool))
        return 0;
    if (list_empty(&worker->stream.endpoint.peer.bindings))
        return -1;
    return restart_delay(pool->group.failure.count - 1);
}

/* The data is about a process of the program before: the clients that come get the text. */
void early_exit_archive(struct archive *archive, struct pool *pool)
{
    struct start_failure *failure = &pool->group.failure;

    ARCHIVE_INTEGER(archive, failure->count);
    ARCHIVE_INTEGER(archive, failure->total);
    ARCHIVE_INTEGER(archive, failure->at_ms);
    archive_text(archive, pool->failure_text, sizeof pool->failure_text);
    failure->text = pool->failure_text;
}
