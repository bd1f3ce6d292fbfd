#include "build_config.h"

#include "share/greeting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "bus/state.h"
#include "process/pool.h"
#include "share/identity.h"
#include "supervisor/bus.h"
#include "supervisor/halt.h"
#include "supervisor/replay.h"
#include "supervisor/workers.h"
#include "json/string.h"

#define DIFFERENCE_MAX 1024
#define FAILURE ",\"failure\":"
#define FAILURE_MAX (sizeof FAILURE + (size_t)6 * POOL_FAILURE_MAX + 8)
#define ONE_CLIENT_MAX 128
#define PID_MAX 24 /* bytes of a number and its comma */

/* --- the status --- */

static size_t count_workers(const struct stdio_bus *bus)
{
    const struct worker *worker = NULL;
    size_t count = 0;

    while ((worker = workers_next(bus, worker)) != NULL)
        count += worker->child.pid > 0;
    return count;
}

/* Process groups: a worker that is a script may run its server as a child. */
static size_t write_workers(char *to, size_t size, const struct stdio_bus *bus)
{
    const struct worker *worker = NULL;
    size_t len = 0;

    while ((worker = workers_next(bus, worker)) != NULL) {
        long pid = (long)worker->child.pid;
        int n = pid > 0 ? snprintf(to + len, size - len, "%s%ld", len > 0 ? "," : "", pid) : 0;

        if (n > 0 && (size_t)n < size - len)
            len += (size_t)n;
    }
    to[len] = '\0';
    return len;
}

/* Why the server does not start, as a member; "" if it does. */
static void write_failure(char *to, size_t size, const struct stdio_bus *bus)
{
    struct json_output out = {.to = to, .size = size};
    struct list_node *node, *following;

    to[0] = '\0';
    list_each(&bus->pools, node, following) {
        struct pool *pool = list_entry(node, struct pool, link);
        const struct start_failure *failure = &pool->group.failure;

        if (out.len > 0 || failure->text == NULL || !pool_is_failing(pool))
            continue;
        json_output_add(&out, slice_of_text(FAILURE));
        json_output_string(&out, slice_of_text(failure->text));
        json_output_add(&out, slice_of("", 1));
    }
}

/* What it keeps for one client, as a member; "" if that was not seen. */
static void write_one_client(char *to, size_t size, const struct one_client_sign *sign)
{
    to[0] = '\0';
    if (sign != NULL)
        snprintf(to, size, ",\"one_client\":\"%s%s%s%s\"", sign->state,
                 sign->tool != NULL ? " (tool " : " (its own word",
                 sign->tool != NULL ? sign->tool : "", ")");
}

/* --- its state --- */

/* What the server is doing: that of the worker that says most. */
struct state {
    const char *name;
    int64_t since_ms; /* of the event loop's time; 0: since the start of the daemon */
    int rank;
};

static struct state state_of(const struct worker *worker)
{
    struct state state = {.since_ms = worker->stream.endpoint.since_ms};

    switch (worker->state) {
    case WORKER_RUNNING:
        state.name = replay_runs(worker) ? "starting" : "awake";
        state.rank = replay_runs(worker) ? 4 : 5;
        break;
    case WORKER_STARTING:
        state.name = "starting";
        state.rank = 4;
        break;
    case WORKER_STOPPING:
        state.name = "ending";
        state.rank = 3;
        break;
    case WORKER_STOPPED:
    case WORKER_FAILED:
        state.name = worker->starts > 0 ? workers_state(worker) : "not started";
        state.rank = worker->starts > 0 ? 2 : 1;
        break;
    }
    return state;
}

/* Of workers that say the same: the one that has been so for longest while it runs, or else the one
 * that has changed last. */
static struct state find_state(const struct stdio_bus *bus)
{
    const struct worker *worker = NULL;
    struct state found = {.name = "not started"};

