/* RMP 10: the events of runs that the daemon keeps, in memory and in files. */
#include "build_config.h"

#include <dirent.h>

#include "harness.h"
#include "rmp.h"
#include "rmp_program.h"

#define EVENTS_TOPIC "rlp/runs/trace:" RMP_TRACE "/events"
#define FILE_NAME RMP_TRACE ".rmp"

/* The runner is an agent too, so that a test can let it write what it likes. */
#define RUNNER                                                                                     \
    "{'id':'runner','command':'@WORKER@','instances':1,"                                           \
    "'rmp':{'runner':true,'agent':'runner'}}"
#define AGENT(name)                                                                                \
    "{'id':'" name "','command':'@WORKER@','instances':1,'rmp':{'agent':'" name "'}}"

/* --- helpers --- */

/* A daemon with a runner; `keys` are those of "rmp". */
static struct daemon *start_with(const char *pools, const char *keys)
{
    struct daemon *daemon = START(.pools = pools, .members = test_format("'rmp':{%s}", keys),
                                  .arguments = {"--rmp", "@DIR@/rmp.sock"});

    daemon_wait_log(daemon, "listening on .*/rmp\\.sock");
    return daemon;
}

static struct daemon *start(const char *keys)
{
    return start_with(RUNNER, keys);
}

/* A directory for the files of runs, which is not there yet. */
static const char *new_directory(void)
{
    return test_format("%s/a/runs", test_dir());
}

static struct daemon *start_at(const char *directory)
{
    return start(test_format("'history':'%s'", directory));
}

static const char *file_of(const char *text)
{
    const char *path = test_format("%s/run.yaml", test_dir());
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
    return path;
}

static void submit(const struct daemon *daemon, const char *trace, const char *opening)
{
    rmp_program_says(RMP_PROGRAM(daemon, "submit", "--trace", trace, file_of(opening)), 0,
                     "accepted: trace ");
}

/* The runner writes an event of this run. */
static void add_event(const struct daemon *daemon, const char *trace, const char *kind,
                      const char *message)
{
    struct rmp_program replies = rmp_program_subscriber(daemon, "reply");

    rmp_program_publish(daemon, "agent/runner", "intent.executor.agent.request.v1", trace, "30000",
                        test_format("{\"node\":{\"method\":\"say\"},\"inputs\":{\"message\":"
                                    "{\"jsonrpc\":\"2.0\",\"method\":\"run/event\",\"params\":{"
                                    "\"trace_id\":\"%s\",\"kind\":\"%s\",\"message\":\"%s\"}}},"
                                    "\"reply_topic\":\"reply\"}",
                                    trace, kind, message));
    rmp_program_expect(&replies, "Completed");
    rmp_program_stop(&replies);
}

/* A follower of a run that has one event, and has ended. */
static void expect_whole_run(const struct daemon *daemon, const char *opening)
{
    struct rmp_program program = RMP_PROGRAM(daemon, "submit", "--follow", "--trace", RMP_TRACE,
                                             file_of(opening));

    RMP_PROGRAM_EXPECT(&program, "accepted: trace " RMP_TRACE ", opening run 1 (7)", "log: one",
                       "status: completed");
    rmp_program_end(&program, 0);
}

static const char *path_of(const char *directory)
{
    return test_format("%s/" FILE_NAME, directory);
}

static off_t size_of(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 ? status.st_size : -1;
}

static void wait_gone_file(const char *path)
{
    int64_t deadline = deadline_usual();

    while (size_of(path) >= 0) {
        ck_assert(!deadline_over(deadline));
        nap();
    }
}

/* --- in memory --- */

TEST(rmp_10_follower_of_a_run_that_has_ended)
{
    struct daemon *daemon = start("");

    expect_whole_run(daemon, "name: a");
    expect_whole_run(daemon, "name: a");
}

