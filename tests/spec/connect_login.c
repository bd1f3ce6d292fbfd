/* stdio_bus(1), "Servers with a URL": fields of the user, proxies, servers that ask for a login. */
#include "build_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "joined.h"
#include "proc.h"
#include "setup.h"

static const char *log_of(const struct joined *joined)
{
    struct text *text = test_text();
    ck_assert(read_file(text, joined->log));
    return text->data;
}

static void expect_answer(struct web_server *server, const struct joined *joined, int id)
{
    joined_answer(joined_asked(server, id), id);
    client_expect(joined->client, ANSWER, id);
}

/* --- fields --- */

/* They go out with each request, and the one of the environment is not on the command line. */
TEST(connect_http_sends_fields_of_the_user)
{
    struct web_server *server = web_start();
    struct web_request *request;
    setenv("SECRET_KEY", "s3cret \xc3\xa9", 1);
    struct joined joined = JOINED(web_url(server, "/mcp"), "--header", "X-One:1", "--header",
                                  "x-two:\t a, b", "--header-env", "Authorization=SECRET_KEY",
                                  "--header=User-Agent: mine");
    joined_ask(&joined, 1);
    request = joined_asked(server, 1);
    web_expect_field(request, "X-One", "1");
    web_expect_field(request, "x-two", "a, b");
    web_expect_field(request, "Authorization", "s3cret \xc3\xa9");
    web_expect_field(request, "User-Agent", "mine");
    joined_answer(request, 1);
    client_expect(joined.client, ANSWER, 1);
    joined_ask(&joined, 2);
    web_expect_field(joined_asked(server, 2), "X-One", "1");
}

static const struct {
    const char *words[5], *problem;
} refused[] = {
    {{"http://h/", "--header", "X"}, "--header: must be NAME: VALUE"},
    {{"http://h/", "--header", ": x"}, "the name of a field has only"},
    {{"http://h/", "--header", "A b: x"}, "the name of a field has only"},
    {{"http://h/", "--header", "Host: x"}, "written by stdio_bus itself"},
    {{"http://h/", "--header", "mcp-session-id: x"}, "written by stdio_bus itself"},
    {{"http://h/", "--header", "A: x\r\nB: y"}, "the value has a control character"},
    {{"http://h/", "--header", "A: x\x7f"}, "the value has a control character"},
    {{"http://h/", "--header-env", "A"}, "--header-env: must be NAME=VARIABLE"},
    {{"http://h/", "--header-env", "A=NO_SUCH_VARIABLE"}, "is not set"},
    {{"/tmp/socket", "--header", "A: x"}, "--header is for --connect URL"},
    {{"http://h/", "--header", "authorization: x", "--token-file", "x"}, "exclude each other"},
};

TEST_ROWS(connect_http_judges_fields, COUNT(refused))
{
    const char *const *words = refused[row].words;
    struct joined joined = JOINED(words[0], words[1], words[2], words[3], words[4]);
    client_expect_eof(joined.client);
    joined_expect_status(&joined, 64);
    expect_word(log_of(&joined), refused[row].problem);
}

TEST(connect_http_has_room_for_some_fields)
{
    struct joined joined = JOINED("http://h/", "--header",
                                  test_format("A: %s", test_fill('x', 9000)), "--header",
                                  test_format("B: %s", test_fill('x', 9000)));
    client_expect_eof(joined.client);
    joined_expect_status(&joined, 64);
    expect_word(log_of(&joined), "at most 32 fields with 16384 bytes");
}

/* --- proxies --- */

static const struct {
    const char *variable, *value; /* %s: the address of the proxy */
    const char *login;            /* Proxy-Authorization, or NULL */
} proxies[] = {
    {"HTTP_PROXY", "http://%s", NULL},
    {"http_proxy", "%s/", NULL},
    {"http_proxy", "http://user:p%%40ss@%s", "Basic dXNlcjpwQHNz"},
};

TEST_ROWS(connect_http_by_a_proxy, COUNT(proxies))
{
    struct web_server *proxy = web_start();
    struct web_request *request;
    char value[200];
    snprintf(value, sizeof value, proxies[row].value, test_format("127.0.0.1:%u", proxy->port));
    setenv(proxies[row].variable, value, 1);
    struct joined joined = JOINED("http://mcp.example/mcp?a", NULL);
    joined_ask(&joined, 1);
    request = web_next(proxy, "POST http://mcp.example/mcp?a", "'id':1,");
    web_expect_field(request, "Host", "mcp.example");
    web_expect_field(request, "Proxy-Authorization", proxies[row].login);
    joined_answer(request, 1);
    client_expect(joined.client, ANSWER, 1);
}

