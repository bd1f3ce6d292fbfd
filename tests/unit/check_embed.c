#include "build_config.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"
#include "daemon.h"
#include "embed_fixture.h"

static struct embed embed;

static void set_up(void)
{
    embed = (struct embed){.bus = NULL};
}

/* Nothing of the bus is left in the process. */
static void tear_down(void)
{
    embed_end(&embed);
    ck_assert(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

FIXTURE(set_up, tear_down)

/* --- requests and answers --- */

TEST(request_is_answered)
{
    struct span answer;

    embed_init(&embed, 1, "", "");
    embed_start(&embed);
    EMBED_SEND(&embed, "{'jsonrpc':'2.0','id':'a','method':'plain','params':{'n':7}}");
    ck_assert_int_eq(stdio_bus_pending_count(embed.bus), 1);
    answer = embed_message(&embed);
    ck_assert(span_is(json_get(answer, "id"), "\"a\""));
    ck_assert(span_is(json_get(answer, "result.n"), "7"));
    ck_assert_int_eq(stdio_bus_pending_count(embed.bus), 0);
}

/* Newlines between its tokens do not cut a message. */
TEST(message_of_several_lines_is_one)
{
    embed_init(&embed, 1, "", "");
    embed_start(&embed);
    EMBED_SEND(&embed, "{'id':1,\n 'method':'plain',\n 'params':[1,\n2]}\n");
    ck_assert(span_is(json_get(embed_message(&embed), "result"), "[1, 2]"));
}

TEST(thousand_requests_are_answered_once_each)
{
    static unsigned char seen[1000];

    embed_init(&embed, 3, "", "");
    embed_start(&embed);
    for (int i = 0; i < 1000; i++)
        EMBED_SEND(&embed, "{'id':%d,'method':'plain','params':%d}", i, i);
    ck_assert_int_eq(stdio_bus_pending_count(embed.bus), 1000);
    for (int i = 0; i < 1000; i++) {
        struct span answer = embed_message(&embed);
        long id = json_number(answer, "id");

        ck_assert(id >= 0 && id < 1000 && seen[id]++ == 0);
        ck_assert_int_eq(json_number(answer, "result"), id);
    }
    ck_assert_int_eq(stdio_bus_pending_count(embed.bus), 0);
}

TEST(sessions_stay_at_a_worker_and_others_take_turns)
{
    long pids[3], pid;

    embed_init(&embed, 3, "", "");
    embed_start(&embed);
    ck_assert_int_eq(stdio_bus_worker_count(embed.bus), 3);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3; i++) {
            EMBED_SEND(&embed, "{'id':%d,'method':'echo'}", i);
            pid = json_number(embed_message(&embed), "result.pid");
            ck_assert(round == 0 || pid == pids[i]);
            pids[i] = pid;
        }
    }
    ck_assert(pids[0] != pids[1] && pids[1] != pids[2] && pids[0] != pids[2]);
    for (int i = 0; i < 9; i++) {
        EMBED_SEND(&embed, "{'id':%d,'sessionId':'s%d','method':'echo'}", i, i % 3);
        pid = json_number(embed_message(&embed), "result.pid");
        ck_assert(i < 3 || pid == pids[i % 3]);
        pids[i % 3] = pid;
    }
    ck_assert_int_eq(stdio_bus_session_count(embed.bus), 3);
}

TEST(pool_of_a_message_is_followed)
{
    embed_init_config(&embed,
                      "{'pools':[" POOL("a", 1, "'--name','a'") "," POOL("b", 1,
                                                                         "'--name','b'") "]}");
    embed_start(&embed);
    for (int i = 0; i < 4; i++) {
        EMBED_SEND(&embed, "{'id':1,'pool':'b','method':'echo'}");
        ck_assert(span_is(json_get(embed_message(&embed), "result.worker"), "\"b\""));
    }
    ck_assert_int_eq(embed_ingest(&embed, "{'id':1,'pool':'c','method':'echo'}"),
                     STDIO_BUS_ERR_ROUTING);
    ck_assert_uint_eq(embed_stats(&embed).routing_errors, 1);
}

/* --- messages of workers --- */

