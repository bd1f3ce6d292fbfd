/* stdio_bus(1), --share: a server that all clients of a user share, started by the first. */
#include "build_config.h"

#include "frames.h"
#include "harness.h"
#include "share.h"

#define INITIALIZE "{'protocolVersion':'2025-11-25','capabilities':{},'result':" ANSWER "}"
#define ANSWER "{'protocolVersion':'2025-11-25','capabilities':{}}"

/* A server that reports a variable as its name. */
#define NAMED(value)                                                                               \
    {                                                                                              \
        "sh", "-c", "exec \"$TEST_WORKER\" --name \"" value "\""                                   \
    }

static long pid_of(struct sharer *sharer)
{
    return client_pid(sharer->client, "1", NULL);
}

static void initialize(struct sharer *sharer)
{
    client_request(sharer->client, "'i'", NULL, "initialize", INITIALIZE);
    client_result(sharer->client, "\"i\"");
    client_send(sharer->client, "{'jsonrpc':'2.0','method':'notifications/initialized'}");
}

/* What its server has heard of handshakes and settings; or an error, if its daemon is killed just
 * now. */
static const char *heard(struct sharer *sharer)
{
    client_request(sharer->client, "'heard'", NULL, "heard", NULL);
    struct span line = client_line(sharer->client);
    return test_format("%.*s", SHOWN(line));
}

/* --- who shares --- */

TEST(design_share_gives_clients_one_process)
{
    struct sharer *sharers[3];
    long pid = 0;
    for (size_t i = 0; i < COUNT(sharers); i++) {
        sharers[i] = SHARE(.cwd = NULL);
        long own = pid_of(sharers[i]);
        ck_assert(pid == 0 || own == pid);
        pid = own;
    }
    ck_assert_uint_eq(share_logged("listening"), 1);
    /* Each gets its own answers, with its own ids. */
    for (size_t i = 0; i < COUNT(sharers); i++)
        client_request(sharers[i]->client, "7", NULL, "plain", test_format("%zu", i));
    for (size_t i = 0; i < COUNT(sharers); i++) {
        struct span result = client_result(sharers[i]->client, "7");
        ck_assert(span_is(result, test_format("%zu", i)));
        share_finish(sharers[i]);
    }
}

TEST(design_share_serves_what_was_asked_before_the_end_of_stdin)
{
    struct sharer *sharer = SHARE(.cwd = NULL);
    client_request(sharer->client, "1", NULL, "big", "{'size':3000000}");
    client_request(sharer->client, "2", NULL, "echo", NULL);
    client_half_close(sharer->client);
    client_result(sharer->client, "1");
    client_result(sharer->client, "2");
    client_expect_eof(sharer->client);
    share_expect_exit(sharer, 0);
}

static const struct {
    struct share_setup first, second;
    bool together;
} identities[] = {
    {{.env = {"TOKEN=1"}}, {.env = {"TOKEN=1"}}, true},
    {{.env = {"TOKEN=1"}}, {.env = {"TOKEN=2"}}, false},
    {{.env = {"TOKEN=1"}}, {.env = {"TOKEN"}}, false},
    {{.env = {"TERM=vt100", "SSH_TTY=/dev/pts/1"}}, {.env = {"TERM=xterm", "SHLVL=7"}}, true},
    {{.env = {"AI_AGENT=claude-code", "CLAUDE_PROJECT_DIR=/p"}},
     {.env = {"OPENCODE_PID=7", "GEMINI_CLI=1"}},
     true},
    {{.env = {"SSL_CERT_FILE=/a"}}, {.env = {"SSL_CERT_FILE"}}, true},
    {{.env = {"SSL_CERT_FILE"}}, {.env = {"SSL_CERT_FILE=/a"}}, false},
    {{.env = {"SSH_AUTH_SOCK=/a"}}, {.env = {"SSH_AUTH_SOCK=/b"}}, false},
    {{.cwd = "/"}, {.cwd = "/tmp"}, false},
    {{.cwd = "/", .arguments = {"--any-cwd"}}, {.cwd = "/tmp", .arguments = {"--any-cwd"}}, true},
    {{.env = {"A=1", "B=1"}, .arguments = {"--env", "A,C"}},
     {.env = {"A=1", "B=2"}, .arguments = {"--env", "A,C"}},
     true},
    {{.env = {"A=1"}, .arguments = {"--env", "A,C"}},
     {.env = {"A=2"}, .arguments = {"--env", "A,C"}},
     false},
    {{.env = {"HOME=/a"}, .arguments = {"--env", "A"}},
     {.env = {"HOME=/b"}, .arguments = {"--env", "A"}},
     false},
    {{.arguments = {"--env", "A"}}, {.arguments = {"--env", "B"}}, false},
    {{.arguments = {"--clients", "sticky"}}, {.arguments = {"--clients", "exclusive"}}, false},
    {{.arguments = {"--clients", "exclusive"}}, {.arguments = {"--clients", "exclusive"}}, false},
};

