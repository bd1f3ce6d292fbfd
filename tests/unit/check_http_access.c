/* Access to an HTTP listener: Host, Origin, what pages are told, and tokens. */
#include "build_config.h"

#include "http/access.h"
#include "suite.h"

static struct slice slice_or_none(const char *text)
{
    return slice_of(text, text != NULL ? strlen(text) : 0);
}

static char *const hosts[] = {(char *)"mcp.example", (char *)"Other.example:8080",
                              (char *)"[fd00::1]:1", NULL};
static char *const all[] = {(char *)"*", NULL};

/* --- Host --- */

static const struct {
    const char *host;
    bool local, named; /* without a list of hosts, and with `hosts` */
} host_rows[] = {
    {"127.0.0.1", true, true},
    {"127.0.0.1:8080", true, true},
    {"localhost", true, true},
    {"LOCALHOST:65535", true, true},
    {"[::1]", true, true},
    {"[::1]:8080", true, true},
    {"192.168.0.7:8080", true, true},
    {"given.example", true, true},
    {"given.example:80", true, true},
    {"evil.example", false, false},
    {"evil.example:8080", false, false},
    {"localhost.evil.example", false, false},
    {"127.0.0.1.evil.example", false, false},
    {"127.1", false, false},
    {"0x7f.1", false, false},
    {"2130706433", false, false},
    {"localhost.", false, false},
    {"a.localhost", false, false},
    {"", false, false},
    {NULL, false, false},
    {"localhost:80:80", false, false},
    {"user@localhost", false, false},
    {"localhost/", false, false},
    {"mcp.example", false, true},
    {"MCP.EXAMPLE:9", false, true},
    {"mcp.example.", false, false},
    {"amcp.example", false, false},
    {"other.example:8080", false, true},
    {"other.example", false, false},
    {"other.example:80", false, false},
};

TEST_ROWS(host_that_is_allowed, COUNT(host_rows))
{
    struct slice host = slice_or_none(host_rows[row].host);
    struct http_rules rules = {.name = "given.example"};

    ck_assert_int_eq(http_host_allowed(&rules, host), host_rows[row].local);
    rules.hosts = hosts;
    ck_assert_int_eq(http_host_allowed(&rules, host), host_rows[row].named);
    rules.any_host = true; /* does not widen a list */
    ck_assert_int_eq(http_host_allowed(&rules, host), host_rows[row].named);
}

/* With a token or on a Unix socket, and with "*". An empty name of the listener is no name. */
TEST(any_host)
{
    struct http_rules rules = {.name = "", .any_host = true};

    ck_assert(http_host_allowed(&rules, slice_or_none("evil.example")));
    ck_assert(http_host_allowed(&rules, slice_or_none(NULL)));
    ck_assert(http_host_allowed(&rules, slice_or_none("")));
    rules.any_host = false;
    ck_assert(!http_host_allowed(&rules, slice_or_none("")));
    ck_assert(!http_host_allowed(&rules, slice_or_none(":80")));
    rules.hosts = all;
    ck_assert(http_host_allowed(&rules, slice_or_none("evil.example:1")));
}

/* --- Origin --- */

static char *const origins[] = {(char *)"https://app.example", (char *)"http://localhost:*",
                                (char *)"http://dev.example:3000", (char *)"app://shell", NULL};

