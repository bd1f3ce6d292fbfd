/* The whole bus: real connections, router, workers and event loop, over socket pairs and pipes, in
 * a world where time, readiness and processes follow a script (bus_world.h). The input is that
 * script, and the actions of the clients and workers at the far ends: send, answer, read little or
 * nothing, close halfway, vanish, exit, send bytes that are no message.
 *
 * Some inputs give pool q a mode, so that its workers are bound to clients; some give clients and
 * pools a framing by length, each its own.
 *
 * bus_ends.h checks all that an end reads. Besides: queues stay within their limits; a client that
 * keeps the protocol is not closed; when all ends keep reading and answering, every request ends
 * exactly once and the loop comes to rest; the shutdown ends; no descriptor or memory is left. */
#include "build_config.h"

#include "supervisor/bus.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>

#include "bus/clients.h"
#include "bus/gate.h"
#include "bus/listeners.h"
#include "bus_ends.h"
#include "process/pool.h"
#include "supervisor/pools.h"
#include "supervisor/workers.h"

#define EVERYTHING ((size_t)1 << 20)
#define DESCRIPTORS_MAX 256
/* Many: the messages of a long queue may wait for an id one by one, each for the hold time. */
#define SETTLE_ROUNDS_MAX 50000

struct run {
    struct bus_listener listener;
    struct listen_config listen;
    struct tape tape;
    struct config config;
    struct pool_config pools[2];
    struct log log;
    int fd_log;
    struct stdio_bus *bus;
    enum bus_outcome outcome;
    struct ends *ends;
    bool on_stdio;
    int saved[2];      /* our own stdin and stdout */
    int64_t passed_ms; /* by choice, in all */
    bool time_jumped;  /* so far that a client that did not read may be closed */
};

static bool is_stopping(const struct run *run)
{
    return run->outcome != BUS_RUNNING || run->bus->phase >= BUS_PHASE_DRAINING;
}

/* --- invariants after every round --- */

static void check_queue(const struct run *run, const struct connection *connection, bool is_worker)
{
    const struct limits *limits = &run->config.limits;
    const struct buffer *buffer;
    size_t bytes = 0, most;

    for (buffer = connection->output.first; buffer != NULL; buffer = buffer->next)
        bytes += buffer_len(buffer);
    EXPECT(bytes == connection->output.bytes, "%zu bytes are queued, %zu are counted", bytes,
           connection->output.bytes);
    /* A message over the limit; at a worker, as much again for errors; after the exit of a worker,
     * a line for each of its requests. */
    most = limits->max_output_queue + limits->max_input_buffer +
           300 * (2 * limits->max_pending_requests + 2) + FRAME_PREFIX_MAX;
    if (is_worker)
        most += limits->max_output_queue;
    EXPECT(bytes <= most, "%zu bytes are queued for %s", bytes, connection->context);
}

static void check_queues(const struct run *run)
{
    struct list_node *pool, *next_pool, *node, *following;

    list_each(&run->bus->clients.list, node, following)
        check_queue(run, &client_at(node)->stream.connection, false);
    list_each(&run->bus->pools, pool, next_pool) {
        list_each(&list_entry(pool, struct pool, link)->workers, node, following)
            check_queue(run, &list_entry(node, struct worker, link)->stream.connection, true);
    }
}

/* The bus must have a reason to close a client's connection. */
static void check_ended(struct run *run, int number)
{
    const struct end *end = &run->ends->ends[number];
    int open;

    EXPECT(end->poisoned || end->half_closed || end->farewell || run->time_jumped ||
               run->ends->strict || is_stopping(run),
           "%d was closed", number);
    EXPECT(end->incoming.end == end->incoming.start || end->poisoned || run->time_jumped ||
               is_stopping(run),
           "%d was closed in the middle of a line", number);
    if (!end->poisoned && !end->farewell && !run->time_jumped && !is_stopping(run)) {
        open = ends_unsettled(run->ends);
        EXPECT(open == NOBODY || run->ends->sent[open].from != number,
               "%d was closed before the answer to %d", number, open);
    }
    ends_excuse(run->ends, number);
}

/* --- one round --- */

