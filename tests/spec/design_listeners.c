/* stdio_bus(1) and stdio_bus.conf(5), "Listeners": several at once, each with its pool, its rules
 * and its tokens. */
#include "build_config.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include "harness.h"

/* --- connections to a listener of many --- */

static struct client *connect_unix(const struct daemon *daemon, const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    const char *path = test_format("%s/%s", daemon->dir, name);

    ck_assert_uint_lt(strlen(path), sizeof address.sun_path);
    memcpy(address.sun_path, path, strlen(path) + 1);
    ck_assert_msg(connect(fd, (struct sockaddr *)&address, sizeof address) == 0, "%s: %s",
                  address.sun_path, strerror(errno));
    return client_adopt(fd, fd);
}

/* The port of the TCP listener number n, from 0 on, in the order of the log. */
static unsigned port_of(struct daemon *daemon, size_t n)
{
    static const char before[] = "listening on 127.0.0.1:";
    const char *at;

    WAIT_UNTIL(daemon_count_log(daemon, "listening on 127\\.0\\.0\\.1:[0-9]+$") > n, "no listener");
    at = strstr(daemon->log.data, before);
    while (n-- > 0)
        at = strstr(at + 1, before);
    return (unsigned)strtoul(at + sizeof before - 1, NULL, 10);
}

static struct client *connect_port(unsigned port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_msg(connect(fd, (struct sockaddr *)&address, sizeof address) == 0, "port %u: %s",
                  port, strerror(errno));
    return client_adopt(fd, fd);
}

static struct client *show_token(struct client *client, const char *token)
{
    client_send(client, "{'token':'%s'}", token);
    return client;
}

/* --- several listeners --- */

TEST(design_listeners_of_the_command_line)
{
    struct daemon *daemon = START(.arguments = {"--unix=@DIR@/second", "--tcp", "127.0.0.1:0",
                                                "--unix", "@DIR@/third", "--tcp=127.0.0.1:0"});
    unsigned port = port_of(daemon, 0), other = port_of(daemon, 1);

    client_expect_quiet(client_connect(daemon));
    client_expect_quiet(connect_unix(daemon, "second"));
    client_expect_quiet(connect_unix(daemon, "third"));
    ck_assert_uint_ne(port, other);
    client_expect_quiet(connect_port(port));
    client_expect_quiet(connect_port(other));
}

/* With listeners in the configuration stdin is not read. */
TEST(design_listeners_of_the_configuration)
{
    struct daemon *daemon =
        START(.mode = SETUP_STDIO, .default_mode = true, .closed = true,
              .members = "'listen':[{'unix':'@DIR@/a','framing':'length'},{'tcp':'127.0.0.1:0'}]");
    unsigned port = port_of(daemon, 0);
    struct client *client = connect_unix(daemon, "a");

    client_expect_quiet(connect_port(port));
    client_send_bytes(client, "\0\0\0\x19{\"id\":1,\"method\":\"plain\"}", 29);
    while (client->input.len < 4 + 38)
        ck_assert(client_read_before(client, deadline_usual()));
    expect_word(client->input.data + 4, "\"result\":null}");
}

/* Those of the command line beside them have their own keys: none. */
TEST(design_listeners_of_both)
{
    struct daemon *daemon = START(.members = "'listen':{'unix':'@DIR@/a','framing':'length'}");

    client_expect_quiet(client_connect(daemon));
    daemon_wait_log(daemon, "listening on .*/a$");
    client_close(connect_unix(daemon, "a"));
}

static const struct {
    const char *members, *word;
    int status;
} refused[] = {
    {"'listen':[{'unix':'@DIR@/a'}]", "--stdio: the configuration has listeners", 78},
    {"'listen':[{'unix':'@DIR@/none/a'}]", "--stdio", 78},
};

TEST_ROWS(design_stdio_excludes_listeners, COUNT(refused))
{
    expect_word(RUN(refused[row].status, .mode = SETUP_STDIO, .members = refused[row].members),
                refused[row].word);
}

/* If one cannot be opened no worker is started, and the others leave no socket. */
TEST(design_all_listeners_or_none)
{
    const char *text = RUN(71, .no_wait = true, .arguments = {"--unix", "@DIR@/none/socket"});

    expect_word(text, "cannot listen on");
    ck_assert_ptr_null(strstr(text, "started"));
}

