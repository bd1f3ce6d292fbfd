#include "build_config.h"

#include "router/outcomes.h"

/* The counts of the worker's group: one side of a request is a worker. */
static struct request_counts *counts_of(const struct request *request)
{
    struct group *answering = request->answerer->pool;

    return answering != NULL ? &answering->asked : &request->asker->pool->asking;
}

void outcomes_note(struct router *router, const struct request *request,
                   enum request_outcome outcome)
{
    struct request_counts *counts;

    if (!router->measures || request->state != REQUEST_ACTIVE)
        return;
    counts = counts_of(request);
    counts->outcomes[outcome]++;
    if (outcome == OUTCOME_RESULT || outcome == OUTCOME_ERROR)
        request_counts_add_time(counts, router->now_ms - request->asked_ms);
}
