/* Assertions for loops of many thousand turns. libcheck's own note down each place that they pass,
 * which takes far longer than what they look at. */
#ifndef CHECK_QUICK_ASSERT_H
#define CHECK_QUICK_ASSERT_H

#include <check.h>

#define QUICK_ASSERT_MSG(condition, ...)                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ck_abort_msg(__VA_ARGS__);                                                             \
    } while (0)
#define QUICK_ASSERT(condition) QUICK_ASSERT_MSG(condition, "not true: %s", #condition)

#endif