TEST(all_messages_of_workers_reach_the_host)
{
    struct span message;

    embed_init(&embed, 2, "", "");
    embed_start(&embed);
    EMBED_SEND(&embed, "{'id':1,'method':'say','params':{'message':{'method':'no/session'}}}");
    ck_assert(span_is(json_get(embed_message(&embed), "method"), "\"no/session\""));
    (void)embed_message(&embed);
    EMBED_SEND(&embed, "{'id':1,'method':'say','params':{'message':{'id':99,'result':1}}}");
    ck_assert_int_eq(json_number(embed_message(&embed), "id"), 99);
    (void)embed_message(&embed);
    EMBED_SEND(&embed,
               "{'id':1,'method':'say','params':{'message':{'method':'m','sessionId':'unknown'}}}");
    ck_assert(span_is(json_get(embed_message(&embed), "sessionId"), "\"unknown\""));
    (void)embed_message(&embed);
    /* A request without a session, and its reply. */
    EMBED_SEND(&embed, "{'id':2,'method':'ask','params':{'id':'q','params':{}}}");
    message = embed_message(&embed);
    ck_assert(span_is(json_get(message, "id"), "\"q\""));
    ck_assert(json_get(message, "method").data != NULL);
    EMBED_SEND(&embed, "{'id':'q','result':42}");
    ck_assert_int_eq(json_number(embed_message(&embed), "result.result"), 42);
    ck_assert_uint_eq(embed_stats(&embed).routing_errors, 0);
}

/* Its second request with an id that is in flight reaches the host, too. */
TEST(request_with_an_id_in_use_reaches_the_host)
{
    embed_init(&embed, 1, "", "");
    embed_start(&embed);
    for (int i = 0; i < 2; i++) {
        EMBED_SEND(&embed, "{'method':'say_only','params':{'message':{'id':5,'method':'q'}}}");
        ck_assert_int_eq(json_number(embed_message(&embed), "id"), 5);
    }
    EMBED_SEND(&embed, "{'id':5,'result':{}}");
    ck_assert_int_eq(embed_ingest(&embed, "{'id':7,'result':{}}"), STDIO_BUS_OK);
}

static void answer_inside(struct embed *of, const char *msg, size_t len)
{
    struct span message = {msg, len};

    if (json_get(message, "method").data != NULL)
        EMBED_SEND(of, "{'id':%ld,'result':'inside'}", json_number(message, "id"));
}

TEST(callback_may_send)
{
    embed_init(&embed, 1, "", "");
    embed.hook = answer_inside;
    embed_start(&embed);
    EMBED_SEND(&embed, "{'id':2,'method':'ask','params':{'id':3,'params':{}}}");
    (void)embed_message(&embed);
    ck_assert(span_is(json_get(embed_message(&embed), "result.result"), "\"inside\""));
}

/* --- the end of workers --- */

TEST(worker_that_dies_is_restarted)
{
    embed_init(&embed, 1, "", "");
    embed_start(&embed);
    embed_await(&embed, "worker 1 started");
    EMBED_SEND(&embed, "{'id':1,'sessionId':'s','method':'no_answer'}");
    EMBED_SEND(&embed, "{'id':2,'method':'die','params':{'signal':9}}");
    for (int i = 1; i <= 2; i++) {
        struct span error = embed_message(&embed);

        ck_assert_int_eq(json_number(error, "id"), i);
        ck_assert_int_eq(json_number(error, "error.code"), -32000);
    }
    ck_assert_int_eq(stdio_bus_session_count(embed.bus), 0);
    embed_await(&embed, "worker 1 restarting");
    ck_assert_int_eq(embed_ingest(&embed, "{'id':3,'method':'echo'}"), STDIO_BUS_EAGAIN);
    embed.events.len = 0;
    embed.events.data[0] = '\0';
    embed_await(&embed, "worker 1 started");
    EMBED_SEND(&embed, "{'id':3,'method':'echo'}");
    ck_assert_int_eq(json_number(embed_message(&embed), "id"), 3);
    ck_assert_uint_eq(embed_stats(&embed).worker_restarts, 1);
}

/* Its stdout stays open in another process, so the exit alone shows its end. */
TEST(exit_is_seen_without_the_end_of_the_output)
{
    long pid;

    embed_init(&embed, 1, "", "");
    embed_start(&embed);
    EMBED_SEND(&embed, "{'id':1,'method':'grandchild','params':{'hold':true,'ignore':true}}");
    pid = json_number(embed_message(&embed), "result.pid");
    EMBED_SEND(&embed, "{'method':'die','params':{'code':3}}");
    embed_await(&embed, "worker 1 restarting");
    ck_assert_ptr_nonnull(strstr(embed.log.data, "exited with status 3"));
    (void)kill((pid_t)pid, SIGKILL);
}

