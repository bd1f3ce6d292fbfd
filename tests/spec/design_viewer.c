/* stdio_bus ctl page and --list --page: the page of daemons that have no HTTP listener. */
#include "build_config.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "control.h"
#include "harness.h"
#include "share.h"

#define HTML "Accept: text/html\r\n"
#define HOST "Host: 127.0.0.1\r\n"
#define PATH_LEN 34 /* two slashes, and 16 bytes in hexadecimal */

/* The process that serves the page, and where. */
struct viewer {
    struct rmp_program program;
    unsigned port;
    char path[PATH_LEN + 1];
};

/* From the line that it prints. */
static void read_url(struct viewer *viewer, struct span line)
{
    const char *text = test_format("%.*s", SHOWN(line)), *digits = "0123456789abcdef", *path;
    char *end;

    ck_assert_msg(strncmp(text, "http://127.0.0.1:", 17) == 0, "%s", text);
    viewer->port = (unsigned)strtoul(text + 17, &end, 10);
    path = end;
    ck_assert_msg(strlen(path) == PATH_LEN && path[0] == '/' &&
                      strspn(path + 1, digits) == PATH_LEN - 2 && path[PATH_LEN - 1] == '/',
                  "%s", text);
    memcpy(viewer->path, path, sizeof viewer->path);
}

static struct viewer viewer_start(const struct daemon *daemon)
{
    struct viewer viewer = {.program = CONTROL_PROGRAM(daemon, "ctl", "@CONTROL@", "page")};

    read_url(&viewer, client_line(viewer.program.client));
    return viewer;
}

static void viewer_end(struct viewer *viewer, int signo)
{
    ck_assert_int_eq(kill(viewer->program.pid, signo), 0);
    rmp_program_end(&viewer->program, 0);
}

/* `fields`: whole ones. Returns the whole answer. */
static const char *ask(const struct viewer *viewer, const char *method, const char *path,
                       const char *fields)
{
    return http_ask(http_client_at(viewer->port),
                    test_format("%s %s HTTP/1.1\r\n%s", method, path, fields), NULL);
}

static const char *data_of(const struct viewer *viewer)
{
    return test_format("%spage.json", viewer->path);
}

static void expect_status(const char *answer, int status)
{
    ck_assert_msg(strncmp(answer, test_format("HTTP/1.1 %d ", status), 13) == 0, "not %d: %s",
                  status, answer);
}

static void expect_in(const char *answer, const char *text)
{
    ck_assert_msg(strstr(answer, text) != NULL, "no %s in: %.3000s", text, answer);
}

static void expect_not_in(const char *answer, const char *text)
{
    ck_assert_msg(strstr(answer, text) == NULL, "%s in: %.3000s", text, answer);
}

/* --- ctl page --- */

TEST(page_of_a_control_socket)
{
    struct daemon *daemon = CONTROL_DAEMON(.instances = 2);
    struct viewer viewer = viewer_start(daemon);
    const char *page = ask(&viewer, "GET", viewer.path, HOST HTML);

    expect_status(page, 200);
    expect_in(page, "\r\nContent-Security-Policy: default-src 'none'; style-src 'sha256-");
    expect_in(page, test_format("PID <b data-k=pid class=n>%ld</b>", (long)daemon->pid));
    expect_in(page, "<caption id=c-workers>Workers <b>2</b></caption>");
    expect_not_in(page, "Lines for clients");
    expect_not_in(page, "id=shared");
    page = ask(&viewer, "GET", data_of(&viewer), HOST);
    expect_status(page, 200);
    expect_in(page, "\r\nContent-Type: application/json\r\n");
    expect_in(page, test_format("\"pid\":%ld,", (long)daemon->pid));
    viewer_end(&viewer, SIGINT);
}

