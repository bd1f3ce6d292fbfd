#include "build_config.h"

#include "share/share.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "config/config.h"
#include "share/cache.h"
#include "share/directory.h"
#include "share/front.h"
#include "share/identity.h"
#include "share/join.h"
#include "share/variables.h"
#include "share/watched_files.h"

extern char **environ;

#define ALONE "-alone" /* after the name of a pool */

/* What a share is made of. */
struct share {
    const struct share_options *options;
    struct log log; /* of the front, on stderr */
    struct config config;
    struct config alone; /* --clients auto: of clients that do not share */
    char **variables;
    char *cwd; /* of the server */
    char *identity;
    char *watched[WATCHED_PATHS_MAX]; /* absolute */
    char directory[DIRECTORY_MAX];
    char memory[DIRECTORY_MAX]; /* "": nothing is remembered on disk */
    struct join join;
    bool serves; /* there was a server */
};

/* --- the server --- */

static char *current_directory(void)
{
    size_t size = 256;
    char *path = NULL, *larger;

    while ((larger = realloc(path, size)) != NULL) {
        path = larger;
        if (getcwd(path, size) != NULL)
            return path;
        if (errno != ERANGE)
            break;
        size *= 2;
    }
    free(path);
    return NULL;
}

static void report(void *user_data, bool is_error, const char *text)
{
    struct share *share = user_data;

    if (is_error && share->join.reason[0] == '\0')
        snprintf(share->join.reason, sizeof share->join.reason, "%s", text);
    log_write(&share->log, is_error ? LOG_LEVEL_ERROR : LOG_LEVEL_WARN, "", "%s", text);
}

__attribute__((format(printf, 2, 3))) static int fail(struct share *share, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(share->join.reason, sizeof share->join.reason, format, args);
    va_end(args);
    log_error(&share->log, "", "%s", share->join.reason);
    return EXIT_OS_ERROR;
}

/* From here on this process has the directory and the variables that the server gets. */
static int become_alike(struct share *share)
{
    const char *home = getenv("HOME");

    if (home == NULL || *home == '\0')
        home = "/";
    if (share->options->any_directory && chdir(home) < 0)
        return fail(share, "cannot enter the home directory %s: %s", home, strerror(errno));
    share->cwd = current_directory();
    if (share->cwd == NULL)
        return fail(share, "cannot find out the working directory: %s", strerror(errno));
    variables_clean_path(environ);
    share->variables = variables_select(environ, share->options->variables);
    if (share->variables == NULL)
        return fail(share, "out of memory");
    environ = share->variables;
    return EXIT_DONE;
}

/* NULL: out of memory. */
static char *join_texts(const char *text, const char *end)
{
    size_t size = strlen(text) + strlen(end) + 1;
    char *joined = malloc(size);

    if (joined != NULL)
        snprintf(joined, size, "%s%s", text, end);
    return joined;
}

/* The pool has another name in the log. */
static int read_alone(struct share *share, struct command_line line)
{
    struct pool_config *pool;
    char *id;

    line.clients = "exclusive";
    line.one_client = true; /* no process is kept for the next client */
    if (config_of_command(&share->alone, &line, report, share) != STDIO_BUS_OK)
        return EXIT_CONFIG_ERROR;
    pool = &share->alone.pools[0];
    pool->logs_stderr = true;
    pool->cwd = join_texts(share->config.pools[0].cwd, "");
    id = join_texts(pool->id, ALONE);
    if (id != NULL) {
        free(pool->id);
        pool->id = id;
    }
    return pool->cwd != NULL && id != NULL ? EXIT_DONE : fail(share, "out of memory");
}

static int read_config(struct share *share)
{
    struct command_line line = share->options->line;
    bool is_auto = strcmp(line.clients, "auto") == 0;
    bool frugal;

    if (is_auto)
        line.clients = "sticky";
    frugal = line.instances == NULL && strcmp(line.protocol, "mcp") == 0 &&
             strcmp(line.clients, "sticky") == 0;

    if (config_of_command(&share->config, &line, report, share) != STDIO_BUS_OK)
        return EXIT_CONFIG_ERROR;
    share->config.pools[0].mode.frugal = frugal;
    share->config.pools[0].mode.remembers = !share->options->eager;
    if (frugal)
        share->config.pools[0].instances = POOL_MODE_INSTANCES; /* at most */
    share->config.pools[0].logs_stderr = true;
    share->config.pools[0].cwd = share->cwd;
    share->cwd = NULL;
    return is_auto ? read_alone(share, line) : EXIT_DONE;
}

static mode_t current_umask(void)
{
    mode_t mask = umask(077);

    umask(mask);
    return mask;
}

