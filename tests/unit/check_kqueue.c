/* The rules that src/event/kqueue.c relies on: a test for each row of the table in
 * tests/kqueue-shim/kqueue_shim.c, on the shim or the system's own kqueue. */
#include "build_config.h"

#include <fcntl.h>
#include <sys/event.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>

#include "suite.h"

#define LONG_SEC 60 /* for what is there already */

static int kq, ends[2];
static struct kevent events[8];

static void open_queue(void)
{
    kq = kqueue();
    ck_assert_int_ge(kq, 0);
}

static void open_socket(void)
{
    open_queue();
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
}

static void open_pipe(void)
{
    open_queue();
    ck_assert_int_eq(pipe(ends), 0);
}

/* The fields of struct kevent have other types on NetBSD. */
#ifdef __NetBSD__
typedef uint32_t kevent_filter;
typedef uint32_t kevent_flags;
#else
typedef short kevent_filter;
typedef unsigned short kevent_flags;
#endif

static struct kevent event_of(int fd, int filter, int flags)
{
    struct kevent event;

    memset(&event, 0, sizeof event);
    event.ident = (uintptr_t)fd;
    event.filter = (kevent_filter)filter;
    event.flags = (kevent_flags)flags;
    return event;
}

/* Without room for a receipt. 0 or an errno. */
static int change(int fd, int filter, int flags)
{
    struct kevent event = event_of(fd, filter, flags);

    return kevent(kq, &event, 1, NULL, 0, NULL) == 0 ? 0 : errno;
}

static void add(int fd, int filter)
{
    ck_assert_int_eq(change(fd, filter, EV_ADD), 0);
}

/* How many events there are; waits for the first. */
static int wait_event(void)
{
    return kevent(kq, NULL, 0, events, COUNT(events), &(struct timespec){LONG_SEC, 0});
}

/* How many there are now. */
static int look(void)
{
    return kevent(kq, NULL, 0, events, COUNT(events), &(struct timespec){0, 0});
}

static const struct kevent *event_with(int filter, int count)
{
    for (int i = 0; i < count; i++) {
        if ((int)events[i].filter == filter)
            return &events[i];
    }
    return NULL;
}

TEST(kqueue_pair_of_one_descriptor)
{
    const struct kevent *found;
    int count;

    open_socket();
    add(ends[0], EVFILT_READ);
    add(ends[0], EVFILT_WRITE);
    ck_assert_int_eq((int)write(ends[1], "x", 1), 1);
    count = wait_event();
    found = event_with(EVFILT_READ, count);
    ck_assert_int_eq(count, 2);
    ck_assert_ptr_nonnull(found);
    ck_assert_int_eq((int)found->ident, ends[0]);
    ck_assert_ptr_nonnull(event_with(EVFILT_WRITE, count));
    ck_assert_int_eq(change(ends[0], EVFILT_WRITE, EV_DELETE), 0);
    ck_assert_int_eq(look(), 1);
    ck_assert_ptr_nonnull(event_with(EVFILT_READ, 1));
}

TEST(kqueue_found_while_it_is_so)
{
    char byte;

    open_socket();
    ck_assert_int_eq((int)write(ends[1], "x", 1), 1);
    add(ends[0], EVFILT_READ);
    ck_assert_int_eq(wait_event(), 1);
    ck_assert_int_eq(look(), 1);
    ck_assert_int_eq((int)read(ends[0], &byte, 1), 1);
    ck_assert_int_eq(look(), 0);
}

TEST(kqueue_readd_makes_no_second)
{
    open_socket();
    add(ends[0], EVFILT_WRITE);
    add(ends[0], EVFILT_WRITE);
    ck_assert_int_eq(wait_event(), 1);
    ck_assert_int_eq(change(ends[0], EVFILT_WRITE, EV_DELETE), 0);
    ck_assert_int_eq(look(), 0);
}

TEST(kqueue_missing_cannot_be_deleted)
{
    open_socket();
    ck_assert_int_eq(change(ends[0], EVFILT_READ, EV_DELETE), ENOENT);
    add(ends[0], EVFILT_WRITE);
    ck_assert_int_eq(change(ends[0], EVFILT_READ, EV_DELETE), ENOENT);
    ck_assert_int_eq(wait_event(), 1);
    ck_assert_int_eq(close(ends[0]), 0);
    ck_assert_int_eq(change(ends[0], EVFILT_WRITE, EV_DELETE), EBADF);
}