TEST_ROWS(design_share_is_decided_by_what_the_server_sees, COUNT(identities))
{
    struct sharer *first = share_with(&identities[row].first);
    long pid = pid_of(first);
    struct sharer *second = share_with(&identities[row].second);
    ck_assert_int_eq(pid_of(second) == pid, identities[row].together);
    share_finish(first);
    share_finish(second);
}

/* Each login has an agent of its own, and gets a server of its own. */
TEST(design_share_of_clients_with_agents_of_their_own)
{
    struct sharer *sharers[9], *again;
    long pids[COUNT(sharers)];
    for (size_t i = 0; i < COUNT(sharers); i++) {
        sharers[i] = SHARE(.env = {test_format("SSH_AUTH_SOCK=/agent/%zu", i)});
        pids[i] = pid_of(sharers[i]);
        for (size_t k = 0; k < i; k++)
            ck_assert_int_ne(pids[i], pids[k]);
    }
    again = SHARE(.env = {"SSH_AUTH_SOCK=/agent/8"});
    ck_assert_int_eq(pid_of(again), pids[8]);
    again = SHARE(.env = {"SSH_AUTH_SOCK"});
    ck_assert_int_eq(pid_of(again), pids[0]);
}

/* The daemon of another one has ended, and its name is unused. */
TEST(design_share_joins_its_daemon_after_another_has_ended)
{
    static const char *const list[] = {"--list", "--json", NULL};
    struct sharer *other = SHARE(.env = {"DISPLAY=:1"}, .idle_exit = "1");
    int64_t deadline = deadline_usual();
    pid_of(other);
    struct sharer *first = SHARE(.env = {"DISPLAY=:2"});
    long pid = pid_of(first);
    share_finish(other);
    while (strstr(share_run(list, 0), "\"total\":1") == NULL)
        ck_assert(!deadline_over(deadline));
    struct sharer *same = SHARE(.env = {"DISPLAY=:2"});
    ck_assert_int_eq(pid_of(same), pid);
    struct sharer *next = SHARE(.env = {"DISPLAY=:1"});
    ck_assert_int_ne(pid_of(next), pid);
}

/* Whoever comes first, the server does not see what does not count. */
TEST(design_share_passes_no_variables_that_do_not_count)
{
    struct sharer *all = SHARE(.env = {"TERM=vt100", "TOKEN=1"}, .command = NAMED("$TERM$TOKEN"));
    expect_member(client_ask(all->client, "1", NULL, "echo", NULL), "worker", "\"1\"");
    struct sharer *some = SHARE(.env = {"TOKEN=1", "OTHER=2"},
                                .arguments = {"--env", "TOKEN,TEST_WORKER"},
                                .command = NAMED("$TOKEN$OTHER"));
    expect_member(client_ask(some->client, "1", NULL, "echo", NULL), "worker", "\"1\"");
}

enum { SECRETS = 50 };

static unsigned next_random(unsigned *state)
{
    *state = *state * 1103515245u + 12345u;
    return *state >> 16 & 0x7FFF;
}

/* 50 clients of few servers: each sees its own secret and directory. */
TEST(design_share_uses_no_secret_for_another_client)
{
    static const char *const places[] = {"/", "/tmp", "/usr"};
    unsigned state = 17;
    for (int i = 0; i < SECRETS; i++) {
        const char *secret = test_format("TOKEN=%u", next_random(&state) % 3);
        const char *place = places[next_random(&state) % COUNT(places)];
        struct sharer *sharer = SHARE(.env = {secret}, .cwd = place,
                                      .command = NAMED("$TOKEN at $(pwd)"));
        struct span result = client_ask(sharer->client, "1", NULL, "echo", NULL);
        expect_member(result, "worker", test_format("\"%s at %s\"", secret + 6, place));
        if (i % 2 == 0)
            share_finish(sharer);
    }
}

static long stateless_pid(struct sharer *sharer)
{
    return json_number(client_ask(sharer->client, "1", NULL, "echo",
                                  "{'_meta':{'io.modelcontextprotocol/protocolVersion':"
                                  "'2026-07-28'}}"),
                       "pid");
}

