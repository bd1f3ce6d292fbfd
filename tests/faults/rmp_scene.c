#include "build_config.h"

#include "rmp_scene.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "deadline.h"
#include "rmp/bridge.h"
#include "rmp/control.h"
#include "rmp/convert.h"
#include "rmp/frame.h"
#include "rmp/schemas.h"
#include "rmp/subscription.h"
#include "upgrade_scene.h"

#define BODY 30000 /* bytes; eight such messages fill all queues of a subscriber */
#define MESSAGES 8
#define TOPICS 40
#define STALL_MS 60 /* without input: a lasting fault has had its effect */
#define RUN_ID "00000000-0000-0000-0000-000000000001"
#define SECOND_ID "00000000-0000-0000-0000-000000000002"
#define OLD_ID "00000000-0000-0000-0000-000000000009" /* of a daemon before */
#define TTL_MS 3600000                                /* the daemon's clock is a fast one */

/* A client of the RMP socket. */
struct link {
    struct run *run;
    uint64_t msg_id; /* of its last frame */
    int fd;          /* -1: closed */
    struct text input;
};

static void link_close(struct link *link)
{
    if (link->fd >= 0)
        close(link->fd);
    link->fd = -1;
    text_free(&link->input);
}

/* The connection has ended, which only a fault brings about. */
static void link_lost(struct link *link)
{
    link->run->client_lost = true;
    link_close(link);
}

static void link_open(struct link *link, struct run *run)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int64_t deadline = deadline_usual();

    *link = (struct link){.run = run, .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/bus/rmp.sock", run->dir);
    while (connect(link->fd, (struct sockaddr *)&address, sizeof address) < 0) {
        if (!run_alive(run)) {
            link_lost(link);
            return;
        }
        if (deadline_over(deadline))
            run_fail(run, "the RMP socket cannot be connected to");
        nap();
    }
}

static void link_send_bytes(struct link *link, const char *bytes, size_t len)
{
    size_t sent = 0;

    while (link->fd >= 0 && sent < len) {
        ssize_t n = send(link->fd, bytes + sent, len - sent, MSG_NOSIGNAL);

        if (n < 0)
            link_lost(link);
        else
            sent += (size_t)n;
    }
}

/* Sends a command (' for "). */
static void link_send(struct link *link, const struct text *command)
{
    struct text frame = {0};

    for (int shift = 24; shift >= 0; shift -= 8)
        text_add(&frame, &(char){(char)(command->len >> shift & 0xFF)}, 1);
    text_add(&frame, command->data, command->len);
    text_quote(&frame, 4);
    link_send_bytes(link, frame.data, frame.len);
    text_free(&frame);
}

/* True if an answer may be lost: the log has a warning. */
static bool gives_up(struct link *link)
{
    run_lift(link->run);
    return run_logged(link->run, "WARN ") || run_logged(link->run, "ERROR ");
}

/* Reads until a frame contains this text (' for "). False: the answer is lost. */
static bool link_await(struct link *link, const char *words)
{
    int64_t deadline = deadline_usual();
    struct text wanted = {0};
    bool found = false;

    text_printf(&wanted, "%s", words);
    text_quote(&wanted, 0);
    while (link->fd >= 0 && !found) {
        const unsigned char *head = (const unsigned char *)link->input.data;
        size_t len = 0;
        ssize_t n;

        if (link->input.len >= 4)
            len = 4 +
                  ((size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3]);
        if (len > 0 && link->input.len >= len) {
            found = memmem(link->input.data + 4, len - 4, wanted.data, wanted.len) != NULL;
            link->input.len -= len;
            memmove(link->input.data, link->input.data + len, link->input.len);
            continue;
        }
        if (!wait_fd(link->fd, POLLIN, now_ms() + STALL_MS)) {
            if (deadline_over(deadline))
                run_fail(link->run, "no answer with %s", words);
            if (gives_up(link))
                break;
            continue;
        }
        n = read(link->fd, text_room(&link->input, 65536), 65536);
        if (n <= 0)
            link_lost(link);
        else
            link->input.len += (size_t)n;
    }
    text_free(&wanted);
    return found;
}

