#include "build_config.h"

#include "federation/broker.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "bus/origins.h"
#include "config/nats_keys.h"
#include "config/tokens.h"
#include "nats/framing.h"
#include "transport/address.h"
#include "transport/origin.h"
#include "json/string.h"

#define ATTEMPT_MS 5000 /* to connect, and for the greeting */
#define WAIT_FIRST_MS 100
#define WAIT_MAX_MS 10000
#define PING_MS 30000
#define PINGS_MAX 2 /* unanswered */
#define PAYLOAD_MAX ((size_t)64 << 20)
#define CONTEXT "nats"

static struct broker *broker_of(struct connection *connection)
{
    return list_entry(connection, struct broker, connection);
}

static void start_timer(struct broker *broker, int64_t delay_ms)
{
    stdio_bus_event_loop_start_timer(broker->bus->loop, &broker->timer, delay_ms);
}

/* A reason that was given last is not repeated: a server may be away for long. */
static void report(struct broker *broker, const char *reason)
{
    const struct broker_server *server = &broker->servers[broker->at];
    char text[BROKER_REASON_MAX];

    snprintf(text, sizeof text, "%s: %s", server->name, reason);
    if (strcmp(text, broker->reported) == 0)
        return;
    memcpy(broker->reported, text, sizeof text);
    log_warn(broker->bus->log, CONTEXT, "%s", text);
}

/* --- servers --- */

static void add_server(struct broker *broker, const struct addrinfo *info, bool was_named)
{
    struct broker_server *server = &broker->servers[broker->server_count];
    char text[ADDRESS_TEXT_MAX];

    if (broker->server_count == BROKER_SERVERS_MAX || info->ai_addrlen > sizeof server->address)
        return;
    address_text(text, sizeof text, info->ai_addr);
    for (size_t i = 0; i < broker->server_count; i++) {
        if (strcmp(broker->servers[i].name, text) == 0)
            return;
    }
    *server = (struct broker_server){.address_len = info->ai_addrlen, .was_named = was_named};
    memcpy(&server->address, info->ai_addr, info->ai_addrlen);
    memcpy(server->name, text, sizeof text);
    broker->server_count++;
}

/* HOST:PORT, which the configuration has checked, or which INFO names; of the latter addresses
 * alone, since a look-up would block the loop. */
static void add_place(struct broker *broker, const char *place, bool was_named)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = was_named ? AI_NUMERICHOST : 0},
                    *found = NULL;
    struct nats_place parts;
    int status;

    if (!nats_place_read(&parts, slice_of_text(place)))
        return;
    status = getaddrinfo(parts.host, parts.port, &hints, &found);
    for (const struct addrinfo *info = found; status == 0 && info != NULL; info = info->ai_next)
        add_server(broker, info, was_named);
    if (status != 0 && !was_named)
        log_warn(broker->bus->log, CONTEXT, "%s is not used: %s", place,
                 status == EAI_SYSTEM ? strerror(errno) : gai_strerror(status));
    if (found != NULL)
        freeaddrinfo(found);
}

/* The servers that the last INFO has named give way to those of this one. */
static void take_named(struct broker *broker)
{
    size_t count = 0;

    for (size_t i = 0; i < broker->server_count; i++) {
        bool is_current = i == broker->at;

        if (broker->servers[i].was_named && !is_current)
            continue;
        if (is_current)
            broker->at = count;
        broker->servers[count++] = broker->servers[i];
    }
    broker->server_count = count;
    for (size_t i = 0; i < broker->info.url_count; i++)
        add_place(broker, broker->info.urls[i], true);
}

/* --- attempts --- */

static void drop_connection(struct broker *broker)
{
    if (broker->fd >= 0) {
        stdio_bus_event_loop_remove(broker->bus->loop, broker->fd);
        descriptor_close(broker->fd);
        broker->fd = -1;
    }
    connection_close(&broker->connection);
    broker->counters.connected = 0;
    broker->unanswered = 0;
}

