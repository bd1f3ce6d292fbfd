/* The clocks. The event loop, the log, the client side, topics/hub.c and federation/ read them; all
 * other files get the time. */
#ifndef STDIO_BUS_BASE_CLOCK_H
#define STDIO_BUS_BASE_CLOCK_H

#include <stdint.h>

/* Milliseconds since a fixed point in the past; never decreases. */
int64_t clock_now_ms(void);

/* The same in microseconds. */
int64_t clock_now_us(void);

/* Milliseconds since 1970, by the calendar: may go back, or ahead. */
uint64_t clock_epoch_ms(void);

#endif
