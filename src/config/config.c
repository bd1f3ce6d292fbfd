#include "build_config.h"

#include "config/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "config/environment.h"
#include "config/file.h"
#include "config/include.h"
#include "config/transport_keys.h"
#include "config/validation.h"
#include "json/document.h"

/* --- from the document to the struct: only allocation can fail --- */

static char *copy_string(const struct json_value *string)
{
    char *copy = malloc(string->text.len + 1);

    if (copy != NULL)
        memcpy(copy, string->text.data, string->text.len + 1);
    return copy;
}

/* Copies the string of `key`, if there is one. */
static bool copy_member(char **to, const struct json_value *object, const char *key)
{
    const struct json_value *string = document_member(object, key);

    if (string == NULL)
        return true;
    *to = copy_string(string);
    return *to != NULL;
}

static bool build_argv(struct pool_config *pool, const struct json_value *args)
{
    const struct json_value *arg;
    size_t i = 0;

    pool->argv = calloc((args != NULL ? args->count : 0) + 2, sizeof *pool->argv);
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

/* The named framing; NULL without a name. */
static const struct framing *framing_of(const struct json_value *name)
{
    return name != NULL ? framing_named(name->text.data) : NULL;
}

/* Whether the key has this value; without the key, false. */
static bool is_set(const struct json_value *object, const char *key, bool value)
{
    const struct json_value *member = document_member(object, key);

    return member != NULL && member->boolean == value;
}

static bool build_pool(struct pool_config *pool, const struct json_value *object)
{
    const struct json_value *on_bad_output = document_member(object, "on_bad_output");
    const struct json_value *stderr_kind = document_member(object, "stderr");

    pool->instances = pool_mode_instances(object);
    pool->framing = framing_of(document_member(object, "framing"));
    pool_mode_read(&pool->mode, object);
    if (pool->framing == NULL && pool->mode.protocol == PROTOCOL_LSP)
        pool->framing = framing_named("content-length"); /* as the protocol has it */
    pool->skip_bad_output = on_bad_output != NULL ? strcmp(on_bad_output->text.data, "skip") == 0
                                                  : pool->mode.protocol != PROTOCOL_UNKNOWN;
    pool->no_new_privs = is_set(object, "no_new_privs", true);
    pool->no_core = is_set(object, "core", false);
    pool->logs_stderr = stderr_kind != NULL && strcmp(stderr_kind->text.data, "log") == 0;
    pool->envp = environment_build(object);
    return pool->envp != NULL && rmp_pool_read(&pool->rmp, object) == STDIO_BUS_OK &&
           copy_member(&pool->id, object, "id") && copy_member(&pool->command, object, "command") &&
           copy_member(&pool->cwd, object, "cwd") &&
           build_argv(pool, document_member(object, "args"));
}

/* Without an address, or absent: the defaults of the listeners of the command line. */
static int build_listen(struct config *config, const struct json_value *listen)
{
    const struct json_value *each = listen;
    bool is_list = listen != NULL && (listen->type == JSON_ARRAY || listen_has_address(listen));

    if (listen_read(&config->listen, is_list ? NULL : listen) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    if (!is_list || (listen->type == JSON_ARRAY && listen->first == NULL))
        return STDIO_BUS_OK;
    if (listen->type == JSON_ARRAY)
        each = listen->first;
    config->listens = calloc(each == listen ? 1 : listen->count, sizeof *config->listens);
    if (config->listens == NULL)
        return STDIO_BUS_ERR;
    for (; each != NULL; each = each == listen ? NULL : each->next) {
        if (listen_read(&config->listens[config->listen_count++], each) != STDIO_BUS_OK)
            return STDIO_BUS_ERR;
    }
    return STDIO_BUS_OK;
}

/* The document is valid. After a failure the caller frees what there is. */
static bool build(struct config *config, const struct json_value *root)
{
    const struct json_value *pools = document_member(root, "pools");
    const struct json_value *limits = document_member(root, "limits");
    const struct json_value *transport = document_member(root, "transport");
    const struct json_value *metrics = document_member(root, "metrics");
    const struct json_value *pool;

    if (limits != NULL)
        validation_apply_limits(&config->limits, limits);
    if (transport != NULL)
        transport_keys_read(transport, &config->listen.framing, &config->socket_mode);
    config->strict = is_set(root, "strict", true);
    config->has_metrics = metrics != NULL;
    if (metrics != NULL)
        listen_of_metrics(&config->metrics, metrics);
    if (!copy_member(&config->control, root, "control"))
        return false;
    if (pools == NULL)
        return true;
    config->pools = calloc(pools->count, sizeof *config->pools);
    if (config->pools == NULL)
        return false;
    config->splits_arrays = true;
    for (pool = pools->first; pool != NULL; pool = pool->next) {
        struct pool_config *built = &config->pools[config->pool_count++];

        if (!build_pool(built, pool))
            return false;
        if (built->mode.protocol == PROTOCOL_UNKNOWN)
            config->splits_arrays = false;
        config->has_protocol |= built->mode.protocol != PROTOCOL_UNKNOWN;
    }
    return true;
}

static void free_pool(struct pool_config *pool)
{
    for (size_t i = 1; pool->argv != NULL && pool->argv[i] != NULL; i++)
        free(pool->argv[i]);
    free(pool->argv);
    rmp_pool_free(&pool->rmp);
    free(pool->envp);
    free(pool->cwd);
    free(pool->command);
    free(pool->id);
}

void config_free(struct config *config)
{
    for (size_t i = 0; i < config->pool_count; i++)
        free_pool(&config->pools[i]);
    free(config->pools);
    for (size_t i = 0; i < config->listen_count; i++)
        listen_free(&config->listens[i]);
    free(config->listens);
    listen_free(&config->listen);
    rmp_keys_free(&config->rmp);
    free(config->control);
    *config = (struct config){.pools = NULL};
}

/* --- from the text to the document, and on --- */

static void read_document(struct config *config, const struct json_value *root,
                          struct diagnostics *diagnostics)
{
    validation_check(diagnostics, root);
    if (diagnostics->errors == 0 &&
        build_listen(config, document_member(root, "listen")) != STDIO_BUS_OK)
        diagnostics_file(diagnostics, "cannot read \"listen\": %s", strerror(errno));
    if (diagnostics->errors == 0 && !build(config, root))
        diagnostics_file(diagnostics, "out of memory");
    if (diagnostics->errors == 0 &&
        rmp_keys_read(&config->rmp, document_member(root, "rmp")) != STDIO_BUS_OK)
        diagnostics_file(diagnostics, "cannot read \"rmp\": %s", strerror(errno));
}

static void read_text(struct config *config, struct slice text, struct diagnostics *diagnostics)
{
    struct document document;
    struct document_error error;
    struct includes includes = {.first = NULL};
    int code = document_read(&document, text, &error);

    if (code == STDIO_BUS_EINVAL) {
        diagnostics_syntax(diagnostics, &error);
        return;
    }
    if (code != STDIO_BUS_OK) {
        diagnostics_file(diagnostics, "out of memory");
        return;
    }
    includes_read(&includes, document.root, diagnostics);
    read_document(config, document.root, diagnostics);
    document_free(&document);
    includes_free(&includes);
}

static void read_fd(struct config *config, int fd, struct diagnostics *diagnostics)
{
    char *text = NULL;
    size_t len = 0;

    if (file_read_fd(&text, &len, fd, diagnostics))
        read_text(config, slice_of(text, len), diagnostics);
    free(text);
}

/* --- entries --- */

static void set_defaults(struct config *config)
{
    *config = (struct config){.limits = LIMITS_DEFAULT, .rmp = RMP_CONFIG_DEFAULT};
}

void config_of_nothing(struct config *config)
{
    set_defaults(config);
    listen_read(&config->listen, NULL);
}

static int finish(struct config *config, const struct diagnostics *diagnostics)
{
    if (diagnostics->errors == 0)
        return STDIO_BUS_OK;
    config_free(config);
    return STDIO_BUS_EINVAL;
}

int config_read_file(struct config *config, const char *path, diagnostics_fn *report,
                     void *user_data)
{
    return config_read_sources(config, path, NULL, report, user_data);
}

int config_read_sources(struct config *config, const char *path, struct sources *sources,
                        diagnostics_fn *report, void *user_data)
{
    struct diagnostics diagnostics = {.name = path,
                                      .is_file = true,
                                      .report = report,
                                      .user_data = user_data,
                                      .sources = sources};
    char *text = NULL;
    size_t len = 0;

    set_defaults(config);
    if (file_read(&text, &len, path, &diagnostics))
        read_text(config, slice_of(text, len), &diagnostics);
    free(text);
    return finish(config, &diagnostics);
}

int config_read_fd(struct config *config, int fd, const char *name, diagnostics_fn *report,
                   void *user_data)
{
    struct diagnostics diagnostics = {.name = name, .report = report, .user_data = user_data};

    set_defaults(config);
    read_fd(config, fd, &diagnostics);
    return finish(config, &diagnostics);
}

int config_read_text(struct config *config, const char *text, size_t len, const char *name,
                     diagnostics_fn *report, void *user_data)
{
    struct diagnostics diagnostics = {.name = name, .report = report, .user_data = user_data};

    set_defaults(config);
    read_text(config, slice_of(text, len), &diagnostics);
    return finish(config, &diagnostics);
}

int config_of_command(struct config *config, const struct command_line *line,
                      diagnostics_fn *report, void *user_data)
{
    struct diagnostics diagnostics = {
        .name = "command line", .report = report, .user_data = user_data};
    struct json_value *root = command_line_document(line);

    set_defaults(config);
    if (root == NULL)
        diagnostics_file(&diagnostics, "out of memory");
    else
        read_document(config, root, &diagnostics);
    free(root);
    return finish(config, &diagnostics);
}