/* --- the pool of a listener --- */

#define POOLS POOL("a", 1, "'--name','a'") "," POOL("b", 1, "'--name','b'")

static struct daemon *start_pools(void)
{
    return START(.pools = POOLS, .members = "'listen':[{'unix':'@DIR@/a','pool':'a'},"
                                            "{'unix':'@DIR@/b','pool':'b'},{'unix':'@DIR@/any'}]");
}

static void expect_pool(struct client *client, const char *id, const char *pool)
{
    expect_member(client_ask(client, id, NULL, "echo", NULL), "worker", test_format("'%s'", pool));
}

TEST(design_listener_names_the_pool)
{
    struct daemon *daemon = start_pools();
    struct client *a, *b, *any;

    daemon_wait_log(daemon, "listening on .*/any$");
    a = connect_unix(daemon, "a");
    b = connect_unix(daemon, "b");
    any = connect_unix(daemon, "any");
    for (int i = 0; i < 3; i++) {
        expect_pool(a, test_format("%d", i), "a");
        expect_pool(b, test_format("%d", i), "b");
    }
    client_send(a, "{'id':9,'pool':'a','method':'echo'}");
    expect_member(client_result(a, "9"), "worker", "'a'");
    client_send(any, "{'id':1,'pool':'b','method':'echo'}");
    expect_member(client_result(any, "1"), "worker", "'b'");
}

/* Neither a message, nor an opening line, nor a session leads to another pool. */
TEST(design_listener_confines_to_its_pool)
{
    struct daemon *daemon = start_pools();
    struct client *a, *b, *opening;

    daemon_wait_log(daemon, "listening on .*/any$");
    a = connect_unix(daemon, "a");
    b = connect_unix(daemon, "b");
    client_ask(b, "1", "session", "echo", NULL);
    client_send(a, "{'id':1,'pool':'b','method':'echo'}");
    client_error(a, "1", -32602, "no such pool");
    client_request(a, "2", "session", "echo", NULL);
    client_error(a, "2", -32602, "no such pool");
    expect_pool(a, "3", "a");
    opening = connect_unix(daemon, "a");
    client_send(opening, "{'pool':'a'}");
    expect_pool(opening, "1", "a");
    opening = connect_unix(daemon, "a");
    client_send(opening, "{'pool':'b'}");
    client_error(opening, "null", -32602, "the pool of this listener is a");
    client_expect_eof(opening);
}

/* --- the users of a listener --- */

TEST(design_listener_has_its_own_users)
{
    struct daemon *daemon =
        START(.members = test_format("'listen':[{'unix':'@DIR@/a','allow_uids':[%ld]},"
                                     "{'unix':'@DIR@/b','allow_uids':[%ld]}]",
                                     (long)geteuid(), (long)geteuid() + 1));
    struct client *client;

    daemon_wait_log(daemon, "listening on .*/b$");
    client_expect_quiet(connect_unix(daemon, "a"));
    client_expect_quiet(client_connect(daemon));
    client = connect_unix(daemon, "b");
    client_error(client, "null", -32000, "listen.allow_uids");
    client_expect_eof(client);
}

/* --- tokens with names --- */

static void write_tokens(const char *path, const char *content)
{
    const char *new = test_format("%s.new", path);
    int fd = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, content, strlen(content)), (ssize_t)strlen(content));
    close(fd);
    ck_assert_int_eq(rename(new, path), 0);
}

static struct daemon *start_tokens(const char *path, const char *content)
{
    write_tokens(path, content);
    return START(.mode = SETUP_TCP, .instances = 1, .arguments = {"--token-file", path});
}

static const char *tokens_path(void)
{
    return test_format("%s/tokens", test_dir());
}

static void expect_wrong(struct client *client)
{
    client_error(client, "null", -32000, "token");
    client_expect_eof(client);
}

