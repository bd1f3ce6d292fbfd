/* The control socket of a whole bus, with a client that has a request in flight: whatever it is
 * sent, in any pieces, each line that it writes is a reply or an event, each request with an id has
 * one reply, and the bus lives on and stops.
 *
 * The input is what is written to the socket, but for some control characters, which are no JSON:
 * 1 to 4 choose the connection for what follows, 5 ends it, 6 lets time pass, 7 ends a process, and
 * 8 lets the bus run first. */
#include "build_config.h"

#include "supervisor/bus.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bus/gate.h"
#include "bus/listeners.h"
#include "bus_world.h"
#include "control/clients.h"
#include "control/request.h"
#include "control/service.h"
#include "process/worker.h"
#include "reference_json.h"
#include "supervisor/pools.h"
#include "supervisor/workers.h"

#define PEOPLE 4
#define BYTES_MAX 20480 /* more than the longest line */
#define ROUNDS_MAX 20000

struct person {
    int fd; /* -1: not connected */
    char sent[BYTES_MAX], got[BYTES_MAX * 4];
    size_t sent_len, got_len;
    bool overflows; /* more came than is kept */
    bool ended;     /* by the bus */
};

struct run {
    struct bus_listener control, clients;
    struct listen_config listen;
    struct config config;
    struct pool_config pools[2];
    struct log log;
    struct stdio_bus *bus;
    enum bus_outcome outcome;
    struct person people[PEOPLE];
    int client; /* the far end of the client */
};

static void step(struct run *run)
{
    if (run->outcome == BUS_RUNNING)
        run->outcome = bus_step(run->bus, 1000);
}

/* --- what the bus writes --- */

static bool starts(const char *line, size_t len, const char *with)
{
    return len >= strlen(with) && memcmp(line, with, strlen(with)) == 0;
}

static void check_line(const char *line, size_t len, size_t *replies)
{
    bool is_reply = starts(line, len, "{\"jsonrpc\":\"2.0\",\"id\":");

    EXPECT(reference_document(line, len, 64), "no JSON: %.*s", (int)len, line);
    EXPECT(is_reply || starts(line, len, "{\"jsonrpc\":\"2.0\",\"method\":\""), "neither: %.*s",
           (int)len, line);
    if (is_reply && !starts(line, len, "{\"jsonrpc\":\"2.0\",\"id\":null"))
        (*replies)++;
}

/* The lines that a strict reader finds requests with an id in. Reading ends with the first line
 * that is none, and with one that is too long. */
static size_t count_requests(const struct person *person)
{
    struct reference_result result;
    size_t at = 0, count = 0;

    for (;;) {
        reference_line(&result, person->sent + at, person->sent_len - at);
        if (result.status != SCAN_MESSAGE && result.status != SCAN_BLANK)
            return count;
        if (result.position > CONTROL_LINE_MAX)
            return count;
        count += result.status == SCAN_MESSAGE &&
                 (result.fields.id.type == SCAN_STRING || result.fields.id.type == SCAN_NUMBER);
        at += result.position;
    }
}

static void check_person(const struct person *person, bool is_whole)
{
    const char *line = person->got, *end, *last = person->got + person->got_len;
    size_t replies = 0, requests = count_requests(person);

    for (; (end = memchr(line, '\n', (size_t)(last - line))) != NULL; line = end + 1)
        check_line(line, (size_t)(end - line), &replies);
    EXPECT(replies <= requests, "%zu replies to %zu requests", replies, requests);
    if (is_whole && !person->overflows && !person->ended)
        EXPECT(replies == requests, "%zu replies to %zu requests", replies, requests);
}

static size_t read_person(struct person *person)
{
    char bytes[8192];
    ssize_t n;
    size_t room = sizeof person->got - person->got_len, len;

    if (person->fd < 0 || person->ended)
        return 0;
    n = read(person->fd, bytes, sizeof bytes);
    person->ended = n == 0 || (n < 0 && errno != EAGAIN);
    len = n > 0 ? (size_t)n : 0;
    person->overflows |= len > room;
    memcpy(person->got + person->got_len, bytes, len < room ? len : room);
    person->got_len += len < room ? len : room;
    return len;
}

static size_t read_all(struct run *run)
{
    size_t moved = 0;
    char bytes[4096];

    for (int i = 0; i < PEOPLE; i++)
        moved += read_person(&run->people[i]);
    moved += run->client >= 0 && read(run->client, bytes, sizeof bytes) > 0;
    for (int i = 0; i < world.child_count; i++)
        moved += world.children[i].fd_stdin >= 0 &&
                 read(world.children[i].fd_stdin, bytes, sizeof bytes) > 0;
    return moved;
}

/* Processes run, and end when they are told to. */
static size_t tend_processes(struct run *run)
{
    size_t moved = 0;

    for (int i = 0; i < world.child_count; i++) {
        struct fake_child *child = &world.children[i];

        if (child->fd_exec >= 0) {
            world_execute(child);
            moved++;
        }
        if (child->running && child->terminated) {
            world_exit(child, false);
            moved++;
        }
    }
    workers_each(run->bus, worker_check_exit);
    return moved;
}

static void settle(struct run *run)
{
    int rounds = 0;
    size_t moved;

    do {
        moved = read_all(run) + tend_processes(run);
        step(run);
        EXPECT(++rounds < ROUNDS_MAX, "no rest");
    } while (run->outcome == BUS_RUNNING && (moved > 0 || world.ready > 0 || world.waited_ms == 0));
}