static const struct {
    const char *origin, *host;
    enum http_origin judgement;
} origin_rows[] = {
    {NULL, "localhost:8080", HTTP_ORIGIN_NONE},
    {"http://localhost:8080", "localhost:8080", HTTP_ORIGIN_NAMED},
    {"http://127.0.0.1:8080", "127.0.0.1:8080", HTTP_ORIGIN_OWN},
    {"HTTP://127.0.0.1:8080", "127.0.0.1:8080", HTTP_ORIGIN_OWN},
    {"http://127.0.0.1:8081", "127.0.0.1:8080", HTTP_ORIGIN_REFUSED},
    {"http://127.0.0.1", "127.0.0.1:8080", HTTP_ORIGIN_REFUSED},
    {"http://127.0.0.1", "127.0.0.1:80", HTTP_ORIGIN_OWN},
    {"http://127.0.0.1:80", "127.0.0.1", HTTP_ORIGIN_OWN},
    {"https://mcp.example", "mcp.example", HTTP_ORIGIN_OWN},
    {"https://MCP.example:443", "mcp.example", HTTP_ORIGIN_OWN},
    {"https://mcp.example:80", "mcp.example", HTTP_ORIGIN_REFUSED},
    {"ws://mcp.example", "mcp.example", HTTP_ORIGIN_REFUSED},
    {"https://mcp.example.evil.example", "mcp.example", HTTP_ORIGIN_REFUSED},
    {"https://[::1]:8080", "[::1]:8080", HTTP_ORIGIN_OWN},
    {"http://", "", HTTP_ORIGIN_REFUSED},
    {"null", "localhost", HTTP_ORIGIN_REFUSED},
    {"", "localhost", HTTP_ORIGIN_REFUSED},
    {"https://app.example", "x", HTTP_ORIGIN_NAMED},
    {"https://APP.example", "x", HTTP_ORIGIN_NAMED},
    {"https://app.example:443", "x", HTTP_ORIGIN_REFUSED},
    {"http://app.example", "x", HTTP_ORIGIN_REFUSED},
    {"https://app.example.evil", "x", HTTP_ORIGIN_REFUSED},
    {"http://localhost", "x", HTTP_ORIGIN_NAMED},
    {"http://localhost:1", "x", HTTP_ORIGIN_NAMED},
    {"http://localhost:", "x", HTTP_ORIGIN_REFUSED},
    {"http://localhost:a", "x", HTTP_ORIGIN_REFUSED},
    {"http://localhost.evil", "x", HTTP_ORIGIN_REFUSED},
    {"http://localhost:1.evil", "x", HTTP_ORIGIN_REFUSED},
    {"http://dev.example:3000", "x", HTTP_ORIGIN_NAMED},
    {"http://dev.example:3001", "x", HTTP_ORIGIN_REFUSED},
    {"app://shell", "x", HTTP_ORIGIN_NAMED},
    {"https://app.example https://b", "x", HTTP_ORIGIN_REFUSED},
    {"https://app.example\t", "x", HTTP_ORIGIN_REFUSED},
};

TEST_ROWS(origin_that_is_judged, COUNT(origin_rows))
{
    struct http_rules rules = {.name = "", .origins = origins};

    ck_assert_int_eq(http_origin_judge(&rules, slice_or_none(origin_rows[row].origin),
                                       slice_or_none(origin_rows[row].host)),
                     origin_rows[row].judgement);
}

TEST(origin_of_any_page)
{
    struct http_rules rules = {.name = "", .origins = all};
    struct text *text = test_text();

    ck_assert_int_eq(http_origin_judge(&rules, slice_or_none("null"), slice_or_none("x")),
                     HTTP_ORIGIN_NAMED);
    text_printf(text, "https://%s", test_fill('a', 600));
    ck_assert_int_eq(http_origin_judge(&rules, slice_of(text->data, text->len), slice_or_none("x")),
                     HTTP_ORIGIN_REFUSED);
}

/* --- what a page is told --- */

static void expect_fields(const char *to, size_t len, const char *const *fields)
{
    ck_assert_uint_eq(strlen(to), len);
    ck_assert_str_eq(to + len - 2, "\r\n");
    for (; *fields != NULL; fields++)
        expect_word(to, *fields);
}

TEST(cors_fields)
{
    char to[HTTP_CORS_MAX];
    size_t len = http_cors_fields(to, slice_or_none("https://a.example"));

    expect_fields(to, len,
                  (const char *const[]){"Access-Control-Allow-Origin: https://a.example\r\n",
                                        "Mcp-Session-Id", "Vary: Origin\r\n", NULL});
}

TEST(preflight_fields)
{
    char to[HTTP_CORS_MAX];
    struct slice origin = slice_or_none("https://a.example");
    size_t len = http_preflight_fields(to, origin, slice_or_none("x-a, Mcp-Param-b"), true);

    expect_fields(to, len,
                  (const char *const[]){"Access-Control-Allow-Headers: x-a, Mcp-Param-b\r\n",
                                        "Access-Control-Allow-Methods: GET, POST, DELETE, OPTIONS",
                                        "Access-Control-Allow-Private-Network: true\r\n", NULL});
    len = http_preflight_fields(to, origin, slice_or_none("x\r\nEvil: 1"), false);
    ck_assert_ptr_null(strstr(to, "Evil"));
    ck_assert_ptr_null(strstr(to, "Private"));
    expect_fields(to, len, (const char *const[]){"Mcp-Session-Id", "Authorization", NULL});
    http_preflight_fields(to, origin, slice_or_none(NULL), false);
    expect_word(to, "Authorization");
}

