#include "build_config.h"

#include "bus_world.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>

#include "base/clock.h"
#include "base/error.h"
#include "event/backend.h"
#include "process/process.h"

#define WATCHED_MAX 256
#define FIRST_PID 1000

struct world world;

void world_reset(struct tape *tape)
{
    memset(&world, 0, sizeof world);
    world.tape = tape;
    world.now_ms = 1000000;
}

int64_t clock_now_ms(void)
{
    return world.now_ms;
}

int64_t clock_now_us(void)
{
    return clock_now_ms() * 1000;
}

uint64_t clock_epoch_ms(void)
{
    return (uint64_t)world.now_ms;
}

/* --- readiness --- */

struct watched {
    struct pollfd fds[WATCHED_MAX];
    size_t count;
};

static void *create(int *poll_fd)
{
    *poll_fd = -1;
    return calloc(1, sizeof(struct watched));
}

static void destroy(void *state)
{
    EXPECT(((struct watched *)state)->count == 0, "a descriptor is still watched at the end");
    free(state);
}

static struct pollfd *find(struct watched *watched, int fd)
{
    size_t i = 0;

    while (i < watched->count && watched->fds[i].fd != fd)
        i++;
    return i < watched->count ? &watched->fds[i] : NULL;
}

static short interest(unsigned events)
{
    return (short)((events & STDIO_BUS_EVENT_READ ? POLLIN : 0) |
                   (events & STDIO_BUS_EVENT_WRITE ? POLLOUT : 0));
}

static int change(void *state, int fd, unsigned before, unsigned events)
{
    struct watched *watched = state;
    struct pollfd *found = find(watched, fd);

    EXPECT((found != NULL) == (before != 0), "fd %d: the former interest is wrong", fd);
    EXPECT(before != events, "fd %d: no change", fd);
    if (found == NULL) {
        EXPECT(watched->count < WATCHED_MAX, "too many descriptors");
        watched->fds[watched->count++] = (struct pollfd){fd, interest(events), 0};
    } else if (events == 0) {
        *found = watched->fds[--watched->count];
    } else {
        found->events = interest(events);
    }
    return STDIO_BUS_OK;
}

static unsigned events_of(const struct pollfd *found)
{
    short gone = found->revents & (POLLHUP | POLLERR);

    EXPECT((found->revents & POLLNVAL) == 0, "fd %d was closed while it was watched", found->fd);
    return (found->revents & POLLIN || gone ? STDIO_BUS_EVENT_READ : 0) |
           (found->revents & POLLOUT || gone ? STDIO_BUS_EVENT_WRITE : 0) |
           (gone ? STDIO_BUS_EVENT_HANGUP : 0);
}

/* The script omits and invents events, and reverses their order. */
static int wait_ready(void *state, struct event_ready *ready, int max, int timeout_ms)
{
    struct watched *watched = state;
    unsigned script = world.honest ? 0 : tape_byte(world.tape);
    size_t count = watched->count, i;

    world.waited_ms = timeout_ms;
    world.ready = 0;
    if (poll(watched->fds, (nfds_t)count, 0) < 0)
        return -1;
    for (i = 0; i < count && world.ready < max; i++) {
        const struct pollfd *found = &watched->fds[script & 1 ? count - 1 - i : i];
        unsigned events = events_of(found);

        if (script & 2)
            events |= STDIO_BUS_EVENT_READ | STDIO_BUS_EVENT_WRITE;
        if (events == 0 || (script >> 2 & 1u << (i % 6)) != 0)
            continue;
        ready[world.ready].fd = found->fd;
        ready[world.ready++].events = events;
    }
    return world.ready;
}

const struct event_backend EVENT_BACKEND_DEFAULT = {
    .create = create,
    .destroy = destroy,
    .change = change,
    .wait = wait_ready,
};

/* --- processes --- */

static struct fake_child *child_of(pid_t pid)
{
    int place = (int)pid - FIRST_PID;

    EXPECT(place >= 0 && place < world.child_count, "no process has the number %d", (int)pid);
    return &world.children[place];
}

