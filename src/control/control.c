#include "build_config.h"

#include "control/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "bus/listeners.h"
#include "control/reports.h"
#include "control/request.h"
#include "monitor/metrics.h"
#include "json/message.h"
#include "json/text.h"

/* Whether there is a control socket, or a listener with metrics. */
static bool is_measured(const struct control *control)
{
    const struct bus_options *options = &control->bus->options;

    return control->socket != NULL || listen_any_metrics(options->listens, options->listen_count);
}

struct control *control_create(struct stdio_bus *bus, const struct visitor_kind *clients,
                               const char *socket)
{
    struct control *control = calloc(1, sizeof *control);

    if (control == NULL)
        return NULL;
    control->bus = bus;
    control->socket = socket;
    visitors_init(&control->clients, bus, clients);
    if (is_measured(control))
        control_measure(control);
    return control;
}

void control_measure(struct control *control)
{
    control->measures = true;
    metrics_start(control->bus);
}

void control_reloaded(struct control *control)
{
    if (control->measures || !is_measured(control))
        return;
    control_measure(control);
}

void control_destroy(struct control *control)
{
    free(control);
}

/* --- clients of the socket --- */

static struct control_client *client_at(struct list_node *node)
{
    return control_client_of(list_entry(node, struct visitor, link));
}

void control_send(struct control_client *client, const struct json_text *line)
{
    if (client->connection.full)
        visitor_remove(&client->visitor, "it does not read");
    else if (line->failed ||
             connection_send_line(&client->connection, NULL, json_text_slice(line)) != STDIO_BUS_OK)
        visitor_remove(&client->visitor, strerror(ENOMEM));
}

/* --- events --- */

void control_report(struct control *control, const struct bus_report *report)
{
    struct event_report event = {
        .name = report->name, .of = report->of, .pool = report->pool, .text = report->text};
    struct list_node *node, *following;
    struct json_text line = {.data = NULL};

    if (control->watcher_count == 0)
        return;
    event.epoch_ms = clock_epoch_ms();
    control_write_event(&line, &event);
    list_each(&control->clients.list, node, following) {
        struct control_client *client = client_at(node);

        if (client->watches)
            control_send(client, &line);
    }
    json_text_free(&line);
}

/* --- an upgrade --- */

static void send_upgraded(struct control_client *client, const char *before, const char *problem)
{
    struct slice id = slice_of_text(client->upgrade_id);
    struct json_text line = {.data = NULL}, result = {.data = NULL};

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

/* A client that has shut down its sending side has waited for this alone. */
static void answer_upgrade(struct control_client *client, const char *before, const char *problem)
{
    client->awaits_upgrade = false;
    if (client->upgrade_id[0] != '\0')
        send_upgraded(client, before, problem);
    if (list_linked(&client->visitor.link) && client->connection.input_state == INPUT_ENDED &&
        !client->watches)
        connection_linger(&client->connection);
}

void control_upgraded(struct control *control, const char *before, const char *problem)
{
    struct list_node *node, *following;

    list_each(&control->clients.list, node, following) {
        struct control_client *client = client_at(node);

        if (client->awaits_upgrade)
            answer_upgrade(client, before, problem);
    }
}
