#include "build_config.h"

#include "setup.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "suite.h"

#define CONFIG_FD 9
#define MAX_FDS 512

static const char *program(const char *variable, const char *fallback)
{
    const char *path = getenv(variable);
    return path != NULL && path[0] != '\0' ? path : fallback;
}

void daemon_expand(const struct daemon *daemon, struct text *to, const char *text)
{
    struct text part = {0};
    char worker[4096];
    const char *path = program("TEST_WORKER", "./test_worker");
    ck_assert_msg(realpath(path, worker) != NULL, "TEST_WORKER %s: %s", path, strerror(errno));
    text_add(&part, text, strlen(text));
    text_quote(&part, 0);
    text_replace(&part, "@WORKER@", worker);
    if (daemon != NULL)
        text_replace(&part, "@DIR@", daemon->dir);
    text_add(to, part.data, part.len);
    text_free(&part);
}

void setup_config(const struct setup *setup, const struct daemon *daemon, struct text *to)
{
    struct text text = {0};
    if (setup->config != NULL) {
        daemon_expand(daemon, to, setup->config);
        return;
    }
    if (setup->pools != NULL) {
        text_printf(&text, "{'pools':[%s]", setup->pools);
    } else {
        text_printf(&text,
                    "{'pools':[{'id':'pool','command':'@WORKER@','args':[%s],'instances':%u}]",
                    setup->args != NULL ? setup->args : "",
                    setup->instances > 0 ? setup->instances : 1);
    }
    if (setup->limits != NULL)
        text_printf(&text, ",'limits':{%s}", setup->limits);
    if (setup->members != NULL)
        text_printf(&text, ",%s", setup->members);
    text_printf(&text, "}\n");
    daemon_expand(daemon, to, text.data);
    text_free(&text);
}

/* Words are NUL-terminated runs in the storage, pointed at when all are there. */
static void add_word(struct command *command, const char *word)
{
    text_add(&command->storage, word, strlen(word) + 1);
}

static void add_expanded(struct command *command, const struct daemon *daemon, const char *word)
{
    struct text expanded = {0};
    daemon_expand(daemon, &expanded, word);
    add_word(command, expanded.data);
    text_free(&expanded);
}

static void add_wrapper(struct command *command)
{
    const char *rest = program("STDIO_BUS_WRAPPER", "");
    while (*rest != '\0') {
        size_t len = strcspn(rest, " ");
        if (len > 0) {
            text_add(&command->storage, rest, len);
            text_add(&command->storage, "", 1);
        }
        rest += len + (rest[len] == ' ' ? 1 : 0);
    }
}

static void point_at_words(struct command *command)
{
    size_t count = 0;
    char *at = command->storage.data, *end = at + command->storage.len;
    for (; at < end && count < 63; at += strlen(at) + 1)
        command->words[count++] = at;
}

static void add_mode(struct command *command, const struct setup *setup,
                     const struct daemon *daemon)
{
    if (setup->mode == SETUP_UNIX) {
        add_word(command, "--unix");
        add_word(command, daemon->socket_path);
    } else if (setup->mode == SETUP_TCP || setup->mode == SETUP_HTTP) {
        add_word(command, setup->mode == SETUP_TCP ? "--tcp" : "--http");
        add_word(command, setup->address != NULL ? setup->address : "127.0.0.1:0");
    } else if (!setup->default_mode) {
        add_word(command, "--stdio");
    }
}

void setup_command(const struct setup *setup, const struct daemon *daemon, struct command *command)
{
    char number[16];
    memset(command, 0, sizeof *command);
    add_wrapper(command);
    add_word(command, program("STDIO_BUS", "./stdio_bus"));
    if (setup->config_by_fd) {
        snprintf(number, sizeof number, "%d", CONFIG_FD);
        add_word(command, "--config-fd");
        add_word(command, number);
    } else if (!setup->no_config) {
        add_word(command, "--config");
        add_word(command, setup->config_path != NULL ? setup->config_path : daemon->config_path);
    }
    add_mode(command, setup, daemon);
    for (size_t i = 0; i < COUNT(setup->arguments) && setup->arguments[i] != NULL; i++)
        add_expanded(command, daemon, setup->arguments[i]);
    point_at_words(command);
}

void connect_command(const char *address, const char *const *words, struct command *command)
{
    memset(command, 0, sizeof *command);
    add_wrapper(command);
    add_word(command, program("STDIO_BUS", "./stdio_bus"));
    add_word(command, "--connect");
    add_word(command, address);
    for (; *words != NULL; words++)
        add_word(command, *words);
    point_at_words(command);
}

void command_free(struct command *command)
{
    text_free(&command->storage);
}

static void set_signals(bool dirty)
{
    sigset_t mask;
    sigemptyset(&mask);
    for (int signo = 1; signo < 32; signo++)
        signal(signo, SIG_DFL);
    if (dirty) {
        signal(SIGPIPE, SIG_IGN);
        signal(SIGUSR2, SIG_IGN);
        sigaddset(&mask, SIGUSR1);
        sigaddset(&mask, SIGCHLD);
        sigaddset(&mask, SIGTERM);
    }
    sigprocmask(SIG_SETMASK, &mask, NULL);
}

static void place(int from, int to)
{
    if (dup2(from, to) < 0)
        _exit(126);
}

/* sd_listen_fds(3), or tests/portable/launch.c */
static void pass_on(const struct setup *setup)
{
    char pid[16];
    place(setup->passed_fd, STDERR_FILENO + 1);
    if (setup->launch_name != NULL) {
        setenv("TEST_LAUNCH_SOCKET", setup->launch_name, 1);
        return;
    }
    snprintf(pid, sizeof pid, "%ld", (long)getpid());
    setenv("LISTEN_PID", pid, 1);
    setenv("LISTEN_FDS", "1", 1);
    if (setup->passed_name != NULL)
        setenv("LISTEN_FDNAMES", setup->passed_name, 1);
}

void setup_exec(const struct setup *setup, const struct daemon *daemon, int stdin_fd, int stdout_fd,
                int stderr_fd)
{
    struct command command;
    setup_command(setup, daemon, &command);
    place(stdin_fd, STDIN_FILENO);
    place(stdout_fd, STDOUT_FILENO);
    place(stderr_fd, STDERR_FILENO);
    if (setup->closed) {
        close(STDIN_FILENO);
        close(STDOUT_FILENO);
    }
    if (setup->passed_fd > 0)
        pass_on(setup);
    for (int fd = STDERR_FILENO + 1 + (setup->passed_fd > 0); fd < MAX_FDS; fd++)
        close(fd); /* libcheck's, and those of the program that started the tests */
    if (setup->config_by_fd) {
        int fd = open(daemon->config_path, O_RDONLY);
        place(fd, CONFIG_FD);
        if (fd != CONFIG_FD)
            close(fd);
    }
    if (setup->dirty)
        place(open("/dev/null", O_RDWR), 42);
    if (setup->max_fds > 0) {
        struct rlimit limit = {setup->max_fds, setup->max_fds};
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (setup->without_dev && !harness_empty_dev())
        _exit(126);
    set_signals(setup->dirty);
    execvp(command.words[0], command.words);
    fprintf(stderr, "%s: %s\n", command.words[0], strerror(errno));
    _exit(127);
}
