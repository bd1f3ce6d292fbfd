/* Descriptors: what is delivered, to whom, and what never. */
#include "build_config.h"

#include "event/event_loop.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "event/backend.h"
#include "event_fixture.h"

START_TEST(tells_its_backend)
{
    struct stdio_bus_event_loop *plain = event_loop_create_with(backends[_i]);

    ck_assert_ptr_nonnull(plain);
    ck_assert_str_eq(stdio_bus_event_loop_backend_name(plain), backends[_i]->name);
    stdio_bus_event_loop_destroy(plain);
    plain = stdio_bus_event_loop_create();
    ck_assert_ptr_nonnull(plain);
    ck_assert_str_eq(stdio_bus_event_loop_backend_name(plain), EVENT_BACKEND_DEFAULT.name);
    stdio_bus_event_loop_destroy(plain);
    stdio_bus_event_loop_destroy(NULL);
}
END_TEST

START_TEST(delivers_while_ready)
{
    struct watched reader, writer;

    set_up(_i);
    open_reader(&reader, READ);
    ck_assert_int_eq(run(0), 0);
    put(&reader);
    for (int i = 1; i <= 3; i++) { /* level-triggered */
        ck_assert_int_eq(run(WAIT_MS), 1);
        ck_assert_int_eq(reader.calls, i);
        ck_assert_uint_eq(reader.events, READ);
    }
    ck_assert_int_eq(take(&reader), 1);
    ck_assert_int_eq(run(0), 0);
    open_writer(&writer, WRITE);
    ck_assert_int_eq(run(WAIT_MS), 1);
    ck_assert_uint_eq(writer.events, WRITE);
    close_watched(&reader);
    close_watched(&writer);
    tear_down();
}
END_TEST

START_TEST(delivers_both_ways)
{
    struct watched watched = {.calls = 0};
    int ends[2];

    set_up(_i);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    watched.fd = ends[0];
    watched.peer = ends[1];
    add(&watched, READ);
    put(&watched);
    modify(&watched, READ | WRITE);
    ck_assert_int_ge(run(WAIT_MS), 1); /* one callback or, where filters are separate, two */
    ck_assert_uint_eq(watched.seen, READ | WRITE);
    modify(&watched, WRITE);
    ck_assert_int_eq(run(WAIT_MS), 1);
    ck_assert_uint_eq(watched.events, WRITE);
    modify(&watched, READ);
    ck_assert_int_eq(run(WAIT_MS), 1);
    ck_assert_uint_eq(watched.events, READ);
    ck_assert_int_eq(take(&watched), 1);
    ck_assert_int_eq(run(0), 0);
    ck_assert_int_eq(spy.wait_result, 0);
    close_watched(&watched);
    tear_down();
}
END_TEST

START_TEST(removal_leaves_the_others_alone)
{
    struct watched three[3];

    set_up(_i);
    for (int i = 0; i < 3; i++) {
        open_reader(&three[i], READ);
        put(&three[i]);
    }
    close_watched(&three[0]);
    modify(&three[2], 0);
    ck_assert_int_eq(run(WAIT_MS), 1);
    ck_assert_int_eq(three[1].calls, 1);
    ck_assert_int_eq(stdio_bus_event_loop_remove(loop, three[1].fd), STDIO_BUS_OK);
    modify(&three[2], READ);
    ck_assert_int_eq(run(WAIT_MS), 1);
    ck_assert_int_eq(three[2].calls, 1);
    close_watched(&three[1]);
    close_watched(&three[2]);
    tear_down();
}
END_TEST