/* MCP: clients of the handshake era, and of the stateless one. */
TEST(design_share_has_one_process_for_each_era)
{
    struct sharer *sharers[6];
    long pids[2] = {0};
    for (size_t i = 0; i < COUNT(sharers); i++) {
        sharers[i] = SHARE(.cwd = NULL);
        if (i % 2 == 0)
            initialize(sharers[i]);
        long pid = i % 2 == 0 ? pid_of(sharers[i]) : stateless_pid(sharers[i]);
        ck_assert(pids[i % 2] == 0 || pids[i % 2] == pid);
        pids[i % 2] = pid;
    }
    ck_assert_int_ne(pids[0], pids[1]);
    ck_assert_uint_eq(share_logged("started "), 2);
    for (size_t i = 0; i < COUNT(sharers); i++)
        share_finish(sharers[i]);
}

/* --- names --- */

TEST(design_share_by_name)
{
    struct sharer *first = SHARE(.share = "--share=tools", .env = {"TOKEN=1"});
    struct sharer *same = SHARE(.share = "--share=tools", .env = {"TOKEN=1"});
    ck_assert_int_eq(pid_of(first), pid_of(same));
    struct sharer *other = SHARE(.share = "--share=tools", .env = {"TOKEN=verysecret"}, .cwd = "/");
    client_request(other->client, "5", NULL, "echo", NULL);
    client_error(other->client, "5", -32000, "what differs: the working directory, TOKEN");
    client_expect_eof(other->client);
    share_expect_exit(other, 69);
    expect_word(share_errors(other), "what differs: the working directory, TOKEN");
    ck_assert(strstr(share_errors(other), "verysecret") == NULL);
    share_finish(first);
    share_finish(same);
}

/* The answer is in the framing of the client, which is no NDJSON by default. */
TEST(design_share_refuses_a_language_client_in_its_framing)
{
    struct sharer *first = SHARE(.share = "--share=tools");
    pid_of(first);
    struct sharer *other = SHARE(.share = "--share=tools", .arguments = {"--protocol", "lsp"});
    frames_send(other->client, "{'jsonrpc':'2.0','method':'initialized'}");
    frames_send(other->client, "{'jsonrpc':'2.0','id':5,'method':'initialize','params':{}}");
    frames_error(other->client, "5", -32000, "what differs: --protocol");
    client_expect_eof(other->client);
    share_expect_exit(other, 69);
    share_finish(first);
}

static const struct {
    const char *name, *word;
} bad_names[] = {
    {"", "a name has letters"},     {"a/b", "a name has letters"}, {"..", "a name has letters"},
    {NULL, "longer than 64 bytes"}, {"x y", "a name has letters"},
};

/* $TMPDIR of macOS has 49 bytes, and its paths of sockets 104: the daemon's own has the directory
 * as its working directory. */
TEST(design_share_in_a_long_directory)
{
    const char *dir = test_format("%s/%s", test_dir(), test_fill('l', 120));
    const char *socket = test_format("%s/stdio_bus/x@%s.sock", dir, PACKAGE_VERSION);
    struct sharer *sharer;
    ck_assert_int_eq(mkdir(dir, 0700), 0);
    sharer = SHARE(.share = "--share=x", .idle_exit = "1",
                   .env = {test_format("XDG_RUNTIME_DIR=%s", dir)});
    expect_member(client_ask(sharer->client, "1", NULL, "echo", NULL), "worker", "'worker'");
    ck_assert_int_eq(access(socket, F_OK), 0);
    share_finish(sharer);
    WAIT_UNTIL(access(socket, F_OK) != 0, "the daemon does not end");
    ck_assert_int_eq(system(test_format("rm -r '%s'", dir)), 0);
}

TEST_ROWS(design_share_refuses_names, COUNT(bad_names))
{
    const char *name = bad_names[row].name != NULL ? bad_names[row].name : test_fill('n', 300);
    struct sharer *sharer = SHARE(.share = test_format("--share=%s", name));
    client_expect_eof(sharer->client);
    share_expect_exit(sharer, 64);
    expect_word(share_errors(sharer), bad_names[row].word);
}

/* --- from the start of the daemon to its end --- */

enum { AT_ONCE = 10 };

TEST_ROWS(design_share_starts_one_daemon_for_clients_at_once, 5)
{
    struct sharer *sharers[AT_ONCE];
    long pid = 0;
    for (int i = 0; i < AT_ONCE; i++)
        sharers[i] = SHARE(.cwd = NULL);
    for (int i = 0; i < AT_ONCE; i++) {
        long own = pid_of(sharers[i]);
        ck_assert(pid == 0 || own == pid);
        pid = own;
    }
    ck_assert_uint_eq(share_logged("listening on"), 1);
    for (int i = 0; i < AT_ONCE; i++)
        share_finish(sharers[i]);
}

