/* Descriptors: which events reach which callback. */
#include "build_config.h"

#include "event/event_loop.h"

#include <fcntl.h>
#include <sys/resource.h>

#include "base/error.h"
#include "event/backend.h"
#include "event_fixture.h"

TEST(default_backend_is_the_configured_one)
{
    struct stdio_bus_event_loop *plain = stdio_bus_event_loop_create();
    const char *chosen = getenv("STDIO_BUS_EVENT_BACKEND"); /* in a build with all of them */

    ck_assert_ptr_nonnull(plain);
    ck_assert_int_eq(stdio_bus_event_loop_get_poll_fd(plain) < 0,
                     &EVENT_BACKEND_DEFAULT == &event_backend_poll ||
                         (chosen != NULL && strcmp(chosen, "poll") == 0));
    stdio_bus_event_loop_destroy(plain);
    stdio_bus_event_loop_destroy(NULL);
}

TEST(delivers_while_ready)
{
    struct watched reader, writer;

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
}

TEST(delivers_both_ways)
{
    struct watched watched;

    open_socket(&watched, READ);
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
}

TEST(removal_leaves_the_others_alone)
{
    struct watched three[3];

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
}

TEST(refuses_wrong_arguments)
{
    struct watched reader, gone = {.fd = dup(0)};

    open_reader(&reader, READ);
    ck_assert_int_eq(stdio_bus_event_loop_add(loop, -1, READ, on_event, &reader), STDIO_BUS_EINVAL);
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
}

TEST(create_without_descriptors_fails_cleanly)
{
    struct rlimit limit = {0, 0}, old;
    struct stdio_bus_event_loop *none;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
    limit.rlim_max = old.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    errno = 0;
    none = event_loop_create_with(spy.real);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
    if (spy.real == &event_backend_poll) {
        ck_assert_ptr_nonnull(none);
    } else {
        ck_assert_ptr_null(none);
        ck_assert_int_eq(errno, EMFILE);
    }
    stdio_bus_event_loop_destroy(none);
}

TEST(failed_change_changes_nothing)
{
    struct watched reader;

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
}

TEST(failed_wait_is_reported)
{
    struct watched reader;

    open_reader(&reader, READ);
    put(&reader);
    spy.fail_wait = ENOMEM;
    ck_assert_int_eq(run(0), STDIO_BUS_ERR);
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_int_eq(run(0), 1);
}

TEST(same_interest_costs_nothing)
{
    struct watched reader;
    int changes;

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
}

static void remove_itself(struct watched *watched)
{
    ck_assert_int_eq(stdio_bus_event_loop_remove(loop, watched->fd), STDIO_BUS_OK);
}

TEST(callback_removes_itself)
{
    struct watched reader;

    open_reader(&reader, READ);
    reader.act = remove_itself;
    put(&reader);
    ck_assert_int_eq(run(WAIT_MS), 1);
    ck_assert_int_eq(run(0), 0);
    add(&reader, READ);
    ck_assert_int_eq(run(WAIT_MS), 1);
    ck_assert_int_eq(reader.calls, 2);
}

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

TEST(callback_removes_another_that_is_ready)
{
    struct watched two[2];

    open_two(two, remove_other);
    ck_assert_int_eq(run(WAIT_MS), 1);
    ck_assert_int_eq(spy.wait_result, 2);
    ck_assert_int_eq(two[0].calls + two[1].calls, 1);
}

TEST(callback_pauses_another_that_is_ready)
{
    struct watched two[2];

    open_two(two, pause_other);
    ck_assert_int_eq(run(WAIT_MS), 1);
    ck_assert_int_eq(spy.wait_result, 2);
    two[0].act = two[1].act = NULL;
    modify(&two[0], READ);
    modify(&two[1], READ);
    ck_assert_int_eq(run(WAIT_MS), 2);
}

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
    watch(&successor, number, ends[1], READ);
    ck_assert_int_eq(stdio_bus_event_loop_remove(loop, watched->fd), STDIO_BUS_OK);
}

TEST(reused_number_gets_no_old_event)
{
    struct watched two[2];

    open_two(two, replace_other);
    ck_assert_int_eq(run(WAIT_MS), 1);
    ck_assert_int_eq(spy.wait_result, 2);
    ck_assert_int_eq(successor.calls, 0);
    ck_assert_int_eq(run(0), 0);
    put(&successor);
    ck_assert_int_eq(run(WAIT_MS), 1);
    ck_assert_int_eq(successor.calls, 1);
}