TEST(worker_that_fails_for_good_is_reported)
{
    embed_init(&embed, 1, "", "'limits':{'max_restarts':1}");
    embed_start(&embed);
    EMBED_SEND(&embed, "{'method':'die','params':{'code':1}}");
    embed_await(&embed, "worker 1 restarting");
    EMBED_UNTIL(&embed,
                embed_ingest(&embed, "{'method':'die','params':{'code':1}}") == STDIO_BUS_OK);
    embed_await(&embed, "worker 1 failed");
    ck_assert_int_eq(stdio_bus_worker_count(embed.bus), 0);
    ck_assert_int_eq(stdio_bus_get_state(embed.bus), STDIO_BUS_STATE_RUNNING);
    ck_assert_int_eq(embed_ingest(&embed, "{'id':1,'method':'echo'}"), STDIO_BUS_ERR_ROUTING);
}

TEST(command_that_cannot_be_executed_fails_the_start)
{
    embed_init_config(&embed, "{'pools':[{'id':'a','command':'/nonexistent','instances':1},"
                              "{'id':'b','command':'@WORKER@','instances':2}]}");
    embed.bus = stdio_bus_create(&embed.options);
    if (embed.bus == NULL) { /* the configuration's check has found it */
        ck_assert(embed_has(&embed, "error -10"));
        return;
    }
    ck_assert_int_eq(stdio_bus_start(embed.bus), STDIO_BUS_ERR_WORKER);
    ck_assert_int_eq(stdio_bus_get_state(embed.bus), STDIO_BUS_STATE_STOPPED);
    ck_assert(embed_has(&embed, "error -11"));
    ck_assert(waitpid(-1, NULL, WNOHANG) < 0);
}

/* Keeps the bus from acting on a failure until the worker of the other pool has written. */
static void await_worker(stdio_bus_t *bus, int level, const char *message, void *user_data)
{
    const struct embed *of = user_data;
    int64_t deadline = deadline_usual();

    (void)bus;
    (void)level;
    if (strstr(message, "cannot execute") == NULL)
        return;
    while (access(of->hook_data, F_OK) != 0) {
        ck_assert(!deadline_over(deadline));
        (void)poll(NULL, 0, 5);
    }
}

/* A message that came first neither reaches the host nor keeps the reason from it. */
TEST(start_that_fails_says_why_after_a_worker_has_written)
{
    const char *script = test_format("%s/script", test_dir());
    FILE *file = fopen(script, "w");

    ck_assert(file != NULL && fputs("#!/nonexistent/interpreter\n", file) >= 0);
    ck_assert(fclose(file) == 0 && chmod(script, 0700) == 0);
    embed_init_config(
        &embed, test_format("{'pools':[{'id':'a','command':'/bin/sh','instances':1,'args':['-c',"
                            "'echo {}; : >%s.written; exec sleep 600']},"
                            "{'id':'b','command':'%s','instances':1}]}",
                            script, script));
    embed.hook_data = (char *)test_format("%s.written", script);
    embed.options.on_log = await_worker;
    embed.bus = stdio_bus_create(&embed.options);
    ck_assert_ptr_nonnull(embed.bus);
    ck_assert_int_eq(stdio_bus_start(embed.bus), STDIO_BUS_ERR_WORKER);
    ck_assert(embed_has(&embed, "worker 1 stopped"));
    ck_assert(embed_has(&embed, "error -11"));
    ck_assert_uint_eq(embed.count, 0);
}

/* --- queues --- */

TEST(full_queue_refuses_and_takes_again)
{
    struct text blob = {.len = 0};
    int taken = 0, status;
    long pid;

    text_fill(&blob, 'x', 60000);
    embed_init(&embed, 1, "", "'limits':{'max_output_queue':100000}");
    embed_start(&embed);
    EMBED_SEND(&embed, "{'id':'stop','method':'stop_reading'}");
    (void)embed_message(&embed);
    EMBED_SEND(&embed, "{'id':'pid','method':'echo','params':'%s'}", blob.data);
    do {
        status = embed_ingest(&embed, "{'id':%d,'method':'length','params':'%s'}", taken,
                              blob.data);
        taken += status == STDIO_BUS_OK;
    } while (status == STDIO_BUS_OK && taken < 100);
    ck_assert_int_eq(status, STDIO_BUS_EFULL);
    ck_assert_int_ge(taken, 2);
    ck_assert_int_eq(stdio_bus_pending_count(embed.bus), taken + 1);
    ck_assert_ptr_nonnull(strstr(embed.log.data, "pid="));
    pid = strtol(strstr(embed.log.data, "pid=") + 4, NULL, 10);
    ck_assert_int_eq(kill((pid_t)pid, SIGUSR1), 0);
    EMBED_UNTIL(&embed,
                embed_ingest(&embed, "{'id':'last','method':'plain','params':1}") == STDIO_BUS_OK);
    for (int i = 0; i < taken + 2; i++)
        (void)embed_message(&embed);
    ck_assert_int_eq(stdio_bus_pending_count(embed.bus), 0);
    text_free(&blob);
}

