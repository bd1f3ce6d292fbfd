#include "build_config.h"

#include "upgrades.h"

#include <signal.h>

#include "deadline.h"

bool upgrades_step(struct upgrades *upgrades, struct dice *dice, pid_t daemon)
{
    int64_t ms = now_ms();

    if (upgrades->apart_ms == 0 || daemon == 0 || ms < upgrades->next_ms)
        return false;
    upgrades->next_ms = ms + dice_between(dice, 1, upgrades->apart_ms);
    upgrades->count++;
    kill(daemon, SIGUSR2);
    return true;
}