static size_t write_all(struct run *run, size_t max)
{
    size_t moved = 0;
    int i;

    for (i = ends_next(run->ends, ENDS_NONE); i < ENDS_MAX; i = ends_next(run->ends, i))
        moved += ends_write(run->ends, i, max);
    return moved;
}

static size_t read_from(struct run *run, int number, size_t max)
{
    struct end *end = &run->ends->ends[number];
    bool before = end->ended;
    size_t got = 0, moved = 0;

    do {
        got = ends_read(run->ends, number, max);
        moved += got;
    } while (got > 0 && max == EVERYTHING);
    if (end->ended && !before && !ends_is_worker(number))
        check_ended(run, number);
    return moved;
}

static size_t read_all(struct run *run)
{
    size_t moved = 0;
    int i;

    for (i = ends_next(run->ends, ENDS_NONE); i < ENDS_MAX; i = ends_next(run->ends, i))
        moved += read_from(run, i, EVERYTHING);
    return moved;
}

static void step_bus(struct run *run)
{
    if (run->outcome == BUS_RUNNING)
        run->outcome = bus_step(run->bus, 1000);
    ends_excuse_dead(run->ends);
    check_queues(run);
}

/* --- events --- */

static void connect_client(struct run *run)
{
    int bytes = 2048, fds[2]; /* the system rounds this up to its minimum */
    struct origin origin;

    if (run->ends->client_count == ENDS_CLIENTS_MAX || run->on_stdio || is_stopping(run))
        return;
    EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0, "a socket pair");
    fcntl(fds[1], F_SETFL, O_NONBLOCK);
    setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    ends_connect(run->ends, fds[1], fds[1]);
    origin_of_stdio(&origin);
    gate_unix_listener.accepted(&run->listener, fds[0], &origin);
}

static struct letter choose_letter(struct tape *tape, bool from_worker)
{
    static const size_t paddings[] = {0, 0, 0, 40, 300, 1400, 2500, 20000};
    unsigned what = tape_byte(tape), where = tape_byte(tape);
    struct letter letter = {REQUEST,
                            NOBODY,
                            what >> 4,
                            (int)(where & 7),
                            (int)(where >> 3 & 7),
                            paddings[where >> 6 | (what & 4)]};

    if ((what & 3) == 0)
        letter.kind = NOTIFICATION;
    if (letter.session >= ENDS_SESSIONS && !(from_worker && (what & 8) != 0))
        letter.session = NOBODY;
    letter.session = letter.session == NOBODY ? NOBODY : letter.session % ENDS_SESSIONS;
    if (letter.pool > 2)
        letter.pool = NOBODY;
    return letter;
}

/* The connection breaks off inside a frame. */
static void end_in_frame(struct run *run, int client)
{
    ends_send_raw(run->ends, client, "\0\0\1", 3, true);
    ends_write(run->ends, client, EVERYTHING);
    ends_half_close(run->ends, client);
}

static void send_babble(struct run *run, int number)
{
    static const char *const words[] = {
        "!",    "{\"id\":[]}\n",    "{\"sessionId\":1}\n", "{\"a\"\n",  "[1]\n",
        "{} {", "{\"a\":\"\xff",    "{\"a\":\"\x01",       "{\"a\":01", "{\"a\":\"\\x",
        "\x00", "{\"a\":\"cut off",
    };
    static const char blanks[] = "\n \r\n\t\n";
    unsigned which = tape_byte(&run->tape);

    if (ends_framing(run->ends, number) != NULL && which == 255 && !ends_is_worker(number))
        end_in_frame(run, number);
    else if (ends_framing(run->ends, number) != NULL)
        ends_send_wrong(run->ends, number, which);
    else if (which % 16 < sizeof words / sizeof *words)
        ends_send_raw(run->ends, number, words[which % 16], strlen(words[which % 16]) + 1, true);
    else
        ends_send_raw(run->ends, number, blanks, sizeof blanks - 1, false);
}

static void change_process(int number, unsigned how)
{
    struct fake_child *child = &world.children[number];

    switch (how % 4) {
    case 0:
        world_execute(child);
        break;
    case 1:
        world_end_orphan(child);
        break;
    default:
        world_exit(child, how % 4 == 3);
        break;
    }
}