static void open_pipe(int *read_end, int *write_end)
{
    int fds[2];

    EXPECT(pipe(fds) == 0, "a pipe: %s", strerror(errno));
    *read_end = fds[0];
    *write_end = fds[1];
#ifdef F_SETPIPE_SZ
    fcntl(fds[1], F_SETPIPE_SZ, WORLD_PIPE_BYTES);
#endif
}

int process_spawn(struct process *process, const struct program *program)
{
    unsigned script = world.honest ? 0 : tape_byte(world.tape);
    char *const *argv = program->argv;
    struct fake_child *child;

    EXPECT(argv[0] != NULL && argv[1] != NULL, "not the program of the configuration");
    if (world.child_count == WORLD_CHILDREN_MAX || script == 0xFF) {
        errno = EAGAIN;
        return STDIO_BUS_ERR;
    }
    child = &world.children[world.child_count];
    process->pid = child->pid = FIRST_PID + world.child_count++;
    child->pool = argv[1][0] - '0';
    child->running = true;
    open_pipe(&child->fd_stdin, &process->fd_to);
    process->fd_err = -1;
    open_pipe(&process->fd_from, &child->fd_stdout);
    open_pipe(&process->fd_exec, &child->fd_exec);
    fcntl(child->fd_stdin, F_SETFL, O_NONBLOCK);
    fcntl(child->fd_stdout, F_SETFL, O_NONBLOCK);
    fcntl(process->fd_exec, F_SETFL, O_NONBLOCK);
    if (script == 0xFE) {
        int error = ENOENT;

        EXPECT(write(child->fd_exec, &error, sizeof error) == (ssize_t)sizeof error, "exec");
        world_exit(child, false);
    } else if ((script & 7) != 7) {
        world_execute(child);
    }
    return STDIO_BUS_OK;
}

int process_exec_result(int fd_exec, int *error)
{
    ssize_t got = read(fd_exec, error, sizeof *error);

    if (got < 0)
        return STDIO_BUS_EAGAIN;
    return got == 0 ? STDIO_BUS_OK : STDIO_BUS_ERR;
}

int process_watch(pid_t pid)
{
    (void)pid;
    return -1; /* the bus of this world is no guest */
}

bool process_reap(pid_t pid, int *status)
{
    struct fake_child *child = child_of(pid);

    EXPECT(!child->reaped, "reaped twice");
    *status = 0;
    child->reaped = !child->running;
    return child->reaped;
}

pid_t process_exited(void)
{
    return 0; /* asked by process 1 alone */
}

bool process_signal_group(pid_t group, int signo)
{
    struct fake_child *child = child_of(group);
    bool found = child->running || child->has_orphan || !child->reaped;

    if (signo == SIGTERM)
        child->terminated = true;
    if (signo == SIGKILL) {
        world_end_orphan(child);
        world_exit(child, false);
    }
    return found;
}

void process_destroy(pid_t pid)
{
    process_signal_group(pid, SIGKILL);
    child_of(pid)->reaped = true;
}

const char *process_status_text(char *to, size_t size, int status)
{
    snprintf(to, size, "exited with status %d", status);
    return to;
}

void world_execute(struct fake_child *child)
{
    world_close_fd(&child->fd_exec);
}

void world_exit(struct fake_child *child, bool orphan)
{
    if (!child->running)
        return;
    child->running = false;
    child->has_orphan = orphan;
    world_close_fd(&child->fd_stdin);
    world_close_fd(&child->fd_exec);
    if (!orphan)
        world_close_fd(&child->fd_stdout);
}

void world_end_orphan(struct fake_child *child)
{
    if (!child->has_orphan)
        return;
    child->has_orphan = false;
    world_close_fd(&child->fd_stdout);
}

void world_close(void)
{
    for (int i = 0; i < world.child_count; i++) {
        world_end_orphan(&world.children[i]);
        world_exit(&world.children[i], false);
        EXPECT(world.children[i].reaped, "process %d is a zombie", i);
    }
}
