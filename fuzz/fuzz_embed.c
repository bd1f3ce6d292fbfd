/* libstdio_bus: random calls in random states, against a model. The workers are embedded ones, so
 * that no process is started. Each request that was taken is answered once at most, and once the
 * bus has stopped exactly once; the statistics add up; no call in a wrong state does anything. */
#include "build_config.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common.h"
#include "embed/stdio_bus_embed.h"

#define WORKERS_MAX 6
#define REQUESTS_MAX 400
#define INPUT_MAX 8192
#define CALLS_MAX 2000

/* No process: each client of an exclusive pool would get one. */
static const char config[] =
    "{\"pools\":[{\"id\":\"none\",\"command\":\"cat\",\"clients\":\"exclusive\",\"spare\":0,"
    "\"instances\":1}],\"limits\":{\"max_output_queue\":4096,\"max_pending_requests\":64,"
    "\"max_sessions\":8,\"drain_timeout_sec\":0}}";

struct end { /* the program's end of an embedded worker */
    int fd;  /* -1: closed */
    int id;
    char input[INPUT_MAX];
    size_t len;
};

static struct {
    struct tape *tape;
    stdio_bus_t *bus;
    stdio_bus_state_t state;
    struct end ends[WORKERS_MAX];
    unsigned char taken[REQUESTS_MAX]; /* requests: taken by the bus, */
    unsigned char answered[REQUESTS_MAX];
    int next_id;
    uint64_t in, out, bytes_in, bytes_out;
    bool inside;
} world;

/* --- callbacks --- */

/* The number after "id": at the beginning of a message of this program's; -1: there is none. */
static int id_of(const char *msg)
{
    const char *at = strstr(msg, "\"id\":");

    return at != NULL ? (int)strtol(at + 5, NULL, 10) : -1;
}

static void on_message(stdio_bus_t *bus, const char *msg, size_t len, void *user_data)
{
    int id = id_of(msg);

    (void)user_data;
    EXPECT(bus == world.bus && !world.inside, "a callback inside another one");
    EXPECT(strlen(msg) == len, "not terminated");
    world.inside = true;
    world.out++;
    world.bytes_out += len;
    if (strstr(msg, "\"method\"") == NULL && id >= 0 && id < REQUESTS_MAX && world.taken[id]) {
        EXPECT(strstr(msg, "\"stray\"") != NULL || !world.answered[id], "%d answered twice", id);
        world.answered[id] = 1;
    }
    EXPECT(stdio_bus_step(bus, 0) == STDIO_BUS_ERR_STATE, "a step inside a callback");
    stdio_bus_destroy(bus);
    world.inside = false;
}

static void on_error(stdio_bus_t *bus, int code, const char *message, void *user_data)
{
    (void)bus;
    (void)user_data;
    EXPECT(code < 0 && message != NULL, "an error without a code");
}

static void on_worker(stdio_bus_t *bus, int worker_id, const char *event, void *user_data)
{
    (void)bus;
    (void)user_data;
    EXPECT(worker_id > 0 && event[0] != '\0', "an event of no worker");
}

static void on_log(stdio_bus_t *bus, int level, const char *message, void *user_data)
{
    (void)user_data;
    EXPECT(level >= 0 && level <= 3 && strchr(message, '\n') == NULL, "a line of the log");
    if (world.bus != NULL)
        EXPECT(stdio_bus_ingest(bus, "{}", 2) == STDIO_BUS_ERR_STATE, "ingest inside the log");
}

/* --- calls --- */

static bool is_running(void)
{
    return world.state == STDIO_BUS_STATE_RUNNING;
}

static void create(void)
{
    const stdio_bus_options_t options = {.config_json = config,
                                         .on_message = on_message,
                                         .on_error = on_error,
                                         .on_worker = on_worker,
                                         .on_log = on_log};

    world.bus = stdio_bus_create(&options);
    EXPECT(world.bus != NULL, "no bus");
    world.state = STDIO_BUS_STATE_CREATED;
}

static void start(void)
{
    int wanted = world.state == STDIO_BUS_STATE_CREATED ? STDIO_BUS_OK : STDIO_BUS_ERR_STATE;

    EXPECT(stdio_bus_start(world.bus) == wanted, "start in state %d", (int)world.state);
    if (wanted == STDIO_BUS_OK)
        world.state = STDIO_BUS_STATE_RUNNING;
}

