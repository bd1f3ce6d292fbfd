#include "build_config.h"

#include "web/mcp.h"

#include <stdlib.h>

#include "base/error.h"
#include "http/head.h"
#include "http/mcp_headers.h"
#include "http/response.h"
#include "web/sessions.h"
#include "web/stateless.h"
#include "json/param_fields.h"

#define ALLOW "Allow: GET, POST, DELETE, OPTIONS\r\n"
#define ALLOW_POST "Allow: POST, OPTIONS\r\n"

static const struct message_id no_id;

static void refuse_mcp(struct http_exchange *http, int status, int code, const char *text)
{
    http_answer_error(http, status, no_id, code, text);
}

/* --- messages --- */

static bool is_method(const struct message *message, const char *name)
{
    return message->method.data != NULL && slice_is(message->method, name);
}

/* The only request without a session begins one. */
static void without_session(struct http_exchange *http, const struct message *message)
{
    struct http_session *session;
    const char *problem;

    if (http->mcp->fields.version.data != NULL &&
        !mcp_version_is_handshake(http->mcp->fields.version)) {
        http_answer_error(http, 400, message->id, JSONRPC_INVALID_REQUEST,
                          "MCP-Protocol-Version is not supported");
        return;
    }
    if (!is_method(message, "initialize") || message->id.type == ID_NONE) {
        http_answer_error(http, 400, message->id, JSONRPC_INVALID_REQUEST,
                          "Mcp-Session-Id is missing: a session begins with initialize");
        return;
    }
    yield_connection(http->hub, http->client->stream.endpoint.peer.origin);
    session = http_sessions_add(http, &problem);
    if (session == NULL) {
        http_answer_error(http, 503, message->id, JSONRPC_SERVER_ERROR, problem);
        return;
    }
    http_session_join(session, http);
    http_session_post(http, message);
}

/* A message is of the stateless era if it, or its head, names a version of that; an initialize
 * never is. */
static bool is_stateless(const struct http_exchange *http, const struct message *message,
                         struct param_fields *fields)
{
    bool by_head = mcp_version_is_stateless(http->mcp->fields.version);

    fields->present = 0;
    if (by_head || param_fields_may_have_version(message->bytes))
        param_fields_find(fields, message->bytes, 0);
    return by_head ||
           (param_fields_has(fields, PARAM_VERSION) && !is_method(message, "initialize"));
}

static void read_message(struct http_exchange *http, const struct message *message)
{
    struct param_fields fields;

    if (http->session != NULL) /* it is offered again */
        http_session_post(http, message);
    else if (is_stateless(http, message, &fields))
        http_stateless_post(http, message, &fields);
    else if (http->mcp->session == NULL)
        without_session(http, message);
    else {
        struct http_session *session =
            http_sessions_find(http->hub, slice_of(http->mcp->session, HTTP_SESSION_ID_LEN));

        if (session == NULL) {
            refuse_mcp(http, 404, JSONRPC_SERVER_ERROR, "no such session: it has ended");
            return;
        }
        http_session_join(session, http);
        http_session_post(http, message);
    }
}

/* Until the body tells what the request is. */
const struct http_kind http_mcp_kind = {
    .message = read_message,
};

/* --- heads --- */

static char *copy(char **to, struct slice value, struct slice *place)
{
    if (value.data == NULL)
        return *to;
    memcpy(*to, value.data, value.len);
    *place = slice_of(*to, value.len);
    *to += value.len;
    return *to;
}

/* Keeps the fields that are compared with the body, and the id of the session, len 0: none. False:
 * out of memory. */
static bool keep_fields(struct http_exchange *http, const struct mcp_headers *fields,
                        struct slice session)
{
    struct mcp_fields *mcp = calloc(1, sizeof *mcp + fields->version.len + fields->method.len +
                                           fields->name.len + session.len);
    char *to;

    if (mcp == NULL)
        return false;
    to = mcp->text;
    copy(&to, fields->version, &mcp->fields.version);
    copy(&to, fields->method, &mcp->fields.method);
    copy(&to, fields->name, &mcp->fields.name);
    if (session.data != NULL) {
        mcp->session = to;
        memcpy(to, session.data, session.len);
    }
    http->mcp = mcp;
    return true;
}

static bool keep_head(struct http_exchange *http, struct slice head, struct slice session)
{
    const struct http_head *parts = &http->reader.head;
    const struct mcp_headers fields = {
        .version = http_head_value(parts, head, HTTP_MCP_PROTOCOL_VERSION),
        .method = http_head_value(parts, head, HTTP_MCP_METHOD),
        .name = http_head_value(parts, head, HTTP_MCP_NAME),
    };

    return keep_fields(http, &fields, session);
}

void http_mcp_archive(struct archive *archive, struct http_exchange *http)
{
    struct mcp_headers fields = {.version = {NULL, 0}};
    struct slice session = {NULL, 0};

    if (archive->saves) {
        fields = http->mcp->fields;
        if (http->mcp->session != NULL)
            session = slice_of(http->mcp->session, HTTP_SESSION_ID_LEN);
    }
    fields.version = archive_slice(archive, fields.version);
    fields.method = archive_slice(archive, fields.method);
    fields.name = archive_slice(archive, fields.name);
    session = archive_slice(archive, session);
    archive_expect(archive, session.data == NULL || session.len == HTTP_SESSION_ID_LEN,
                   "the id of a session has another length");
    if (!archive->saves && archive_ok(archive) && !keep_fields(http, &fields, session))
        archive_lacks_memory(archive);
}

