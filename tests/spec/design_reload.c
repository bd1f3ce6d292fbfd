/* stdio_bus(1), RELOADING: the configuration is read again while clients stay connected. */
#include "build_config.h"

#include "control.h"
#include "harness.h"
#include "manager.h"

#define A(args) POOL("a", 2, args)
#define ONE(args) POOL("a", 1, args)
#define MCP(args) "{'id':'m','command':'@WORKER@','args':[" args "],'instances':2,'protocol':'mcp'}"
#define STICKY(args)                                                                               \
    "{'id':'m','command':'@WORKER@','args':[" args                                                 \
    "],'instances':1,'protocol':'mcp','clients':'sticky'}"
#define STICKY_A(args)                                                                             \
    "{'id':'a','command':'@WORKER@','args':[" args "],'instances':2,'clients':'sticky'}"
#define INITIALIZE(version)                                                                        \
    "{'jsonrpc':'2.0','id':0,'method':'initialize','params':{'protocolVersion':'" version          \
    "','result':{'protocolVersion':'" version "'}}}"
#define LIMITED(seconds, members)                                                                  \
    "{'id':'l','command':'@WORKER@','args':[],'instances':1,'request_timeout_sec':" seconds        \
        members "}"
#define EXCLUSIVE(args)                                                                            \
    "{'id':'x','command':'@WORKER@','args':[" args "],'instances':3,'clients':'exclusive'}"

/* --- writing and reloading --- */

static void reload_alone(void)
{
    steps_without_reloads("each test has reloads of its own");
}

FIXTURE(reload_alone, NULL)

static void write_config(const struct daemon *daemon, const char *pools, const char *members)
{
    struct text text = {0};

    text_printf(&text, "{'pools':[%s]%s%s}", pools, members != NULL ? "," : "",
                members != NULL ? members : "");
    daemon_write_file(daemon, daemon->config_path, text.data);
    text_free(&text);
}

/* By SIGHUP. Returns the line of the log that says how it went. */
static const char *hang_up(struct daemon *daemon)
{
    daemon_mark_log(daemon);
    daemon_signal(daemon, SIGHUP);
    return daemon_wait_log(daemon, "(not reloaded|reloaded: [0-9]+ pool)");
}

static void reload(struct daemon *daemon, const char *pools, const char *members)
{
    const char *line;

    write_config(daemon, pools, members);
    line = hang_up(daemon);
    ck_assert_msg(strstr(line, "not reloaded") == NULL, "%s", line);
}

/* The name of the worker that answers. */
static void expect_worker(struct client *client, const char *id, const char *members,
                          const char *name)
{
    struct text raw = {0};

    client_send(client, "{'id':%s,'method':'echo'%s}", id, members);
    text_printf(&raw, "'%s'", name);
    expect_member(client_result(client, id), "worker", raw.data);
    text_free(&raw);
}

/* --- pools --- */

TEST(design_reload_adds_a_pool)
{
    struct daemon *daemon = START(.pools = A("'--name','a'"));
    struct client *client = client_connect(daemon);

    client_send(client, "{'id':1,'pool':'b','method':'echo'}");
    client_error(client, "1", -32602, "no such pool");
    reload(daemon, A("'--name','a'") "," POOL("b", 1, "'--name','b'"), NULL);
    expect_worker(client, "2", ",'pool':'b'", "b");
    expect_worker(client, "3", ",'pool':'a'", "a");
    daemon_stop(daemon);
}

/* A request in flight is answered by the process that has it; later ones go to the new program. */
TEST(design_reload_changes_a_program_and_loses_no_request)
{
    struct daemon *daemon = START(.pools = A("'--name','old'"));
    struct client *client = client_connect(daemon);
    long pids[2];

    client_meet_workers(client, 2, pids);
    client_ask(client, "'h'", "s", "hold", NULL);
    client_send(client, "{'id':'kept','sessionId':'s','method':'echo'}");
    reload(daemon, A("'--name','new'"), NULL);
    daemon_wait_log(daemon, "free: ending it after the reload"); /* the worker without a session */
    for (int i = 0; i < 4; i++)
        expect_worker(client, "5", "", "new");
    client_send(client, "{'id':'r','sessionId':'s','method':'release'}");
    expect_member(client_result(client, "'kept'"), "worker", "'old'");
    client_result(client, "'r'");
    expect_worker(client, "6", ",'sessionId':'s'", "old"); /* the session keeps its process */
    client_close(client);
    daemon_wait_workers(daemon, 2);
    daemon_stop(daemon);
}