static int identify(struct share *share)
{
    const struct command_line *line = &share->options->line;
    const struct identity_parts parts = {
        .words = line->words,
        .variables = share->variables,
        .names = share->options->variables,
        .directory = share->options->any_directory ? NULL : share->config.pools[0].cwd,
        .protocol = line->protocol,
        .clients = line->clients,
        .instances = line->instances,
        .framing = line->framing,
        .mask = (unsigned)current_umask(),
    };

    share->identity = identity_write(&parts);
    if (share->identity == NULL)
        return fail(share, "out of memory");
    if (strlen(share->identity) + JOIN_ROOM > IDENTITY_MAX)
        return fail(share, "the command line and the environment are longer than %zu bytes",
                    IDENTITY_MAX - JOIN_ROOM);
    return EXIT_DONE;
}

/* The daemon has another working directory. */
static int find_watched(struct share *share)
{
    const char *cwd = share->config.pools[0].cwd;

    for (size_t i = 0; i < share->options->watched_count; i++) {
        const char *path = share->options->watched[i];
        size_t size = strlen(cwd) + strlen(path) + 2;

        share->watched[i] = malloc(size);
        if (share->watched[i] == NULL)
            return fail(share, "out of memory");
        snprintf(share->watched[i], size, "%s%s%s", *path == '/' ? "" : cwd,
                 *path == '/' ? "" : "/", path);
    }
    return EXIT_DONE;
}

static void find_memory(struct share *share)
{
    char reason[DIRECTORY_REASON_MAX];

    if (share->options->eager || cache_find(share->memory, reason) == STDIO_BUS_OK)
        return;
    log_warn(&share->log, "", "nothing is remembered on disk: %s", reason);
}

static int prepare(struct share *share)
{
    char reason[DIRECTORY_REASON_MAX];
    int status;

    if (directory_find(share->directory, reason) != STDIO_BUS_OK)
        return fail(share, "cannot share: %s", reason);
    find_memory(share);
    status = become_alike(share);
    if (status == EXIT_DONE)
        status = read_config(share);
    if (status == EXIT_DONE)
        status = identify(share);
    if (status == EXIT_DONE)
        status = find_watched(share);
    return status;
}

/* --- the front --- */

/* The first connection is there already: it has shown that there is a daemon. */
struct first {
    struct join *join;
    int fd;
};

static int dial(void *user_data)
{
    struct first *first = user_data;
    int fd = first->fd;

    first->fd = -1;
    return fd >= 0 ? fd : join_open(first->join);
}

/* If it has not been dialled. */
static void hang_up(struct first *first)
{
    if (first->fd >= 0)
        descriptor_close(first->fd);
    first->fd = -1;
}

static int serve(struct share *share)
{
    static const int statuses[] = {
        [BUS_DONE] = EXIT_DONE,
        [BUS_CLIENT_MALFORMED] = EXIT_DATA_ERROR,
        [BUS_NO_WORKER_LEFT] = EXIT_NO_WORKER_LEFT,
        [BUS_BAD_COMMAND] = EXIT_NO_WORKER_LEFT,
        [BUS_SYSTEM_ERROR] = EXIT_OS_ERROR,
    };
    struct first first = {.join = &share->join};
    const struct dialer dialer = {.dial = dial, .user_data = &first};
    const struct front front = {
        .dialer = &dialer,
        .log = &share->log,
        .framing = share->options->framing,
        .protocol = share->config.pools[0].mode.protocol,
    };
    enum bus_outcome outcome;

    share->join.daemon.config = &share->config;
    share->join.daemon.alone = share->alone.pool_count > 0 ? &share->alone : NULL;
    share->join.daemon.identity = share->identity;
    share->join.daemon.directory = share->directory;
    share->join.daemon.watched = share->watched;
    share->join.daemon.watched_count = share->options->watched_count;
    share->join.daemon.memory = share->memory[0] != '\0' ? share->memory : NULL;
    share->join.daemon.idle_exit_sec = share->options->idle_exit_sec;
    share->join.daemon.log_level = share->options->log_level;
    share->join.directory = share->directory;
    share->join.name = share->options->name;
    share->join.log = &share->log;
    join_init(&share->join);
    first.fd = join_open(&share->join);
    if (first.fd < 0)
        return EXIT_NO_WORKER_LEFT;
    share->serves = true;
    outcome = front_run(&front);
    hang_up(&first);
    return statuses[outcome];
}

int share_command(const struct share_options *options)
{
    struct share share = {.options = options};
    int status;

    log_open(&share.log, STDERR_FILENO, options->stderr_level);
    status = prepare(&share);
    if (status == EXIT_DONE)
        status = serve(&share);
    if (!share.serves && share.join.reason[0] != '\0')
        front_refuse(share.join.reason, options->framing);
    config_free(&share.config);
    config_free(&share.alone);
    free(share.identity);
    free(share.variables);
    free(share.cwd);
    for (size_t i = 0; i < WATCHED_PATHS_MAX; i++)
        free(share.watched[i]);
    return status;
}