/* Of one name: a session may keep a pool whose name another one has now. */
static bool is_pool_of(const struct http_session *session, const struct http_exchange *http)
{
    if (session->pool == NULL || http->pool == NULL)
        return session->pool == http->pool;
    return slice_equal(session->pool->id, http->pool->id);
}

/* The session that the head names, if it is one of this path and token; NULL after an answer. */
static struct http_session *named_session(struct http_exchange *http, struct slice id)
{
    struct http_session *session = http_sessions_find(http->hub, id);

    if (session == NULL || session->ending != NULL || !is_pool_of(session, http) ||
        session->listener != http->client->listener || session->token != http->token) {
        http_reader_skip_body(&http->reader);
        refuse_mcp(http, 404, JSONRPC_SERVER_ERROR, "no such session: it has ended");
        return NULL;
    }
    return session;
}

static bool is_json(struct slice type)
{
    const char *end;

    if (type.data == NULL)
        return false;
    end = memchr(type.data, ';', type.len);
    if (end != NULL)
        type.len = (size_t)(end - type.data);
    return http_word_is(slice_trim(type), "application/json");
}

static void take_post(struct http_exchange *http, struct slice head, struct slice session_id,
                      bool stateless)
{
    const struct http_head *parts = &http->reader.head;
    unsigned accepted = http_head_accepts(parts, head);
    const char *problem = NULL;
    int status = 400;

    http->reply = accepted == HTTP_ACCEPTS_JSON     ? HTTP_REPLY_JSON
                  : accepted == HTTP_ACCEPTS_EVENTS ? HTTP_REPLY_EVENTS
                                                    : HTTP_REPLY_EITHER;
    if (parts->body == HTTP_BODY_NONE) {
        problem = "a POST without a body";
    } else if (!is_json(http_head_value(parts, head, HTTP_CONTENT_TYPE))) {
        status = 415;
        problem = "Content-Type is not application/json";
    } else if (accepted == 0) {
        status = 406;
        problem = "Accept allows neither application/json nor text/event-stream";
    } else if (!keep_head(http, head, stateless ? slice_of(NULL, 0) : session_id)) {
        status = 503;
        problem = "out of memory";
    }
    if (problem != NULL) {
        http_reader_skip_body(&http->reader);
        refuse_mcp(http, status, JSONRPC_INVALID_REQUEST, problem);
        return;
    }
    http->kind = &http_mcp_kind;
    http->state = HTTP_READING;
    if (parts->expects_continue)
        (void)connection_send_bytes(http_connection(http), slice_of_text(HTTP_CONTINUE));
}

static void serve_get(struct http_exchange *http, struct slice head, struct http_session *session)
{
    if (!(http_head_accepts(&http->reader.head, head) & HTTP_ACCEPTS_EVENTS)) {
        refuse_mcp(http, 406, JSONRPC_INVALID_REQUEST, "Accept does not allow text/event-stream");
        return;
    }
    http->reply = HTTP_REPLY_EVENTS;
    http_session_join(session, http);
    http_session_get(http, http_head_value(&http->reader.head, head, HTTP_LAST_EVENT_ID));
}

/* A method with a session. */
static void in_session(struct http_exchange *http, struct slice head, struct slice session_id,
                       struct slice version)
{
    struct http_session *session = named_session(http, session_id);

    if (session == NULL)
        return;
    if (version.data != NULL)
        session->primes = memcmp(version.data, "2025-11-25", 10) >= 0;
    if (http->reader.head.method == HTTP_POST) {
        take_post(http, head, session_id, false);
    } else if (http->reader.head.method == HTTP_GET) {
        serve_get(http, head, session);
    } else {
        http_sessions_end(session, "its client has deleted it");
        http_answer_empty(http, 204, slice_of(NULL, 0));
    }
}

void http_mcp_begin(struct http_exchange *http, struct slice head)
{
    const struct http_head *parts = &http->reader.head;
    struct slice id = http_head_value(parts, head, HTTP_MCP_SESSION_ID);
    struct slice version = http_head_value(parts, head, HTTP_MCP_PROTOCOL_VERSION);
    bool stateless = version.data != NULL && mcp_version_is_stateless(version);
    bool is_post = parts->method == HTTP_POST;

    if (!is_post && parts->method != HTTP_GET && parts->method != HTTP_DELETE) {
        http_reader_skip_body(&http->reader);
        http_answer_empty(http, 405, slice_of_text(ALLOW));
    } else if (!is_post && (stateless || id.data == NULL)) {
        http_reader_skip_body(&http->reader);
        http_answer(http, 405, "text/plain", slice_of_text("there is no session to listen to\n"),
                    slice_of_text(stateless ? ALLOW_POST : ALLOW));
    } else if (id.data != NULL && version.data != NULL && !stateless &&
               !mcp_version_is_handshake(version)) {
        http_reader_skip_body(&http->reader);
        refuse_mcp(http, 400, JSONRPC_INVALID_REQUEST, "MCP-Protocol-Version is not supported");
    } else if (id.data != NULL && !stateless) {
        if (!is_post)
            http_reader_skip_body(&http->reader);
        in_session(http, head, id, version);
    } else {
        take_post(http, head, id, stateless);
    }
}