/* The new program cannot run: the old processes continue. */
TEST(design_reload_keeps_workers_until_others_take_their_places)
{
    struct daemon *daemon = START(.pools = A("'--name','old'"));
    struct client *client = client_connect(daemon);

    reload(daemon, A("'--exit','1'"), "'limits':{'max_restarts':0}");
    daemon_wait_log(daemon, "failed: max_restarts is 0");
    expect_worker(client, "1", "", "old");
    reload(daemon, A("'--name','new'"), NULL);
    daemon_wait_log(daemon, "free: ending it after the reload");
    daemon_wait_log(daemon, "worker=1 .*exited");
    daemon_wait_log(daemon, "worker=2 .*exited");
    for (int i = 0; i < 4; i++)
        expect_worker(client, "2", "", "new");
    daemon_wait_workers(daemon, 2);
    daemon_stop(daemon);
}

TEST_ROWS(design_reload_changes_the_number_of_workers, 2)
{
    struct daemon *daemon = START(.pools = POOL("a", 2, ""));
    struct client *client = client_connect(daemon);

    reload(daemon, row == 0 ? POOL("a", 5, "") : POOL("a", 1, ""), NULL);
    daemon_wait_workers(daemon, row == 0 ? 5 : 1);
    client_ask(client, "1", NULL, "echo", NULL);
    reload(daemon, POOL("a", 2, ""), NULL);
    daemon_wait_workers(daemon, 2);
    client_ask(client, "2", NULL, "echo", NULL);
    daemon_stop(daemon);
}

/* What is in flight is answered; what comes later gets an error, and the client stays. */
TEST(design_reload_removes_a_pool_that_drains)
{
    struct daemon *daemon = START(.pools = A("") "," POOL("b", 1, "'--name','b'"));
    struct client *client = client_connect(daemon);

    client_send(client, "{'id':1,'pool':'b','sessionId':'s','method':'hold'}");
    client_result(client, "1");
    client_send(client, "{'id':2,'pool':'b','sessionId':'s','method':'echo'}");
    client_send(client, "{'id':3,'pool':'b','method':'on_sigterm','params':{'do':'release'}}");
    client_expect_quiet(client);
    reload(daemon, A(""), NULL);
    client_send(client, "{'id':4,'sessionId':'s','method':'echo'}");
    client_error(client, "4", -32000, "removed from the configuration");
    client_send(client, "{'id':5,'pool':'b','method':'echo'}");
    client_error(client, "5", -32602, "no such pool");
    ck_assert_uint_eq(daemon_workers(daemon, (pid_t[8]){0}, 8), 3);
    client_send(client, "{'sessionId':'s','method':'release'}");
    client_result(client, "2");
    client_result(client, "3");
    daemon_wait_workers(daemon, 2);
    client_ask(client, "6", NULL, "echo", NULL);
    daemon_stop(daemon);
}

/* A client whose opening line names the pool has no other one, until the pool comes back. */
TEST(design_reload_answers_clients_of_a_removed_pool)
{
    struct daemon *daemon = START(.pools = A("") "," POOL("b", 1, "'--name','b'"));
    struct client *client = client_connect(daemon);

    client_send(client, "{'pool':'b'}");
    expect_worker(client, "1", "", "b");
    reload(daemon, A(""), NULL);
    client_send(client, "{'id':2,'method':'echo'}");
    client_error(client, "2", -32000, "its pool was removed from the configuration");
    daemon_wait_workers(daemon, 2);
    client_send(client, "{'id':3,'method':'echo'}");
    client_error(client, "3", -32000, "its pool was removed from the configuration");
    reload(daemon, A("") "," POOL("b", 1, "'--name','again'"), NULL);
    expect_worker(client, "4", "", "again");
    daemon_stop(daemon);
}

/* A client of an exclusive pool keeps its process as long as nothing can replace what that knows;
 * the next client gets the new program. */
TEST(design_reload_keeps_the_process_of_a_client)
{
    struct daemon *daemon = START(.pools = EXCLUSIVE("'--name','old'"));
    struct client *client = client_connect(daemon), *next;

    expect_worker(client, "1", "", "old");
    reload(daemon, EXCLUSIVE("'--name','new'"), NULL);
    expect_worker(client, "2", "", "old");
    next = client_connect(daemon);
    expect_worker(next, "1", "", "new");
    client_close(client);
    client_close(next);
    next = client_connect(daemon);
    expect_worker(next, "1", "", "new");
    daemon_stop(daemon);
}

