#include "build_config.h"

#include "bus/visitor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "bus/listeners.h"
#include "bus/notifier.h"
#include "bus/origins.h"
#include "bus/state.h"
#include "router/shares.h"

static struct visitor *visitor_at(struct list_node *node)
{
    return list_entry(node, struct visitor, link);
}

static struct visitors *visitors_at(struct list_node *node)
{
    return list_entry(node, struct visitors, link);
}

void visitors_init(struct visitors *visitors, struct stdio_bus *bus,
                   const struct visitor_kind *kind)
{
    visitors->kind = kind;
    visitors->bus = bus;
    list_init(&visitors->list);
    list_append(&bus->visitors, &visitors->link);
}

static bool is_apart(const struct visitors *visitors)
{
    return visitors->kind->judge != NULL;
}

/* --- the log --- */

/* The lines of each user or address are counted apart, so that none hides another's. */
static struct slice source(const struct visitor *visitor)
{
    return origin_name(&visitor->origin);
}

void visitor_name(const struct visitor *visitor, char *to, size_t size)
{
    snprintf(to, size, "%s=%u", visitor->of->kind->name, visitor->number);
}

void visitor_announce(struct visitor *visitor, const char *token)
{
    if (visitor->announced)
        return;
    visitor->announced = true;
    log_repeated(visitor->of->bus->log, visitor->of->kind->level, visitor->connection->context,
                 source(visitor), "connected: %s%s%s", visitor->origin.text,
                 token != NULL ? ", " : "", token != NULL ? token : "");
}

void visitor_complain(const struct visitor *visitor, enum log_level level, const char *problem)
{
    log_repeated(visitor->of->bus->log, level, visitor->connection->context, source(visitor),
                 "unacceptable input: %s; closing it (%s)", problem, visitor->origin.text);
}

static void log_gone(const struct visitor *visitor, const char *reason)
{
    const struct visitor_kind *kind = visitor->of->kind;
    const struct connection *connection = visitor->connection;
    struct log *log = visitor->of->bus->log;

    if (connection->output.bytes > 0 && !is_apart(visitor->of))
        log_repeated(log, LOG_LEVEL_WARN, connection->context, source(visitor),
                     "disconnected (%s), %zu bytes for it were dropped (%s)", reason,
                     connection->output.bytes, visitor->origin.text);
    log_debug(log, connection->context, "ended: %s", reason); /* the next line may be left out */
    if (!visitor->announced)
        return;
    log_repeated(log, kind->level, connection->context, source(visitor),
                 "disconnected: %s; %" PRIu64 " %s in (%" PRIu64 " bytes), %" PRIu64
                 " out (%" PRIu64 " bytes)",
                 reason, connection->frames_in, kind->frames, connection->bytes_in,
                 connection->frames_out, connection->bytes_out);
}

/* --- admission --- */

/* A user that the system does not report is not one of those that are allowed. */
static bool is_allowed(const struct access *access, const struct origin *origin)
{
    return access->uid_count == 0 ||
           (origin->has_credentials && access_allows(access, origin->uid));
}

/* By the rules of the listener, and by max_connections. */
static enum admission judge(const struct bus_listener *listener, const struct origin *origin,
                            char *text, size_t size)
{
    const struct stdio_bus *bus = listener->bus;
    const struct config *config = bus->options.config;
    const struct listen_config *of = listener->config != NULL ? listener->config : &config->listen;
    bool on_tcp = listener_on_tcp(listener);

    if (!on_tcp && !is_allowed(&of->access, origin)) {
        snprintf(text, size, "this user may not connect (listen.allow_uids)");
        return ADMISSION_DENIED;
    }
    if (on_tcp && of->token_file == NULL && !of->open && !origin->is_local) {
        snprintf(text, size,
                 "other machines are not served: neither listen.token_file nor listen.open is set");
        return ADMISSION_DENIED;
    }
    if (shares_left_of_connections(&bus->router, bus->client_count, origins_find(bus, origin)))
        return ADMISSION_GRANTED;
    snprintf(text, size, "too many connections (max_connections %zu)",
             config->limits.max_connections);
    return ADMISSION_FULL;
}

void visitor_judge(struct arrival *arrival, struct bus_listener *listener, int fd,
                   const struct origin *origin)
{
    struct stdio_bus *bus = listener->bus;
    const struct visitors *visitors = listener->visitors;

    *arrival = (struct arrival){.listener = listener, .origin = origin, .fd = fd};
    arrival->admission = is_apart(visitors)
                             ? visitors->kind->judge(visitors, origin, arrival->text,
                                                     sizeof arrival->text)
                             : judge(listener, origin, arrival->text, sizeof arrival->text);
    if (arrival->admission == ADMISSION_GRANTED)
        return;
    if (!is_apart(visitors))
        bus->counters.refused[refusal_of(arrival->text)]++;
    log_repeated(bus->log, LOG_LEVEL_WARN, "", origin_name(origin), "refused %s: %s", origin->text,
                 arrival->text);
}

