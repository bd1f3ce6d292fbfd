#include "build_config.h"

#include "web/accept.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "bus/gate.h"
#include "http/routes.h"
#include "transport/address.h"
#include "transport/connection_send.h"
#include "web/clients.h"
#include "web/exchange.h"

#define PATHS_MAX 256

/* The connection does not become a client of HTTP, and gets the reason. */
static void refuse(struct client *client, const struct gate_visitor *visitor)
{
    char answer[ADMISSION_TEXT_MAX + 256];
    const char *head = visitor->admission == ADMISSION_FULL
                           ? "503 Service Unavailable\r\n" HTTP_RETRY_AFTER
                           : "403 Forbidden\r\n";
    int len = snprintf(answer, sizeof answer,
                       "HTTP/1.1 %s"
                       "Content-Type: text/plain; charset=utf-8\r\n"
                       "Content-Length: %zu\r\n"
                       "Connection: close\r\n\r\n"
                       "%s\n",
                       head, strlen(visitor->text) + 1, visitor->text);

    if (connection_send_bytes(&client->stream.connection, slice_of(answer, (size_t)len)) !=
        STDIO_BUS_OK)
        log_error(visitor->listener->bus->log, client->stream.endpoint.context,
                  "out of memory: an answer was lost");
    client->stream.endpoint.ops->close(&client->stream.endpoint);
}

static void accept_connection(void *user_data, int fd, const struct origin *origin)
{
    struct bus_listener *listener = user_data;
    struct stream_options options = {.handler = &clients_handler};
    struct http_exchange *http = NULL;
    struct gate_visitor visitor;
    struct client *client;

    gate_judge(&visitor, listener, fd, origin);
    if (!visitor.refused) {
        http = http_clients_prepare(&options);
        if (http == NULL) {
            log_error(listener->bus->log, "", "cannot serve %s: out of memory", origin->text);
            close(fd);
            return;
        }
    }
    client = gate_take(&visitor, &options);
    if (client == NULL) {
        http_clients_drop(http);
        return;
    }
    if (visitor.refused) {
        refuse(client, &visitor);
        return;
    }
    if (listener->pool != NULL)
        router_confine(&client->stream.endpoint.peer, listener->pool);
    http_clients_open(client, http, listener->service);
    log_debug(listener->bus->log, client->stream.endpoint.context, "connection of %s",
              origin->text);
    if (listener_asks_token(listener))
        gate_wait(client);
    else
        gate_admit(client);
}

/* What a client of HTTP needs to know. */
static void log_url(const struct bus_listener *listener)
{
    const struct listen_config *config = listener->config;
    struct sockaddr_storage bound;
    socklen_t len = sizeof bound;
    char text[ADDRESS_TEXT_MAX], paths[PATHS_MAX];

    http_routes_describe(&config->http, paths, sizeof paths);
    if (config->address.is_unix) {
        log_info(listener->bus->log, "", "HTTP at unix:%s with %s", config->address.path, paths);
        return;
    }
    for (int i = 0; i < listener->listener.count; i++) {
        if (getsockname(listener->listener.sockets[i].fd, (struct sockaddr *)&bound, &len) == 0)
            log_info(listener->bus->log, "", "HTTP at http://%s with %s",
                     address_text(text, sizeof text, (const struct sockaddr *)&bound), paths);
    }
}

const struct listener_kind http_listener = {
    .name = "http", .of = LISTEN_HTTP, .accepted = accept_connection, .opened = log_url};