static void pass_time(struct run *run, unsigned how)
{
    static const int steps_ms[] = {1, 50, 101, 450, 2001, 5001, 30001, 60001};

    world.now_ms += steps_ms[how % 8];
    run->passed_ms += steps_ms[how % 8];
    run->ends->patience_lost |= run->passed_ms >= steps_ms[4];
    run->time_jumped |= run->passed_ms >= steps_ms[6];
}

static void stop(struct run *run, unsigned how)
{
    if (how >= 0xF0) {
        run->ends->patience_lost = true;
        bus_stop(run->bus);
    } else {
        workers_each(run->bus, worker_check_exit);
    }
}

/* The number of a living worker or client, by choice. */
static int choose(const struct run *run, bool worker, unsigned which)
{
    int first = worker ? 0 : WORLD_CHILDREN_MAX;
    int count = worker ? world.child_count : run->ends->client_count;
    int i, living = 0, start = first + (count > 0 ? (int)which % count : 0);

    for (i = 0; i < count; i++) {
        living = first + (start - first + i) % count;
        if (ends_lives(run->ends, living))
            return living;
    }
    return start;
}

static void happen(struct run *run, unsigned what, unsigned which)
{
    int client = choose(run, false, which), worker = choose(run, true, which);
    struct letter letter;

    switch (what & 15) {
    case 0:
    case 1:
    case 2:
        letter = choose_letter(&run->tape, what % 16 == 2);
        ends_send(run->ends, what % 16 == 2 ? worker : client, &letter);
        break;
    case 3:
    case 4:
        ends_answer(run->ends, worker, which >> 4, what & 4 ? 0 : (size_t)which * 4);
        break;
    case 5:
        ends_answer(run->ends, client, which >> 4, 0);
        break;
    case 6:
        connect_client(run);
        break;
    case 7:
        if (run->ends->ends[client].there)
            ends_vanish(run->ends, client);
        break;
    case 8:
        ends_half_close(run->ends, client);
        break;
    case 9:
        send_babble(run, which & 1 ? client : worker);
        break;
    case 10:
        change_process(worker, which >> 4);
        break;
    case 11:
        pass_time(run, which);
        break;
    case 12:
        read_from(run, which & 1 ? client : worker, which + 1);
        break;
    case 13:
        ends_write(run->ends, which & 1 ? client : worker, which + 1);
        break;
    case 14: /* a flood */
        letter = choose_letter(&run->tape, which & 0x80);
        for (; which % 32 > 0; which--)
            ends_send(run->ends, which & 0x80 ? worker : client, &letter);
        break;
    default:
        stop(run, which);
        break;
    }
}

static void step(struct run *run)
{
    unsigned what = tape_byte(&run->tape), which = tape_byte(&run->tape);

    if (run->ends->traces)
        fprintf(stderr, "-- %u %u\n", what, which);
    happen(run, what, which);
    if ((what & 0x10) == 0)
        write_all(run, EVERYTHING);
    if ((what & 0x40) == 0) {
        workers_each(run->bus, worker_check_exit);
        step_bus(run);
    }
    if ((what & 0x20) == 0)
        read_all(run);
}

/* --- all ends answer and read --- */

static size_t oblige(struct run *run)
{
    size_t moved = write_all(run, EVERYTHING) + read_all(run);
    int i;

    for (i = ends_next(run->ends, ENDS_NONE); i < ENDS_MAX; i = ends_next(run->ends, i))
        moved += ends_answer(run->ends, i, 0, 0);
    moved += write_all(run, EVERYTHING);
    for (i = 0; i < world.child_count; i++) {
        struct fake_child *child = &world.children[i];

        world_execute(child);
        world_end_orphan(child);
        if (child->running && (child->terminated || run->ends->ends[i].ended)) {
            world_exit(child, false);
            moved++;
        }
    }
    workers_each(run->bus, worker_check_exit);
    step_bus(run);
    return moved + (size_t)world.ready + (world.waited_ms == 0);
}

/* An exclusive pool has no processes but the spare ones and those of clients. A client that is gone
 * counts while it is held: the bus has not noticed yet. */