TEST(design_share_ends_without_clients)
{
    struct sharer *sharer = SHARE(.idle_exit = "1");
    pid_of(sharer);
    pid_t daemon = share_daemon();
    share_finish(sharer);
    share_wait_gone(daemon);
    ck_assert_uint_eq(share_logged("there was no client for 1 seconds"), 1);
    sharer = SHARE(.idle_exit = "1");
    pid_of(sharer);
    ck_assert_int_ne(share_daemon(), daemon);
    share_finish(sharer);
}

/* One that ends may be the client's first daemon, and answer it or not. */
static bool has_daemon(struct sharer *sharer, pid_t *daemon)
{
    client_request(sharer->client, "0", NULL, "echo", NULL);
    client_line(sharer->client);
    return share_daemons(daemon, 1) == 1;
}

/* A daemon that ends must not take a client with it that comes just then. */
TEST(design_share_starts_while_the_last_daemon_ends)
{
    for (int i = 0; i < 25; i++) {
        struct sharer *sharer = SHARE(.cwd = NULL);
        pid_t daemon = 0;
        WAIT_UNTIL(has_daemon(sharer, &daemon), "there is no daemon");
        share_finish(sharer);
        kill(daemon, SIGTERM);
        if (i % 5 == 4)
            share_wait_gone(daemon);
    }
}

/* The sockets, logs and locks of daemons that were killed stay, and are in nobody's way. */
TEST(design_share_starts_after_a_power_cut)
{
    for (int i = 0; i < 5; i++) {
        struct sharer *sharer = SHARE(.cwd = NULL);
        pid_of(sharer);
        pid_t daemon = share_daemon();
        kill(sharer->pid, SIGKILL);
        kill(daemon, SIGKILL);
        share_wait_gone(daemon);
    }
}

/* A client that is killed leaves nothing behind. */
TEST(design_share_of_a_client_that_is_killed)
{
    struct sharer *sharer = SHARE(.idle_exit = "1");
    long worker = pid_of(sharer);
    pid_t daemon = share_daemon();
    kill(sharer->pid, SIGKILL);
    share_wait_gone(daemon);
    share_wait_gone((pid_t)worker);
}

/* --- what goes wrong --- */

TEST(design_share_of_a_command_that_does_not_exist)
{
    struct sharer *sharer = SHARE(.command = {"no-such-command"}, .env = {"PATH=/bin:/usr/bin"});
    client_send(sharer->client, "{'jsonrpc':'2.0','method':'note'}");
    client_request(sharer->client, "'a'", NULL, "initialize", NULL);
    client_error(sharer->client, "\"a\"", -32000, "no-such-command");
    client_expect_eof(sharer->client);
    share_expect_exit(sharer, 78);
    expect_word(share_errors(sharer), "/bin:/usr/bin");
}

/* The clients of a server that exits at once get errors, not silence. */
TEST(design_share_of_a_server_that_exits)
{
    const char *worker = getenv("TEST_WORKER");
    struct sharer *sharer = SHARE(.command = {worker, "--exit", "3"});
    client_request(sharer->client, "1", NULL, "initialize", NULL);
    client_error(sharer->client, "1", -32000, "server exited with status 3 before answering");
    client_expect_eof(sharer->client);
    share_expect_exit(sharer, 69);
    WAIT_UNTIL(share_logged("exited with status 3") >= 1, "the exit is not logged");
}

/* Other lines than that of a client, and silence. */
TEST(design_share_closes_strangers)
{
    static const char *const lines[] = {
        "{'jsonrpc':'2.0','id':1,'method':'echo'}",
        "{'stdio_bus':'join','identity':''}",
        "{'stdio_bus':'join'}",
        "{'stdio_bus':'status','more':1}",
        "nonsense",
    };
    struct sharer *sharer = SHARE(.share = "--share=a");
    pid_of(sharer);
    for (size_t i = 0; i < COUNT(lines); i++) {
        struct client *stranger = share_connect("a");
        client_send(stranger, "%s", lines[i]);
        struct span line = client_line(stranger);
        ck_assert(json_get(line, "result").data == NULL);
        client_expect_eof(stranger);
    }
    client_expect_quiet(sharer->client);
}

static void make_readable(void)
{
    ck_assert_int_eq(mkdir(share_dir(), 0755), 0);
    ck_assert_int_eq(chmod(share_dir(), 0755), 0);
}

static void make_file(void)
{
    FILE *file = fopen(share_dir(), "w");
    ck_assert_ptr_nonnull(file);
    fclose(file);
}

static void make_link(void)
{
    ck_assert_int_eq(symlink("/tmp", share_dir()), 0);
}

