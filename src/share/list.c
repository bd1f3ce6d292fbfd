#include "build_config.h"

#include "share/list.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "base/exit_status.h"
#include "base/terminal.h"
#include "share/daemon.h"
#include "share/directory.h"
#include "share/exchange.h"
#include "share/greeting.h"
#include "share/identity.h"
#include "share/usage.h"
#include "json/document.h"
#include "json/text.h"

#define REPLY_MS 2000
#define COMMAND_MAX 4096    /* bytes that are shown */
#define COMMAND_TERMINAL 60 /* the same, where a line has an end */
#define DIFFERENCE_MAX 512

/* A daemon that has answered. */
struct shared {
    char base[DAEMON_BASE_MAX]; /* of its files */
    char *reply;
    struct document status; /* what the reply says */
};

struct found {
    struct shared *at;
    size_t count, capacity;
};

static const struct json_value *member_of(const struct shared *shared, const char *key,
                                          enum json_type type)
{
    const struct json_value *value = document_member(shared->status.root, key);

    return value != NULL && value->type == type ? value : NULL;
}

static int64_t number_of(const struct shared *shared, const char *key)
{
    return document_number(shared->status.root, key);
}

static struct slice identity_of(const struct shared *shared)
{
    const struct json_value *identity = member_of(shared, "identity", JSON_STRING);

    return identity != NULL ? identity->text : slice_of("", 0);
}

/* --- asking --- */

static void free_shared(struct shared *shared)
{
    document_free(&shared->status);
    free(shared->reply);
}

/* A daemon that was about to end is none. */
static void report_silence(const char *file)
{
    int error = errno;

    if (error != ECONNRESET && error != EPIPE && error != ECONNREFUSED && error != ENOENT)
        terminal_line(stderr, "stdio_bus: %s does not answer: %s", file, strerror(error));
}

static bool read_status(struct shared *shared, const char *file)
{
    struct document_error error;
    int status = document_read(&shared->status, slice_of(shared->reply, strlen(shared->reply)),
                               &error);

    if (status == STDIO_BUS_OK && shared->status.root->type == JSON_OBJECT)
        return true;
    terminal_line(stderr, "stdio_bus: %s does not answer as a daemon does: %s", file,
                  status == STDIO_BUS_ERR ? "out of memory" : shared->reply);
    return false;
}

/* False: nobody answers, or not as a daemon does; then the reason is on stderr. */
static bool ask(struct shared *shared, const char *file)
{
    const char *line = GREETING_STATUS "\n";
    int fd = exchange_connect(file, &line, 1);

    *shared = (struct shared){.reply = NULL};
    if (fd >= 0)
        shared->reply = exchange_read_reply(fd, REPLY_MS);
    if (shared->reply == NULL)
        report_silence(file);
    if (fd >= 0)
        close(fd);
    if (shared->reply == NULL)
        return false;
    snprintf(shared->base, sizeof shared->base, "%.*s", (int)(strlen(file) - strlen(DAEMON_SOCKET)),
             file);
    if (read_status(shared, file))
        return true;
    free_shared(shared);
    return false;
}

static bool is_socket(const char *file)
{
    size_t len = strlen(file), end = strlen(DAEMON_SOCKET);

    return len > end && strcmp(file + len - end, DAEMON_SOCKET) == 0;
}

/* NULL with errno 0: there are no more. */
static struct dirent *next_entry(DIR *directory)
{
    errno = 0;
    return readdir(directory);
}

/* STDIO_BUS_ERR with errno set. */
static int find(struct found *found)
{
    DIR *directory = opendir(".");
    struct dirent *entry;
    struct shared *grown;
    int error = 0;

    if (directory == NULL)
        return STDIO_BUS_ERR;
    while (error == 0 && (entry = next_entry(directory)) != NULL) {
        if (!is_socket(entry->d_name))
            continue;
        grown = array_grow(found->at, &found->capacity, found->count + 1, sizeof *found->at);
        if (grown == NULL) {
            error = ENOMEM;
            continue;
        }
        found->at = grown;
        if (ask(&found->at[found->count], entry->d_name))
            found->count++;
    }
    if (error == 0)
        error = errno; /* of readdir */
    closedir(directory);
    errno = error;
    return error == 0 ? STDIO_BUS_OK : STDIO_BUS_ERR;
}

static int by_age(const void *a, const void *b)
{
    int64_t x = number_of(a, "seconds"), y = number_of(b, "seconds");

    return (x < y) - (x > y);
}

/* --- printing --- */

/* The daemon's own process, and those of its workers with their children. */
static const char *write_usage(char *to, size_t size, const struct shared *shared,
                               const struct usage *usage)
{
    const struct json_value *workers = member_of(shared, "workers", JSON_ARRAY), *worker;
    long kib = usage_of_process(usage, (long)number_of(shared, "pid"));
    size_t processes = 0;
    int64_t group = 0;

    for (worker = workers != NULL ? workers->first : NULL; worker != NULL; worker = worker->next) {
        document_integer(worker, &group);
        kib += usage_of_group(usage, (long)group, &processes);
    }
    if (usage->count == 0)
        snprintf(to, size, "%9zu        -", workers != NULL ? workers->count : 0);
    else
        snprintf(to, size, "%9zu %5.1f MB", processes, (double)kib / 1024);
    return to;
}

