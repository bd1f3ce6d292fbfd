#include "build_config.h"

#include "web/accept.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "bus/gate.h"
#include "transport/connection_send.h"
#include "web/clients.h"
#include "web/exchange.h"

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

void http_accepted(void *user_data, int fd, const struct origin *origin)
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
