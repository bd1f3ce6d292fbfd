#include "build_config.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/control_link.h"
#include "config/rmp_keys.h"
#include "doctor/examinations.h"
#include "share/daemon.h"
#include "share/directory.h"
#include "share/exchange.h"
#include "share/greeting.h"

#define OTHERS 077
#define REPLY_MS 2000
#define TYPICAL_NAME "/0123456789abcdef.sock"
#define CONTROL ".control"

/* --- the directory --- */

static void report_length(struct doctor *doctor, const char *directory)
{
    size_t len = strlen(directory) + sizeof TYPICAL_NAME - 1;

    if (len < RMP_SOCKET_MAX)
        return;
    doctor_cure(doctor, "set XDG_RUNTIME_DIR to a shorter directory of mode 0700, or name shorter "
                        "paths with --unix, --control and --rmp");
    doctor_find(doctor, DOCTOR_WARNING,
                "%s: a socket in it has a path of some %zu bytes, and at most %zu can be used; "
                "--share works nevertheless",
                directory, len, RMP_SOCKET_MAX - 1);
}

/* Whether the directory could be made: the nearest one above it that is there. */
static void look_above(struct doctor *doctor, const char *directory)
{
    char above[DIRECTORY_MAX];
    char *slash;

    snprintf(above, sizeof above, "%s", directory);
    do {
        slash = strrchr(above, '/');
        if (slash != NULL)
            slash[slash == above] = '\0';
    } while (slash > above && access(above, F_OK) != 0);
    if (access(above, W_OK | X_OK) == 0) {
        doctor_find(doctor, DOCTOR_OK, "%s will be made when it is needed", directory);
        return;
    }
    doctor_cure(doctor, "make it, with mode 0700, or set XDG_RUNTIME_DIR to a directory of yours");
    doctor_find(doctor, DOCTOR_ERROR, "%s is not there, and cannot be made in %s: %s", directory,
                above, strerror(errno));
}

static void look_at_rights(struct doctor *doctor, const char *directory, const struct stat *status)
{
    unsigned mode = (unsigned)status->st_mode & 07777;

    if (S_ISLNK(status->st_mode)) {
        doctor_cure(doctor, "rm '%s': --share makes the directory", directory);
        doctor_find(doctor, DOCTOR_ERROR, "%s is a symbolic link, which is not followed",
                    directory);
    } else if (!S_ISDIR(status->st_mode)) {
        doctor_cure(doctor, "rm '%s': --share makes the directory", directory);
        doctor_find(doctor, DOCTOR_ERROR, "%s is no directory", directory);
    } else if (status->st_uid != geteuid()) {
        doctor_cure(doctor, "set XDG_RUNTIME_DIR to a directory of yours: is this a shell of sudo "
                            "or su?");
        doctor_find(doctor, DOCTOR_ERROR, "%s belongs to another user (uid %ld)", directory,
                    (long)status->st_uid);
    } else if ((mode & OTHERS) != 0 || (mode & 0700) != 0700) {
        doctor_cure(doctor, "chmod 700 '%s'", directory);
        doctor_find(doctor, DOCTOR_ERROR, "%s has the mode %04o, and not 0700", directory, mode);
    } else {
        doctor_find(doctor, DOCTOR_OK, "%s", directory);
    }
}

static void look_at_rmp(struct doctor *doctor)
{
    char path[RMP_SOCKET_MAX], reason[RMP_SOCKET_REASON_MAX];

    if (rmp_socket_find(path, &(struct rmp_place){NULL, NULL, NULL}, reason) == STDIO_BUS_OK)
        return;
    doctor_cure(doctor, "name another one: --rmp PATH");
    doctor_find(doctor, DOCTOR_WARNING, "the socket of --rmp: %s", reason);
}

void doctor_sockets(struct doctor *doctor)
{
    char directory[DIRECTORY_MAX], reason[DIRECTORY_REASON_MAX];
    struct stat status;

    look_at_rmp(doctor);
    if (directory_find(directory, reason) != STDIO_BUS_OK) {
        doctor_cure(doctor, "set HOME or XDG_RUNTIME_DIR to a directory of yours");
        doctor_find(doctor, DOCTOR_ERROR, "%s", reason);
        return;
    }
    report_length(doctor, directory);
    if (lstat(directory, &status) == 0)
        look_at_rights(doctor, directory, &status);
    else if (errno == ENOENT || errno == ENOTDIR)
        look_above(doctor, directory);
    else
        doctor_cannot_look(doctor, directory);
}

/* --- daemons --- */

static void report_stranger(struct doctor *doctor, const char *file)
{
    doctor_cure(doctor, "end the program that listens there");
    doctor_find(doctor, DOCTOR_WARNING, "%s belongs to another program", file);
}