/* Other users of the machine, other pages of the browser. */
TEST(page_of_a_control_socket_keeps_others_out)
{
    struct daemon *daemon = CONTROL_DAEMON(.instances = 1);
    struct viewer viewer = viewer_start(daemon), other = viewer_start(daemon);
    static const char *const refused[] = {
        "Host: evil.example\r\n", "Host: 127.0.0.1.evil.example\r\n",
        "Host: 192.168.0.1\r\n",  HOST "Origin: http://evil.example\r\n",
        HOST "Origin: null\r\n",  HOST "X-Forwarded-For: 192.0.2.1\r\n",
    };
    const char *paths[] = {
        "/",
        "/page.json",
        "/metrics",
        "/healthz",
        "/mcp",
        "/rpc",
        "//",
        test_format("%.33s", viewer.path),
        other.path,
        data_of(&other),
        test_format("%s/", viewer.path),
        test_format("%.20s/", viewer.path),
    };

    ck_assert_str_ne(viewer.path, other.path);
    for (size_t i = 0; i < COUNT(paths); i++) {
        expect_status(ask(&viewer, "GET", paths[i], HOST HTML), 404);
        expect_not_in(ask(&viewer, "GET", paths[i], HOST HTML), viewer.path);
    }
    for (size_t i = 0; i < COUNT(refused); i++) {
        expect_status(ask(&viewer, "GET", viewer.path, test_format("%s" HTML, refused[i])), 403);
        expect_status(ask(&viewer, "GET", data_of(&viewer), refused[i]), 403);
    }
    expect_status(ask(&viewer, "GET", data_of(&viewer), HOST "Sec-Fetch-Site: cross-site\r\n"),
                  403);
    expect_status(ask(&viewer, "POST", "/mcp", HOST HTTP_POST_FIELDS), 404);
    expect_status(ask(&viewer, "POST", viewer.path, HOST HTML), 404);
    expect_status(ask(&viewer, "GET", test_format("%s?a=b", viewer.path), HOST HTML), 400);
    rmp_program_stop(&viewer.program); /* which has lines about it on stderr */
    rmp_program_stop(&other.program);
}

/* It says so, and shows the daemon again when it answers. */
TEST(page_of_a_daemon_that_does_not_answer)
{
    struct daemon *daemon = CONTROL_DAEMON(.instances = 1);
    struct viewer viewer = viewer_start(daemon);

    steps_without("the daemon is stopped");
    expect_status(ask(&viewer, "GET", data_of(&viewer), HOST), 200);
    kill(daemon->pid, SIGSTOP);
    WAIT_UNTIL(strstr(ask(&viewer, "GET", data_of(&viewer), HOST), "HTTP/1.1 503 ") != NULL,
               "figures of a daemon that is stopped");
    expect_in(ask(&viewer, "GET", viewer.path, HOST HTML), "the daemon does not answer\n");
    kill(daemon->pid, SIGCONT);
    WAIT_UNTIL(strstr(ask(&viewer, "GET", data_of(&viewer), HOST), "HTTP/1.1 200 ") != NULL,
               "no figures");
    viewer_end(&viewer, SIGHUP); /* as when its terminal is closed */
}

TEST(page_needs_a_daemon)
{
    struct daemon *daemon = CONTROL_DAEMON(.instances = 1);
    struct rmp_program program;

    daemon_stop(daemon);
    program = CONTROL_PROGRAM(daemon, "ctl", "@CONTROL@", "page");
    rmp_program_says(program, 69, "No such file");
}

/* --- --list --page --- */

TEST(page_lists_what_is_shared)
{
    struct sharer *first = SHARE(.env = {"TOKEN=verysecret"}, .arguments = {"--env", "TOKEN"}),
                  *second = SHARE(.env = {"TOKEN=2"}, .arguments = {"--env", "TOKEN"}), *list;
    struct viewer viewer;
    const char *page;

    client_ask(first->client, "1", NULL, "echo", NULL);
    client_ask(second->client, "1", NULL, "echo", NULL);
    list = SHARE(.share = "--list", .whole = true, .arguments = {"--page"});
    read_url(&viewer, client_line(list->client));
    page = ask(&viewer, "GET", viewer.path, HOST HTML);
    expect_status(page, 200);
    expect_in(page, "<caption id=c-shared>Daemons <b>2</b></caption>");
    expect_in(page, "<caption id=c-differences>The same command, not shared <b>1</b></caption>");
    expect_in(page, "<td class=t>TOKEN</td>");
    expect_in(page, "test_worker");
    expect_in(page, "<dd data-k=clients class=n>2</dd>");
    expect_not_in(page, "verysecret");
    expect_not_in(page, "id=pools");
    page = ask(&viewer, "GET", data_of(&viewer), HOST);
    expect_status(page, 200);
    expect_in(page, "\"shared\":{\"shared\":[{\"name\":\"");
    expect_status(ask(&viewer, "GET", "/", HOST HTML), 404);
    kill(list->pid, SIGTERM);
    share_expect_exit(list, 0);
    share_finish(first);
    share_finish(second);
}

/* The page is there before anything is shared. */
TEST(page_lists_nothing)
{
    struct sharer *list = SHARE(.share = "--list", .whole = true, .arguments = {"--page"});
    struct viewer viewer;

    read_url(&viewer, client_line(list->client));
    expect_in(ask(&viewer, "GET", viewer.path, HOST HTML),
              "<caption id=c-shared>Daemons <b>0</b></caption>");
    kill(list->pid, SIGTERM);
    share_expect_exit(list, 0);
}
