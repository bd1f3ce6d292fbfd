#include "build_config.h"

#include "remote/tunnel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "config/command.h"
#include "process/process.h"
#include "remote/tunnel_words.h"

#define ATTEMPT_MS 30000 /* to connect and for the handshake */
#define RETRY_MS 50
#define TRY_MS 60000
#define END_MS 2
#define WORDS_MAX 40
#define WORDS_TEXT_MAX 8192

/* --- the words --- */

struct words {
    char *argv[WORDS_MAX + 1];
    size_t count, len;
    bool full;
    char text[WORDS_TEXT_MAX];
};

static void add_byte(struct words *words, char byte)
{
    words->full = words->full || words->len + 1 >= sizeof words->text;
    if (!words->full)
        words->text[words->len++] = byte;
}

static void begin_word(struct words *words)
{
    words->full = words->full || words->count == WORDS_MAX;
    if (!words->full)
        words->argv[words->count++] = words->text + words->len;
}

static void add_text(struct words *words, const char *text)
{
    while (*text != '\0')
        add_byte(words, *text++);
}

static void add_word(struct words *words, const char *text)
{
    begin_word(words);
    add_text(words, text);
    add_byte(words, '\0');
}

static void add_port(struct words *words, const struct remote_url *url)
{
    char port[8];

    snprintf(port, sizeof port, "%u", (unsigned)url->port);
    add_text(words, port);
}

/* The name is a word of its own, or a part of one: no shell sees it. */
static void add_named(struct words *words, const struct tunnel_command *command)
{
    const char *at = command->text;

    while (*(at += strspn(at, " \t")) != '\0') {
        begin_word(words);
        for (; *at != '\0' && *at != ' ' && *at != '\t'; at++) {
            if (at[0] == '%' && at[1] == 'h')
                add_text(words, command->url->host);
            else if (at[0] == '%' && at[1] == 'p')
                add_port(words, command->url);
            else
                add_byte(words, *at);
            at += at[0] == '%' && at[1] != '\0' && strchr("hp%", at[1]) != NULL;
        }
        add_byte(words, '\0');
    }
}

static void add_address(struct words *words, const struct remote_url *url)
{
    bool is_ipv6 = strchr(url->host, ':') != NULL;

    begin_word(words);
    add_text(words, is_ipv6 ? "[" : "");
    add_text(words, url->host);
    add_text(words, is_ipv6 ? "]:" : ":");
    add_port(words, url);
    add_byte(words, '\0');
}

static void add_proxy(struct words *words, const struct remote_proxy *proxy)
{
    if (!proxy->is_used)
        return;
    add_word(words, "-proxy");
    add_address(words, &proxy->url);
    if (proxy->user[0] == '\0')
        return;
    add_word(words, "-proxy_user");
    add_word(words, proxy->user);
    add_word(words, "-proxy_pass");
    add_word(words, "env:" TUNNEL_PASSWORD);
}

/* -ign_eof also turns off the commands of a line that begins with Q, R or another letter. */
static void add_openssl(struct words *words, const struct remote_url *url,
                        const struct remote_proxy *proxy)
{
    add_word(words, "openssl");
    add_word(words, "s_client");
    add_word(words, "-connect");
    add_address(words, url);
    add_word(words, url_has_address(url) ? "-verify_ip" : "-verify_hostname");
    add_word(words, url->host);
    if (url_has_address(url)) {
        add_word(words, "-noservername");
    } else {
        add_word(words, "-servername");
        add_word(words, url->host);
    }
    add_word(words, "-verify_return_error");
    add_word(words, "-brief");
    add_word(words, "-ign_eof");
    add_word(words, "-alpn");
    add_word(words, "http/1.1");
    add_proxy(words, proxy);
}

static void write_words(struct words *words, const struct tunnel_command *command)
{
    words->count = words->len = 0;
    words->full = false;
    if (command->text != NULL)
        add_named(words, command);
    else
        add_openssl(words, command->url, command->proxy);
    words->argv[words->count] = NULL;
}

static int spawn(struct process *process, struct words *words)
{
    const struct program program = {.argv = words->argv, .pipes_stderr = true};

    if (!words->full && words->count > 0)
        return process_spawn(process, &program);
    errno = words->full ? E2BIG : EINVAL;
    return STDIO_BUS_ERR;
}

/* --- trying --- */

static const char *cannot_run(char to[TUNNEL_REASON_MAX], const char *name, int error)
{
    snprintf(to, TUNNEL_REASON_MAX, "cannot run %.128s: %s%s", name, strerror(error),
             error == ENOENT ? "; --tls-command names a program that speaks TLS" : "");
    return to;
}