/* Half of the delay is random, so that clients of a server that comes back do not come at once. */
static int64_t delay_ms(struct broker *broker)
{
    unsigned doublings = broker->failures < 7 ? broker->failures : 7;
    int64_t most = (int64_t)WAIT_FIRST_MS << doublings;
    uint64_t random = siphash(&broker->random, &broker->counters.connections,
                              sizeof broker->counters.connections) +
                      broker->failures * (uint64_t)2654435761;

    if (most > WAIT_MAX_MS)
        most = WAIT_MAX_MS;
    return most / 2 + (int64_t)(random % (uint64_t)(most / 2 + 1));
}

enum broker_event { EVENT_READY, EVENT_LOST, EVENT_DRAINED };

static void notify_watchers(struct broker *broker, enum broker_event event)
{
    struct list_node *node, *following;

    list_each(&broker->watchers, node, following) {
        struct broker_watcher *watcher = list_entry(node, struct broker_watcher, link);
        void (*notify)(struct broker_watcher *) = event == EVENT_READY  ? watcher->ready
                                                  : event == EVENT_LOST ? watcher->lost
                                                                        : watcher->drained;

        if (notify != NULL)
            notify(watcher);
    }
}

/* The next server is tried at once, after the last of them it takes a while. */
static void lose(struct broker *broker, const char *reason)
{
    bool was_ready = broker->state == BROKER_READY, is_round;

    if (broker->state == BROKER_CLOSED || broker->state == BROKER_WAITING)
        return;
    report(broker, reason);
    drop_connection(broker);
    broker->state = BROKER_WAITING;
    broker->at = (broker->at + 1) % broker->server_count;
    is_round = ++broker->tried >= broker->server_count;
    if (is_round)
        broker->tried = 0;
    start_timer(broker, is_round ? delay_ms(broker) : 0);
    if (is_round)
        broker->failures++;
    if (was_ready)
        notify_watchers(broker, EVENT_LOST);
}

static void read_frame(struct connection *connection, struct slice body);

static void ended(struct connection *connection, size_t cut)
{
    (void)cut;
    lose(broker_of(connection), "the server has closed the connection");
}

static void malformed(struct connection *connection, enum frame_fault fault, const char *problem)
{
    (void)fault;
    lose(broker_of(connection), problem);
}

static void refused(struct connection *connection, enum frame_fault fault, const char *problem)
{
    malformed(connection, fault, problem);
}

static void full(struct connection *connection, bool is_full)
{
    if (!is_full)
        notify_watchers(broker_of(connection), EVENT_DRAINED);
}

static void failed(struct connection *connection, enum connection_failure failure, int error)
{
    lose(broker_of(connection),
         failure == CONNECTION_BROKEN ? strerror(error) : "the server does not read");
}

static void starved(struct connection *connection)
{
    lose(broker_of(connection), "out of memory");
}

static const struct connection_handler handler = {
    .frame = read_frame,
    .malformed = malformed,
    .refused = refused,
    .ended = ended,
    .full = full,
    .failed = failed,
    .starved = starved,
};

static void connected(void *user_data, unsigned events)
{
    static const struct body_check no_check; /* the framing has none */
    struct broker *broker = user_data;
    int error = 0, fd = broker->fd;
    socklen_t len = sizeof error;
    const struct connection_options options = {.handler = &handler,
                                               .framing = &framing_nats,
                                               .check = &no_check,
                                               .context = CONTEXT,
                                               .max_body = PAYLOAD_MAX,
                                               .fd_in = fd,
                                               .fd_out = fd};

    (void)events;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        error = errno;
    if (error != 0) {
        lose(broker, strerror(error));
        return;
    }
    stdio_bus_event_loop_remove(broker->bus->loop, fd);
    if (connection_open(&broker->connection, &broker->bus->transport, &options) != STDIO_BUS_OK) {
        error = errno;
        descriptor_close(fd);
        broker->fd = -1;
        lose(broker, strerror(error));
        return;
    }
    broker->fd = -1;
    broker->state = BROKER_GREETING;
    connection_set_origin(&broker->connection, origins_transport(broker->origin));
    start_timer(broker, ATTEMPT_MS);
}