static const struct {
    void (*make)(void);
    const char *word;
} bad_directories[] = {
    {make_readable, "other users can open the directory"},
    {make_file, "cannot open the directory"},
    {make_link, "cannot open the directory"},
};

TEST_ROWS(design_share_refuses_directories, COUNT(bad_directories))
{
    share_dir();
    bad_directories[row].make();
    struct sharer *sharer = SHARE(.cwd = NULL);
    client_request(sharer->client, "1", NULL, "initialize", NULL);
    client_error(sharer->client, "1", -32000, bad_directories[row].word);
    client_expect_eof(sharer->client);
    share_expect_exit(sharer, 69);
    expect_word(share_errors(sharer), bad_directories[row].word);
    unlink(share_dir());
}

/* --- its daemon is killed --- */

TEST(design_share_survives_the_daemon)
{
    struct sharer *sharers[3];
    for (size_t i = 0; i < COUNT(sharers); i++) {
        sharers[i] = SHARE(.cwd = NULL);
        initialize(sharers[i]);
        pid_of(sharers[i]);
        client_request(sharers[i]->client, "'lost'", NULL, "no_answer", NULL);
        client_ask(sharers[i]->client, "2", NULL, "echo", NULL);
    }
    pid_t daemon = share_daemon();
    kill(daemon, SIGKILL);
    for (size_t i = 0; i < COUNT(sharers); i++)
        client_error(sharers[i]->client, "\"lost\"", -32000, DIED);
    for (size_t i = 0; i < COUNT(sharers); i++) {
        client_ask(sharers[i]->client, "3", NULL, "echo", NULL);
        /* The next server has got the handshake. */
        struct span seen = client_ask(sharers[i]->client, "4", NULL, "handshake", NULL);
        struct span first = json_text(json_get(seen, "0.method"));
        ck_assert(span_is(first, "initialize"));
    }
    ck_assert_int_ne(share_daemon(), daemon);
    for (size_t i = 0; i < COUNT(sharers); i++)
        share_finish(sharers[i]);
}

/* The next server hears of the subscriptions and the level of log messages. */
TEST(design_share_sets_again_what_the_client_has_set)
{
    struct sharer *sharer = SHARE(.cwd = NULL);
    initialize(sharer);
    client_ask(sharer->client, "1", NULL, "resources/subscribe", "{'uri':'x:/1'}");
    client_ask(sharer->client, "2", NULL, "resources/subscribe", "{'uri':'x:/2'}");
    client_ask(sharer->client, "3", NULL, "resources/unsubscribe", "{'uri':'x:/1'}");
    client_ask(sharer->client, "4", NULL, "logging/setLevel", "{'level':'error'}");
    kill(share_daemon(), SIGKILL);
    WAIT_UNTIL(strstr(heard(sharer), "x:/2") != NULL && strstr(heard(sharer), "error") != NULL,
               "the server has heard: %s", heard(sharer));
    ck_assert_ptr_null(strstr(heard(sharer), "x:/1"));
    share_finish(sharer);
}

/* What the client writes while there is no daemon is answered by the next one. */
TEST(design_share_keeps_what_comes_meanwhile)
{
    struct sharer *sharer = SHARE(.cwd = NULL);
    initialize(sharer);
    pid_of(sharer);
    for (int i = 0; i < 10; i++) {
        pid_t daemon = share_daemon();
        client_request(sharer->client, "'lost'", NULL, "no_answer", NULL);
        client_ask(sharer->client, "1", NULL, "echo", NULL);
        kill(daemon, SIGKILL);
        share_wait_gone(daemon);
        client_error(sharer->client, "\"lost\"", -32000, DIED);
        client_request(sharer->client, "2", NULL, "plain", "5");
        client_request(sharer->client, "3", NULL, "plain", "6");
        ck_assert(span_is(client_result(sharer->client, "2"), "5"));
        ck_assert(span_is(client_result(sharer->client, "3"), "6"));
    }
    share_finish(sharer);
}

/* An answer to a question of the last server is not taken for one to a question of the next. */
TEST(design_share_drops_answers_to_questions_of_the_last_daemon)
{
    struct sharer *sharer = SHARE(.cwd = NULL);
    initialize(sharer);
    client_request(sharer->client, "1", NULL, "ask", "{'id':5,'params':{}}");
    struct span question = client_line(sharer->client);
    const char *old = test_format("%.*s", SHOWN(json_get(question, "id")));
    kill(share_daemon(), SIGKILL);
    client_error(sharer->client, "1", -32000, DIED);
    client_request(sharer->client, "2", NULL, "ask", "{'id':5,'params':{}}");
    question = client_line(sharer->client);
    const char *new = test_format("%.*s", SHOWN(json_get(question, "id")));
    ck_assert_str_ne(old, new);
    client_send(sharer->client, "{'jsonrpc':'2.0','id':%s,'result':'old'}", old);
    client_send(sharer->client, "{'jsonrpc':'2.0','id':%s,'result':'new'}", new);
    expect_member(client_result(sharer->client, "2"), "result", "\"new\"");
    share_finish(sharer);
}

