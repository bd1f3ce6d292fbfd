/* doc/security.md: an HTTP listener, and the browser as attacker. */
#include "build_config.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/un.h>

#include "harness.h"

/* --- a daemon with one HTTP listener --- */

/* "listen" has these members beside the address. */
static struct daemon *start_http_at(const char *address, const char *members)
{
    return START(.mode = SETUP_STDIO, .default_mode = true, .closed = true,
                 .pools = POOL("a", 1, "'--name','a'") "," POOL("b", 1, "'--name','b'"),
                 .members = test_format("'listen':[{'http':'%s'%s%s}]", address,
                                        members[0] != '\0' ? "," : "", members));
}

static struct daemon *start_http(const char *members)
{
    return start_http_at("127.0.0.1:0", members);
}

static const char *ask(struct daemon *daemon, const char *head)
{
    return http_ask(http_client(daemon), head, NULL);
}

#define RPC "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\"}"
#define JSON "Content-Type: application/json\r\n"

static const char *ask_rpc(struct daemon *daemon, const char *path, const char *fields)
{
    return http_ask(http_client(daemon),
                    test_format("POST %s HTTP/1.1\r\nHost: localhost\r\n" JSON "%s", path, fields),
                    RPC);
}

static void expect_status(const char *answer, int status)
{
    ck_assert_msg(strncmp(answer, test_format("HTTP/1.1 %d ", status), 13) == 0, "not %d: %s",
                  status, answer);
}

/* What the worker got is in the answer. */
static void expect_served(const char *answer, const char *pool)
{
    expect_status(answer, 200);
    expect_word(answer, test_format("\"worker\":\"%s\"", pool));
}

static void expect_field(const char *answer, const char *field)
{
    const char *end = strstr(answer, "\r\n\r\n"),
               *at = strstr(answer, test_format("\r\n%s\r\n", field));

    ck_assert_msg(end != NULL && at != NULL && at <= end, "no \"%s\" in: %s", field, answer);
}

static void expect_no_field(const char *answer, const char *name)
{
    ck_assert_msg(strstr(answer, test_format("\r\n%s: ", name)) == NULL, "%s in: %s", name, answer);
}

static void rewrite_tokens(const char *path, const char *content)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, content, strlen(content)), (ssize_t)strlen(content));
    close(fd);
}

static const char *write_tokens(const char *content)
{
    const char *path = test_format("%s/tokens", test_dir());

    rewrite_tokens(path, content);
    return path;
}

/* --- Host: a page whose name was made to point here --- */

static const struct {
    const char *host;
    bool local, named;
} hosts[] = {
    {"localhost", true, true},
    {"127.0.0.1:8080", true, true},
    {"[::1]:1", true, true},
    {"evil.example", false, false},
    {"evil.example:8080", false, false},
    {"localhost.evil.example", false, false},
    {"mcp.example", false, true},
    {"mcp.example:8080", false, true},
};

TEST_ROWS(security_http_host_of_another_name, COUNT(hosts))
{
    const char *fields = test_format("Host: %s\r\n" JSON, hosts[row].host);
    struct daemon *daemon = start_http("'pool':'a'");
    const char *answer = http_ask(http_client(daemon),
                                  test_format("POST /rpc HTTP/1.1\r\n%s", fields), RPC);

    expect_status(answer, hosts[row].local ? 200 : 403);
    if (!hosts[row].local) {
        expect_word(answer, "listen.hosts");
        daemon_wait_log(daemon, "WARN .*refused a request \\(403\\): the Host .*example");
    }
    daemon_stop(daemon);
    daemon = start_http("'hosts':['mcp.example'],'pool':'a'");
    answer = http_ask(http_client(daemon), test_format("POST /rpc HTTP/1.1\r\n%s", fields), RPC);
    expect_status(answer, hosts[row].named ? 200 : 403);
}

/* HTTP/1.0 needs no Host, and gets nothing without one. */
TEST(security_http_host_is_needed)
{
    struct daemon *daemon = start_http("");

    expect_status(ask(daemon, "GET /mcp HTTP/1.0\r\n"), 403);
    expect_status(ask(daemon, "GET /mcp HTTP/1.1\r\n"), 400);
    expect_status(ask(daemon, "GET http://evil.example/mcp HTTP/1.1\r\nHost: localhost\r\n"), 403);
}