static int open_socket(const struct broker_server *server)
{
    int fd = socket(server->address.ss_family, SOCK_STREAM, 0), on = 1, flags, error;

    if (fd < 0)
        return -1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    flags = fcntl(fd, F_GETFL);
    if (flags >= 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 &&
        fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 &&
        (connect(fd, (const struct sockaddr *)&server->address, server->address_len) == 0 ||
         errno == EINPROGRESS))
        return fd;
    error = errno;
    descriptor_close(fd);
    errno = error;
    return -1;
}

static void attempt(struct broker *broker)
{
    broker->state = BROKER_CONNECTING;
    broker->fd = open_socket(&broker->servers[broker->at]);
    if (broker->fd >= 0 &&
        stdio_bus_event_loop_add(broker->bus->loop, broker->fd, STDIO_BUS_EVENT_WRITE, connected,
                                 broker) != STDIO_BUS_OK) {
        descriptor_close(broker->fd);
        broker->fd = -1;
    }
    if (broker->fd < 0)
        lose(broker, strerror(errno));
    else
        start_timer(broker, ATTEMPT_MS);
}

/* --- sending --- */

static void send_text(struct broker *broker, struct json_text *text)
{
    if (text->failed ||
        connection_send_bytes(&broker->connection, json_text_slice(text)) != STDIO_BUS_OK)
        lose(broker, "out of memory");
    json_text_free(text);
}

static void ping(struct broker *broker)
{
    if (connection_send_bytes(&broker->connection, slice_of_text("PING\r\n")) != STDIO_BUS_OK)
        lose(broker, "out of memory");
}

static void timer_expired(void *user_data)
{
    struct broker *broker = user_data;

    switch (broker->state) {
    case BROKER_WAITING:
        attempt(broker);
        break;
    case BROKER_CONNECTING:
    case BROKER_GREETING:
        lose(broker, "no answer");
        break;
    case BROKER_READY:
        if (broker->unanswered++ == PINGS_MAX) {
            lose(broker, "the server does not answer pings");
            return;
        }
        start_timer(broker, PING_MS);
        ping(broker);
        break;
    case BROKER_CLOSED:
        break;
    }
}

/* --- the greeting --- */

/* False after the reason was given. */
static bool read_secret(struct broker *broker, struct token *token, const char *path)
{
    char reason[TOKEN_REASON_MAX], text[BROKER_REASON_MAX];

    if (token_read_file(token, path, reason) == STDIO_BUS_OK)
        return true;
    snprintf(text, sizeof text, "%.60s: %s", path, reason);
    lose(broker, text);
    return false;
}

static void send_connect(struct broker *broker)
{
    const struct nats_config *config = broker->config;
    struct nats_login login = {.name = config->node, .version = PACKAGE_VERSION};
    struct json_text text = {.len = 0};
    struct token token;

    if (config->password_file != NULL || config->token_file != NULL) {
        bool is_password = config->password_file != NULL;
        const char *path = is_password ? config->password_file : config->token_file;

        if (!read_secret(broker, &token, path))
            return;
        *(is_password ? &login.password : &login.auth_token) = slice_of(token.text, token.len);
    }
    if (config->user != NULL)
        login.user = slice_of_text(config->user);
    nats_put_connect(&text, &login);
    json_text_literal(&text, "PING\r\n");
    send_text(broker, &text);
}

/* Why the daemon cannot use the server; NULL: it can. */
static const char *unusable(const struct nats_info *info)
{
    if (info->tls_required)
        return "the server demands TLS, which is not built in: use a leaf node, or a tunnel";
    if (info->nonce[0] != '\0')
        return "the server demands a signature (nkeys), which is not built in";
    if (!info->headers)
        return "the server has no headers: NATS 2.2 or later is needed";
    return NULL;
}

