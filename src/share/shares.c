#include "build_config.h"

#include "share/shares.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/error.h"
#include "base/terminal.h"
#include "share/exchange.h"
#include "share/greeting.h"
#include "share/identity.h"

#define REPLY_MS 2000

const struct json_value *share_member(const struct share *share, const char *key,
                                      enum json_type type)
{
    return document_member_of(share->status.root, key, type);
}

int64_t share_number(const struct share *share, const char *key)
{
    return document_number(share->status.root, key);
}

void share_write_text(struct json_text *text, const struct share *share, const char *key)
{
    const struct json_value *value = share_member(share, key, JSON_STRING);

    row_slice(text, key, value != NULL ? value->text : slice_of(NULL, 0));
}

struct slice share_identity(const struct share *share)
{
    const struct json_value *identity = share_member(share, "identity", JSON_STRING);

    return identity != NULL ? identity->text : slice_of("", 0);
}

/* --- asking --- */

void share_free(struct share *share)
{
    document_free(&share->status);
    free(share->reply);
    share->reply = NULL;
}

static bool read_status(struct share *share)
{
    struct document_error error;
    int status = document_read(&share->status, slice_of_text(share->reply), &error);

    if (status == STDIO_BUS_OK && share->status.root->type == JSON_OBJECT)
        return true;
    errno = status == STDIO_BUS_ERR ? ENOMEM : EBADMSG;
    return false;
}

bool share_ask(struct share *share, const char *base, const char *line)
{
    char file[DAEMON_FILE_MAX];

    *share = (struct share){.reply = NULL};
    snprintf(share->base, sizeof share->base, "%s", base);
    snprintf(file, sizeof file, "%s" DAEMON_SOCKET, share->base);
    share->reply = exchange_ask(file, line, REPLY_MS);
    return share->reply != NULL && read_status(share);
}

bool share_has_ended(int error)
{
    return error == ECONNRESET || error == EPIPE || error == ECONNREFUSED || error == ENOENT;
}

/* Then nothing is known about the other program. */
static bool is_own_lack(int error)
{
    return error == ENOMEM || error == ENOBUFS || error == EMFILE || error == ENFILE;
}

/* A daemon that was about to end is none. */
static void report_silence(const struct share *share, const char *file)
{
    int error = errno;

    if (share->reply != NULL && error == EBADMSG)
        terminal_line(stderr, "stdio_bus: %s does not answer as a daemon does: %s", file,
                      share->reply);
    else if (!share_has_ended(error) && !is_own_lack(error))
        terminal_line(stderr, "stdio_bus: %s does not answer: %s", file, strerror(error));
}

/* False with errno set: the daemon gave no status. The reason is on stderr where shares_find prints
 * it. */
static bool ask(struct share *share, const char *file, bool is_quiet)
{
    char base[DAEMON_BASE_MAX];
    int error;

    snprintf(base, sizeof base, "%.*s", (int)(strlen(file) - strlen(DAEMON_SOCKET)), file);
    if (share_ask(share, base, GREETING_STATUS "\n"))
        return true;
    error = errno;
    if (!is_quiet)
        report_silence(share, file);
    share_free(share);
    errno = error;
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
static int find_sockets(struct shares *found)
{
    DIR *directory = opendir(".");
    struct dirent *entry;
    struct share *grown;
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
        if (ask(&found->at[found->count], entry->d_name, found->is_quiet))
            found->count++;
        else if (is_own_lack(errno))
            error = errno;
    }
    if (error == 0)
        error = errno; /* of readdir */
    closedir(directory);
    errno = error;
    return error == 0 ? STDIO_BUS_OK : STDIO_BUS_ERR;
}

/* --- all of them --- */

static int by_age(const void *a, const void *b)
{
    int64_t x = share_number(a, "seconds"), y = share_number(b, "seconds");

    return (x < y) - (x > y);
}

int shares_open(struct shares *shares, char directory[DIRECTORY_MAX],
                char reason[DIRECTORY_REASON_MAX])
{
    int status = directory_find(directory, reason);

    if (status == STDIO_BUS_OK)
        status = directory_enter(directory, false, reason);
    if (status == STDIO_BUS_ENOTFOUND)
        return STDIO_BUS_OK;
    if (status == STDIO_BUS_OK && shares_find(shares) != STDIO_BUS_OK) {
        snprintf(reason, DIRECTORY_REASON_MAX, "cannot read the directory of shared servers: %s",
                 strerror(errno));
        status = STDIO_BUS_ERR;
    }
    return status;
}

int shares_find(struct shares *shares)
{
    int status = find_sockets(shares);

    if (status == STDIO_BUS_OK && shares->count > 0)
        qsort(shares->at, shares->count, sizeof *shares->at, by_age);
    return status;
}

void shares_free(struct shares *shares)
{
    size_t i;

    for (i = 0; i < shares->count; i++)
        share_free(&shares->at[i]);
    free(shares->at);
    *shares = (struct shares){.at = NULL};
}

long share_usage(const struct share *share, const struct usage *usage, size_t *processes)
{
    const struct json_value *workers = share_member(share, "workers", JSON_ARRAY), *worker;
    long kib = usage_of_process(usage, (long)share_number(share, "pid"));
    int64_t group = 0;

    *processes = 0;
    for (worker = workers != NULL ? workers->first : NULL; worker != NULL; worker = worker->next) {
        document_integer(worker, &group);
        kib += usage_of_group(usage, (long)group, processes);
    }
    if (usage->count > 0)
        return kib;
    *processes = workers != NULL ? workers->count : 0;
    return -1;
}

size_t shares_alike(const struct shares *shares, size_t first, size_t from)
{
    while (from < shares->count && !identity_same_command(share_identity(&shares->at[first]),
                                                          share_identity(&shares->at[from])))
        from++;
    return from;
}

#define WEEK_SEC (7L * 24 * 60 * 60)

/* The file of a daemon, and how long its name is without the ending. False: it is another file. */
static bool base_length(const char *file, const char *ending, size_t *len)
{
    size_t all = strlen(file), end = strlen(ending);

    *len = all > end ? all - end : 0;
    return *len > 0 && *len < DAEMON_BASE_MAX && strcmp(file + *len, ending) == 0;
}

/* A clock that was set back makes it young. */
static bool is_old(const char *file)
{
    struct stat status;

    return lstat(file, &status) == 0 && status.st_mtime < time(NULL) - WEEK_SEC;
}

/* A daemon may have run for more than a week. */
static bool has_daemon(const char *file)
{
    const char *line = GREETING_STATUS "\n";
    int fd = exchange_connect(file, &line, 1);

    if (fd < 0)
        return errno != ENOENT && errno != ECONNREFUSED;
    close(fd);
    return true;
}

static void look_at(const char *file)
{
    char socket[DAEMON_FILE_MAX];
    size_t len;

    if (!base_length(file, DAEMON_SOCKET, &len) && !base_length(file, DAEMON_LOG, &len))
        return;
    snprintf(socket, sizeof socket, "%.*s" DAEMON_SOCKET, (int)len, file);
    if (is_old(file) && !has_daemon(socket))
        (void)unlink(file);
}

void tidy_directory(void)
{
    DIR *directory = opendir(".");
    const struct dirent *entry;

    if (directory == NULL)
        return;
    while ((entry = readdir(directory)) != NULL)
        look_at(entry->d_name);
    closedir(directory);
}
