/* What an HTTP exchange does when nothing was written for HTTP_SILENCE_MS. The bus is a process of
 * its own, in which time passes at a word of the test. */
#include "build_config.h"

#include "base/error.h"
#include "bus/state.h"
#include "harness.h"
#include "supervisor/bus.h"
#include "web/service.h"

#define SILENCE_MS 15000 /* HTTP_SILENCE_MS */

#define CONFIG                                                                                     \
    "{'pools':[{'id':'p','command':'@WORKER@','instances':2,'protocol':'mcp'}],"                   \
    "'listen':[{'http':'127.0.0.1:0'}],'limits':{'max_output_queue':65536}}"

#define ECHO(id) "{'jsonrpc':'2.0','id':" id ",'method':'echo'}"

static struct daemon host;
static int orders[2], replies[2]; /* pipes */

/* --- the process of the bus --- */

static void report(void *user_data, bool is_error, const char *text)
{
    (void)user_data;
    (void)is_error;
    ck_abort_msg("%s", text);
}

/* False: the test has ended. */
static bool take_order(struct stdio_bus *bus)
{
    char order;
    ssize_t got = read(orders[0], &order, 1);

    if (got < 0)
        return true;
    if (got == 0)
        return false;
    timers_run(stdio_bus_event_loop_timers(bus->loop),
               stdio_bus_event_loop_now_ms(bus->loop) + SILENCE_MS);
    ck_assert_int_eq(bus_step(bus, 0), BUS_RUNNING);
    ck_assert_int_eq(write(replies[1], &order, 1), 1);
    return true;
}

static void run_bus(void)
{
    static const struct service *const services[] = {&http_service, NULL};
    struct text text = {0};
    struct config config;
    struct log log;
    struct bus_options options = {.config = &config, .log = &log, .services = services};
    struct stdio_bus *bus;

    daemon_expand(&host, &text, CONFIG);
    text_quote(&text, 0);
    ck_assert_int_eq(config_read_text(&config, text.data, text.len, "config", report, NULL),
                     STDIO_BUS_OK);
    ck_assert_int_eq(log_open_file(&log, host.log_path, LOG_LEVEL_DEBUG), STDIO_BUS_OK);
    options.listens = config.listens;
    options.listen_count = config.listen_count;
    bus = bus_create(&options);
    ck_assert_ptr_nonnull(bus);
    ck_assert_int_eq(bus_start(bus), STDIO_BUS_OK);
    while (take_order(bus))
        ck_assert_int_eq(bus_step(bus, 1), BUS_RUNNING);
    bus_destroy(bus);
    log_close(&log);
    config_free(&config);
    text_free(&text);
}

static void set_up(void)
{
    harness_make_dir(host.dir, sizeof host.dir);
    snprintf(host.log_path, sizeof host.log_path, "%s/log", host.dir);
    ck_assert_int_eq(pipe(orders) | pipe(replies), 0);
    ck_assert_int_eq(fcntl(orders[0], F_SETFL, O_NONBLOCK), 0);
    host.pid = fork();
    ck_assert_int_ge(host.pid, 0);
    if (host.pid == 0) {
        close(orders[1]);
        run_bus();
        _exit(0);
    }
    close(orders[0]);
    daemon_wait_log(&host, "HTTP at");
}

static void tear_down(void)
{
    int status;

    close(orders[1]);
    ck_assert_int_eq(waitpid(host.pid, &status, 0), host.pid);
    ck_assert_int_eq(status, 0);
    harness_remove_dir(host.dir);
}

/* Silence for so long that each exchange acts on it. */
static void pass_silence(void)
{
    char order = 's';

    ck_assert_int_eq(write(orders[1], &order, 1), 1);
    ck_assert_int_eq(read(replies[0], &order, 1), 1);
}

/* The same, again and again until the bus has read the request, and writes something. */
static void await_bytes(struct http *http)
{
    WAIT_UNTIL((pass_silence(), client_read_before(http->client, now_ms() + 10)), "no byte comes");
}

/* --- a process that takes no message --- */

