#include "build_config.h"

#include "bus/depart.h"

#include "bus/cancel.h"
#include "bus/deliver.h"
#include "bus/errands.h"
#include "bus/retire.h"
#include "router/departure.h"

void depart_unanswered(void *user_data, const struct request *request)
{
    (void)user_data;
    deliver_error(endpoint_of_peer(request->asker), request->asker_id, JSONRPC_SERVER_ERROR,
                  "client disconnected before answering");
}

void depart_client(struct endpoint *endpoint)
{
    struct stdio_bus *bus = endpoint->bus;
    struct peer *peer = &endpoint->peer;
    bool was_admitted = peer->admitted;

    cancel_requests_of(bus, peer);
    retire_processes_of(peer);
    bus->router.demand = true;
    bus_read_clock(bus);
    departure_client(&bus->router, peer, depart_unanswered, bus);
    errands_run(bus);
    if (was_admitted && bus->router.client_count == 0)
        bus_start_idle(bus);
    stdio_bus_event_loop_stop_timer(bus->loop, &endpoint->hold_timer);
}