TEST(long_messages_pass)
{
    static const size_t sizes[] = {1000000, 20000000};

    embed_init(&embed, 1, "", "'limits':{'max_input_buffer':33554432,'max_output_queue':33554432}");
    embed.quiet = true;
    embed_start(&embed);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct text message = {.len = 0};

        embed.count = embed.bytes = 0;
        text_printf(&message, "{\"id\":1,\"method\":\"plain\",\"params\":\"");
        text_fill(&message, 'y', sizes[i]);
        text_printf(&message, "\"}");
        ck_assert_int_eq(stdio_bus_ingest(embed.bus, message.data, message.len), STDIO_BUS_OK);
        EMBED_UNTIL(&embed, embed.count == 1);
        ck_assert_uint_gt(embed.bytes, sizes[i]);
        text_free(&message);
    }
    ck_assert_int_eq(embed_ingest(&embed, "{'id':2,'params':'%033554432d'}", 0),
                     STDIO_BUS_ERR_BUFFER);
}

/* --- the stop --- */

TEST(stop_delivers_what_is_answered_and_fails_the_rest)
{
    bool answered = false, failed = false;

    embed_init(&embed, 1, "'--stay'", "");
    embed_start(&embed);
    EMBED_SEND(&embed, "{'id':'mode','method':'on_sigterm','params':{'do':'release'}}");
    (void)embed_message(&embed);
    EMBED_SEND(&embed, "{'id':'never','method':'no_answer'}");
    EMBED_SEND(&embed, "{'id':'hold','method':'hold'}");
    (void)embed_message(&embed);
    EMBED_SEND(&embed, "{'id':'late','method':'plain','params':5}");
    EMBED_SEND(&embed, "{'id':'sync','method':'say_only','params':{'message':{'method':'n'}}}");
    (void)embed_message(&embed);
    ck_assert_int_eq(stdio_bus_stop(embed.bus, 20), STDIO_BUS_OK);
    ck_assert_int_eq(stdio_bus_get_state(embed.bus), STDIO_BUS_STATE_STOPPING);
    ck_assert_int_eq(embed_ingest(&embed, "{'id':1,'method':'echo'}"), STDIO_BUS_ERR_STATE);
    ck_assert_int_eq(stdio_bus_stop(embed.bus, 20), STDIO_BUS_OK);
    EMBED_UNTIL(&embed, stdio_bus_get_state(embed.bus) == STDIO_BUS_STATE_STOPPED);
    while (embed.taken < embed.messages.len) {
        struct span message = embed_message(&embed);

        answered |= span_is(json_get(message, "id"), "\"late\"") &&
                    json_number(message, "result") == 5;
        failed |= span_is(json_get(message, "id"), "\"never\"") &&
                  json_number(message, "error.code") == -32000;
    }
    ck_assert_msg(answered && failed, "%s", embed.messages.data);
    ck_assert(embed_has(&embed, "worker 1 stopped"));
    ck_assert_int_eq(stdio_bus_worker_count(embed.bus), 0);
    ck_assert_int_eq(stdio_bus_pending_count(embed.bus), 0);
    ck_assert_int_eq(stdio_bus_step(embed.bus, 0), STDIO_BUS_ERR_STATE);
    ck_assert_int_eq(stdio_bus_stop(embed.bus, 0), STDIO_BUS_OK);
}

TEST(stop_kills_what_does_not_end)
{
    int64_t began;

    embed_init(&embed, 2, "'--stay'", "");
    embed_start(&embed);
    for (int i = 0; i < 2; i++) {
        EMBED_SEND(&embed, "{'id':1,'method':'on_sigterm','params':{'do':'ignore'}}");
        (void)embed_message(&embed);
    }
    began = now_ms();
    ck_assert_int_eq(stdio_bus_stop(embed.bus, 1), STDIO_BUS_OK);
    EMBED_UNTIL(&embed, stdio_bus_get_state(embed.bus) == STDIO_BUS_STATE_STOPPED);
    ck_assert_int_ge(now_ms() - began, 900);
}

/* --- statistics --- */