/* --- the beginning --- */

int visitor_init(struct visitor *visitor, const struct origin *origin, bool refused)
{
    visitor->origin = *origin;
    visitor->refused = refused;
    if (!refused)
        visitor->present = origins_get(visitor->of->bus, origin);
    return refused || visitor->present != NULL ? STDIO_BUS_OK : STDIO_BUS_ERR;
}

void visitor_drop(struct visitor *visitor)
{
    if (visitor == NULL)
        return;
    origins_release(visitor->present);
    free(visitor);
}

/* The visitor counts (1), or does no more (-1). */
static void count_visitor(const struct visitor *visitor, int change)
{
    struct stdio_bus *bus = visitor->of->bus;

    visitor->of->count += (size_t)change;
    if (is_apart(visitor->of))
        return;
    if (visitor->refused)
        bus->refused_count += (size_t)change;
    else
        bus->client_count += (size_t)change;
    notifier_changed(bus);
}

/* The bus knows it from now on. */
static void join_list(struct visitor *visitor)
{
    list_append(&visitor->of->list, &visitor->link);
    count_visitor(visitor, 1);
}

void visitor_enter(struct visitor *visitor)
{
    join_list(visitor);
    if (visitor->present != NULL)
        connection_set_origin(visitor->connection, origins_transport(visitor->present));
}

/* NULL if out of memory. */
static struct visitor *new_visitor(struct visitors *visitors)
{
    struct visitor *visitor = calloc(1, visitors->kind->size);

    if (visitor != NULL) {
        visitor->of = visitors;
        visitor->number = ++visitors->last_number;
    }
    return visitor;
}

/* NULL with errno: then the descriptor is the caller's. */
static struct visitor *open_visitor(struct visitors *visitors, int fd, const struct origin *origin)
{
    struct visitor *visitor = new_visitor(visitors);
    struct connection_options options = {.framing = NULL};

    if (visitor != NULL && visitor_init(visitor, origin, false) == STDIO_BUS_OK) {
        visitors->kind->prepare(visitor, &options);
        options.fd_in = options.fd_out = fd;
        if (connection_open(visitor->connection, &visitors->bus->transport, &options) ==
            STDIO_BUS_OK)
            return visitor;
    }
    visitor_drop(visitor);
    return NULL;
}

void visitors_accepted(void *user_data, int fd, const struct origin *origin)
{
    struct bus_listener *listener = user_data;
    struct visitors *visitors = listener->visitors;
    struct visitor *visitor = NULL;
    struct arrival arrival;

    visitor_judge(&arrival, listener, fd, origin);
    if (arrival.admission == ADMISSION_GRANTED) {
        visitor = open_visitor(visitors, fd, origin);
        if (visitor == NULL)
            log_repeated(listener->bus->log, LOG_LEVEL_WARN, "", origin_name(origin),
                         "cannot serve %s: %s", origin->text, strerror(errno));
    }
    if (visitor == NULL) {
        close(fd);
        return;
    }
    visitor_enter(visitor);
    visitor_announce(visitor, NULL);
    if (visitors->kind->begin != NULL)
        visitors->kind->begin(visitor);
}

/* --- the end --- */

void visitor_remove(struct visitor *visitor, const char *reason)
{
    struct visitors *visitors = visitor->of;
    struct stdio_bus *bus = visitors->bus;

    if (!list_linked(&visitor->link))
        return;
    log_gone(visitor, reason);
    list_remove(&visitor->link);
    count_visitor(visitor, -1);
    visitors->kind->leave(visitor, reason);
    connection_close(visitor->connection);
    origins_release(visitor->present);
    stdio_bus_event_loop_defer(bus->loop, &visitor->deferred, free, visitor);
    listeners_descriptor_freed(bus);
    if (visitors->kind->keeps_awake && bus->router.client_count == 0 && !visitors_keep_awake(bus))
        bus_start_idle(bus);
    bus->end_noted = true;
}

bool visitor_has_left(int error)
{
    return error == 0 || error == EPIPE || error == ECONNRESET || error == EIO;
}

void visitor_failed(struct visitor *visitor, enum connection_failure failure, int error,
                    const char *closed)
{
    if (error != 0)
        log_debug(visitor->of->bus->log, visitor->connection->context, "its connection: %s",
                  strerror(error));
    if (failure == CONNECTION_BROKEN)
        visitor_remove(visitor, visitor_has_left(error) ? "hung up" : strerror(error));
    else
        visitor_remove(visitor, failure == CONNECTION_LINGERED
                                    ? closed
                                    : "it did not read for backpressure_timeout_sec");
}

