#include "build_config.h"

#include "bus/descriptor_limit.h"

#include <errno.h>
#include <string.h>

#include "bus/service.h"

void descriptor_limit_raise(struct stdio_bus *bus)
{
    struct rlimit wanted;
    rlim_t need = 32 + 4 * (rlim_t)bus->router.worker_count;

    if (bus->options.listen_count > 0 || bus->options.rmp_path != NULL)
        need += (rlim_t)bus->options.config->limits.max_connections * 3 / 2 + 1;
    need += services_descriptors(bus);
    if (!bus->has_nofile)
        return;
    wanted = bus->nofile;
    if (wanted.rlim_cur == RLIM_INFINITY || wanted.rlim_cur >= need)
        return;
    wanted.rlim_cur = need;
    if (wanted.rlim_max != RLIM_INFINITY && wanted.rlim_max < need)
        wanted.rlim_cur = wanted.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &wanted) < 0)
        log_warn(bus->log, "", "the limit of %llu open files cannot be raised to %llu: %s",
                 (unsigned long long)bus->nofile.rlim_cur, (unsigned long long)wanted.rlim_cur,
                 strerror(errno));
    else if (wanted.rlim_cur < need)
        log_warn(bus->log, "", "the limit of %llu open files may be too low: %llu may be needed",
                 (unsigned long long)wanted.rlim_cur, (unsigned long long)need);
}
