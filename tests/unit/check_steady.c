/* In steady traffic a message costs no allocation, no change of the event loop's interest, no
 * reading of the clock, no timer and no log line. A whole bus runs in this process; the linker puts
 * counters before the functions it calls. */
#include "build_config.h"

#include "base/clock.h"
#include "base/error.h"
#include "client.h"
#include "deadline.h"
#include "event/event_loop.h"
#include "frames.h"
#include "suite.h"
#include "supervisor/bus.h"
#include "turns.h"

enum cost { ALLOCATIONS, INTERESTS, CLOCKS, TIMERS, LOG_LINES, COSTS };

static unsigned counts[COSTS];
static bool in_bus; /* calls of the clients are not counted */

static void count(enum cost cost)
{
    counts[cost] += in_bus;
}

/* The linker turns calls of NAME into calls of __wrap_NAME. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t number, size_t size);
void *__real_realloc(void *memory, size_t size);
int64_t __real_clock_now_ms(void);
int __real_stdio_bus_event_loop_modify(struct stdio_bus_event_loop *, int, unsigned);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t number, size_t size);
void *__wrap_realloc(void *memory, size_t size);
int64_t __wrap_clock_now_ms(void);
void __real_timers_start(struct timers *timers, struct timer *timer, int64_t deadline_ms);
void __wrap_timers_start(struct timers *timers, struct timer *timer, int64_t deadline_ms);
int __wrap_stdio_bus_event_loop_modify(struct stdio_bus_event_loop *, int, unsigned);
void __wrap_log_write(struct log *log, enum log_level level, const char *context,
                      const char *format, ...) __attribute__((format(printf, 4, 5)));

void *__wrap_malloc(size_t size)
{
    count(ALLOCATIONS);
    return __real_malloc(size);
}

void *__wrap_calloc(size_t number, size_t size)
{
    count(ALLOCATIONS);
    return __real_calloc(number, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    count(ALLOCATIONS);
    return __real_realloc(memory, size);
}

int64_t __wrap_clock_now_ms(void)
{
    count(CLOCKS);
    return __real_clock_now_ms();
}

void __wrap_timers_start(struct timers *timers, struct timer *timer, int64_t deadline_ms)
{
    count(TIMERS);
    __real_timers_start(timers, timer, deadline_ms);
}

int __wrap_stdio_bus_event_loop_modify(struct stdio_bus_event_loop *loop, int fd, unsigned events)
{
    count(INTERESTS);
    return __real_stdio_bus_event_loop_modify(loop, fd, events);
}

void __wrap_log_write(struct log *log, enum log_level level, const char *context,
                      const char *format, ...)
{
    (void)log, (void)level, (void)context, (void)format;
    count(LOG_LINES);
}

#define CLIENTS_MAX 16
#define WARM_UP 20
#define ROUNDS 200

static char folder[64], path[128];
static struct log test_log;
static struct stdio_bus *bus;
static struct client *clients[CLIENTS_MAX];

static void step(void)
{
    enum bus_outcome outcome;

    in_bus = true;
    outcome = bus_step(bus, 100);
    in_bus = false;
    ck_assert_int_eq(outcome, BUS_RUNNING);
}

static void stop(void)
{
    bus_destroy(bus);
    log_close(&test_log);
    harness_remove_dir(folder);
}

static const struct traffic {
    const char *name;
    unsigned clients, window, workers;
    size_t size; /* of a payload */
    bool sessions;
    bool fits;   /* into pipes and sockets: no queue is needed */
    bool framed; /* by Content-Length, on both sides */
} traffics[] = {
    {"one at a time", 1, 1, 1, 64, false, true, false},
    {"64 in flight", 1, 64, 1, 64, false, true, false},
    {"16 clients with sessions", 16, 16, 2, 64, true, true, false},
    {"8 in flight of 4 KiB", 1, 8, 1, 4096, false, true, false},
    {"4 in flight of 64 KiB", 1, 4, 1, 65536, false, false, false},
    {"900 KiB", 1, 1, 1, 921600, false, false, false},
    {"64 framed in flight", 1, 64, 1, 64, false, true, true},
    {"16 clients with sessions, framed", 16, 16, 2, 64, true, true, true},
};

