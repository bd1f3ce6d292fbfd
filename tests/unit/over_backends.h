/* OVER_EACH_BACKEND: each test of the program runs over each event backend that is compiled in,
 * between `set_up_over(backend)` and `tear_down`. */
#ifndef CHECK_OVER_BACKENDS_H
#define CHECK_OVER_BACKENDS_H

#include "event/backend.h"
#include "suite.h"

#define OVER_BACKEND(name)                                                                         \
    static void set_up_##name(void)                                                                \
    {                                                                                              \
        set_up_over(&event_backend_##name);                                                        \
    }                                                                                              \
    FIXTURE(set_up_##name, tear_down)

#ifdef HAVE_SYS_EPOLL_H
#define OVER_EPOLL OVER_BACKEND(epoll)
#else
#define OVER_EPOLL
#endif
#if defined(HAVE_KQUEUE) || defined(TEST_KQUEUE)
#define OVER_KQUEUE OVER_BACKEND(kqueue)
#else
#define OVER_KQUEUE
#endif
#define OVER_EACH_BACKEND OVER_EPOLL OVER_KQUEUE OVER_BACKEND(poll)

#endif