static void step_for(int timeout_ms)
{
    bool may = is_running() || world.state == STDIO_BUS_STATE_STOPPING;
    int count = stdio_bus_step(world.bus, timeout_ms);

    EXPECT(may ? count >= 0 : count == STDIO_BUS_ERR_STATE, "step in state %d", (int)world.state);
    if (may && stdio_bus_get_state(world.bus) == STDIO_BUS_STATE_STOPPED) {
        EXPECT(world.state == STDIO_BUS_STATE_STOPPING, "stopped by itself");
        world.state = STDIO_BUS_STATE_STOPPED;
    }
}

static void step(void)
{
    step_for(0);
}

/* After the stop each request that was taken has been answered. */
static void check_answered(void)
{
    for (int id = 0; id < world.next_id; id++)
        EXPECT(!world.taken[id] || world.answered[id], "request %d got no answer", id);
}

static void stop(void)
{
    EXPECT(stdio_bus_stop(world.bus, (int)(tape_byte(world.tape) % 2)) == STDIO_BUS_OK, "stop");
    if (is_running())
        world.state = STDIO_BUS_STATE_STOPPING;
}

static void close_end(struct end *end)
{
    if (end->fd >= 0)
        close(end->fd);
    end->fd = -1;
}

static void run_out(void)
{
    struct pollfd wanted = {stdio_bus_get_poll_fd(world.bus), POLLIN, 0};
    bool has_fd = wanted.fd >= 0;

    for (int i = 0; i < WORKERS_MAX; i++)
        close_end(&world.ends[i]);
    for (int rounds = 0; world.state == STDIO_BUS_STATE_STOPPING; rounds++) {
        EXPECT(rounds < 1000 && (!has_fd || poll(&wanted, 1, 5000) == 1),
               "the stop does not come to its end");
        step_for(has_fd ? 0 : 100);
    }
}