/* --- Origin: a page of another place --- */

static const struct {
    const char *origin;
    bool own, named; /* served; and with a list of origins */
} origins[] = {{"http://localhost:7777", true, true},    {"https://localhost:7777", true, true},
               {"http://localhost", false, false},       {"http://localhost:7778", false, false},
               {"http://127.0.0.1:7777", false, false},  {"null", false, false},
               {"https://evil.example", false, false},   {"https://app.example", false, true},
               {"https://app.example:1", false, false},  {"http://dev.example:5173", false, true},
               {"http://dev.example.evil", false, false}};

static const char *ask_from(struct daemon *daemon, const char *method, const char *origin,
                            const char *more)
{
    return http_ask(http_client(daemon),
                    test_format("%s /rpc/a HTTP/1.1\r\nHost: localhost:7777\r\nOrigin: %s\r\n" JSON
                                "%s",
                                method, origin, more),
                    strcmp(method, "POST") == 0 ? RPC : NULL);
}

/* A refused request reaches no worker, and no page reads the answer. */
TEST_ROWS(security_http_origin_of_another_page, COUNT(origins))
{
    struct daemon *daemon = start_http("");
    const char *answer = ask_from(daemon, "POST", origins[row].origin, "");

    expect_status(answer, origins[row].own ? 200 : 403);
    expect_no_field(answer, "Access-Control-Allow-Origin");
    if (!origins[row].own)
        daemon_wait_log(daemon, "WARN .*refused a request \\(403\\): pages of ");
    daemon_stop(daemon);
    daemon = start_http("'origins':['https://app.example','http://dev.example:*']");
    answer = ask_from(daemon, "POST", origins[row].origin, "");
    expect_status(answer, origins[row].named ? 200 : 403);
    if (origins[row].named && !origins[row].own)
        expect_field(answer, test_format("Access-Control-Allow-Origin: %s", origins[row].origin));
    else
        expect_no_field(answer, "Access-Control-Allow-Origin");
}

#define PREFLIGHT                                                                                  \
    "Access-Control-Request-Method: POST\r\n"                                                      \
    "Access-Control-Request-Headers: authorization, mcp-session-id\r\n"

/* A preflight has no token; the request after it has. */
TEST(security_http_preflight)
{
    const char *tokens = write_tokens("secret");
    struct daemon *daemon =
        start_http(test_format("'origins':['https://app.example'],'token_file':'%s'", tokens));
    const char *answer = ask_from(daemon, "OPTIONS", "https://app.example", PREFLIGHT);

    expect_status(answer, 204);
    expect_field(answer, "Access-Control-Allow-Origin: https://app.example");
    expect_field(answer, "Access-Control-Allow-Headers: authorization, mcp-session-id");
    expect_field(answer, "Access-Control-Allow-Methods: GET, POST, DELETE, OPTIONS");
    expect_field(answer, "Vary: Origin");
    expect_no_field(answer, "Access-Control-Allow-Private-Network");
    answer = ask_from(daemon, "OPTIONS", "https://app.example",
                      PREFLIGHT "Access-Control-Request-Private-Network: true\r\n");
    expect_field(answer, "Access-Control-Allow-Private-Network: true");
    answer = ask_from(daemon, "OPTIONS", "https://evil.example", PREFLIGHT);
    expect_status(answer, 403);
    expect_no_field(answer, "Access-Control-Allow-Origin");
    answer = ask_from(daemon, "POST", "https://app.example", "");
    expect_status(answer, 401); /* which the page may read */
    expect_field(answer, "Access-Control-Allow-Origin: https://app.example");
    expect_served(ask_from(daemon, "POST", "https://app.example",
                           "Authorization: Bearer secret\r\n"),
                  "a");
}

/* --- tokens --- */

