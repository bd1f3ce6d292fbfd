#include "build_config.h"

#include "share/care.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/terminal.h"
#include "share/cache.h"
#include "share/greeting.h"

#define LOOK_MS 20        /* between two looks */
#define PATIENCE_MS 30000 /* more than a server takes to end and to start */
#define PIDS_MAX 128      /* bytes */

/* Writes the line. Always EXIT_NO_SERVER. */
__attribute__((format(printf, 2, 3))) static int say(char text[CARE_TEXT_MAX], const char *format,
                                                     ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(text, CARE_TEXT_MAX, format, args);
    va_end(args);
    return EXIT_NO_SERVER;
}

/* --- the name --- */

/* Of --share=NAME, without the version. */
static bool has_short_name(const struct share *share, const char *word)
{
    const char *at = strrchr(share->base, '@');

    return at != NULL && slice_is(slice_of(share->base, (size_t)(at - share->base)), word);
}

static bool has_pid(const struct share *share, const char *word)
{
    char pid[24];

    snprintf(pid, sizeof pid, "%lld", (long long)share_number(share, "pid"));
    return strcmp(pid, word) == 0;
}

/* As far as they fit. */
static void list_names(const struct shares *shares, const char *word, char text[CARE_TEXT_MAX])
{
    size_t len, i;

    say(text, "%.100s: ", word);
    len = strlen(text);
    if (shares->count == 0)
        snprintf(text + len, CARE_TEXT_MAX - len, "nothing is shared");
    else
        snprintf(text + len, CARE_TEXT_MAX - len, "no such server; there %s",
                 shares->count == 1 ? "is" : "are");
    for (i = 0; i < shares->count; i++) {
        len = strlen(text);
        snprintf(text + len, CARE_TEXT_MAX - len, "%s %s", i > 0 ? "," : "", shares->at[i].base);
    }
}

const struct share *care_find(const struct shares *shares, const char *word,
                              char text[CARE_TEXT_MAX])
{
    const struct share *found = NULL;
    size_t i, count = 0;

    for (i = 0; i < shares->count; i++) {
        const struct share *share = &shares->at[i];

        if (strcmp(share->base, word) == 0)
            return share;
        if (!has_short_name(share, word) && !has_pid(share, word))
            continue;
        found = share;
        count++;
    }
    if (count == 1)
        return found;
    list_names(shares, word, text);
    return NULL;
}

/* --- stop and restart --- */

static const char *plural(int64_t count)
{
    return count == 1 ? "" : "s";
}

static const struct json_value *workers_of(const struct share *share)
{
    const struct json_value *workers = share_member(share, "workers", JSON_ARRAY);

    return workers != NULL ? workers->first : NULL;
}

static bool is_in_state(const struct share *share, const char *name)
{
    const struct json_value *state = share_member(share, "state", JSON_STRING);

    return state != NULL && slice_is(state->text, name);
}

static bool has_process(const struct share *share, int64_t pid)
{
    const struct json_value *worker;
    int64_t other;

    for (worker = workers_of(share); worker != NULL; worker = worker->next) {
        if (document_integer(worker, &other) && other == pid)
            return true;
    }
    return false;
}

/* Whether a process of before runs. */
static bool has_any_process_of(const struct share *share, const struct share *before)
{
    const struct json_value *worker;
    int64_t pid;

    for (worker = workers_of(before); worker != NULL; worker = worker->next) {
        if (document_integer(worker, &pid) && has_process(share, pid))
            return true;
    }
    return false;
}

static const char *write_pids(char to[PIDS_MAX], const struct share *share)
{
    const struct json_value *worker;
    size_t len = 0;

    to[0] = '\0';
    for (worker = workers_of(share); worker != NULL && len < PIDS_MAX; worker = worker->next)
        len += (size_t)snprintf(to + len, PIDS_MAX - len, "%s%.*s", len > 0 ? ", " : "",
                                (int)worker->text.len, worker->text.data);
    return to;
}

/* Whether nothing more will come of it. Of a daemon that has ended `now` has no reply, nor of one
 * that could not be asked, for this reason. One that is about to end may answer yet, when its
 * processes are gone. */
static bool is_over(const struct share *before, enum care_act act, struct share *now, int *reason)
{
    bool runs;

    *reason = 0;
    if (!share_ask(now, before->base, GREETING_STATUS "\n")) {
        *reason = errno;
        share_free(now);
        return share_has_ended(*reason);
    }
    if (share_member(now, "stopping", JSON_BOOLEAN) != NULL)
        return false;
    runs = workers_of(now) != NULL;
    if (act == CARE_STOP)
        return !runs || (is_in_state(now, "awake") && !has_any_process_of(now, before));
    return !has_any_process_of(now, before) && (!runs || is_in_state(now, "awake"));
}

