#include "build_config.h"

#include "deadline.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>

int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

double timeout_factor(void)
{
    const char *text = getenv("TEST_TIMEOUT_FACTOR");
    double factor = text != NULL ? strtod(text, NULL) : 1;
    return factor > 1 ? factor : 1;
}

int64_t deadline_in(double seconds)
{
    return now_ms() + (int64_t)(seconds * 1000 * timeout_factor());
}

int64_t deadline_usual(void)
{
    return deadline_in(30);
}

int deadline_left_ms(int64_t deadline)
{
    int64_t left = deadline - now_ms();
    return left > 0 ? (int)left : 0;
}

bool deadline_over(int64_t deadline)
{
    return now_ms() >= deadline;
}

bool wait_fd(int fd, short events, int64_t deadline)
{
    struct pollfd ready = {.fd = fd, .events = events};
    for (;;) {
        int n = poll(&ready, 1, deadline_left_ms(deadline));
        if (n > 0)
            return true;
        if (n == 0 || errno != EINTR)
            return false;
    }
}

void nap(void)
{
    struct timespec moment = {.tv_sec = 0, .tv_nsec = 2000000};
    nanosleep(&moment, NULL);
}