/* Replayed events and those of now: each once, in order, and the replayed ones are not expired. */
TEST_ROWS(rmp_10_replay_goes_on_with_what_is_published, 2)
{
    struct daemon *daemon = start("");
    bool frames = row == 1;
    struct client *client;
    struct rmp_got got;

    submit(daemon, RMP_TRACE, "open: it");
    add_event(daemon, RMP_TRACE, "log", "before");
    client = rmp_program_connect(daemon);
    if (frames) {
        RMP_SEND(client, .op = "subscribe", .key = "topic", .value = EVENTS_TOPIC,
                 .replay = "true");
        rmp_expect_word(client, RMP_OK_SCHEMA, "subscribe");
    } else {
        rmp_command(client,
                    "{'Subscribe':{'id':1,'topic':'" EVENTS_TOPIC "','sub_id':5,'replay':true}}");
        rmp_expect(client, "{'SubscribeAck':{'id':1,'result':{'Ok':null}}}");
    }
    add_event(daemon, RMP_TRACE, "status", "completed");
    if (!frames) {
        uint64_t last = 0;

        for (int i = 0; i < 3; i++) {
            struct span text = rmp_next(client).payload;
            uint64_t msg_id = (uint64_t)json_number(text, "Message.message.header.msg_id");

            ck_assert_uint_gt(msg_id, last);
            last = msg_id;
        }
        rmp_hello(client, false, "Agent"); /* nothing more */
        return;
    }
    got = rmp_expect_word(client, 8, "open: it");
    ck_assert_uint_gt(got.created_ms + got.ttl_ms, rmp_now_ms() + 3000000);
    rmp_expect_word(client, 8, "before");
    got = rmp_expect_word(client, 8, "completed");
    ck_assert_uint_eq(got.ttl_ms, 30000);
    rmp_hello(client, true, "agent");
}

TEST(rmp_10_subscription_without_replay_is_live)
{
    struct daemon *daemon = start("");
    struct client *client = rmp_program_connect(daemon);

    submit(daemon, RMP_TRACE, "name: a");
    rmp_subscribe(client, false, EVENTS_TOPIC, 1);
    rmp_hello(client, false, "Agent");
}

/* A subscription that is there already gets nothing twice. */
TEST(rmp_10_second_subscription_replays_nothing)
{
    struct daemon *daemon = start("");
    struct client *client = rmp_program_connect(daemon);

    submit(daemon, RMP_TRACE, "name: a");
    rmp_subscribe(client, false, EVENTS_TOPIC, 1);
    rmp_command(client,
                "{'Subscribe':{'id':2,'topic':'" EVENTS_TOPIC "','sub_id':1,'replay':true}}");
    rmp_expect(client, "{'SubscribeAck':{'id':2,'result':{'Ok':null}}}");
    rmp_hello(client, false, "Agent");
}

TEST(rmp_10_replay_that_is_no_flag)
{
    struct daemon *daemon = start("");
    struct client *client = rmp_program_connect(daemon);

    RMP_SEND(client, .op = "subscribe", .key = "topic", .value = EVENTS_TOPIC, .replay = "yes");
    rmp_expect_word(client, RMP_ERROR_SCHEMA, "BodyDecodeError");
    rmp_command(client, "{'Subscribe':{'id':1,'topic':'a','sub_id':5,'replay':1}}");
    client_expect_eof(client);
}

/* What a client publishes on the topic of a run is not kept. */
TEST(rmp_10_messages_of_clients_are_not_kept)
{
    struct daemon *daemon = start("");
    struct client *client = rmp_program_connect(daemon);

    submit(daemon, RMP_TRACE, "name: a");
    RMP_PUBLISH(client, 1, .topic = EVENTS_TOPIC, .schema = 8, .msg_id = 1);
    rmp_expect(client, "{'PublishAck':{'id':1,'result':{'Ok':null}}}");
    rmp_command(client,
                "{'Subscribe':{'id':2,'topic':'" EVENTS_TOPIC "','sub_id':1,'replay':true}}");
    rmp_expect(client, "{'SubscribeAck':{'id':2,'result':{'Ok':null}}}");
    for (int i = 0; i < 2; i++)
        ck_assert_ptr_nonnull(json_get(rmp_next(client).payload, "Message").data);
    rmp_hello(client, false, "Agent");
}

