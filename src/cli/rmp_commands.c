#include "build_config.h"

#include "cli/rmp_commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/terminal.h"
#include "cli/rmp_link.h"
#include "cli/rmp_show.h"
#include "rmp/bridge.h"
#include "rmp/control.h"
#include "rmp/convert.h"
#include "rmp/schemas.h"
#include "json/document.h"

#define ANSWER_MS 5000
#define REASON_MAX 512

static int fail(int status, const char *reason)
{
    terminal_line(stderr, "stdio_bus_rmp: %s", reason);
    return status;
}

int rmp_cannot_connect(const char *path, const char *hint)
{
    terminal_line(
        stderr, "stdio_bus_rmp: cannot connect to %s: %s; start the daemon with: stdio_bus --rmp%s",
        path, strerror(errno), hint);
    return EXIT_RMP_NO_DAEMON;
}

int rmp_hung_up(void)
{
    return fail(EXIT_RMP_NO_DAEMON, "the daemon has hung up");
}

/* --- pub --- */

/* The schema of this type, or else the first one of its family. NULL: the type is none. */
static const struct rmp_schema *schema_for(struct slice type)
{
    static const struct rmp_schemas public_schemas;
    const struct rmp_schema *schema = rmp_schemas_of_type(&public_schemas, type);

    for (uint16_t id = 1; schema == NULL && id <= RMP_SCHEMA_ERROR_REPORT; id++) {
        schema = rmp_schemas_find(&public_schemas, id);
        if (schema != NULL && !rmp_schema_takes(schema, type))
            schema = NULL;
    }
    return schema;
}

/* The MsgPack of a JSON object. NULL after the reason was printed. */
static char *read_payload(const char *json, size_t *len)
{
    struct slice text = {json, strlen(json)};
    struct document document;
    struct document_error error;
    char *payload = NULL;
    bool is_object;

    if (document_read(&document, text, &error) != STDIO_BUS_OK) {
        terminal_line(stderr, "stdio_bus_rmp: the message is no JSON: %zu:%zu: %s", error.at.line,
                      error.at.column, error.text);
        return NULL;
    }
    is_object = document.root->type == JSON_OBJECT;
    document_free(&document);
    if (!is_object)
        terminal_line(stderr, "stdio_bus_rmp: the message must be a JSON object");
    else if (convert_to_msgpack(text, &payload, len) != STDIO_BUS_OK)
        terminal_line(stderr, "stdio_bus_rmp: out of memory");
    return payload;
}

/* Waits for the daemon's answer to the publication. */
static int wait_for_ack(struct rmp_link *link, struct rmp_id trace_id)
{
    int64_t until_ms = clock_now_ms() + ANSWER_MS;
    struct rmp_received frame;
    char reason[REASON_MAX], uuid[RMP_UUID_LEN + 1];
    size_t which;

    switch (rmp_link_wait(link, 1, until_ms, &frame, &which)) {
    case RMP_WAIT_FRAME:
        if (rmp_link_error(&frame, reason, sizeof reason))
            return fail(EXIT_RMP_FAILED, reason);
        terminal_line(stdout, "%s", rmp_uuid_write(uuid, trace_id));
        return EXIT_DONE;
    case RMP_WAIT_TIMEOUT:
        return fail(EXIT_RMP_NO_DAEMON, "the daemon does not answer");
    case RMP_WAIT_ENDED:
        break;
    }
    return rmp_hung_up();
}

static int publish(const struct rmp_options *options, struct rmp_link *link,
                   const struct rmp_schema *schema, struct slice payload)
{
    const struct rmp_header header = {.schema_id = schema->id,
                                      .created_at_ms = clock_epoch_ms(),
                                      .ttl_ms = options->ttl_ms,
                                      .trace_id = options->has_trace ? options->trace_id
                                                                     : rmp_link_new_id(),
                                      .msg_id = rmp_link_new_msg_id()};
    const char *topic = options->args[0];

    if (!rmp_link_send(link, &header, options->type, slice_of(topic, strlen(topic)), payload))
        return rmp_hung_up();
    return wait_for_ack(link, header.trace_id);
}

int rmp_pub(const struct rmp_options *options, const char *path)
{
    const struct rmp_schema *schema = schema_for(slice_of(options->type, strlen(options->type)));
    struct rmp_link link;
    size_t len;
    char *payload;
    int status;

    if (schema == NULL)
        return fail(EXIT_USAGE_ERROR, "--type is no type of a body: it is FAMILY.KIND.vN");
    payload = read_payload(options->args[1], &len);
    if (payload == NULL)
        return EXIT_DATA_ERROR;
    if (rmp_link_open(&link, path))
        status = publish(options, &link, schema, slice_of(payload, len));
    else
        status = rmp_cannot_connect(path, "");
    rmp_link_close(&link);
    free(payload);
    return status;
}

