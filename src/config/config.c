#include "build_config.h"

#include "config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "config/environment.h"
#include "config/report.h"
#include "config/rules.h"
#include "format/json.h"

#define FILE_MAX ((size_t)16 << 20) /* bytes */
#define FIRST_READ 16384

/* ---- from the document to the struct: only allocation can fail ------------------------------ */

static char *copy_string(const struct json_value *string)
{
    char *copy = malloc(string->text.len + 1);

    if (copy != NULL)
        memcpy(copy, string->text.data, string->text.len + 1);
    return copy;
}

static bool build_argv(struct pool_config *pool, const struct json_value *args)
{
    const struct json_value *arg;
    size_t i = 0;

    pool->argv = calloc((args != NULL ? args->count : 0) + 2, sizeof(*pool->argv));
    if (pool->argv == NULL)
        return false;
    pool->argv[i++] = pool->command;
    for (arg = args != NULL ? args->first : NULL; arg != NULL; arg = arg->next) {
        pool->argv[i] = copy_string(arg);
        if (pool->argv[i++] == NULL)
            return false;
    }
    return true;
}

/* The framing of this name; NULL when none is named. */
static const struct framing *framing_of(const struct json_value *name)
{
    return name != NULL ? framing_named(name->text.data) : NULL;
}

static bool is_word(const struct json_value *value, const char *word)
{
    return value != NULL && slice_equal(value->text, slice_of(word, strlen(word)));
}

/* Where and among what the workers run. */
static bool build_surroundings(struct pool_config *pool, const struct json_value *object)
{
    const struct json_value *cwd = json_member(object, "cwd");

    pool->envp = environment_build(object);
    if (cwd != NULL)
        pool->cwd = copy_string(cwd);
    return pool->envp != NULL && (cwd == NULL || pool->cwd != NULL);
}

static bool build_pool(struct pool_config *pool, const struct json_value *object)
{
    int64_t instances = 0;

    pool->id = copy_string(json_member(object, "id"));
    pool->command = copy_string(json_member(object, "command"));
    json_integer(json_member(object, "instances"), &instances);
    pool->instances = (unsigned)instances;
    pool->framing = framing_of(json_member(object, "framing"));
    sharing_read(&pool->sharing, object);
    pool->skip_bad_output = is_word(json_member(object, "on_bad_output"), "skip");
    return pool->id != NULL && pool->command != NULL &&
           build_argv(pool, json_member(object, "args")) && build_surroundings(pool, object);
}

/* The rules were kept. What was allocated before a failure is config_free's. */
static bool build(struct config *config, const struct json_value *root)
{
    const struct json_value *pools = json_member(root, "pools");
    const struct json_value *limits = json_member(root, "limits");
    const struct json_value *strict = json_member(root, "strict");
    const struct json_value *listen = json_member(root, "listen");
    const struct json_value *pool;

    if (limits != NULL)
        rules_apply_limits(&config->limits, limits);
    if (listen != NULL)
        config->client_framing = framing_of(json_member(listen, "framing"));
    config->strict = strict != NULL && strict->boolean;
    config->pools = calloc(pools->count, sizeof(*config->pools));
    if (config->pools == NULL)
        return false;
    for (pool = pools->first; pool != NULL; pool = pool->next) {
        if (!build_pool(&config->pools[config->pool_count++], pool))
            return false;
    }
    return true;
}

static void free_pool(struct pool_config *pool)
{
    size_t i;

    for (i = 1; pool->argv != NULL && pool->argv[i] != NULL; i++)
        free(pool->argv[i]);
    free(pool->argv);
    free(pool->envp);
    free(pool->cwd);
    free(pool->command);
    free(pool->id);
}

void config_free(struct config *config)
{
    size_t i;

    for (i = 0; i < config->pool_count; i++)
        free_pool(&config->pools[i]);
    free(config->pools);
    memset(config, 0, sizeof(*config));
}

/* ---- from the text to the document ---------------------------------------------------------- */

static void read_text(struct config *config, struct slice text, struct config_report *report)
{
    struct json_document document;
    struct json_error error;
    int code = json_read(&document, text, &error);

    if (code == STDIO_BUS_EINVAL) {
        config_report_syntax(report, &error);
        return;
    }
    if (code != STDIO_BUS_OK) {
        config_report_file(report, "out of memory");
        return;
    }
    rules_check(report, document.root);
    if (report->errors == 0 && !build(config, document.root))
        config_report_file(report, "out of memory");
    json_free(&document);
}

/* ---- from the file to the text -------------------------------------------------------------- */

/* read(2), whatever the descriptor's flags and however often a signal comes. */
static ssize_t read_some(int fd, char *to, size_t size)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    ssize_t n;

    for (;;) {
        n = read(fd, to, size);
        if (n >= 0)
            return n;
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            poll(&poll_fd, 1, -1);
        else if (errno != EINTR)
            return -1;
    }
}

/* Doubles *text, which holds `*capacity` bytes. */
static bool grow(char **text, size_t *capacity)
{
    size_t larger = *capacity > 0 ? *capacity * 2 : FIRST_READ;
    char *moved = realloc(*text, larger);

    if (moved == NULL)
        return false;
    *text = moved;
    *capacity = larger;
    return true;
}

/* Reads to the end into *text, which is the caller's to free whatever comes back. Returns false
 * after an error was reported. */
static bool read_all(int fd, char **text, size_t *len, struct config_report *report)
{
    size_t capacity = 0;
    ssize_t n;

    while (*len <= FILE_MAX) {
        if (*len == capacity && !grow(text, &capacity)) {
            config_report_file(report, "out of memory");
            return false;
        }
        n = read_some(fd, *text + *len, capacity - *len);
        if (n == 0)
            return true;
        if (n < 0) {
            config_report_file(report, "cannot read: %s", strerror(errno));
            return false;
        }
        *len += (size_t)n;
    }
    config_report_file(report, "larger than %zu MiB", FILE_MAX >> 20);
    return false;
}

static void read_fd(struct config *config, int fd, struct config_report *report)
{
    char *text = NULL;
    size_t len = 0;

    if (read_all(fd, &text, &len, report))
        read_text(config, slice_of(text, len), report);
    free(text);
}

/* ---- entries -------------------------------------------------------------------------------- */

static int finish(struct config *config, const struct config_report *report)
{
    if (report->errors == 0)
        return STDIO_BUS_OK;
    config_free(config);
    return STDIO_BUS_EINVAL;
}

int config_read_file(struct config *config, const char *path, config_report_fn *report,
                     void *user_data)
{
    struct config_report told = {path, report, user_data, 0};
    int fd;

    *config = (struct config){.limits = LIMITS_DEFAULT};
    do
        fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        config_report_file(&told, "cannot open: %s", strerror(errno));
    } else {
        read_fd(config, fd, &told);
        close(fd);
    }
    return finish(config, &told);
}

int config_read_fd(struct config *config, int fd, const char *name, config_report_fn *report,
                   void *user_data)
{
    struct config_report told = {name, report, user_data, 0};

    *config = (struct config){.limits = LIMITS_DEFAULT};
    read_fd(config, fd, &told);
    return finish(config, &told);
}

int config_read_text(struct config *config, const char *text, size_t len, const char *name,
                     config_report_fn *report, void *user_data)
{
    struct config_report told = {name, report, user_data, 0};

    *config = (struct config){.limits = LIMITS_DEFAULT};
    read_text(config, slice_of(text, len), &told);
    return finish(config, &told);
}
