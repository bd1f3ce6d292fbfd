/* Frames as text and as JSON, on stdout. */
#ifndef STDIO_BUS_CLI_RMP_SHOW_H
#define STDIO_BUS_CLI_RMP_SHOW_H

#include "cli/rmp_link.h"
#include "rmp/frame.h"

/* A line: {"topic":..., "frame_len":..., "header":{...}, "body":{...}}, without a topic if that is
 * NULL, and with "body" in base64 if it is no envelope. `judged`: RMP_OK, or the error of the
 * frame, as "error". */
void rmp_show_json(const char *topic, const struct rmp_received *frame, enum rmp_error judged);

/* A line: topic, type and payload. */
void rmp_show_line(const char *topic, const struct rmp_received *frame);

/* A table of the header, and the body. */
void rmp_show_table(const struct rmp_received *frame, enum rmp_error judged);

/* A line of the ladder of a trace; `first_ms` is the time of its first message. */
void rmp_show_hop(unsigned long long number, uint64_t first_ms, const char *topic,
                  const struct rmp_received *frame);

/* A member of a MsgPack map as text: a string as it is, anything else as JSON; "" if there is none.
 * To be freed; NULL if out of memory. */
char *rmp_show_member(struct slice map, const char *key);

#endif
