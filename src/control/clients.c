#include "build_config.h"

#include "control/clients.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "bus/listeners.h"
#include "control/commands.h"
#include "control/control.h"
#include "control/request.h"
#include "transport/connection.h"
#include "json/message.h"
#include "json/scanner.h"

static struct control_client *client_of(struct connection *connection)
{
    return list_entry(connection, struct control_client, connection);
}

/* --- reports of the connection --- */

/* A client that does not read its replies is not read from. Returns whether that is so. */
static bool hold(struct control_client *client)
{
    if (!client->connection.full)
        return false;
    client->is_held = true;
    connection_pause(&client->connection);
    return true;
}

static void read_frame(struct connection *connection, struct slice line)
{
    struct control_client *client = client_of(connection);

    if (!hold(client))
        control_commands_run(client, line);
}

static void reject(struct control_client *client, int code, const char *problem)
{
    struct json_text line = {.data = NULL};

    log_warn(client->control->bus->log, client->context, "unacceptable input: %s; closing it",
             problem);
    control_write_error(&line, slice_of(NULL, 0), code, problem);
    control_send(client, &line);
    json_text_free(&line);
    if (list_linked(&client->link))
        connection_linger(&client->connection);
}

static void malformed(struct connection *connection, enum frame_fault fault, const char *problem)
{
    struct control_client *client = client_of(connection);

    if (fault == FRAME_FAULT_FOREIGN)
        control_remove(client, problem);
    else
        reject(client, JSONRPC_PARSE_ERROR, problem);
}

static void skipped(struct connection *connection, struct slice line, const char *problem)
{
    (void)connection;
    (void)line;
    (void)problem;
}

/* It may have shut down its sending side, and still gets its replies; a watcher its events. */
static void ended(struct connection *connection, size_t cut)
{
    struct control_client *client = client_of(connection);

    (void)cut;
    if (!client->watches)
        connection_linger(connection);
}

static void full(struct connection *connection, bool is_full)
{
    struct control_client *client = client_of(connection);

    if (is_full || !client->is_held)
        return;
    client->is_held = false;
    connection_resume(connection);
}

static void failed(struct connection *connection, enum connection_failure failure, int error)
{
    struct control_client *client = client_of(connection);

    if (failure == CONNECTION_BROKEN)
        control_remove(client, error != 0 ? strerror(error) : "hung up");
    else
        control_remove(client, failure == CONNECTION_LINGERED ? "closed" : "it does not read");
}

static void starved(struct connection *connection)
{
    control_remove(client_of(connection), strerror(ENOMEM));
}

static const struct connection_handler handler = {
    .frame = read_frame,
    .malformed = malformed,
    .skipped = skipped,
    .refused = malformed,
    .ended = ended,
    .full = full,
    .failed = failed,
    .starved = starved,
};

/* --- the beginning --- */

/* The socket has mode 0600. Where the system does not heed the mode of a socket, this does. */
static bool is_allowed(const struct origin *origin)
{
    return !origin->has_credentials || origin->uid == 0 || origin->uid == geteuid();
}

static struct connection_options options_of(struct control_client *client, int fd)
{
    return (struct connection_options){
        .handler = &handler,
        .check = &json_body_check,
        .check_state = &client->scanner,
        .context = client->context,
        .max_body = CONTROL_LINE_MAX,
        .fd_in = fd,
        .fd_out = fd,
        .wary = true,
    };
}

/* NULL when memory or descriptors are out. */
static struct control_client *open_client(struct control *control, int fd)
{
    struct control_client *client = calloc(1, sizeof *client);
    struct connection_options options;

    if (client == NULL)
        return NULL;
    client->control = control;
    options = options_of(client, fd);
    snprintf(client->context, sizeof client->context, "control=%u", ++control->last_client);
    if (connection_open(&client->connection, &control->bus->transport, &options) == STDIO_BUS_OK)
        return client;
    free(client);
    return NULL;
}

void control_clients_accepted(void *user_data, int fd, const struct origin *origin)
{
    struct bus_listener *listener = user_data;
    struct stdio_bus *bus = listener->bus;
    struct control *control = listener->service;
    struct control_client *client = NULL;

    if (!is_allowed(origin))
        log_warn(bus->log, "", "refused %s: the control socket is this user's", origin->text);
    else if (control->client_count >= CONTROL_CLIENTS_MAX)
        log_warn(bus->log, "", "refused %s: too many clients of the control socket (%d)",
                 origin->text, CONTROL_CLIENTS_MAX);
    else if ((client = open_client(control, fd)) == NULL)
        log_warn(bus->log, "", "cannot serve %s: %s", origin->text, strerror(errno));
    if (client == NULL) {
        close(fd);
        return;
    }
    list_append(&control->clients, &client->link);
    control->client_count++;
    log_debug(bus->log, client->context, "connected: %s", origin->text);
}

/* --- the shutdown --- */

void control_clients_close(struct control *control, bool now)
{
    struct list_node *node, *following;

    list_each(&control->clients, node, following) {
        struct control_client *client = list_entry(node, struct control_client, link);

        if (now)
            control_remove(client, "shutting down");
        else
            connection_linger(&client->connection);
    }
}

/* --- the archive --- */

static void archive_client(struct archive *archive, void *owner, void *item)
{
    static const struct archive_field fields[] = {
        ARCHIVE_FLAGS(struct control_client, watches, is_held, awaits_upgrade),
        ARCHIVE_TEXTS(struct control_client, context, upgrade_id),
    };
    struct control *control = owner;
    struct control_client *client = item != NULL ? item : calloc(1, sizeof *client);
    struct connection_options options;

    if (!archive_made(archive, client != NULL))
        return;
    if (!archive->saves) {
        client->control = control;
        list_append(&control->clients, &client->link);
        control->client_count++;
    }
    archive_mark(archive, "control");
    ARCHIVE_FIELDS(archive, client, fields);
    options = options_of(client, -1);
    connection_archive(archive, &client->connection, &control->bus->transport, &options);
    scanner_archive(archive, &client->scanner);
    if (!archive->saves)
        control->watcher_count += client->watches;
}

void control_clients_archive(struct archive *archive, struct control *control)
{
    if (!archive_present(archive, control->measures))
        return;
    if (!control->measures)
        control_measure(control);
    ARCHIVE_INTEGER(archive, control->last_client);
    ARCHIVE_LIST(archive, &control->clients, struct control_client, link, archive_client, control);
}

void control_clients_connections(struct control *control, void (*fn)(struct connection *connection))
{
    struct list_node *node, *following;

    list_each(&control->clients, node, following)
        fn(&list_entry(node, struct control_client, link)->connection);
}