static const struct {
    const char *field, *challenge; /* NULL: served */
} shown[] = {
    {"", "Bearer realm=\"stdio_bus\""},
    {"Authorization: Bearer secret-1\r\n", NULL},
    {"Authorization: bearer   secret:2\r\n", NULL},
    {"Authorization: Bearer secret-\r\n", "Bearer realm=\"stdio_bus\", error=\"invalid_token\""},
    {"Authorization: Bearer secret-1x\r\n", "Bearer realm=\"stdio_bus\", error=\"invalid_token\""},
    {"Authorization: Bearer ann:secret-1\r\n",
     "Bearer realm=\"stdio_bus\", error=\"invalid_token\""},
    {"Authorization: Basic c2VjcmV0LTE=\r\n", "Bearer realm=\"stdio_bus\""},
    {"Authorization: secret-1\r\n", "Bearer realm=\"stdio_bus\""},
    {"Cookie: token=secret-1\r\n", "Bearer realm=\"stdio_bus\""},
};

TEST_ROWS(security_http_token, COUNT(shown))
{
    const char *path = write_tokens("# two\nann:secret-1\nbob:secret:2\n");
    struct daemon *daemon = start_http(test_format("'token_file':'%s'", path));
    const char *answer = ask_rpc(daemon, "/rpc/a", shown[row].field);

    if (shown[row].challenge == NULL) {
        expect_served(answer, "a");
        daemon_wait_log(daemon, "INFO .*client=1.* connected: .*, token (ann|bob)");
    } else {
        expect_status(answer, 401);
        expect_field(answer, test_format("WWW-Authenticate: %s", shown[row].challenge));
        daemon_wait_log(daemon, "WARN .*refused a request \\(401\\)");
        ck_assert(!daemon_logged(daemon, "its token is"));
    }
    ck_assert(!daemon_logged(daemon, "secret"));
    /* Without a token nothing is told about paths. */
    expect_status(ask(daemon, "GET /nowhere HTTP/1.1\r\nHost: localhost\r\n"), 401);
}

/* A token that is gone opens nothing, also on a connection that is open. */
TEST(security_http_token_is_revoked)
{
    static const char request[] = "POST /rpc/a HTTP/1.1\r\nHost: localhost\r\n" JSON
                                  "Authorization: Bearer one\r\nContent-Length: 40\r\n\r\n" RPC;
    const char *path = write_tokens("ann:one\nbob:two\n");
    struct daemon *daemon = start_http(test_format("'token_file':'%s'", path));
    struct client *ann = http_client(daemon);

    client_send_bytes(ann, request, sizeof request - 1);
    while (ann->input.len == 0 || strstr(ann->input.data, "\"worker\":\"a\"") == NULL)
        ck_assert(client_read_before(ann, deadline_usual()));
    rewrite_tokens(path, "bob:two\n\n");
    daemon_signal(daemon, SIGUSR1);
    while (client_read_before(ann, deadline_usual()))
        ;
    ck_assert(ann->eof);
    expect_status(ask_rpc(daemon, "/rpc/a", "Authorization: Bearer one\r\n"), 401);
    expect_served(ask_rpc(daemon, "/rpc/a", "Authorization: Bearer two\r\n"), "a");
}

/* Connections that show no token make way for others, and end after a while. */
TEST_ROWS(security_http_silent_connections_keep_nobody_out, 2)
{
    struct client *silent[70];
    const char *path = write_tokens("secret");
    struct daemon *daemon =
        START(.mode = SETUP_STDIO, .default_mode = true, .closed = true,
              .pools = POOL("a", 1, "'--name','a'"),
              .members = test_format("'listen':{'http':'127.0.0.1:0','token_file':'%s'}", path),
              .limits = row == 0 ? "'max_connections':1000" : "'max_connections':3");

    for (int i = 0; i < 70; i++)
        silent[i] = http_client(daemon);
    expect_served(ask_rpc(daemon, "/rpc/a", "Authorization: Bearer secret\r\n"), "a");
    client_expect_eof(silent[0]);
    client_expect_eof(silent[6]);
    if (row == 0)
        client_expect_eof(silent[69]); /* after ten seconds */
}