/* A client of MCP gets a new process between two requests, with its handshake. */
TEST(design_reload_repeats_the_handshake)
{
    struct daemon *daemon = START(.pools = MCP("'--name','old'"));
    struct client *client = client_connect(daemon);

    client_send(client, "{'jsonrpc':'2.0','id':0,'method':'initialize','params':{"
                        "'result':{'protocolVersion':'2025-11-25'}}}");
    client_result(client, "0");
    client_send(client, "{'jsonrpc':'2.0','method':'notifications/initialized'}");
    expect_worker(client, "1", "", "old");
    client_ask(client, "2", NULL, "hold", NULL);
    client_send(client, "{'id':3,'method':'echo'}");
    reload(daemon, MCP("'--name','new'"), NULL);
    client_send(client, "{'id':4,'method':'release'}");
    expect_member(client_result(client, "3"), "worker", "'old'");
    client_result(client, "4");
    daemon_wait_log(daemon, "its new process is initialized");
    expect_worker(client, "5", "", "new");
    client_send(client, "{'id':6,'method':'heard'}");
    client_expect(client, "{'jsonrpc':'2.0','id':6,"
                          "'result':'initialize,notifications/initialized'}");
    daemon_stop(daemon);
}

/* A client asks for another version than the one whose handshake the process has: the daemon asks
 * for it, and the client waits. */
TEST(design_reload_waits_for_a_handshake_in_flight)
{
    struct daemon *daemon = CONTROL_DAEMON(.pools = STICKY("'--name','old'"));
    struct client *control = control_connect(daemon), *client = client_connect(daemon), *other;

    client_send(client, INITIALIZE("2025-11-25"));
    client_result(client, "0");
    client_send(client, "{'jsonrpc':'2.0','method':'notifications/initialized'}");
    client_ask(client, "1", NULL, "hold", NULL);
    other = client_connect(daemon);
    client_send(other, INITIALIZE("2025-06-18"));
    control_wait(control, "workers", "workers.0.messages_out", "4");
    reload(daemon, STICKY("'--name','new'"), NULL);
    client_send(client, "{'id':2,'method':'release'}");
    expect_member(client_result(other, "0"), "protocolVersion", "'2025-06-18'");
    client_result(client, "2");
    daemon_wait_log(daemon, "its new process is initialized");
    expect_worker(client, "3", "", "new");
    expect_worker(other, "3", "", "new");
    daemon_stop(daemon);
}

/* No client is left that waits for its answer. */
TEST(design_reload_replaces_a_process_that_never_answers)
{
    struct daemon *daemon =
        START(.pools = "{'id':'m','command':'sh','args':['-c','read line; echo got it >&2; "
                       "sleep 1000'],'instances':1,'protocol':'mcp','clients':'sticky',"
                       "'stderr':'log'}");
    struct client *client = client_connect(daemon);

    client_send(client, INITIALIZE("2025-11-25"));
    daemon_wait_log(daemon, "stderr: got it");
    client_close(client);
    daemon_wait_log(daemon, "client=1.*disconnected");
    reload(daemon, STICKY("'--name','new'"), NULL);
    client = client_connect(daemon);
    client_send(client, INITIALIZE("2025-11-25"));
    client_result(client, "0");
    expect_worker(client, "1", "", "new");
    daemon_stop(daemon);
}

/* Its clients share the pool in another way: it is another pool. The one before continues for the
 * clients that have a process of it. */
TEST(design_reload_replaces_a_pool_whose_sharing_changes)
{
    struct daemon *daemon = START(.pools = EXCLUSIVE("'--name','old'"));
    struct client *client = client_connect(daemon), *other = client_connect(daemon);

    expect_worker(client, "1", "", "old");
    reload(daemon, POOL("x", 1, "'--name','new'"), NULL);
    expect_worker(client, "2", "", "old");
    expect_worker(client, "3", ",'pool':'x'", "old");
    expect_worker(other, "1", "", "new");
    daemon_wait_workers(daemon, 2);
    client_close(client);
    daemon_wait_workers(daemon, 1);
    expect_worker(other, "2", ",'pool':'x'", "new");
    daemon_stop(daemon);
}

