#include "build_config.h"

#include "process/worker.h"

#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/error.h"
#include "process/pool.h"
#include "router/departure.h"
#include "suite.h"

#define DEADLINE_MS 20000 /* longer than any wait */

static struct stdio_bus_event_loop *loop;
static struct limits limits;
static struct log test_log;
static struct transport transport;
static struct worker worker;
static unsigned heard;   /* messages taken */
static bool holds, gone; /* messages are held; the worker's output has ended */
static pid_t gone_pid;   /* the process then; 0: its exit is known */

static void take(struct endpoint *from, const struct message *message)
{
    (void)message;
    heard += !holds;
    if (holds)
        from->ops->pause(from);
}

static void ended(struct connection *connection, size_t cut)
{
    ck_assert_ptr_eq(connection, &worker.stream.connection);
    ck_assert_uint_eq(cut, 0);
    worker_handle(&worker, WORKER_OUTPUT_ENDED);
}

static void note_available(struct worker *which, enum peer_availability availability)
{
    (void)which;
    (void)availability;
}

static void note_gone(struct worker *which)
{
    gone = true;
    gone_pid = which->child.pid;
}

static void note_finished(struct worker *which)
{
    (void)which;
}

static void note_exec(struct worker *which, bool succeeded)
{
    (void)which;
    ck_assert(succeeded);
}

static int64_t note_early(struct worker *which)
{
    (void)which;
    return 0;
}

static const struct stream_handler handler = {.message = take,
                                              .connection = {.frame = stream_read, .ended = ended}};
static const struct worker_host host = {&handler,      note_available, note_gone,
                                        note_finished, note_exec,      note_early};

static struct group group;

static void set_up(void)
{
    const struct limits defaults = LIMITS_DEFAULT;

    signal(SIGPIPE, SIG_IGN);
    limits = defaults;
    loop = stdio_bus_event_loop_create();
    ck_assert_ptr_nonnull(loop);
    log_open(&test_log, STDERR_FILENO, LOG_LEVEL_ERROR);
    transport_init(&transport, loop, &test_log, &limits);
    memset(&worker, 0, sizeof worker);
    heard = 0;
    holds = gone = false;
}

static void tear_down(void)
{
    transport_free(&transport);
    log_close(&test_log);
    stdio_bus_event_loop_destroy(loop);
}

static void start(char *script)
{
    static char *argv[] = {(char *)"sh", (char *)"-c", NULL, NULL};

    argv[2] = script;
    worker.program = (struct program){.argv = argv};
    worker.pool_id = "pool";
    worker.stream.endpoint.peer.pool = &group;
    ck_assert_int_eq(worker_init(&worker, &transport, &host), STDIO_BUS_OK);
    ck_assert_int_eq(worker_start(&worker), STDIO_BUS_OK);
}

static void turn(int64_t deadline)
{
    ck_assert_int_lt(clock_now_ms(), deadline);
    stdio_bus_event_loop_run_once(loop, 5);
}

/* Even if the time to wait for the end of the output is over when its reader resumes. */
TEST(output_is_read_to_its_end_after_a_hold)
{
    char script[] = "echo '{}'; read -r line; echo '{}'";
    int64_t deadline = clock_now_ms() + DEADLINE_MS;
    struct connection *connection = &worker.stream.connection;

    holds = true;
    start(script);
    while (connection->input_state != INPUT_PAUSED)
        turn(deadline);
    connection_close_output(connection);
    for (; worker.child.pid > 0; worker_check_exit(&worker))
        turn(deadline);
    worker_handle(&worker, WORKER_DEADLINE);
    ck_assert(!gone);
    holds = false;
    worker.stream.endpoint.ops->resume(&worker.stream.endpoint);
    worker_handle(&worker, WORKER_DEADLINE);
    while (!gone)
        turn(deadline);
    ck_assert_uint_eq(heard, 2);
    worker_destroy(&worker);
}

/* A process that has exited is not said to have closed its stdout alone, even if the daemon was so
 * late that the time to wait for the exit is over. */
TEST(exit_is_seen_when_the_time_for_it_is_over)
{
    char script[] = "exec >&-; read -r line; exit 3";
    int64_t deadline = clock_now_ms() + DEADLINE_MS;
    siginfo_t info;

    start(script);
    while (!worker.awaits_exit)
        turn(deadline);
    connection_close_output(&worker.stream.connection);
    ck_assert_int_eq(waitid(P_PID, (id_t)worker.child.pid, &info, WEXITED | WNOWAIT), 0);
    ck_assert(!gone);
    worker_handle(&worker, WORKER_DEADLINE);
    ck_assert(gone);
    ck_assert_int_eq(gone_pid, 0);
    ck_assert_int_eq(WEXITSTATUS(worker.child.status), 3);
    worker_destroy(&worker);
}

/* Workers come to and leave a pool while the router runs. row: shared, or exclusive with a spare
 * process. */
TEST_ROWS(worker_is_added_to_and_removed_from_its_pool, 2)
{
    static char *argv[] = {(char *)"true", NULL};
    const struct siphash_key key = {5, 6};
    struct pool_config config = {.id = (char *)"pool", .command = argv[0], .argv = argv};
    struct worker *workers[3];
    struct router router;
    struct pool *pool;

    config.mode.clients = row == 0 ? CLIENTS_SHARED : CLIENTS_EXCLUSIVE;
    config.mode.spare = 1;
    router_init(&router, &limits, &key);
    pool = pool_create(&config, &router);
    ck_assert_ptr_eq(router_pool_named(&router, slice_of("pool", 4)), &pool->group);
    for (unsigned i = 0; i < 3; i++) {
        workers[i] = pool_add_worker(pool, i + 1, NULL, &router, &transport, &host, NULL);
        ck_assert_int_eq(workers[i]->state, WORKER_STOPPED);
        ck_assert_uint_eq(workers[i]->number, i + 1);
        ck_assert_uint_eq(pool->group.count, i + 1);
        ck_assert_uint_eq(pool_starts(pool), row == 0 ? i + 1 : 1);
    }
    pool_remove_worker(workers[1], &router);
    ck_assert_uint_eq(pool->group.count, 2);
    ck_assert_uint_eq(router.all.count, row == 0 ? 2 : 0);
    ck_assert(group_has(&pool->group, &workers[2]->stream.endpoint.peer));
    pool_remove_worker(workers[0], &router);
    pool_remove_worker(workers[2], &router);
    ck_assert_uint_eq(pool_starts(pool), 0);
    departure_remove_pool(&router, &pool->group);
    ck_assert_ptr_null(router_pool_named(&router, slice_of("pool", 4)));
    pool_destroy(pool);
    router_free(&router);
}

FIXTURE(set_up, tear_down)
