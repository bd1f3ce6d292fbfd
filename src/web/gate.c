#include "build_config.h"

#include "web/gate.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/log.h"
#include "bus/gate.h"
#include "bus/service.h"
#include "bus/token_reload.h"
#include "http/head.h"
#include "monitor/metrics.h"
#include "process/pool.h"
#include "json/string.h"

#define TEXT_TYPE "text/plain; charset=utf-8"
#define JSON_TYPE "application/json"
#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define SHOWN_MAX 80 /* of a name from outside */
#define ALLOWED "GET, POST, DELETE, OPTIONS"

/* A request that is judged. */
struct judging {
    struct http_verdict *verdict;
    struct client *client;
    struct bus_listener *listener;
    struct http_rules rules; /* of the listener */
    const struct http_head *head;
    struct slice bytes, path;
    enum http_origin origin;
};

static struct slice value_of(const struct judging *judging, enum http_field field)
{
    return http_head_value(judging->head, judging->bytes, field);
}

static void add_fields(struct http_verdict *verdict, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add_fields(struct http_verdict *verdict, const char *format, ...)
{
    size_t room = sizeof verdict->fields - verdict->fields_len;
    va_list args;
    int more;

    va_start(args, format);
    more = vsnprintf(verdict->fields + verdict->fields_len, room, format, args);
    va_end(args);
    if (more > 0 && (size_t)more < room)
        verdict->fields_len += (size_t)more;
}

/* The answer is a line of text. */
static void answer_text(struct judging *judging, int status, const char *text)
{
    struct http_verdict *verdict = judging->verdict;
    int len = snprintf(verdict->text, sizeof verdict->text, "%s\n", text);

    verdict->status = status;
    verdict->type = TEXT_TYPE;
    verdict->body = slice_of(verdict->text, (size_t)len);
}

/* The answer is an error of JSON-RPC: clients of MCP show its message. */
static void answer_error(struct judging *judging, int status, const char *message)
{
    static const char before[] = "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32000,"
                                 "\"message\":";
    struct http_verdict *verdict = judging->verdict;
    struct json_output out = {.to = verdict->text, .size = sizeof verdict->text};

    json_output_add(&out, slice_of(before, sizeof before - 1));
    json_output_string(&out, slice_of_text(message));
    json_output_add(&out, slice_of("}}\n", 3));
    verdict->status = status;
    verdict->type = JSON_TYPE;
    verdict->body = slice_of(verdict->text, out.len);
}

/* 401 and 403. */
static void refuse_request(struct judging *judging, int status, const char *message)
{
    struct client *client = judging->client;

    log_repeated(judging->listener->bus->log, LOG_LEVEL_WARN, client->stream.endpoint.context,
                 origin_name(&client->visitor.origin), "refused a request (%d): %s (%s)", status,
                 message, client->visitor.origin.text);
    answer_error(judging, status, message);
}

static bool is_read(struct judging *judging)
{
    if (judging->head->method == HTTP_GET || judging->head->method == HTTP_HEAD)
        return true;
    add_fields(judging->verdict, "Allow: GET, HEAD\r\n");
    answer_text(judging, 405, "this can only be read");
    return false;
}

/* --- what needs no token, and is for any page --- */

static bool answer_health(struct judging *judging, enum http_place place)
{
    char text[HTTP_GATE_REASON_MAX] = "ok";
    bool is_good = true; /* a daemon that answers is healthy, also while it starts or stops */

    if (place != HTTP_PLACE_HEALTH && place != HTTP_PLACE_READY)
        return false;
    if (!is_read(judging))
        return true;
    if (place == HTTP_PLACE_READY)
        is_good = readiness_is_ready(judging->listener->bus, text, sizeof text);
    add_fields(judging->verdict, "Cache-Control: no-store\r\n");
    answer_text(judging, is_good ? 200 : 503, text);
    return true;
}

static bool answer_resource(struct judging *judging)
{
    const struct http_oauth_config *oauth = &judging->listener->config->http.oauth;
    struct http_verdict *verdict = judging->verdict;
    size_t len;

    if (!http_is_resource_path(&judging->rules, judging->path))
        return false;
    if (!is_read(judging))
        return true;
    verdict->owned = http_resource_document(oauth->resource, oauth->servers, oauth->scopes, &len);
    if (verdict->owned == NULL) {
        log_error(judging->listener->bus->log, judging->client->stream.endpoint.context,
                  "out of memory: a document is not sent");
        answer_text(judging, 503, "out of memory");
        return true;
    }
    add_fields(verdict, "Access-Control-Allow-Origin: *\r\n");
    verdict->status = 200;
    verdict->type = JSON_TYPE;
    verdict->body = slice_of(verdict->owned, len);
    return true;
}

/* --- Host, Origin and the preflight --- */

static bool passes_host(struct judging *judging)
{
    struct slice host = http_span_of(judging->head->host, judging->bytes);
    char shown[SHOWN_MAX], message[HTTP_GATE_REASON_MAX];

    if (http_host_allowed(&judging->rules, host))
        return true;
    snprintf(message, sizeof message, "the Host %s is not allowed here (listen.hosts)",
             log_escape(shown, sizeof shown, host));
    refuse_request(judging, 403, message);
    return false;
}

static bool passes_origin(struct judging *judging)
{
    struct slice host = http_span_of(judging->head->host, judging->bytes);
    struct slice origin = value_of(judging, HTTP_ORIGIN);
    struct http_verdict *verdict = judging->verdict;
    char shown[SHOWN_MAX], message[HTTP_GATE_REASON_MAX];

    judging->origin = http_origin_judge(&judging->rules, origin, host);
    if (judging->origin == HTTP_ORIGIN_NAMED)
        verdict->fields_len = http_cors_fields(verdict->fields, origin);
    if (judging->origin != HTTP_ORIGIN_REFUSED)
        return true;
    snprintf(message, sizeof message, "pages of %s are not allowed here (listen.origins)",
             log_escape(shown, sizeof shown, origin));
    refuse_request(judging, 403, message);
    return false;
}

/* A preflight has no token: the request that follows it has. */
static bool answer_options(struct judging *judging)
{
    struct http_verdict *verdict = judging->verdict;
    struct slice is_private = value_of(judging, HTTP_ACCESS_CONTROL_REQUEST_PRIVATE_NETWORK);

    if (judging->head->method != HTTP_OPTIONS)
        return false;
    verdict->status = 204;
    if (judging->origin == HTTP_ORIGIN_NAMED &&
        value_of(judging, HTTP_ACCESS_CONTROL_REQUEST_METHOD).data != NULL)
        verdict->fields_len =
            http_preflight_fields(verdict->fields, value_of(judging, HTTP_ORIGIN),
                                  value_of(judging, HTTP_ACCESS_CONTROL_REQUEST_HEADERS),
                                  http_word_is(is_private, "true"));
    else
        add_fields(verdict, "Allow: " ALLOWED "\r\n");
    return true;
}

/* --- what services show: to browsers, at paths that are no pool's --- */

/* Fields that proxies add: the peer is not the one that asks. Some add none of them, but speak
 * HTTP/1.0 to what is behind them, which no browser does. */
static bool is_passed_on(const struct judging *judging)
{
    static const char *const names[] = {"forwarded", "via", "x-forwarded-for", "x-forwarded-host",
                                        "x-real-ip"};
    struct slice name, value;
    size_t at = 0;

    if (judging->head->minor == 0)
        return true;
    while (http_head_next(judging->head, judging->bytes, &at, &name, &value)) {
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
            if (http_word_is(name, names[i]))
                return true;
        }
    }
    return false;
}