static void hello(struct link *link)
{
    struct text command = {0};

    text_printf(&command, "{'Hello':{'kind':'Ui'}}");
    link_send(link, &command);
    link_await(link, "'HelloAck'");
    text_free(&command);
}

static void subscribe(struct link *link, const char *topic, unsigned id)
{
    struct text command = {0};

    text_printf(&command, "{'Subscribe':{'id':%u,'topic':'%s','sub_id':%u}}", id, topic, id);
    link_send(link, &command);
    link_await(link, "{'SubscribeAck'");
    text_free(&command);
}

static void publish(struct link *link, const char *topic, unsigned id, size_t len, bool late)
{
    struct text command = {0};

    text_printf(&command,
                "{'Publish':{'id':%u,'topic':'%s','message':{'header':{'header_version':0,"
                "'header_len':64,'flags':0,'schema_id':3003,'body_len':0,'created_at_ms':%" PRIu64
                ",'ttl_ms':3600000,'trace_id':1,'msg_id':%u},'body':[1",
                id, topic, late ? (uint64_t)1 : (uint64_t)time(NULL) * 1000, id);
    while (len-- > 1)
        text_add(&command, ",255", 4);
    text_printf(&command, "]}}}");
    link_send(link, &command);
    text_free(&command);
}

/* A subscriber that does not read for a while, duplicates, expired messages, notices. */
static void talk(struct link *ann, struct link *ben)
{
    char topic[16];

    for (unsigned i = 1; i <= TOPICS; i++) {
        snprintf(topic, sizeof topic, "topic %u", i);
        subscribe(ann, topic, i);
    }
    subscribe(ann, "rlp/sys/drops", TOPICS + 1);
    for (unsigned i = 1; i <= MESSAGES; i++) {
        publish(ben, "topic 1", i, BODY, false);
        link_await(ben, "{'PublishAck'");
    }
    hello(ann);
    for (unsigned i = 0; i < 3; i++) {
        publish(ben, "topic 2", 100, 10, false);
        link_await(ben, "{'PublishAck'");
    }
    publish(ben, "topic 2", 101, 10, true);
    link_await(ben, "{'PublishAck'");
    hello(ann);
}

/* Whoever comes now is served, unless the daemon has ended. Connections and answers may be lost:
 * there are more tries. */
static void check_recovery(struct run *run, bool (*serves)(struct run *run))
{
    int64_t deadline = deadline_usual();

    run_lift(run);
    while (run_alive(run) && !serves(run)) {
        if (deadline_over(deadline))
            run_fail(run, "the daemon is alive but does not serve");
    }
}

static bool says_hello(struct run *run)
{
    struct link zoe;
    bool served;

    link_open(&zoe, run);
    hello(&zoe);
    served = zoe.fd >= 0;
    link_close(&zoe);
    return served;
}

void play_rmp(struct run *run)
{
    struct link ann, ben;

    link_open(&ann, run);
    hello(&ann);
    run_arm(run);
    link_open(&ben, run);
    hello(&ben);
    talk(&ann, &ben);
    check_recovery(run, says_hello);
    run_terminate(run);
    link_close(&ann);
    link_close(&ben);
}

/* ---- the bridge ----------------------------------------------------------------------------- */

/* Adds the frame of the draft, which has no payload yet; that is JSON (' for "). */
static void add_frame(struct text *to, struct rmp_draft *draft, const char *json)
{
    struct text text = {0};
    char *payload = NULL, *frame;
    size_t len;

    draft->header.created_at_ms = (uint64_t)time(NULL) * 1000;
    draft->header.ttl_ms = TTL_MS;
    text_printf(&text, "%s", json);
    text_quote(&text, 0);
    if (convert_to_msgpack(slice_of(text.data, text.len), &payload, &draft->payload.len) != 0)
        abort();
    draft->payload.data = payload;
    frame = rmp_compose(draft, &len);
    if (frame == NULL)
        abort();
    text_add(to, frame, len);
    free(frame);
    free(payload);
    text_free(&text);
}

