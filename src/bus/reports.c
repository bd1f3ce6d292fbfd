#include "build_config.h"

#include "bus/reports.h"

#include "bus/deliver.h"
#include "bus/service.h"

void reports_send(struct stdio_bus *bus, const char *name, const char *of, const char *pool,
                  const char *text)
{
    const struct bus_report report = {.name = name, .of = of, .pool = pool, .text = text};

    each_service(bus, at, report)
        at.service->report(at.state, &report);
}

/* --- clients --- */

void reports_client_came(struct stream *client, const struct origin *origin)
{
    struct endpoint *endpoint = &client->endpoint;
    struct stdio_bus *bus = endpoint->bus;

    endpoint->since_ms = stdio_bus_event_loop_now_ms(bus->loop);
    bus->counters.connected++;
    reports_send(bus, "connected", endpoint->context, NULL, origin->text);
}

void reports_client_gone(struct stream *client, const char *reason)
{
    struct endpoint *endpoint = &client->endpoint;
    struct stdio_bus *bus = endpoint->bus;

    deliver_end_hold(endpoint);
    connection_move_traffic(&client->connection, &bus->counters.gone);
    if (endpoint->since_ms != 0) /* one that was refused has not come */
        reports_send(bus, "disconnected", endpoint->context, NULL, reason);
}

void reports_session_came(struct endpoint *session, const char *of)
{
    struct stdio_bus *bus = session->bus;

    session->since_ms = stdio_bus_event_loop_now_ms(bus->loop);
    bus->counters.http_sessions++;
    reports_send(bus, "connected", session->context, NULL, of);
}

void reports_session_gone(struct endpoint *session, const char *reason)
{
    deliver_end_hold(session);
    reports_send(session->bus, "disconnected", session->context, NULL, reason);
}

/* --- workers --- */

void reports_worker_started(struct worker *worker)
{
    struct endpoint *endpoint = &worker->stream.endpoint;
    struct stdio_bus *bus = endpoint->bus;

    endpoint->since_ms = stdio_bus_event_loop_now_ms(bus->loop);
    worker->starts++;
    reports_send(bus, "started", endpoint->context, worker->pool_id, NULL);
}

void reports_worker_finished(struct worker *worker)
{
    struct endpoint *endpoint = &worker->stream.endpoint;
    char text[80];

    deliver_end_hold(endpoint);
    connection_move_traffic(&worker->stream.connection, &worker->carried);
    process_status_text(text, sizeof text, worker->child.status);
    reports_send(endpoint->bus, worker_failed(worker) ? "failed" : "exited", endpoint->context,
                 worker->pool_id, text);
    if (timer_started(&worker->deadline))
        worker->restarts++;
}
