/* Monotonic time. The event loop, the log and the client side read the clock; all other files get
 * now_ms. */
#ifndef STDIO_BUS_BASE_CLOCK_H
#define STDIO_BUS_BASE_CLOCK_H

#include <stdint.h>

/* Milliseconds since a fixed point in the past; never decreases. */
int64_t clock_now_ms(void);

#endif
