#include "build_config.h"

#include "share/list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/terminal.h"
#include "page/viewer.h"
#include "share/directory.h"
#include "share/identity.h"
#include "share/shares.h"

#define DIFFERENCE_MAX 4096
#define SEPARATOR ", " /* of the names of what differs */
#define OF_NAME "--share=NAME"

static void write_command(struct json_text *text, struct slice identity)
{
    struct slice rest = identity;
    char *word = malloc(identity.len + 1);
    size_t len;

    text->failed |= word == NULL;
    row_begin(text, "command", '[');
    while (word != NULL && identity_take_word(word, &len, &rest))
        row_slice(text, NULL, slice_of(word, len));
    row_end(text, ']');
    if (word != NULL && identity_directory(word, &len, identity))
        row_slice(text, "directory", slice_of(word, len));
    else
        row_string(text, "directory", NULL);
    free(word);
}

static void write_log(struct json_text *text, const struct share *share, const char *directory)
{
    char path[DIRECTORY_MAX + DAEMON_FILE_MAX];

    snprintf(path, sizeof path, "%s/%s" DAEMON_LOG, directory, share->base);
    row_string(text, "log", path);
}

/* A daemon of an older version does not say. */
static void write_state(struct json_text *text, const struct share *share)
{
    const struct json_value *state = share_member(share, "state", JSON_STRING);

    share_write_text(text, share, "state");
    if (state != NULL)
        row_number(text, "state_ms", share_number(share, "state_ms"));
    else
        row_string(text, "state_ms", NULL);
    if (state != NULL)
        row_number(text, "calls", share_number(share, "calls"));
    else
        row_string(text, "calls", NULL);
}

static void write_share(struct json_text *text, const struct share *share,
                        const struct usage *usage, const char *directory)
{
    size_t processes;
    long kib = share_usage(share, usage, &processes);

    row_begin(text, NULL, '{');
    row_string(text, "name", share->base);
    share_write_text(text, share, "version");
    row_number(text, "pid", share_number(share, "pid"));
    row_number(text, "runs_ms", share_number(share, "seconds") * 1000);
    write_state(text, share);
    row_number(text, "clients", share_number(share, "clients"));
    row_number(text, "processes", (int64_t)processes);
    if (kib >= 0)
        row_number(text, "memory", (int64_t)kib * 1024);
    else
        row_string(text, "memory", NULL);
    write_command(text, share_identity(share));
    share_write_text(text, share, "failure");
    share_write_text(text, share, "one_client");
    write_log(text, share, directory);
    row_end(text, '}');
}

/* Whether no name given by users keeps the two apart. What follows the @ is the version. */
static bool is_named_alike(const struct share *a, const struct share *b)
{
    size_t a_len = strcspn(a->base, "@"), b_len = strcspn(b->base, "@");
    bool a_is_named = a->base[a_len] != '\0', b_is_named = b->base[b_len] != '\0';

    if (!a_is_named || !b_is_named)
        return a_is_named == b_is_named;
    return slice_equal(slice_of(a->base, a_len), slice_of(b->base, b_len));
}

/* Adds to the names that `to` has. */
static void add_differences(char *to, size_t size, const struct share *a, const struct share *b)
{
    size_t len = strlen(to);

    if (!is_named_alike(a, b) && strstr(to, OF_NAME) == NULL)
        snprintf(to + len, size - len, "%s" OF_NAME, len > 0 ? SEPARATOR : "");
    identity_add_differences(to, size, share_identity(a), share_identity(b));
}

static void write_names(struct json_text *text, const char *names)
{
    const char *at = names, *end;

    row_begin(text, "differs", '[');
    while (*at != '\0') {
        end = strstr(at, SEPARATOR);
        row_slice(text, NULL, slice_of(at, end != NULL ? (size_t)(end - at) : strlen(at)));
        at = end != NULL ? end + strlen(SEPARATOR) : at + strlen(at);
    }
    row_end(text, ']');
}

/* The daemons that have the command of the one at `first`, which is the oldest of them: nothing if
 * it is the only one. Returns whether it is not. */
