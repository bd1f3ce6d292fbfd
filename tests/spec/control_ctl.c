/* stdio_bus ctl and --ping. */
#include "build_config.h"

#include "control.h"
#include "harness.h"

#define MCP "{'id':'m','command':'@WORKER@','instances':2,'protocol':'mcp'}"

TEST(control_ctl_prints_json_into_a_pipe)
{
    struct daemon *daemon = CONTROL_DAEMON(.instances = 1);
    struct rmp_program program = CONTROL_PROGRAM(daemon, "ctl", "@CONTROL@", "workers");

    expect_member(rmp_program_expect(&program, "{'workers':[{"), "workers.0.worker", "1");
    rmp_program_end(&program, 0);
    control_wait(control_connect(daemon), "status", "phase", "'serving'");
    program = CONTROL_PROGRAM(daemon, "ctl", "@CONTROL@", "status", "--json");
    expect_member(rmp_program_expect(&program, "'version'"), "healthy", "true");
    rmp_program_end(&program, 0);
}

/* A query may have a key. */
TEST(control_ctl_pools_have_their_url)
{
    struct daemon *daemon = CONTROL_DAEMON(.pools = MCP ",{'id':'far','protocol':'mcp',"
                                                        "'url':'http://127.0.0.1:1/mcp?key=1'}");
    struct rmp_program program = CONTROL_PROGRAM(daemon, "ctl", "@CONTROL@", "pools");
    struct span line = rmp_program_expect(&program, "{'pools':[{");

    expect_member(line, "pools.0.url", "null");
    expect_member(line, "pools.1.url", "'http://127.0.0.1:1/mcp'");
    rmp_program_end(&program, 0);
    program = CONTROL_PROGRAM(daemon, "ctl", "@CONTROL@", "pools", "--table");
    RMP_PROGRAM_EXPECT(&program, "URL", "m ", "http://127.");
    rmp_program_end(&program, 0);
}

TEST(control_ctl_prints_metrics)
{
    struct daemon *daemon = CONTROL_DAEMON(.instances = 1);
    struct rmp_program program = CONTROL_PROGRAM(daemon, "ctl", "@CONTROL@", "metrics");

    RMP_PROGRAM_EXPECT(&program, "# HELP stdio_bus_build_info",
                       "# TYPE stdio_bus_build_info gauge");
}

TEST(control_ctl_does_what_it_is_told)
{
    struct daemon *daemon = CONTROL_DAEMON(.instances = 1);
    struct client *client = client_connect(daemon);

    client_ask(client, "1", NULL, "echo", NULL);
    rmp_program_says(CONTROL_PROGRAM(daemon, "ctl", "@CONTROL@", "drain", "pool"), 0,
                     "{'workers':1}");
    rmp_program_says(CONTROL_PROGRAM(daemon, "ctl", "@CONTROL@", "resume"), 0, "{'workers':1}");
    rmp_program_says(CONTROL_PROGRAM(daemon, "ctl", "@CONTROL@", "restart", "1"), 0,
                     "{'worker':1}");
    rmp_program_says(CONTROL_PROGRAM(daemon, "ctl", "@CONTROL@", "log", "debug"), 0,
                     "{'level':'debug'}");
    rmp_program_says(CONTROL_PROGRAM(daemon, "ctl", "@CONTROL@", "disconnect", "client=1"), 0,
                     "{'client':1}");
    client_error(client, "null", -32000, "operator");
}

TEST(control_ctl_follows_events)
{
    struct daemon *daemon = CONTROL_DAEMON(.instances = 1);
    struct client *control = control_connect(daemon);
    struct rmp_program program;

    steps_without("they are events, too");
    control_wait(control, "workers", "workers.0.starts", "1"); /* an event of its own */
    program = CONTROL_PROGRAM(daemon, "ctl", "@CONTROL@", "events");
    control_wait(control, "status", "control_clients", "2");
    WAIT_UNTIL(json_number(control_ask(control, "events", NULL), "watchers") == 2, "no watcher");
    client_connect(daemon);
    rmp_program_expect(&program, "'connected'");
}