/* Also where a duplicate keeps the file, and where the number is that of another file. */
TEST(kqueue_closed_descriptor_has_no_kevents)
{
    int copy, other[2];

    open_socket();
    add(ends[0], EVFILT_READ);
    copy = dup(ends[0]);
    ck_assert_int_ge(copy, 0);
    ck_assert_int_eq(close(ends[0]), 0);
    ck_assert_int_eq((int)write(ends[1], "x", 1), 1);
    ck_assert_int_eq(look(), 0);
    ck_assert_int_eq(pipe(other), 0);
    ck_assert_int_eq(other[0], ends[0]);
    ck_assert_int_eq(look(), 0);
    ck_assert_int_eq(change(other[0], EVFILT_READ, EV_DELETE), ENOENT);
    add(other[0], EVFILT_READ);
    ck_assert_int_eq(look(), 0);
    add(copy, EVFILT_READ);
    ck_assert_int_eq(wait_event(), 1);
    ck_assert_int_eq((int)events[0].ident, copy);
}

TEST(kqueue_forked_child_has_no_queue)
{
    int status;
    pid_t child;

    open_socket();
    add(ends[0], EVFILT_WRITE);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        _exit(look() < 0 && errno == EBADF ? 0 : 1);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(look(), 1);
}

/* The other side writes no more, but is there. */
TEST(kqueue_read_end_of_a_socket_with_data_left)
{
    char bytes[4];

    open_socket();
    add(ends[0], EVFILT_READ);
    ck_assert_int_eq((int)write(ends[1], "xyz", 3), 3);
    ck_assert_int_eq(wait_event(), 1);
    ck_assert_int_eq((int)(events[0].flags & EV_EOF), 0);
    ck_assert_int_eq(shutdown(ends[1], SHUT_WR), 0);
    ck_assert_int_eq(wait_event(), 1);
    ck_assert_int_ne((int)(events[0].flags & EV_EOF), 0);
    ck_assert_int_eq((int)events[0].data, 3);
    ck_assert_int_eq((int)read(ends[0], bytes, sizeof bytes), 3);
    ck_assert_int_eq(wait_event(), 1);
    ck_assert_int_eq((int)read(ends[0], bytes, sizeof bytes), 0);
}

TEST(kqueue_read_end_of_a_pipe_with_data_left)
{
    open_pipe();
    add(ends[0], EVFILT_READ);
    ck_assert_int_eq((int)write(ends[1], "xyz", 3), 3);
    ck_assert_int_eq(close(ends[1]), 0);
    ck_assert_int_eq(wait_event(), 1);
    ck_assert_int_ne((int)(events[0].flags & EV_EOF), 0);
    ck_assert_int_eq((int)events[0].data, 3);
}

TEST(kqueue_write_end)
{
    open_socket();
    add(ends[0], EVFILT_WRITE);
    ck_assert_int_eq(shutdown(ends[1], SHUT_WR), 0);
    ck_assert_int_eq(wait_event(), 1);
    ck_assert_int_eq((int)(events[0].flags & EV_EOF), 0);
    ck_assert_int_eq(close(ends[1]), 0);
    ck_assert_int_eq(wait_event(), 1);
    ck_assert_int_ne((int)(events[0].flags & EV_EOF), 0);
}

TEST(kqueue_write_end_of_a_pipe)
{
    open_pipe();
    add(ends[1], EVFILT_WRITE);
    ck_assert_int_eq(close(ends[0]), 0);
    ck_assert_int_eq(wait_event(), 1);
    ck_assert_int_ne((int)(events[0].flags & EV_EOF), 0);
}

/* Alone, and beside a filter that reports as long as it is so. */
TEST_ROWS(kqueue_clear_reports_once, 2)
{
    const struct kevent *found;

    open_socket();
    if (row == 1)
        add(ends[0], EVFILT_READ);
    ck_assert_int_eq(change(ends[0], EVFILT_WRITE, EV_ADD | EV_CLEAR), 0);
    ck_assert_int_eq(wait_event(), 1);
    ck_assert_int_eq((int)(events[0].flags & EV_EOF), 0);
    ck_assert_int_eq(look(), 0);
    ck_assert_int_eq(close(ends[1]), 0);
    found = event_with(EVFILT_WRITE, wait_event());
    ck_assert_ptr_nonnull(found);
    ck_assert_int_ne((int)(found->flags & EV_EOF), 0);
    ck_assert_int_eq(look(), row == 1 ? 1 : 0);
    ck_assert_ptr_null(event_with(EVFILT_WRITE, row == 1 ? 1 : 0));
}

