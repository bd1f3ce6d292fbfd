#include "build_config.h"

#include "supervisor/busy.h"

#include "router/handshake.h"
#include "router/pending.h"

bool busy_with_anything(const struct peer *worker)
{
    const struct list_node *node;

    if (!list_empty(&worker->asked) || peer_held(worker) || handshake_is_busy(worker->handshake))
        return true;
    for (node = worker->answering.head.next; node != &worker->answering.head; node = node->next) {
        if (list_entry(node, struct request, in_answerer)->state == REQUEST_ACTIVE)
            return true;
    }
    return false;
}
