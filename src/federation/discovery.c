#include "build_config.h"

#include "federation/discovery.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log_line.h"

#define SUBJECT_SIZE (NATS_SERVICE_NAME_MAX + NATS_SERVICE_ID_LEN + 16)

enum verb { VERB_PING, VERB_INFO, VERB_STATS, VERBS };

static const char *const verbs[VERBS] = {"PING", "INFO", "STATS"};
static const char *const types[VERBS] = {"ping", "info", "stats"};

/* A subject of the convention: all services, those of a name, one of them. */
enum scope { SCOPE_ALL, SCOPE_NAME, SCOPE_ID, SCOPES };

#define LOOKS ((unsigned)VERBS * (unsigned)SCOPES)

struct discovery {
    struct nats_export *export;
    struct nats_look {
        struct nats_subscription subscription;
        struct discovery *of;
        enum verb verb;
        char subject[SUBJECT_SIZE];
    } looks[LOOKS];
    char name[NATS_SERVICE_NAME_MAX + 1]; /* of letters, digits, - and _ */
    char id[NATS_SERVICE_ID_LEN + 1];
};

/* --- answers --- */

static void add_endpoint(struct json_text *text, const struct nats_look *look)
{
    const struct nats_export *export = look->of->export;
    const int64_t total_ns = (int64_t) export->answer_ms * 1000000;

    row_begin(text, "endpoints", '[');
    row_begin(text, NULL, '{');
    row_string(text, "name", "rpc");
    row_string(text, "subject", export->subject);
    row_string(text, "queue_group", export->subject);
    if (look->verb == VERB_STATS) {
        row_number(text, "num_requests", (int64_t) export->requests);
        row_number(text, "num_errors", (int64_t) export->refused);
        row_string(text, "last_error", "");
        row_number(text, "processing_time", total_ns);
        row_number(text, "average_processing_time",
                   export->answered > 0 ? total_ns / (int64_t) export->answered : 0);
    }
    row_end(text, '}');
    row_end(text, ']');
}

static void add_started(struct json_text *text, const struct stdio_bus *bus)
{
    const uint64_t epoch_ms = bus->started_epoch_ms;
    char started[LOG_TIME_SIZE];

    row_string(text, "started",
               log_time(started, (time_t)(epoch_ms / 1000), (int)(epoch_ms % 1000)));
}

static void answer(struct nats_subscription *subscription, const struct nats_frame *frame)
{
    const struct nats_look *look = list_entry(subscription, struct nats_look, subscription);
    struct nats_hub *hub = look->of->export->hub;
    struct json_text text = {.len = 0};

    if (frame->line.reply.data == NULL)
        return;
    json_text_literal(&text, "{\"type\":\"io.nats.micro.v1.");
    json_text_literal(&text, types[look->verb]);
    json_text_literal(&text, "_response\"");
    row_string(&text, "name", look->of->name);
    row_string(&text, "id", look->of->id);
    row_string(&text, "version", PACKAGE_VERSION);
    row_begin(&text, "metadata", '{');
    row_string(&text, "pool", look->of->export->id);
    row_end(&text, '}');
    if (look->verb == VERB_INFO)
        row_string(&text, "description", "JSON-RPC, a pool of stdio_bus");
    if (look->verb == VERB_STATS)
        add_started(&text, hub->bus);
    if (look->verb != VERB_PING)
        add_endpoint(&text, look);
    json_text_literal(&text, "}");
    if (text.failed || broker_publish_text(&hub->broker, frame->line.reply,
                                           json_text_slice(&text)) != STDIO_BUS_OK)
        log_warn(hub->bus->log, "nats", "out of memory: %s has no answer", look->subject);
    json_text_free(&text);
}

/* --- subjects --- */

static void name_service(struct discovery *discovery, const char *id)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

    snprintf(discovery->name, sizeof discovery->name, "%s", id);
    for (char *at = discovery->name; *at != '\0'; at++) {
        if (strchr(allowed, *at) == NULL)
            *at = '_';
    }
}

static void name_subject(struct nats_look *look, enum scope scope)
{
    const struct discovery *of = look->of;
    const char *verb = verbs[look->verb];

    if (scope == SCOPE_ALL)
        snprintf(look->subject, sizeof look->subject, "$SRV.%s", verb);
    else if (scope == SCOPE_NAME)
        snprintf(look->subject, sizeof look->subject, "$SRV.%s.%s", verb, of->name);
    else
        snprintf(look->subject, sizeof look->subject, "$SRV.%s.%s.%s", verb, of->name, of->id);
}

int discovery_add(struct nats_export *export)
{
    struct discovery *discovery = calloc(1, sizeof *discovery);
    uint64_t id;

    if (discovery == NULL)
        return STDIO_BUS_ERR;
    export->discovery = discovery;
    discovery->export = export;
    name_service(discovery, export->id);
    id = siphash(&export->hub->broker.random, export->id, strlen(export->id));
    snprintf(discovery->id, sizeof discovery->id, "%016llx", (unsigned long long)id);
    for (unsigned i = 0; i < LOOKS; i++) {
        struct nats_look *look = &discovery->looks[i];

        look->of = discovery;
        look->verb = (enum verb)(i / SCOPES);
        name_subject(look, (enum scope)(i % SCOPES));
        look->subscription.subject = look->subject;
        look->subscription.message = answer;
        if (broker_subscribe(&export->hub->broker, &look->subscription) != STDIO_BUS_OK) {
            discovery_remove(export);
            return STDIO_BUS_ERR;
        }
    }
    return STDIO_BUS_OK;
}

void discovery_remove(struct nats_export *export)
{
    if (export->discovery == NULL)
        return;
    for (unsigned i = 0; i < LOOKS; i++)
        broker_unsubscribe(&export->hub->broker, &export->discovery->looks[i].subscription);
    free(export->discovery);
    export->discovery = NULL;
}