static void check_spare(const struct run *run)
{
    size_t clients = 0, processes = 0;
    struct list_node *node, *following;

    if (run->ends->q_clients != CLIENTS_EXCLUSIVE || is_stopping(run))
        return;
    list_each(&run->bus->clients.list, node, following)
        clients++;
    for (int i = 0; i < world.child_count; i++)
        processes += world.children[i].pool == POOL_Q && world.children[i].running;
    EXPECT(processes <= clients + run->pools[POOL_Q].mode.spare, "%zu processes, %zu clients",
           processes, clients);
}

/* Until nothing moves; then time passes while a request or a client is not done. */
static void settle(struct run *run)
{
    int rounds, quiet = 0;

    world.honest = true;
    for (rounds = 0; run->outcome == BUS_RUNNING && rounds < SETTLE_ROUNDS_MAX; rounds++) {
        if (oblige(run) > 0) {
            quiet = 0;
            continue;
        }
        if (ends_unsettled(run->ends) == NOBODY && ends_lingering(run->ends) == NOBODY &&
            ends_uncomplained(run->ends) == NOBODY && !is_stopping(run) && ++quiet > 3)
            break;
        world.now_ms += 500;
    }
    EXPECT(rounds < SETTLE_ROUNDS_MAX,
           "no rest: request %d is open, %d is not closed, %d lacks an error",
           ends_unsettled(run->ends), ends_lingering(run->ends), ends_uncomplained(run->ends));
    EXPECT(is_stopping(run) || ends_unsettled(run->ends) == NOBODY, "request %d never ends",
           ends_unsettled(run->ends));
    check_spare(run);
}

static void shut_down(struct run *run)
{
    if (run->outcome == BUS_RUNNING)
        bus_stop(run->bus);
    for (int rounds = 0; run->outcome == BUS_RUNNING && rounds < SETTLE_ROUNDS_MAX; rounds++) {
        oblige(run);
        world.now_ms += 100;
    }
    EXPECT(run->outcome != BUS_RUNNING, "the bus does not stop");
    EXPECT(run->outcome != BUS_SYSTEM_ERROR, "the bus gave up");
}

/* --- beginning and end --- */

static void choose_limits(struct limits *limits, unsigned script)
{
    static const struct limits defaults = LIMITS_DEFAULT;

    *limits = defaults;
    limits->max_input_buffer = script & 1 ? 65536 : 2048;
    limits->max_frame_body = limits->max_input_buffer;
    limits->frame_timeout_sec = 86400;
    limits->max_output_queue = script & 2 ? 8192 : 1024;
    limits->max_pending_requests = script & 4 ? 64 : 4;
    limits->max_sessions = script & 8 ? 64 : 2;
    limits->max_connections = script & 16 ? 64 : 3;
    limits->max_restarts = 3;
    limits->drain_timeout_sec = 5;
}

/* The mode of pool q. */
static void choose_mode(struct run *run, unsigned script)
{
    static const enum pool_clients clients[] = {CLIENTS_SHARED, CLIENTS_STICKY, CLIENTS_EXCLUSIVE,
                                                CLIENTS_SHARED};
    struct pool_config *pool = &run->pools[POOL_Q];

    pool->mode.clients = run->ends->q_clients = clients[script & 3];
    if (pool->mode.clients == CLIENTS_SHARED)
        return;
    pool->instances = script & 4 ? 3 : 2;
    if (pool->mode.clients == CLIENTS_EXCLUSIVE)
        pool->mode.spare = script >> 3 & 1;
    pool->mode.busy_timeout_sec = ENDS_BUSY_TIMEOUT_SEC;
}

static void choose_framing(struct run *run, unsigned which)
{
    static const struct {
        const struct framing *clients, *p, *q;
    } framings[8] = {
        {&framing_content_length, NULL, NULL},
        {&framing_length, NULL, &framing_content_length},
        {NULL, &framing_content_length, &framing_length},
        {&framing_content_length, &framing_content_length, &framing_content_length},
        {&framing_length, &framing_length, NULL},
        {&framing_content_length, &framing_length, NULL},
        {NULL, &framing_content_length, NULL},
        {&framing_content_length, NULL, &framing_length},
    };

    run->ends->client_framing = framings[which % 8].clients;
    run->pools[POOL_P].framing = run->ends->worker_framing[POOL_P] = framings[which % 8].p;
    run->pools[POOL_Q].framing = run->ends->worker_framing[POOL_Q] = framings[which % 8].q;
}