    while ((worker = workers_next(bus, worker)) != NULL) {
        const struct state state = state_of(worker);
        bool later = state.since_ms > found.since_ms;

        if (state.rank > found.rank || (state.rank == found.rank && later == (state.rank == 2)))
            found = state;
    }
    return found;
}

/* Requests of clients that the server has answered. */
static uint64_t count_calls(const struct stdio_bus *bus)
{
    struct list_node *node, *following;
    uint64_t count = 0;

    list_each(&bus->pools, node, following) {
        const struct pool *pool = list_entry(node, struct pool, link);

        count += pool->group.asked.outcomes[OUTCOME_RESULT] +
                 pool->group.asked.outcomes[OUTCOME_ERROR] +
                 pool->stateless.asked.outcomes[OUTCOME_RESULT] +
                 pool->stateless.asked.outcomes[OUTCOME_ERROR];
    }
    return count;
}

static char *write_status(const struct greeting *greeting, const struct stdio_bus *bus)
{
    char *identity = identity_hide(greeting->identity), *line = NULL, failure[FAILURE_MAX];
    char one_client[ONE_CLIENT_MAX];
    size_t workers = (count_workers(bus) + 1) * PID_MAX;
    size_t size = identity != NULL ? strlen(identity) + workers + FAILURE_MAX + ONE_CLIENT_MAX + 512
                                   : 0;
    const struct state state = find_state(bus);
    int64_t now_ms = stdio_bus_event_loop_now_ms(bus->loop);
    int n;

    if (identity != NULL)
        line = malloc(size);
    if (line != NULL) {
        n = snprintf(line, size,
                     "{\"stdio_bus\":\"shares\",\"version\":\"%s\",\"pid\":%ld,\"seconds\":%lld,"
                     "\"clients\":%zu,\"state\":\"%s\",\"state_ms\":%lld,\"calls\":%llu,"
                     "\"identity\":\"%s\",\"workers\":[",
                     PACKAGE_VERSION, (long)getpid(),
                     (long long)(clock_now_ms() - greeting->since_ms) / 1000,
                     bus->router.client_count, state.name,
                     (long long)(now_ms - (state.since_ms > 0 ? state.since_ms : bus->started_ms)),
                     (unsigned long long)count_calls(bus), identity);
        n += (int)write_workers(line + n, workers, bus);
        write_failure(failure, sizeof failure, bus);
        write_one_client(one_client, sizeof one_client, greeting->one_client.sign);
        snprintf(line + n, size - (size_t)n, "]%s%s%s}\n", failure, one_client,
                 greeting->stops || bus->phase >= BUS_PHASE_DRAINING ? ",\"stopping\":true" : "");
    }
    free(identity);
    return line;
}

/* --- the client that joins --- */

static char *write_difference(const struct greeting *greeting, struct slice wanted)
{
    char names[DIFFERENCE_MAX];
    size_t size = sizeof GREETING_DIFFERS + sizeof names + sizeof GREETING_DIFFERS_END;
    char *line = malloc(size);

    identity_difference(names, sizeof names, slice_of_text(greeting->identity), wanted);
    if (line != NULL)
        snprintf(line, size, GREETING_DIFFERS "%s" GREETING_DIFFERS_END "\n", names);
    return line;
}

static char *copy_of(const char *line)
{
    size_t size = strlen(line) + 1;
    char *copy = malloc(size);

    return copy != NULL ? memcpy(copy, line, size) : NULL;
}

/* The identity in a line that joins. */
static bool read_join(struct slice line, struct slice *identity)
{
    size_t begin = strlen(GREETING_JOIN), end = strlen(GREETING_JOIN_END);

    if (line.len < begin + end || memcmp(line.data, GREETING_JOIN, begin) != 0)
        return false;
    *identity = slice_of(line.data + begin, line.len - begin - end);
    return slice_is(slice_of(line.data + line.len - end, end), GREETING_JOIN_END) &&
           memchr(identity->data, '"', identity->len) == NULL;
}

/* --- the user that stops or restarts it --- */