/* It is removed, or another one has its name: its request has no more time than it had. */
TEST_ROWS(design_reload_keeps_the_time_limit_of_a_pool_that_departs, 2)
{
    struct daemon *daemon = START(.pools = A("") "," LIMITED("2", ""));
    struct client *client = client_connect(daemon);

    client_send(client, "{'id':1,'pool':'l','method':'hold'}");
    client_result(client, "1");
    client_send(client, "{'id':2,'pool':'l','method':'echo'}");
    client_expect_quiet(client);
    reload(daemon, row == 0 ? A("") : A("") "," LIMITED("2", ",'clients':'exclusive'"), NULL);
    client_error(client, "2", -32001, "request timed out");
    daemon_wait_log(daemon, "free: ending it after the reload");
    daemon_wait_workers(daemon, 2); /* no client has called the new pool */
    daemon_stop(daemon);
}

/* The time of a request that has more of it is not over sooner, and no later one waits for that. */
TEST(design_reload_lowers_a_time_limit)
{
    struct daemon *daemon = START(.pools = A("") "," LIMITED("600", ""));
    struct client *client = client_connect(daemon);

    client_send(client, "{'id':1,'pool':'l','method':'hold'}");
    client_result(client, "1");
    client_send(client, "{'id':2,'pool':'l','method':'echo'}");
    client_expect_quiet(client);
    reload(daemon, A("") "," LIMITED("1", ""), NULL);
    client_send(client, "{'id':3,'pool':'l','method':'echo'}");
    client_error(client, "3", -32001, "request timed out");
    client_send(client, "{'pool':'l','method':'release'}");
    client_result(client, "2");
    daemon_stop(daemon);
}

/* All workers of the pool are drained: so are those that run another program, those that are more,
 * and those of the pool that replaces it. */
TEST_ROWS(design_reload_leaves_a_drained_pool_drained, 3)
{
    static const char *const after[] = {A("'--name','new'"), POOL("a", 3, "'--name','old'"),
                                        STICKY_A("'--name','new'")};
    struct daemon *daemon = CONTROL_DAEMON(.pools = A("'--name','old'"));
    struct client *control = control_connect(daemon), *client = client_connect(daemon);

    expect_worker(client, "1", "", "old");
    control_ask(control, "drain", "{'pool':'a'}");
    reload(daemon, after[row], NULL);
    control_wait(control, "workers", "total", row == 1 ? "3" : "2"); /* the older ones have left */
    for (int i = 0; i < (row == 1 ? 3 : 2); i++)
        control_wait(control, "workers", test_format("workers.%d.state", i), "'running'");
    client_send(client, "{'id':2,'method':'echo'}");
    control_wait(control, "clients", "clients.0.held_for",
                 row == 2 ? "'a worker that is free'" : "'a worker'");
    control_ask(control, "resume", "{'pool':'a'}");
    expect_member(client_result(client, "2"), "worker", row == 1 ? "'old'" : "'new'");
    daemon_stop(daemon);
}

/* --- a file that is wrong --- */

TEST_ROWS(design_reload_of_a_faulty_file_changes_nothing, 5)
{
    static const struct {
        const char *text, *problem;
    } rows[] = {
        {"{'pools':[", "found the end of the file"},
        {"{'pools':[" POOL("a", 0, "") "]}", "instances"},
        {"{'pools':[{'id':'a','commando':'cat','instances':1}],'limitz':{}}",
         "; the log has 2 more"},
        {"{'pools':[" POOL("b", 1, "") "],'listen':[{'unix':'@DIR@/none/such'}]}",
         "could not be opened"},
        {"{'pools':[" POOL("a", 1, "") "," POOL(
             "b", 1, "") "],"
                         "'listen':[{'unix':'@DIR@/test-one'},{'unix':'@DIR@/config.json'}]}",
         "could not be opened"},
    };
    struct daemon *daemon = CONTROL_DAEMON(.pools = A("'--name','a'"));
    struct client *client = client_connect(daemon), *control = control_connect(daemon);
    struct text *one = test_text();

    client_ask(client, "1", NULL, "echo", NULL);
    daemon_write_file(daemon, daemon->config_path, rows[row].text);
    client_send(control, "{'id':1,'method':'reload'}");
    client_error(control, "1", -32000, rows[row].problem);
    ck_assert_ptr_nonnull(strstr(hang_up(daemon), "everything is as it was"));
    expect_worker(client, "2", ",'pool':'a'", "a");
    daemon_wait_workers(daemon, 2);
    daemon_expand(daemon, one, "@DIR@/test-one");
    ck_assert_int_ne(access(one->data, F_OK), 0);
    ck_assert(control_metric(control, "stdio_bus_reloads_total{result='failed'}") == 2);
    ck_assert(control_metric(control, "stdio_bus_reloads_total{result='done'}") == 0);
    daemon_stop(daemon);
}

