#include "build_config.h"

#include "process/restart.h"

#include <stdlib.h>

#include "base/error.h"

int restart_init(struct restart_policy *policy, unsigned max_restarts, unsigned window_sec)
{
    *policy = (struct restart_policy){.max = max_restarts, .window_ms = (int64_t)window_sec * 1000};
    if (max_restarts == 0)
        return STDIO_BUS_OK;
    policy->times = calloc(max_restarts, sizeof *policy->times);
    return policy->times != NULL ? STDIO_BUS_OK : STDIO_BUS_ERR;
}

int restart_change(struct restart_policy *policy, unsigned max_restarts, unsigned window_sec)
{
    struct restart_policy changed;

    if (policy->max == max_restarts && policy->window_ms == (int64_t)window_sec * 1000)
        return STDIO_BUS_OK;
    if (restart_init(&changed, max_restarts, window_sec) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    changed.streak = policy->streak;
    changed.last_start_ms = policy->last_start_ms;
    restart_free(policy);
    *policy = changed;
    return STDIO_BUS_OK;
}

void restart_pardon(struct restart_policy *policy)
{
    policy->count = policy->next = 0;
}

void restart_forget(struct restart_policy *policy)
{
    restart_pardon(policy);
    policy->streak = 0;
    policy->last_start_ms = 0;
}

void restart_free(struct restart_policy *policy)
{
    free(policy->times);
    policy->times = NULL;
}

int64_t restart_delay(unsigned streak)
{
    int64_t delay = RESTART_DELAY_FIRST_MS;

    for (unsigned i = 0; i < streak && delay < RESTART_DELAY_MAX_MS; i++)
        delay *= RESTART_DELAY_FACTOR;
    return delay < RESTART_DELAY_MAX_MS ? delay : RESTART_DELAY_MAX_MS;
}

int64_t restart_after_exit(struct restart_policy *policy, int64_t now_ms)
{
    int64_t delay;

    /* No restart is left when the oldest of the last `max` is within the window. */
    if (policy->max == 0 ||
        (policy->count == policy->max && now_ms - policy->times[policy->next] < policy->window_ms))
        return -1;
    if (policy->streak > 0 && now_ms - policy->last_start_ms >= policy->window_ms)
        policy->streak = 0;
    delay = restart_delay(policy->streak++);
    policy->last_start_ms = now_ms + delay;
    policy->times[policy->next] = policy->last_start_ms;
    policy->next = (policy->next + 1) % policy->max;
    if (policy->count < policy->max)
        policy->count++;
    return delay;
}