/* The longest of each fit. */
TEST(preflight_fields_have_room)
{
    char to[HTTP_CORS_MAX];
    struct text *origin = test_text();
    size_t len;

    text_printf(origin, "https://%s", test_fill('a', 504));
    len = http_preflight_fields(to, slice_of(origin->data, 512),
                                slice_or_none(test_fill('b', 1024)), true);
    ck_assert_uint_eq(strlen(to), len);
    expect_word(to, test_fill('b', 1024));
}

/* --- tokens --- */

static const struct {
    const char *authorization, *token;
} bearer_rows[] = {
    {"Bearer abc", "abc"}, {"bearer  a b", "a b"},
    {"BEARER =", "="},     {"Basic abc", NULL},
    {"Bearer", NULL},      {"Bearer ", NULL},
    {"Bearer   ", NULL},   {"Bearerabc", NULL},
    {"Bearer\tabc", NULL}, {"", NULL},
    {NULL, NULL},          {" Bearer a", NULL},
};

TEST_ROWS(bearer_tokens, COUNT(bearer_rows))
{
    struct slice token = http_bearer(slice_or_none(bearer_rows[row].authorization));

    ck_assert_int_eq(token.data != NULL, bearer_rows[row].token != NULL);
    if (token.data != NULL)
        ck_assert(slice_equal(token, slice_or_none(bearer_rows[row].token)));
}

static const struct {
    const char *resource, *document; /* its path */
} resources[] = {
    {"https://a.example/mcp", "https://a.example/.well-known/oauth-protected-resource/mcp"},
    {"https://a.example:8443/x/y",
     "https://a.example:8443/.well-known/oauth-protected-resource/x/y"},
    {"https://a.example/", "https://a.example/.well-known/oauth-protected-resource"},
    {"https://a.example", "https://a.example/.well-known/oauth-protected-resource"},
};

TEST_ROWS(challenges, COUNT(resources))
{
    char to[HTTP_CHALLENGE_MAX];
    struct http_rules rules = {.name = ""};
    const char *path = strstr(resources[row].document, "/.well-known");

    ck_assert_uint_eq(http_challenge(to, &rules, false), strlen(to));
    ck_assert_str_eq(to, "Bearer realm=\"stdio_bus\"");
    ck_assert(!http_is_resource_path(&rules, slice_or_none(path)));
    rules.resource = resources[row].resource;
    ck_assert_uint_eq(http_challenge(to, &rules, true), strlen(to));
    ck_assert_str_eq(to, test_format("Bearer realm=\"stdio_bus\", error=\"invalid_token\", "
                                     "resource_metadata=\"%s\"",
                                     resources[row].document));
    ck_assert(http_is_resource_path(&rules, slice_or_none(path)));
    ck_assert(http_is_resource_path(&rules,
                                    slice_or_none("/.well-known/oauth-protected-resource")));
    ck_assert(!http_is_resource_path(&rules, slice_or_none(test_format("%sx", path))));
    ck_assert(!http_is_resource_path(&rules,
                                     slice_or_none("/.well-known/oauth-authorization-server")));
}

TEST(resource_document)
{
    char *const servers[] = {(char *)"https://auth.example", (char *)"https://b.example/x", NULL};
    char *const scopes[] = {(char *)"read", NULL};
    size_t len;
    char *text = http_resource_document("https://a.example/mcp", servers, scopes, &len);

    ck_assert_ptr_nonnull(text);
    ck_assert_str_eq(test_format("%.*s", (int)len, text),
                     "{\"resource\":\"https://a.example/mcp\",\"authorization_servers\":[\"https://"
                     "auth.example\","
                     "\"https://b.example/x\"],\"scopes_supported\":[\"read\"],"
                     "\"bearer_methods_supported\":[\"header\"]}\n");
    free(text);
    text = http_resource_document("https://a.example/mcp", servers, NULL, &len);
    ck_assert_ptr_nonnull(text);
    ck_assert_ptr_null(strstr(test_format("%.*s", (int)len, text), "scopes"));
    free(text);
}
