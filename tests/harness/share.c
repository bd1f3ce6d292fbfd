#include "build_config.h"

#include "share.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "deadline.h"
#include "proc.h"
#include "setup.h"
#include "suite.h"

static char runtime_dir[160], dir[176];

/* --- the daemons --- */

static int connect_socket(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_ge(fd, 0);
    int len = snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", dir, name);
    ck_assert_int_lt(len, (int)sizeof address.sun_path);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

struct client *share_connect(const char *name)
{
    int fd = connect_socket(test_format("%s@%s.sock", name, PACKAGE_VERSION));
    ck_assert_int_ge(fd, 0);
    return client_adopt(fd, fd);
}

/* The process that answers at the socket, or 0. */
static pid_t ask_pid(const char *name)
{
    static const char line[] = "{\"stdio_bus\":\"status\"}\n";
    struct text reply = {0};
    char *room;
    ssize_t got = 0;
    int fd = connect_socket(name);
    if (fd < 0)
        return 0;
    if (write(fd, line, sizeof line - 1) == (ssize_t)sizeof line - 1) {
        do {
            room = text_room(&reply, 4096);
            got = read(fd, room, 4096);
            if (got > 0) {
                reply.len += (size_t)got;
                reply.data[reply.len] = '\0';
            }
        } while (got > 0);
    }
    close(fd);
    long pid = reply.len > 0 ? json_number((struct span){reply.data, reply.len}, "pid") : 0;
    text_free(&reply);
    return pid > 0 ? (pid_t)pid : 0;
}

static bool ends_with(const char *name, const char *end)
{
    size_t len = strlen(name), end_len = strlen(end);
    return len > end_len && strcmp(name + len - end_len, end) == 0;
}

size_t share_daemons(pid_t *pids, size_t max)
{
    DIR *entries = opendir(share_dir());
    struct dirent *entry;
    size_t count = 0;
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        pid_t pid = ends_with(entry->d_name, ".sock") ? ask_pid(entry->d_name) : 0;
        if (pid > 0 && count < max)
            pids[count++] = pid;
    }
    if (entries != NULL)
        closedir(entries);
    return count;
}

pid_t share_daemon(void)
{
    pid_t pids[8];
    size_t count = share_daemons(pids, COUNT(pids));
    ck_assert_uint_eq(count, 1);
    return pids[0];
}

size_t share_logged(const char *pattern)
{
    DIR *entries = opendir(share_dir());
    struct dirent *entry;
    size_t count = 0;
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        struct text log = {0};
        char *line, *rest;
        if (!ends_with(entry->d_name, ".log") ||
            !read_file(&log, test_format("%s/%s", dir, entry->d_name)))
            continue;
        for (line = log.data; line != NULL && *line != '\0'; line = rest) {
            rest = strchr(line, '\n');
            if (rest != NULL)
                *rest++ = '\0';
            count += text_matches(line, pattern);
        }
        text_free(&log);
    }
    if (entries != NULL)
        closedir(entries);
    return count;
}

/* Where this process adopts orphans, it is a child. */
static bool is_gone(pid_t pid)
{
    return waitpid(pid, NULL, WNOHANG) == pid || (kill(pid, 0) != 0 && errno == ESRCH);
}

void share_wait_gone(pid_t pid)
{
    WAIT_UNTIL(is_gone(pid), "process %ld does not end", (long)pid);
}

static void end_daemons(void *unused)
{
    pid_t pids[16];
    size_t count;
    (void)unused;
    while ((count = share_daemons(pids, COUNT(pids))) > 0) {
        for (size_t i = 0; i < count; i++) {
            kill(pids[i], SIGTERM);
            share_wait_gone(pids[i]);
        }
    }
    harness_remove_dir(dir);
    harness_remove_dir(runtime_dir);
}

const char *share_dir(void)
{
    if (dir[0] != '\0')
        return dir;
    harness_adopt_orphans();
    harness_make_dir(runtime_dir, sizeof runtime_dir);
    snprintf(dir, sizeof dir, "%s/stdio_bus", runtime_dir);
    harness_at_end(end_daemons, NULL);
    return dir;
}

/* --- the clients --- */

/* Of sockets, and of what is remembered. */
static void set_directories(void)
{
    setenv("XDG_RUNTIME_DIR", runtime_dir, 1);
    setenv("XDG_CACHE_HOME", runtime_dir, 1);
}

static void set_environment(const struct share_setup *setup)
{
    set_directories();
    for (size_t i = 0; i < COUNT(setup->env) && setup->env[i] != NULL; i++) {
        char name[64];
        const char *equals = strchr(setup->env[i], '=');
        snprintf(name, sizeof name, "%.*s", (int)strcspn(setup->env[i], "="), setup->env[i]);
        if (equals != NULL)
            setenv(name, equals + 1, 1);
        else
            unsetenv(name);
    }
}

