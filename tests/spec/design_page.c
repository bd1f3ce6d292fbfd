/* doc/security.md: the page for browsers at / of an HTTP listener. */
#include "build_config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"

#define HTML "Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\n"
#define HOST "Host: localhost\r\n"
#define PAGE "GET / HTTP/1.1\r\n" HOST HTML
#define DATA "GET /page.json HTTP/1.1\r\n" HOST
#define SECRET "0123456789abcdef0123456789abcdef"
#define TOKEN "Authorization: Bearer " SECRET "\r\n"

static struct daemon *start_page(const char *members)
{
    return START(.mode = SETUP_STDIO, .default_mode = true, .closed = true,
                 .pools = POOL("a", 1, "'--name','a'") "," POOL("b", 1, "'--name','b'"),
                 .members = test_format("'listen':[{'http':'127.0.0.1:0'%s}]", members));
}

static struct daemon *start_with_token(void)
{
    const char *path = test_format("%s/tokens", test_dir());
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, SECRET "\n", sizeof SECRET), (ssize_t)sizeof SECRET);
    close(fd);
    return start_page(test_format(",'token_file':'%s'", path));
}

static const char *ask(struct daemon *daemon, const char *head)
{
    return http_ask(http_client(daemon), head, NULL);
}

static void expect_status(const char *answer, int status)
{
    ck_assert_msg(strncmp(answer, test_format("HTTP/1.1 %d ", status), 13) == 0, "not %d: %s",
                  status, answer);
}

static void expect_in(const char *answer, const char *text)
{
    ck_assert_msg(strstr(answer, text) != NULL, "no %s in: %.1500s", text, answer);
}

static void expect_not_in(const char *answer, const char *text)
{
    ck_assert_msg(strstr(answer, text) == NULL, "%s in: %.1500s", text, answer);
}

static const char *body_of(const char *answer)
{
    const char *end = strstr(answer, "\r\n\r\n");

    ck_assert_ptr_nonnull(end);
    return end + 4;
}

/* The figures are older than that. */
static void let_a_second_pass(void)
{
    int64_t until = deadline_in(1.1);

    while (!deadline_over(until))
        nap();
}

/* --- what is there --- */

TEST(page_is_for_browsers)
{
    struct daemon *daemon = start_page("");
    const char *page = ask(daemon, PAGE);

    expect_status(page, 200);
    expect_in(page, "\r\nContent-Type: text/html; charset=utf-8\r\n");
    expect_in(page, "<caption id=c-pools>Pools <b>2</b></caption>");
    expect_in(page, "<caption id=c-workers>Workers <b>2</b></caption>");
    expect_in(page, "claude mcp add --transport http a http://localhost/mcp/a</pre>");
    expect_in(page, "codex mcp add b --url http://localhost/mcp/b</pre>");
    expect_not_in(page, "Bearer TOKEN");
    expect_status(ask(daemon, "GET / HTTP/1.1\r\n" HOST), 404);
    expect_status(ask(daemon, "GET / HTTP/1.1\r\n" HOST "Accept: */*\r\n"), 404);
    expect_status(ask(daemon, "POST / HTTP/1.1\r\n" HOST HTML "Content-Length: 0\r\n"), 404);
    expect_status(ask(daemon, "GET /other HTTP/1.1\r\n" HOST HTML), 404);
    page = ask(daemon, "HEAD / HTTP/1.1\r\n" HOST HTML);
    expect_status(page, 200);
    ck_assert_str_eq(body_of(page), "");
    daemon_interrupt(daemon);
}

TEST(page_has_figures)
{
    steps_without("one while the daemon starts is an error");
    struct daemon *daemon = start_page("");
    const char *data = ask(daemon, DATA);

    expect_status(data, 200);
    expect_in(data, "\r\nContent-Type: application/json\r\n");
    expect_in(data, "\"version\":\"");
    expect_in(data, "\"p50_us\":null");
    expect_in(data, "\"pools\":{\"pools\":[{\"pool\":\"a\",");
    expect_in(data, "\"errors\":{\"errors\":[],\"total\":0}");
    daemon_interrupt(daemon);
}