TEST(control_ctl_top_shows_the_busiest)
{
    struct daemon *daemon = CONTROL_DAEMON(.instances = 2);
    struct client *client = client_connect(daemon);
    struct rmp_program program;

    client_ask(client, "1", NULL, "echo", NULL);
    program = CONTROL_PROGRAM(daemon, "ctl", "@CONTROL@", "top");
    RMP_PROGRAM_EXPECT(&program, "runs for", "1 clients");
    ck_assert_uint_eq(client_line(program.client).len, 0);
    RMP_PROGRAM_EXPECT(&program, "CLIENT", "1 ");
    ck_assert_uint_eq(client_line(program.client).len, 0);
    RMP_PROGRAM_EXPECT(&program, "WORKER", "running", "running");
    rmp_program_end(&program, 0);
    control_ask(control_connect(daemon), "drain", "{'worker':1}");
    program = CONTROL_PROGRAM(daemon, "ctl", "@CONTROL@", "top");
    for (int i = 0; i < 7; i++)
        client_line(program.client); /* to the head of the workers */
    RMP_PROGRAM_EXPECT(&program, "running, drained", "running");
    rmp_program_end(&program, 0);
}

/* An exclusive pool has places for processes that do not run. */
TEST(control_ctl_tables_show_no_process_that_is_none)
{
    struct daemon *daemon = CONTROL_DAEMON(.pools = MCP);
    struct rmp_program program;
    struct span line;
    char pid[8];

    control_wait(control_connect(daemon), "status", "phase", "'serving'");
    program = CONTROL_PROGRAM(daemon, "ctl", "@CONTROL@", "workers", "--table");
    RMP_PROGRAM_EXPECT(&program, "DRAINED", "no");
    line = client_line(program.client);
    ck_assert_int_eq(sscanf(line.data, " 2 m stopped no %7s", pid), 1);
    ck_assert_str_eq(pid, "-");
    rmp_program_end(&program, 0);
    program = CONTROL_PROGRAM(daemon, "ctl", "@CONTROL@", "status", "--table");
    RMP_PROGRAM_EXPECT(&program, "version", "pid", "phase", "healthy", "runs  ");
}

/* --- the programs of clients --- */

#define PROTOCOL(name) "{'id':'p','command':'@WORKER@','instances':2,'protocol':'" name "'}"
#define INFO(json)                                                                                 \
    "{'id':1,'method':'initialize','params':{'protocolVersion':'2025-06-18','capabilities':{}"     \
    ",'clientInfo':" json "}}"

static const struct {
    const char *pools, *line;
    const char *program; /* NULL: as the system names it */
} named[] = {
    {PROTOCOL("mcp"), INFO("{'name':'host','version':'1'}"), "'host'"},
    {PROTOCOL("mcp','clients':'sticky"), INFO("{'name':'\\u00e9 \\'q\\'\\u001b','version':'1'}"),
     "'\xc3\xa9 \\'q\\'\\u001b'"},
    {PROTOCOL("acp"), INFO("{'name':'editor','title':'Editor'}"), "'editor'"},
    {PROTOCOL("lsp','framing':'ndjson"), INFO("{'name':'emacs'}"), "'emacs'"},
    /* Cut after a whole character. */
    {PROTOCOL("mcp"),
     INFO("{'name':'0123456789012345678901234567890123456789012345\xc3\xa9\xc3\xa9'}"),
     "'0123456789012345678901234567890123456789012345'"},
    {PROTOCOL("mcp"), INFO("{'name':['host']}"), NULL},
    {PROTOCOL("mcp"), INFO("'host'"), NULL},
    {PROTOCOL("mcp"), "{'id':1,'method':'ping','params':{'clientInfo':{'name':'host'}}}", NULL},
    {"{'id':'p','command':'@WORKER@','instances':1}", INFO("{'name':'host'}"), NULL},
};

/* What the client says of itself, or else the name of the process at the other end of the socket,
 * which is this one, where the system tells its number. */
TEST_ROWS(control_names_the_program_of_a_client, COUNT(named))
{
    struct daemon *daemon = CONTROL_DAEMON(.pools = named[row].pools);
    struct client *client = client_connect(daemon), *control = control_connect(daemon);
    FILE *comm = fopen("/proc/self/comm", "r");
    char name[64] = "";

    if (comm != NULL) {
        ck_assert_int_eq(fscanf(comm, "%15[^\n]", name), 1);
        fclose(comm);
    }
    client_send(client, "%s", named[row].line);
    client_result(client, "1");
    struct span list = control_ask(control, "clients", NULL);
    struct span peer = json_get(list, "clients.0.peer");
    bool is_known = strstr(test_format("%.*s", (int)peer.len, peer.data), "pid") != NULL;
    expect_member(list, "clients.0.program",
                  named[row].program != NULL ? named[row].program
                  : comm != NULL && is_known ? test_format("'%s'", name)
                                             : "null");
}

