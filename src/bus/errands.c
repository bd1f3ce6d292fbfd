#include "build_config.h"

#include "bus/errands.h"

#include <stdio.h>

#include "base/error.h"
#include "endpoint/endpoint.h"
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

static int send_errand(struct endpoint *to, const struct errand *errand)
{
    return errand->kind == ERRAND_INITIALIZE ? send_initialize(to, errand) : send_line(to, errand);
}

void errands_run_all(struct stdio_bus *bus)
{
    struct errand errand;

    bus_read_clock(bus);
    while (errand_next(&bus->router, &errand)) {
        struct endpoint *to = endpoint_of_peer(errand.worker);

        if (errand.request != NULL && send_errand(to, &errand) == STDIO_BUS_OK)
            continue;
        log_error(bus->log, to->context, "out of memory: a request of the daemon was lost");
        errand_failed(&bus->router, &errand);
    }
}
