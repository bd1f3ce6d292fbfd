#include "build_config.h"

#include "bus/reap.h"

#include "bus/workers.h"
#include "process/pool.h"

static struct worker *worker_of_process(struct stdio_bus *bus, pid_t pid)
{
    struct list_node *pool, *next_pool, *node, *following;

    list_each(&bus->pools, pool, next_pool) {
        list_each(&list_entry(pool, struct pool, link)->workers, node, following) {
            struct worker *worker = list_entry(node, struct worker, link);

            if (worker->child.pid == pid)
                return worker;
        }
    }
    return NULL;
}

/* The exit of a worker that is seen here is the worker's to read: its status must not be lost. */
static void reap_adopted(struct stdio_bus *bus)
{
    pid_t pid;
    int status;

    while ((pid = process_exited()) > 0) {
        struct worker *worker = worker_of_process(bus, pid);

        if (worker != NULL) {
            worker_check_exit(worker);
            if (worker->child.pid == pid)
                return;
        } else if (process_reap(pid, &status)) {
            log_debug(bus->log, "", "reaped process %ld, which had lost its parent", (long)pid);
        } else {
            return;
        }
    }
}

void workers_reap(struct stdio_bus *bus)
{
    workers_each(bus, worker_check_exit);
    if (bus->adopts)
        reap_adopted(bus);
}
