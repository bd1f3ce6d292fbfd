#include "build_config.h"

#include "router/penalty.h"

#include "router/eras.h"
#include "router/shares.h"

bool penalty_holds(struct decision *decision, struct group *pool)
{
    struct list_node *node, *following;

    list_each(&eras_claimed(pool)->penalties, node, following) {
        struct penalty *penalty = list_entry(node, struct penalty, link);

        if (penalty->origin != decision->from->origin || !penalty->delays)
            continue;
        shares_end_claim(decision->from);
        decision_hold(decision, &penalty->held, HELD_FOR_PROCESS);
        return true;
    }
    return false;
}