TEST(rmp_10_sub_and_trace_replay)
{
    struct daemon *daemon = start("");
    struct rmp_program program;

    submit(daemon, RMP_TRACE, "name: a");
    program = RMP_PROGRAM(daemon, "sub", "--replay", "--count", "2", EVENTS_TOPIC);
    RMP_PROGRAM_EXPECT(&program, "subscribed", "'message':'one'", "'message':'completed'");
    rmp_program_end(&program, 0);
    program = RMP_PROGRAM(daemon, "trace", "--replay", "--count", "2", RMP_TRACE);
    rmp_program_expect(&program, "frame_len=");
}

/* --- bounds --- */

TEST(rmp_10_last_events_of_a_run_are_kept)
{
    struct daemon *daemon = start("'history_events':2");
    struct rmp_program program;

    submit(daemon, RMP_TRACE, "open: a");
    add_event(daemon, RMP_TRACE, "log", "two");
    add_event(daemon, RMP_TRACE, "status", "completed");
    program = RMP_PROGRAM(daemon, "submit", "--follow", "--trace", RMP_TRACE, file_of("a"));
    RMP_PROGRAM_EXPECT(&program, "accepted: trace ", "log: two", "status: completed");
    rmp_program_end(&program, 0);
}

/* A follower of a run whose end is not kept does not wait for ever. */
static const char *const forgetful[] = {"'history_events':0", "'history_runs':1"};

TEST_ROWS(rmp_10_follower_of_a_run_that_is_forgotten, COUNT(forgetful))
{
    struct daemon *daemon = start(forgetful[row]);
    struct rmp_program program;

    submit(daemon, RMP_TRACE, "fail");
    submit(daemon, RMP_OTHER_TRACE, "name: b");
    program = RMP_PROGRAM(daemon, "submit", "--follow", "--trace", RMP_TRACE, file_of("fail"));
    RMP_PROGRAM_EXPECT(&program, "the run has ended (failed); its last event is not kept",
                       "accepted: trace ");
    rmp_program_end(&program, 1);
}

/* --- in files --- */

static const char *const syncs[] = {"", ",'history_sync':true"};

TEST_ROWS(rmp_10_history_is_read_again_at_the_start, COUNT(syncs))
{
    const char *directory = new_directory();
    const char *keys = test_format("'history':'%s'%s", directory, syncs[row]);
    struct daemon *daemon = start(keys);
    struct stat status;

    expect_whole_run(daemon, "name: a");
    daemon_stop(daemon);
    ck_assert_int_eq(stat(directory, &status), 0);
    ck_assert_int_eq(status.st_mode & 0777, 0700);
    ck_assert_int_eq(stat(path_of(directory), &status), 0);
    ck_assert_int_eq(status.st_mode & 0777, 0600);
    daemon = start(keys);
    daemon_wait_log(daemon, "history: 1 runs with 2 events were read");
    expect_whole_run(daemon, "name: a");
    add_event(daemon, RMP_TRACE, "log", "after the end");
    daemon_stop(daemon);
    daemon = start(keys);
    daemon_wait_log(daemon, "history: 1 runs with 3 events were read");
}

/* The file is one that stdio_bus_rmp decode prints. */
TEST(rmp_10_file_of_a_run_is_frames)
{
    const char *directory = new_directory();
    struct daemon *daemon = start_at(directory);
    char bytes[4096];
    struct rmp_program program;
    struct span got;
    FILE *file;
    size_t len;

    submit(daemon, RMP_TRACE, "name: a");
    daemon_stop(daemon);
    file = fopen(path_of(directory), "r");
    ck_assert_ptr_nonnull(file);
    len = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    program = rmp_program_start(NULL, bytes, len, (const char *const[]){"decode", "--json", NULL});
    /* With the user who has submitted it, which the shares of the history need again. */
    got = rmp_program_expect(&program, "RunAccepted");
    ck_assert_int_eq(json_number(got, "header.msg_id"), (int64_t)getuid() + 2);
    RMP_PROGRAM_EXPECT(&program, "'message':'one'", "'message':'completed'");
    rmp_program_end(&program, 0);
}

