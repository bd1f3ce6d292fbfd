#include "build_config.h"

#include "supervisor/bus.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/error.h"
#include "client.h"
#include "deadline.h"
#include "suite.h"

#define FDS_MAX 256 /* descriptors that are counted */

/* A program with a bus inside. Its worker answers each line with the bus's name. */
struct host {
    struct listen_config listen;
    char path[128], worker[200];
    char *argv[4];
    struct pool_config pool;
    struct config config;
    struct stdio_bus *bus;
};

static struct host hosts[2];
static struct log test_log;
static FILE *log_file;
static char folder[64];

static int open_descriptors(void)
{
    int fd, count = 0;

    for (fd = 0; fd < FDS_MAX; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static bool has_children(void)
{
    return waitpid(-1, NULL, WNOHANG) >= 0 || errno != ECHILD;
}

static bool log_has(const char *text)
{
    static char log[65536];
    size_t len;

    rewind(log_file);
    len = fread(log, 1, sizeof log - 1, log_file);
    log[len] = '\0';
    return strstr(log, text) != NULL;
}

static void set_up(void)
{
    harness_make_dir(folder, sizeof folder);
    log_file = tmpfile();
    ck_assert_ptr_nonnull(log_file);
    log_open(&test_log, fileno(log_file), LOG_LEVEL_DEBUG);
}

static void tear_down(void)
{
    log_close(&test_log);
    fclose(log_file);
    harness_remove_dir(folder);
}

static void create(struct host *host, const char *name, bool handle_signals)
{
    char problem[LISTEN_PROBLEM_MAX];
    struct bus_options options = {.config = &host->config, .log = &test_log};

    snprintf(host->path, sizeof host->path, "%s/%s", folder, name);
    snprintf(host->worker, sizeof host->worker,
             "while read -r line; do echo '{\"id\":1,\"sessionId\":\"s\",\"result\":\"%s\"}'; done",
             name);
    host->argv[0] = (char *)"sh";
    host->argv[1] = (char *)"-c";
    host->argv[2] = host->worker;
    host->pool = (struct pool_config){
        .id = (char *)"pool", .command = host->argv[0], .argv = host->argv, .instances = 1};
    host->config = (struct config){&host->pool, 1, .limits = LIMITS_DEFAULT};
    host->listen = (struct listen_config){.access = {.mode = ACCESS_MODE_DEFAULT}};
    ck_assert(listen_address_of_path(&host->listen.address, host->path, problem));
    options.listens = &host->listen;
    options.listen_count = 1;
    options.handle_signals = handle_signals;
    host->bus = bus_create(&options);
    ck_assert_ptr_nonnull(host->bus);
}

static void start(struct host *host, const char *name, bool handle_signals)
{
    create(host, name, handle_signals);
    ck_assert_int_eq(bus_start(host->bus), STDIO_BUS_OK);
}

static struct client *connect_to(const struct host *host)
{
    struct daemon daemon = {.port = 0};

    snprintf(daemon.socket_path, sizeof daemon.socket_path, "%s", host->path);
    return client_connect(&daemon);
}

/* Steps both buses until the client has a line. */
static void expect(struct client *client, const char *name)
{
    int64_t deadline = deadline_usual();
    struct span line;
    char wanted[100];

    while (!client_line_before(client, now_ms(), &line)) {
        ck_assert(!deadline_over(deadline) && !client->eof);
        for (size_t i = 0; i < 2; i++)
            ck_assert(hosts[i].bus == NULL || bus_step(hosts[i].bus, 5) == BUS_RUNNING);
    }
    snprintf(wanted, sizeof wanted, "{\"id\":1,\"sessionId\":\"s\",\"result\":\"%s\"}", name);
    ck_assert_uint_eq(line.len, strlen(wanted));
    ck_assert_mem_eq(line.data, wanted, line.len);
}

static void destroy(struct host *host)
{
    bus_destroy(host->bus);
    host->bus = NULL;
}

/* The same id and the same session: each bus has tables of its own. */
TEST(two_buses_live_in_one_process)
{
    struct client *clients[2];
    int before = open_descriptors(), round;

    start(&hosts[0], "first", true);
    start(&hosts[1], "second", false);
    clients[0] = connect_to(&hosts[0]);
    clients[1] = connect_to(&hosts[1]);
    for (round = 0; round < 3; round++) {
        client_request(clients[0], "1", "s", "echo", NULL);
        client_request(clients[1], "1", "s", "echo", NULL);
        expect(clients[1], "second");
        expect(clients[0], "first");
    }
    client_request(clients[1], "1", "s", "echo", NULL);
    destroy(&hosts[0]);
    expect(clients[1], "second");
    destroy(&hosts[1]);
    client_expect_eof(clients[0]);
    client_expect_eof(clients[1]);
    client_close(clients[0]);
    client_close(clients[1]);
    ck_assert(!has_children());
    ck_assert_int_eq(open_descriptors(), before);
}

TEST(bus_that_was_never_started_leaves_nothing)
{
    int before = open_descriptors();

    create(&hosts[0], "bus", true);
    destroy(&hosts[0]);
    bus_destroy(NULL);
    ck_assert_int_eq(open_descriptors(), before);
    ck_assert_int_ne(access(hosts[0].path, F_OK), 0);
}

TEST(bus_without_its_address_starts_no_worker)
{
    int before = open_descriptors(), fd;

    create(&hosts[0], "bus", true);
    fd = open(hosts[0].path, O_WRONLY | O_CREAT, 0600);
    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert_int_eq(bus_start(hosts[0].bus), STDIO_BUS_ERR);
    ck_assert(!has_children());
    destroy(&hosts[0]);
    ck_assert(log_has("it exists and is not a socket"));
    ck_assert_int_eq(open_descriptors(), before);
    ck_assert_int_eq(access(hosts[0].path, F_OK), 0);
}

static enum bus_outcome step_to_the_end(struct host *host)
{
    int64_t deadline = deadline_usual();
    enum bus_outcome outcome;

    do
        outcome = bus_step(host->bus, deadline_left_ms(deadline));
    while (outcome == BUS_RUNNING && !deadline_over(deadline));
    return outcome;
}

TEST(stopped_bus_stays_stopped)
{
    start(&hosts[0], "bus", true);
    bus_stop(hosts[0].bus);
    ck_assert_int_eq(step_to_the_end(&hosts[0]), BUS_DONE);
    ck_assert(!has_children());
    bus_stop(hosts[0].bus);
    ck_assert_int_eq(bus_step(hosts[0].bus, -1), BUS_DONE);
    destroy(&hosts[0]);
}

/* Without a step the bus does not notice the worker's exit: it kills the worker and leaves the wait
 * to the program. */
TEST(third_stop_does_not_wait_for_workers)
{
    int status;

    start(&hosts[0], "bus", true);
    bus_stop(hosts[0].bus);
    bus_stop(hosts[0].bus);
    ck_assert(!log_has("not waiting for it"));
    bus_stop(hosts[0].bus);
    ck_assert_int_eq(bus_step(hosts[0].bus, -1), BUS_DONE);
    ck_assert(log_has("ERROR a worker does not go although it was killed; not waiting for it"));
    destroy(&hosts[0]);
    if (waitpid(-1, &status, 0) < 0)
        ck_assert_int_eq(errno, ECHILD);
    else
        ck_assert(WIFSIGNALED(status)); /* SIGTERM came before */
}

FIXTURE(set_up, tear_down)
