/* Upgrade in place: another program takes the place of the daemon in the same process. */
#include "build_config.h"

#include <sys/un.h>

#include "control.h"
#include "harness.h"
#include "rmp.h"

#define REFUSED "not upgraded, going on: "
#define NEXT_VERSION "9.9.9"
#define MANY (harness_fewer() ? 40 : 200)

/* --- programs --- */

/* The daemon is started from this copy, which a test replaces. */
static const char *program;

static void write_program(const void *bytes, size_t len, int mode)
{
    const char *next = test_format("%s.next", program);
    FILE *file = fopen(next, "wb");

    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, len, file), len);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(chmod(next, (mode_t)mode), 0);
    ck_assert_int_eq(rename(next, program), 0);
}

/* This build, in which each place of one text is another of the same length. */
static void write_build(const char *from, const char *to)
{
    const char *path = getenv("ORIGINAL_STDIO_BUS");
    struct text build = {0};
    size_t len = strlen(from);

    ck_assert(read_file(&build, path));
    for (size_t i = 0; i + len < build.len; i++) {
        if (memcmp(build.data + i, from, len) == 0)
            memcpy(build.data + i, to, len);
    }
    write_program(build.data, build.len, 0755);
    text_free(&build);
}

static void write_script(const char *text)
{
    write_program(text, strlen(text), 0755);
}

static void copy_program(void)
{
    const char *path = getenv("STDIO_BUS");

    setenv("ORIGINAL_STDIO_BUS", path != NULL ? path : "./stdio_bus", 1);
    program = test_format("%s/stdio_bus", test_dir());
    setenv("STDIO_BUS", program, 1);
    write_build(PACKAGE_VERSION, PACKAGE_VERSION);
    steps_without("each test has upgrades of its own");
}

FIXTURE(copy_program, NULL)

static void expect_refused(struct daemon *daemon, const char *pattern)
{
    daemon_mark_log(daemon);
    daemon_signal(daemon, SIGUSR2);
    daemon_wait_log(daemon, test_format("%s.*%s", REFUSED, pattern));
}

/* Of one pool, "pool", with further members: ",'strict':true". */
static void write_config(const struct daemon *daemon, const char *members)
{
    daemon_write_file(daemon, daemon->config_path,
                      test_format("{'pools':[%s]%s}", POOL("pool", 1, ""), members));
}

/* Returns the line of the log that says how the reload went. */
static const char *hang_up(struct daemon *daemon)
{
    daemon_mark_log(daemon);
    daemon_signal(daemon, SIGHUP);
    return daemon_wait_log(daemon, "(not reloaded|reloaded: [0-9]+ pool)");
}

/* --- what stays --- */

TEST(upgrade_keeps_the_process_its_workers_and_clients)
{
    struct daemon *daemon = START(.instances = 1);
    struct client *client = client_connect(daemon);
    pid_t pid = daemon->pid;
    long worker = client_pid(client, "1", "s");

    write_build(PACKAGE_VERSION, NEXT_VERSION);
    daemon_upgrade(daemon);
    daemon_wait_log(daemon, DAEMON_UPGRADED " " PACKAGE_VERSION " to " NEXT_VERSION);
    ck_assert(daemon_logged(daemon, "received SIGUSR2"));
    ck_assert_int_eq(client_pid(client, "2", "s"), worker);
    ck_assert_int_eq(client_pid(client_connect(daemon), "1", NULL), worker);
    ck_assert_int_eq(daemon->pid, pid);
    write_build(PACKAGE_VERSION, PACKAGE_VERSION); /* and back */
    daemon_upgrade(daemon);
    ck_assert_int_eq(client_pid(client, "3", "s"), worker);
}

/* --- messages that are cut --- */

static const char *const framings[] = {"ndjson", "content-length", "length"};

