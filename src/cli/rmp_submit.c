#include "build_config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/terminal.h"
#include "cli/rmp_commands.h"
#include "cli/rmp_link.h"
#include "cli/rmp_local.h"
#include "cli/rmp_params.h"
#include "cli/rmp_show.h"
#include "config/diagnostics.h"
#include "config/file.h"
#include "rmp/bridge.h"
#include "rmp/control.h"
#include "rmp/schemas.h"

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
                         slice_of(RMP_TOPIC_CONTROL, sizeof RMP_TOPIC_CONTROL - 1),
                         slice_of(payload, writer.len));
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