static void take_info(struct broker *broker, struct slice json)
{
    const char *problem;
    int status = nats_info_read(&broker->info, json);

    if (status != STDIO_BUS_OK) {
        lose(broker, status == STDIO_BUS_ERR ? "out of memory" : "an INFO that is no JSON");
        return;
    }
    problem = unusable(&broker->info);
    if (problem != NULL) {
        lose(broker, problem);
        return;
    }
    take_named(broker);
    if (broker->state == BROKER_GREETING)
        send_connect(broker);
    else if (broker->info.lame_duck && broker->server_count > 1)
        lose(broker, "the server is about to stop");
}

static void get_ready(struct broker *broker)
{
    struct json_text text = broker->kept;

    broker->kept = (struct json_text){.len = 0};
    broker->state = BROKER_READY;
    broker->tried = broker->failures = broker->unanswered = 0;
    broker->reported[0] = '\0';
    broker->counters.connections++;
    broker->counters.connected = 1;
    log_info(broker->bus->log, CONTEXT, "connected to %s", broker->servers[broker->at].name);
    for (size_t i = 0; i < broker->subscriptions.capacity; i++) {
        const struct nats_subscription *one = broker->subscriptions.slots[i].item;

        if (one != NULL)
            nats_put_sub(&text, one->subject, one->queue, one->sid);
    }
    start_timer(broker, PING_MS);
    if (text.len > 0 || text.failed)
        send_text(broker, &text);
    if (broker->state == BROKER_READY)
        notify_watchers(broker, EVENT_READY);
}

static void take_pong(struct broker *broker)
{
    broker->unanswered = 0;
    if (broker->state == BROKER_GREETING)
        get_ready(broker);
}

/* --- frames --- */

/* A server closes the connection after an error, but for a subject that is not allowed. */
static void take_error(struct broker *broker, struct slice text)
{
    static const char stays[] = "Permissions Violation";
    char reason[BROKER_REASON_MAX / 2], quoted[BROKER_REASON_MAX];

    snprintf(reason, sizeof reason, "%.*s", (int)(text.len < 90 ? text.len : 90), text.data);
    log_quote(quoted, sizeof quoted, reason);
    if (strncmp(reason, stays, sizeof stays - 1) == 0)
        report(broker, quoted);
    else
        lose(broker, quoted);
}

static bool has_sid(const void *item, const void *key)
{
    const struct nats_subscription *subscription = item;
    const uint64_t *sid = key;

    return subscription->sid == *sid;
}

/* The sids are the daemon's own numbers, one after the other: each is its hash. */
static void take_message(struct broker *broker, const struct nats_frame *frame)
{
    struct nats_subscription *of = hash_table_find(&broker->subscriptions, frame->line.sid, has_sid,
                                                   &frame->line.sid);

    if (of != NULL)
        of->message(of, frame);
}

static void read_frame(struct connection *connection, struct slice body)
{
    struct broker *broker = broker_of(connection);
    struct nats_frame frame;

    nats_frame_read(&frame, body);
    switch (frame.line.kind) {
    case NATS_INFO:
        take_info(broker, frame.line.text);
        break;
    case NATS_PING:
        if (connection_send_bytes(connection, slice_of_text("PONG\r\n")) != STDIO_BUS_OK)
            lose(broker, "out of memory");
        break;
    case NATS_PONG:
        take_pong(broker);
        break;
    case NATS_ERR:
        take_error(broker, frame.line.text);
        break;
    case NATS_MSG:
    case NATS_HMSG:
        if (broker->state == BROKER_READY)
            take_message(broker, &frame);
        break;
    case NATS_OK:
        break;
    }
}

/* --- subscriptions and publications --- */