/* Reads what the program writes, and waits for its end. */
static const char *await_end(const struct process *process, char to[TUNNEL_REASON_MAX])
{
    struct pollfd ready = {.fd = process->fd_from, .events = POLLIN};
    char bytes[512];
    int status = 0, left = TRY_MS / RETRY_MS;
    ssize_t got;

    /* It is about to end when it has closed its stdout. */
    for (; left > 0 && (ready.fd >= 0 || !process_reap(process->pid, &status)); left--) {
        if (poll(&ready, 1, ready.fd >= 0 ? RETRY_MS : END_MS) <= 0)
            continue;
        got = read(process->fd_from, bytes, sizeof bytes);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
            ready.fd = -1;
    }
    if (left <= 0) {
        process_destroy(process->pid);
        snprintf(to, TUNNEL_REASON_MAX, "openssl does not answer");
        return to;
    }
    if (status == 0)
        return NULL;
    snprintf(to, TUNNEL_REASON_MAX,
             "this openssl is too old, or another one than OpenSSL (1.1.1 or later is needed): "
             "--tls-command names another program that speaks TLS");
    return to;
}

static const char *exec_failure(const struct process *process, const char *name,
                                char to[TUNNEL_REASON_MAX])
{
    struct pollfd ready = {.fd = process->fd_exec, .events = POLLIN};
    int error = 0, result;

    do {
        poll(&ready, 1, TRY_MS);
        result = process_exec_result(process->fd_exec, &error);
    } while (result == STDIO_BUS_EAGAIN);
    return result == STDIO_BUS_OK ? NULL : cannot_run(to, name, error);
}

/* openssl with all options and -help: its status is 0 if it knows them. */
static const char *try_openssl(struct words *words, char to[TUNNEL_REASON_MAX])
{
    struct process process;
    const char *problem;

    add_word(words, "-help");
    words->argv[words->count] = NULL;
    if (spawn(&process, words) != STDIO_BUS_OK)
        return cannot_run(to, "openssl", errno);
    problem = exec_failure(&process, "openssl", to);
    if (problem == NULL)
        problem = await_end(&process, to);
    else
        process_destroy(process.pid);
    close(process.fd_exec);
    close(process.fd_to);
    close(process.fd_from);
    close(process.fd_err);
    return problem;
}

/* Another program is only looked for, since what it would do is not known. */
const char *tunnel_try(const struct tunnel_command *command, char to[TUNNEL_REASON_MAX])
{
    const char *path = getenv("PATH");
    const struct command_place place = {.path = path != NULL ? path : COMMAND_SERVICE_PATH};
    char at[COMMAND_FILE_MAX];
    struct words words;
    int error;

    write_words(&words, command);
    if (words.full || words.count == 0)
        return cannot_run(to, "--tls-command", words.full ? E2BIG : EINVAL);
    if (command->text == NULL && command->proxy->user[0] != '\0' &&
        setenv(TUNNEL_PASSWORD, command->proxy->password, 1) != 0)
        return cannot_run(to, "openssl", errno);
    if (command->text == NULL)
        return try_openssl(&words, to);
    error = command_find(words.argv[0], &place, at);
    return error != 0 ? cannot_run(to, words.argv[0], error) : NULL;
}

/* --- an attempt --- */

static void close_watched(struct tunnel *tunnel, int *fd)
{
    if (*fd < 0)
        return;
    stdio_bus_event_loop_remove(tunnel->loop, *fd);
    descriptor_close(*fd);
    *fd = -1;
}

static void close_end(int *fd)
{
    if (*fd >= 0)
        descriptor_close(*fd);
    *fd = -1;
}

static void end_attempt(struct tunnel *tunnel)
{
    close_watched(tunnel, &tunnel->fd_err);
    close_watched(tunnel, &tunnel->fd_exec);
    close_end(&tunnel->fd_to);
    close_end(&tunnel->fd_from);
    if (tunnel->pid > 0)
        process_destroy(tunnel->pid);
    tunnel->pid = 0;
}

/* The timer reports the reason, or starts another attempt. */
static void fail_attempt(struct tunnel *tunnel, bool may_pass)
{
    bool again = may_pass && stdio_bus_event_loop_now_ms(tunnel->loop) < tunnel->until_ms;

    end_attempt(tunnel);
    tunnel->again = again;
    stdio_bus_event_loop_start_timer(tunnel->loop, &tunnel->timer, again ? RETRY_MS : 0);
}

static void report_ready(struct tunnel *tunnel)
{
    int fd_to = tunnel->fd_to, fd_from = tunnel->fd_from;

    tunnel->is_ready = true;
    tunnel->fd_to = tunnel->fd_from = -1;
    if (tunnel->command->text == NULL) { /* the summary of openssl */
        tunnel->said_len = 0;
        tunnel->said[0] = '\0';
    }
    stdio_bus_event_loop_stop_timer(tunnel->loop, &tunnel->timer);
    tunnel->fn(tunnel->user_data, fd_to, fd_from, NULL);
}

/* Keeps the end of what the program says, as text. False: it has closed its stderr. */
static bool take_words(struct tunnel *tunnel)
{
    const size_t half = TUNNEL_SAID_MAX / 2;
    char *end;
    ssize_t got;

    if (tunnel->said_len > half) {
        memmove(tunnel->said, tunnel->said + tunnel->said_len - half, half);
        tunnel->said_len = half;
    }
    end = tunnel->said + tunnel->said_len;
    got = read(tunnel->fd_err, end, half);
    for (ssize_t i = 0; i < got; i++) {
        if (end[i] == '\0')
            end[i] = ' ';
    }
    if (got > 0)
        tunnel->said_len += (size_t)got;
    tunnel->said[tunnel->said_len] = '\0';
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
}