/* False: it takes too long, or the daemon cannot be asked, for this reason. */
static bool await(const struct share *before, enum care_act act, struct share *now, int *reason)
{
    int64_t until_ms = clock_now_ms() + PATIENCE_MS;

    while (!is_over(before, act, now, reason)) {
        if (clock_now_ms() > until_ms)
            return false;
        share_free(now);
        (void)poll(NULL, 0, LOOK_MS);
    }
    return true;
}

static int report_stop(const struct share *before, const struct share *now,
                       char text[CARE_TEXT_MAX])
{
    int64_t clients = share_number(before, "clients");

    if (now->reply != NULL)
        say(text, "%s: stopped; %lld client%s stay%s connected, and the next message starts it",
            before->base, (long long)clients, plural(clients), clients == 1 ? "s" : "");
    else if (clients == 0)
        say(text, "%s: stopped, and its daemon with it", before->base);
    else
        say(text, "%s: stopped, and its daemon with it; %lld client%s cannot outlive it",
            before->base, (long long)clients, plural(clients));
    return EXIT_DONE;
}

static int report_restart(const struct share *before, const struct share *now,
                          char text[CARE_TEXT_MAX])
{
    const struct json_value *failure;
    char pids[PIDS_MAX], old[PIDS_MAX];
    int64_t clients = share_number(before, "clients");
    size_t len;

    if (now->reply == NULL)
        return say(text, "%s: the daemon has ended", before->base);
    failure = share_member(now, "failure", JSON_STRING);
    if (failure != NULL && workers_of(now) == NULL)
        return say(text, "%s: does not start: %.*s", before->base, (int)failure->text.len,
                   failure->text.data);
    if (workers_of(now) == NULL) {
        say(text, "%s: no process runs; the next message starts one", before->base);
        return EXIT_DONE;
    }
    write_pids(old, before);
    say(text, "%s: restarted: process %s%s%s", before->base, write_pids(pids, now),
        *old != '\0' ? " in place of " : "", old);
    len = strlen(text);
    if (clients > 0)
        snprintf(text + len, CARE_TEXT_MAX - len, "; %lld client%s", (long long)clients,
                 clients == 1 ? " stays connected" : "s stay connected");
    return EXIT_DONE;
}

int care_act(const struct share *share, enum care_act act, char text[CARE_TEXT_MAX])
{
    const char *line = act == CARE_STOP ? GREETING_STOP "\n" : GREETING_RESTART "\n";
    struct share before, now;
    int status, reason;

    if (!share_ask(&before, share->base, line)) {
        status = say(text, "%s: the daemon does not answer: %s", share->base, strerror(errno));
        share_free(&before);
        return status;
    }
    if (!await(&before, act, &now, &reason))
        status = say(text, "%s: it was asked to %s, and %s%s", share->base,
                     act == CARE_STOP ? "stop" : "restart",
                     reason != 0 ? "does not answer any more: " : "is still busy with that",
                     reason != 0 ? strerror(reason) : "");
    else if (act == CARE_STOP)
        status = report_stop(&before, &now, text);
    else
        status = report_restart(&before, &now, text);
    share_free(&before);
    share_free(&now);
    return status;
}

/* --- what is remembered --- */

/* STDIO_BUS_ERR with a line in `text`: something is left. */
static int remove_files(const char *base, int *removed, char text[CARE_TEXT_MAX])
{
    char path[DIRECTORY_MAX], reason[DIRECTORY_REASON_MAX];
    int directory, status = cache_find(path, reason);

    *removed = 0;
    if (status == STDIO_BUS_OK)
        status = directory_open(&directory, path, false, reason);
    if (status == STDIO_BUS_OK) {
        *removed = cache_forget(directory, base);
        if (*removed < 0)
            snprintf(reason, sizeof reason, "%s", strerror(errno));
        descriptor_close(directory);
    }
    if (status == STDIO_BUS_ENOTFOUND || (status == STDIO_BUS_OK && *removed >= 0))
        return STDIO_BUS_OK;
    say(text, "%s: what it has answered cannot be removed: %s", base, reason);
    return STDIO_BUS_ERR;
}

/* Of a server that does not run: the name, or that of --share=NAME. */
static int forget_absent(const char *word, char text[CARE_TEXT_MAX])
{
    char base[DAEMON_BASE_MAX];
    int removed = 0, status = STDIO_BUS_OK;

    if (strchr(word, '/') != NULL || strlen(word) > SHARE_NAME_MAX)
        return EXIT_NO_SERVER;
    snprintf(base, sizeof base, "%s", word);
    status = remove_files(base, &removed, text);
    if (status == STDIO_BUS_OK && removed == 0) {
        snprintf(base, sizeof base, "%s@%s", word, PACKAGE_VERSION);
        status = remove_files(base, &removed, text);
    }
    if (status != STDIO_BUS_OK || removed == 0)
        return EXIT_NO_SERVER;
    say(text, "%s: what it has answered is forgotten; it does not run", base);
    return EXIT_DONE;
}

