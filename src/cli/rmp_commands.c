#include "build_config.h"

#include "cli/rmp_commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/terminal.h"
#include "cli/rmp_link.h"
#include "cli/rmp_local.h"
#include "cli/rmp_params.h"
#include "cli/rmp_show.h"
#include "config/diagnostics.h"
#include "config/sources.h"
#include "rmp/bridge.h"
#include "rmp/control.h"
#include "rmp/convert.h"
#include "rmp/schemas.h"
#include "json/document.h"

static int fail(int status, const char *reason)
{
    terminal_line(stderr, "stdio_bus_rmp: %s", reason);
    return status;
}

/* What they report of a daemon that is not there, with errno set, or that has ended the connection.
 * `hint`: what else could be done; or "". Both return EXIT_RMP_NO_DAEMON. */
static int rmp_cannot_connect(const char *path, const char *hint)
{
    terminal_line(
        stderr, "stdio_bus_rmp: cannot connect to %s: %s; start the daemon with: stdio_bus --rmp%s",
        path, strerror(errno), hint);
    return EXIT_RMP_NO_DAEMON;
}

static int rmp_hung_up(void)
{
    return fail(EXIT_RMP_NO_DAEMON, "the daemon has hung up");
}

enum stage { STAGE_GO_ON, STAGE_DONE, STAGE_FAILED };

struct submission {
    struct rmp_link link;
    struct rmp_local local; /* with --local, */
    bool is_local;
    struct rmp_id run;
    bool follow; /* which includes this */
    bool is_accepted;
    char *yaml;
    size_t yaml_len;
    struct json_text early; /* the events that came before RunAccepted, each with its NUL: kept, */
    enum stage early_stage; /* and what the last of them says */
};

static void print_problem(void *user_data, bool is_error, const char *text)
{
    (void)user_data;
    (void)is_error;
    terminal_line(stderr, "stdio_bus_rmp: %s", text);
}

/* --- the request --- */

static void put_submit(struct msgpack_writer *writer, const struct submission *submission)
{
    msgpack_put_map(writer, 1);
    msgpack_put_text(writer, "RunSubmit");
    msgpack_put_map(writer, 2);
    msgpack_put_text(writer, "request_id");
    rmp_put_id(writer, submission->run);
    msgpack_put_text(writer, "opening_yaml");
    msgpack_put_str(writer, slice_of(submission->yaml, submission->yaml_len));
}

static bool send_submit(struct submission *submission)
{
    const struct rmp_header header = {.schema_id = RMP_SCHEMA_CTRL_REQ,
                                      .created_at_ms = clock_epoch_ms(),
                                      .ttl_ms = RMP_CONTROL_TTL_MS,
                                      .trace_id = submission->run,
                                      .msg_id = rmp_link_new_msg_id()};
    size_t size = submission->yaml_len + 256;
    char *payload = malloc(size);
    struct msgpack_writer writer = {.to = payload, .size = payload != NULL ? size : 0};
    bool sent;

    if (payload == NULL)
        return false;
    put_submit(&writer, submission);
    sent = rmp_link_send(&submission->link, &header, "intent.ctrl.request.v1",
                         slice_of_text(RMP_TOPIC_CONTROL), slice_of(payload, writer.len));
    free(payload);
    return sent;
}

static bool begin(struct submission *submission)
{
    char events[BRIDGE_EVENTS_MAX];

    return rmp_link_subscribe(&submission->link, RMP_TOPIC_CONTROL, false) &&
           (!submission->follow ||
            rmp_link_subscribe(&submission->link, bridge_events_topic(events, submission->run),
                               true)) &&
           send_submit(submission);
}

/* --- what comes back --- */

static enum stage stage_after(enum rmp_run_end end)
{
    if (end == RMP_RUN_OPEN)
        return STAGE_GO_ON;
    return end == RMP_RUN_COMPLETED ? STAGE_DONE : STAGE_FAILED;
}

/* The run was submitted before and has ended: no event follows those that are kept. */
static enum stage show_ended(struct slice meta)
{
    struct msgpack_value ended;
    enum rmp_run_end end = RMP_RUN_OPEN;

    if (meta.len > 0 && msgpack_find(meta, "ended", &ended, NULL) && ended.type == MSGPACK_STR)
        end = rmp_run_end_named(ended.bytes);
    if (end != RMP_RUN_OPEN)
        terminal_line(stderr, "stdio_bus_rmp: the run has ended (%s); its last event is not kept",
                      rmp_run_end_name(end));
    return stage_after(end);
}

