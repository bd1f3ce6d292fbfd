#include "build_config.h"

#include "embed/embedded_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "embed/host.h"
#include "supervisor/pools.h"
#include "supervisor/workers.h"

/* A pool that the configuration does not have. It stays when its workers are gone: clients may have
 * opened it. */
struct embedded_pool {
    struct list_node link; /* host->embedded_pools */
    struct pool_config config;
    struct pool *pool;
    char id[];
};

struct embedded_worker {
    struct list_node link; /* host->embedded */
    struct worker *worker;
    struct dialer dialer;
    int fd_to, fd_from; /* the bus's own; -1: they are the worker's */
};

static struct embedded_worker *worker_at(struct list_node *node)
{
    return list_entry(node, struct embedded_worker, link);
}

/* --- pools --- */

static struct pool *add_pool(struct host *host, const char *id)
{
    size_t len = strlen(id);
    struct embedded_pool *made = calloc(1, sizeof *made + len + 1);

    if (made == NULL)
        return NULL;
    memcpy(made->id, id, len + 1);
    made->config.id = made->id;
    made->pool = pools_add(host->bus, &made->config, NULL);
    if (made->pool == NULL) {
        free(made);
        return NULL;
    }
    list_append(&host->embedded_pools, &made->link);
    return made->pool;
}

static struct pool *find_pool(struct host *host, const char *id)
{
    struct list_node *node, *following;

    list_each(&host->bus->pools, node, following) {
        struct pool *pool = list_entry(node, struct pool, link);

        if (strcmp(pool->config->id, id) == 0)
            return pool;
    }
    return NULL;
}

/* --- descriptors --- */

static int give(int *fd)
{
    int given = *fd;

    *fd = -1;
    return given;
}

static int dial(void *user_data)
{
    return give(&((struct embedded_worker *)user_data)->fd_from);
}

static int dial_output(void *user_data)
{
    return give(&((struct embedded_worker *)user_data)->fd_to);
}

static void close_both(struct embedded_worker *embedded)
{
    if (embedded->fd_to >= 0)
        descriptor_close(embedded->fd_to);
    if (embedded->fd_from >= 0)
        descriptor_close(embedded->fd_from);
}

static bool are_one_socket(int one, int other)
{
    struct stat first, second;

    return fstat(one, &first) == 0 && fstat(other, &second) == 0 && S_ISSOCK(first.st_mode) &&
           first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

/* The host's own stay open until the worker runs. NULL with errno set. */
static struct embedded_worker *take_descriptors(int fd_to, int fd_from)
{
    struct embedded_worker *embedded = calloc(1, sizeof *embedded);

    if (embedded == NULL)
        return NULL;
    embedded->dialer =
        (struct dialer){.dial = dial, .dial_output = dial_output, .user_data = embedded};
    embedded->fd_to = fcntl(fd_to, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    embedded->fd_from = fcntl(fd_from, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (embedded->fd_to >= 0 && embedded->fd_from >= 0)
        return embedded;
    close_both(embedded);
    free(embedded);
    return NULL;
}

/* --- workers --- */

/* A worker of a pool, whose number is the last one. */
static struct worker *add_worker(struct host *host, struct pool *pool)
{
    if (pools_add_workers(host->bus, pool, 1) != STDIO_BUS_OK)
        return NULL;
    return list_entry(pool->workers.head.prev, struct worker, link);
}

/* The result of exec, which a worker that was dialled has at once. */
static int start(struct worker *worker)
{
    int error;

    if (worker_start(worker) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    worker->after_end = WORKER_STAYS_STOPPED;
    (void)child_exec_result(&worker->child, &error);
    worker_handle(worker, WORKER_EXECUTED);
    return STDIO_BUS_OK;
}

/* The code for errno, which the log has. */
static int refuse(struct host *host)
{
    if (errno == EBADF)
        return STDIO_BUS_ERR_INVALID;
    log_error(&host->log, host->endpoint.context, "cannot add a worker of the host: %s",
              strerror(errno));
    return STDIO_BUS_ERR;
}

int embedded_worker_add(struct host *host, int fd_to, int fd_from, const char *pool_id)
{
    struct embedded_worker *embedded = take_descriptors(fd_to, fd_from);
    struct worker *worker;
    struct pool *pool;
    int status;

    if (embedded == NULL)
        return refuse(host);
    pool = find_pool(host, pool_id);
    if (pool == NULL)
        pool = add_pool(host, pool_id);
    worker = pool != NULL ? add_worker(host, pool) : NULL;
    if (worker == NULL)
        goto fail;
    worker->program.dialer = &embedded->dialer;
    worker->program.name = "a worker of the host";
    worker->program.pipes_stderr = false;
    worker->options.same_socket = are_one_socket(fd_to, fd_from);
    if (start(worker) != STDIO_BUS_OK)
        goto fail;
    embedded->worker = worker;
    list_append(&host->embedded, &embedded->link);
    close(fd_to);
    if (fd_from != fd_to)
        close(fd_from);
    return (int)worker->number;

fail:
    status = refuse(host);
    if (worker != NULL)
        pools_remove_worker(host->bus, worker);
    close_both(embedded);
    free(embedded);
    return status;
}

/* Forgets a worker that is finished. */
static void forget(struct host *host, struct embedded_worker *embedded)
{
    list_remove(&embedded->link);
    pools_remove_worker(host->bus, embedded->worker);
    free(embedded);
}

int embedded_worker_remove(struct host *host, int number)
{
    struct list_node *node, *following, *pool, *next_pool;

    list_each(&host->embedded, node, following) {
        struct embedded_worker *embedded = worker_at(node);

        if (embedded->worker->number != (unsigned)number)
            continue;
        worker_stop(embedded->worker);
        worker_abandon(embedded->worker);
        forget(host, embedded);
        return STDIO_BUS_OK;
    }
    list_each(&host->bus->pools, pool, next_pool) {
        list_each(&list_entry(pool, struct pool, link)->workers, node, following) {
            if (list_entry(node, struct worker, link)->number == (unsigned)number)
                return STDIO_BUS_ERR_INVALID;
        }
    }
    return number > 0 && (unsigned)number <= host->bus->last_worker ? STDIO_BUS_OK
                                                                    : STDIO_BUS_ERR_INVALID;
}

void embedded_workers_remove_ended(struct host *host)
{
    struct list_node *node, *following;

    if (host->bus->phase >= BUS_PHASE_DRAINING)
        return;
    list_each(&host->embedded, node, following) {
        if (worker_finished(worker_at(node)->worker))
            forget(host, worker_at(node));
    }
}

void embedded_workers_free(struct host *host)
{
    struct list_node *node;

    while ((node = list_take_first(&host->embedded)) != NULL)
        free(worker_at(node));
    while ((node = list_take_first(&host->embedded_pools)) != NULL)
        free(list_entry(node, struct embedded_pool, link));
}