static bool write_group(struct json_text *text, const struct shares *shares, size_t first)
{
    char difference[DIFFERENCE_MAX] = "";
    size_t i = shares_alike(shares, first, first + 1);

    if (i == shares->count)
        return false;
    row_begin(text, NULL, '{');
    row_begin(text, "names", '[');
    row_string(text, NULL, shares->at[first].base);
    for (; i < shares->count; i = shares_alike(shares, first, i + 1)) {
        row_string(text, NULL, shares->at[i].base);
        add_differences(difference, sizeof difference, &shares->at[first], &shares->at[i]);
    }
    row_end(text, ']');
    write_names(text, difference);
    row_end(text, '}');
    return true;
}

/* Members of an object: the daemons and their number; what differs between those of one command.
 * `directory` is that of the daemons. */
static void write_shared(struct json_text *text, const struct shares *shares,
                         const struct usage *usage, const char *directory)
{
    size_t i;

    row_begin(text, "shared", '[');
    for (i = 0; i < shares->count; i++)
        write_share(text, &shares->at[i], usage, directory);
    row_end(text, ']');
    row_number(text, "total", (int64_t)shares->count);
}

static size_t write_differences(struct json_text *text, const struct shares *shares)
{
    size_t i, groups = 0;

    row_begin(text, "differences", '[');
    for (i = 0; i < shares->count; i++) {
        if (shares_alike(shares, i, 0) == i)
            groups += write_group(text, shares, i);
    }
    row_end(text, ']');
    return groups;
}

/* Adds one object, on one line; stdio_bus(1) has its members. If out of memory, text->failed. */
static void list_json_write(struct json_text *text, const struct shares *shares,
                            const struct usage *usage, const char *directory)
{
    row_begin(text, NULL, '{');
    write_shared(text, shares, usage, directory);
    (void)write_differences(text, shares);
    row_end(text, '}');
}

#define COMMAND_MAX 4096    /* bytes that are shown */
#define COMMAND_TERMINAL 60 /* the same, where a line has an end */
#define SHOWN_DIFFERENCE_MAX 512

/* --- the table --- */