/* Browsers say which page has led them there. */
static bool is_linked(const struct judging *judging)
{
    struct slice site = value_of(judging, HTTP_SEC_FETCH_SITE);

    return site.data != NULL && !http_word_is(site, "same-origin") && !http_word_is(site, "none");
}

static bool is_shown(struct stdio_bus *bus, const struct web_look *look, struct web_view *view)
{
    each_service(bus, at, show) {
        if (at.service->show(at.state, look, view))
            return true;
    }
    return false;
}

static bool answer_look(struct judging *judging, bool has_token)
{
    struct http_verdict *verdict = judging->verdict;
    const struct web_look look = {
        .listener = judging->listener,
        .path = judging->path,
        .query = http_span_of(judging->head->query, judging->bytes),
        .host = http_span_of(judging->head->host, judging->bytes),
        .takes_html = judging->head->fields[HTTP_ACCEPT].at > 0 &&
                      http_head_lists(judging->head, judging->bytes, HTTP_ACCEPT, "text/html"),
        .is_near = judging->client->visitor.origin.is_local && !is_passed_on(judging),
        .is_own = judging->origin != HTTP_ORIGIN_NAMED,
        .is_linked = is_linked(judging),
        .has_token = has_token,
    };
    struct web_view view = {.owned = NULL};

    if ((judging->head->method != HTTP_GET && judging->head->method != HTTP_HEAD) ||
        !is_shown(judging->listener->bus, &look, &view))
        return false;
    add_fields(verdict, "%s", view.fields);
    verdict->status = view.status;
    verdict->type = view.type;
    verdict->owned = view.owned;
    verdict->body = view.body;
    return true;
}