/* Sends a frame of this trace. */
static void link_frame(struct link *link, enum rmp_schema_id schema, const char *type,
                       const char *topic, uint64_t trace, const char *json)
{
    struct text frame = {0};
    struct rmp_draft draft = {
        .header = {.schema_id = (uint16_t)schema, .trace_id = {0, trace}, .msg_id = ++link->msg_id},
        .type = type,
        .topic = slice_of(topic, strlen(topic))};

    add_frame(&frame, &draft, json);
    link_send_bytes(link, frame.data, frame.len);
    text_free(&frame);
}

static void listen_to(struct link *link, const char *topic)
{
    struct text json = {0};

    text_printf(&json, "{'op':'subscribe','topic':'%s'}", topic);
    link_frame(link, RMP_SCHEMA_CONTROL, "intent.control.v1", "", 1, json.data);
    link_await(link, topic);
    text_free(&json);
}

/* Asks the agent for a method of the test worker. */
static void execute(struct link *link, const char *method, const char *inputs)
{
    struct text json = {0};

    text_printf(&json, "{'node':{'method':'%s'},'inputs':%s,'reply_topic':'reply'}", method,
                inputs);
    link_frame(link, RMP_SCHEMA_AGENT_REQUEST, "intent.executor.agent.request.v1",
               RMP_AGENT_PREFIX "writer", 2, json.data);
    text_free(&json);
}

static void control(struct link *link, uint64_t trace, const char *json)
{
    link_frame(link, RMP_SCHEMA_CTRL_REQ, "intent.ctrl.request.v1", RMP_TOPIC_CONTROL, trace, json);
}

static void submit(struct link *link)
{
    control(link, 1, "{'RunSubmit':{'request_id':'" RUN_ID "','opening_yaml':'name: a'}}");
}

/* A run that has events before its acceptance. */
static void submit_early(struct link *link)
{
    control(link, 2, "{'RunSubmit':{'request_id':'" SECOND_ID "','opening_yaml':'early'}}");
}

/* An agent that answers, fails and asks; a run that is accepted, once, sends events and is
 * cancelled. */
static void use_agents(struct link *link)
{
    execute(link, "plain", "{'result':{'a':[1.5,'b']}}");
    link_await(link, "Completed");
    execute(link, "fail", "{'data':{'retryable':true}}");
    link_await(link, "as you asked");
    execute(link, "ask", "{'id':7,'params':{}}");
    link_await(link, "answers no requests");
    submit(link);
    link_await(link, "RunAccepted");
    link_await(link, "completed");
    submit(link);
    link_await(link, "RunAccepted");
    submit_early(link);
    link_await(link, "RunAccepted");
    control(link, 3, "{'RunCancel':{'trace_id':'" RUN_ID "'}}");
    link_await(link, "RunCancelled");
    link_await(link, "cancelled");
}

static bool has_agent(struct run *run)
{
    struct link zoe;
    bool served;

    link_open(&zoe, run);
    zoe.msg_id = (uint64_t)now_ms() * 100; /* each try has other ones */
    listen_to(&zoe, "reply");
    execute(&zoe, "plain", "{'result':'of Zoe'}");
    served = link_await(&zoe, "of Zoe");
    link_close(&zoe);
    return served;
}

void play_bridge(struct run *run)
{
    struct link ann;

    link_open(&ann, run);
    ann.msg_id = 1000000; /* not those of answers where there is no time */
    listen_to(&ann, "reply");
    listen_to(&ann, RMP_TOPIC_CONTROL);
    listen_to(&ann, "rlp/runs/trace:" RUN_ID "/events");
    run_arm(run);
    use_agents(&ann);
    check_recovery(run, has_agent);
    run_terminate(run);
    link_close(&ann);
}

/* ---- the history of runs -------------------------------------------------------------------- */

static void write_file(struct run *run, const char *name, const struct text *bytes)
{
    char path[128];
    int fd;

    snprintf(path, sizeof path, "%s/bus/runs/%s", run->dir, name);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, bytes->data, bytes->len) != (ssize_t)bytes->len)
        abort();
    close(fd);
}

/* Adds a frame of the run OLD_ID. */
static void add_old_frame(struct text *to, enum rmp_schema_id schema, const char *type,
                          const char *json)
{
    struct rmp_draft draft = {
        .header = {.schema_id = (uint16_t)schema, .trace_id = {0, 9}, .msg_id = 1}, .type = type};

    add_frame(to, &draft, json);
}

