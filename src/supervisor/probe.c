#include "build_config.h"

#include "supervisor/probe.h"

#include "base/error.h"
#include "bus/deliver.h"
#include "router/eras.h"
#include "router/waiting.h"

#define PROBE_MS 30000 /* a server may be downloaded before it starts */
#define RETRY_MS 100   /* after running out of memory */

#define MCP "\"io.modelcontextprotocol/"

/* No id of the daemon's own numbers, which are even. */
static const char line[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\","
                           "\"params\":{\"_meta\":{" MCP "protocolVersion\":\"2026-07-28\"," MCP
                           "clientInfo\":{\"name\":\"stdio_bus\",\"version\":\"" PACKAGE_VERSION
                           "\"}," MCP "clientCapabilities\":{}}}}\n";

static struct stdio_bus *bus_of(const struct worker *worker)
{
    return worker->stream.endpoint.bus;
}

/* The probe's timeout is at most the pool's. */
static int64_t time_of(const struct worker *worker)
{
    int64_t timeout_ms = (int64_t)worker->stream.endpoint.peer.pool->mode.request_timeout_sec *
                         1000;

    return timeout_ms > 0 && timeout_ms < PROBE_MS ? timeout_ms : PROBE_MS;
}

/* Clients of exclusive processes can cause some of these lines. */
static void report(const struct worker *worker, const char *text)
{
    log_repeated(bus_of(worker)->log, LOG_LEVEL_INFO, worker->stream.endpoint.context,
                 LOG_NO_SOURCE, "%s", text);
}

bool probe_begin(struct worker *worker)
{
    struct endpoint *endpoint = &worker->stream.endpoint;

    if (!endpoint->peer.probed || worker->probe_sent || timer_started(&worker->probe))
        return false;
    worker->probe_sent = deliver_line(endpoint, slice_of(line, sizeof line - 1)) == STDIO_BUS_OK;
    stdio_bus_event_loop_start_timer(bus_of(worker)->loop, &worker->probe,
                                     worker->probe_sent ? time_of(worker) : RETRY_MS);
    if (worker->probe_sent)
        report(worker, "asked whether its server serves the stateless era of MCP");
    return worker->probe_sent;
}

void probe_take_answer(struct worker *worker, const struct message *answer)
{
    struct stdio_bus *bus = bus_of(worker);
    struct peer *peer = &worker->stream.endpoint.peer;

    stdio_bus_event_loop_stop_timer(bus->loop, &worker->probe);
    if (!eras_probe_answered(&bus->router, peer, answer)) {
        report(worker, "its server refuses the stateless era of MCP");
        return;
    }
    report(worker, "its server serves the stateless era of MCP");
    if (worker->state == WORKER_RUNNING)
        waiting_worker_available(&bus->router, peer, PEER_READY);
}

void probe_process_ended(struct worker *worker)
{
    stdio_bus_event_loop_stop_timer(bus_of(worker)->loop, &worker->probe);
    worker->probe_sent = false;
}

void probe_expired(void *user_data)
{
    struct worker *worker = user_data;
    struct stdio_bus *bus = bus_of(worker);

    if (!worker->probe_sent) {
        bus->router.demand = true;
        return;
    }
    report(worker, "its server did not answer in time: it refuses the stateless era of MCP");
    eras_probe_expired(&bus->router, &worker->stream.endpoint.peer);
}