START_TEST(refuses_wrong_arguments)
{
    struct watched reader, gone = {.fd = dup(0)};

    set_up(_i);
    open_reader(&reader, READ);
    ck_assert_int_eq(stdio_bus_event_loop_add(loop, -1, READ, on_event, &reader),
                     STDIO_BUS_EINVAL);
    ck_assert_int_eq(stdio_bus_event_loop_add(loop, reader.fd, READ, on_event, &reader),
                     STDIO_BUS_EINVAL);
    ck_assert_int_eq(stdio_bus_event_loop_add(loop, reader.peer, 8, on_event, &reader),
                     STDIO_BUS_EINVAL);
    ck_assert_int_eq(stdio_bus_event_loop_modify(loop, reader.fd, 8), STDIO_BUS_EINVAL);
    ck_assert_int_eq(stdio_bus_event_loop_modify(loop, reader.peer, READ), STDIO_BUS_ENOTFOUND);
    ck_assert_int_eq(stdio_bus_event_loop_remove(loop, reader.peer), STDIO_BUS_ENOTFOUND);
    ck_assert_int_eq(stdio_bus_event_loop_remove(loop, -1), STDIO_BUS_ENOTFOUND);
    ck_assert_int_eq(stdio_bus_event_loop_remove(loop, 1 << 20), STDIO_BUS_ENOTFOUND);
    ck_assert_int_eq(close(gone.fd), 0);
    for (unsigned events = 0; events <= (READ | WRITE); events++) {
        errno = 0;
        ck_assert_int_eq(stdio_bus_event_loop_add(loop, gone.fd, events, on_event, &gone),
                         STDIO_BUS_ERR);
        ck_assert_int_eq(errno, EBADF);
        ck_assert_int_eq(stdio_bus_event_loop_remove(loop, gone.fd), STDIO_BUS_ENOTFOUND);
    }
    put(&reader);
    ck_assert_int_eq(run(WAIT_MS), 1);
    close_watched(&reader);
    tear_down();
}
END_TEST

START_TEST(create_without_descriptors_fails_cleanly)
{
    struct rlimit limit = {0, 0}, old;
    struct stdio_bus_event_loop *none;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
    limit.rlim_max = old.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    errno = 0;
    none = event_loop_create_with(backends[_i]);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
    if (backends[_i] == &event_backend_poll) {
        ck_assert_ptr_nonnull(none);
    } else {
        ck_assert_ptr_null(none);
        ck_assert_int_eq(errno, EMFILE);
    }
    stdio_bus_event_loop_destroy(none);
}
END_TEST

START_TEST(failed_change_changes_nothing)
{
    struct watched reader;

    set_up(_i);
    open_reader(&reader, READ);
    ck_assert_int_eq(stdio_bus_event_loop_remove(loop, reader.fd), STDIO_BUS_OK);
    spy.fail_change = ENOSPC;
    ck_assert_int_eq(stdio_bus_event_loop_add(loop, reader.fd, READ, on_event, &reader),
                     STDIO_BUS_ERR);
    ck_assert_int_eq(errno, ENOSPC);
    ck_assert_int_eq(stdio_bus_event_loop_remove(loop, reader.fd), STDIO_BUS_ENOTFOUND);
    add(&reader, 0);
    put(&reader);
    spy.fail_change = ENOMEM;
    ck_assert_int_eq(stdio_bus_event_loop_modify(loop, reader.fd, READ), STDIO_BUS_ERR);
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_int_eq(run(0), 0);
    modify(&reader, READ);
    spy.fail_change = ENOMEM;
    ck_assert_int_eq(stdio_bus_event_loop_modify(loop, reader.fd, WRITE), STDIO_BUS_ERR);
    ck_assert_int_eq(run(WAIT_MS), 1);
    close_watched(&reader);
    tear_down();
}
END_TEST

START_TEST(failed_wait_is_told)
{
    struct watched reader;

    set_up(_i);
    open_reader(&reader, READ);
    put(&reader);
    spy.fail_wait = ENOMEM;
    ck_assert_int_eq(run(0), STDIO_BUS_ERR);
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_int_eq(run(0), 1);
    close_watched(&reader);
    tear_down();
}
END_TEST

START_TEST(same_interest_costs_nothing)
{
    struct watched reader;
    int changes;

    set_up(_i);
    open_reader(&reader, READ);
    changes = spy.changes;
    modify(&reader, READ);
    ck_assert_int_eq(spy.changes, changes);
    modify(&reader, 0);
    changes = spy.changes;
    modify(&reader, 0);
    ck_assert_int_eq(spy.changes, changes);
    put(&reader);
    modify(&reader, READ);
    ck_assert_int_eq(run(WAIT_MS), 1);
    ck_assert_int_eq(spy.changes, changes + 1);
    close_watched(&reader);
    tear_down();
}
END_TEST

