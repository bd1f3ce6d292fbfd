/* The key "listen": an object for the listeners of the command line, or a list of listeners. */
#include "build_config.h"

#include <sys/stat.h>

#include "config_fixture.h"
#include "suite.h"

#define POOLS                                                                                      \
    "\"pools\":[{\"id\":\"a\",\"command\":\"/bin/cat\",\"instances\":1},"                          \
    "{\"id\":\"b\",\"command\":\"/bin/cat\",\"instances\":1}]}"

/* ' stands for ". */
static const char *with_listen(const char *listen)
{
    struct text *text = test_text();

    text_printf(text, "{'listen':%s,", listen);
    text_quote(text, 0);
    text_printf(text, POOLS);
    return text->data;
}

static const char *refuse_text(const char *text)
{
    free_config();
    ck_assert_int_eq(config_read_text(&config, text, strlen(text), "c.json", note_report, reports),
                     STDIO_BUS_EINVAL);
    return reports;
}

static const char *token_file(void)
{
    const char *path = test_format("%s/tokens", test_dir());
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    fputs("ann:1\nbob:2\n", file);
    fclose(file);
    ck_assert_int_eq(chmod(path, 0600), 0);
    return path;
}

/* --- listeners --- */

TEST(list_of_listeners)
{
    const char *path = token_file();
    const struct listen_config *listens;

    expect_text(
        with_listen(test_format("[{'unix':'/run/a','mode':'0660','framing':'length','pool':'b'},"
                                "{'tcp':':5000','token_file':'%s'},"
                                "{'http':'[::1]:8080','open':true,'health':true},"
                                "{'http':'unix:/run/h','mode':'0666','token_file':'%s'}]",
                                path, path)),
        "");
    ck_assert_uint_eq(config.listen_count, 4);
    ck_assert(config.listen.pool == NULL && config.listen.token_file == NULL);
    listens = config.listens;
    ck_assert_int_eq(listens[0].address.kind, LISTEN_UNIX);
    ck_assert_str_eq(listens[0].address.path, "/run/a");
    ck_assert_uint_eq(listens[0].access.mode, 0660);
    ck_assert_ptr_eq(listens[0].framing, &framing_length);
    ck_assert_str_eq(listens[0].pool, "b");
    ck_assert_int_eq(listens[1].address.kind, LISTEN_TCP);
    ck_assert_str_eq(listens[1].address.host, "");
    ck_assert_uint_eq(listens[1].address.port, 5000);
    ck_assert_str_eq(listens[1].token_file, path);
    ck_assert_uint_eq(listens[1].access.mode, 0600);
    ck_assert_int_eq(listens[2].address.kind, LISTEN_HTTP);
    ck_assert(!listens[2].address.is_unix && listens[2].open && listens[2].http.health);
    ck_assert_str_eq(listens[2].address.host, "::1");
    ck_assert(listens[3].address.is_unix && listens[3].access.mode == 0666);
    ck_assert_str_eq(listens[3].address.path, "/run/h");
    free_config();
}

/* An object with an address is a list of one; without an address it is for the command line. */
TEST(one_listener)
{
    expect_text(with_listen("{'http':':1','pool':'a'}"), "");
    ck_assert_uint_eq(config.listen_count, 1);
    ck_assert_str_eq(config.listens[0].pool, "a");
    ck_assert_ptr_null(config.listen.pool);
    expect_text(with_listen("{'pool':'a','health':true,'mode':'0666'}"), "");
    ck_assert_uint_eq(config.listen_count, 0);
    ck_assert_str_eq(config.listen.pool, "a");
    ck_assert(config.listen.http.health && config.listen.access.mode == 0666);
    expect_text(with_listen("[]"), "");
    ck_assert_uint_eq(config.listen_count, 0);
    ck_assert_uint_eq(config.listen.access.mode, 0600);
    free_config();
}

