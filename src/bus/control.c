#include "build_config.h"

#include "bus/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "bus/deliver.h"
#include "bus/listeners.h"
#include "bus/notifier.h"
#include "control/reports.h"
#include "control/request.h"
#include "control/row.h"
#include "json/message.h"

struct control *control_create(struct stdio_bus *bus)
{
    struct control *control = calloc(1, sizeof *control);

    if (control == NULL)
        return NULL;
    control->bus = bus;
    list_init(&control->clients);
    control->started_ms = stdio_bus_event_loop_now_ms(bus->loop);
    control->started_epoch_ms = clock_epoch_ms();
    router_measure(&bus->router);
    event_loop_measure(bus->loop);
    return control;
}

void control_destroy(struct control *control)
{
    free(control);
}

/* --- clients of the socket --- */

void control_remove(struct control_client *client, const char *reason)
{
    struct control *control = client->control;

    if (!list_linked(&client->link))
        return;
    log_debug(control->bus->log, client->context, "disconnected: %s", reason);
    list_remove(&client->link);
    control->client_count--;
    control->watcher_count -= client->watches;
    connection_close(&client->connection);
    stdio_bus_event_loop_defer(control->bus->loop, &client->deferred, free, client);
    listeners_descriptor_freed(control->bus);
    control->bus->end_noted = true;
}

void control_send(struct control_client *client, const struct json_text *line)
{
    if (client->connection.full)
        control_remove(client, "it does not read");
    else if (line->failed ||
             connection_send_line(&client->connection, NULL, json_text_slice(line)) != STDIO_BUS_OK)
        control_remove(client, strerror(ENOMEM));
}

/* --- events --- */

void control_report(struct stdio_bus *bus, const char *name, const char *of, const char *pool,
                    const char *text)
{
    struct control *control = bus->control;
    struct event_report event = {.name = name, .of = of, .pool = pool, .text = text};
    struct list_node *node, *following;
    struct json_text line = {.data = NULL};

    if (control == NULL || control->watcher_count == 0)
        return;
    event.epoch_ms = clock_epoch_ms();
    control_write_event(&line, &event);
    list_each(&control->clients, node, following) {
        struct control_client *client = list_entry(node, struct control_client, link);

        if (client->watches)
            control_send(client, &line);
    }
    json_text_free(&line);
}

void control_client_came(struct stream *client, const struct origin *origin)
{
    struct endpoint *endpoint = &client->endpoint;
    struct stdio_bus *bus = endpoint->bus;

    endpoint->since_ms = stdio_bus_event_loop_now_ms(bus->loop);
    bus->counters.connected++;
    control_report(bus, "connected", endpoint->context, NULL, origin->text);
}

void control_session_came(struct endpoint *session, const char *of)
{
    struct stdio_bus *bus = session->bus;

    session->since_ms = stdio_bus_event_loop_now_ms(bus->loop);
    bus->counters.http_sessions++;
    control_report(bus, "connected", session->context, NULL, of);
}

void control_session_gone(struct endpoint *session, const char *reason)
{
    deliver_end_hold(session);
    control_report(session->bus, "disconnected", session->context, NULL, reason);
}

void control_client_gone(struct stream *client, const char *reason)
{
    struct endpoint *endpoint = &client->endpoint;
    struct stdio_bus *bus = endpoint->bus;

    deliver_end_hold(endpoint);
    connection_move_traffic(&client->connection, &bus->counters.gone);
    if (endpoint->since_ms != 0) /* one that was refused has not come */
        control_report(bus, "disconnected", endpoint->context, NULL, reason);
}

void control_worker_available(struct worker *worker, enum peer_availability availability)
{
    struct endpoint *endpoint = &worker->stream.endpoint;
    struct stdio_bus *bus = endpoint->bus;

    if (availability != PEER_READY)
        return;
    endpoint->since_ms = stdio_bus_event_loop_now_ms(bus->loop);
    worker->starts++;
    control_report(bus, "started", endpoint->context, worker->pool_id, NULL);
}

void control_worker_finished(struct worker *worker)
{
    struct endpoint *endpoint = &worker->stream.endpoint;
    struct stdio_bus *bus = endpoint->bus;
    char text[80];

    notifier_changed(bus);
    deliver_end_hold(endpoint);
    connection_move_traffic(&worker->stream.connection, &worker->carried);
    process_status_text(text, sizeof text, worker->child.status);
    control_report(bus, worker_failed(worker) ? "failed" : "exited", endpoint->context,
                   worker->pool_id, text);
    if (timer_started(&worker->deadline))
        worker->restarts++;
    if (!worker->restart_asked)
        return;
    worker->restart_asked = false;
    if (bus->phase < BUS_PHASE_DRAINING)
        worker_handle(worker, WORKER_DEADLINE);
}

/* --- an upgrade --- */

static void answer_upgrade(struct control_client *client, const char *before, const char *problem)
{
    struct slice id = slice_of(client->upgrade_id, strlen(client->upgrade_id));
    struct json_text line = {.data = NULL}, result = {.data = NULL};

    client->awaits_upgrade = false;
    if (id.len == 0)
        return;
    row_begin(&result, NULL, '{');
    row_string(&result, "before", before);
    row_string(&result, "version", PACKAGE_VERSION);
    row_end(&result, '}');
    if (problem != NULL)
        control_write_error(&line, id, JSONRPC_SERVER_ERROR, problem);
    else
        control_write_result(&line, id, json_text_slice(&result));
    line.failed |= result.failed;
    control_send(client, &line);
    json_text_free(&result);
    json_text_free(&line);
}

void control_upgraded(struct stdio_bus *bus, const char *before, const char *problem)
{
    struct list_node *node, *following;

    if (problem == NULL)
        control_report(bus, "upgraded", NULL, NULL, PACKAGE_VERSION);
    else
        control_report(bus, "not upgraded", NULL, NULL, problem);
    if (bus->control == NULL)
        return;
    list_each(&bus->control->clients, node, following) {
        struct control_client *client = list_entry(node, struct control_client, link);

        if (client->awaits_upgrade)
            answer_upgrade(client, before, problem);
    }
}
