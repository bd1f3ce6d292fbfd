/* The lines of the log about a decision. */
#ifndef STDIO_BUS_BUS_DELIVERY_LOG_H
#define STDIO_BUS_BUS_DELIVERY_LOG_H

#include "bus/state.h"
#include "router/decision.h"

/* "discarded a message (id 7, sessionId none): TEXT", as a warning, or else for debugging. */
void delivery_log(const struct decision *decision, struct stdio_bus *bus, bool warns,
                  const char *done, const char *between, const char *text);

/* A request can be followed by its ids: each line has that of the sender, and that of the
 * destination if it is another. */
__attribute__((cold)) void delivery_log_forwarded(const struct decision *decision,
                                                  struct stdio_bus *bus, const char *to);

/* The session of an answer has another client now. */
void delivery_log_moved_session(const struct decision *decision, struct stdio_bus *bus);

#endif
