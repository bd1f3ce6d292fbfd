#include "build_config.h"

#include "process/restart.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

int restart_init(struct restart_policy *policy, unsigned max_restarts, unsigned window_sec)
{
    memset(policy, 0, sizeof *policy);
    policy->max = max_restarts;
    policy->window_ms = (int64_t)window_sec * 1000;
    if (max_restarts == 0)
        return STDIO_BUS_OK;
    policy->times = calloc(max_restarts, sizeof *policy->times);
    return policy->times != NULL ? STDIO_BUS_OK : STDIO_BUS_ERR;
}

void restart_forget(struct restart_policy *policy)
{
    policy->count = policy->next = policy->streak = 0;
}

void restart_free(struct restart_policy *policy)
{
    free(policy->times);
    policy->times = NULL;
}

/* True when the oldest of the last `max` restarts is within the window. */
static int exhausted(const struct restart_policy *policy, int64_t now_ms)
{
    if (policy->max == 0)
        return 1;
    return policy->count == policy->max && now_ms - policy->times[policy->next] < policy->window_ms;
}

static int64_t delay_of(unsigned streak)
{
    int64_t delay = RESTART_DELAY_FIRST_MS;

    while (streak-- > 0 && delay < RESTART_DELAY_MAX_MS)
        delay *= RESTART_DELAY_FACTOR;
    return delay < RESTART_DELAY_MAX_MS ? delay : RESTART_DELAY_MAX_MS;
}

int64_t restart_after_exit(struct restart_policy *policy, int64_t now_ms)
{
    int64_t delay;

    if (exhausted(policy, now_ms))
        return -1;
    if (policy->streak > 0 && now_ms - policy->last_start_ms >= policy->window_ms)
        policy->streak = 0;
    delay = delay_of(policy->streak++);
    policy->last_start_ms = now_ms + delay;
    policy->times[policy->next] = policy->last_start_ms;
    policy->next = (policy->next + 1) % policy->max;
    if (policy->count < policy->max)
        policy->count++;
    return delay;
}