static enum stage show_early(struct submission *submission, struct slice meta)
{
    struct json_text *early = &submission->early;

    if (early->failed)
        terminal_line(stderr, "stdio_bus_rmp: out of memory");
    for (size_t at = 0; !early->failed && at < early->len; at += strlen(early->data + at) + 1)
        terminal_line(stdout, "%s", early->data + at);
    json_text_free(early);
    return submission->early_stage != STAGE_GO_ON ? submission->early_stage : show_ended(meta);
}

static void show_accepted(struct slice members)
{
    char *trace = rmp_show_member(members, "trace_id");
    char *name = rmp_show_member(members, "opening_name");
    char *id = rmp_show_member(members, "opening_id");

    terminal_line(stdout, "accepted: trace %s, opening %s (%s)", trace, name, id);
    free(trace);
    free(name);
    free(id);
}

static enum stage take_accepted(struct submission *submission, const struct rmp_received *frame,
                                struct slice members)
{
    show_accepted(members);
    submission->is_accepted = true;
    return submission->follow ? show_early(submission, frame->envelope.meta) : STAGE_DONE;
}

static enum stage show_answer(struct submission *submission, const struct rmp_received *frame)
{
    struct msgpack_value value;
    struct slice members;
    char *reason;

    if (msgpack_find(frame->envelope.payload, "RunAccepted", &value, &members))
        return take_accepted(submission, frame, members);
    if (!msgpack_find(frame->envelope.payload, "RunRejected", &value, &members))
        return STAGE_GO_ON;
    reason = rmp_show_member(members, "reason");
    terminal_line(stderr, "stdio_bus_rmp: rejected: %s", reason);
    free(reason);
    return STAGE_FAILED;
}

/* Events precede the answer where the run was submitted before. */
static enum stage show_event(struct submission *submission, const struct rmp_received *frame)
{
    struct slice event = frame->envelope.payload;
    char *kind = rmp_show_member(event, "kind"), *level = rmp_show_member(event, "level"),
         *message = rmp_show_member(event, "message");
    enum stage stage = stage_after(rmp_run_end_of(event));
    const char *gap = level[0] != '\0' ? " " : "";

    if (submission->is_accepted) {
        terminal_line(stdout, "%s%s%s: %s", kind, gap, level, message);
    } else {
        json_text_format(&submission->early, "%s%s%s: ", kind, gap, level);
        json_text_add(&submission->early, slice_of(message, strlen(message) + 1));
        submission->early_stage = stage != STAGE_GO_ON ? stage : submission->early_stage;
        stage = STAGE_GO_ON;
    }
    free(kind);
    free(level);
    free(message);
    return stage;
}

static enum stage take_frame(struct submission *submission, const struct rmp_received *frame)
{
    char reason[512];

    if (rmp_link_error(frame, reason, sizeof reason)) {
        terminal_line(stderr, "stdio_bus_rmp: %s", reason);
        return STAGE_FAILED;
    }
    if (!frame->has_envelope || !rmp_id_equal(frame->header.trace_id, submission->run))
        return STAGE_GO_ON;
    if (frame->header.schema_id == RMP_SCHEMA_CTRL_RESP)
        return show_answer(submission, frame);
    if (frame->header.schema_id == RMP_SCHEMA_RUN_EVENT && submission->follow)
        return show_event(submission, frame);
    return STAGE_GO_ON;
}

/* A local runner is asked as soon as it runs: it may have to start first. */
static int64_t answer_until(const struct submission *submission)
{
    return clock_now_ms() + (submission->is_local ? RMP_CONTROL_TTL_MS : RMP_CONTROL_WAIT_MS);
}

static int no_answer(const struct submission *submission)
{
    if (submission->is_local) {
        terminal_line(stderr,
                      "stdio_bus_rmp: no RunAccepted within %d ms: the runner does not answer",
                      RMP_CONTROL_TTL_MS);
        return EXIT_RMP_FAILED;
    }
    terminal_line(
        stderr, "stdio_bus_rmp: no RunAccepted within %d ms. Is the daemon running? Start it with:",
        RMP_CONTROL_WAIT_MS);
    terminal_line(stderr, "    stdio_bus --rmp --config FILE");
    terminal_line(
        stderr,
        "with a pool in FILE that has \"rmp\": {\"runner\": true}, or run the file without");
    terminal_line(stderr, "a daemon, with that pool: --local --config FILE");
    return EXIT_RMP_NO_DAEMON;
}