/* RFC 9728: where clients find who gives tokens. */
TEST(security_http_resource_metadata)
{
    static const char *const paths[] = {"/.well-known/oauth-protected-resource",
                                        "/.well-known/oauth-protected-resource/mcp"};
    const char *path = write_tokens("secret");
    struct daemon *daemon = start_http(
        test_format("'token_file':'%s','oauth':{'resource':'https://mcp.example/mcp',"
                    "'authorization_servers':['https://auth.example'],'scopes':['tools']}",
                    path));
    const char *answer = ask_rpc(daemon, "/rpc/a", "");

    expect_status(answer, 401);
    expect_field(answer, "WWW-Authenticate: Bearer realm=\"stdio_bus\", resource_metadata="
                         "\"https://mcp.example/.well-known/oauth-protected-resource/mcp\"");
    for (size_t i = 0; i < COUNT(paths); i++) {
        answer = ask(daemon, test_format("GET %s HTTP/1.1\r\nHost: mcp.example\r\n", paths[i]));
        expect_status(answer, 200);
        expect_field(answer, "Access-Control-Allow-Origin: *");
        expect_word(answer, "{\"resource\":\"https://mcp.example/mcp\",\"authorization_servers\":["
                            "\"https://auth.example\"],\"scopes_supported\":[\"tools\"],");
    }
    answer = ask(daemon, "GET /.well-known/oauth-authorization-server HTTP/1.1\r\nHost: x\r\n");
    expect_status(answer, 404); /* not 401: the client looks on */
}

/* --- other machines --- */

/* A connection from an address of this machine that is not loopback; NULL: there is none. */
static struct client *connect_from_afar(struct daemon *daemon)
{
    const char *line = daemon_wait_log(daemon, "listening on 0\\.0\\.0\\.0:[0-9]+");
    struct sockaddr_in from = {.sin_family = AF_INET}, to = {.sin_family = AF_INET};
    struct ifaddrs *all = NULL;
    int fd;

    to.sin_port = htons((uint16_t)strtoul(strrchr(line, ':') + 1, NULL, 10));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (getifaddrs(&all) != 0)
        return NULL;
    for (struct ifaddrs *each = all; each != NULL; each = each->ifa_next) {
        if (each->ifa_addr != NULL && each->ifa_addr->sa_family == AF_INET &&
            (each->ifa_flags & (IFF_UP | IFF_LOOPBACK)) == IFF_UP)
            from.sin_addr = ((struct sockaddr_in *)(void *)each->ifa_addr)->sin_addr;
    }
    freeifaddrs(all);
    if (from.sin_addr.s_addr == 0)
        return NULL;
    fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return client_adopt(fd, fd);
}

#define FROM_AFAR "POST /rpc/a HTTP/1.1\r\nHost: 10.0.0.1\r\n" JSON

TEST(security_http_other_machines)
{
    struct daemon *daemon = start_http_at("0.0.0.0:0", "");
    struct client *far = connect_from_afar(daemon);
    const char *answer;

    if (far == NULL)
        return;
    daemon_wait_log(daemon, "WARN .*whose connections are refused");
    answer = http_ask(far, FROM_AFAR, RPC);
    expect_status(answer, 403);
    expect_word(answer, "listen.token_file");
    expect_served(ask_rpc(daemon, "/rpc/a", ""), "a");
    daemon_stop(daemon);
    daemon = start_http_at("0.0.0.0:0", test_format("'token_file':'%s'", write_tokens("secret")));
    expect_status(http_ask(connect_from_afar(daemon), FROM_AFAR, RPC), 401);
    expect_served(http_ask(connect_from_afar(daemon), FROM_AFAR "Authorization: Bearer secret\r\n",
                           RPC),
                  "a");
}

/* An open listener still refuses pages whose name was made to point to it. */
TEST(security_http_open_listener)
{
    struct daemon *daemon = start_http_at("0.0.0.0:0", "'open':true");
    struct client *far = connect_from_afar(daemon);

    if (far == NULL)
        return;
    daemon_wait_log(daemon, "WARN .*without authentication");
    expect_served(http_ask(far, FROM_AFAR, RPC), "a");
    expect_status(http_ask(connect_from_afar(daemon),
                           "POST /rpc/a HTTP/1.1\r\nHost: evil.example\r\n" JSON, RPC),
                  403);
}