void prepare_history(struct run *run)
{
    struct text file = {0};

    run_make_dir(run, "bus");
    run_make_dir(run, "bus/runs");
    add_old_frame(&file, RMP_SCHEMA_CTRL_RESP, "toolresult.ctrl.response.v1",
                  "{'RunAccepted':{'request_id':'" OLD_ID "'}}");
    add_old_frame(&file, RMP_SCHEMA_RUN_EVENT, "observation.run.event.v1",
                  "{'kind':'log','message':'of old','meta':{}}");
    write_file(run, OLD_ID ".rmp", &file);
    write_file(run, OLD_ID ".new", &file);
    text_free(&file);
}

static void replay(struct link *link, const char *run, const char *word)
{
    struct text json = {0};

    text_printf(&json, "{'op':'subscribe','topic':'rlp/runs/trace:%s/events','replay':true}", run);
    link_frame(link, RMP_SCHEMA_CONTROL, "intent.control.v1", "", 1, json.data);
    link_await(link, word);
    text_free(&json);
}

/* A run of the daemon before, two of this one, for which that one has no place any more. */
static void use_history(struct link *link)
{
    replay(link, OLD_ID, "of old");
    submit(link);
    link_await(link, "RunAccepted");
    submit_early(link);
    link_await(link, "RunAccepted");
    execute(link, "plain", "{'result':'time has passed'}");
    link_await(link, "time has passed");
    replay(link, SECOND_ID, "zero");
}

void play_history(struct run *run)
{
    struct link ann;

    link_open(&ann, run);
    ann.msg_id = 1000000; /* as above */
    listen_to(&ann, "reply");
    listen_to(&ann, RMP_TOPIC_CONTROL);
    run_arm(run);
    use_history(&ann);
    check_recovery(run, has_agent);
    run_terminate(run);
    link_close(&ann);
}

/* ---- upgrades ------------------------------------------------------------------------------- */

/* What lasts longer than an upgrade. */
struct lasting {
    struct link asker, slow, publisher;
};

/* A subscriber that does not read, and what waits for it; a run, a request in flight. */
static void begin_lasting(struct lasting *lasting, struct run *run)
{
    link_open(&lasting->asker, run);
    link_open(&lasting->slow, run);
    link_open(&lasting->publisher, run);
    lasting->asker.msg_id = 1000000; /* as above */
    listen_to(&lasting->asker, "reply");
    listen_to(&lasting->asker, RMP_TOPIC_CONTROL);
    subscribe(&lasting->slow, "topic", 1);
    for (unsigned i = 1; i <= MESSAGES; i++) {
        publish(&lasting->publisher, "topic", i, BODY, false);
        link_await(&lasting->publisher, "{'PublishAck'");
    }
    submit(&lasting->asker);
    link_await(&lasting->asker, "RunAccepted");
    execute(&lasting->asker, "hold", "{}");
    link_await(&lasting->asker, "Completed");
    execute(&lasting->asker, "plain", "{'result':'was held'}");
}

static void end_lasting(struct lasting *lasting)
{
    execute(&lasting->asker, "release", "{}");
    link_await(&lasting->asker, "was held");
    submit(&lasting->asker);
    link_await(&lasting->asker, "RunAccepted");
    hello(&lasting->slow);
    publish(&lasting->publisher, "topic", 100, 10, false);
    link_await(&lasting->publisher, "{'PublishAck'");
    hello(&lasting->slow);
}

/* The asker may be lost. */
static void let_go(struct run *run)
{
    struct link zoe;

    link_open(&zoe, run);
    zoe.msg_id = 2000000;
    execute(&zoe, "release", "{}");
    link_close(&zoe);
}

void play_upgraded_bus(struct run *run)
{
    struct lasting lasting;

    begin_lasting(&lasting, run);
    run_arm(run);
    upgrade_once(run);
    end_lasting(&lasting);
    run_lift(run);
    upgrade_once(run);
    let_go(run);
    check_recovery(run, has_agent);
    run_terminate(run);
    link_close(&lasting.asker);
    link_close(&lasting.slow);
    link_close(&lasting.publisher);
}