static void remove_itself(struct watched *watched)
{
    ck_assert_int_eq(stdio_bus_event_loop_remove(loop, watched->fd), STDIO_BUS_OK);
}

START_TEST(callback_removes_itself)
{
    struct watched reader;

    set_up(_i);
    open_reader(&reader, READ);
    reader.act = remove_itself;
    put(&reader);
    ck_assert_int_eq(run(WAIT_MS), 1);
    ck_assert_int_eq(run(0), 0);
    add(&reader, READ);
    ck_assert_int_eq(run(WAIT_MS), 1);
    ck_assert_int_eq(reader.calls, 2);
    close_watched(&reader);
    tear_down();
}
END_TEST

static void remove_other(struct watched *watched)
{
    ck_assert_int_eq(stdio_bus_event_loop_remove(loop, watched->other->fd), STDIO_BUS_OK);
}

static void pause_other(struct watched *watched)
{
    modify(watched->other, 0);
}

/* Two that are ready in the same round; the first one served acts on the other. */
static void open_two(struct watched two[2], void (*act)(struct watched *))
{
    for (int i = 0; i < 2; i++) {
        open_reader(&two[i], READ);
        two[i].other = &two[1 - i];
        two[i].act = act;
        put(&two[i]);
    }
}

START_TEST(callback_removes_another_that_is_ready)
{
    struct watched two[2];

    set_up(_i);
    open_two(two, remove_other);
    ck_assert_int_eq(run(WAIT_MS), 1);
    ck_assert_int_eq(spy.wait_result, 2);
    ck_assert_int_eq(two[0].calls + two[1].calls, 1);
    close_watched(&two[0]);
    close_watched(&two[1]);
    tear_down();
}
END_TEST

START_TEST(callback_pauses_another_that_is_ready)
{
    struct watched two[2];

    set_up(_i);
    open_two(two, pause_other);
    ck_assert_int_eq(run(WAIT_MS), 1);
    ck_assert_int_eq(spy.wait_result, 2);
    two[0].act = two[1].act = NULL;
    modify(&two[0], READ);
    modify(&two[1], READ);
    ck_assert_int_eq(run(WAIT_MS), 2);
    close_watched(&two[0]);
    close_watched(&two[1]);
    tear_down();
}
END_TEST

static struct watched successor;

/* Closes the other and opens something else, not ready, under its number. */
static void replace_other(struct watched *watched)
{
    int number = watched->other->fd;
    int ends[2];

    ck_assert_int_eq(stdio_bus_event_loop_remove(loop, number), STDIO_BUS_OK);
    ck_assert_int_eq(close(number), 0);
    close_peer(watched->other);
    ck_assert_int_eq(pipe(ends), 0);
    if (ends[0] != number) {
        ck_assert_int_eq(dup2(ends[0], number), number);
        if (ends[1] == number)
            ck_abort_msg("the write end took the number");
        ck_assert_int_eq(close(ends[0]), 0);
    }
    successor = (struct watched){.fd = number, .peer = ends[1]};
    add(&successor, READ);
    ck_assert_int_eq(stdio_bus_event_loop_remove(loop, watched->fd), STDIO_BUS_OK);
}

START_TEST(reused_number_gets_no_old_event)
{
    struct watched two[2];

    set_up(_i);
    open_two(two, replace_other);
    ck_assert_int_eq(run(WAIT_MS), 1);
    ck_assert_int_eq(spy.wait_result, 2);
    ck_assert_int_eq(successor.calls, 0);
    ck_assert_int_eq(run(0), 0);
    put(&successor);
    ck_assert_int_eq(run(WAIT_MS), 1);
    ck_assert_int_eq(successor.calls, 1);
    close_watched(&successor);
    close_watched(two[0].calls == 1 ? &two[0] : &two[1]);
    tear_down();
}
END_TEST

START_TEST(hangup_comes_after_the_data)
{
    struct watched reader;

    set_up(_i);
    open_reader(&reader, READ);
    put(&reader);
    close_peer(&reader);
    ck_assert_int_eq(run(WAIT_MS), 1);
    ck_assert_uint_eq(reader.events, READ);
    ck_assert_int_eq(take(&reader), 1);
    ck_assert_int_eq(run(WAIT_MS), 1);
    ck_assert_uint_eq(reader.events, READ);
    ck_assert_int_eq(take(&reader), 0);
    close_watched(&reader);
    tear_down();
}
END_TEST