/* What another program says may be anything: none of it becomes a process to kill. */
static void judge(struct doctor *doctor, const char *file, const struct json_value *status)
{
    const struct json_value *version = document_member_of(status, "version", JSON_STRING);
    long long pid = (long long)document_number(status, "pid");

    if (pid <= 0) {
        report_stranger(doctor, file);
    } else if (document_member(status, "failure") != NULL) {
        doctor_cure(doctor, "stdio_bus --list says why");
        doctor_find(doctor, DOCTOR_ERROR, "%s: the server of process %lld does not start", file,
                    pid);
    } else if (version == NULL || strcmp(version->text.data, PACKAGE_VERSION) != 0) {
        doctor_cure(doctor, "end it when nothing uses it: kill %lld", pid);
        doctor_find(doctor, DOCTOR_WARNING, "%s: process %lld is version %s, this is %s", file, pid,
                    version != NULL ? version->text.data : "unknown", PACKAGE_VERSION);
    } else {
        doctor_find(doctor, DOCTOR_OK, "%s: process %lld", file, pid);
    }
}

static void judge_silence(struct doctor *doctor, const char *file)
{
    if (errno == ECONNREFUSED) {
        doctor_cure(doctor, "nothing: the next daemon of this name replaces it");
        doctor_find(doctor, DOCTOR_NOTE, "%s: its daemon was killed", file);
    } else if (errno != ENOENT) {
        doctor_cure(doctor, "look into its log, and kill it if it hangs");
        doctor_find(doctor, DOCTOR_WARNING, "%s does not answer: %s", file, strerror(errno));
    }
}

static void ask_shared(struct doctor *doctor, const char *file)
{
    struct document status = {.root = NULL};
    struct document_error error;
    char *reply = exchange_ask(file, GREETING_STATUS "\n", REPLY_MS);
    int code = STDIO_BUS_OK;

    if (reply != NULL)
        code = document_read(&status, slice_of_text(reply), &error);
    if (reply == NULL) {
        judge_silence(doctor, file);
    } else if (code == STDIO_BUS_ERR) {
        doctor_find(doctor, DOCTOR_WARNING, "%s: out of memory", file);
    } else if (code == STDIO_BUS_OK && status.root->type == JSON_OBJECT) {
        judge(doctor, file, status.root);
    } else {
        report_stranger(doctor, file);
    }
    document_free(&status);
    free(reply);
}

static void ask_control(struct doctor *doctor, const char *path)
{
    struct control_link link = {.fd = -1};
    const struct json_value *status = NULL;
    struct slice line;

    if (control_link_open(&link, path))
        status = control_link_ask(&link, "status", NULL, &line);
    if (status != NULL) {
        judge(doctor, path, status);
    } else {
        doctor_cure(doctor, "start its daemon, or remove the file");
        doctor_find(doctor, DOCTOR_NOTE, "%s", link.reason);
    }
    control_link_close(&link);
}

static bool ends_in(const char *name, const char *end)
{
    size_t len = strlen(name), end_len = strlen(end);

    return len > end_len && strcmp(name + len - end_len, end) == 0;
}

/* NULL with errno 0: there are no more. */
static const struct dirent *next_entry(DIR *directory)
{
    errno = 0;
    return readdir(directory);
}

/* The sockets of that ending in the directory. */
static void ask_all(struct doctor *doctor, const char *directory, const char *ending,
                    void (*ask)(struct doctor *doctor, const char *path))
{
    bool is_here = strcmp(directory, ".") == 0;
    DIR *entries = opendir(directory);
    const struct dirent *entry;
    char path[DIRECTORY_MAX];

    if (entries == NULL) {
        doctor_cannot_look(doctor, directory);
        return;
    }
    while ((entry = next_entry(entries)) != NULL) {
        snprintf(path, sizeof path, "%s%s%s", is_here ? "" : directory, is_here ? "" : "/",
                 entry->d_name);
        if (ends_in(entry->d_name, ending))
            ask(doctor, path);
    }
    if (errno != 0)
        doctor_cannot_look(doctor, directory);
    closedir(entries);
}

void doctor_daemons(struct doctor *doctor)
{
    char directory[DIRECTORY_MAX], reason[DIRECTORY_REASON_MAX];
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    int status;

    if (runtime != NULL)
        ask_all(doctor, runtime, CONTROL, ask_control);
    ask_all(doctor, "/run/stdio_bus", CONTROL, ask_control);
    status = directory_find(directory, reason);
    if (status == STDIO_BUS_OK)
        status = directory_enter(directory, false, reason);
    if (status == STDIO_BUS_OK)
        ask_all(doctor, ".", DAEMON_SOCKET, ask_shared);
    else if (status == STDIO_BUS_EINVAL)
        doctor_find(doctor, DOCTOR_NOTE, "daemons of --share were not looked for: %s", reason);
}
