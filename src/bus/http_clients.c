#include "build_config.h"

#include "bus/http_clients.h"

/* Until exchanges are there, no connection becomes a client. */

struct http_exchange *http_clients_prepare(struct stream_options *options)
{
    (void)options;
    return NULL;
}

void http_clients_open(struct client *client, struct http_exchange *http)
{
    (void)client;
    (void)http;
}

void http_clients_drop(struct http_exchange *http)
{
    (void)http;
}