static void add_framed(struct text *to, const char *framing, const char *body)
{
    size_t len = strlen(body);
    const unsigned char head[] = {0, 0, (unsigned char)(len >> 8), (unsigned char)len};

    if (strcmp(framing, "content-length") == 0)
        text_printf(to, "Content-Length: %zu\r\n\r\n", len);
    else if (strcmp(framing, "length") == 0)
        text_add(to, head, sizeof head);
    text_add(to, body, len);
    if (strcmp(framing, "ndjson") == 0)
        text_printf(to, "\n");
}

/* Reads this number of bytes. */
static void expect_bytes(struct client *client, const struct text *expected)
{
    while (client->input.len - client->consumed < expected->len)
        ck_assert(client_read_before(client, deadline_usual()));
    ck_assert_mem_eq(client->input.data + client->consumed, expected->data, expected->len);
    client->consumed += expected->len;
}

TEST_ROWS(upgrade_within_a_message_of_a_client, COUNT(framings))
{
    const char *framing = framings[row];
    struct text *message = test_text(), *answer = test_text();
    struct daemon *daemon;
    struct client *client;

    add_framed(message, framing,
               "{\"id\":\"\\u0061\\u00e9\",\"method\":\"plain\",\"params\":[true,-1.5e2]}");
    add_framed(answer, framing,
               "{\"jsonrpc\":\"2.0\",\"id\":\"\\u0061\\u00e9\",\"result\":[true,-1.5e2]}");
    daemon = START(.instances = 1, .arguments = {"--framing", framing});
    client = client_connect(daemon);
    client_send_bytes(client, message->data, message->len);
    expect_bytes(client, answer);
    for (size_t i = row; i < message->len; i += harness_fewer() ? 5 : 1) {
        client_send_bytes(client, message->data, i);
        daemon_upgrade(daemon);
        client_send_bytes(client, message->data + i, message->len - i);
        expect_bytes(client, answer);
    }
}

/* The worker writes the first bytes of an answer before the upgrade, and the others after it. */
TEST_ROWS(upgrade_within_a_message_of_a_worker, 3)
{
    static const char answer[] = "{\"jsonrpc\":\"2.0\",\"id\":\"w\",\"result\":\"\\u00e9\"}\n";
    const size_t cuts[] = {1, 17, sizeof answer - 2};
    struct text *first = test_text(), *rest = test_text();
    struct daemon *daemon;
    struct client *client;

    text_hex(first, answer, cuts[row]);
    text_hex(rest, answer + cuts[row], sizeof answer - 1 - cuts[row]);
    daemon = START(.instances = 1);
    client = client_connect(daemon);
    client_pid(client, "1", NULL);
    client_request(client, "'w'", NULL, "garbage", test_format("{'hex':'%s'}", first->data));
    nap();
    daemon_upgrade(daemon);
    client_send(client, "{'method':'garbage','params':{'hex':'%s'}}", rest->data);
    client_result(client, "'w'");
}

/* Half of a message that is longer than a read; and the queue of a client that does not read. */
TEST(upgrade_with_long_messages_and_full_queues)
{
    const char *text = test_fill('x', 3000000);
    struct daemon *daemon =
        START(.pools = "{'id':'p','command':'@WORKER@','instances':1,'protocol':'mcp',"
                       "'clients':'sticky'}",
              .limits = "'max_output_queue':65536");
    struct client *client = client_connect(daemon);
    struct client *slow = client_connect_small(daemon);

    client_pid(client, "0", NULL);
    for (int i = 0; i < 8; i++)
        client_request(slow, test_format("%d", i), NULL, "big", "{'size':200000}");
    client_send_bytes(client, "{\"id\":1,\"method\":\"length\",\"params\":\"", 36);
    client_send_bytes(client, text, 1500000);
    daemon_upgrade(daemon);
    daemon_upgrade(daemon);
    client_send_bytes(client, text, 1500000);
    client_send(client, "'}");
    for (int i = 0; i < 8; i++)
        client_result(slow, test_format("%d", i));
    client_result(client, "1");
}

