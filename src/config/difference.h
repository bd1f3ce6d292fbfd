/* What changes between two configurations that are both valid. */
#ifndef STDIO_BUS_CONFIG_DIFFERENCE_H
#define STDIO_BUS_CONFIG_DIFFERENCE_H

#include "config/config.h"

enum pool_change {
    POOL_SAME,    /* but for the number of workers, the spare ones and the length of timeouts */
    POOL_PROGRAM, /* its workers run another program, or the same one otherwise */
    POOL_SHARING, /* its clients share the workers in another way: it is another pool */
};

enum pool_change difference_of_pools(const struct pool_config *before,
                                     const struct pool_config *after);

/* Whether both listen at the same place for clients of the same kind. */
bool difference_same_place(const struct listen_address *one, const struct listen_address *other);

/* Whether a socket of the file system gets another mode or group. */
bool difference_of_access(const struct access *before, const struct access *after);

/* Whether the keys of the topic bus are others, as far as they are numbers, paths and switches. */
bool difference_of_rmp(const struct rmp_config *before, const struct rmp_config *after);

/* Whether two texts differ; each may be NULL. */
bool difference_of_texts(const char *before, const char *after);

#endif
