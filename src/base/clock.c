#include "build_config.h"

#include "base/clock.h"

#include <time.h>

int64_t clock_now_ms(void)
{
    struct timespec now = {0, 0};

    /* Fails only on a system without a monotonic clock. */
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t clock_now_us(void)
{
    struct timespec now = {0, 0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

uint64_t clock_epoch_ms(void)
{
    struct timespec now = {0, 0};

    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        now.tv_sec = time(NULL);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}
