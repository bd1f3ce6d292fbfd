#include "build_config.h"

#include "config/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "config/include.h"
#include "config/sources.h"
#include "json/document.h"

/* --- the table --- */

#define LIMIT_KEY(type, member, low, high, preset, text)                                           \
    KEY_ROW(#member, text, .kind = KEY_INTEGER, .has_default = true, .min = (low), .max = (high),  \
            .standard = (preset), KEY_AT(struct limits, member)),

static const struct key limit_list[] = {LIMITS_TABLE(LIMIT_KEY)};

static const struct key_table limit_keys = {KEY_TABLE(limit_list)};

static const char *const framings[] = {"ndjson", "length", NULL};
static const char *const protocols[] = {"json", NULL};
static const char *const modes[] = {"stdio", "unix", "tcp", NULL};

static const struct key transport_list[] = {
    KEY_ROW("framing", "As listen.framing.", .kind = KEY_WORD, .words = framings),
    KEY_ROW("protocol", "What messages are.", .kind = KEY_WORD, .words = protocols),
    KEY_ROW("mode", "As the option of that name, which has the address.", .kind = KEY_WORD,
            .words = modes),
};

/* The object of configurations for the reference implementation. What is unknown there may change
 * the framing, and then no message would be read as it was written. */
static const struct key_table transport_keys = {KEY_TABLE(transport_list),
                                                .unknown = UNKNOWN_FAILS};

static void check_transport(struct diagnostics *diagnostics, const struct json_value *transport)
{
    const struct json_value *framing = document_member(transport, "framing");
    const struct json_value *listen = document_member(transport->parent, "listen");

    if (framing != NULL && listen != NULL && listen->type == JSON_OBJECT &&
        document_member(listen, "framing") != NULL)
        diagnostics_value(diagnostics, framing, "listen.framing is set already");
}

static void check_control(struct diagnostics *diagnostics, const struct json_value *path)
{
    char to[RMP_SOCKET_MAX], why[RMP_SOCKET_REASON_MAX];

    if (rmp_socket_expand(to, path->text.data, "", why) != STDIO_BUS_OK)
        diagnostics_value(diagnostics, path, "%s", why);
}

/* In which MCP clients keep their servers: the file is one of theirs. */
static void check_servers(struct diagnostics *diagnostics, const struct json_value *servers)
{
    diagnostics_warn(diagnostics, servers,
                     "the configuration of an MCP client; stdio_bus --import FILE prints the one "
                     "for its servers");
}

#define INCLUDE_SCHEMA                                                                             \
    "\"anyOf\": [{\"type\": \"string\", \"minLength\": 1}, {\"type\": \"array\", \"items\": "      \
    "{\"type\": \"string\", \"minLength\": 1}}]"
#define LISTEN_SCHEMA                                                                              \
    "\"anyOf\": [{\"$ref\": \"#/$defs/listener\"}, {\"type\": \"array\", \"maxItems\": 64, "       \
    "\"items\": {\"$ref\": \"#/$defs/listener\", \"anyOf\": [{\"required\": [\"unix\"]}, "         \
    "{\"required\": [\"tcp\"]}, {\"required\": [\"http\"]}, {\"required\": [\"fd\"]}]}}]"
#define METRICS_SCHEMA "\"type\": \"string\", \"pattern\": \"^unix:.|^fd:.|:[0-9]+$\""

static const struct key config_list[] = {
    KEY_ROW("pools", "The pools of workers.", .kind = KEY_OBJECTS, .min = 1, .check = pools_check,
            .members = &pool_config_keys),
    KEY_ROW("include", "Files with further pools; the last part of a path may have wildcards.",
            .check = include_check, .schema = INCLUDE_SCHEMA),
    KEY_ROW("limits", "Sizes and times.", .kind = KEY_OBJECT, .members = &limit_keys),
    KEY_ROW("listen", "Listeners, or the keys of those of the command line.", .check = listen_check,
            .schema = LISTEN_SCHEMA),
    KEY_ROW("metrics",
            "The address of an HTTP listener for /metrics and health alone. Default: none.",
            .check = listen_check_metrics, .schema = METRICS_SCHEMA),
    KEY_ROW("transport", "As the reference implementation has it.", .kind = KEY_OBJECT,
            .check = check_transport, .members = &transport_keys),
    KEY_ROW("rmp", "The topic bus of RMP v0.", .kind = KEY_OBJECT, .members = &rmp_keys),
    KEY_ROW("nats", "Servers of NATS by which other machines reach the pools.", .kind = KEY_OBJECT,
            .members = &nats_keys),
    KEY_ROW("strict", "The daemon makes up no messages. Default: false.", .kind = KEY_BOOLEAN,
            KEY_AT(struct config, strict)),
    KEY_ROW("control", "The path of the control socket, for this user alone. Default: none.",
            .kind = KEY_TEXT, .min = 1, .check = check_control, KEY_AT(struct config, control)),
    KEY_ROW("mcpServers", NULL, .check = check_servers),
};

const struct key_table config_keys = {
    KEY_TABLE(config_list), .help = "The configuration of stdio_bus.",
    .schema = "\"anyOf\": [{\"required\": [\"pools\"]}, {\"required\": [\"include\"]}, "
              "{\"required\": [\"rmp\"]}]"};