/* The runner has gone with the daemon: nothing else would ever end the run. */
TEST(rmp_10_run_without_an_end_has_failed_with_its_daemon)
{
    const char *directory = new_directory();
    struct daemon *daemon = start_at(directory);
    struct rmp_program program;

    submit(daemon, RMP_TRACE, "open: it");
    daemon_stop(daemon);
    for (int i = 0; i < 2; i++) {
        daemon = start_at(directory);
        program = RMP_PROGRAM(daemon, "submit", "--follow", "--trace", RMP_TRACE,
                              file_of("open: it"));
        RMP_PROGRAM_EXPECT(&program, "accepted: trace ", "log: open: it", "status error: failed");
        rmp_program_end(&program, 1);
        daemon_stop(daemon);
    }
}

/* A file of which the end is cut or damaged keeps what comes before. */
static const struct {
    off_t cut;          /* bytes that it lacks at its end */
    const char *append; /* or that are added */
    const char *warning;
    unsigned events;
} damages[] = {
    {1, "", "cut after", 1},
    {0, "RMP", "cut after", 2},
    {0, "no frame of this file, whatever else it is: sixty-eight bytes and a bit more", "damaged",
     2},
};

TEST_ROWS(rmp_10_damaged_file_is_cut, COUNT(damages))
{
    const char *directory = new_directory(), *path = path_of(directory);
    struct daemon *daemon = start_at(directory);
    int fd;

    submit(daemon, RMP_TRACE, "name: a");
    daemon_stop(daemon);
    ck_assert_int_eq(truncate(path, size_of(path) - damages[row].cut), 0);
    fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, damages[row].append, strlen(damages[row].append)),
                     (ssize_t)strlen(damages[row].append));
    close(fd);
    daemon = start_at(directory);
    daemon_wait_log(daemon, test_format("WARN .*%s", damages[row].warning));
    daemon_wait_log(daemon, test_format("history: 1 runs with %u events",
                                        damages[row].events + (damages[row].events == 1)));
    submit(daemon, RMP_TRACE, "name: a");
    daemon_stop(daemon);
    daemon = start_at(directory);
    daemon_wait_log(daemon, "history: 1 runs with 2 events");
    ck_assert(!daemon_logged(daemon, "WARN "));
}

/* Nothing of the file is usable; other files are nobody's concern. */
static const char *const names[] = {FILE_NAME, "notes.txt", "11223344.rmp",
                                    "..........................-----------.rmp",
                                    "11223344-5566-7788-99AA-bbccddeeff00.rmp"};

TEST_ROWS(rmp_10_file_that_is_none_is_skipped, COUNT(names))
{
    const char *directory = test_dir(), *path = test_format("%s/%s", directory, names[row]);
    FILE *file = fopen(path, "w");
    struct daemon *daemon;

    ck_assert_ptr_nonnull(file);
    fputs(test_fill('\0', 5000), file);
    for (int i = 0; i < 5000; i++)
        fputc(i, file);
    ck_assert_int_eq(fclose(file), 0);
    daemon = start_at(directory);
    daemon_wait_log(daemon, "history: 0 runs");
    ck_assert_int_eq(daemon_logged(daemon, "WARN .*damaged after 0 bytes"), row == 0);
    submit(daemon, RMP_OTHER_TRACE, "name: a");
    ck_assert_int_eq(size_of(path), 5000);
}