/* --- workers --- */

TEST(upgrade_while_a_worker_waits_for_its_restart)
{
    struct daemon *daemon = START(.instances = 1);
    struct client *client = client_connect(daemon);

    client_crash(client, "1", NULL, "{'code':3}");
    daemon_wait_log(daemon, "restarting in 100 ms");
    daemon_upgrade(daemon);
    client_pid(client, "2", NULL);
    client_crash(client, "3", NULL, "{'code':3}");
    daemon_wait_log(daemon, "restarting in 400 ms"); /* the streak continues */
    daemon_upgrade(daemon);
    client_pid(client, "4", NULL);
}

/* The exit falls before, between or after the programs. */
TEST_ROWS(upgrade_while_a_worker_is_killed, 20)
{
    struct daemon *daemon = START(.instances = 1);
    struct client *client = client_connect(daemon);
    long worker = client_pid(client, "1", NULL);

    daemon_mark_log(daemon);
    daemon_signal(daemon, SIGUSR2);
    for (size_t i = 0; i < row; i++)
        nap();
    kill((pid_t)worker, SIGKILL);
    daemon_wait_log(daemon, DAEMON_UPGRADED);
    daemon_wait_log(daemon, "was killed by SIGKILL");
    ck_assert_int_ne(client_pid(client, "2", NULL), worker);
}

/* --- tokens, control --- */

TEST(upgrade_before_a_token_is_shown)
{
    struct daemon *daemon;
    struct client *client, *known;
    const char *path = test_format("%s/token", test_dir());
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    fputs("secret\n", file);
    fclose(file);
    ck_assert_int_eq(chmod(path, 0600), 0);
    daemon = START(.mode = SETUP_TCP, .members = test_format("'listen':{'token_file':'%s'}", path));
    known = client_connect(daemon);
    client_send(known, "{'token':'secret'}");
    client_pid(known, "1", NULL);
    client = client_connect(daemon);
    client_send_bytes(client, "{\"tok", 5);
    ck_assert_int_eq(unlink(path), 0); /* the tokens are known */
    daemon_upgrade(daemon);
    client_send_bytes(client, "en\":\"secret\"}\n", 14);
    client_pid(client, "1", NULL);
    client_pid(known, "2", NULL);
}

TEST(upgrade_by_the_control_socket)
{
    struct client *client;
    struct daemon *daemon =
        CONTROL_DAEMON(.pools = POOL("pool", 1, "") ",{'id':'m','command':'@WORKER@',"
                                                    "'instances':1,'protocol':'mcp'}");
    struct client *control = control_connect(daemon);
    struct client *events = control_connect(daemon);

    client = client_connect(daemon);
    client_send(client, "{'id':'i','pool':'m','method':'initialize','params':{'protocolVersion':"
                        "'2025-06-18','clientInfo':{'name':'host'}}}");
    client_result(client, "'i'");
    client_pid(client, "1", NULL);
    client_ask(events, "1", NULL, "events", NULL);
    write_build(PACKAGE_VERSION, NEXT_VERSION);
    expect_member(client_ask(control, "1", NULL, "upgrade", NULL), "version", "'9.9.9'");
    expect_word(client_line(events).data, "upgraded");
    expect_member(control_ask(control, "clients", NULL), "clients.0.messages_in", "2");
    expect_member(control_ask(control, "clients", NULL), "clients.0.program", "'host'");
    expect_member(control_ask(control, "status", NULL), "version", "'9.9.9'");
    write_script("#!/bin/sh\necho no\n");
    client_request(control, "2", NULL, "upgrade", NULL);
    client_error(control, "2", -32000, ": no");
    expect_word(client_line(events).data, "not upgraded");
    client_pid(client, "2", NULL);
}