static const char *write_age(char *to, size_t size, int64_t seconds)
{
    long long minutes = (long long)seconds / 60;

    if (minutes == 0)
        snprintf(to, size, "%lld s", (long long)seconds);
    else if (minutes < 60)
        snprintf(to, size, "%lld min", minutes);
    else if (minutes / 60 < 24)
        snprintf(to, size, "%lld h %lld min", minutes / 60, minutes % 60);
    else
        snprintf(to, size, "%lld d %lld h", minutes / 60 / 24, minutes / 60 % 24);
    return to;
}

static void print_line(const struct shared *shared, const struct usage *usage)
{
    char command[COMMAND_MAX], age[32], memory[64];

    identity_command(command, isatty(STDOUT_FILENO) ? COMMAND_TERMINAL : sizeof command,
                     identity_of(shared));
    terminal_line(stdout, "%-18s %7lld %7lld %s %10s  %s", shared->base,
                  (long long)number_of(shared, "pid"), (long long)number_of(shared, "clients"),
                  write_usage(memory, sizeof memory, shared, usage),
                  write_age(age, sizeof age, number_of(shared, "seconds")), command);
}

/* Whether an older daemon of `found` has the same command. */
static bool is_grouped(const struct found *found, size_t at)
{
    size_t i;

    for (i = 0; i < at; i++) {
        if (identity_same_command(identity_of(&found->at[i]), identity_of(&found->at[at])))
            return true;
    }
    return false;
}

/* The daemons that have the command of the one at `first`, which is the oldest of them. Returns
 * their number. */
static size_t print_group(const struct found *found, size_t first)
{
    char difference[DIFFERENCE_MAX] = "";
    struct slice oldest = identity_of(&found->at[first]);
    struct json_text names = {.data = NULL};
    size_t i, count = 1;

    json_text_literal(&names, found->at[first].base);
    for (i = first + 1; i < found->count; i++) {
        if (!identity_same_command(oldest, identity_of(&found->at[i])))
            continue;
        count++;
        json_text_literal(&names, ", ");
        json_text_literal(&names, found->at[i].base);
        identity_add_differences(difference, sizeof difference, oldest, identity_of(&found->at[i]));
    }
    if (names.failed)
        terminal_line(stderr, "stdio_bus: out of memory: not all names are shown");
    if (count > 1)
        terminal_line(stdout, "%.*s have the same command; what differs: %s", (int)names.len,
                      names.data != NULL ? names.data : "", difference);
    json_text_free(&names);
    return count;
}

/* Those that a user may have thought to be one. */
static void print_differences(const struct found *found)
{
    bool any = false;
    size_t i;

    for (i = 0; i < found->count; i++)
        any = (!is_grouped(found, i) && print_group(found, i) > 1) || any;
    if (any)
        terminal_line(stdout, "to share one: give each host the same in its \"env\", or name the "
                              "variables that count with --env");
}

static void print_failures(const struct found *found)
{
    const struct json_value *failure;
    size_t i;

    for (i = 0; i < found->count; i++) {
        failure = member_of(&found->at[i], "failure", JSON_STRING);
        if (failure != NULL)
            terminal_line(stdout, "%s does not start: %.*s", found->at[i].base,
                          (int)failure->text.len, failure->text.data);
    }
}

static void read_usage(struct usage *usage)
{
    if (usage_read(usage) != STDIO_BUS_OK)
        terminal_line(stderr, "stdio_bus: cannot learn the memory of processes: %s",
                      strerror(errno));
}

static void print_all(struct found *found, const char *directory)
{
    struct usage usage;
    size_t i;

    if (found->count == 0) {
        terminal_line(stdout, "nothing is shared");
        return;
    }
    qsort(found->at, found->count, sizeof *found->at, by_age);
    read_usage(&usage);
    terminal_line(stdout, "%-18s %7s %7s %9s %8s %10s  %s", "NAME", "PID", "CLIENTS", "PROCESSES",
                  "MEMORY", "RUNS FOR", "COMMAND");
    for (i = 0; i < found->count; i++)
        print_line(&found->at[i], &usage);
    print_failures(found);
    print_differences(found);
    terminal_line(stdout, "logs: %s/NAME" DAEMON_LOG, directory);
    usage_free(&usage);
}

int list_run(void)
{
    char directory[DIRECTORY_MAX], reason[DIRECTORY_REASON_MAX];
    struct found found = {.at = NULL};
    int status = directory_find(directory, reason);
    size_t i;

    if (status == STDIO_BUS_OK)
        status = directory_enter(directory, false, reason);
    if (status == STDIO_BUS_EINVAL) {
        terminal_line(stderr, "stdio_bus: %s", reason);
        return EXIT_OS_ERROR;
    }
    if (status == STDIO_BUS_OK)
        status = find(&found);
    if (status == STDIO_BUS_ERR)
        terminal_line(stderr, "stdio_bus: cannot read %s: %s", directory, strerror(errno));
    else
        print_all(&found, directory);
    for (i = 0; i < found.count; i++)
        free_shared(&found.at[i]);
    free(found.at);
    if (status == STDIO_BUS_ERR)
        return EXIT_OS_ERROR;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return EXIT_DONE;
    terminal_line(stderr, "stdio_bus: cannot write the list: %s", strerror(errno));
    return EXIT_OS_ERROR;
}