/* The processes of its workers, and the memory of these and the daemon. */
static const char *write_usage(char *to, size_t size, const struct share *share,
                               const struct usage *usage)
{
    size_t processes;
    long kib = share_usage(share, usage, &processes);

    if (kib < 0)
        snprintf(to, size, "%9zu        -", processes);
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

/* "asleep 5 min": for how long it has been so. */
static const char *write_word(char *to, size_t size, const struct share *share)
{
    const struct json_value *state = share_member(share, "state", JSON_STRING);
    char age[32];

    if (state == NULL)
        snprintf(to, size, "-");
    else if (slice_is(state->text, "not started"))
        snprintf(to, size, "not started");
    else
        snprintf(to, size, "%.*s %s", (int)state->text.len, state->text.data,
                 write_age(age, sizeof age, share_number(share, "state_ms") / 1000));
    return to;
}

static void print_line(const struct share *share, const struct usage *usage)
{
    char command[COMMAND_MAX], age[32], memory[64], state[64];

    identity_command(command, isatty(STDOUT_FILENO) ? COMMAND_TERMINAL : sizeof command,
                     share_identity(share));
    terminal_line(stdout, "%-18s %7lld  %-16s %6lld %7lld %s %10s  %s", share->base,
                  (long long)share_number(share, "pid"), write_word(state, sizeof state, share),
                  (long long)share_number(share, "calls"),
                  (long long)share_number(share, "clients"),
                  write_usage(memory, sizeof memory, share, usage),
                  write_age(age, sizeof age, share_number(share, "seconds")), command);
}

/* --- below it --- */

/* What has users share one server, by what differs: the first row with which that begins. */
static const struct {
    const char *difference, *cure; /* NULL: there is no advice */
} cures[] = {
    {OF_NAME, "give each host the same name after --share=, or none"},
    {IDENTITY_DIRECTORY, "--any-cwd before the --, if the server does not need a directory"},
    {"the ", NULL},
    {"--", "give each host the same options before the --"},
    {"", "give each host the same in its \"env\", or name the variables that count with --env"},
};

#define CURES (sizeof cures / sizeof cures[0])

static void note_cures(bool noted[CURES], const char *names)
{
    const char *at = names, *end;
    size_t i;

    while (*at != '\0') {
        for (i = 0; strncmp(at, cures[i].difference, strlen(cures[i].difference)) != 0;)
            i++;
        noted[i] = true;
        end = strstr(at, SEPARATOR);
        at = end != NULL ? end + strlen(SEPARATOR) : at + strlen(at);
    }
}

/* The daemons that have the command of the one at `first`, which is the oldest of them: nothing if
 * it is the only one. */
static void print_group(const struct shares *shares, size_t first, bool noted[CURES])
{
    char difference[SHOWN_DIFFERENCE_MAX] = "";
    struct json_text names = {.data = NULL};
    size_t i, count = 1;

    json_text_literal(&names, shares->at[first].base);
    for (i = shares_alike(shares, first, first + 1); i < shares->count;
         i = shares_alike(shares, first, i + 1)) {
        count++;
        json_text_literal(&names, ", ");
        json_text_literal(&names, shares->at[i].base);
        add_differences(difference, sizeof difference, &shares->at[first], &shares->at[i]);
    }
    if (names.failed)
        terminal_line(stderr, "stdio_bus: out of memory: not all names are shown");
    if (count > 1)
        terminal_line(stdout, "%.*s have the same command; what differs: %s", (int)names.len,
                      names.data != NULL ? names.data : "", difference);
    note_cures(noted, difference);
    json_text_free(&names);
}

/* Those that a user may have thought to be one. */
static void print_differences(const struct shares *shares)
{
    bool noted[CURES] = {false};
    size_t i;

    for (i = 0; i < shares->count; i++) {
        if (shares_alike(shares, i, 0) == i)
            print_group(shares, i, noted);
    }
    for (i = 0; i < CURES; i++) {
        if (noted[i] && cures[i].cure != NULL)
            terminal_line(stdout, "to share one: %s", cures[i].cure);
    }
}

static void print_failures(const struct shares *shares)
{
    const struct json_value *failure;
    size_t i;

    for (i = 0; i < shares->count; i++) {
        failure = share_member(&shares->at[i], "failure", JSON_STRING);
        if (failure != NULL)
            terminal_line(stdout, "%s does not start: %.*s", shares->at[i].base,
                          (int)failure->text.len, failure->text.data);
    }
}

static void print_one_clients(const struct shares *shares)
{
    const struct json_value *state;
    size_t i;

    for (i = 0; i < shares->count; i++) {
        state = share_member(&shares->at[i], "one_client", JSON_STRING);
        if (state != NULL)
            terminal_line(stdout,
                          "%s keeps %.*s for one client: --clients exclusive before the -- gives "
                          "each client a process of its own",
                          shares->at[i].base, (int)state->text.len, state->text.data);
    }
}

static void print_table(const struct shares *shares, const struct usage *usage,
                        const char *directory)
{
    size_t i;

    if (shares->count == 0) {
        terminal_line(stdout, "nothing is shared");
        return;
    }
    terminal_line(stdout, "%-18s %7s  %-16s %6s %7s %9s %8s %10s  %s", "NAME", "PID", "STATE",
                  "CALLS", "CLIENTS", "PROCESSES", "MEMORY", "RUNS FOR", "COMMAND");
    for (i = 0; i < shares->count; i++)
        print_line(&shares->at[i], usage);
    print_failures(shares);
    print_one_clients(shares);
    print_differences(shares);
    terminal_line(stdout, "logs: %s/NAME" DAEMON_LOG, directory);
}

/* --- either form --- */

/* STDIO_BUS_ERR with errno set. */
static int print_json(const struct shares *shares, const struct usage *usage, const char *directory)
{
    struct json_text text = {.data = NULL};
    int status = STDIO_BUS_ERR;

    list_json_write(&text, shares, usage, directory);
    json_text_literal(&text, "\n");
    errno = ENOMEM;
    if (!text.failed)
        status = terminal_lines(stdout, TERMINAL_JSON, json_text_slice(&text));
    json_text_free(&text);
    return status;
}

/* STDIO_BUS_ERR with errno set. */
static int print_all(const struct shares *shares, const char *directory, bool json)
{
    struct usage usage = {.count = 0};
    int status = STDIO_BUS_OK;

    if (shares->count > 0 && usage_read(&usage) != STDIO_BUS_OK)
        terminal_line(stderr, "stdio_bus: cannot learn the memory of processes: %s",
                      strerror(errno));
    if (json)
        status = print_json(shares, &usage, directory);
    else
        print_table(shares, &usage, directory);
    usage_free(&usage);
    return status == STDIO_BUS_OK && fflush(stdout) == 0 && !ferror(stdout) ? STDIO_BUS_OK
                                                                            : STDIO_BUS_ERR;
}

/* Makes the directory of the daemons the working directory. STDIO_BUS_ENOTFOUND: there is none.
 * STDIO_BUS_EINVAL after the reason was printed. */
static int enter(char directory[DIRECTORY_MAX])
{
    char reason[DIRECTORY_REASON_MAX];
    int status = directory_find(directory, reason);

    if (status == STDIO_BUS_OK)
        status = directory_enter(directory, false, reason);
    if (status == STDIO_BUS_EINVAL)
        terminal_line(stderr, "stdio_bus: %s", reason);
    return status;
}

/* --- the page --- */

static void write_now(struct json_text *text, const struct shares *shares,
                      const struct usage *usage)
{
    int64_t clients = 0, kib = 0;
    size_t all = 0, processes, i;

    for (i = 0; i < shares->count; i++) {
        kib += share_usage(&shares->at[i], usage, &processes);
        all += processes;
        clients += share_number(&shares->at[i], "clients");
    }
    row_begin(text, "now", '{');
    row_number(text, "clients", clients);
    row_number(text, "processes", (int64_t)all);
    if (usage->count > 0)
        row_number(text, "resident", kib * 1024);
    row_end(text, '}');
}

/* As the page has lists: each an object with its number. */
static void write_figures(void *user_data, struct json_text *text)
{
    const char *directory = user_data;
    char reason[DIRECTORY_REASON_MAX];
    struct shares shares = {.at = NULL, .is_quiet = true};
    struct usage usage = {.count = 0};
    int status = directory_enter(directory, false, reason);

    if (status == STDIO_BUS_OK)
        status = shares_find(&shares);
    text->failed = status != STDIO_BUS_OK && status != STDIO_BUS_ENOTFOUND;
    (void)usage_read(&usage);
    row_begin(text, NULL, '{');
    write_now(text, &shares, &usage);
    row_begin(text, "shared", '{');
    write_shared(text, &shares, &usage, directory);
    row_end(text, '}');
    row_begin(text, "differences", '{');
    row_number(text, "total", (int64_t)write_differences(text, &shares));
    row_end(text, '}');
    row_end(text, '}');
    usage_free(&usage);
    shares_free(&shares);
}

int list_page_run(const struct service *const *services)
{
    char directory[DIRECTORY_MAX];
    struct figures_source source = {.write = write_figures,
                                    .user_data = directory,
                                    .nothing = "the shared servers cannot be listed\n"};

    return enter(directory) == STDIO_BUS_EINVAL ? EXIT_OS_ERROR : viewer_run(&source, services);
}

int list_run(bool json)
{
    char directory[DIRECTORY_MAX], reason[DIRECTORY_REASON_MAX];
    struct shares shares = {.at = NULL};
    int status = shares_open(&shares, directory, reason);

    if (status != STDIO_BUS_OK) {
        terminal_line(stderr, "stdio_bus: %s", reason);
    } else {
        status = print_all(&shares, directory, json);
        if (status != STDIO_BUS_OK)
            terminal_line(stderr, "stdio_bus: cannot write the list: %s", strerror(errno));
    }
    shares_free(&shares);
    return status == STDIO_BUS_OK ? EXIT_DONE : EXIT_OS_ERROR;
}