/* As a script does that pipes the line into a program. */
TEST(upgrade_answers_a_control_client_that_has_shut_down_its_sending_side)
{
    struct daemon *daemon = CONTROL_DAEMON(.pools = POOL("pool", 1, ""));
    struct client *control = control_connect(daemon);

    client_ask(client_connect(daemon), "1", NULL, "echo", NULL); /* it has started */
    write_build(PACKAGE_VERSION, NEXT_VERSION);
    client_request(control, "1", NULL, "upgrade", NULL);
    client_half_close(control);
    expect_member(client_result(control, "1"), "version", "'9.9.9'");
    client_expect_eof(control);
    write_script("#!/bin/sh\necho no\n");
    control = control_connect(daemon);
    client_request(control, "2", NULL, "upgrade", NULL);
    client_half_close(control);
    client_error(control, "2", -32000, ": no");
    client_expect_eof(control);
}

/* The program that checks the state logs nothing of it but errors: a line would be the reason for
 * which there is no upgrade. */
TEST(upgrade_while_a_client_waits_for_memory)
{
    struct daemon *daemon = START(.arguments = {"--log-level", "debug"},
                                  .limits = "'max_memory':1048576,'max_input_buffer':1048576");
    struct client *holder = client_connect(daemon), *waiting = client_connect(daemon);
    char *letters = malloc(600000);

    ck_assert_ptr_nonnull(letters);
    memset(letters, 'x', 600000);
    client_send_bytes(holder, "{\"text\":\"", 9);
    client_send_bytes(holder, letters, 600000);
    client_send_bytes(waiting, "{\"text\":\"", 9);
    (void)client_offer(waiting, letters, 600000);
    daemon_wait_log(daemon, "client=2.*waits for the memory");
    daemon_upgrade(daemon);
    daemon_wait_log(daemon, "client=2.*waits for the memory");
    free(letters);
}

/* --- what leaves the daemon running --- */

static const struct {
    const char *script; /* NULL: none is there */
    int mode;
    const char *pattern;
} bad_programs[] = {
    {"#!/bin/sh\nexit 3\n", 0755, "without an answer"},
    {"#!/bin/sh\necho wrong >&2\n", 0755, "wrong"},
    {"#!/bin/sh\nexec sleep 60\n", 0755, "did not answer"},
    {"#!/nowhere/at/all\n", 0755, "cannot be executed"},
    {"not a program", 0644, "cannot be executed"},
    {NULL, 0, "cannot be executed"},
};

TEST_ROWS(upgrade_to_no_daemon, COUNT(bad_programs))
{
    struct daemon *daemon = START(.instances = 1);
    struct client *client = client_connect(daemon);

    client_ask(client, "0", NULL, "hold", NULL);
    client_request(client, "1", NULL, "echo", NULL);
    if (bad_programs[row].script == NULL)
        ck_assert_int_eq(unlink(program), 0);
    else
        write_program(bad_programs[row].script, strlen(bad_programs[row].script),
                      bad_programs[row].mode);
    expect_refused(daemon, bad_programs[row].pattern);
    write_build(PACKAGE_VERSION, NEXT_VERSION);
    daemon_upgrade(daemon);
    client_request(client, "2", NULL, "release", NULL);
    client_result(client, "1");
    client_result(client, "2");
}

TEST(upgrade_to_a_build_with_another_form)
{
    struct daemon *daemon = START(.instances = 1);
    struct client *client = client_connect(daemon);

    client_pid(client, "1", NULL);
    write_build("stdio_bus state ", "stdio_bus State ");
    expect_refused(daemon, "another form");
    client_pid(client, "2", NULL);
}