TEST(security_tokens_have_names)
{
    const char *path = tokens_path();
    struct daemon *daemon = start_tokens(path, "# names\nann:secret-1\nbob:secret:2\n");

    client_expect_quiet(show_token(client_connect(daemon), "secret-1"));
    daemon_wait_log(daemon, "INFO .*client=1.* connected: .*, token ann");
    client_expect_quiet(show_token(client_connect(daemon), "secret:2"));
    daemon_wait_log(daemon, "INFO .*client=2.* connected: .*, token bob");
    expect_wrong(show_token(client_connect(daemon), "ann:secret-1"));
    expect_wrong(show_token(client_connect(daemon), "ann"));
    ck_assert(!daemon_logged(daemon, "secret"));
}

static bool is_taken(const struct daemon *daemon, const char *token)
{
    struct client *client = show_token(client_connect(daemon), token);
    struct span line;
    bool taken;

    client_send(client, "{'id':1,'method':'plain'}");
    line = client_line(client);
    taken = strstr(test_format("%.*s", (int)line.len, line.data), "result") != NULL;
    client_close(client);
    return taken;
}

/* The file is looked at when a client shows a token. A token that is gone ends its clients. */
TEST(security_tokens_are_read_anew)
{
    const char *path = tokens_path();
    struct daemon *daemon = start_tokens(path, "ann:one\nbob:two\n");
    struct client *ann = show_token(client_connect(daemon), "one");
    struct client *bob = show_token(client_connect(daemon), "two");

    client_expect_quiet(ann);
    client_expect_quiet(bob);
    write_tokens(path, "bob:two\ncarl:three\n");
    WAIT_UNTIL(is_taken(daemon, "three"), "the new token is not taken");
    client_expect_quiet(bob);
    client_expect_eof(ann);
    daemon_wait_log(daemon, "INFO .*read the token file .* again: 2 tokens, 1 connections closed");
    expect_wrong(show_token(client_connect(daemon), "one"));
}

TEST(security_revoked_token_at_a_signal)
{
    const char *path = tokens_path();
    struct daemon *daemon = start_tokens(path, "ann:one\nbob:two\n");
    struct client *ann = show_token(client_connect(daemon), "one");
    struct client *bob = show_token(client_connect(daemon), "two");

    client_expect_quiet(ann);
    client_expect_quiet(bob);
    write_tokens(path, "bob:two\n\n");
    daemon_signal(daemon, SIGUSR1);
    client_expect_eof(ann);
    client_expect_quiet(bob);
}

/* Nobody is locked out, and nobody let in, by a file that cannot be read. */
TEST(security_bad_token_file_changes_nothing)
{
    const char *path = tokens_path();
    struct daemon *daemon = start_tokens(path, "ann:one\nbob:two\n");
    struct client *ann = show_token(client_connect(daemon), "one");

    client_expect_quiet(ann);
    steps_without_reloads("the token file is bad");
    write_tokens(path, "ann:\nbob:two\n");
    daemon_signal(daemon, SIGUSR1);
    daemon_wait_log(daemon, "ERROR .*going on with the tokens of before: line 1: a token has");
    client_expect_quiet(ann);
    ck_assert_int_eq(unlink(path), 0);
    daemon_signal(daemon, SIGUSR1);
    daemon_wait_log(daemon, "ERROR .*going on with the tokens of before: No such file");
    client_expect_quiet(show_token(client_connect(daemon), "two"));
    client_expect_quiet(ann);
}

/* All come from one address, that of a proxy perhaps: the shares are those of the tokens' names. */
TEST(security_tokens_have_shares)
{
    const char *path = tokens_path();
    struct daemon *daemon;
    struct client *client;
    int id = 0;

    write_tokens(path, "ann:one\nbob:two\n");
    daemon = START(.mode = SETUP_TCP, .instances = 1, .limits = "'max_pending_requests':60",
                   .arguments = {"--token-file", path});
    for (int i = 0; i < 20; i++) {
        client = show_token(client_connect(daemon), "one");
        client_request(client, test_format("%d", id++), NULL, "no_answer", NULL);
        client_request(client, test_format("%d", id++), NULL, "no_answer", NULL);
        client_expect_quiet(client);
    }
    while (id <= 60)
        client_request(client, test_format("%d", id++), NULL, "no_answer", NULL);
    client_error(client, "60", -32000, "max_pending_requests");
    client = show_token(client_connect(daemon), "two");
    for (int i = 0; i < 16; i++)
        client_request(client, test_format("'%d'", i), NULL, "no_answer", NULL);
    client_error(client, "'15'", -32000, "max_pending_requests");
}