/* A pipe that is full, so only the loss of its reader makes it ready. */
START_TEST(lost_reader_arrives_as_writable)
{
    struct watched writer;
    char block[4096] = {0};

    set_up(_i);
    open_writer(&writer, WRITE);
    ck_assert_int_eq(fcntl(writer.fd, F_SETFL, O_NONBLOCK), 0);
    while (write(writer.fd, block, sizeof(block)) > 0)
        continue;
    ck_assert_int_eq(run(0), 0);
    close_peer(&writer);
    ck_assert_int_eq(run(WAIT_MS), 1);
    ck_assert_uint_eq(writer.events, WRITE);
    close_watched(&writer);
    tear_down();
}
END_TEST

/* Paused from the start, paused later, and a socket: all hung up, and none may wake the loop. */
START_TEST(paused_and_hung_up_does_not_spin)
{
    struct watched three[3] = {{.calls = 0}};
    int ends[2];

    set_up(_i);
    open_reader(&three[0], 0);
    open_reader(&three[1], READ);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    three[2].fd = ends[0];
    three[2].peer = ends[1];
    add(&three[2], READ | WRITE);
    for (int i = 0; i < 3; i++) {
        put(&three[i]);
        close_peer(&three[i]);
        modify(&three[i], 0);
    }
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(run(20), 0);
        ck_assert_int_eq(spy.wait_ms, 20);
        ck_assert_int_eq(spy.wait_result, 0); /* nothing but the time ended it */
    }
    for (int i = 0; i < 3; i++)
        modify(&three[i], READ);
    ck_assert_int_eq(run(WAIT_MS), 3);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(three[i].calls, 1);
        ck_assert_int_eq(take(&three[i]), 1);
        ck_assert_int_eq(take(&three[i]), 0);
        close_watched(&three[i]);
    }
    tear_down();
}
END_TEST

/* A client that has shut down its sending side: the end of input is known, so only its going away
 * is of interest. */
START_TEST(hangup_alone_tells_that_the_peer_is_gone)
{
    struct watched watched = {.calls = 0};
    int ends[2];

    set_up(_i);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    watched.fd = ends[0];
    watched.peer = ends[1];
    add(&watched, READ);
    ck_assert_int_eq(shutdown(watched.peer, SHUT_WR), 0);
    ck_assert_int_eq(run(WAIT_MS), 1);
    ck_assert_int_eq(take(&watched), 0);
    modify(&watched, STDIO_BUS_EVENT_HANGUP);
    ck_assert_int_eq(run(20), 0);
    ck_assert_int_eq(spy.wait_result, 0);
    modify(&watched, STDIO_BUS_EVENT_HANGUP | WRITE);
    ck_assert_int_eq(run(WAIT_MS), 1);
    ck_assert_uint_eq(watched.events, WRITE);
    modify(&watched, STDIO_BUS_EVENT_HANGUP);
    close_peer(&watched);
    ck_assert_int_eq(run(WAIT_MS), 1);
    ck_assert_uint_eq(watched.events, STDIO_BUS_EVENT_HANGUP);
    close_watched(&watched);
    tear_down();
}
END_TEST

/* A regular file, also at its end, and /dev/null, which epoll and kqueue refuse in words of their
 * own. */
static void check_always_ready(struct watched *watched)
{
    for (int i = 1; i <= 3; i++) {
        ck_assert_int_eq(run(-1), 1);
        ck_assert_int_eq(watched->calls, i);
        ck_assert_uint_eq(watched->events, READ);
        ck_assert_int_eq(take(watched), 0);
    }
    modify(watched, READ | WRITE);
    ck_assert_int_eq(run(-1), 1);
    ck_assert_uint_eq(watched->events, READ | WRITE);
    for (int i = 0; i < 2; i++) { /* with nothing to do for it the loop waits */
        modify(watched, i == 0 ? 0 : STDIO_BUS_EVENT_HANGUP);
        ck_assert_int_eq(run(20), 0);
        ck_assert_int_eq(spy.wait_ms, 20);
    }
    modify(watched, WRITE);
    ck_assert_int_eq(run(-1), 1);
    ck_assert_uint_eq(watched->events, WRITE);
    watched->act = remove_itself;
    ck_assert_int_eq(run(-1), 1);
    ck_assert_int_eq(run(0), 0);
    close_watched(watched);
}