/* The check has passed, and then the program fails: it gives the state back. */
TEST(upgrade_is_taken_back)
{
    if (getenv("TEST_WRAPPER_THREADS") != NULL)
        return; /* /proc/self/exe of an emulator's program is its path, where the script is then */
    struct daemon *daemon = START(.instances = 1);
    struct client *client = client_connect(daemon);

    client_ask(client, "0", NULL, "hold", NULL);
    client_request(client, "1", NULL, "echo", NULL);
    write_script(test_format("#!/bin/sh\n"
                             "[ \"$1\" = --upgrade-check ] && exec %s \"$@\"\n"
                             "set -- $STDIO_BUS_UPGRADE\n"
                             "STDIO_BUS_UPGRADE_PROBLEM='it was a script' exec /proc/self/fd/$2 "
                             "--config '%s' --unix '%s'\n",
                             getenv("ORIGINAL_STDIO_BUS"), daemon->config_path,
                             daemon->socket_path));
    expect_refused(daemon, "it was a script");
    client_request(client, "2", NULL, "release", NULL);
    client_result(client, "1");
    client_result(client, "2");
}

/* The files are those of the next reload. */
TEST(upgrade_goes_on_with_the_configuration_that_was_read)
{
    struct text *path = test_text();
    struct daemon *daemon = START(.members = "'include':['test-*.jsonc']");
    struct client *client = client_connect(daemon);

    daemon_write_file(daemon, "@DIR@/test-1.jsonc", "{'pools':[" POOL("one", 1, "") "]} // once\n");
    hang_up(daemon);
    client_send(client, "{'id':1,'pool':'one','method':'echo'}");
    client_result(client, "1");
    daemon_write_file(daemon, daemon->config_path, "{'pools':[");
    daemon_expand(daemon, path, "@DIR@/test-1.jsonc");
    ck_assert_int_eq(unlink(path->data), 0);
    daemon_write_file(daemon, "@DIR@/test-2.jsonc", "{'pools':[" POOL("two", 1, "") "]}");
    for (int i = 0; i < 2; i++) {
        daemon_upgrade(daemon);
        client_send(client, "{'id':2,'pool':'one','method':'echo'}");
        client_result(client, "2");
    }
    ck_assert_ptr_nonnull(strstr(hang_up(daemon), "not reloaded"));
    write_config(daemon, ",'include':'test-2.jsonc'");
    ck_assert_ptr_null(strstr(hang_up(daemon), "not reloaded"));
    client_send(client, "{'id':3,'pool':'two','method':'echo'}");
    client_result(client, "3");
}

/* What differs between the two configurations, for clients and sockets that were there before. */
static const struct {
    const char *before, *after;
} configs[] = {
    {"", ",'listen':{'framing':'content-length'}"},
    {"", ",'limits':{'max_message_rate':1000,'idle_timeout_sec':100}"},
    {",'limits':{'max_message_rate':1000,'idle_timeout_sec':100}", ""},
    {"", ",'control':'@DIR@/other.sock'"},
    {",'control':'@DIR@/other.sock'", ""},
    {"", ",'metrics':'127.0.0.1:0'"},
    {",'metrics':'127.0.0.1:0'", ""},
    {",'limits':{'max_restarts':3}", ",'limits':{'max_restarts':5}"},
};

TEST_ROWS(upgrade_after_a_reload, COUNT(configs))
{
    const char *before = configs[row].before;
    struct daemon *daemon = START(.pools = POOL("pool", 1, ""),
                                  .members = before[0] != '\0' ? before + 1 : NULL);
    struct client *client = client_connect(daemon);

    client_pid(client, "1", NULL);
    write_config(daemon, configs[row].after);
    ck_assert_ptr_null(strstr(hang_up(daemon), "not reloaded"));
    for (int i = 0; i < 2; i++) {
        daemon_upgrade(daemon);
        client_pid(client, "2", "s");
    }
    ck_assert_ptr_null(strstr(hang_up(daemon), "not reloaded"));
    client_pid(client, "3", "s");
}

/* It has left nothing to wait for. */
TEST(upgrade_after_a_reload_that_failed)
{
    struct daemon *daemon = START(.instances = 1);
    struct client *client = client_connect(daemon);

    client_pid(client, "1", NULL);
    write_config(daemon, ",'listen':[{'unix':'@DIR@/other.sock'},{'unix':'@DIR@/none/such'}]");
    ck_assert_ptr_nonnull(strstr(hang_up(daemon), "not reloaded"));
    daemon_upgrade(daemon);
    client_pid(client, "2", NULL);
}

