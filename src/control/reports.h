/* The events that the control socket reports, as JSON. */
#ifndef STDIO_BUS_CONTROL_REPORTS_H
#define STDIO_BUS_CONTROL_REPORTS_H

#include <stdint.h>

#include "json/text.h"

/* Texts are borrowed. */
struct event_report {
    uint64_t epoch_ms;
    const char *name;
    const char *of;   /* "client=3", "worker=2 pid=71" */
    const char *pool; /* NULL: there is none, as with the next */
    const char *text;
};

/* A notification, with its newline. */
void control_write_event(struct json_text *to, const struct event_report *event);

#endif
