/* Reports of the bus to a service manager, in the protocol of sd_notify(3). Without one
 * (options.notify is NULL) nothing happens. */
#ifndef STDIO_BUS_BUS_NOTIFIER_H
#define STDIO_BUS_BUS_NOTIFIER_H

#include "bus/state.h"

/* Once, before the others. */
void notifier_init(struct stdio_bus *bus);

/* Begins to report, and to answer the manager's watchdog as long as the event loop turns. */
void notifier_start(struct stdio_bus *bus);

/* The number of clients or of workers may have changed: a report follows within a second. */
void notifier_changed(struct stdio_bus *bus);

/* A reload begins: reports it. notifier_phase reports its end. */
void notifier_reloading(struct stdio_bus *bus);

/* The phase has changed: reports it now. */
void notifier_phase(struct stdio_bus *bus);

/* Idempotent. */
void notifier_stop(struct stdio_bus *bus);

#endif