int care_forget(const struct shares *shares, const char *word, char text[CARE_TEXT_MAX])
{
    const struct share *share = care_find(shares, word, text);
    struct share now;
    bool answers;
    int removed;

    if (share == NULL)
        return forget_absent(word, text);
    answers = share_ask(&now, share->base, GREETING_FORGET "\n");
    if (!answers)
        say(text, "%s: the daemon does not answer: %s", share->base, strerror(errno));
    share_free(&now);
    if (!answers || remove_files(share->base, &removed, text) != STDIO_BUS_OK)
        return EXIT_NO_SERVER;
    say(text, "%s: what it has answered is forgotten; the server is asked again when it is started",
        share->base);
    return EXIT_DONE;
}

/* --- the log --- */

/* Reads from the offset to the end, which may move. NULL with errno set. */
static char *read_from(int fd, off_t offset)
{
    char *text = malloc(CARE_LOG_MAX + 1);
    size_t len = 0;
    ssize_t got = 1;

    while (text != NULL && got > 0 && len < CARE_LOG_MAX) {
        got = pread(fd, text + len, CARE_LOG_MAX - len, offset + (off_t)len);
        if (got < 0) {
            free(text);
            return NULL;
        }
        len += (size_t)got;
    }
    if (text != NULL)
        text[len] = '\0';
    return text;
}

/* NULL with errno set. */
static char *read_end(const char *file)
{
    int fd = open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), error;
    struct stat status;
    off_t offset = 0;
    char *text = NULL, *newline;

    if (fd < 0)
        return NULL;
    if (fstat(fd, &status) == 0) {
        if (status.st_size > (off_t)CARE_LOG_MAX)
            offset = status.st_size - (off_t)CARE_LOG_MAX;
        text = read_from(fd, offset);
    }
    error = errno;
    close(fd);
    errno = error;
    newline = text != NULL && offset > 0 ? strchr(text, '\n') : NULL;
    if (newline != NULL)
        memmove(text, newline + 1, strlen(newline + 1) + 1);
    return text;
}

char *care_read_log(const struct shares *shares, const char *word, char text[CARE_TEXT_MAX])
{
    const struct share *share = care_find(shares, word, text);
    char file[DAEMON_FILE_MAX], *log;

    if (share == NULL && (strchr(word, '/') != NULL || strlen(word) > SHARE_NAME_MAX))
        return NULL;
    snprintf(file, sizeof file, "%s" DAEMON_LOG, share != NULL ? share->base : word);
    log = read_end(file);
    if (log == NULL && share == NULL && errno == ENOENT) {
        snprintf(file, sizeof file, "%s@%s" DAEMON_LOG, word, PACKAGE_VERSION);
        log = read_end(file);
    }
    if (log == NULL && (share != NULL || errno != ENOENT))
        say(text, "cannot read %s: %s", file, strerror(errno));
    return log;
}

/* --- the options --- */

/* Returns EXIT_DONE, or EXIT_OS_ERROR after the reason was printed. */
static int find_shares(struct shares *shares)
{
    char directory[DIRECTORY_MAX], reason[DIRECTORY_REASON_MAX];

    if (shares_open(shares, directory, reason) == STDIO_BUS_OK)
        return EXIT_DONE;
    terminal_line(stderr, "stdio_bus: %s", reason);
    return EXIT_OS_ERROR;
}

static int end_output(int status)
{
    if (status == STDIO_BUS_OK && fflush(stdout) == 0)
        return EXIT_DONE;
    terminal_line(stderr, "stdio_bus: cannot write to stdout: %s", strerror(errno));
    return EXIT_OS_ERROR;
}

static int print(int status, const char *text)
{
    if (status == EXIT_DONE)
        return end_output(terminal_line(stdout, "%s", text));
    terminal_line(stderr, "stdio_bus: %s", text);
    return status;
}

int care_run(enum care_act act, const char *word)
{
    char text[CARE_TEXT_MAX];
    const struct share *share;
    struct shares shares = {.at = NULL};
    int status = find_shares(&shares);

    if (status == EXIT_DONE) {
        share = care_find(&shares, word, text);
        status = print(share != NULL ? care_act(share, act, text) : EXIT_NO_SERVER, text);
    }
    shares_free(&shares);
    return status;
}

int care_run_forget(const char *word)
{
    char text[CARE_TEXT_MAX];
    struct shares shares = {.at = NULL};
    int status = find_shares(&shares);

    if (status == EXIT_DONE)
        status = print(care_forget(&shares, word, text), text);
    shares_free(&shares);
    return status;
}

int care_run_log(const char *word)
{
    char text[CARE_TEXT_MAX], *log;
    struct shares shares = {.at = NULL};
    int status = find_shares(&shares);

    if (status == EXIT_DONE) {
        log = care_read_log(&shares, word, text);
        if (log != NULL) {
            status = end_output(terminal_lines(stdout, TERMINAL_TEXT, slice_of_text(log)));
        } else {
            terminal_line(stderr, "stdio_bus: %s", text);
            status = EXIT_NO_SERVER;
        }
        free(log);
    }
    shares_free(&shares);
    return status;
}