enum { BUSY = 20, KILLS = 5, REQUESTS = 20 };

/* The sharer may not have seen yet that its daemon has ended: its first request is for that one. */
static void await_daemon(struct sharer *sharer)
{
    client_request(sharer->client, "0", NULL, "echo", NULL);
    client_line(sharer->client);
    client_ask(sharer->client, "1", NULL, "echo", NULL);
}

/* Every request is answered or gets an error, and every client continues. */
TEST(design_share_survives_under_busy_clients)
{
    struct sharer *sharers[BUSY];
    for (int i = 0; i < BUSY; i++) {
        sharers[i] = SHARE(.cwd = NULL);
        initialize(sharers[i]);
    }
    for (int round = 0; round < KILLS; round++) {
        await_daemon(sharers[round]);
        pid_t daemon = share_daemon();
        for (int i = 0; i < BUSY; i++) {
            for (int n = 0; n < REQUESTS; n++)
                client_request(sharers[i]->client, test_format("%d", n), NULL, "plain", "1");
            if (i == BUSY / 2)
                kill(daemon, SIGKILL);
        }
        for (int i = 0; i < BUSY; i++) {
            bool seen[REQUESTS] = {false};
            for (int n = 0; n < REQUESTS; n++) {
                long id = json_number(client_line(sharers[i]->client), "id");
                ck_assert(id >= 0 && id < REQUESTS && !seen[id]);
                seen[id] = true;
            }
        }
    }
    for (int i = 0; i < BUSY; i++) {
        await_daemon(sharers[i]);
        share_finish(sharers[i]);
    }
}

/* --- what is shown --- */

TEST(design_share_list)
{
    static const char *const list[] = {"--list", NULL};
    ck_assert_str_eq(share_run(list, 0), "nothing is shared\n");
    struct sharer *first = SHARE(.env = {"TOKEN=verysecret"});
    struct sharer *second = SHARE(.env = {"TOKEN=2"}, .share = "--share=tools");
    struct sharer *third = SHARE(.cwd = "/");
    pid_of(first);
    pid_of(second);
    pid_of(third);
    const char *shown = share_run(list, 0);
    expect_word(shown, "tools@");
    expect_word(shown, "test_worker");
    /* One line for the group, after the table. */
    const char *differs = strstr(shown, " have the same command; what differs: ");
    ck_assert_ptr_nonnull(differs);
    ck_assert_ptr_null(strstr(differs + 5, "have the same command"));
    ck_assert_ptr_null(strstr(differs, "test_worker"));
    expect_word(differs, "the working directory");
    expect_word(differs, "TOKEN");
    expect_word(differs, "or name the variables that count with --env");
    ck_assert(strstr(shown, "verysecret") == NULL);
}

/* The members, in their order, and nothing else. */
static void expect_members(struct span object, const char *names)
{
    struct text found = {.data = NULL};
    struct json_cursor cursor;
    struct span key, value;

    json_open(&cursor, object);
    while (json_next(&cursor, &key, &value))
        text_printf(&found, "%s%.*s", found.len > 0 ? " " : "", SHOWN(key));
    ck_assert_str_eq(found.data, names);
    text_free(&found);
}

/* The document of stdio_bus(1), on one line. */
static struct span share_list_json(void)
{
    static const char *const words[] = {"--list", "--json", NULL};
    const char *shown = share_run(words, 0), *end = strchr(shown, '\n');
    ck_assert_msg(end != NULL && end[1] == '\0', "%s", shown);
    struct span document = {shown, (size_t)(end - shown)};
    expect_members(document, "shared total differences");
    return document;
}

/* All that the table has. */
static const struct {
    struct share_setup second; /* the first is in the directory of the test, without a name */
    const char *differs, *cure;
} advised[] = {
    {{.share = "--share=tools"}, "[\"--share=NAME\"]", "the same name after --share=, or none"},
    {{.cwd = "/"}, "[\"the working directory\"]", "--any-cwd before the --"},
    {{.arguments = {"--clients", "exclusive"}}, "[\"--clients\"]", "the same options"},
    {{.env = {"A=1"}}, "[\"A\"]", "the same in its \"env\""},
};