int broker_subscribe(struct broker *broker, struct nats_subscription *subscription)
{
    struct json_text text = {.len = 0};
    uint64_t sid = broker->last_sid + 1;

    if (hash_table_insert(&broker->subscriptions, sid, subscription) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    subscription->sid = broker->last_sid = sid;
    if (broker->state != BROKER_READY)
        return STDIO_BUS_OK;
    nats_put_sub(&text, subscription->subject, subscription->queue, sid);
    send_text(broker, &text);
    return STDIO_BUS_OK;
}

void broker_unsubscribe(struct broker *broker, struct nats_subscription *subscription)
{
    struct json_text text = {.len = 0};
    uint64_t sid = subscription->sid;

    if (sid == 0)
        return;
    hash_table_remove(&broker->subscriptions, sid, subscription);
    subscription->sid = 0;
    if (broker->state != BROKER_READY)
        return;
    nats_put_unsub(&text, sid);
    send_text(broker, &text);
}

/* Adds the message to what is kept; all of it or nothing. */
static int keep(struct broker *broker, struct json_text *head, const struct delivery *delivery)
{
    struct json_text *kept = &broker->kept;
    size_t before = kept->len;

    json_text_add(kept, json_text_slice(head));
    json_text_splice(kept, delivery->bytes, delivery->edits, delivery->edit_count);
    json_text_literal(kept, "\r\n");
    if (!kept->failed)
        return STDIO_BUS_OK;
    kept->failed = false;
    kept->len = before;
    return STDIO_BUS_ERR;
}

static int publish(struct broker *broker, const struct nats_head *about,
                   const struct delivery *delivery)
{
    struct json_text head = {.len = 0};
    size_t len = splice_len(delivery->bytes.len, delivery->edits, delivery->edit_count);
    size_t waiting = broker->state == BROKER_READY ? broker->connection.output.bytes
                                                   : broker->kept.len;
    int status;

    if (broker->info.max_payload != 0 &&
        about->headers.len + about->prefix.len + len > broker->info.max_payload)
        return STDIO_BUS_EINVAL;
    if (waiting + len > BROKER_KEPT_MAX) {
        broker->counters.lost++;
        return STDIO_BUS_OK;
    }
    nats_put_pub(&head, about, len);
    if (head.failed) {
        status = STDIO_BUS_ERR;
    } else if (broker->state == BROKER_READY) {
        const struct connection_parts parts = {json_text_slice(&head), slice_of_text("\r\n"),
                                               false};

        status = connection_send_parts(&broker->connection, NULL, &parts, delivery->bytes,
                                       delivery->edits, delivery->edit_count);
    } else {
        status = keep(broker, &head, delivery);
    }
    json_text_free(&head);
    return status;
}

/* A worker's line ends with a newline, its message does not. */
int broker_publish(struct broker *broker, struct slice subject, const struct delivery *delivery)
{
    const struct slice bytes = delivery->bytes;
    size_t newline = bytes.len > 0 && bytes.data[bytes.len - 1] == '\n';
    const struct delivery message = {.bytes = slice_of(bytes.data, bytes.len - newline),
                                     .edits = delivery->edits,
                                     .edit_count = delivery->edit_count};

    return publish(broker, &(struct nats_head){.subject = subject}, &message);
}

int broker_publish_text(struct broker *broker, struct slice subject, struct slice text)
{
    const struct delivery delivery = {.bytes = text};

    return broker_publish(broker, subject, &delivery);
}

int broker_send(struct broker *broker, const struct nats_head *head, struct slice payload)
{
    const struct delivery delivery = {.bytes = payload.len > 0 ? payload : slice_of("", 0)};

    return publish(broker, head, &delivery);
}

void broker_flush(struct broker *broker)
{
    if (broker->state == BROKER_READY)
        connection_flush(&broker->connection);
}

/* --- from the beginning to the end --- */

void broker_start(struct broker *broker)
{
    broker->fd = -1;
    broker->state = BROKER_WAITING;
    timer_init(&broker->timer, timer_expired, broker);
    for (char **server = broker->config->servers; *server != NULL; server++)
        add_place(broker, *server, false);
    if (broker->server_count > 0)
        start_timer(broker, 0);
    else
        log_error(broker->bus->log, CONTEXT, "no server has an address");
}

void broker_stop(struct broker *broker)
{
    if (broker->state == BROKER_CLOSED)
        return;
    drop_connection(broker);
    broker->state = BROKER_CLOSED;
    stdio_bus_event_loop_stop_timer(broker->bus->loop, &broker->timer);
    json_text_free(&broker->kept);
    hash_table_free(&broker->subscriptions);
}