/* It would be waited for. */
TEST(design_reload_of_a_pipe_changes_nothing)
{
    struct daemon *daemon = START(.pools = A("'--name','a'"));
    struct client *client = client_connect(daemon);

    ck_assert_int_eq(unlink(daemon->config_path), 0);
    ck_assert_int_eq(mkfifo(daemon->config_path, 0600), 0);
    ck_assert_ptr_nonnull(strstr(hang_up(daemon), "is no file"));
    expect_worker(client, "1", "", "a");
    daemon_stop(daemon);
}

TEST(design_reload_without_a_file_is_ignored)
{
    struct daemon *daemon = START(.no_config = true,
                                  .arguments = {"--control=@DIR@/control.sock", "--", "@WORKER@"});
    struct client *client = client_connect(daemon), *control;

    daemon_wait_log(daemon, "listening on .*/control\\.sock");
    control = control_connect(daemon);
    client_ask(client, "0", NULL, "echo", NULL);
    ck_assert_ptr_nonnull(strstr(hang_up(daemon), "no configuration file"));
    client_send(control, "{'id':1,'method':'reload'}");
    client_error(control, "1", -32000, "no configuration file");
    client_ask(client, "1", NULL, "echo", NULL);
    daemon_stop(daemon);
}

/* Each signal reloads; none of them ends the daemon, whatever comes of it. */
TEST(design_reload_before_the_daemon_serves_and_again)
{
    struct daemon *daemon = START(.pools = A(""));
    struct client *client = client_connect(daemon);

    for (int i = 0; i < 20; i++)
        daemon_signal(daemon, SIGHUP);
    client_ask(client, "1", NULL, "echo", NULL);
    daemon_wait_log(daemon, "reloaded: 1 pool");
    daemon_stop(daemon);
}

/* --- listeners, tokens, limits, included files --- */

static struct client *try_connect(const struct daemon *daemon, const char *name)
{
    struct daemon at = *daemon;
    struct text path = {0};

    daemon_expand(daemon, &path, name);
    snprintf(at.socket_path, sizeof at.socket_path, "%s", path.data);
    text_free(&path);
    return client_try_connect(&at);
}

TEST(design_reload_adds_and_removes_a_listener)
{
    struct daemon *daemon = START(.pools = A("'--name','a'"));
    struct client *client, *kept = client_connect(daemon);

    reload(daemon, A("'--name','a'"), "'listen':[{'unix':'@DIR@/two.sock','pool':'a'}]");
    client = try_connect(daemon, "@DIR@/two.sock");
    ck_assert_ptr_nonnull(client);
    expect_worker(client, "1", "", "a");
    reload(daemon, A("'--name','a'") "," POOL("b", 1, "'--name','b'"),
           "'listen':[{'unix':'@DIR@/two.sock','pool':'b','mode':'0666'}]");
    expect_worker(client, "2", "", "a"); /* as it was when it came */
    client = try_connect(daemon, "@DIR@/two.sock");
    ck_assert_ptr_nonnull(client);
    expect_worker(client, "1", "", "b");
    reload(daemon, A("'--name','a'") "," POOL("b", 1, "'--name','b'"), NULL);
    daemon_wait_log(daemon, "reloaded");
    ck_assert_ptr_null(try_connect(daemon, "@DIR@/two.sock"));
    expect_worker(client, "2", "", "b");
    expect_worker(kept, "1", ",'pool':'a'", "a");
    daemon_stop(daemon);
}

static void write_token(const struct daemon *daemon, const char *token)
{
    struct text path = {0};

    daemon_write_file(daemon, "@DIR@/test-token", token);
    daemon_expand(daemon, &path, "@DIR@/test-token");
    ck_assert_int_eq(chmod(path.data, 0600), 0);
    text_free(&path);
}