/* Each difference has a name, and its own cure alone. */
TEST_ROWS(design_share_list_advises, COUNT(advised))
{
    static const char *const list[] = {"--list", NULL};
    struct sharer *first = SHARE(.cwd = NULL), *second = share_with(&advised[row].second);
    pid_of(first);
    pid_of(second);
    struct span differs = json_get(share_list_json(), "differences.0.differs");
    ck_assert_msg(span_is(differs, advised[row].differs), "%.*s", SHOWN(differs));
    const char *cure = strstr(share_run(list, 0), "\nto share one: ");
    ck_assert_ptr_nonnull(cure);
    expect_word(cure, advised[row].cure);
    ck_assert_ptr_null(strstr(cure + 1, "\nto share one: "));
}

/* Servers that users have named apart are two. */
TEST(design_share_list_of_two_names)
{
    struct sharer *first = SHARE(.share = "--share=a"), *second = SHARE(.share = "--share=b");
    pid_of(first);
    pid_of(second);
    struct span document = share_list_json();
    ck_assert(span_is(json_get(document, "differences.0.differs"), "[\"--share=NAME\"]"));
}

TEST(design_share_list_json)
{
    ck_assert(span_is(share_list_json(), "{\"shared\":[],\"total\":0,\"differences\":[]}"));
    struct sharer *first = SHARE(.env = {"TOKEN=verysecret"},
                                 .command = {"sh", "-c", "exec \"$TEST_WORKER\"", "a\n\"%"});
    pid_of(first);
    pid_t daemon = share_daemon();
    struct span document = share_list_json(), shared = json_get(document, "shared.0");
    expect_members(
        shared,
        "name version pid runs_ms state state_ms calls clients processes memory command directory "
        "failure one_client log");
    ck_assert(span_is(json_get(document, "total"), "1"));
    ck_assert(span_is(json_get(document, "differences"), "[]"));
    ck_assert_int_eq(json_number(shared, "pid"), daemon);
    ck_assert_int_eq(json_number(shared, "runs_ms") % 1000, 0);
    ck_assert_int_eq(json_number(shared, "clients"), 1);
    ck_assert_int_eq(json_number(shared, "processes"), 1);
    if (access("/proc/self/stat", R_OK) == 0)
        ck_assert_int_gt(json_number(shared, "memory"), 100000);
    ck_assert(span_is(json_get(shared, "command"),
                      "[\"sh\",\"-c\",\"exec \\\"$TEST_WORKER\\\"\",\"a\\n\\\"%\"]"));
    ck_assert(span_is(json_get(shared, "failure"), "null"));
    struct span name = json_text(json_get(shared, "name")),
                log = json_text(json_get(shared, "log"));
    ck_assert(span_is(log, test_format("%s/%.*s.log", share_dir(), SHOWN(name))));
    ck_assert_int_eq(access(test_format("%.*s", SHOWN(log)), R_OK), 0);
    ck_assert_ptr_null(strstr(document.data, "verysecret"));
    share_finish(first);
}

TEST(design_share_list_json_of_the_same_command)
{
    struct sharer *first = SHARE(.env = {"TOKEN=1"}),
                  *second = SHARE(.cwd = "/", .env = {"TOKEN=2"});
    struct sharer *other = SHARE(.command = {getenv("TEST_WORKER"), "--name", "other"});
    pid_of(first);
    pid_of(second);
    pid_of(other);
    struct span document = share_list_json(), group = json_get(document, "differences.0");
    ck_assert(span_is(json_get(document, "total"), "3"));
    expect_members(group, "names differs");
    ck_assert_ptr_nonnull(json_get(group, "names.1").data);
    ck_assert_ptr_null(json_get(group, "names.2").data);
    ck_assert(span_is(json_get(group, "differs"), "[\"the working directory\",\"TOKEN\"]"));
    ck_assert_ptr_null(json_get(document, "differences.1").data);
}

/* Linux: the memory is known without ps, which small containers do not have. */
TEST(design_share_list_needs_no_ps)
{
    static const char *const list[] = {"--list", NULL};
    struct sharer *sharer = SHARE(.idle_exit = "20");
    if (access("/proc/self/stat", R_OK) != 0)
        return;
    pid_of(sharer);
    ck_assert_int_eq(setenv("PATH", "/nonexistent", 1), 0);
    const char *shown = share_run(list, 0);
    ck_assert_msg(strstr(shown, " MB ") != NULL, "%s", shown);
}

/* A client that has left gets no answer any more: its front waits for none. */
TEST(design_share_front_ends_with_its_client)
{
    struct sharer *sharer = SHARE(.idle_exit = "20");
    pid_of(sharer);
    client_request(sharer->client, "1", NULL, "no_answer", NULL);
    client_close(sharer->client);
    share_expect_exit(sharer, 0);
    ck_assert_ptr_null(strstr(share_errors(sharer), "not waiting for it"));
}