/* Neither a fifo nor a symbolic link is opened; half a file is removed. */
TEST(rmp_10_other_kinds_of_files_are_skipped)
{
    const char *directory = test_dir(), *half = test_format("%s/" RMP_TRACE ".new", directory);
    struct daemon *daemon;

    ck_assert_int_eq(mkfifo(path_of(directory), 0600), 0);
    ck_assert_int_eq(symlink("/etc/passwd", test_format("%s/" RMP_OTHER_TRACE ".rmp", directory)),
                     0);
    ck_assert_int_eq(symlink("/nothing", half), 0);
    daemon = start_at(directory);
    daemon_wait_log(daemon, "history: 0 runs");
    ck_assert_uint_eq(daemon_count_log(daemon, "is skipped: it is no file"), 2);
    ck_assert_int_eq(access(half, F_OK), -1);
    ck_assert_int_eq(errno, ENOENT);
}

/* The daemon continues without the files. */
static const struct {
    const char *name, *warning;
    mode_t mode; /* of the directory; 0: it is a file */
} directories[] = {
    {"open", "others may write to it", 0770},
    {"file", "it is no directory", 0},
    {"file/below", "Not a directory", 0},
};

TEST_ROWS(rmp_10_directory_that_cannot_be_used, COUNT(directories))
{
    const char *directory = test_dir(), *path = test_format("%s/file", directory);
    struct daemon *daemon;

    fclose(fopen(path, "w"));
    path = test_format("%s/%s", directory, directories[row].name);
    if (directories[row].mode != 0) {
        ck_assert_int_eq(mkdir(path, 0700), 0);
        ck_assert_int_eq(chmod(path, directories[row].mode), 0);
    }
    daemon = start_at(path);
    daemon_wait_log(daemon, test_format("WARN .*the history is not written to .*%s",
                                        directories[row].warning));
    expect_whole_run(daemon, "name: a");
    expect_whole_run(daemon, "name: a");
}

TEST(rmp_10_file_that_has_gone_is_written_anew)
{
    const char *directory = new_directory(), *path = path_of(directory);
    struct daemon *daemon = start_at(directory);
    off_t size;

    submit(daemon, RMP_TRACE, "open: it");
    add_event(daemon, RMP_TRACE, "log", "two");
    size = size_of(path);
    ck_assert_int_gt(size, 0);
    ck_assert_int_eq(unlink(path), 0);
    add_event(daemon, RMP_TRACE, "log", "two");
    ck_assert_int_gt(size_of(path), size);
    ck_assert_int_eq(truncate(path, 10), 0);
    add_event(daemon, RMP_TRACE, "log", "two");
    ck_assert_int_gt(size_of(path), size);
    daemon_stop(daemon);
    daemon = start_at(directory);
    daemon_wait_log(daemon, "history: 1 runs with 5 events");
}

/* It is written as soon as it can be, and keeps no other run from its file. */
TEST(rmp_10_file_that_cannot_be_written_waits_alone)
{
    const char *directory = new_directory(), *path = path_of(directory);
    const char *in_the_way = test_format("%s/" RMP_TRACE ".new", directory);
    const char *other = "11111111-1111-1111-1111-111111111111";
    struct daemon *daemon = start_at(directory);

    ck_assert_int_eq(mkdir(in_the_way, 0700), 0);
    submit(daemon, RMP_TRACE, "open: it");
    daemon_wait_log(daemon, "WARN .*cannot create .*" RMP_TRACE);
    submit(daemon, other, "open: it");
    ck_assert_int_gt(size_of(test_format("%s/%s.rmp", directory, other)), 0);
    ck_assert_int_lt(size_of(path), 0);
    ck_assert_int_eq(rmdir(in_the_way), 0);
    WAIT_UNTIL(size_of(path) > 0, "it is not written");
}

/* A file does not grow with what is forgotten. */
TEST(rmp_10_file_is_bounded)
{
    const char *directory = new_directory(), *path = path_of(directory);
    struct daemon *daemon = start(test_format("'history':'%s','history_events':2", directory));
    off_t size;

    submit(daemon, RMP_TRACE, "open: it");
    add_event(daemon, RMP_TRACE, "log", "one");
    add_event(daemon, RMP_TRACE, "log", "two");
    size = size_of(path);
    for (int i = 0; i < 20; i++)
        add_event(daemon, RMP_TRACE, "log", "all");
    ck_assert_int_lt(size_of(path), size + 18 * size / 4);
    daemon_stop(daemon);
    daemon = start_at(directory);
    daemon_wait_log(daemon, "history: 1 runs with ");
}