/* What a local bus has logged is on stderr. */
static int hung_up(struct submission *submission)
{
    int status;

    if (!submission->is_local)
        return rmp_hung_up();
    status = rmp_local_end(&submission->local);
    if (status != EXIT_RMP_FAILED)
        return status != EXIT_DONE ? status : rmp_hung_up();
    terminal_line(stderr, "stdio_bus_rmp: the runner has exited before the end of the run");
    return EXIT_RMP_FAILED;
}

/* Until the answer there is a limit of time. */
static int wait_for_end(struct submission *submission, int64_t until_ms)
{
    enum stage stage = STAGE_GO_ON;
    struct rmp_received frame;
    size_t which;

    while (stage == STAGE_GO_ON) {
        enum rmp_wait wait = rmp_link_wait(&submission->link, 1, until_ms, &frame, &which);

        if (wait == RMP_WAIT_TIMEOUT)
            return no_answer(submission);
        if (wait == RMP_WAIT_ENDED)
            return hung_up(submission);
        stage = take_frame(submission, &frame);
        fflush(stdout);
        if (frame.header.schema_id == RMP_SCHEMA_CTRL_RESP &&
            rmp_id_equal(frame.header.trace_id, submission->run))
            until_ms = -1;
    }
    return stage == STAGE_DONE ? EXIT_DONE : EXIT_RMP_FAILED;
}

/* The opening, with the overrides of the command line. False, after a line on stderr. */
static bool read_opening(struct submission *submission, const struct rmp_options *options)
{
    struct diagnostics diagnostics = {.name = options->args[0], .report = print_problem};
    struct json_text merged = {.data = NULL};
    char problem[RMP_PARAMS_PROBLEM_MAX];

    if (!file_read(&submission->yaml, &submission->yaml_len, options->args[0], &diagnostics))
        return false;
    if (options->param_count == 0)
        return true;
    if (!rmp_params_merge(&merged, slice_of(submission->yaml, submission->yaml_len),
                          options->params, options->param_count, problem)) {
        json_text_free(&merged);
        print_problem(NULL, true, problem);
        return false;
    }
    free(submission->yaml);
    submission->yaml = merged.data;
    submission->yaml_len = merged.len;
    return true;
}

static int submit(struct submission *submission, const char *path)
{
    int status;

    if (!rmp_link_open(&submission->link, path))
        status = rmp_cannot_connect(path, ", or use --local");
    else if (begin(submission))
        status = wait_for_end(submission, answer_until(submission));
    else
        status = hung_up(submission);
    rmp_link_close(&submission->link);
    return status;
}

/* The run lives as long as this program, which follows it. */
static int submit_locally(struct submission *submission, const char *config)
{
    int status = rmp_local_start(&submission->local, config), end;

    submission->is_local = submission->follow = true;
    if (status == EXIT_DONE)
        status = submit(submission, submission->local.path);
    end = rmp_local_end(&submission->local);
    return status == EXIT_DONE && end != EXIT_RMP_FAILED ? end : status;
}

int rmp_submit(const struct rmp_options *options, const char *path)
{
    struct submission submission = {.run = options->has_trace ? options->trace_id
                                                              : rmp_link_new_id(),
                                    .follow = options->follow};
    int status = EXIT_DATA_ERROR;

    if (read_opening(&submission, options))
        status = options->local ? submit_locally(&submission, options->config)
                                : submit(&submission, path);
    json_text_free(&submission.early);
    free(submission.yaml);
    return status;
}

#define ANSWER_MS 5000
#define REASON_MAX 512

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

    if (!rmp_link_send(link, &header, options->type, slice_of_text(topic), payload))
        return rmp_hung_up();
    return wait_for_ack(link, header.trace_id);
}

int rmp_pub(const struct rmp_options *options, const char *path)
{
    const struct rmp_schema *schema = schema_for(slice_of_text(options->type));
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

    if (!rmp_uuid_read(slice_of_text(given), &trace))
        return fail(EXIT_USAGE_ERROR, "TRACE_ID is no UUID");
    topics[count++] = bridge_events_topic(events, trace);
    topics[count++] = RMP_TOPIC_CONTROL;
    topics[count++] = "rlp/sys/drops";
    for (int i = 1; i < options->arg_count && count < RMP_LINKS_MAX; i++)
        topics[count++] = options->args[i];
    return listen_all(options, path, topics, count, &trace);
}
