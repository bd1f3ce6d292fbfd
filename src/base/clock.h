/* Monotonic time. Only the event loop, the log and the programs read clocks; everything else is
 * handed now_ms. */
#ifndef STDIO_BUS_BASE_CLOCK_H
#define STDIO_BUS_BASE_CLOCK_H

#include <stdint.h>

/* Milliseconds since some fixed point in the past; never goes back. */
int64_t clock_now_ms(void);

#endif