static void stderr_readable(void *user_data, unsigned events)
{
    struct tunnel *tunnel = user_data;
    bool more = take_words(tunnel);
    int error = 0;

    (void)events;
    if (!more)
        close_watched(tunnel, &tunnel->fd_err);
    if (tunnel->is_ready || tunnel->command->text != NULL)
        return;
    if (tunnel_words_ready(tunnel->said)) {
        report_ready(tunnel);
    } else if (!more) {
        if (tunnel->fd_exec >= 0 && process_exec_result(tunnel->fd_exec, &error) == STDIO_BUS_ERR)
            cannot_run(tunnel->reason, "openssl", error);
        else if (!tunnel_words_reason(tunnel->said, tunnel->reason, sizeof tunnel->reason))
            snprintf(tunnel->reason, sizeof tunnel->reason, "openssl has ended without a reason");
        fail_attempt(tunnel, tunnel_words_absent(tunnel->said));
    }
}

static void exec_readable(void *user_data, unsigned events)
{
    struct tunnel *tunnel = user_data;
    int error = 0, result = process_exec_result(tunnel->fd_exec, &error);

    (void)events;
    if (result == STDIO_BUS_EAGAIN)
        return;
    close_watched(tunnel, &tunnel->fd_exec);
    if (result != STDIO_BUS_OK) {
        cannot_run(tunnel->reason, tunnel->command->text != NULL ? "--tls-command" : "openssl",
                   error);
        fail_attempt(tunnel, false);
    } else if (tunnel->command->text != NULL) {
        report_ready(tunnel);
    }
}

static int watch(struct tunnel *tunnel, int *to, int fd, stdio_bus_event_fn *fn)
{
    if (stdio_bus_event_loop_add(tunnel->loop, fd, STDIO_BUS_EVENT_READ, fn, tunnel) !=
        STDIO_BUS_OK) {
        descriptor_close(fd);
        return STDIO_BUS_ERR;
    }
    *to = fd;
    return STDIO_BUS_OK;
}

static void start_attempt(struct tunnel *tunnel)
{
    struct words words;
    struct process process;
    int code;

    tunnel->said_len = 0;
    tunnel->said[0] = '\0';
    write_words(&words, tunnel->command);
    code = spawn(&process, &words);
    if (code == STDIO_BUS_OK) {
        tunnel->pid = process.pid;
        tunnel->fd_to = process.fd_to;
        tunnel->fd_from = process.fd_from;
        code = watch(tunnel, &tunnel->fd_err, process.fd_err, stderr_readable);
        if (code != STDIO_BUS_OK)
            descriptor_close(process.fd_exec);
        else
            code = watch(tunnel, &tunnel->fd_exec, process.fd_exec, exec_readable);
    }
    if (code != STDIO_BUS_OK) {
        cannot_run(tunnel->reason, words.count > 0 ? words.argv[0] : "--tls-command", errno);
        fail_attempt(tunnel, false);
        return;
    }
    snprintf(tunnel->reason, sizeof tunnel->reason, "the TLS handshake takes too long");
    stdio_bus_event_loop_start_timer(tunnel->loop, &tunnel->timer, ATTEMPT_MS);
}

/* --- all of them --- */

/* The attempt takes too long; or it failed; or it is time for another one. */
static void timer_expired(void *user_data)
{
    struct tunnel *tunnel = user_data;

    if (tunnel->again) {
        tunnel->again = false;
        start_attempt(tunnel);
        return;
    }
    end_attempt(tunnel);
    tunnel->fn(tunnel->user_data, -1, -1, tunnel->reason);
}

void tunnel_start(struct tunnel *tunnel)
{
    tunnel->fd_to = tunnel->fd_from = tunnel->fd_err = tunnel->fd_exec = -1;
    timer_init(&tunnel->timer, timer_expired, tunnel);
    start_attempt(tunnel);
}

void tunnel_stop(struct tunnel *tunnel)
{
    if (tunnel->loop == NULL)
        return;
    end_attempt(tunnel);
    stdio_bus_event_loop_stop_timer(tunnel->loop, &tunnel->timer);
}

const char *tunnel_failure(const struct tunnel *tunnel)
{
    bool waits = tunnel->loop != NULL && timer_started(&tunnel->timer);

    return waits && tunnel->pid == 0 ? tunnel->reason : NULL;
}

const char *tunnel_last_words(struct tunnel *tunnel, char to[TUNNEL_REASON_MAX])
{
    if (tunnel->loop == NULL)
        return NULL;
    if (tunnel->fd_err >= 0)
        take_words(tunnel);
    return tunnel_words_reason(tunnel->said, to, TUNNEL_REASON_MAX) ? to : NULL;
}