TEST(statistics_add_up)
{
    uint64_t in = 0, bytes_in = 0;
    stdio_bus_stats_t stats;

    embed_init(&embed, 2, "", "");
    embed_start(&embed);
    for (int i = 0; i < 50; i++) {
        char text[64];
        int len = snprintf(text, sizeof text, "{\"id\":%d,\"method\":\"plain\",\"params\":1}", i);

        ck_assert_int_eq(stdio_bus_ingest(embed.bus, text, (size_t)len), STDIO_BUS_OK);
        in++;
        bytes_in += (uint64_t)len;
    }
    ck_assert_int_eq(embed_ingest(&embed, "{'id':0,'method':'plain','pool':'none'}"),
                     STDIO_BUS_ERR_ROUTING);
    EMBED_UNTIL(&embed, embed.count == 50);
    stats = embed_stats(&embed);
    ck_assert_uint_eq(stats.messages_in, in);
    ck_assert_uint_eq(stats.bytes_in, bytes_in);
    ck_assert_uint_eq(stats.messages_out, embed.count);
    ck_assert_uint_eq(stats.bytes_out, embed.bytes);
    ck_assert_uint_eq(stats.routing_errors, 1);
    ck_assert_uint_eq(stats.worker_restarts, 0);
    ck_assert_uint_eq(stats.client_connects, 0);
}

/* --- bad arguments --- */

TEST(what_is_no_message_is_refused)
{
    static const char *const bad[] = {"[]", "{", "1", "{}{}", "nothing", "{\"id\":[]}"};

    embed_init(&embed, 1, "", "");
    embed_start(&embed);
    for (size_t i = 0; i < COUNT(bad); i++)
        ck_assert_int_eq(stdio_bus_ingest(embed.bus, bad[i], strlen(bad[i])),
                         STDIO_BUS_ERR_INVALID);
    ck_assert_int_eq(stdio_bus_ingest(embed.bus, "{}", 0), STDIO_BUS_ERR_INVALID);
    ck_assert_int_eq(stdio_bus_ingest(embed.bus, NULL, 2), STDIO_BUS_ERR_INVALID);
    ck_assert_int_eq(stdio_bus_ingest(NULL, "{}", 2), STDIO_BUS_ERR_INVALID);
    EMBED_SEND(&embed, "{'id':1,'method':'echo'}");
    (void)embed_message(&embed);
}

TEST(bad_options_are_reported)
{
    embed_init(&embed, 1, "", "'pools':3,'limits':{'max_restarts':-1}");
    ck_assert_ptr_null(stdio_bus_create(&embed.options));
    ck_assert(embed_has(&embed, "error -10"));
    embed.options.config_path = "/nonexistent/bus.json";
    ck_assert_ptr_null(stdio_bus_create(&embed.options));
    ck_assert(embed_has(&embed, "error -14"));
    embed.options.config_json = NULL;
    embed.events.len = 0;
    ck_assert_ptr_null(stdio_bus_create(&embed.options));
    ck_assert(embed_has(&embed, "error -10"));
    embed.options.on_message = NULL;
    ck_assert_ptr_null(stdio_bus_create(&embed.options));
    ck_assert_ptr_null(stdio_bus_create(NULL));
}

/* --- clients of a listener --- */

TEST(clients_of_a_listener_are_served_beside_the_host)
{
    struct daemon daemon = {.port = 0};
    struct client *client;
    struct span line;
    int64_t deadline = deadline_usual();

    harness_make_dir(daemon.dir, sizeof daemon.dir);
    snprintf(daemon.socket_path, sizeof daemon.socket_path, "%s/socket", daemon.dir);
    embed_init(&embed, 1, "", "");
    embed.options.listener.mode = STDIO_BUS_LISTEN_UNIX;
    embed.options.listener.unix_path = daemon.socket_path;
    embed_start(&embed);
    client = client_connect(&daemon);
    client_request(client, "1", NULL, "plain", "{'of':'client'}");
    EMBED_SEND(&embed, "{'id':2,'method':'plain','params':{'of':'host'}}");
    while (!client_line_before(client, now_ms() + 1, &line)) {
        ck_assert(!deadline_over(deadline));
        ck_assert_int_ge(stdio_bus_step(embed.bus, 1), 0);
    }
    ck_assert(span_is(json_get(line, "result.of"), "\"client\""));
    ck_assert(span_is(json_get(embed_message(&embed), "result.of"), "\"host\""));
    ck_assert_int_eq(stdio_bus_client_count(embed.bus), 1);
    ck_assert(embed_has(&embed, "connected 1 unix"));
    client_close(client);
    embed_await(&embed, "disconnected 1 closed");
    ck_assert_uint_eq(embed_stats(&embed).messages_in, 2);
    ck_assert_uint_eq(embed_stats(&embed).messages_out, 2);
    ck_assert_uint_eq(embed_stats(&embed).client_connects, 1);
    ck_assert_uint_eq(embed_stats(&embed).client_disconnects, 1);
    embed_stop(&embed);
    harness_remove_dir(daemon.dir);
}