/* Of the pools, also of workers that are gone, and of the reloads. */
TEST(upgrade_keeps_counters)
{
    static const char *const names[] = {
        "stdio_bus_reloads_total{result='done'}",
        "stdio_bus_pool_messages_total{pool='pool',direction='sent'}",
        "stdio_bus_pool_bytes_total{pool='pool',direction='received'}",
        "stdio_bus_worker_starts_total{pool='pool'}",
        "stdio_bus_requests_total{pool='pool',outcome='result'}",
        "stdio_bus_client_messages_total{direction='received'}",
        "stdio_bus_connections_total",
    };
    double before[COUNT(names)];
    struct daemon *daemon = CONTROL_DAEMON(.pools = POOL("pool", 2, ""));
    struct client *client = client_connect(daemon);
    struct client *control = control_connect(daemon);

    client_pid(client, "1", NULL);
    client_pid(client, "2", NULL);
    write_config(daemon, "");
    ck_assert_ptr_null(strstr(hang_up(daemon), "not reloaded"));
    control_wait(control, "pools", "total", "1");
    daemon_wait_workers(daemon, 1);
    for (size_t i = 0; i < COUNT(names); i++) {
        before[i] = control_metric(control, names[i]);
        ck_assert_msg(before[i] > 0, "%s is %g", names[i], before[i]);
    }
    daemon_upgrade(daemon);
    for (size_t i = 0; i < COUNT(names); i++)
        ck_assert_msg(control_metric(control, names[i]) == before[i], "%s was %g", names[i],
                      before[i]);
}

static struct client *connect_at(const struct sockaddr_un *at)
{
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    ck_assert_int_eq(connect(fd, (const struct sockaddr *)at, sizeof *at), 0);
    return client_adopt(fd, fd);
}

/* A reload of the next program finds them, too: by name, or by address. */
TEST_ROWS(upgrade_keeps_sockets_that_were_passed_on, 2)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct daemon *daemon;
    struct client *client;

    snprintf(at.sun_path, sizeof at.sun_path, "%s/passed", test_dir());
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(listen(fd, 8), 0);
    daemon = START(.mode = SETUP_STDIO, .default_mode = true, .closed = true, .passed_fd = fd,
                   .passed_name = "bus",
                   .members = row == 0 ? "'listen':[{'fd':'bus'}]"
                                       : test_format("'listen':[{'unix':'%s'}]", at.sun_path));
    close(fd);
    for (int i = 0; i < 3; i++) {
        client = connect_at(&at);
        client_pid(client, "1", NULL);
        daemon_upgrade(daemon);
        ck_assert_ptr_null(strstr(hang_up(daemon), "not reloaded"));
        client_pid(client, "2", NULL);
    }
}

TEST(upgrade_needs_the_log_file)
{
    const char *directory = test_format("%s/logs", test_dir());
    const char *moved = test_format("%s-moved", directory);
    struct daemon *daemon;

    ck_assert_int_eq(mkdir(directory, 0700), 0);
    daemon = START(.no_wait = true, .arguments = {"--log-file", test_format("%s/log", directory)});
    snprintf(daemon->log_path, sizeof daemon->log_path, "%s/log", directory);
    WAIT_UNTIL(access(daemon->log_path, R_OK) == 0, "no log");
    daemon_wait_log(daemon, "listening");
    ck_assert_int_eq(rename(directory, moved), 0);
    snprintf(daemon->log_path, sizeof daemon->log_path, "%s/log", moved);
    client_pid(client_connect(daemon), "1", NULL);
    expect_refused(daemon, "cannot open the log file");
    client_pid(client_connect(daemon), "1", NULL);
    ck_assert_int_eq(rename(moved, directory), 0);
    snprintf(daemon->log_path, sizeof daemon->log_path, "%s/log", directory);
    daemon_upgrade(daemon);
    client_pid(client_connect(daemon), "1", NULL);
}