#define LONG_NAME "a-name-that-is-far-too-long-for-a-column-of-any-table-of-80-columns"

static const struct {
    const char *list;
    size_t lines;
} tables[] = {{"pools", 2}, {"workers", 2}, {"clients", 2}, {"requests", 2}, {"top", 8}};

/* Each line of each table, with long names. */
TEST(control_ctl_tables_fit_80_columns)
{
    struct daemon *daemon = CONTROL_DAEMON(.pools = "{'id':'" LONG_NAME
                                                    "','command':'@WORKER@','instances':1,"
                                                    "'protocol':'acp','clients':'sticky'}");
    struct client *client = client_connect(daemon);

    client_send(client, INFO("{'name':'" LONG_NAME "'}"));
    client_result(client, "1");
    client_send(client, "{'id':'" LONG_NAME "','method':'no_answer'}");
    control_wait(control_connect(daemon), "status", "requests", "1");
    for (size_t i = 0; i < COUNT(tables); i++) {
        struct rmp_program program = CONTROL_PROGRAM(daemon, "ctl", "@CONTROL@", tables[i].list,
                                                     "--table");
        size_t cut = 0;

        for (size_t n = 0; n < tables[i].lines; n++) {
            struct span line = client_line(program.client);
            const char *text = test_format("%.*s", (int)line.len, line.data);

            ck_assert_msg(line.len <= 80, "%s", text);
            cut += strstr(text, "a-name") != NULL && strstr(text, "...") != NULL;
        }
        ck_assert_msg(cut > 0, "no name in %s", tables[i].list);
        rmp_program_end(&program, 0);
    }
}

/* A table has each element of a list: status has the listeners. */
TEST(control_ctl_tables_have_the_listeners)
{
    struct daemon *daemon = CONTROL_DAEMON(.instances = 1);
    struct rmp_program program = CONTROL_PROGRAM(daemon, "ctl", "@CONTROL@", "status", "--table");
    struct span line;

    do
        line = client_line(program.client);
    while (!span_is(line, "listen"));
    rmp_program_expect(&program, "kind                 unix");
    rmp_program_expect(&program, "path                 %s", daemon->socket_path);
    RMP_PROGRAM_EXPECT(&program, "token                no", "framing              ndjson");
    rmp_program_end(&program, 0);
}

/* --- errors --- */

TEST(control_ctl_reports_refusals)
{
    struct daemon *daemon = CONTROL_DAEMON(.instances = 1);

    rmp_program_says(CONTROL_PROGRAM(daemon, "ctl", "@CONTROL@", "restart", "one"), 64,
                     "one is no number of a worker");
    rmp_program_says(CONTROL_PROGRAM(daemon, "ctl", "@CONTROL@", "drain", "nothing"), 1,
                     "stdio_bus: ctl: drain nothing: no such worker or pool");
    rmp_program_says(CONTROL_PROGRAM(daemon, "ctl", "@CONTROL@", "restart", "9"), 1,
                     "stdio_bus: ctl: restart 9: no such worker");
    rmp_program_says(CONTROL_PROGRAM(daemon, "ctl", "/nowhere/at/all", "status"), 69,
                     "/nowhere/at/all: No such file");
}

/* Without a path, and without a daemon at the usual one, ctl says how to name it. */
TEST(control_ctl_without_a_daemon_says_what_to_do)
{
    struct daemon *daemon = CONTROL_DAEMON(.instances = 1);
    struct rmp_program program;

    if (access("/run/stdio_bus/control.sock", F_OK) == 0)
        return;
    unsetenv("STDIO_BUS_CONTROL");
    program = CONTROL_PROGRAM(daemon, "ctl", "status");
    rmp_program_expect(&program, "/run/stdio_bus/control.sock: No such file or directory; "
                                 "name its control socket: stdio_bus ctl PATH COMMAND");
    rmp_program_end(&program, 69);
}