TEST(keys_of_http)
{
    const struct http_listen_config *http;

    expect_text(with_listen("{'http':':1','origins':['https://app.example','http://localhost:*',"
                            "'null','*'],'hosts':['mcp.example','[fd00::1]:80'],"
                            "'routes':{'/':'a','/x/y':{'pool':'b','as':'rpc'},"
                            "'/z':{'pool':'b'}},"
                            "'oauth':{'resource':'https://mcp.example/mcp',"
                            "'authorization_servers':['https://auth.example'],"
                            "'scopes':['read','write']}}"),
                "");
    http = &config.listens[0].http;
    ck_assert_str_eq(http->origins[0], "https://app.example");
    ck_assert_str_eq(http->origins[3], "*");
    ck_assert_ptr_null(http->origins[4]);
    ck_assert_str_eq(http->hosts[1], "[fd00::1]:80");
    ck_assert_ptr_null(http->hosts[2]);
    ck_assert_uint_eq(http->route_count, 3);
    ck_assert_str_eq(http->routes[0].path, "/");
    ck_assert_str_eq(http->routes[0].pool, "a");
    ck_assert_int_eq(http->routes[0].kind, HTTP_ROUTE_MCP);
    ck_assert_str_eq(http->routes[1].path, "/x/y");
    ck_assert_str_eq(http->routes[1].pool, "b");
    ck_assert_int_eq(http->routes[1].kind, HTTP_ROUTE_RPC);
    ck_assert_int_eq(http->routes[2].kind, HTTP_ROUTE_MCP);
    ck_assert_str_eq(http->oauth.resource, "https://mcp.example/mcp");
    ck_assert_str_eq(http->oauth.servers[0], "https://auth.example");
    ck_assert_ptr_null(http->oauth.servers[1]);
    ck_assert_str_eq(http->oauth.scopes[1], "write");
    free_config();
}

/* The system picks the ports, and the service manager may pass on several sockets of a name. */
TEST(listeners_that_only_look_the_same)
{
    expect_text(with_listen("[{'tcp':':0'},{'http':':0','open':true},{'fd':'a'},{'fd':'a'},"
                            "{'unix':'a'},{'tcp':'[::1]:1'},{'tcp':'127.0.0.1:1'}]"),
                "");
    ck_assert_uint_eq(config.listen_count, 7);
    free_config();
}

/* --- what is refused --- */

#define ORIGIN                                                                                     \
    ": must be an origin, as in \"https://app.example\" or \"http://localhost:*\", or \"*\" for "  \
    "any"
#define HOST ": must be a host, as in \"mcp.example\" or \"mcp.example:8080\", or \"*\" for any"
#define ROUTE                                                                                      \
    ": a path begins with a slash, does not end with one, has at most 256 visible characters and " \
    "no ? or #, and is not one of the daemon's own"