/* Clients that were let in before stay; those whose token is gone do not. */
TEST(design_reload_asks_for_a_token)
{
    static const char listen[] = "'listen':{'token_file':'@DIR@/test-token'}";
    struct daemon *daemon = START(.mode = SETUP_TCP, .pools = A(""));
    struct client *client = client_connect(daemon), *other;

    client_ask(client, "1", NULL, "echo", NULL);
    write_token(daemon, "one\n");
    reload(daemon, A(""), listen);
    client_ask(client, "2", NULL, "echo", NULL);
    other = client_connect(daemon);
    client_send(other, "{'id':1,'method':'echo'}");
    client_error(other, "null", -32000, "the first line must be");
    client_expect_eof(other);
    other = client_connect(daemon);
    client_send(other, "{'token':'one'}");
    client_ask(other, "1", NULL, "echo", NULL);
    write_token(daemon, "two\n");
    reload(daemon, A(""), listen);
    client_expect_eof(other);
    client_ask(client, "3", NULL, "echo", NULL);
    other = client_connect(daemon);
    client_send(other, "{'token':'two'}");
    client_ask(other, "1", NULL, "echo", NULL);
    daemon_stop(daemon);
}

TEST(design_reload_takes_other_limits)
{
    struct daemon *daemon = START(.pools = A(""));
    struct client *client = client_connect(daemon), *refused;

    client_ask(client, "1", NULL, "echo", NULL);
    reload(daemon, A(""), "'limits':{'max_connections':1,'max_requests_per_client':1}");
    refused = client_connect(daemon);
    client_error(refused, "null", -32000, "max_connections 1");
    client_send(client, "{'id':2,'method':'no_answer'}");
    client_send(client, "{'id':3,'method':'echo'}");
    client_error(client, "3", -32000, "max_requests_per_client");
    reload(daemon, A(""), NULL);
    client_ask(client, "4", NULL, "echo", NULL);
    client_ask(client_connect(daemon), "1", NULL, "echo", NULL);
    daemon_stop(daemon);
}

TEST(design_reload_reads_included_files)
{
    struct daemon *daemon = START(.pools = A(""), .members = "'include':'@DIR@/more*.json'");
    struct client *client = client_connect(daemon);

    client_ask(client, "1", NULL, "echo", NULL);
    daemon_write_file(daemon, "@DIR@/more.json", "{'pools':[" POOL("b", 1, "'--name','b'") "]}");
    ck_assert_ptr_null(strstr(hang_up(daemon), "not reloaded"));
    expect_worker(client, "2", ",'pool':'b'", "b");
    struct text *path = test_text();
    daemon_expand(daemon, path, "@DIR@/more.json");
    ck_assert_int_eq(unlink(path->data), 0);
    ck_assert_ptr_null(strstr(hang_up(daemon), "not reloaded"));
    client_send(client, "{'id':3,'pool':'b','method':'echo'}");
    client_error(client, "3", -32602, "no such pool");
    daemon_stop(daemon);
}

/* --- reports --- */

TEST(design_reload_is_reported)
{
    struct daemon *daemon = CONTROL_DAEMON(.pools = ONE("'--name','a'"));
    struct client *control = control_connect(daemon), *events = control_connect(daemon);

    control_wait(control, "status", "phase", "'serving'");
    control_ask(events, "events", NULL);
    write_config(daemon, ONE("'--name','a'") "," POOL("b", 3, ""), NULL);
    expect_member(control_ask(control, "reload", NULL), "pools", "2");
    while (strstr(client_line(events).data, "\"reloaded\"") == NULL)
        ;
    control_wait(control, "pools", "pools.1.running", "3");
    rmp_program_says(CONTROL_PROGRAM(daemon, "ctl", "@CONTROL@", "reload"), 0, "\"pools\":2");
    expect_member(control_ask(control, "pools", NULL), "pools.1.pool", "'b'");
    ck_assert(control_metric(control, "stdio_bus_reloads_total{result='done'}") == 2);
    write_config(daemon, ONE("'--name','a'"), NULL);
    expect_member(control_ask(control, "reload", NULL), "pools", "1");
    control_wait(control, "pools", "total", "1");
    daemon_stop(daemon);
}