/* --- other users of the options --- */

/* Looking at a daemon is no use of it. */
TEST(design_share_list_keeps_no_daemon)
{
    static const char *const list[] = {"--list", NULL};
    struct sharer *sharer = SHARE(.idle_exit = "1");
    int64_t deadline = deadline_usual();
    pid_of(sharer);
    pid_t daemon = share_daemon();
    ck_assert_ptr_nonnull(strstr(share_run(list, 0), test_format(" %ld ", (long)daemon)));
    share_finish(sharer);
    while (strcmp(share_run(list, 0), "nothing is shared\n") != 0)
        ck_assert(!deadline_over(deadline));
}

TEST(design_idle_exit_of_a_daemon)
{
    struct daemon *daemon = START(.arguments = {"--idle-exit", "1"});
    struct client *client = client_connect(daemon);
    client_ask(client, "1", NULL, "echo", NULL);
    client_close(client);
    daemon_wait_log(daemon, "there was no client for 1 seconds");
    ck_assert_int_eq(daemon_wait(daemon), 0);
}

/* --connect --protocol mcp: the daemon is started again, at the same place. */
TEST(design_share_connect_joins_anew)
{
    const char *path = test_format("%s/s", test_dir()), *worker = getenv("TEST_WORKER");
    const char *const words[] = {"--unix", path, "--idle-exit", "20", "--protocol",
                                 "mcp",    "--", worker,        NULL};
    pid_t daemon = share_start(words);
    struct sharer *sharer = SHARE(.share = test_format("--connect=%s", path), .whole = true,
                                  .arguments = {"--protocol", "mcp", "--wait", "20"});
    initialize(sharer);
    pid_of(sharer);
    client_request(sharer->client, "'lost'", NULL, "no_answer", NULL);
    client_ask(sharer->client, "2", NULL, "echo", NULL);
    kill(daemon, SIGKILL);
    share_wait_gone(daemon);
    client_error(sharer->client, "\"lost\"", -32000, DIED);
    client_request(sharer->client, "3", NULL, "plain", "5");
    daemon = share_start(words);
    ck_assert(span_is(client_result(sharer->client, "3"), "5"));
    share_finish(sharer);
    kill(daemon, SIGTERM);
    share_wait_gone(daemon);
}

/* Hosts with a parser of their own take the -- for theirs. */
TEST(design_share_of_a_command_without_dashes)
{
    struct sharer *sharer =
        SHARE(.whole = true,
              .arguments = {"--idle-exit", "20", getenv("TEST_WORKER"), "--name", "bare"});
    expect_member(client_ask(sharer->client, "1", NULL, "echo", NULL), "worker", "\"bare\"");
    share_finish(sharer);
}

TEST(design_share_of_a_language_server_ends_with_its_exit)
{
    struct sharer *sharer =
        SHARE(.arguments = {"--protocol", "lsp", "--framing", "ndjson"},
              .command = {getenv("TEST_WORKER"), "--framing", "content-length"});
    client_ask(sharer->client, "1", NULL, "echo", NULL);
    client_send(sharer->client, "{'jsonrpc':'2.0','method':'exit'}");
    client_send(sharer->client, "{'jsonrpc':'2.0','method':'die','params':{'code':0}}");
    client_expect_eof(sharer->client);
    share_expect_exit(sharer, 0);
}

/* Whether such a line ends the worker, or is skipped. */
TEST_ROWS(design_worker_that_writes_headers_is_named, 2)
{
    struct daemon *daemon =
        START(.pools = row == 0
                           ? "{'id':'p','command':'sh','args':['-c','echo Content-Length: 2; cat'],"
                             "'instances':1}"
                           : "{'id':'p','command':'sh','args':['-c','echo Content-Length: 2; cat'],"
                             "'instances':1,'protocol':'acp'}");
    daemon_wait_log(daemon, "the worker writes Content-Length headers");
}

static const char *const misuses[][6] = {
    {"--share", NULL},
    {"--share", "--config", "x", NULL},
    {"--env", "A", "--", "x", NULL},
    {"--connect", "/x", "--clients", "sticky", NULL},
    {"--share", "--env", "A=1", "--", "x", NULL},
    {"--share", "--unix", "x", "--", "x", NULL},
    {"--share", "--idle-exit", "soon", "--", "x", NULL},
};

TEST_ROWS(design_share_misused, COUNT(misuses))
{
    share_run(misuses[row], 64);
}