/* A proxy in front says Host as it likes: no browser connects to a Unix socket. */
TEST(security_http_unix_socket)
{
    struct daemon *daemon = start_http_at("unix:@DIR@/http", "'mode':'0660'");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = test_format("%s/http", daemon->dir);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct stat status;

    daemon_wait_log(daemon, "listening on .*/http$");
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0660);
    memcpy(address.sun_path, path, strlen(path) + 1);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    expect_served(http_ask(client_adopt(fd, fd),
                           "POST /rpc/b HTTP/1.1\r\nHost: mcp.example\r\n" JSON, RPC),
                  "b");
    fd = socket(AF_UNIX, SOCK_STREAM, 0); /* and so the page is for nobody there */
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    expect_status(http_ask(client_adopt(fd, fd),
                           "GET / HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n", NULL),
                  WITH_PAGE ? 403 : 404);
}

TEST(security_http_too_many_connections)
{
    struct daemon *daemon = START(.mode = SETUP_STDIO, .default_mode = true, .closed = true,
                                  .members = "'listen':[{'http':'127.0.0.1:0'}]",
                                  .limits = "'max_connections':2");
    struct client *first = http_client(daemon), *second = http_client(daemon);
    const char *answer = ask(daemon, "GET /mcp HTTP/1.1\r\nHost: localhost\r\n");

    expect_status(answer, 503);
    expect_field(answer, "Retry-After: 5");
    expect_word(answer, "max_connections 2");
    client_close(first);
    client_close(second);
}

/* The answer to the last request says that the connection ends. */
TEST(design_http_requests_of_a_connection)
{
    static const char request[] = "GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n";
    struct daemon *daemon = START(.mode = SETUP_STDIO, .default_mode = true, .closed = true,
                                  .members = "'listen':[{'http':'127.0.0.1:0'}]",
                                  .limits = "'max_requests_per_connection':2");
    struct client *client = http_client(daemon);
    const char *second;

    for (int i = 0; i < 3; i++)
        client_send_bytes(client, request, sizeof request - 1);
    while (client_read_before(client, deadline_usual()))
        ;
    ck_assert(client->eof);
    second = strstr(client->input.data + 1, "HTTP/1.1 404");
    ck_assert_ptr_nonnull(second);
    expect_field(second, "Connection: close");
    ck_assert_ptr_null(strstr(second + 1, "HTTP/1.1"));
    ck_assert(strstr(client->input.data, "Connection: close") > second);
}

/* --- routes --- */

TEST(design_http_routes)
{
    struct daemon *daemon = start_http("'routes':{'/x/tools':{'pool':'a','as':'rpc'},"
                                       "'/y':{'pool':'b','as':'rpc'}}");
    const char *answer;

    expect_served(ask_rpc(daemon, "/x/tools", ""), "a");
    expect_served(ask_rpc(daemon, "/x/tools/?a=b", ""), "a");
    expect_served(ask_rpc(daemon, "/y", ""), "b");
    answer = ask_rpc(daemon, "/rpc/a", "");
    expect_status(answer, 404);
    expect_word(answer, "there is /x/tools, /y");
}

/* A message does not lead out of the pool of its path. */
TEST(security_http_path_confines_to_its_pool)
{
    struct daemon *daemon = start_http("");
    const char *answer = http_ask(http_client(daemon),
                                  "POST /rpc/a HTTP/1.1\r\nHost: localhost\r\n" JSON,
                                  "{\"id\":1,\"method\":\"echo\",\"pool\":\"b\"}");

    expect_word(answer, "no such pool");
    expect_served(ask_rpc(daemon, "/rpc/b", ""), "b");
    expect_status(ask_rpc(daemon, "/rpc/c", ""), 404);
    daemon_stop(daemon);
    daemon = start_http("'pool':'b'");
    expect_served(ask_rpc(daemon, "/rpc", ""), "b");
    expect_served(ask_rpc(daemon, "/rpc/b", ""), "b");
    expect_status(ask_rpc(daemon, "/rpc/a", ""), 404);
}

/* --- health --- */

#define GET(path) "GET " path " HTTP/1.1\r\nHost: 10.1.2.3:8080\r\n"

TEST(design_http_health)
{
    const char *path = write_tokens("secret"), *answer;
    struct daemon *daemon = start_http("");

    expect_status(ask(daemon, GET("/healthz")), 404);
    daemon_stop(daemon);
    daemon = start_http(test_format("'health':true,'token_file':'%s'", path));
    answer = ask(daemon, GET("/healthz"));
    expect_status(answer, 200);
    expect_word(answer, "\r\n\r\nok\n");
    WAIT_UNTIL(strncmp(ask(daemon, GET("/readyz")), "HTTP/1.1 200", 12) == 0, "not ready");
    expect_status(ask(daemon, "POST /readyz HTTP/1.1\r\nHost: x\r\n"), 405);
}

