/* How much a test repeats: less of it in an emulator (TEST_EMULATOR), where all takes ten times as
 * long, and with TEST_FEWER, for .ci/run, of which .ci/nightly repeats all. What is looked at stays
 * the same. */
#ifndef CHECK_TURNS_H
#define CHECK_TURNS_H

#include <stdbool.h>
#include <stdlib.h>

static inline bool in_emulator(void)
{
    return getenv("TEST_EMULATOR") != NULL;
}

/* Of what is done at random, or over and over. */
static inline int turns(int usual)
{
    if (in_emulator())
        return usual / 10;
    return getenv("TEST_FEWER") != NULL ? usual / 8 : usual;
}

#endif