TEST(kqueue_receipt_where_there_is_room)
{
    struct kevent changes[2];

    open_socket();
    changes[0] = event_of(ends[0], EVFILT_READ, EV_DELETE);
    changes[1] = event_of(ends[0], EVFILT_WRITE, EV_ADD);
    ck_assert_int_eq(kevent(kq, changes, 2, events, COUNT(events), NULL), 1);
    ck_assert_int_ne((int)(events[0].flags & EV_ERROR), 0);
    ck_assert_int_eq((int)events[0].data, ENOENT);
    ck_assert_int_eq(look(), 1); /* the change after it was made */
    ck_assert_int_eq(kevent(kq, changes, 2, NULL, 0, NULL), -1);
    ck_assert_int_eq(errno, ENOENT);
}

TEST(kqueue_success_has_a_receipt_too)
{
    struct kevent one;

    open_socket();
    one = event_of(ends[0], EVFILT_WRITE, EV_ADD | EV_RECEIPT);
    ck_assert_int_eq(kevent(kq, &one, 1, events, 1, NULL), 1);
    ck_assert_int_ne((int)(events[0].flags & EV_ERROR), 0);
    ck_assert_int_eq((int)events[0].data, 0);
}

TEST(kqueue_no_room_returns_at_once)
{
    open_socket();
    add(ends[0], EVFILT_READ);
    ck_assert_int_eq(kevent(kq, NULL, 0, NULL, 0, &(struct timespec){LONG_SEC, 0}), 0);
}

static void watch_file(int fd)
{
    struct kevent event = event_of(fd, EVFILT_VNODE, EV_ADD | EV_CLEAR);

    event.fflags = NOTE_WRITE | NOTE_EXTEND | NOTE_DELETE | NOTE_RENAME;
    ck_assert_int_eq(kevent(kq, &event, 1, NULL, 0, NULL), 0);
}

/* The notes of the only event, which are over by now. */
static unsigned wait_notes(int fd)
{
    unsigned notes = 0;

    ck_assert_int_eq(wait_event(), 1);
    ck_assert_int_eq((int)events[0].ident, fd);
    ck_assert_int_eq((int)events[0].filter, EVFILT_VNODE);
    do
        notes |= (unsigned)events[0].fflags;
    while (look() > 0);
    return notes;
}

TEST(kqueue_vnode_of_a_file)
{
    const char *dir = test_dir();
    const char *path = test_format("%s/a", dir), *other = test_format("%s/b", dir);
    int fd = open(path, O_RDWR | O_CREAT, 0600), same = open(path, O_RDONLY);

    open_queue();
    watch_file(fd);
    ck_assert_int_eq(look(), 0);
    ck_assert_int_eq((int)write(fd, "x", 1), 1);
    ck_assert_uint_ne(wait_notes(fd) & NOTE_WRITE, 0);
    ck_assert_int_eq(rename(path, other), 0);
    ck_assert_uint_ne(wait_notes(fd) & NOTE_RENAME, 0);
    ck_assert_int_eq(unlink(other), 0);
    ck_assert_uint_ne(wait_notes(fd) & NOTE_DELETE, 0);
    ck_assert_int_eq(close(fd), 0);
    ck_assert_int_eq(write(same, "x", 1), -1);
    ck_assert_int_eq(look(), 0);
}

TEST(kqueue_vnode_of_a_directory)
{
    const char *dir = test_dir();
    int fd = open(dir, O_RDONLY), file;

    open_queue();
    watch_file(fd);
    file = open(test_format("%s/a", dir), O_RDWR | O_CREAT, 0600);
    ck_assert_uint_ne(wait_notes(fd) & NOTE_WRITE, 0);
    ck_assert_int_eq((int)write(file, "x", 1), 1); /* its entries are the same */
    ck_assert_int_eq(look(), 0);
    ck_assert_int_eq(unlink(test_format("%s/a", dir)), 0);
    ck_assert_uint_ne(wait_notes(fd) & NOTE_WRITE, 0);
}

TEST(kqueue_device_and_unknown_are_refused)
{
    int null = open("/dev/null", O_RDWR), error;

    open_socket();
    error = change(null, EVFILT_READ, EV_ADD);
    ck_assert_msg(error == ENODEV || error == EINVAL || error == EOPNOTSUPP || error == ENOTSUP ||
                      error == 0, /* FreeBSD has a filter for it */
                  "errno %d", error);
    ck_assert_int_eq(change(ends[0], -100, EV_ADD), EINVAL);
    ck_assert_int_eq(kevent(kq, NULL, 0, events, 1, &(struct timespec){0, -1}), -1);
    ck_assert_int_eq(errno, EINVAL);
}
