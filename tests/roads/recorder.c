/* Linked into the instrumented daemon: records each entry and exit of a function of src. */
#include "build_config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include "roads/trace.h"

void __cyg_profile_func_enter(void *function, void *call_site);
void __cyg_profile_func_exit(void *function, void *call_site);

static struct trace *trace;
static pid_t recorded; /* children of the daemon are not */

__attribute__((constructor)) static void start_recording(void)
{
    int fd = open(TRACE_FILE, O_RDWR | O_CLOEXEC);
    void *shared = mmap(NULL, sizeof *trace, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (shared == MAP_FAILED)
        abort();
    close(fd);
    recorded = getpid();
    trace = shared;
}

static void record(void *function, unsigned kind)
{
    if (trace == NULL || trace->count >= TRACE_EVENTS_MAX || getpid() != recorded)
        return;
    trace->events[trace->count] = (uint64_t)(uintptr_t)function << 1 | kind;
    trace->count++;
}

void __cyg_profile_func_enter(void *function, void *call_site)
{
    (void)call_site;
    record(function, TRACE_ENTRY);
}

void __cyg_profile_func_exit(void *function, void *call_site)
{
    (void)call_site;
    record(function, TRACE_EXIT);
}