/* --- what is done to it --- */

static int connect_to(struct run *run, struct bus_listener *listener, bool is_control)
{
    struct origin origin;
    int fds[2];

    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0, "a socket pair");
    fcntl(fds[1], F_SETFL, O_NONBLOCK);
    origin_of_stdio(&origin);
    if (is_control)
        visitors_accepted(listener, fds[0], &origin);
    else
        gate_unix_listener.accepted(listener, fds[0], &origin);
    step(run);
    return fds[1];
}

/* A socket is full when the bus does not read: then what is left is not written. */
static void write_to(struct run *run, struct person *person, const char *bytes, size_t len)
{
    ssize_t n;

    if (person->fd < 0)
        person->fd = connect_to(run, &run->control, true);
    if (len > sizeof person->sent - person->sent_len)
        len = sizeof person->sent - person->sent_len;
    n = person->ended ? -1 : write(person->fd, bytes, len);
    if (n > 0) {
        memcpy(person->sent + person->sent_len, bytes, (size_t)n);
        person->sent_len += (size_t)n;
    }
}

static void leave(struct run *run, struct person *person)
{
    if (person->fd < 0)
        return;
    check_person(person, false);
    close(person->fd);
    memset(person, 0, sizeof *person);
    person->fd = -1;
    step(run);
}

static struct person *act(struct run *run, struct person *person, char what)
{
    struct fake_child *last = &world.children[world.child_count > 0 ? world.child_count - 1 : 0];

    switch (what) {
    case 5:
        leave(run, person);
        break;
    case 6:
        world.now_ms += 1001;
        break;
    case 7:
        if (last->running)
            world_exit(last, false);
        break;
    case 8:
        settle(run);
        break;
    default:
        return &run->people[what - 1];
    }
    return person;
}

static void play(struct run *run, const char *text, size_t len)
{
    struct person *person = run->people;
    size_t at = 0, start;

    while (at < len && run->outcome == BUS_RUNNING) {
        for (start = at; at < len && (text[at] < 1 || text[at] > 8); at++)
            continue;
        if (at > start)
            write_to(run, person, text + start, at - start);
        step(run);
        if (at < len)
            person = act(run, person, text[at++]);
    }
}

/* --- beginning and end --- */

static void begin(struct run *run)
{
    static const struct limits limits = LIMITS_DEFAULT;
    static char *argv_p[] = {"w", "0", NULL}, *argv_q[] = {"w", "1", NULL};
    static const struct service *const services[] = {&control_service, NULL};
    static const char hello[] = "{\"id\":1,\"method\":\"m\",\"sessionId\":\"s\"}\n";
    struct bus_options options = {.config = &run->config,
                                  .log = &run->log,
                                  .sockets = {"/nowhere/control"},
                                  .services = services};
    struct control *control;

    run->pools[0] = (struct pool_config){.id = "p", .command = "w", .argv = argv_p, .instances = 2};
    run->pools[1] = (struct pool_config){.id = "q", .command = "w", .argv = argv_q, .instances = 1};
    run->config.pools = run->pools;
    run->config.pool_count = 2;
    run->config.limits = limits;
    run->config.limits.max_connections = run->config.limits.max_sessions = 16; /* small tables */
    run->config.limits.max_pending_requests = 16;
    log_open(&run->log, open("/dev/null", O_WRONLY), LOG_LEVEL_INFO);
    run->bus = bus_create(&options);
    EXPECT(run->bus != NULL, "a bus");
    control = services_state(run->bus, &control_service);
    run->control = (struct bus_listener){.bus = run->bus, .visitors = &control->clients};
    run->clients = (struct bus_listener){.bus = run->bus,
                                         .kind = &gate_unix_listener,
                                         .visitors = &run->bus->clients,
                                         .config = &run->listen};
    run->outcome = pools_start(run->bus) == 0 ? BUS_RUNNING : BUS_SYSTEM_ERROR;
    settle(run);
    run->client = connect_to(run, &run->clients, false);
    EXPECT(write(run->client, hello, sizeof hello - 1) > 0, "a client");
    settle(run);
}

static void finish(struct run *run)
{
    int rounds = 0, i;

    settle(run);
    for (i = 0; i < PEOPLE; i++)
        check_person(&run->people[i], run->outcome == BUS_RUNNING);
    if (run->outcome == BUS_RUNNING)
        bus_stop(run->bus);
    for (; run->outcome == BUS_RUNNING && rounds < ROUNDS_MAX; rounds++) {
        settle(run);
        world.now_ms += 500;
    }
    EXPECT(run->outcome != BUS_RUNNING, "the bus does not stop");
    workers_each(run->bus, worker_check_exit);
    bus_destroy(run->bus);
    for (i = 0; i < PEOPLE; i++)
        world_close_fd(&run->people[i].fd);
    world_close_fd(&run->client);
    world_close();
    i = run->log.fd;
    log_close(&run->log);
    close(i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tape none = {NULL, NULL};
    struct run *run = calloc(1, sizeof *run);
    char *text = fuzz_copy(data, size);

    EXPECT(run != NULL, "memory");
    signal(SIGPIPE, SIG_IGN);
    world_reset(&none);
    world.honest = true;
    run->client = -1;
    for (int i = 0; i < PEOPLE; i++)
        run->people[i].fd = -1;
    begin(run);
    play(run, text, size);
    finish(run);
    free(text);
    free(run);
    return 0;
}