static void start(const struct traffic *traffic)
{
    static char *argv[5];
    static struct pool_config pool;
    static struct config config;
    struct bus_options options = {.config = &config, .log = &test_log};
    static struct listen_config listen;
    char problem[LISTEN_PROBLEM_MAX];
    char **end = argv;
    int started;

    harness_make_dir(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/bus", folder);
    listen = (struct listen_config){.access = {.mode = ACCESS_MODE_DEFAULT}};
    ck_assert(listen_address_of_path(&listen.address, path, problem));
    options.listens = &listen;
    options.listen_count = 1;
    *end++ = getenv("TEST_WORKER");
    ck_assert_ptr_nonnull(end[-1]);
    pool = (struct pool_config){
        .id = (char *)"pool", .command = argv[0], .argv = argv, .instances = traffic->workers};
    if (traffic->framed) {
        listen.framing = pool.framing = &framing_content_length;
        *end++ = (char *)"--framing";
        *end++ = (char *)"content-length";
    }
    *end = NULL;
    config = (struct config){&pool, 1, .limits = LIMITS_DEFAULT};
    log_open(&test_log, 2, LOG_LEVEL_WARN); /* a summary that is due needs the clock */
    in_bus = true;
    bus = bus_create(&options);
    started = bus != NULL ? bus_start(bus) : STDIO_BUS_ERR;
    in_bus = false;
    ck_assert_int_eq(started, STDIO_BUS_OK);
}

static void connect_clients(const struct traffic *traffic)
{
    struct daemon daemon = {.port = 0};

    snprintf(daemon.socket_path, sizeof daemon.socket_path, "%s", path);
    for (unsigned i = 0; i < traffic->clients; i++)
        clients[i] = client_connect(&daemon);
}

/* The requests of one client for one round. */
static void compose(const struct traffic *traffic, unsigned client, struct text *text)
{
    struct text body = {0};

    for (unsigned id = 0; id < traffic->window && traffic->framed; id++) {
        body.len = 0;
        text_printf(&body, "{\"id\":%u,\"sessionId\":\"s%u\",\"method\":\"plain\"}",
                    client * 100 + id, client);
        frames_add(text, body.data, body.len);
    }
    text_free(&body);
    for (unsigned id = 0; id < traffic->window && !traffic->framed; id++) {
        text_printf(text, "{\"jsonrpc\":\"2.0\",\"id\":%u,", client * 100 + id);
        if (traffic->sessions)
            text_printf(text, "\"sessionId\":\"s%u\",", client);
        text_printf(text, "\"method\":\"plain\",\"params\":\"");
        text_fill(text, 'x', traffic->size);
        text_printf(text, "\"}\n");
    }
}

/* Sends requests while there is room, and takes the answers that have come. True: all came. */
static bool turn(struct client *client, const struct text *requests, size_t *sent,
                 unsigned *missing)
{
    struct span line;

    *sent += client_offer(client, requests->data + *sent, requests->len - *sent);
    while (*missing > 0 && client_line_before(client, 0, &line))
        --*missing;
    return *missing == 0;
}

static void exchange(const struct traffic *traffic, const struct text *requests)
{
    size_t sent[CLIENTS_MAX] = {0};
    unsigned missing[CLIENTS_MAX], i, done;
    int64_t deadline = deadline_usual();

    for (i = 0; i < traffic->clients; i++)
        missing[i] = traffic->window * (traffic->framed ? 2 : 1); /* lines; two in a head */
    for (;;) {
        for (i = 0, done = 0; i < traffic->clients; i++)
            done += turn(clients[i], &requests[i], &sent[i], &missing[i]);
        if (done == traffic->clients)
            return;
        ck_assert(!deadline_over(deadline));
        step();
    }
}

TEST_ROWS(message_in_steady_traffic_costs_nothing, COUNT(traffics))
{
    const struct traffic *traffic = &traffics[row];
    struct text requests[CLIENTS_MAX] = {{0}};
    unsigned i, rounds = (unsigned)turns(ROUNDS);
    unsigned messages = 2 * ROUNDS * traffic->clients * traffic->window; /* of all rounds */

    start(traffic);
    ck_assert_uint_gt(counts[ALLOCATIONS], 0);
    ck_assert_uint_gt(counts[CLOCKS], 0);
    connect_clients(traffic);
    for (i = 0; i < traffic->clients; i++)
        compose(traffic, i, &requests[i]);
    for (i = 0; i < WARM_UP; i++)
        exchange(traffic, requests);
    ck_assert_uint_gt(counts[LOG_LINES], 0);
    memset(counts, 0, sizeof counts);
    for (i = 0; i < rounds; i++)
        exchange(traffic, requests);
    ck_assert_msg(counts[LOG_LINES] == 0, "%s: %u lines", traffic->name, counts[LOG_LINES]);
    ck_assert_msg(counts[CLOCKS] == 0, "%s: %u clocks", traffic->name, counts[CLOCKS]);
    ck_assert_msg(counts[TIMERS] == 0 || !traffic->fits, "%s: %u timers", traffic->name,
                  counts[TIMERS]);
    /* Reads are cut by chance: once in a while one buffer more is needed. */
    ck_assert_msg(counts[ALLOCATIONS] <= messages / (traffic->fits ? 1000 : 50),
                  "%s: %u allocations for %u messages", traffic->name, counts[ALLOCATIONS],
                  messages);
    ck_assert_msg(counts[INTERESTS] == 0 || !traffic->fits, "%s: %u changes of interest",
                  traffic->name, counts[INTERESTS]);
    for (i = 0; i < traffic->clients; i++) {
        text_free(&requests[i]);
        client_close(clients[i]);
    }
    stop();
}