/* All who look within a second get the same. */
TEST(page_computes_once_a_second)
{
    steps_without("they are in the data");
    struct daemon *daemon = start_page("");
    const char *first, *second = "";
    int tries;

    for (tries = 0; tries < 5; tries++) { /* a slow machine may take longer between the two */
        first = ask(daemon, DATA);
        second = ask(daemon, DATA);
        if (strcmp(body_of(first), body_of(second)) == 0)
            break;
    }
    ck_assert_int_lt(tries, 5);
    let_a_second_pass();
    ck_assert_str_ne(body_of(second), body_of(ask(daemon, DATA)));
    daemon_interrupt(daemon);
}

TEST(page_shows_errors_with_their_causes)
{
    steps_without_upgrades("each program notes errors of its own");
    struct daemon *daemon = start_page("");
    const char *data;

    expect_status(ask(daemon, DATA), 200);
    (void)http_ask(http_client(daemon), "POST /rpc/a HTTP/1.1\r\n" HOST HTTP_JSON,
                   "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"die\",\"params\":{\"code\":3}}");
    daemon_wait_log(daemon, "exited with status 3");
    let_a_second_pass();
    data = ask(daemon, DATA);
    expect_in(data, "\"level\":\"warning\"");
    expect_in(data, "exited with status 3");
    expect_not_in(data, "\"p50_us\":0");
    daemon_interrupt(daemon);
}

/* --- what keeps others out --- */

TEST(page_can_be_turned_off)
{
    struct daemon *daemon = start_page(",'page':false");

    expect_status(ask(daemon, PAGE), 404);
    expect_status(ask(daemon, DATA), 404);
    daemon_interrupt(daemon);
}

TEST(page_has_a_policy)
{
    struct daemon *daemon = start_page("");
    const char *page = ask(daemon, PAGE);

    expect_in(page, "\r\nContent-Security-Policy: default-src 'none'; style-src 'sha256-");
    expect_in(page, "; script-src 'sha256-");
    expect_in(page, "frame-ancestors 'none'\r\n");
    expect_in(page, "\r\nX-Frame-Options: DENY\r\n");
    expect_in(page, "\r\nCross-Origin-Resource-Policy: same-origin\r\n");
    expect_in(page, "\r\nX-Content-Type-Options: nosniff\r\n");
    expect_in(page, "\r\nReferrer-Policy: no-referrer\r\n");
    expect_in(page, "\r\nCache-Control: no-store\r\n");
    expect_not_in(page, "unsafe-");
    daemon_interrupt(daemon);
}

/* DNS rebinding, a proxy in front, a page of another origin, another address of this machine. */
TEST(page_is_for_this_machine_alone)
{
    static const char *const refused[] = {
        "Host: evil.example\r\n",
        "Host: 192.168.0.1\r\n",
        "Host: localhost.evil.example\r\n",
        "Host: 127.0.0.1.evil.example\r\n",
        HOST "X-Forwarded-For: 192.0.2.1\r\n",
        HOST "Forwarded: for=192.0.2.1\r\n",
        HOST "Via: 1.1 proxy\r\n",
        HOST "Origin: http://evil.example\r\n",
        HOST "Origin: null\r\n",
        HOST "Origin: https://friend.example\r\n",
    };
    struct daemon *daemon = start_page(",'hosts':['*'],'origins':['https://friend.example']");

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        expect_status(ask(daemon, test_format("GET / HTTP/1.1\r\n" HTML "%s", refused[i])), 403);
        expect_status(ask(daemon, test_format("GET /page.json HTTP/1.1\r\n%s", refused[i])), 403);
    }
    expect_status(ask(daemon, "GET / HTTP/1.0\r\n" HTML HOST), 403);
    expect_status(ask(daemon, DATA "Sec-Fetch-Site: cross-site\r\n"), 403);
    expect_status(ask(daemon, DATA "Sec-Fetch-Site: same-site\r\n"), 403);
    expect_status(ask(daemon, DATA "Sec-Fetch-Site: same-origin\r\n"), 200);
    expect_status(ask(daemon, PAGE "Sec-Fetch-Site: cross-site\r\n"), 200); /* a link to it */
    expect_status(ask(daemon, "GET / HTTP/1.1\r\nHost: 127.0.0.1:80\r\n" HTML), 200);
    expect_status(ask(daemon, "GET / HTTP/1.1\r\nHost: [::1]:80\r\n" HTML), 200);
    daemon_interrupt(daemon);
}

