#include "build_config.h"

#include "web/stateless.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bus/client_limits.h"
#include "bus/deliver.h"
#include "router/decision.h"
#include "json/string.h"

#define NAME_MAX_BYTES 16384 /* as long as a head */

#define SUPPORTED ",\"data\":{\"supported\":[\"" MCP_STATELESS_VERSION "\"],\"requested\":"

/* --- answers --- */

/* The status that goes with the code of an error. */
static int status_of(struct slice answer)
{
    struct param_fields fields;
    int64_t code = 0;

    param_fields_find(&fields, answer, 0);
    if (!param_fields_integer(&fields, ERROR_CODE, answer, &code))
        return 200;
    if (code == JSONRPC_METHOD_NOT_FOUND)
        return 404;
    return code >= MCP_UNSUPPORTED_VERSION && code <= MCP_HEADER_MISMATCH ? 400 : 200;
}

/* An error is at the front of its message; an answer with a result is not searched. */
static int status_of_delivery(const struct delivery *delivery)
{
    if (delivery->decision != NULL && !delivery->decision->message->has_error)
        return 200;
    return status_of(delivery->bytes);
}

static int send_event(struct http_exchange *http, const struct delivery *delivery)
{
    if (http->state == HTTP_OWING && http_answer_begin_events(http, NULL) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    return http_answer_event(http, slice_of(NULL, 0), delivery);
}

static int stateless_deliver(struct http_exchange *http, const struct delivery *delivery)
{
    struct delivery_subject subject = delivery_subject(delivery);
    int result;

    if (http->state == HTTP_READING) /* nothing waits for an answer */
        return STDIO_BUS_OK;
    if (subject.answers && http->state == HTTP_OWING && http->reply != HTTP_REPLY_EVENTS)
        return http_answer_delivery(http, status_of_delivery(delivery), delivery,
                                    slice_of(NULL, 0));
    if (!subject.answers && http->reply == HTTP_REPLY_JSON)
        return STDIO_BUS_OK;
    result = send_event(http, delivery);
    if (result == STDIO_BUS_OK && subject.answers)
        http_answer_end(http);
    return result;
}

static void stateless_silent(struct http_exchange *http)
{
    if (http->state == HTTP_STREAMING)
        http_answer_comment(http);
    else if (http->state == HTTP_OWING && http->reply != HTTP_REPLY_JSON &&
             http_answer_begin_events(http, NULL) != STDIO_BUS_OK)
        log_error(http->hub->bus->log, http->client->stream.endpoint.context,
                  "out of memory: a stream does not begin");
}

static void stateless_over(struct http_exchange *http)
{
    router_set_brief(&http->client->stream.endpoint.peer, false);
}

static void offer_message(struct http_exchange *http, const struct message *message)
{
    struct endpoint *endpoint = &http->client->stream.endpoint;

    client_limits_offer(endpoint, message);
    if (http->state == HTTP_READING && !peer_held(&endpoint->peer))
        http_answer_empty(http, 202, slice_of(NULL, 0));
}

const struct http_kind http_stateless_kind = {
    .message = offer_message,
    .deliver = stateless_deliver,
    .silent = stateless_silent,
    .over = stateless_over,
};

/* --- the check of the head --- */

static const char no_memory[] = "out of memory";

/* Finds a string of the message, decoded into *room, which is to be freed; none: text->data is
 * NULL. False: out of memory. */
static bool find_text(struct slice *text, const struct param_fields *fields, enum param_field field,
                      struct slice message, char **room)
{
    if (!param_fields_has(fields, field) || fields->at[field].type != SCAN_STRING)
        return true;
    if (fields->at[field].escaped && (*room = malloc(NAME_MAX_BYTES)) == NULL)
        return false;
    if (!param_fields_string(fields, field, message, *room, NAME_MAX_BYTES, text))
        *text = slice_of("", 0); /* longer than any field: it equals none */
    return true;
}

/* NULL: the message is what the head says. no_memory: this was not found out. */
static const char *mismatch(const struct http_exchange *http, const struct message *message,
                            const struct param_fields *fields)
{
    static const enum param_field sources[] = {
        [MCP_NAME_NAME] = PARAM_NAME, [MCP_NAME_URI] = PARAM_URI, [MCP_NAME_TASK] = PARAM_TASK};
    struct mcp_headers said = {.method = message->method};
    char method[64], version[32], *room = NULL;
    enum mcp_name name;
    const char *problem;

    if (memchr(said.method.data, '\\', said.method.len) != NULL)
        said.method = slice_of(method, json_string_decode(method, sizeof method, said.method));
    if (!param_fields_string(fields, PARAM_VERSION, message->bytes, version, sizeof version,
                             &said.version))
        said.version.data = NULL;
    name = mcp_name_of(said.method);
    if (name != MCP_NAME_NONE &&
        !find_text(&said.name, fields, sources[name], message->bytes, &room))
        return no_memory;
    problem = mcp_headers_mismatch(&http->mcp->fields, &said, message->id.type != ID_NONE);
    free(room);
    return problem;
}

/* What the params of a request lack, or NULL. */
static const char *lack(const struct param_fields *fields)
{
    if (!param_fields_has(fields, PARAM_VERSION))
        return "params._meta has no io.modelcontextprotocol/protocolVersion";
    if (!param_fields_has(fields, PARAM_CAPABILITIES))
        return "params._meta has no io.modelcontextprotocol/clientCapabilities";
    return NULL;
}

/* An error that names the versions. A version that is a date is the server's to judge: it may know
 * later ones. Servers on stdio need not look at it again after their first message. */
static void refuse_version(struct http_exchange *http, struct message_id id, struct slice version)
{
    char line[MESSAGE_ERROR_MAX];
    struct json_output out = {.to = line, .size = sizeof line};

    out.len = message_write_error(line, sizeof line, id, MCP_UNSUPPORTED_VERSION,
                                  "the protocol version is not supported");
    out.len -= strlen("}}\n");
    json_output_add(&out, slice_of_text(SUPPORTED));
    json_output_string(&out, version);
    json_output_add(&out, slice_of_text("}}}"));
    http_answer(http, 400, "application/json", slice_of(line, out.len), slice_of(NULL, 0));
}

/* Its head names a version without sessions. */
static bool begins_session(const struct message *message)
{
    return slice_is(message->method, "initialize");
}

void http_stateless_post(struct http_exchange *http, const struct message *message,
                         const struct param_fields *fields)
{
    struct peer *peer = &http->client->stream.endpoint.peer;
    bool has_id = message->id.type != ID_NONE;
    const char *problem;

    clients_announce(http->client);
    if (message->method.data == NULL) {
        http_answer_error(http, 400, message->id, JSONRPC_INVALID_REQUEST,
                          "no request and no notification");
        return;
    }
    problem = mismatch(http, message, fields);
    if (problem == no_memory) {
        http_answer_error(http, 503, message->id, JSONRPC_SERVER_ERROR, problem);
        return;
    }
    if (problem != NULL) {
        http_answer_error(http, 400, message->id, MCP_HEADER_MISMATCH, problem);
        return;
    }
    if (has_id && (problem = lack(fields)) != NULL) {
        http_answer_error(http, 400, message->id,
                          begins_session(message) ? MCP_HEADER_MISMATCH : JSONRPC_INVALID_PARAMS,
                          problem);
        return;
    }
    if (has_id && !mcp_version_is_stateless(http->mcp->fields.version)) {
        refuse_version(http, message->id, http->mcp->fields.version);
        return;
    }
    if (has_id && slice_is(http->mcp->fields.method, "initialize")) {
        http_answer_error(http, 404, message->id, JSONRPC_METHOD_NOT_FOUND,
                          "the stateless era has no initialize");
        return;
    }
    http->kind = &http_stateless_kind;
    router_set_brief(peer, true);
    http_open_pool(http);
    if (has_id)
        http_exchange_owe(http);
    offer_message(http, message);
}