static const struct {
    const char *listen, *problem; /* after "E c.json:1:COLUMN: " */
} refused[] = {
    {"5", "listen: must be an object, not a number"},
    {"[5]", "listen[0]: must be an object, not a number"},
    {"[{}]", "listen[0]: a listener needs \"unix\", \"tcp\", \"http\" or \"fd\""},
    {"[{'framing':'length'}]", "listen[0]: a listener needs \"unix\", \"tcp\", \"http\" or \"fd\""},
    {"{'unix':'a','tcp':':1'}", "listen.tcp: \"unix\" is set already"},
    {"{'unix':''}", "listen.unix: the path must not be empty"},
    {"{'unix':5}", "listen.unix: must be a string, not a number"},
    {"{'tcp':'8080'}", "listen.tcp: expected HOST:PORT, [IPV6]:PORT or :PORT"},
    {"{'tcp':'unix:a'}", "listen.tcp: port must be 0 to 65535"},
    {"{'http':'::1:80'}", "listen.http: an IPv6 address needs brackets, as in [::1]:8080"},
    {"{'http':'unix:'}", "listen.http: the path must not be empty"},
    {"{'tcp':':1','mode':'0600'}", "listen.mode: is for Unix sockets"},
    {"{'http':':1','allow_uids':[0]}", "listen.allow_uids: is for Unix sockets"},
    {"{'unix':'a','open':true}", "listen.open: is for \"tcp\" and \"http\""},
    {"{'tcp':':1','hosts':[]}", "listen.hosts: is for \"http\""},
    {"{'unix':'a','routes':{'/a':'a'}}", "listen.routes: is for \"http\""},
    {"{'http':':1','framing':'length'}", "listen.framing: is for \"unix\" and \"tcp\""},
    {"{'unix':'a','pool':'c'}", "listen.pool: there is no pool \"c\""},
    {"{'pool':5}", "listen.pool: must be a string, not a number"},
    {"{'http':':1','pool':'a','routes':{'/a':'a'}}",
     "listen.pool: excludes routes, which name the pools"},
    {"{'http':':1','token_file':'/no/such'}",
     "listen.token_file: cannot use \"/no/such\": No such file or directory"},
    {"{'origins':'*'}", "listen.origins: must be an array of strings, not a string"},
    {"{'origins':['app.example']}", ("listen.origins[0]" ORIGIN)},
    {"{'origins':['https://app.example/']}", ("listen.origins[0]" ORIGIN)},
    {"{'origins':['https://']}", ("listen.origins[0]" ORIGIN)},
    {"{'origins':['https://a b']}", ("listen.origins[0]" ORIGIN)},
    {"{'hosts':['https://a']}", ("listen.hosts[0]" HOST)},
    {"{'hosts':['a/b']}", ("listen.hosts[0]" HOST)},
    {"{'hosts':['']}", ("listen.hosts[0]" HOST)},
    {"{'routes':{}}", "listen.routes: must contain at least one path"},
    {"{'routes':{'a':'a'}}", ("listen.routes.a" ROUTE)},
    {"{'routes':{'/a/':'a'}}", ("listen.routes[\"/a/\"]" ROUTE)},
    {"{'routes':{'/a?b':'a'}}", ("listen.routes[\"/a?b\"]" ROUTE)},
    {"{'routes':{'/healthz':'a'}}", ("listen.routes[\"/healthz\"]" ROUTE)},
    {"{'routes':{'/.well-known/x':'a'}}", ("listen.routes[\"/.well-known/x\"]" ROUTE)},
    {"{'routes':{'/a':'c'}}", "listen.routes[\"/a\"]: there is no pool \"c\""},
    {"{'routes':{'/a':{'pool':'a','as':'ws'}}}",
     "listen.routes[\"/a\"].as: must be \"mcp\" or \"rpc\""},
    {"{'routes':{'/a':[]}}",
     "listen.routes[\"/a\"]: must be the id of a pool or an object, not an array"},
    {"{'oauth':{'resource':'mcp','authorization_servers':['https://a']}}",
     "listen.oauth.resource: must be a URL, as in \"https://mcp.example/mcp\""},
    {"{'oauth':{'resource':'https://a','authorization_servers':[]}}",
     "listen.oauth.authorization_servers: must contain at least one URL"},
    {"{'oauth':{'resource':'https://a','authorization_servers':['https://b'],'scopes':['']}}",
     "listen.oauth.scopes[0]: must be a scope: visible characters without quotes"},
    {"{'health':1}", "listen.health: must be true or false, not a number"},
    {"[{'unix':'a'},{'unix':'a'}]",
     "listen[1].unix: \"a\" is the address of listen[0].unix already, at 1:20"},
    {"[{'unix':'a'},{'http':'unix:a'}]",
     "listen[1].http: \"unix:a\" is the address of listen[0].unix already, at 1:20"},
    {"[{'tcp':'[::1]:1'},{'tcp':':1'},{'http':':1'}]",
     "listen[2].http: \":1\" is the address of listen[1].tcp already, at 1:37"},
    {"{'unix':'/run/a'},'control':'/run/a'",
     "control: \"/run/a\" is the address of listen.unix already, at 1:19"},
    {"{'http':'127.0.0.1:1'},'metrics':'127.0.0.1:1'",
     "metrics: \"127.0.0.1:1\" is the address of listen.http already, at 1:19"},
};

/* The place is that of the value; tests/unit/check_config.c tests places. */
TEST_ROWS(listens_that_are_refused, COUNT(refused))
{
    const char *report = refuse_text(with_listen(refused[row].listen));
    const char *problem = strchr(report, ' ');

    ck_assert_msg(strncmp(report, "E c.json:1:", 11) == 0, "%s", report);
    problem = strchr(problem + 1, ' ');
    ck_assert_str_eq(problem + 1, test_format("%s\n", refused[row].problem));
}