/* --- the token --- */

/* From now on the client has a share. */
static void admit(struct client *client)
{
    if (client->stream.endpoint.peer.admitted)
        return;
    clients_leave_gate(client);
    router_admit_client(&client->listener->bus->router, &client->stream.endpoint.peer);
}

static bool passes_token(struct judging *judging)
{
    struct slice shown = http_bearer(value_of(judging, HTTP_AUTHORIZATION));
    struct bus_listener *listener = judging->listener;
    const struct named_token *token = NULL;
    char challenge[HTTP_CHALLENGE_MAX];

    if (!listener_asks_token(listener))
        return true;
    if (shown.data != NULL)
        token = token_reload_find(judging->client, shown);
    if (token != NULL) {
        token_reload_note(judging->client, token);
        admit(judging->client);
        judging->verdict->token = token->serial;
        return true;
    }
    if (shown.data == NULL && answer_look(judging, false))
        return false;
    http_challenge(challenge, &judging->rules, shown.data != NULL);
    add_fields(judging->verdict, "WWW-Authenticate: %s\r\n", challenge);
    refuse_request(judging, 401,
                   shown.data != NULL ? "the token is wrong" : "a bearer token is needed");
    return false;
}

/* --- the metrics, which are for the same clients as the pools --- */

static bool answer_metrics(struct judging *judging, enum http_place place)
{
    struct http_verdict *verdict = judging->verdict;
    struct json_text text = {.data = NULL};

    if (place != HTTP_PLACE_METRICS)
        return false;
    if (!is_read(judging))
        return true;
    metrics_of_bus(judging->listener->bus, &text);
    if (text.failed) {
        json_text_free(&text);
        log_error(judging->listener->bus->log, judging->client->stream.endpoint.context,
                  "out of memory: the metrics are not sent");
        answer_text(judging, 503, "out of memory");
        return true;
    }
    add_fields(verdict, "Cache-Control: no-store\r\n");
    verdict->owned = text.data;
    verdict->status = 200;
    verdict->type = METRICS_TYPE;
    verdict->body = json_text_slice(&text);
    return true;
}

/* --- the route --- */

static bool is_well_known(struct slice path)
{
    static const char prefix[] = "/.well-known/";

    return path.data != NULL && path.len >= sizeof prefix - 1 &&
           memcmp(path.data, prefix, sizeof prefix - 1) == 0;
}