TEST(rmp_10_run_that_is_forgotten_has_no_file)
{
    const char *directory = new_directory();
    struct daemon *daemon = start(test_format("'history':'%s','history_runs':1", directory));

    submit(daemon, RMP_TRACE, "name: a");
    add_event(daemon, RMP_TRACE, "log", "one");
    ck_assert_int_gt(size_of(path_of(directory)), 0);
    submit(daemon, RMP_OTHER_TRACE, "name: b");
    wait_gone_file(path_of(directory));
}

TEST(rmp_10_run_is_forgotten_after_a_time)
{
    const char *directory = new_directory();
    struct daemon *daemon = start(test_format("'history':'%s','history_sec':1", directory));

    submit(daemon, RMP_TRACE, "name: a");
    wait_gone_file(path_of(directory));
}

/* --- the acceptance of a run as the document describes it --- */

static struct client *executor(const struct daemon *daemon)
{
    struct client *client = rmp_program_connect(daemon);

    rmp_subscribe(client, true, "rlp/runs/" RMP_TRACE "/agents/writer/1", 0);
    rmp_subscribe(client, true, "rlp/runs/" RMP_TRACE "/agents/critic/2", 0);
    return client;
}

/* One node of the run, carried out by an agent. */
static void execute(const struct daemon *daemon, struct client *client, const char *agent,
                    unsigned number)
{
    rmp_program_publish(
        daemon, test_format("agent/%s", agent), "intent.executor.agent.request.v1", RMP_TRACE,
        "30000",
        test_format("{\"node\":{\"method\":\"plain\"},\"inputs\":{\"result\":{\"ports\":{\"out\":"
                    "[{\"schema_id\":221,\"value\":\"of %s\"}]}}},\"attempt\":1,\"reply_topic\":"
                    "\"rlp/runs/" RMP_TRACE "/agents/%s/%u\"}",
                    agent, agent, number));
    rmp_expect_word(client, 4001, test_format("of %s", agent));
}

#define DOCUMENT_POOLS RUNNER "," AGENT("writer") "," AGENT("critic")

static struct daemon *start_document(const char *directory)
{
    return start_with(DOCUMENT_POOLS, test_format("'history':'%s'", directory));
}

static void expect_document(struct rmp_program *program)
{
    rmp_program_expect(program, "accepted: trace " RMP_TRACE);
    rmp_program_expect(program, "log: open: it\\x0aparams:\\x0a  'to': 'Bob'\\x0a");
}

static void expect_document_end(struct rmp_program *program)
{
    rmp_program_expect(program, "artifact: of the writer");
    rmp_program_expect(program, "artifact: of the critic");
    rmp_program_expect(program, "status: completed");
    rmp_program_end(program, 0);
}

TEST(rmp_10_run_of_the_document_is_followed_before_and_after_a_restart)
{
    const char *directory = new_directory(), *path = file_of("open: it\nparams:\n  to: Ann\n");
    struct daemon *daemon = start_document(directory);
    struct client *client = executor(daemon);
    struct rmp_program program = RMP_PROGRAM(daemon, "submit", "--follow", "--params", "to=Bob",
                                             "--trace", RMP_TRACE, path);

    expect_document(&program);
    execute(daemon, client, "writer", 1);
    add_event(daemon, RMP_TRACE, "artifact", "of the writer");
    execute(daemon, client, "critic", 2);
    add_event(daemon, RMP_TRACE, "artifact", "of the critic");
    add_event(daemon, RMP_TRACE, "status", "completed");
    expect_document_end(&program);
    client_close(client);
    daemon_stop(daemon);

    daemon = start_document(directory);
    program = RMP_PROGRAM(daemon, "submit", "--follow", "--trace", RMP_TRACE, path);
    expect_document(&program);
    expect_document_end(&program);
    client = executor(daemon);
    execute(daemon, client, "critic", 2);
}