/* Sends notifications of these fields until the process, which reads no more, has a full queue. */
static void fill_process(struct http *http, const char *fields, const char *params)
{
    do {
        http_send(http, "POST", "/mcp", fields,
                  test_format("{'jsonrpc':'2.0','method':'nothing','params':{%s'pad':'%s'}}",
                              params, test_fill('x', 60000)));
        http_expect(http, 202);
    } while (!daemon_logged(&host, "its queue is full"));
}

/* The process of the session. */
static pid_t stop_process(struct http *http, const char *session)
{
    http_post(http, session, "{'jsonrpc':'2.0','id':0,'method':'stop_reading'}");
    long pid = json_number(message_result(http_expect(http, 200), "0"), "pid");
    fill_process(http, test_format(HTTP_POST_FIELDS "Mcp-Session-Id: %s\r\n", session), "");
    return (pid_t)pid;
}

static struct http *connect_http(void)
{
    return http_adopt(http_client(&host));
}

/* What is sent to the bus before is read before the answers. */
static void ask_twice(struct http *http)
{
    for (int i = 0; i < 2; i++) {
        http_send(http, "PUT", "/mcp", "", NULL);
        http_expect(http, 405);
    }
}

/* --- requests and notifications that wait to be taken --- */

#define STATELESS_VERSION "'io.modelcontextprotocol/protocolVersion':'2026-07-28'"
#define META "'_meta':{" STATELESS_VERSION ",'io.modelcontextprotocol/clientCapabilities':{}}"
#define STATELESS(method)                                                                          \
    HTTP_POST_FIELDS "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: " method "\r\n"

/* It has no stream that could begin. */
TEST(silent_notification_is_accepted_in_the_end)
{
    struct http *a = connect_http(), *b = connect_http();
    http_send(a, "POST", "/mcp", STATELESS("stop_reading"),
              "{'jsonrpc':'2.0','id':0,'method':'stop_reading','params':{" META "}}");
    long pid = json_number(message_result(http_expect(a, 200), "0"), "pid");
    fill_process(a, STATELESS("nothing"), META ",");
    http_send(b, "POST", "/mcp", STATELESS("nothing"),
              "{'jsonrpc':'2.0','method':'nothing','params':{" META "}}");
    ask_twice(a);
    for (int i = 0; i < 3; i++)
        pass_silence();
    ck_assert_int_eq(kill((pid_t)pid, SIGUSR1), 0);
    http_expect(b, 202);
}

/* An event without data has begun its stream. */
static const char *expect_begun(struct http *http)
{
    await_bytes(http);
    ck_assert_int_eq(http_status(http), 200);
    ck_assert_uint_eq(http_event(http).len, 0);
    struct span id = http_event_id(http);
    ck_assert_ptr_nonnull(id.data);
    return test_format("%.*s", (int)id.len, id.data);
}

/* row: its client has closed the connection, or another one takes its place. */
TEST_ROWS(silent_request_that_was_not_taken_is_given_up_with_an_error, 2)
{
    struct http *a = connect_http(), *b = connect_http(), *get = connect_http();
    const char *session = http_session(a);
    pid_t pid = stop_process(a, session);
    http_post(b, session, ECHO("5"));
    const char *id = expect_begun(b);
    if (row == 0) {
        client_abort(b->client);
        daemon_wait_log(&host, "disconnected");
    }
    http_send(get, "GET", "/mcp",
              test_format("Accept: text/event-stream\r\nMcp-Session-Id: %s\r\n"
                          "Last-Event-ID: %s\r\n",
                          session, id),
              NULL);
    ck_assert_int_eq(http_status(get), 200);
    ck_assert_uint_eq(http_event(get).len, 0);
    message_error(http_event(get), "5", -32000, "before a worker took the request");
    http_expect_end(get);
    ck_assert_int_eq(kill(pid, SIGUSR1), 0);
    if (row == 1) {
        http_expect_end(b); /* the connection goes on */
        http_post(b, session, ECHO("5"));
        message_result(http_expect(b, 200), "5");
    }
    http_post(a, session, ECHO("6"));
    message_result(http_expect(a, 200), "6");
}

FIXTURE(set_up, tear_down)
