#include "build_config.h"

#include "control/request.h"

#include <string.h>

#include "base/error.h"
#include "json/message.h"
#include "json/param_fields.h"
#include "json/text.h"

const char *const control_method_names[CONTROL_METHODS] = {
    [CONTROL_STATUS] = "status",     [CONTROL_POOLS] = "pools",
    [CONTROL_WORKERS] = "workers",   [CONTROL_CLIENTS] = "clients",
    [CONTROL_SESSIONS] = "sessions", [CONTROL_REQUESTS] = "requests",
    [CONTROL_NODES] = "nodes",       [CONTROL_FIGURES] = "figures",
    [CONTROL_METRICS] = "metrics",   [CONTROL_EVENTS] = "events",
    [CONTROL_RESTART] = "restart",   [CONTROL_DRAIN] = "drain",
    [CONTROL_RESUME] = "resume",     [CONTROL_DISCONNECT] = "disconnect",
    [CONTROL_LOG] = "log",           [CONTROL_RELOAD] = "reload",
    [CONTROL_UPGRADE] = "upgrade",
};

static bool read_method(struct control_request *request, const struct json_value *method)
{
    int i;

    for (i = 0; i < CONTROL_METHODS; i++) {
        if (slice_is(method->text, control_method_names[i])) {
            request->method = (enum control_method)i;
            return true;
        }
    }
    return false;
}

/* A number from 1 on; without the key it stays as it is. */
static bool read_number(int64_t *to, const struct json_value *params, const char *key)
{
    const struct json_value *value = document_member(params, key);

    return value == NULL || (document_integer(value, to) && *to > 0);
}

static bool read_string(struct slice *to, const struct json_value *params, const char *key)
{
    const struct json_value *value = document_member(params, key);

    if (value == NULL)
        return true;
    *to = value->text;
    return value->type == JSON_STRING;
}

static const char *read_params(struct control_request *request, const struct json_value *params)
{
    int64_t limit = CONTROL_LIMIT_DEFAULT;

    if (params == NULL)
        return NULL;
    if (params->type != JSON_OBJECT)
        return "params must be an object";
    if (!read_number(&request->worker, params, "worker"))
        return "worker must be a number from 1 on";
    if (!read_number(&request->client, params, "client"))
        return "client must be a number from 1 on";
    if (!read_number(&limit, params, "limit") || limit > CONTROL_LIMIT_MAX)
        return "limit must be a number from 1 to 10000";
    if (!read_string(&request->pool, params, "pool"))
        return "pool must be a string";
    if (!read_string(&request->level, params, "level"))
        return "level must be a string";
    request->limit = (size_t)limit;
    return NULL;
}

/* Whether the id can be sent back. */
static bool has_id(const struct scan_fields *fields)
{
    return fields->id.type == SCAN_STRING || fields->id.type == SCAN_NUMBER;
}

int control_request_read(struct control_request *request, struct slice line,
                         const struct scan_fields *fields, const char **problem)
{
    const struct json_value *method;
    struct document_error error;
    int status;

    *request = (struct control_request){.limit = CONTROL_LIMIT_DEFAULT};
    if (has_id(fields))
        request->id = param_fields_raw(line, &fields->id);
    status = document_read(&request->document, line, &error);
    *problem = status == STDIO_BUS_ERR ? "out of memory" : "a key is there twice, or too deep";
    if (status != STDIO_BUS_OK)
        return status == STDIO_BUS_ERR ? CONTROL_NO_MEMORY : JSONRPC_INVALID_REQUEST;
    *problem = "a request has a method, a string";
    method = document_member(request->document.root, "method");
    if (method == NULL || method->type != JSON_STRING)
        return JSONRPC_INVALID_REQUEST;
    *problem =
        "no such method; there are status, pools, workers, clients, sessions, requests, "
        "nodes, figures, metrics, events, restart, drain, resume, disconnect, log, reload, upgrade";
    if (!read_method(request, method))
        return JSONRPC_METHOD_NOT_FOUND;
    *problem = read_params(request, document_member(request->document.root, "params"));
    return *problem == NULL ? 0 : JSONRPC_INVALID_PARAMS;
}

void control_request_free(struct control_request *request)
{
    document_free(&request->document);
    *request = (struct control_request){.limit = 0};
}

static void begin_reply(struct json_text *to, struct slice id)
{
    json_text_literal(to, "{\"jsonrpc\":\"2.0\",\"id\":");
    if (id.data != NULL)
        json_text_add(to, id);
    else
        json_text_literal(to, "null");
}

void control_write_result(struct json_text *to, struct slice id, struct slice result)
{
    begin_reply(to, id);
    json_text_literal(to, ",\"result\":");
    json_text_add(to, result);
    json_text_literal(to, "}\n");
}

void control_write_error(struct json_text *to, struct slice id, int code, const char *problem)
{
    begin_reply(to, id);
    row_begin(to, "error", '{');
    row_number(to, "code", code);
    row_string(to, "message", problem);
    row_end(to, '}');
    json_text_literal(to, "}\n");
}