/* Whether clients that are connected get the next process. */
static bool has_lasting_clients(const struct stdio_bus *bus)
{
    const struct pool *pool = list_entry(bus->pools.head.next, struct pool, link);

    return bus->router.client_count > 0 && pool->group.mode.on_exit == EXIT_REPLAYS;
}

static void stop(struct greeting *greeting, struct stdio_bus *bus)
{
    if (greeting->stops)
        return;
    if (has_lasting_clients(bus)) {
        (void)halt_processes(bus, HALT_REST);
        return;
    }
    log_info(bus->log, "", "stop, asked for by the user");
    greeting->stops = true;
    if (bus->router.client_count > 0) /* else no answer is waited for */
        (void)halt_processes(bus, HALT_END);
}

static void forget(struct greeting *greeting, struct stdio_bus *bus)
{
    (void)greeting;
    log_info(bus->log, "", "what the server has answered is forgotten, asked for by the user");
    pool_forget(list_entry(bus->pools.head.next, struct pool, link));
}

static void restart(struct greeting *greeting, struct stdio_bus *bus)
{
    if (!greeting->stops)
        (void)halt_processes(bus, HALT_RESTART);
}

static const struct {
    const char *line;
    /* NULL: only the status is asked for. */
    void (*act)(struct greeting *greeting, struct stdio_bus *bus);
} cares[] = {
    {GREETING_STATUS, NULL},
    {GREETING_STOP, stop},
    {GREETING_RESTART, restart},
    {GREETING_FORGET, forget},
};

/* --clients auto: until it is known whether clients can share the server, one uses the process of
 * those that do. */
static const char *choose_pool(const struct greeting *greeting, const struct stdio_bus *bus)
{
    const struct one_client *one_client = &greeting->one_client;
    bool is_first = bus->router.client_count == 0;

    if (one_client->sign != NULL || (!one_client->is_known && !is_first))
        return greeting->alone;
    return NULL;
}

/* An unknown line is of another version, or of somebody else's program. */
static char *reply_to(struct greeting *greeting, struct stdio_bus *bus, struct slice line,
                      bool *admits)
{
    struct slice wanted;

    for (size_t i = 0; i < sizeof cares / sizeof cares[0]; i++) {
        if (slice_is(line, cares[i].line)) {
            char *status = write_status(greeting, bus);

            if (cares[i].act != NULL)
                cares[i].act(greeting, bus);
            return status;
        }
    }
    if (!read_join(line, &wanted))
        wanted = slice_of("", 0);
    *admits = identity_fits(wanted, slice_of_text(greeting->identity));
    return *admits ? copy_of(GREETING_JOINED "\n") : write_difference(greeting, wanted);
}

static struct slice greet(void *user_data, struct stdio_bus *bus, struct slice line, bool *admits)
{
    struct greeting *greeting = user_data;

    if (line.len > 0 && line.data[line.len - 1] == '\n')
        line.len--;
    free(greeting->reply);
    greeting->reply = reply_to(greeting, bus, line, admits);
    *admits = *admits && greeting->reply != NULL; /* out of memory: the client tries again */
    greeting->greeter.pool = choose_pool(greeting, bus);
    return slice_of(greeting->reply, greeting->reply != NULL ? strlen(greeting->reply) : 0);
}

void greeting_init(struct greeting *greeting, const char *identity)
{
    *greeting = (struct greeting){
        .greeter = {.greet = greet, .line_max = IDENTITY_MAX},
        .identity = identity,
        .since_ms = clock_now_ms(),
        .one_client = {.edition = UINT64_MAX}, /* nothing was looked at */
    };
    greeting->greeter.user_data = greeting;
}

void greeting_look(const struct greeting *greeting, struct stdio_bus *bus)
{
    if (greeting->stops && bus->phase < BUS_PHASE_DRAINING && !halt_is_awaited(bus))
        bus_stop(bus);
}

void greeting_free(struct greeting *greeting)
{
    free(greeting->reply);
    greeting->reply = NULL;
}