TEST(design_reload_is_reported_to_the_manager)
{
    struct manager *manager = manager_open(false);
    setenv("NOTIFY_SOCKET", manager->name, 1);
    struct daemon *daemon = START(.pools = ONE(""));
    struct client *client = client_connect(daemon);

    client_ask(client, "1", NULL, "echo", NULL);
    manager_wait(manager, "^READY=1\n");
    reload(daemon, A(""), NULL);
    manager_wait(manager, "^RELOADING=1\nMONOTONIC_USEC=[0-9]+\n$");
    manager_wait(manager, "^READY=1\nSTATUS=serving: 1 client");
    daemon_write_file(daemon, daemon->config_path, "{");
    hang_up(daemon);
    manager_wait(manager, "^RELOADING=1\nMONOTONIC_USEC=[0-9]+\n$");
    manager_wait(manager, "^READY=1\nSTATUS=serving: 1 client");
    daemon_stop(daemon);
}

/* Of what only the start of the daemon can set, a reload says so. */
TEST(design_reload_names_what_takes_effect_at_the_next_start)
{
    struct daemon *daemon = START(.pools = ONE(""));

    reload(daemon, ONE(""), "'control':'@DIR@/control.sock'");
    daemon_mark_log(daemon);
    reload(daemon, ONE(""), NULL);
    daemon_wait_log(daemon, "\"control\" takes effect at the next start");
    daemon_stop(daemon);
}

/* --- under load --- */

#define RELOADS 20 /* of the test in `make check`; RELOADS=200 in the environment */

static int count_reloads(void)
{
    const char *wanted = getenv("RELOADS");
    return wanted != NULL ? (int)strtol(wanted, NULL, 10) : RELOADS;
}

/* Each time another program, number of workers or set of pools; each third file is faulty. */
static void write_any(const struct daemon *daemon, int turn)
{
    char pools[512];

    if (turn % 3 == 2) {
        daemon_write_file(daemon, daemon->config_path, "{'pools':[{'id':'a'}]}");
        return;
    }
    snprintf(pools, sizeof pools,
             "{'id':'a','command':'@WORKER@','args':['--name','%d'],'instances':%d}%s", turn / 2,
             1 + turn % 4, turn % 2 == 0 ? "," POOL("b", 2, "'--name','b'") : "");
    write_config(daemon, pools, turn % 4 == 0 ? "'listen':[{'unix':'@DIR@/more.sock'}]" : NULL);
}

/* A process beside the test, which reloads as often as it can, but 200 times in a minute. A signal
 * that comes before the daemon has taken the last one is not one more. */
static pid_t begin_reloads(struct daemon *daemon)
{
    int count = count_reloads();
    pid_t pid = fork();

    ck_assert_int_ge(pid, 0);
    if (pid > 0)
        return pid;
    for (int i = 0; i < count; i++) {
        int64_t until = now_ms() + (count == RELOADS ? 100 : 300), deadline = deadline_usual();

        write_any(daemon, i);
        daemon_mark_log(daemon);
        kill(daemon->pid, SIGHUP);
        while (now_ms() < until || (!daemon_logged(daemon, "reloaded") && !deadline_over(deadline)))
            nap();
    }
    _exit(0);
}

static void end_reloads(pid_t pid)
{
    int status = -1;

    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}

static bool runs(pid_t pid)
{
    siginfo_t info = {.si_pid = 0};

    ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
    return info.si_pid == 0;
}

/* 50 clients with requests in flight all the time, in the pool that is there in each file. All
 * answers come, and no client is disconnected. */
TEST_ROWS(stress_reloads_under_load, 2)
{
    struct daemon *daemon = START(.pools = A("'--name','0'"));
    int fds = client_settled_fds(daemon, 2);
    pid_t reloads = begin_reloads(daemon);

    do {
        struct load load = {.clients = 50,
                            .in_flight = 4,
                            .requests = 200,
                            .size = 100,
                            .in_sessions = row == 1,
                            .pool = "a"};
        load_run(&load, daemon);
    } while (runs(reloads));
    end_reloads(reloads);
    ck_assert_uint_ge(daemon_count_log(daemon, "INFO  reloaded: "), (size_t)count_reloads() / 2);
    ck_assert_uint_ge(daemon_count_log(daemon, "not reloaded"), (size_t)count_reloads() / 4);
    reload(daemon, A("'--name','end'"), NULL);
    daemon_wait_workers(daemon, 2);
    daemon_wait_fds(daemon, fds);
    client_ask(client_connect(daemon), "1", NULL, "echo", NULL);
    daemon_stop(daemon);
}
