#include "build_config.h"

#include "process/worker.h"

#include <check.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "suite.h"

#define DEADLINE_MS 20000 /* longer than anything that is waited for */

static struct stdio_bus_event_loop *loop;
static struct limits limits;
static struct log test_log;
static struct transport transport;
static struct worker worker;
static unsigned heard;    /* messages that were taken */
static bool holds, gone;  /* messages have to wait; the worker's output has ended */

static enum connection_verdict take(struct connection *connection, const struct message *message,
                                    enum message_problem problem)
{
    (void)connection;
    (void)message;
    ck_assert_int_eq(problem, MESSAGE_OK);
    heard += !holds;
    return holds ? CONNECTION_HELD : CONNECTION_NEXT;
}

static void ended(struct connection *connection, size_t cut)
{
    ck_assert_uint_eq(cut, 0);
    worker_handle(worker_of(connection), WORKER_OUTPUT_ENDED);
}

static void note_available(struct worker *which, enum peer_availability availability)
{
    (void)which;
    (void)availability;
}

static void note_gone(struct worker *which)
{
    (void)which;
    gone = true;
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

static const struct connection_handler handler = {.message = take, .ended = ended};
static const struct worker_host host = {&handler, note_available, note_gone, note_finished,
                                        note_exec};

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
    worker_destroy(&worker);
    transport_free(&transport);
    log_close(&test_log);
    stdio_bus_event_loop_destroy(loop);
}

static void start(char *script)
{
    static char *argv[] = {(char *)"sh", (char *)"-c", NULL, NULL};

    argv[2] = script;
    worker.program = (struct program){.argv = argv};
    worker.pool = "pool";
    ck_assert_int_eq(worker_init(&worker, &transport, &host), STDIO_BUS_OK);
    ck_assert_int_eq(worker_start(&worker), STDIO_BUS_OK);
}

static void turn(int64_t deadline)
{
    ck_assert_int_lt(clock_now_ms(), deadline);
    stdio_bus_event_loop_run_once(loop, 5);
}

/* All is read, even if the time to wait for the end of the output is over just when its reader goes
 * on. */
START_TEST(last_words_are_read_after_a_hold)
{
    char script[] = "echo '{}'; read -r line; echo '{}'";
    int64_t deadline = clock_now_ms() + DEADLINE_MS;
    struct connection *connection = &worker.endpoint.connection;

    holds = true;
    start(script);
    while (!connection->held)
        turn(deadline);
    connection_close_output(connection);
    for (; worker.pid > 0; worker_check_exit(&worker))
        turn(deadline);
    worker_handle(&worker, WORKER_DEADLINE);
    ck_assert(!gone);
    holds = false;
    connection_resume(connection);
    worker_handle(&worker, WORKER_DEADLINE);
    while (!gone)
        turn(deadline);
    ck_assert_uint_eq(heard, 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("worker");
    TCase *tests = harness_case(suite, "worker");

    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, last_words_are_read_after_a_hold);
    return harness_run(suite);
}
