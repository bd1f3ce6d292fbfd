/* The bus as a guest of its program, and workers of the program itself. */
#include "build_config.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "client.h"
#include "daemon.h"
#include "embed_fixture.h"

#define FDS_MAX 256

static struct embed embed;
static int fds_before;

static int open_descriptors(void)
{
    int count = 0;

    for (int fd = 0; fd < FDS_MAX; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void set_up(void)
{
    fds_before = open_descriptors();
}

static void tear_down(void)
{
    embed_end(&embed);
    ck_assert_int_eq(open_descriptors(), fds_before);
    ck_assert(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

FIXTURE(set_up, tear_down)

/* --- states --- */

TEST(states_bound_the_calls)
{
    embed_init(&embed, 1, "", "");
    embed.bus = stdio_bus_create(&embed.options);
    ck_assert_ptr_nonnull(embed.bus);
    ck_assert_int_eq(stdio_bus_worker_count(embed.bus), 0);
    ck_assert(waitpid(-1, NULL, WNOHANG) < 0);
    ck_assert_int_eq(stdio_bus_step(embed.bus, 0), STDIO_BUS_ERR_STATE);
    ck_assert_int_eq(embed_ingest(&embed, "{'id':1}"), STDIO_BUS_ERR_STATE);
    ck_assert_int_eq(stdio_bus_register_embedded_worker(embed.bus, 0, 1, "p"), STDIO_BUS_ERR_STATE);
    ck_assert_int_eq(stdio_bus_unregister_embedded_worker(embed.bus, 1), STDIO_BUS_ERR_STATE);
    ck_assert_int_eq(stdio_bus_stop(embed.bus, 0), STDIO_BUS_OK);
    ck_assert_int_eq(stdio_bus_get_state(embed.bus), STDIO_BUS_STATE_CREATED);
    ck_assert_int_eq(stdio_bus_start(embed.bus), STDIO_BUS_OK);
    ck_assert_int_eq(stdio_bus_start(embed.bus), STDIO_BUS_ERR_STATE);
    embed_stop(&embed);
    ck_assert_int_eq(stdio_bus_start(embed.bus), STDIO_BUS_ERR_STATE);
}

TEST(bus_that_was_not_started_is_destroyed)
{
    embed_init(&embed, 1, "", "");
    embed.bus = stdio_bus_create(&embed.options);
    ck_assert_ptr_nonnull(embed.bus);
}

TEST(running_bus_is_destroyed)
{
    embed_init(&embed, 2, "", "");
    embed_start(&embed);
    EMBED_SEND(&embed, "{'id':1,'method':'no_answer'}");
}

/* Two of three wait for the id of the first, each with a deadline. */
TEST(bus_with_held_workers_is_destroyed)
{
    embed_init(&embed, 3, "", "");
    embed_start(&embed);
    for (int i = 0; i < 3; i++)
        EMBED_SEND(&embed, "{'method':'say_only','params':{'message':{'id':5,'method':'q'}}}");
    (void)embed_message(&embed);
    for (int i = 0; i < 40; i++)
        ck_assert_int_ge(stdio_bus_step(embed.bus, 5), 0);
    ck_assert_uint_eq(embed.count, 1);
}

static void call_all(struct embed *of, const char *msg, size_t len)
{
    (void)msg;
    (void)len;
    ck_assert_int_eq(stdio_bus_step(of->bus, 0), STDIO_BUS_ERR_STATE);
    ck_assert_int_eq(stdio_bus_start(of->bus), STDIO_BUS_ERR_STATE);
    stdio_bus_destroy(of->bus);
    ck_assert(embed_has(of, "error -15"));
    ck_assert_int_eq(stdio_bus_worker_count(of->bus), 1);
    ck_assert_int_eq(stdio_bus_stop(of->bus, 5), STDIO_BUS_OK);
}

TEST(callback_may_stop_and_not_destroy)
{
    embed_init(&embed, 1, "", "");
    embed.hook = call_all;
    embed_start(&embed);
    EMBED_SEND(&embed, "{'id':1,'method':'echo'}");
    EMBED_UNTIL(&embed, stdio_bus_get_state(embed.bus) == STDIO_BUS_STATE_STOPPED);
    ck_assert_uint_eq(embed.count, 1);
}

static void log_calls(stdio_bus_t *bus, int level, const char *message, void *user_data)
{
    struct embed *of = user_data;

    (void)level;
    (void)message;
    if (bus == NULL || of->bus == NULL)
        return;
    of->bytes++;
    ck_assert_int_eq(stdio_bus_ingest(bus, "{}", 2), STDIO_BUS_ERR_STATE);
    ck_assert_int_eq(stdio_bus_step(bus, 0), STDIO_BUS_ERR_STATE);
    ck_assert_int_eq(stdio_bus_unregister_embedded_worker(bus, 1), STDIO_BUS_ERR_STATE);
    ck_assert_int_ge(stdio_bus_worker_count(bus), 0);
}

TEST(log_may_not_change_the_bus)
{
    embed_init(&embed, 1, "", "");
    embed.options.on_log = log_calls;
    embed_start(&embed);
    embed_stop(&embed);
    ck_assert_uint_gt(embed.bytes, 0);
}

/* --- manners --- */

TEST(process_is_left_as_it_was)
{
    struct sigaction before[32], after;
    sigset_t mask_before, mask_after;
    struct rlimit limit_before, limit_after;

    for (int signo = 1; signo < 32; signo++)
        (void)sigaction(signo, NULL, &before[signo]);
    (void)sigprocmask(SIG_SETMASK, NULL, &mask_before);
    (void)getrlimit(RLIMIT_NOFILE, &limit_before);
    embed_init(&embed, 2, "", "");
    embed_start(&embed);
    EMBED_SEND(&embed, "{'id':1,'method':'echo'}");
    (void)embed_message(&embed);
    for (int signo = 1; signo < 32; signo++) {
        (void)sigaction(signo, NULL, &after);
        ck_assert(signo == SIGKILL || signo == SIGSTOP ||
                  after.sa_handler == before[signo].sa_handler);
    }
    (void)sigprocmask(SIG_SETMASK, NULL, &mask_after);
    for (int signo = 1; signo < 32; signo++)
        ck_assert_int_eq(sigismember(&mask_before, signo), sigismember(&mask_after, signo));
    (void)getrlimit(RLIMIT_NOFILE, &limit_after);
    ck_assert(limit_after.rlim_cur == limit_before.rlim_cur);
}

static bool sigpipe_is_pending(void)
{
    sigset_t pending;

    return sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
}

/* Its stdin is closed: writing to it raises SIGPIPE, which would end this program. */
static void write_to_closed_stdin(void)
{
    embed_init(&embed, 1, "", "");
    embed_start(&embed);
    EMBED_SEND(&embed, "{'id':1,'method':'close_stdin'}");
    (void)embed_message(&embed);
    (void)embed_ingest(&embed, "{'id':2,'method':'echo'}");
    embed_await(&embed, "worker 1 restarting");
}

/* 1: the program ignores the signal; 2: it blocks it; 3: and one of its own is pending. */
TEST_ROWS(sigpipe_does_not_reach_the_program, 4)
{
    sigset_t set, now;

    (void)signal(SIGPIPE, row == 1 ? SIG_IGN : SIG_DFL);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGPIPE);
    if (row >= 2)
        (void)sigprocmask(SIG_BLOCK, &set, NULL);
    if (row == 3)
        (void)raise(SIGPIPE);
    write_to_closed_stdin();
    (void)sigprocmask(SIG_SETMASK, NULL, &now);
    ck_assert_int_eq(sigismember(&now, SIGPIPE), row >= 2);
    ck_assert_int_eq(sigpipe_is_pending(), row == 3);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* Without on_log the lines go to stderr, whose reader is gone. */
TEST(sigpipe_of_the_log_does_not_reach_the_program)
{
    int ends[2], saved = dup(STDERR_FILENO);

    (void)signal(SIGPIPE, SIG_DFL);
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    embed_init(&embed, 1, "", "");
    embed.options.on_log = NULL;
    embed_start(&embed);
    embed_stop(&embed);
    ck_assert_int_eq(dup2(saved, STDERR_FILENO), STDERR_FILENO);
    close(saved);
}

/* A child of the program that is none of the bus's is the program's to wait for. */
TEST(other_children_are_left_alone)
{
    pid_t pid = fork();
    int status;

    if (pid == 0)
        _exit(7);
    embed_init(&embed, 1, "", "");
    embed_start(&embed);
    EMBED_SEND(&embed, "{'method':'die','params':{'code':1}}");
    embed_await(&embed, "worker 1 restarting");
    embed_stop(&embed);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(WEXITSTATUS(status), 7);
}

/* It waits for the poll_fd, and is woken for nothing. */
TEST(idle_bus_does_not_wake_its_program)
{
    int fd;

    embed_init(&embed, 1, "", "");
    embed_start(&embed);
    EMBED_SEND(&embed, "{'id':1,'method':'echo'}");
    (void)embed_message(&embed);
    fd = stdio_bus_get_poll_fd(embed.bus);
    if (fd < 0)
        return;
    for (int i = 0; i < 3 && wait_fd(fd, POLLIN, now_ms()); i++)
        ck_assert_int_ge(stdio_bus_step(embed.bus, 0), 0);
    ck_assert(!wait_fd(fd, POLLIN, now_ms() + 300));
    embed.steps = 0;
    for (int i = 0; i < 200; i++) {
        EMBED_SEND(&embed, "{'id':%d,'method':'plain','params':1}", i);
        (void)embed_message(&embed);
    }
    ck_assert_int_le(embed.steps, 500);
}

TEST(buses_live_side_by_side)
{
    static struct embed buses[50];

    embed_init(&embed, 1, "", "");
    for (size_t i = 0; i < COUNT(buses); i++) {
        char args[64];

        snprintf(args, sizeof args, "'--name','bus%zu'", i);
        embed_init(&buses[i], 1, args, "");
        embed_start(&buses[i]);
        EMBED_SEND(&buses[i], "{'id':1,'sessionId':'s','method':'echo'}");
    }
    for (size_t i = 0; i < COUNT(buses); i++) {
        char wanted[32];

        snprintf(wanted, sizeof wanted, "\"bus%zu\"", i);
        ck_assert(span_is(json_get(embed_message(&buses[i]), "result.worker"), wanted));
    }
    for (size_t i = 0; i < COUNT(buses); i++)
        embed_end(&buses[i]);
}

static void *start_bus(void *user_data)
{
    embed_start(user_data);
    return user_data;
}

/* Their parent is the process, not the thread. */
TEST(workers_outlive_the_thread_that_started_them)
{
    pthread_t thread;

    embed_init(&embed, 1, "", "");
    ck_assert_int_eq(pthread_create(&thread, NULL, start_bus, &embed), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    for (int i = 0; i < 20; i++) {
        EMBED_SEND(&embed, "{'id':%d,'method':'echo'}", i);
        (void)embed_message(&embed);
    }
    ck_assert(!embed_has(&embed, "worker 1 restarting"));
}

TEST(buses_come_and_go)
{
    const char *wanted = getenv("TEST_EMBED_ROUNDS");
    long rounds = wanted != NULL ? strtol(wanted, NULL, 10) : 100;

    if (harness_fewer())
        rounds = 20;
    for (long i = 0; i < rounds; i++) {
        embed_init(&embed, 1, "", "");
        embed_start(&embed);
        EMBED_SEND(&embed, "{'id':1,'method':'echo'}");
        (void)embed_message(&embed);
        if (i % 2 == 0)
            embed_stop(&embed);
        embed_end(&embed);
        embed = (struct embed){.bus = NULL};
        ck_assert_int_eq(open_descriptors(), fds_before);
    }
}

/* --- embedded workers --- */

/* Sends a line over the worker's end. */
static void say(int fd, const char *line)
{
    struct text text = {.len = 0};

    text_printf(&text, "%s\n", line);
    text_quote(&text, 0);
    ck_assert_int_eq(write(fd, text.data, text.len), (ssize_t)text.len);
    text_free(&text);
}

/* Reads what the bus has written, up to a newline. */
static void hear(int fd, char *to, size_t size)
{
    size_t len = 0;

    while (len == 0 || to[len - 1] != '\n') {
        ck_assert_uint_lt(len, size - 1);
        ck_assert(wait_fd(fd, POLLIN, deadline_usual()));
        ck_assert_int_eq(read(fd, to + len, 1), 1);
        len++;
    }
    to[len - 1] = '\0';
}

static const char pools[] = "{'pools':[{'id':'pool','command':'@WORKER@','instances':1}]}";

TEST(embedded_worker_serves_a_socket)
{
    char line[256];
    int ends[2], id;

    embed_init_config(&embed, pools);
    embed_start(&embed);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    id = stdio_bus_register_embedded_worker(embed.bus, ends[0], ends[0], "inside");
    ck_assert_int_eq(id, 2);
    ck_assert_int_eq(stdio_bus_worker_count(embed.bus), 2);
    EMBED_SEND(&embed, "{'id':1,'pool':'inside','sessionId':'s','method':'m'}");
    hear(ends[1], line, sizeof line);
    ck_assert_ptr_nonnull(strstr(line, "\"method\":\"m\""));
    say(ends[1], "{'id':1,'sessionId':'s','result':'from inside'}");
    ck_assert(span_is(json_get(embed_message(&embed), "result"), "\"from inside\""));
    say(ends[1], "{'method':'note'}");
    ck_assert(span_is(json_get(embed_message(&embed), "method"), "\"note\""));
    EMBED_SEND(&embed, "{'id':2,'sessionId':'s','method':'m'}");
    ck_assert_int_eq(stdio_bus_unregister_embedded_worker(embed.bus, id), STDIO_BUS_OK);
    ck_assert_int_eq(stdio_bus_session_count(embed.bus), 0);
    ck_assert_int_eq(json_number(embed_message(&embed), "error.code"), -32000);
    ck_assert_int_eq(stdio_bus_unregister_embedded_worker(embed.bus, id), STDIO_BUS_OK);
    ck_assert_int_eq(stdio_bus_unregister_embedded_worker(embed.bus, 1), STDIO_BUS_ERR_INVALID);
    ck_assert_int_eq(stdio_bus_unregister_embedded_worker(embed.bus, 9), STDIO_BUS_ERR_INVALID);
    ck_assert_int_eq(embed_ingest(&embed, "{'id':3,'pool':'inside'}"), STDIO_BUS_ERR_ROUTING);
    hear(ends[1], line, sizeof line);
    ck_assert_int_eq(read(ends[1], line, 1), 0);
    close(ends[1]);
}

TEST(embedded_worker_serves_pipes_until_they_end)
{
    char line[256];
    int to[2], from[2];

    embed_init_config(&embed, pools);
    embed_start(&embed);
    ck_assert(pipe(to) == 0 && pipe(from) == 0);
    ck_assert_int_eq(stdio_bus_register_embedded_worker(embed.bus, to[1], from[0], "pool"), 2);
    embed_await(&embed, "worker 2 started");
    for (int i = 0; i < 2; i++) /* one of both goes to the other worker of the pool */
        EMBED_SEND(&embed, "{'id':%d,'method':'echo'}", i);
    hear(to[0], line, sizeof line);
    EMBED_UNTIL(&embed, embed.count == 1);
    ck_assert_int_eq(stdio_bus_pending_count(embed.bus), 1);
    close(from[1]);
    embed_await(&embed, "worker 2 stopped");
    ck_assert_int_eq(stdio_bus_pending_count(embed.bus), 0);
    ck_assert_int_eq(stdio_bus_worker_count(embed.bus), 1);
    close(to[0]);
    for (int i = 0; i < 4; i++)
        EMBED_SEND(&embed, "{'id':%d,'method':'echo'}", i + 2);
    EMBED_UNTIL(&embed, embed.count == 6);
}

TEST(embedded_workers_stop_with_the_bus)
{
    int ends[2];

    embed_init_config(&embed, pools);
    embed_start(&embed);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ck_assert_int_gt(stdio_bus_register_embedded_worker(embed.bus, ends[0], ends[0], "inside"), 0);
    ck_assert_int_eq(stdio_bus_stop(embed.bus, 1), STDIO_BUS_OK);
    EMBED_UNTIL(&embed, stdio_bus_get_state(embed.bus) == STDIO_BUS_STATE_STOPPED);
    close(ends[1]);
}

/* One round of a host that waits in stdio_bus_step alone: a poll_fd would wake the bus, too. */
static void step_without_poll_fd(int64_t deadline)
{
    ck_assert_msg(!deadline_over(deadline), "log:\n%s", embed.log.data);
    ck_assert_int_ge(stdio_bus_step(embed.bus, 10), 0);
}

TEST(client_learns_that_an_embedded_worker_has_left_between_rounds)
{
    struct daemon daemon = {.port = 0};
    struct client *client;
    char line[256];
    int64_t deadline = deadline_usual();
    int ends[2], id;

    snprintf(daemon.socket_path, sizeof daemon.socket_path, "%s/socket", test_dir());
    embed_init_config(&embed, pools);
    embed.options.listener.mode = STDIO_BUS_LISTEN_UNIX;
    embed.options.listener.unix_path = daemon.socket_path;
    embed.options.on_worker = NULL; /* the host itself gets no event of it */
    embed_start(&embed);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    id = stdio_bus_register_embedded_worker(embed.bus, ends[0], ends[0], "inside");
    client = client_connect(&daemon);
    client_send(client, "{\"id\":1,\"pool\":\"inside\",\"method\":\"m\"}");
    while (stdio_bus_pending_count(embed.bus) == 0)
        step_without_poll_fd(deadline);
    hear(ends[1], line, sizeof line);
    ck_assert_int_eq(stdio_bus_unregister_embedded_worker(embed.bus, id), STDIO_BUS_OK);
    ck_assert_int_ge(stdio_bus_step(embed.bus, -1), 0);
    client_error(client, "1", -32000, "worker exited before answering");
    client_close(client);
    close(ends[1]);
}

TEST(last_embedded_worker_leaves_a_bus_that_stops)
{
    int64_t deadline = deadline_usual();
    int ends[2], id;

    embed_init_config(&embed, pools);
    embed.options.on_worker = NULL;
    embed_start(&embed);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    id = stdio_bus_register_embedded_worker(embed.bus, ends[0], ends[0], "inside");
    ck_assert_int_eq(stdio_bus_stop(embed.bus, 3600), STDIO_BUS_OK);
    while (strstr(embed.log.data, "exited with") == NULL &&
           strstr(embed.log.data, "killed by") == NULL)
        step_without_poll_fd(deadline);
    ck_assert_int_eq(stdio_bus_unregister_embedded_worker(embed.bus, id), STDIO_BUS_OK);
    while (stdio_bus_get_state(embed.bus) != STDIO_BUS_STATE_STOPPED)
        ck_assert_int_ge(stdio_bus_step(embed.bus, -1), 0);
    close(ends[1]);
}

TEST(descriptors_stay_the_programs_after_an_error)
{
    int ends[2];

    embed_init_config(&embed, pools);
    embed_start(&embed);
    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(stdio_bus_register_embedded_worker(embed.bus, ends[1], 250, "inside"),
                     STDIO_BUS_ERR_INVALID);
    ck_assert_int_eq(stdio_bus_register_embedded_worker(embed.bus, ends[1], ends[0], ""),
                     STDIO_BUS_ERR_INVALID);
    close(ends[0]);
    close(ends[1]);
}