/* --- rules about several keys --- */

/* Sets the limits that `object`, which is valid, has; the others stay. */
static void apply_limits(struct limits *limits, const struct json_value *object)
{
    keys_apply(limits, &limit_keys, object);
    if (document_member(object, "max_input_buffer") != NULL)
        limits->max_frame_body = limits->max_input_buffer;
    if (document_member(object, "max_message") != NULL)
        return;
    if (limits->max_message > limits->max_memory / 4)
        limits->max_message = limits->max_memory / 4;
    if (limits->max_message < limits->max_input_buffer)
        limits->max_message = limits->max_input_buffer;
}

/* A message that is not refused before its pool is known has to fit into its half of the memory. */
static void check_max_message(struct diagnostics *diagnostics, const struct json_value *root)
{
    const struct json_value *object = document_member(root, "limits"), *value;
    struct limits limits = LIMITS_DEFAULT;

    value = object != NULL && diagnostics->errors == 0 ? document_member(object, "max_message")
                                                       : NULL;
    if (value == NULL)
        return;
    apply_limits(&limits, object);
    if (limits.max_message < limits.max_input_buffer)
        diagnostics_value(diagnostics, value, "must be at least max_input_buffer (%zu)",
                          limits.max_input_buffer);
    else if (limits.max_message > limits.max_memory / 2)
        diagnostics_value(diagnostics, value, "must be at most half of max_memory (%zu)",
                          limits.max_memory / 2);
}

static void report_no_pools(struct diagnostics *diagnostics, const struct json_value *root)
{
    const struct json_value *include = document_member(root, "include");

    if (include != NULL && diagnostics->errors == 0)
        diagnostics_value(diagnostics, include, "no file has a pool");
    else if (include == NULL)
        diagnostics_missing(diagnostics, root, "pools");
}

static void check_document(struct diagnostics *diagnostics, const struct json_value *root)
{
    if (root->type == JSON_OBJECT && document_member(root, "pools") == NULL &&
        document_member(root, "rmp") == NULL)
        report_no_pools(diagnostics, root);
    keys_check_object(diagnostics, root, &config_keys);
    check_max_message(diagnostics, root);
    if (diagnostics->errors == 0)
        listen_check_addresses(diagnostics, root);
    if (diagnostics->errors == 0 && document_member(root, "pools") != NULL)
        pools_advise(diagnostics, document_member(root, "pools"));
}

/* --- from the document to the struct: only allocation can fail --- */

/* An object without an address is for the listeners of the command line; so is none. */
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

/* "stdio" is no mode of a socket. */
static void read_transport(struct config *config, const struct json_value *transport)
{
    const struct json_value *name = document_member(transport, "framing");
    const struct json_value *mode = document_member(transport, "mode");
    int word = mode != NULL ? key_word(mode, modes) : 0;

    if (name != NULL)
        config->listen.framing = framing_named(name->text.data);
    config->socket_mode = word > 0 ? modes[word] : NULL;
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
        apply_limits(&config->limits, limits);
    if (transport != NULL)
        read_transport(config, transport);
    keys_apply(config, &config_keys, root);
    config->has_metrics = metrics != NULL;
    if (metrics != NULL)
        listen_of_metrics(&config->metrics, metrics);
    if (!keys_copy(config, &config_keys, root))
        return false;
    if (pools == NULL)
        return true;
    config->pools = calloc(pools->count, sizeof *config->pools);
    if (config->pools == NULL)
        return false;
    config->splits_arrays = true;
    for (pool = pools->first; pool != NULL; pool = pool->next) {
        struct pool_config *built = &config->pools[config->pool_count++];

        if (!pool_config_read(built, pool))
            return false;
        if (built->mode.protocol == PROTOCOL_UNKNOWN)
            config->splits_arrays = false;
        config->has_protocol |= built->mode.protocol != PROTOCOL_UNKNOWN;
    }
    return true;
}

void config_free(struct config *config)
{
    for (size_t i = 0; i < config->pool_count; i++)
        pool_config_free(&config->pools[i]);
    free(config->pools);
    for (size_t i = 0; i < config->listen_count; i++)
        listen_free(&config->listens[i]);
    free(config->listens);
    listen_free(&config->listen);
    rmp_keys_free(&config->rmp);
    nats_keys_free(&config->nats);
    keys_free(config, &config_keys);
    *config = (struct config){.pools = NULL};
}

/* --- from the text to the document, and on --- */

static void read_document(struct config *config, const struct json_value *root,
                          struct diagnostics *diagnostics)
{
    check_document(diagnostics, root);
    if (diagnostics->errors == 0 &&
        build_listen(config, document_member(root, "listen")) != STDIO_BUS_OK)
        diagnostics_file(diagnostics, "cannot read \"listen\": %s", strerror(errno));
    if (diagnostics->errors == 0 && !build(config, root))
        diagnostics_file(diagnostics, "out of memory");
    if (diagnostics->errors == 0 &&
        rmp_keys_read(&config->rmp, document_member(root, "rmp")) != STDIO_BUS_OK)
        diagnostics_file(diagnostics, "cannot read \"rmp\": %s", strerror(errno));
    if (diagnostics->errors == 0 && !nats_keys_read(&config->nats, document_member(root, "nats")))
        diagnostics_file(diagnostics, "out of memory");
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
