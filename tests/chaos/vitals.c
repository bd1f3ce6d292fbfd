#include "build_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chaos.h"
#include "deadline.h"
#include "phases.h"
#include "proc.h"
#include "subject.h"

/* The allowed growth of memory at rest: the pool of small and large buffers (2.25 MiB), tables, and
 * the memory that the C library keeps for the next large message. */
#define RSS_SLACK_KIB (12L << 10)
#define LOOKS_AT_REST 20 /* one after the other */
#define IDLE_MS 1000
#define LOG_MAX_BYTES (16L << 20)

/* --- the log --- */

static void check_log_line(struct chaos *chaos, const char *line)
{
    static const char *const forbidden[] = {
        "AddressSanitizer",  "LeakSanitizer",          "runtime error:",
        "out of memory",     "cannot wait for events", "although it was killed",
        "cannot serve",      "cannot start",           "cannot accept",
        "log lines dropped", "no worker is left",      "failed: restarted",
    };

    for (size_t i = 0; i < sizeof forbidden / sizeof forbidden[0]; i++) {
        if (strstr(line, forbidden[i]) != NULL)
            violation(chaos, "the daemon's log says: %.300s", line);
    }
}

/* Checks the first 255 bytes of each line. */
static void take_log(struct chaos *chaos, const char *bytes, size_t len)
{
    struct subject *subject = &chaos->subject;

    for (size_t i = 0; i < len; i++) {
        if (bytes[i] != '\n') {
            if (subject->log_tail_len < sizeof subject->log_tail - 1)
                subject->log_tail[subject->log_tail_len++] = bytes[i];
            continue;
        }
        subject->log_tail[subject->log_tail_len] = '\0';
        check_log_line(chaos, subject->log_tail);
        subject->log_tail_len = 0;
    }
}

void subject_read_log(struct chaos *chaos)
{
    char bytes[16384];
    ssize_t got;

    while ((got = read(chaos->subject.log, bytes, sizeof bytes)) > 0)
        take_log(chaos, bytes, (size_t)got);
}

/* The daemon writes the log in append mode, so that it can be truncated. */
static void shorten_log(struct chaos *chaos)
{
    struct subject *subject = &chaos->subject;

    subject_read_log(chaos);
    if (chaos->verdict.violations > 0 || lseek(subject->log, 0, SEEK_CUR) < LOG_MAX_BYTES)
        return;
    if (truncate(subject->log_path, 0) == 0)
        lseek(subject->log, 0, SEEK_SET);
}

/* --- the numbers --- */

long subject_read_rss(const struct chaos *chaos)
{
    return getenv("TEST_NO_RSS") != NULL ? -1 : proc_status(chaos->subject.pid, "VmRSS");
}

void subject_take_baseline(struct chaos *chaos)
{
    chaos->baseline_fds = proc_fd_count(chaos->subject.pid);
    chaos->baseline_rss = subject_read_rss(chaos);
    chaos->baseline_size = fleet_size(chaos);
    note_event(chaos, "baseline: %ld descriptors, %ld KiB", chaos->baseline_fds,
               chaos->baseline_rss);
}

/* A process that outlived its worker must be gone once all workers are back. */
static bool has_orphans(struct chaos *chaos)
{
    pid_t children[8];

    subject_reap(chaos);
    return proc_children(getpid(), children, 8) > 1;
}

/* Two descriptors for each worker. */
static long wanted_fds(const struct chaos *chaos, unsigned clients)
{
    return chaos->baseline_fds + (long)clients +
           2 * ((long)fleet_size(chaos) - (long)chaos->baseline_size);
}

static const char *name_zombie(const struct chaos *chaos)
{
    static char text[64];
    pid_t children[256];
    size_t count = proc_children(chaos->subject.pid, children, 256), i;

    for (i = 0; i < count && i < 256; i++) {
        if (proc_state(children[i]) != 'Z')
            continue;
        snprintf(text, sizeof text, "the daemon's child %ld is a zombie", (long)children[i]);
        return text;
    }
    return NULL;
}

/* What is not yet as it should be at rest, or NULL. */
static const char *find_unrest(struct chaos *chaos, unsigned clients)
{
    static char text[128];
    long fds = proc_fd_count(chaos->subject.pid), wanted = wanted_fds(chaos, clients);

    if (fds != wanted) {
        snprintf(text, sizeof text,
                 "%ld descriptors are open, should be %ld; %u clients are connected", fds, wanted,
                 clients);
        return text;
    }
    if (has_orphans(chaos))
        return "a grandchild outlived its worker";
    if (!fleet_complete(chaos))
        return "the workers are not complete and idle again";
    return name_zombie(chaos);
}

void subject_check_baseline(struct chaos *chaos, unsigned clients)
{
    int64_t deadline = deadline_in(chaos->options.hostile != 0 ? 10 + SIEGE_BACKLOG_SEC : 10);
    const char *unrest = NULL;
    unsigned looks = 0;
    long rss;

    /* The descriptors of a client whose end the daemon has not seen, and those of a worker that
     * ends, may make up for each other: for a moment. */
    while (looks < LOOKS_AT_REST && !deadline_over(deadline)) {
        unrest = find_unrest(chaos, clients);
        looks = unrest == NULL ? looks + 1 : 0;
        chaos_step(chaos, 10);
        if (chaos->subject.pid == 0)
            return;
    }
    if (unrest != NULL)
        violation(chaos, "%s", unrest);
    rss = subject_read_rss(chaos);
    note_event(chaos, "at rest: %ld KiB", rss);
    if (rss > chaos->baseline_rss + RSS_SLACK_KIB)
        violation(chaos, "memory at rest is %ld KiB, %ld at the start, %ld may be added", rss,
                  chaos->baseline_rss, RSS_SLACK_KIB);
    shorten_log(chaos);
}

void subject_check_idle(struct chaos *chaos)
{
    int64_t end = now_ms() + IDLE_MS;
    long cpu = proc_cpu_ms(chaos->subject.pid);
    long wakeups = proc_status(chaos->subject.pid, "voluntary_ctxt_switches");

    while (now_ms() < end)
        chaos_step(chaos, 100);
    if (chaos->subject.pid == 0)
        return;
    cpu = proc_cpu_ms(chaos->subject.pid) - cpu;
    wakeups = proc_status(chaos->subject.pid, "voluntary_ctxt_switches") - wakeups;
    note_event(chaos, "an idle second: %ld ms of CPU, %ld wakeups", cpu, wakeups);
    if (cpu > 10) /* one tick of the kernel's clock */
        violation(chaos, "%ld ms of CPU in an idle second", cpu);
    if (wakeups > 3 && !chaos->options.lazy) /* a timer that is about to stop, a signal */
        violation(chaos, "%ld wakeups in an idle second", wakeups);
}