TEST(hangup_comes_after_the_data)
{
    struct watched reader;

    open_reader(&reader, READ);
    put(&reader);
    close_peer(&reader);
    ck_assert_int_eq(run(WAIT_MS), 1);
    ck_assert_uint_eq(reader.events, READ);
    ck_assert_int_eq(take(&reader), 1);
    ck_assert_int_eq(run(WAIT_MS), 1);
    ck_assert_uint_eq(reader.events, READ);
    ck_assert_int_eq(take(&reader), 0);
}

/* A pipe that is full, so only the loss of its reader makes it ready. */
TEST(lost_reader_arrives_as_writable)
{
    struct watched writer;
    char block[4096] = {0};

    open_writer(&writer, WRITE);
    ck_assert_int_eq(fcntl(writer.fd, F_SETFL, O_NONBLOCK), 0);
    while (write(writer.fd, block, sizeof block) > 0)
        continue;
    ck_assert_int_eq(run(0), 0);
    close_peer(&writer);
    ck_assert_int_eq(run(WAIT_MS), 1);
    ck_assert_uint_eq(writer.events, WRITE);
}

/* Paused from the start, paused later, and a socket: all hung up, and none may wake the loop. */
TEST(paused_and_hung_up_does_not_spin)
{
    struct watched three[3];

    open_reader(&three[0], 0);
    open_reader(&three[1], READ);
    open_socket(&three[2], READ | WRITE);
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
    }
}

/* A client that has shut down its sending side: after the end of input, its disconnect is the only
 * event of interest. */
TEST(interest_in_hangup_alone_reports_a_lost_peer)
{
    struct watched watched;

    open_socket(&watched, READ);
    ck_assert_int_eq(shutdown(watched.peer, SHUT_WR), 0);
    ck_assert_int_eq(run(WAIT_MS), 1);
    ck_assert_int_eq(take(&watched), 0);
    modify(&watched, STDIO_BUS_EVENT_HANGUP);
    ck_assert_int_eq(run(20), 0);
    ck_assert_int_eq(run(20), 0); /* kqueue reports room once, which is not asked for */
    ck_assert_int_eq(spy.wait_result, 0);
    modify(&watched, STDIO_BUS_EVENT_HANGUP | WRITE);
    ck_assert_int_eq(run(WAIT_MS), 1);
    ck_assert_uint_eq(watched.events, WRITE);
    modify(&watched, STDIO_BUS_EVENT_HANGUP);
    close_peer(&watched);
    ck_assert_int_eq(run(WAIT_MS), 1);
    ck_assert_uint_eq(watched.events, STDIO_BUS_EVENT_HANGUP);
}

/* A regular file, also at its end, and /dev/null, which epoll and kqueue refuse with different
 * errors. */
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

TEST(regular_file_is_always_ready)
{
    char path[] = "/tmp/check_event_loop.XXXXXX";
    int fd = mkstemp(path);
    struct watched file;

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(close(fd), 0);
    open_file(&file, path, READ);
    ck_assert_int_eq(unlink(path), 0);
    check_always_ready(&file);
    ck_assert_int_eq(spy.changes, 0);
}

TEST(null_device_is_always_ready)
{
    struct watched null;

    open_file(&null, "/dev/null", READ);
    if (spy.real == &event_backend_poll) { /* may report more than one event; here as asked */
        ck_assert_int_eq(run(-1), 1);
        ck_assert_uint_eq(null.events, READ);
        close_watched(&null);
    } else {
        check_always_ready(&null);
    }
}

#define FILES 70

TEST(always_ready_descriptors_leave_room_and_take_turns)
{
    struct watched files[FILES], reader;
    int calls = 0;

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
        ck_assert_int_eq(stdio_bus_event_loop_remove(loop, files[i].fd), STDIO_BUS_OK);
    }
    ck_assert_int_ge(calls, FILES);
    ck_assert_int_eq(run(0), 1);
}

#define READERS 300

TEST(many_ready_descriptors_all_get_their_turn)
{
    struct watched *readers = calloc(READERS, sizeof(*readers));
    int rounds = READERS / (EVENT_BACKEND_ROUND_MAX / 2) + 1;

    ck_assert_ptr_nonnull(readers);
    for (int i = 0; i < READERS; i++) {
        open_reader(&readers[i], READ);
        put(&readers[i]);
    }
    for (int i = 0; i < rounds; i++) {
        int called = run(WAIT_MS);
        ck_assert_int_gt(called, 1);
        ck_assert_int_le(called, EVENT_BACKEND_ROUND_MAX);
    }
    for (int i = 0; i < READERS; i++)
        ck_assert_int_ge(readers[i].calls, 1);
    tear_down();
    free(readers);
}