TEST(security_tokens_of_a_listener)
{
    const char *one = tokens_path(), *two = test_format("%s-2", one);
    struct daemon *daemon;
    unsigned first, second;

    write_tokens(one, "one");
    write_tokens(two, "two");
    daemon = START(.members = test_format("'listen':[{'tcp':'127.0.0.1:0','token_file':'%s'},"
                                          "{'tcp':'127.0.0.1:0','token_file':'%s'}]",
                                          one, two));
    first = port_of(daemon, 0);
    second = port_of(daemon, 1);
    client_expect_quiet(show_token(connect_port(first), "one"));
    client_expect_quiet(show_token(connect_port(second), "two"));
    expect_wrong(show_token(connect_port(first), "two"));
    expect_wrong(show_token(connect_port(second), "one"));
}

/* --- sockets that a service manager passes on --- */

/* A Unix socket that listens; its path is in `to`. */
static int bind_unix(struct sockaddr_un *to, const char *dir)
{
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    *to = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(to->sun_path, sizeof to->sun_path, "%s/passed", dir);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)to, sizeof *to), 0);
    ck_assert_int_eq(listen(fd, 8), 0);
    return fd;
}

static struct client *connect_at(const struct sockaddr_un *to)
{
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    ck_assert_int_eq(connect(fd, (const struct sockaddr *)to, sizeof *to), 0);
    return client_adopt(fd, fd);
}

/* By its name, or since a listener has its address. A client that was there before the daemon is
 * served; the workers do not get the variables; the file is the manager's. */
TEST_ROWS(design_passed_socket_is_taken_over, 3)
{
    struct sockaddr_un at;
    int fd = bind_unix(&at, test_dir());
    struct client *client = connect_at(&at);
    const char *listens[] = {"{'fd':'bus'}", test_format("{'unix':'%s'}", at.sun_path),
                             "{'http':'fd:bus'}"};

    client_send(client, row < 2 ? "{'id':1,'method':'environment'}"
                                : "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    START(.mode = SETUP_STDIO, .default_mode = true, .closed = true, .passed_fd = fd,
          .passed_name = "bus", .members = test_format("'listen':[%s]", listens[row]));
    close(fd);
    if (row < 2) {
        struct span variables = client_result(client, "1");
        ck_assert_ptr_null(memmem(variables.data, variables.len, "LISTEN_FD", 9));
    } else {
        expect_word(test_format("%.40s", client_line(client).data), "HTTP/1.1 404");
    }
    ck_assert_int_eq(access(at.sun_path, F_OK), 0);
}

/* In a portable build: by the name that a listener has, or by the usual one and the address. A name
 * that launchd does not have is refused. */
TEST_ROWS(design_socket_of_launchd_is_taken_over, 2)
{
    const char *dir = test_dir();
    const char *listens[] = {"{'fd':'bus'}", test_format("{'unix':'%s/passed'}", dir)};
    const char *other = RUN(78, .mode = SETUP_STDIO, .default_mode = true,
                            .members = "'listen':{'fd':'other'}");
    struct sockaddr_un at;
    struct client *client;
    int fd;

    expect_word(other, "cannot listen on the socket other: no such stream socket was passed on");
    if (strstr(other, "Sockets of launchd") == NULL)
        return;
    fd = bind_unix(&at, dir);
    client = connect_at(&at);
    client_send(client, "{'id':1,'method':'echo'}");
    START(.mode = SETUP_STDIO, .default_mode = true, .closed = true, .passed_fd = fd,
          .launch_name = row == 0 ? "bus" : "Listeners",
          .members = test_format("'listen':[%s]", listens[row]));
    close(fd);
    client_result(client, "1");
    ck_assert_int_eq(access(at.sun_path, F_OK), 0);
}

TEST(design_named_socket_that_is_not_there)
{
    const char *log = RUN(78, .mode = SETUP_STDIO, .default_mode = true,
                          .members = "'listen':{'fd':'bus'}");

    expect_word(log, "cannot listen on the socket bus: no such stream socket was passed on");
}