/* Pipes take the place of our stdin and stdout for the run. */
static void lend_stdio(struct run *run)
{
    int in[2], out[2], i;

    run->on_stdio = true;
    for (i = 0; i < 2; i++)
        run->saved[i] = fcntl(i, F_DUPFD, STDERR_FILENO + 1);
    EXPECT(pipe(in) == 0 && pipe(out) == 0, "pipes");
    EXPECT(in[0] > STDERR_FILENO, "stdin or stdout is closed");
    fcntl(in[1], F_SETFL, O_NONBLOCK);
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    close(in[0]);
    close(out[1]);
    ends_connect(run->ends, out[0], in[1]);
}

static void give_stdio_back(const struct run *run)
{
    for (int i = 0; i < 2; i++) {
        EXPECT((fcntl(i, F_GETFL) & O_NONBLOCK) == 0, "a lent descriptor is changed");
        dup2(run->saved[i], i);
        close(run->saved[i]);
    }
}

static void begin(struct run *run, unsigned script, unsigned rarely)
{
    static char *argv_p[] = {"w", "0", NULL}, *argv_q[] = {"w", "1", NULL};
    struct bus_options options = {.config = &run->config, .log = &run->log};

    run->pools[POOL_P] = (struct pool_config){
        .id = "p", .command = "w", .argv = argv_p, .instances = script & 64 ? 1 : 2};
    run->pools[POOL_Q] =
        (struct pool_config){.id = "q", .command = "w", .argv = argv_q, .instances = 1};
    choose_mode(run, rarely >> 3);
    if (rarely & 128)
        choose_framing(run, rarely);
    run->config.pools = run->pools;
    run->config.pool_count = 2;
    run->config.strict = run->ends->strict = rarely % 8 == 7;
    choose_limits(&run->config.limits, script);
    options.framing = run->listen.framing = run->ends->client_framing;
    run->fd_log = open("/dev/null", O_WRONLY);
    log_open(&run->log, run->ends->traces ? STDERR_FILENO : run->fd_log, LOG_LEVEL_DEBUG);
    if (script & 128) {
        options.stdio = true;
        lend_stdio(run);
    }
    run->bus = bus_create(&options);
    EXPECT(run->bus != NULL, "a bus");
    run->listener = (struct bus_listener){.bus = run->bus,
                                          .kind = &gate_unix_listener,
                                          .visitors = &run->bus->clients,
                                          .config = &run->listen};
    run->outcome = pools_start(run->bus) == 0 ? BUS_RUNNING : BUS_SYSTEM_ERROR;
}

static void end(struct run *run)
{
    workers_each(run->bus, worker_check_exit);
    bus_destroy(run->bus);
    if (run->on_stdio)
        give_stdio_back(run);
    ends_free(run->ends);
    world_close();
    log_close(&run->log);
    close(run->fd_log);
}

static int count_descriptors(void)
{
    int count = 0, fd;

    for (fd = 0; fd < DESCRIPTORS_MAX; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct run nothing;
    struct run run = nothing;
    int descriptors = count_descriptors();
    unsigned script;

    signal(SIGPIPE, SIG_IGN);
    run.tape.next = data;
    run.tape.end = data + size;
    run.ends = malloc(sizeof *run.ends);
    EXPECT(run.ends != NULL, "memory");
    ends_init(run.ends, &run.config.limits);
    world_reset(&run.tape);
    script = tape_byte(&run.tape);
    begin(&run, script, tape_byte(&run.tape));
    while (!tape_over(&run.tape) && run.outcome == BUS_RUNNING)
        step(&run);
    if (run.outcome == BUS_RUNNING)
        settle(&run);
    if (run.outcome != BUS_SYSTEM_ERROR)
        shut_down(&run);
    end(&run);
    free(run.ends);
    EXPECT(count_descriptors() == descriptors, "descriptors are left");
    return 0;
}