TEST(page_asks_for_the_token)
{
    struct daemon *daemon = start_with_token();
    const char *page = ask(daemon, PAGE);

    expect_status(page, 200);
    expect_in(page, "<main class=locked></main>");
    expect_not_in(page, "<td");
    expect_status(ask(daemon, DATA), 401);
    expect_status(ask(daemon, DATA "Authorization: Bearer wrong\r\n"), 401);
    expect_status(ask(daemon, PAGE "Authorization: Bearer wrong\r\n"), 401);
    expect_status(ask(daemon, DATA TOKEN), 200);
    page = ask(daemon, PAGE TOKEN);
    expect_in(page, "<caption id=c-pools>Pools <b>2</b></caption>");
    expect_in(page, "http://localhost/mcp/a --header \"Authorization: Bearer TOKEN\"</pre>");
    expect_not_in(page, SECRET);
    expect_status(ask(daemon, "GET / HTTP/1.1\r\nHost: name.example\r\n" HTML TOKEN), 200);
    daemon_interrupt(daemon);
}

TEST(page_takes_no_token_in_its_url)
{
    struct daemon *daemon = start_with_token();

    expect_status(ask(daemon, "GET /?token=" SECRET " HTTP/1.1\r\n" HOST HTML), 400);
    expect_status(ask(daemon, "GET /?token=" SECRET " HTTP/1.1\r\n" HOST HTML TOKEN), 400);
    expect_status(ask(daemon, "GET /page.json?token=" SECRET " HTTP/1.1\r\n" HOST), 401);
    expect_status(ask(daemon, "GET /page.json?a HTTP/1.1\r\n" HOST TOKEN), 400);
    daemon_interrupt(daemon);
}

/* --- what clients and workers have chosen is text --- */

TEST(page_shows_names_as_text)
{
    static const char hostile[] = "</td><script>alert(1)</script><img src=x onerror='a'>\\\"&";
    struct daemon *daemon =
        START(.mode = SETUP_STDIO, .default_mode = true, .closed = true,
              .pools = "{'id':'<b onclick=x>','command':'@WORKER@','args':[],'instances':1},"
                       "{'id':'m','command':'@WORKER@','args':[],'instances':1,'protocol':'mcp'}",
              .members = "'listen':[{'http':'127.0.0.1:0'}]");
    const char *page;

    (void)http_ask(http_client(daemon), "POST /mcp/m HTTP/1.1\r\n" HOST HTTP_POST_FIELDS,
                   test_format("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":"
                               "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},"
                               "\"clientInfo\":{\"name\":\"%s\",\"version\":\"1\"}}}",
                               hostile));
    page = ask(daemon, PAGE);
    expect_status(page, 200);
    expect_not_in(page, "<script>alert");
    expect_not_in(page, "<img");
    expect_not_in(page, "<b onclick");
    expect_in(page, "&#60;script&#62;alert(1)&#60;/script&#62;");
    expect_in(page, "&#60;b onclick=x&#62;");
    expect_not_in(page, "mcp add --transport http _");
    daemon_interrupt(daemon);
}
