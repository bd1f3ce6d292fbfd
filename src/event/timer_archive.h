/* Timers in an archive: whether one is started, and its time, which is that of the whole system. */
#ifndef STDIO_BUS_EVENT_TIMER_ARCHIVE_H
#define STDIO_BUS_EVENT_TIMER_ARCHIVE_H

#include "base/archive.h"
#include "event/event_loop.h"

static inline void timer_archive(struct archive *archive, struct stdio_bus_event_loop *loop,
                                 struct timer *timer)
{
    int64_t deadline_ms = timer_deadline_ms(timer);
    bool started = timer_started(timer);

    archive_flag(archive, &started);
    ARCHIVE_INTEGER(archive, deadline_ms);
    if (!archive->saves && started && archive_ok(archive))
        timers_start(stdio_bus_event_loop_timers(loop), timer, deadline_ms);
}

#endif