/* What there is is told on this machine alone. */
static void answer_nowhere(struct judging *judging, const struct http_route *route)
{
    const struct http_listen_config *http = &judging->listener->config->http;
    char paths[HTTP_GATE_REASON_MAX / 2], message[HTTP_GATE_REASON_MAX] = "nothing is here";
    bool is_told = !judging->listener->listener.is_outside &&
                   judging->client->visitor.origin.is_local && (!http->is_bare || http->metrics);

    if (is_told && route->pool.data != NULL) {
        gate_describe_pools(judging->listener, message);
    } else if (is_told) {
        http_routes_describe(http, paths, sizeof paths);
        snprintf(message, sizeof message, "nothing is here; there is %s", paths);
    }
    answer_error(judging, 404, message);
}

/* The pool of the route, which is that of the listener if that has one. */
static bool finds_pool(struct judging *judging, const struct http_route *route)
{
    const struct bus_listener *listener = judging->listener;
    struct group *pool = listener->pool;

    if (route->pool.data != NULL)
        pool = router_pool_named(&listener->bus->router, route->pool);
    if (route->pool.data != NULL && listener->pool != NULL && pool != listener->pool)
        pool = NULL;
    judging->verdict->place = route->place;
    judging->verdict->pool = pool;
    return route->place != HTTP_PLACE_NOWHERE && (route->pool.data == NULL || pool != NULL);
}

void http_gate_judge(struct http_verdict *verdict, struct client *client,
                     const struct http_head *head, struct slice bytes)
{
    const struct listen_config *config = client->listener->config;
    struct judging judging = {
        .verdict = verdict,
        .client = client,
        .listener = client->listener,
        /* DNS rebinding needs a name, so hosts that are IP addresses pass. A token is no cookie: a
         * page does not have it. A browser does not connect to a Unix socket. */
        .rules = {.hosts = config->http.hosts,
                  .origins = config->http.origins,
                  .name = config->address.host,
                  .any_host = config->token_file != NULL || config->address.is_unix,
                  .resource = config->http.oauth.resource},
        .head = head,
        .bytes = bytes,
        .path = http_span_of(head->path, bytes),
    };
    struct http_route route = http_routes_find(&config->http, judging.path);

    *verdict = (struct http_verdict){.status = 0, .place = HTTP_PLACE_NOWHERE};
    if (answer_health(&judging, route.place) || answer_resource(&judging) ||
        !passes_host(&judging) || !passes_origin(&judging) || answer_options(&judging))
        return;
    if (is_well_known(judging.path)) /* clients look there for what a 401 did not say */
        answer_error(&judging, 404, "nothing is here");
    else if (passes_token(&judging) && !answer_metrics(&judging, route.place) &&
             !finds_pool(&judging, &route) &&
             !answer_look(&judging, listener_asks_token(judging.listener)))
        answer_nowhere(&judging, &route);
}

void http_verdict_free(struct http_verdict *verdict)
{
    free(verdict->owned);
    verdict->owned = NULL;
}

/* --- readiness --- */

/* A stopped worker whose time does not run is started when a client needs it. */
static bool is_ready(const struct worker *worker)
{
    return worker->stream.endpoint.peer.availability == PEER_READY ||
           (worker->state == WORKER_STOPPED && !timer_started(&worker->deadline));
}

static bool has_worker(const struct pool *pool)
{
    struct list_node *node, *following;

    list_each(&pool->workers, node, following) {
        if (is_ready(list_entry(node, struct worker, link)))
            return true;
    }
    return false;
}

bool readiness_is_ready(const struct stdio_bus *bus, char *text, size_t size)
{
    struct list_node *node, *following;
    char shown[64];

    if (bus->phase != BUS_PHASE_SERVING) {
        snprintf(text, size, bus->phase == BUS_PHASE_STARTING ? "starting" : "shutting down");
        return false;
    }
    list_each(&bus->pools, node, following) {
        const struct pool *pool = list_entry(node, struct pool, link);

        if (pool->fate != POOL_SERVES || has_worker(pool))
            continue;
        snprintf(text, size, "pool %s: no worker takes messages",
                 log_escape(shown, sizeof shown, pool->group.id));
        return false;
    }
    snprintf(text, size, "ready");
    return true;
}