START_TEST(regular_file_is_always_ready)
{
    char path[] = "/tmp/check_event_loop.XXXXXX";
    int fd = mkstemp(path);
    struct watched file;

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(close(fd), 0);
    set_up(_i);
    open_file(&file, path, READ);
    ck_assert_int_eq(unlink(path), 0);
    check_always_ready(&file);
    ck_assert_int_eq(spy.changes, 0);
    tear_down();
}
END_TEST

START_TEST(null_device_is_always_ready)
{
    struct watched null;

    set_up(_i);
    open_file(&null, "/dev/null", READ);
    if (backends[_i] == &event_backend_poll) { /* may report more than one event; here as asked */
        ck_assert_int_eq(run(-1), 1);
        ck_assert_uint_eq(null.events, READ);
        close_watched(&null);
    } else {
        check_always_ready(&null);
    }
    tear_down();
}
END_TEST

#define FILES 70

START_TEST(always_ready_descriptors_leave_room_and_take_turns)
{
    struct watched files[FILES], reader;
    int calls = 0;

    set_up(_i);
    for (int i = 0; i < FILES; i++)
        open_file(&files[i], "/dev/null", READ);
    open_reader(&reader, READ);
    put(&reader);
    for (int i = 1; i <= 3; i++) {
        ck_assert_int_ge(run(-1), 2);
        ck_assert_int_eq(reader.calls, i);
    }
    for (int i = 0; i < FILES; i++) {
        ck_assert_int_ge(files[i].calls, 1);
        calls += files[i].calls;
        close_watched(&files[i]);
    }
    ck_assert_int_ge(calls, FILES);
    ck_assert_int_eq(run(0), 1);
    close_watched(&reader);
    tear_down();
}
END_TEST

#define READERS 300

START_TEST(many_ready_descriptors_all_get_their_turn)
{
    struct watched *readers = calloc(READERS, sizeof(*readers));
    int rounds = READERS / (EVENT_BACKEND_ROUND_MAX / 2) + 1;

    ck_assert_ptr_nonnull(readers);
    set_up(_i);
    for (int i = 0; i < READERS; i++) {
        open_reader(&readers[i], READ);
        put(&readers[i]);
    }
    for (int i = 0; i < rounds; i++) {
        int called = run(WAIT_MS);
        ck_assert_int_gt(called, 1);
        ck_assert_int_le(called, EVENT_BACKEND_ROUND_MAX);
    }
    for (int i = 0; i < READERS; i++) {
        ck_assert_int_ge(readers[i].calls, 1);
        close_watched(&readers[i]);
    }
    tear_down();
    free(readers);
}
END_TEST

static void add_tests(TCase *tcase)
{
    static const TTest *const *const tests[] = {
        &tells_its_backend,
        &delivers_while_ready,
        &delivers_both_ways,
        &removal_leaves_the_others_alone,
        &refuses_wrong_arguments,
        &create_without_descriptors_fails_cleanly,
        &failed_change_changes_nothing,
        &failed_wait_is_told,
        &same_interest_costs_nothing,
        &callback_removes_itself,
        &callback_removes_another_that_is_ready,
        &callback_pauses_another_that_is_ready,
        &reused_number_gets_no_old_event,
        &hangup_comes_after_the_data,
        &lost_reader_arrives_as_writable,
        &paused_and_hung_up_does_not_spin,
        &hangup_alone_tells_that_the_peer_is_gone,
        &regular_file_is_always_ready,
        &null_device_is_always_ready,
        &always_ready_descriptors_leave_room_and_take_turns,
        &many_ready_descriptors_all_get_their_turn,
    };

    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        tcase_add_loop_test(tcase, *tests[i], 0, BACKENDS);
}

int main(void)
{
    Suite *suite = suite_create("event_loop");
    TCase *tcase = tcase_create("event_loop");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tcase, 30);
    add_tests(tcase);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