/* --- sub, trace: each topic has a connection, since not every message names its topic --- */

struct listening {
    struct rmp_link *links;
    size_t count, answered;
    const struct rmp_options *options;
    uint64_t shown, first_ms;
};

static int open_links(struct listening *listening, const char *path, const char *const *topics)
{
    for (size_t i = 0; i < listening->count; i++) {
        struct rmp_link *link = &listening->links[i];

        if (!rmp_link_open(link, path))
            return rmp_cannot_connect(path, "");
        if (!rmp_link_subscribe(link, topics[i], listening->options->replay)) {
            terminal_line(stderr, "stdio_bus_rmp: cannot subscribe to %s", topics[i]);
            return EXIT_RMP_FAILED;
        }
    }
    return EXIT_DONE;
}

/* The answer to a subscription. */
static int take_answer(struct listening *listening, const struct rmp_link *link,
                       const struct rmp_received *frame)
{
    char reason[REASON_MAX];

    if (rmp_link_error(frame, reason, sizeof reason)) {
        terminal_line(stderr, "stdio_bus_rmp: cannot subscribe to %s: %s", link->topic, reason);
        return EXIT_RMP_FAILED;
    }
    if (++listening->answered == listening->count)
        terminal_line(stderr, "stdio_bus_rmp: subscribed");
    return EXIT_DONE;
}

static void show(struct listening *listening, const struct rmp_link *link,
                 const struct rmp_received *frame, bool as_hop)
{
    if (listening->shown++ == 0)
        listening->first_ms = frame->header.created_at_ms;
    if (as_hop)
        rmp_show_hop(listening->shown, listening->first_ms, link->topic, frame);
    else if (listening->options->json)
        rmp_show_json(link->topic, frame, RMP_OK);
    else
        rmp_show_line(link->topic, frame);
    fflush(stdout);
}

static int listen_to(struct listening *listening, const struct rmp_id *trace)
{
    const struct rmp_options *options = listening->options;
    struct rmp_received frame;
    size_t which;

    while (options->count == 0 || listening->shown < options->count) {
        const struct rmp_link *link;

        if (rmp_link_wait(listening->links, listening->count, -1, &frame, &which) != RMP_WAIT_FRAME)
            return rmp_hung_up();
        link = &listening->links[which];
        if (rmp_id_equal(frame.header.trace_id, link->id)) {
            int status = take_answer(listening, link, &frame);

            if (status != EXIT_DONE)
                return status;
        } else if (trace == NULL || rmp_id_equal(frame.header.trace_id, *trace)) {
            show(listening, link, &frame, trace != NULL);
        }
        if (ferror(stdout))
            return fail(EXIT_OS_ERROR, "cannot write to stdout");
    }
    return EXIT_DONE;
}

static int listen_all(const struct rmp_options *options, const char *path,
                      const char *const *topics, size_t count, const struct rmp_id *trace)
{
    struct listening listening = {
        .links = calloc(count, sizeof *listening.links), .count = count, .options = options};
    int status;

    if (listening.links == NULL)
        return fail(EXIT_OS_ERROR, "out of memory");
    for (size_t i = 0; i < count; i++)
        listening.links[i].fd = -1;
    status = open_links(&listening, path, topics);
    if (status == EXIT_DONE)
        status = listen_to(&listening, trace);
    for (size_t i = 0; i < count; i++)
        rmp_link_close(&listening.links[i]);
    free(listening.links);
    return status;
}

int rmp_sub(const struct rmp_options *options, const char *path)
{
    return listen_all(options, path, (const char *const *)options->args, (size_t)options->arg_count,
                      NULL);
}

int rmp_trace(const struct rmp_options *options, const char *path)
{
    const char *given = options->args[0], *topics[RMP_LINKS_MAX];
    char events[BRIDGE_EVENTS_MAX];
    struct rmp_id trace;
    size_t count = 0;

    if (!rmp_uuid_read(slice_of(given, strlen(given)), &trace))
        return fail(EXIT_USAGE_ERROR, "TRACE_ID is no UUID");
    topics[count++] = bridge_events_topic(events, trace);
    topics[count++] = RMP_TOPIC_CONTROL;
    topics[count++] = "rlp/sys/drops";
    for (int i = 1; i < options->arg_count && count < RMP_LINKS_MAX; i++)
        topics[count++] = options->args[i];
    return listen_all(options, path, topics, count, &trace);
}
