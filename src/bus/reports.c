#include "build_config.h"

#include "bus/reports.h"

#include "bus/deliver.h"
#include "bus/service.h"

static void send_report(struct stdio_bus *bus, const struct bus_report *report)
{
    each_service(bus, at, report)
        at.service->report(at.state, report);
}

void reports_send(struct stdio_bus *bus, const char *name, const char *of, const char *pool,
                  const char *text)
{
    const struct bus_report report = {.name = name, .of = of, .pool = pool, .text = text};

    send_report(bus, &report);
}

/* --- clients --- */

void reports_client_came(struct stream *client, unsigned number, const struct origin *origin)
{
    struct endpoint *endpoint = &client->endpoint;
    struct stdio_bus *bus = endpoint->bus;
    const struct bus_report report = {
        .name = "connected", .of = endpoint->context, .text = origin->text, .number = number};

    endpoint->since_ms = stdio_bus_event_loop_now_ms(bus->loop);
    bus->counters.connected++;
    send_report(bus, &report);
}

void reports_client_gone(struct stream *client, unsigned number, const char *reason)
{
    struct endpoint *endpoint = &client->endpoint;
    struct stdio_bus *bus = endpoint->bus;
    const struct bus_report report = {
        .name = "disconnected", .of = endpoint->context, .text = reason, .number = number};

    deliver_end_hold(endpoint);
    connection_move_traffic(&client->connection, &bus->counters.gone);
    if (endpoint->since_ms != 0) /* one that was refused has not come */
        send_report(bus, &report);
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
    const struct bus_report report = {.name = "started",
                                      .of = endpoint->context,
                                      .pool = worker->pool_id,
                                      .number = worker->number};

    endpoint->since_ms = stdio_bus_event_loop_now_ms(bus->loop);
    worker->starts++;
    send_report(bus, &report);
}

void reports_worker_finished(struct worker *worker)
{
    struct endpoint *endpoint = &worker->stream.endpoint;
    const struct stdio_bus *bus = endpoint->bus;
    char text[80];
    const struct bus_report report = {
        .name = worker_failed(worker) ? "failed" : "exited",
        .of = endpoint->context,
        .pool = worker->pool_id,
        .text = process_status_text(text, sizeof text, worker->child.status),
        .number = worker->number,
        .restarts = timer_started(&worker->deadline),
    };

    endpoint->since_ms = stdio_bus_event_loop_now_ms(bus->loop);
    deliver_end_hold(endpoint);
    connection_move_traffic(&worker->stream.connection, &worker->carried);
    worker->restarts += report.restarts;
    send_report(endpoint->bus, &report);
}
