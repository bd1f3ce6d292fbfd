#include "build_config.h"

#include "process/worker_streams.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/error.h"

void worker_set_context(struct worker *worker)
{
    char *to = worker->stream.endpoint.context, pid[32] = "";
    size_t size = sizeof worker->stream.endpoint.context, len;

    if (worker->child.pid > 0)
        snprintf(pid, sizeof pid, " pid=%ld", (long)worker->child.pid);
    len = (size_t)snprintf(to, size, "worker=%u%s pool=", worker->number, pid);
    log_quote(to + len, size - len, worker->pool_id);
}

int worker_prepare_errors(struct worker *worker)
{
    if (!worker->program.pipes_stderr || worker->errors != NULL)
        return STDIO_BUS_OK;
    worker->errors = stderr_reader_create(worker->transport->loop, worker_log(worker),
                                          worker_context(worker));
    return worker->errors != NULL ? STDIO_BUS_OK : STDIO_BUS_ERR;
}

int worker_open_streams(struct worker *worker, const struct process *process)
{
    struct stream_options options = worker->options;
    int error;

    options.handler = worker->host->stream;
    options.fd_in = process->fd_from;
    options.fd_out = process->fd_to;
    if (process->fd_err >= 0 &&
        stderr_reader_begin(worker->errors, process->fd_err) != STDIO_BUS_OK) {
        error = errno;
        close(process->fd_err);
        goto fail;
    }
    if (stream_open(&worker->stream, worker->transport, &options) == STDIO_BUS_OK)
        return STDIO_BUS_OK;
    error = errno;
    if (worker->errors != NULL)
        stderr_reader_end(worker->errors);
fail:
    close(process->fd_from);
    close(process->fd_to);
    errno = error;
    return STDIO_BUS_ERR;
}

void worker_close_streams(struct worker *worker)
{
    connection_close(&worker->stream.connection);
    if (worker->errors != NULL) {
        stderr_reader_drain(worker->errors);
        stderr_reader_end(worker->errors);
    }
    worker_set_context(worker);
}