static void ingest(void)
{
    static const char *const kinds[] = {
        "{\"id\":%d,\"pool\":\"inside\"}",
        "{\"id\":%d,\"pool\":\"inside\",\"sessionId\":\"s%d\"}",
        "{\"method\":\"n\",\"pool\":\"inside\"}",
        "{\"id\":%d,\"pool\":\"no\"}",
        "{\"id\":95%d,\"result\":1}",
        "[%d]",
        "{\"id\":%d,\"pool\":\"inside\",\"x\":\"%0900d\"}",
    };
    unsigned kind = tape_byte(world.tape) % (sizeof kinds / sizeof kinds[0]);
    char text[1200];
    int id = world.next_id, len, status;
    bool asks = kind < 2 || kind == 6;

    if (id >= REQUESTS_MAX)
        return;
/* The formats are those of the table. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    len = snprintf(text, sizeof text, kinds[kind], id, (int)(tape_byte(world.tape) % 12));
#pragma GCC diagnostic pop
    status = stdio_bus_ingest(world.bus, text, (size_t)len);
    EXPECT(is_running() ? status != STDIO_BUS_ERR_STATE : status == STDIO_BUS_ERR_STATE,
           "%d in state %d", status, (int)world.state);
    EXPECT(kind != 5 || status != STDIO_BUS_OK, "an array was taken");
    EXPECT(kind != 3 || status != STDIO_BUS_OK, "a pool that is not there has taken a message");
    if (status != STDIO_BUS_OK)
        return;
    world.in++;
    world.bytes_in += (uint64_t)len;
    if (!asks)
        return;
    world.taken[id] = 1;
    world.next_id++;
}

/* --- workers --- */

static void add_worker(void)
{
    struct end *end = &world.ends[tape_byte(world.tape) % WORKERS_MAX];
    int fds[2], id;

    if (end->fd >= 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0)
        return;
    id = stdio_bus_register_embedded_worker(world.bus, fds[0], fds[0], "inside");
    EXPECT(is_running() == (id > 0), "%d in state %d", id, (int)world.state);
    if (id < 0) {
        close(fds[0]);
        close(fds[1]);
        return;
    }
    *end = (struct end){.fd = fds[1], .id = id};
    (void)fcntl(end->fd, F_SETFL, O_NONBLOCK);
}

static void drop_worker(void)
{
    struct end *end = &world.ends[tape_byte(world.tape) % WORKERS_MAX];
    int status;

    if (end->id == 0)
        return;
    status = stdio_bus_unregister_embedded_worker(world.bus, end->id);
    EXPECT(status == (is_running() || world.state == STDIO_BUS_STATE_STOPPING
                          ? STDIO_BUS_OK
                          : STDIO_BUS_ERR_STATE),
           "%d in state %d", status, (int)world.state);
    if (status == STDIO_BUS_OK)
        close_end(end);
}

static void say(const struct end *end, const char *text)
{
    size_t len = strlen(text);

    /* A full socket cuts a line; the rest of the next one is malformed, as a worker may be. */
    if (end->fd >= 0 && send(end->fd, text, len, MSG_NOSIGNAL) < 0)
        return;
}

/* Reads what the bus has written, and answers some of it. */
static void answer(void)
{
    struct end *end = &world.ends[tape_byte(world.tape) % WORKERS_MAX];
    char text[64], *newline;
    ssize_t got;

    if (end->fd < 0)
        return;
    got = read(end->fd, end->input + end->len, sizeof end->input - 1 - end->len);
    if (got > 0)
        end->len += (size_t)got;
    end->input[end->len] = '\0';
    while ((newline = strchr(end->input, '\n')) != NULL) {
        int id;

        *newline = '\0';
        id = id_of(end->input);
        end->len -= (size_t)(newline + 1 - end->input);
        memmove(end->input, newline + 1, end->len + 1);
        snprintf(text, sizeof text, "{\"id\":%d,\"result\":1}\n", id);
        if (id >= 0 && id < REQUESTS_MAX && tape_byte(world.tape) % 4 != 0)
            say(end, text);
    }
    if (end->len == sizeof end->input - 1)
        end->len = 0;
}

static void say_more(void)
{
    static const char *const lines[] = {
        "{\"method\":\"note\"}\n",
        "{\"id\":900,\"method\":\"ask\"}\n",
        "{\"id\":901,\"result\":\"stray\"}\n",
        "{\"method\":\"n\",\"sessionId\":\"unknown\"}\n",
        "garbage\n",
    };
    const struct end *end = &world.ends[tape_byte(world.tape) % WORKERS_MAX];

    say(end, lines[tape_byte(world.tape) % (sizeof lines / sizeof lines[0])]);
}

static void end_worker(void)
{
    close_end(&world.ends[tape_byte(world.tape) % WORKERS_MAX]);
}

/* --- a run --- */

static void check_state(void)
{
    stdio_bus_stats_t stats;

    EXPECT(stdio_bus_get_state(world.bus) == world.state, "state %d",
           (int)stdio_bus_get_state(world.bus));
    stdio_bus_get_stats(world.bus, &stats);
    EXPECT(stats.messages_in == world.in && stats.bytes_in == world.bytes_in, "messages in");
    EXPECT(stats.messages_out >= world.out && stats.bytes_out >= world.bytes_out, "messages out");
    EXPECT(stdio_bus_pending_count(world.bus) <= 64, "pending");
    EXPECT(stdio_bus_session_count(world.bus) <= 8, "sessions");
    EXPECT(world.state != STDIO_BUS_STATE_STOPPED || stdio_bus_worker_count(world.bus) == 0,
           "workers of a bus that has stopped");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const calls[])(void) = {start,  step,   step,       step,        ingest,
                                          ingest, ingest, add_worker, drop_worker, answer,
                                          answer, answer, say_more,   end_worker};
    struct tape tape = {data, data + size};

    memset(&world, 0, sizeof world);
    world.tape = &tape;
    for (int i = 0; i < WORKERS_MAX; i++)
        world.ends[i].fd = -1;
    create();
    if (tape_byte(&tape) % 8 != 0)
        start();
    for (int count = 0; !tape_over(&tape) && count < CALLS_MAX; count++) {
        unsigned call = tape_byte(&tape);

        if (call == 255)
            stop();
        else
            calls[call % (sizeof calls / sizeof calls[0])]();
        check_state();
    }
    if (tape.end > data && tape.end[-1] % 4 != 0) {
        stop();
        run_out();
        check_state();
        if (world.state == STDIO_BUS_STATE_STOPPED)
            check_answered();
    }
    stdio_bus_destroy(world.bus);
    for (int i = 0; i < WORKERS_MAX; i++)
        close_end(&world.ends[i]);
    return 0;
}