__attribute__((noreturn)) static void run(const struct share_setup *setup, char *const words[],
                                          const int fds[3])
{
    for (int i = 0; i < 3; i++) {
        if (dup2(fds[i], i) < 0)
            _exit(126);
    }
    for (int fd = 3; fd < 256; fd++)
        close(fd);
    if (setup != NULL && setup->cwd != NULL && chdir(setup->cwd) != 0)
        _exit(126);
    if (setup != NULL)
        set_environment(setup);
    else
        set_directories();
    for (int signo = 1; signo < 32; signo++)
        signal(signo, SIG_DFL);
    execvp(words[0], words);
    _exit(127);
}

/* The sequence of words, wrapper included; lives until the test ends. */
static char *const *words_of(const char *const words[])
{
    struct command command;
    char **all = calloc(64, sizeof *all);
    size_t count = 0, i;
    ck_assert_ptr_nonnull(all);
    harness_at_end(free, all);
    connect_command("", &(const char *){NULL}, &command); /* the wrapper and the program */
    for (i = 0; strcmp(command.words[i], "--connect") != 0; i++)
        all[count++] = (char *)(void *)test_format("%s", command.words[i]);
    command_free(&command);
    for (i = 0; words[i] != NULL; i++)
        all[count++] = (char *)(void *)words[i];
    return all;
}

static char *const *share_words(const struct share_setup *setup)
{
    const char *words[32], *worker = getenv("TEST_WORKER");
    size_t count = 0, i;
    words[count++] = setup->share != NULL ? setup->share : "--share";
    if (!setup->whole) {
        words[count++] = "--idle-exit";
        words[count++] = setup->idle_exit != NULL ? setup->idle_exit : "20";
    }
    for (i = 0; i < COUNT(setup->arguments) && setup->arguments[i] != NULL; i++)
        words[count++] = setup->arguments[i];
    if (!setup->whole)
        words[count++] = "--";
    for (i = 0; i < COUNT(setup->command) && setup->command[i] != NULL; i++)
        words[count++] = setup->command[i];
    if (i == 0 && !setup->whole)
        words[count++] = worker != NULL ? worker : "./test_worker";
    words[count] = NULL;
    return words_of(words);
}

static void end_sharer(void *object)
{
    struct sharer *sharer = object;
    if (sharer->pid > 0) {
        kill(sharer->pid, SIGKILL);
        waitpid(sharer->pid, NULL, 0);
    }
    free(sharer);
}

struct sharer *share_with(const struct share_setup *setup)
{
    struct sharer *sharer = calloc(1, sizeof *sharer);
    char *const *words;
    int in[2], out[2], errors;
    ck_assert_ptr_nonnull(sharer);
    share_dir();
    harness_at_end(end_sharer, sharer);
    words = share_words(setup);
    sharer->stderr_path = test_format("%s/stderr", test_dir());
    errors = open(sharer->stderr_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    ck_assert_int_ge(errors, 0);
    ck_assert_int_eq(pipe(in), 0);
    ck_assert_int_eq(pipe(out), 0);
    sharer->pid = fork();
    ck_assert_int_ge(sharer->pid, 0);
    if (sharer->pid == 0)
        run(setup, words, (int[]){in[0], out[1], errors});
    close(in[0]);
    close(out[1]);
    close(errors);
    sharer->client = client_adopt(out[0], in[1]);
    return sharer;
}

void share_expect_exit(struct sharer *sharer, int expected)
{
    int status = 0;
    pid_t reaped;
    WAIT_UNTIL((reaped = waitpid(sharer->pid, &status, WNOHANG)) != 0, "--share does not exit");
    ck_assert_int_eq(reaped, sharer->pid);
    sharer->pid = 0;
    ck_assert_msg(WIFEXITED(status), "status %d", status);
    ck_assert_msg(WEXITSTATUS(status) == expected, "exit status %d, not %d: %s",
                  WEXITSTATUS(status), expected, share_errors(sharer));
}

void share_finish(struct sharer *sharer)
{
    client_half_close(sharer->client);
    client_expect_eof(sharer->client);
    share_expect_exit(sharer, 0);
}

const char *share_errors(const struct sharer *sharer)
{
    struct text *text = test_text();
    read_file(text, sharer->stderr_path);
    return text->data != NULL ? text->data : "";
}

pid_t share_start(const char *const words[])
{
    char *const *all = words_of(words);
    int null = open("/dev/null", O_RDWR);
    pid_t pid;
    share_dir();
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        run(NULL, all, (int[]){null, null, null});
    close(null);
    return pid;
}

const char *share_run(const char *const words[], int expected)
{
    struct text *text = test_text();
    char *const *all = words_of(words);
    int out[2], null = open("/dev/null", O_RDWR), status = 0;
    ssize_t got;
    pid_t pid;
    share_dir();
    ck_assert_int_eq(pipe(out), 0);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        run(NULL, all, (int[]){null, out[1], STDERR_FILENO});
    close(out[1]);
    close(null);
    while ((got = read(out[0], text_room(text, 4096), 4096)) > 0)
        text->len += (size_t)got;
    text_add(text, "", 0);
    close(out[0]);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), expected);
    return text->data != NULL ? text->data : "";
}