/* row: a server of this machine, a name of NO_PROXY, one below it, all */
TEST_ROWS(connect_http_past_a_proxy, 4)
{
    static const char *const lists[] = {"", "other, 127.0.0.1:80", "x,.0.0.1", "*"};
    struct web_server *server = web_start();
    setenv("http_proxy", "http://127.0.0.1:1", 1);
    setenv("NO_PROXY", lists[row], 1);
    struct joined joined = joined_to(server);
    joined_ask(&joined, 1);
    expect_answer(server, &joined, 1);
}

TEST_ROWS(connect_http_names_the_proxy, 4)
{
    static const char *const values[] = {"http://127.0.0.1:1", "socks5://x", "http://x:0",
                                         "http://%41%zzuser:x@127.0.0.1:1"};
    setenv("http_proxy", values[row], 1);
    setenv("no_proxy", "example,.other.example,mcp", 1);
    struct joined joined = JOINED("http://mcp.other/mcp", NULL);
    joined_ask(&joined, 1);
    if (row == 0 || row == 3) {
        client_error(joined.client, "1", -32000,
                     "http://mcp.other by the proxy 127.0.0.1:1: cannot connect");
        return;
    }
    client_expect_eof(joined.client);
    joined_expect_status(&joined, 78);
    expect_word(log_of(&joined), row == 1 ? "HTTP_PROXY: the proxy must be http://HOST:PORT"
                                          : "HTTP_PROXY: port must be");
}

TEST(connect_http_needs_room_for_the_login_of_a_proxy)
{
    setenv("http_proxy", test_format("http://%s@h:1", test_fill('x', 300)), 1);
    struct joined joined = JOINED("http://mcp.example/mcp", NULL);
    client_expect_eof(joined.client);
    joined_expect_status(&joined, 78);
    expect_word(log_of(&joined), "the name or password of the proxy is too long");
}

/* --- logins --- */

static const struct {
    const char *challenge, *path; /* path NULL: nothing is asked */
    const char *status, *metadata, *word;
} logins[] = {
    {"Bearer", "/.well-known/oauth-protected-resource/mcp", "200 OK",
     "{'authorization_servers':['https://auth.example'],'scopes_supported':['a','b',1]}",
     "--token-file): Bearer; it gives tokens at https://auth.example (scopes a b): npx mcp-remote "
     "can log in there"},
    {"Bearer resource_metadata=\"@/meta?x\"", "/meta?x", "200 OK",
     "{'authorization_servers':['https://auth.example/\\u001b']}",
     "tokens at https://auth.example/\\\\x1b: npx"},
    {"Bearer", "/.well-known/oauth-protected-resource/mcp", "404 Not Found", "{}",
     "Bearer; npx mcp-remote can log in"},
    {"Bearer", "/.well-known/oauth-protected-resource/mcp", "200 OK", "[",
     "Bearer; npx mcp-remote can log in"},
    {"Bearer", "/.well-known/oauth-protected-resource/mcp", "200 OK", "[]",
     "Bearer; npx mcp-remote can log in"},
    {"Bearer", "/.well-known/oauth-protected-resource/mcp", "200 OK",
     "{'authorization_servers':[1],'scopes_supported':1}", "Bearer; npx mcp-remote can log in"},
    {"Bearer resource_metadata=\"https://other.example/meta\"", NULL, NULL, NULL,
     "; npx mcp-remote can log in"},
};

/* The metadata of the server itself are asked for, once, and never those of another one. */
TEST_ROWS(connect_http_says_where_to_log_in, COUNT(logins))
{
    struct web_server *server = web_start();
    struct joined joined = joined_to(server);
    struct web_request *request;
    struct text *fields = test_text();
    text_printf(fields, "WWW-Authenticate: %s\r\n", logins[row].challenge);
    text_replace(fields, "@", web_url(server, ""));
    for (int id = 1; id < 3; id++) {
        joined_ask(&joined, id);
        web_answer(joined_asked(server, id), "401 Unauthorized", fields->data, "%s", "");
        if (id == 1 && logins[row].path != NULL) {
            request = web_next(server, test_format("GET %s", logins[row].path), NULL);
            web_expect_field(request, "Accept", "application/json");
            web_answer(request, logins[row].status, "", "%s", logins[row].metadata);
        }
        client_error(joined.client, id == 1 ? "1" : "2", -32000, logins[row].word);
    }
}

/* It has two seconds for that. */
TEST(connect_http_does_not_wait_long_for_metadata)
{
    struct web_server *server = web_start();
    struct joined joined = joined_to(server);
    joined_ask(&joined, 1);
    web_answer(joined_asked(server, 1), "401 Unauthorized", "", "%s", "");
    web_next(server, "GET /.well-known/oauth-protected-resource/mcp", NULL);
    client_error(joined.client, "1", -32000, "npx mcp-remote can log in");
}