/* --- its queue --- */

bool visitor_hold(struct visitor *visitor)
{
    if (!visitor->connection->full)
        return false;
    visitor->is_held = true;
    connection_pause(visitor->connection);
    return true;
}

void visitor_release(struct visitor *visitor)
{
    if (!visitor->is_held)
        return;
    visitor->is_held = false;
    connection_resume(visitor->connection);
}

/* --- of all visitors --- */

bool visitors_any(const struct stdio_bus *bus)
{
    struct list_node *node, *following;
    size_t total = 0;

    list_each(&bus->visitors, node, following)
        total += visitors_at(node)->count;
    return total > 0;
}

bool visitors_keep_awake(const struct stdio_bus *bus)
{
    struct list_node *node, *following;
    size_t total = 0;

    list_each(&bus->visitors, node, following)
        total += visitors_at(node)->kind->keeps_awake ? visitors_at(node)->count : 0;
    return total > 0;
}

static void close_all(struct visitors *visitors, bool now)
{
    struct list_node *node, *following;

    while (now && !list_empty(&visitors->list))
        visitor_remove(visitor_at(visitors->list.head.next), "shutting down");
    list_each(&visitors->list, node, following)
        visitors->kind->close(visitor_at(node));
}

void visitors_close(struct stdio_bus *bus, bool now)
{
    struct list_node *node, *following;

    list_each(&bus->visitors, node, following)
        close_all(visitors_at(node), now);
    if (!now)
        bus_watch_slow_clients(bus, 0); /* the shutdown waits for them */
}

void visitors_remove_idle(struct stdio_bus *bus, const char *reason)
{
    struct list_node *kind, *next_kind, *node, *following;

    list_each(&bus->visitors, kind, next_kind) {
        list_each(&visitors_at(kind)->list, node, following) {
            if (connection_took_nothing(visitor_at(node)->connection))
                visitor_remove(visitor_at(node), reason);
        }
    }
}

void visitors_each_connection(struct stdio_bus *bus, void (*fn)(struct connection *connection))
{
    struct list_node *kind, *next_kind, *node, *following;

    list_each(&bus->visitors, kind, next_kind) {
        list_each(&visitors_at(kind)->list, node, following)
            fn(visitor_at(node)->connection);
    }
}

/* --- the archive --- */

bool visitor_archive(struct archive *archive, struct visitor *visitor)
{
    static const struct archive_field fields[] = {
        ARCHIVE_INTEGERS(struct visitor, number),
        ARCHIVE_FLAGS(struct visitor, refused, announced, is_held),
    };

    archive_mark(archive, "visitor");
    ARCHIVE_FIELDS(archive, visitor, fields);
    origin_archive(archive, &visitor->origin);
    origins_archive(archive, visitor->of->bus, &visitor->present);
    archive_expect(archive, visitor->refused || visitor->present != NULL, "a client has no origin");
    if (archive->saves)
        return true;
    if (!archive_loads(archive)) {
        visitor_drop(visitor);
        return false;
    }
    join_list(visitor);
    return true;
}

void visitor_archived(struct archive *archive, struct visitor *visitor)
{
    archive_expect(archive, connection_is_open(visitor->connection), "a client has no connection");
    if (archive_loads(archive) && visitor->present != NULL)
        connection_set_origin(visitor->connection, origins_transport(visitor->present));
}

struct archive_owner {
    struct visitors *visitors;
    void *user_data;
};

static void archive_one(struct archive *archive, void *owner, void *item)
{
    const struct archive_owner *of = owner;
    struct visitors *visitors = of->visitors;
    struct visitor *visitor = item != NULL ? item : new_visitor(visitors);
    struct connection_options options = {.framing = NULL};

    if (!archive_made(archive, visitor != NULL))
        return;
    if (!visitor_archive(archive, visitor))
        return;
    if (!archive->saves) {
        visitors->kind->prepare(visitor, &options);
        visitor->connection->context = options.context;
    }
    connection_archive(archive, visitor->connection, &visitors->bus->transport, &options);
    visitor_archived(archive, visitor);
    visitors->kind->archive(archive, visitor, of->user_data);
}

void visitors_archive(struct archive *archive, struct visitors *visitors, void *user_data)
{
    struct archive_owner owner = {visitors, user_data};

    ARCHIVE_LIST(archive, &visitors->list, struct visitor, link, archive_one, &owner);
    ARCHIVE_INTEGER(archive, visitors->last_number);
}
