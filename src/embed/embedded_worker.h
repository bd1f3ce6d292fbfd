/* Embedded workers: without a process, over descriptors of the host's. */
#ifndef STDIO_BUS_EMBED_EMBEDDED_WORKER_H
#define STDIO_BUS_EMBED_EMBEDDED_WORKER_H

struct host;

/* As stdio_bus_register_embedded_worker, in a bus that runs. */
int embedded_worker_add(struct host *host, int fd_to, int fd_from, const char *pool_id);

/* As stdio_bus_unregister_embedded_worker. */
int embedded_worker_remove(struct host *host, int number);

/* Removes those whose descriptors have ended. */
void embedded_workers_remove_ended(struct host *host);

/* Frees what is left, after the bus. */
void embedded_workers_free(struct host *host);

#endif