/* A signal comes before, between or after the programs: none is lost. */
TEST_ROWS(upgrade_while_the_daemon_is_to_stop, 12)
{
    struct daemon *daemon = START(.instances = 1);
    struct client *client = client_connect(daemon);

    client_pid(client, "1", NULL);
    client_close(client);
    daemon_signal(daemon, SIGUSR2);
    usleep((useconds_t)(row * 700));
    daemon_signal(daemon, SIGTERM);
    ck_assert_int_eq(daemon_wait(daemon), 0);
}

/* The check gets another state than the daemon has. */
TEST_ROWS(upgrade_of_a_damaged_state_is_refused, 3)
{
    static const char *const edits[] = {"s/connect/cannect/", "s/rmppeer/rmpbear/",
                                        "s/rmpread/rmpdead/"};
    struct daemon *daemon = rmp_start(NULL, NULL);
    struct client *client = client_connect(daemon);

    rmp_subscribe(client, true, "a/b", 0);
    write_script(test_format("#!/bin/sh\n"
                             "LC_ALL=C sed '%s' >%s.state\n"
                             "exec %s \"$@\" <%s.state\n",
                             edits[row], program, getenv("ORIGINAL_STDIO_BUS"), program));
    expect_refused(daemon, "the state is");
    RMP_SEND(client, .topic = "a/b", .msg_id = 3);
    ck_assert_uint_eq(rmp_next(client).msg_id, 3);
}

/* --- many --- */

TEST(upgrade_leaks_nothing)
{
    long memory = 0, fds = 0;
    struct daemon *daemon = CONTROL_DAEMON(.instances = 2);
    struct client *client = client_connect(daemon);

    client_pid(client, "1", NULL);
    for (int i = 0; i < MANY; i++) {
        if (i == MANY / 10) {
            memory = proc_status(daemon->pid, "VmRSS");
            fds = proc_fd_count(daemon->pid);
        }
        daemon_upgrade(daemon);
        client_pid(client, test_format("%d", i), "s");
    }
    ck_assert_int_eq(proc_fd_count(daemon->pid), fds);
    if (!harness_skips_memory())
        ck_assert_int_le(proc_status(daemon->pid, "VmRSS"), memory + 512);
}

/* The load checks each answer. UPGRADE_SECONDS (2; with TEST_FEWER 1) says for how long. */
TEST_ROWS(upgrade_under_load, 2)
{
    const char *text = getenv("UPGRADE_SECONDS");
    long usual = harness_fewer() ? 1 : 2;
    int64_t until = now_ms() + (text != NULL ? strtol(text, NULL, 10) : usual) * 1000;
    struct load load = {
        .clients = 25, .in_flight = 4, .requests = 200, .size = 3000, .in_sessions = row == 1};
    unsigned count = 0;
    pid_t child;
    struct daemon *daemon = START(.instances = 4);

    load_begin(&load, daemon);
    while (now_ms() < until || count < 5) {
        write_build(PACKAGE_VERSION, count++ % 2 == 0 ? NEXT_VERSION : PACKAGE_VERSION);
        child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            for (int i = 0; i < 10; i++) {
                kill(daemon->pid, SIGUSR2);
                usleep(20000);
            }
            _exit(0);
        }
        load_finish(&load);
        ck_assert_int_eq(waitpid(child, NULL, 0), child);
        load_end(&load);
        load_begin(&load, daemon);
    }
    load_end(&load);
    ck_assert_uint_ge(daemon_count_log(daemon, DAEMON_UPGRADED), 1); /* on a busy machine, few */
}

int main(void)
{
    return daemon_can_upgrade() ? harness_main("upgrade") : 0;
}