/* A pool whose worker has failed for good is not ready. The daemon is healthy all the same. */
TEST(design_http_readiness)
{
    struct daemon *daemon =
        START(.mode = SETUP_STDIO, .default_mode = true, .closed = true,
              .pools = POOL("a", 1, "'--name','a'") "," POOL("b", 1, "'--name','b'"),
              .limits = "'max_restarts':0",
              .members = "'listen':{'http':'127.0.0.1:0','health':true}");
    const char *answer;

    WAIT_UNTIL(strncmp(ask(daemon, GET("/readyz")), "HTTP/1.1 200", 12) == 0, "not ready");
    http_ask(http_client(daemon), "POST /rpc/b HTTP/1.1\r\nHost: localhost\r\n" JSON,
             "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"die\",\"params\":{\"code\":1}}");
    daemon_wait_log(daemon, "worker=2 .*exited with status 1");
    WAIT_UNTIL(strncmp(answer = ask(daemon, GET("/readyz")), "HTTP/1.1 503", 12) == 0,
               "still ready");
    expect_word(answer, "\r\n\r\npool b: no worker takes messages\n");
    expect_status(ask(daemon, GET("/healthz")), 200);
}

/* --- metrics --- */

#define METRICS "GET /metrics HTTP/1.1\r\nHost: localhost\r\n"

/* The rules of the listener hold for its metrics, too. */
TEST(security_http_metrics_ask_for_the_token)
{
    const char *path = write_tokens("secret"), *answer;
    struct daemon *daemon = start_http(test_format("'metrics':true,'token_file':'%s'", path));

    expect_status(ask(daemon, METRICS), 401);
    answer = ask(daemon, METRICS "Authorization: Bearer secret\r\n");
    expect_status(answer, 200);
    expect_word(answer, "Content-Type: text/plain; version=0.0.4");
    ck_assert_ptr_nonnull(strstr(answer, "\nstdio_bus_build_info{"));
    expect_status(ask(daemon, "POST /metrics HTTP/1.1\r\nHost: localhost\r\n"
                              "Authorization: Bearer secret\r\n"),
                  405);
    daemon_stop(daemon);
    daemon = start_http("'metrics':true");
    expect_status(ask(daemon, METRICS "Origin: https://evil.example\r\n"), 403);
    expect_status(ask(daemon, "GET /metrics HTTP/1.1\r\nHost: evil.example\r\n"), 403);
    expect_status(ask(daemon, METRICS), 200);
    daemon_stop(daemon);
    expect_status(ask(start_http(""), METRICS), 404);
}

/* A request for a pool is of interest, a scrape is not: "connected" and "disconnected" of one. */
TEST(security_http_scrapes_are_not_logged)
{
    struct daemon *daemon = start_http("'metrics':true,'health':true");
    expect_status(ask(daemon, METRICS), 200);
    expect_status(ask(daemon, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n"), 200);
    expect_served(ask_rpc(daemon, "/rpc/a", ""), "a");
    daemon_wait_log(daemon, " INFO  \\[client=3\\] disconnected: (closed|hung up); ");
    ck_assert_uint_eq(daemon_count_log(daemon, " INFO  \\[client="), 2);
}

/* A listener of its own, beside the client on stdin. */
TEST(design_metrics_have_a_listener)
{
    struct daemon *daemon = START(.mode = SETUP_STDIO, .members = "'metrics':'127.0.0.1:0'");
    struct client *client = client_stdio(daemon);
    const char *answer;

    client_ask(client, "1", NULL, "echo", NULL);
    daemon_wait_log(daemon, "HTTP at .* with /metrics, /healthz and /readyz");
    answer = ask(daemon, METRICS);
    ck_assert_ptr_nonnull(strstr(answer,
                                 "stdio_bus_requests_total{pool=\"pool\",outcome=\"result\"} 1\n"));
    expect_status(ask(daemon, GET("/healthz")), 200);
    expect_status(ask_rpc(daemon, "/rpc", ""), 404);
    client_finish(client, daemon);
}
