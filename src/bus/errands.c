#include "build_config.h"

#include "bus/errands.h"

#include <stdio.h>

#include "base/error.h"
#include "endpoint/endpoint.h"
#include "router/affinity.h"
#include "router/errand.h"
#include "router/subscriptions.h"

/* A byte of the text may need six. */
#define LINE_MAX_BYTES (6 * SUBSCRIPTION_URI_MAX + 256)

static const struct {
    const char *method, *param;
} requests[] = {
    [ERRAND_SET_LEVEL] = {"logging/setLevel", "level"},
    [ERRAND_SUBSCRIBE] = {"resources/subscribe", "uri"},
    [ERRAND_UNSUBSCRIBE] = {"resources/unsubscribe", "uri"},
};

static int send_initialize(struct endpoint *to, const struct errand *errand)
{
    struct splice_edit id = errand->initialize->at;
    const struct delivery delivery = {
        .bytes = errand->initialize->line, .edits = &id, .edit_count = 1, .keep = true};

    id.text = errand->request->answerer_id.text;
    return to->ops->deliver(to, &delivery);
}

static int send_line(struct endpoint *to, const struct errand *errand)
{
    const struct slice id = errand->request->answerer_id.text;
    char before[160], line[LINE_MAX_BYTES];
    struct delivery delivery = {.bytes = {line, 0}};

    snprintf(before, sizeof before,
             "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"method\":\"%s\",\"params\":{\"%s\":", (int)id.len,
             id.data, requests[errand->kind].method, requests[errand->kind].param);
    delivery.bytes.len = message_write_around(line, sizeof line, before,
                                              (struct message_id){ID_STRING, errand->text}, "}}\n");
    return to->ops->deliver(to, &delivery);
}

static int send_list(struct endpoint *to, const struct errand *errand)
{
    const struct slice id = errand->request->answerer_id.text;
    char before[160], line[6 * REMEMBERED_CURSOR_MAX + 256];
    struct delivery delivery = {.bytes = {line, 0}};
    int len = snprintf(before, sizeof before,
                       "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"method\":\"%s\"%s", (int)id.len, id.data,
                       errand->method,
                       errand->text.data != NULL ? ",\"params\":{\"cursor\":" : "}\n");

    if (errand->text.data == NULL)
        delivery.bytes = slice_of(before, (size_t)len);
    else
        delivery.bytes.len = message_write_around(line, sizeof line, before,
                                                  (struct message_id){ID_STRING, errand->text},
                                                  "}}\n");
    return to->ops->deliver(to, &delivery);
}

static int send_errand(struct endpoint *to, const struct errand *errand)
{
    if (errand->kind == ERRAND_LIST)
        return send_list(to, errand);
    return errand->kind == ERRAND_INITIALIZE ? send_initialize(to, errand) : send_line(to, errand);
}

void errands_announce(struct endpoint *client, unsigned lists)
{
#define CHANGED(list) "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/" list "/list_changed\"}\n"
    static const char *const lines[] = {
        [HANDSHAKE_TOOLS] = CHANGED("tools"),
        [HANDSHAKE_PROMPTS] = CHANGED("prompts"),
        [HANDSHAKE_RESOURCES] = CHANGED("resources"),
    };
    struct stdio_bus *bus = client->bus;

    for (size_t i = 0; i < HANDSHAKE_LISTS && !bus->options.config->strict; i++) {
        const struct delivery delivery = {.bytes = slice_of_text(lines[i])};

        if ((lists >> i & 1) != 0 && client->ops->deliver(client, &delivery) != STDIO_BUS_OK)
            log_error(bus->log, client->context, "out of memory: a notification was lost");
    }
}

/* Clients that were told of no such notification get none. */
static void announce(struct stdio_bus *bus, const struct errand *errand)
{
    const struct handshake *handshake = errand->worker->handshake;
    unsigned lists = errand->lists & handshake_announced(&handshake->answer);
    struct list_node *node, *following;

    log_repeated(bus->log, LOG_LEVEL_INFO, endpoint_of_peer(errand->worker)->context, LOG_NO_SOURCE,
                 "its lists differ from those that were remembered: its clients are %stold",
                 lists != 0 ? "" : "not ");
    list_each(&errand->worker->bindings, node, following)
        errands_announce(endpoint_of_peer(list_entry(node, struct binding, in_worker)->client),
                         lists);
}

void errands_run_all(struct stdio_bus *bus)
{
    struct errand errand;

    bus_read_clock(bus);
    if (bus->router.handshakes.forgot)
        log_error(bus->log, "", "out of memory: an answer of a server is not remembered");
    bus->router.handshakes.forgot = false;
    while (errand_next(&bus->router, &errand)) {
        struct endpoint *to = endpoint_of_peer(errand.worker);

        if (errand.kind == ERRAND_ANNOUNCE) {
            announce(bus, &errand);
            continue;
        }
        if (errand.request != NULL && send_errand(to, &errand) == STDIO_BUS_OK)
            continue;
        log_error(bus->log, to->context, "out of memory: a request of the daemon was lost");
        errand_failed(&bus->router, &errand);
    }
}