TEST(control_ctl_names_the_users_of_its_socket)
{
    struct daemon *daemon = CONTROL_DAEMON(.instances = 1);
    const char *path = getenv("STDIO_BUS") != NULL ? getenv("STDIO_BUS") : "./stdio_bus";
    struct rmp_program program;
    bool can_run;

    if (geteuid() != 0)
        return; /* only the superuser can be two users */
    ck_assert_int_eq(chmod(test_format("%s/..", daemon->dir), 0755), 0);
    ck_assert_int_eq(chmod(daemon->dir, 0755), 0);
    ck_assert_int_eq(setreuid(4711, 0), 0); /* the real one, too: it is not a setuid program */
    ck_assert_int_eq(seteuid(4711), 0);
    can_run = faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0;
    if (can_run)
        program = CONTROL_PROGRAM(daemon, "ctl", "@CONTROL@", "status");
    ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_eq(setreuid(0, 0), 0);
    if (!can_run)
        return; /* the program is where others are not let in */
    rmp_program_expect(&program, "Permission denied; it is for the user of the daemon, and for");
    rmp_program_end(&program, 69);
}

TEST_ROWS(control_ctl_usage, 8)
{
    static const struct {
        const char *words[4], *text;
        int status;
    } rows[] = {
        {{"ctl"}, "usage: stdio_bus ctl", 64},
        {{"ctl", "fly"}, "stdio_bus: ctl: fly: no such command", 64},
        {{"ctl", "status", "x"}, "stdio_bus: ctl: status: nothing comes after it", 64},
        {{"ctl", "restart"}, "stdio_bus: ctl: restart: the number of a worker comes after it", 64},
        {{"ctl", "drain"}, "stdio_bus: ctl: drain: a pool, or the number of a worker", 64},
        {{"ctl", "--fast", "status"}, "stdio_bus: ctl: --fast: neither an option nor expected", 64},
        {{"ctl", "/a", "/b"}, "stdio_bus: ctl: /b: no such command", 64},
        {{"ctl", "--help"}, "usage: stdio_bus ctl", 0},
    };
    struct daemon *daemon = CONTROL_DAEMON(.instances = 1);
    struct rmp_program program = control_program(daemon, rows[row].words);

    rmp_program_expect(&program, "%s", rows[row].text);
    while (client_line_before(program.client, deadline_usual(), &(struct span){0}))
        ;
    rmp_program_end(&program, rows[row].status);
}

/* --- --ping --- */

TEST(control_ping_of_a_daemon_that_serves)
{
    struct daemon *daemon = CONTROL_DAEMON(.instances = 1);
    struct rmp_program program;

    control_wait(control_connect(daemon), "status", "phase", "'serving'");
    program = CONTROL_PROGRAM(daemon, "--ping", "@CONTROL@");
    rmp_program_end(&program, 0);
    rmp_program_says(CONTROL_PROGRAM(daemon, "--ping", "/nowhere/at/all"), 69,
                     "/nowhere/at/all: No such file");
}

TEST(control_ping_of_a_daemon_that_has_lost_a_pool)
{
    struct daemon *daemon = CONTROL_DAEMON(.pools = POOL("a", 1, "") "," POOL("b", 1, ""),
                                           .limits = "'max_restarts':0");
    struct client *control = control_connect(daemon), *client = client_connect(daemon);

    client_send(client, "{'id':1,'pool':'b','method':'die'}");
    client_error(client, "1", -32000, DIED);
    control_wait(control, "status", "healthy", "false");
    rmp_program_says(CONTROL_PROGRAM(daemon, "--ping", "@CONTROL@"), 69,
                     "a pool has lost all of its workers");
}

TEST_ROWS(control_deep_ping_asks_a_worker, 4)
{
    static const char *const framings[] = {"ndjson", "content-length", "length", "ndjson"};
    struct daemon *daemon =
        CONTROL_DAEMON(.pools = MCP "," POOL("plain", 1, ""),
                       .mode = row == 3 ? SETUP_TCP : SETUP_UNIX,
                       .members = test_format("'listen':{'framing':'%s'}", framings[row]));
    struct rmp_program program;

    control_wait(control_connect(daemon), "status", "phase", "'serving'");
    program = CONTROL_PROGRAM(daemon, "--ping", "@CONTROL@", "--deep");
    rmp_program_end(&program, 0);
    expect_member(control_ask(control_connect(daemon), "status", NULL), "clients", "0");
}

/* A pool that the operator has drained is no reason to end the daemon. */
TEST(control_deep_ping_leaves_a_drained_pool_out)
{
    struct daemon *daemon = CONTROL_DAEMON(.pools = MCP);
    struct client *control = control_connect(daemon);
    struct rmp_program program;

    control_wait(control, "status", "phase", "'serving'");
    expect_member(control_ask(control, "drain", "{'pool':'m'}"), "workers", "2");
    program = CONTROL_PROGRAM(daemon, "--ping", "@CONTROL@", "--deep");
    rmp_program_end(&program, 0);
}
