#include "build_config.h"

#include "control/clients.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
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

static void read_frame(struct connection *connection, struct slice line)
{
    struct control_client *client = client_of(connection);

    if (!visitor_hold(&client->visitor))
        control_commands_run(client, line);
}

static void reject(struct control_client *client, int code, const char *problem)
{
    struct json_text line = {.data = NULL};

    visitor_complain(&client->visitor, LOG_LEVEL_WARN, problem);
    control_write_error(&line, slice_of(NULL, 0), code, problem);
    control_send(client, &line);
    json_text_free(&line);
    if (list_linked(&client->visitor.link))
        connection_linger(&client->connection);
}

static void malformed(struct connection *connection, enum frame_fault fault, const char *problem)
{
    struct control_client *client = client_of(connection);

    if (fault == FRAME_FAULT_FOREIGN)
        visitor_remove(&client->visitor, problem);
    else
        reject(client, JSONRPC_PARSE_ERROR, problem);
}

static void skipped(struct connection *connection, struct slice line, const char *problem)
{
    (void)connection;
    (void)line;
    (void)problem;
}

/* It may have shut down its sending side, and still gets its replies, that to "upgrade" too, which
 * comes later; a watcher its events. */
static void ended(struct connection *connection, size_t cut)
{
    struct control_client *client = client_of(connection);

    (void)cut;
    if (!client->watches && !client->awaits_upgrade)
        connection_linger(connection);
}

static void full(struct connection *connection, bool is_full)
{
    if (!is_full)
        visitor_release(&client_of(connection)->visitor);
}

static void failed(struct connection *connection, enum connection_failure failure, int error)
{
    visitor_failed(&client_of(connection)->visitor, failure, error, "closed");
}

static void starved(struct connection *connection)
{
    visitor_remove(&client_of(connection)->visitor, strerror(ENOMEM));
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

/* --- the beginning and the end --- */

/* The socket has mode 0600. Where the system does not heed the mode of a socket, this does. */
static bool is_allowed(const struct origin *origin)
{
    return !origin->has_credentials || origin->uid == 0 || origin->uid == geteuid();
}

static enum admission judge(const struct visitors *visitors, const struct origin *origin,
                            char *text, size_t size)
{
    if (!is_allowed(origin)) {
        snprintf(text, size, "the control socket is this user's");
        return ADMISSION_DENIED;
    }
    if (visitors->count < CONTROL_CLIENTS_MAX)
        return ADMISSION_GRANTED;
    snprintf(text, size, "too many clients of the control socket (%d)", CONTROL_CLIENTS_MAX);
    return ADMISSION_FULL;
}

static void prepare(struct visitor *visitor, struct connection_options *options)
{
    struct control_client *client = control_client_of(visitor);

    client->control = list_entry(visitor->of, struct control, clients);
    visitor->connection = &client->connection;
    visitor_name(visitor, client->context, sizeof client->context);
    *options = (struct connection_options){
        .handler = &handler,
        .check = &json_body_check,
        .check_state = &client->scanner,
        .context = client->context,
        .max_body = CONTROL_LINE_MAX,
        .wary = true,
    };
}

static void leave(struct visitor *visitor, const char *reason)
{
    struct control_client *client = control_client_of(visitor);

    (void)reason;
    client->control->watcher_count -= client->watches;
}

static void close_visitor(struct visitor *visitor)
{
    connection_linger(visitor->connection);
}

/* --- the archive --- */

static void archive_client(struct archive *archive, struct visitor *visitor, void *user_data)
{
    static const struct archive_field fields[] = {
        ARCHIVE_FLAGS(struct control_client, watches, awaits_upgrade),
        ARCHIVE_TEXTS(struct control_client, upgrade_id),
    };
    struct control_client *client = control_client_of(visitor);
    struct control *control = user_data;

    archive_mark(archive, "control");
    ARCHIVE_FIELDS(archive, client, fields);
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
    visitors_archive(archive, &control->clients, control);
}

/* --- the kind --- */

const struct visitor_kind control_clients_kind = {
    .name = "control",
    .frames = "lines",
    .level = LOG_LEVEL_DEBUG,
    .leave = leave,
    .close = close_visitor,
    .size = sizeof(struct control_client),
    .judge = judge,
    .prepare = prepare,
    .archive = ARCHIVE_OP(archive_client),
};
