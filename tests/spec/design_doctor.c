/* stdio_bus(1), doctor: what is wrong around the daemon, and the cure. */
#include "build_config.h"

#include "harness.h"
#include "planted.h"

/* A home directory in which nothing is wrong, and the working directory. WINDOW has the programs
 * that programs with windows find, BIN those of the shell alone. */
#define WHOLE                                                                                      \
    "chmod 711 . && mkdir -p bin window run/stdio_bus && chmod 700 run/stdio_bus && "              \
    "for f in npx node uvx python3 stdio_bus server; do "                                          \
    "printf '#!/bin/sh\\n' >window/$f && chmod 755 window/$f; done && "                            \
    "export HOME=$PWD XDG_RUNTIME_DIR=$PWD/run PATH=$PWD/window:$PWD/bin:/usr/bin:/bin && "        \
    "WORDS=; "

/* Files of clients. */
#define FILE_OF(directory, name, text)                                                             \
    "mkdir -p '" directory "' && printf '%s\\n' '" text "' >'" directory "/" name "'; "
#define DESKTOP "Library/Application Support/Claude"
#define DESKTOP_FILE(servers)                                                                      \
    FILE_OF(DESKTOP, "claude_desktop_config.json", "{\"mcpServers\": {" servers "}}")

/* Makes the surroundings by commands of the shell, runs doctor there, and returns what it prints.
 */
static const char *doctor_in(const char *dir, const char *commands, const char *words, int expected)
{
    const char *bus = getenv("STDIO_BUS");
    char *program = realpath(bus != NULL ? bus : "./stdio_bus", NULL);
    struct text *shown = test_text();
    const char *line =
        test_format("cd '%s' && BUS='%s' && %s %s { $BUS doctor --path \"$PWD/window\" "
                    "%s $WORDS; } 2>&1",
                    dir, program, WHOLE, commands, words);
    FILE *from = popen(line, "r");
    size_t got;
    int status;

    free(program);
    ck_assert_ptr_nonnull(from);
    do {
        got = fread(text_room(shown, 4096), 1, 4096, from);
        shown->len += got;
    } while (got > 0);
    text_add(shown, "", 0);
    status = pclose(from);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == expected, "status %d, not %d: %s",
                  status, expected, shown->data);
    return shown->data;
}

static const char *doctor(const char *commands, const char *words, int expected)
{
    return doctor_in(test_dir(), commands, words, expected);
}

/* --- surroundings --- */

static const struct {
    const char *commands;
    int status;
    const char *finding, *cure;
} broken[] = {
    {"PATH=node_modules/.bin:$PATH;", 1, "PATH has the directory \"node_modules/.bin\"",
     "take it out of PATH"},
    {"chmod 777 bin;", 2, "every user can put programs into ", "chmod o-w '"},
    {"unset PATH;", 1, "PATH is not set here", "set PATH"},
    {"mv window/npx bin;", 1, "npx: programs with windows do not find ", "/bin/npx in their files"},
    {"printf '#!/usr/bin/env node-of-old\\n' >window/npx;", 2,
     "npx is a script for node-of-old, which is not in its PATH",
     "install node-of-old, or set PATH"},
    {"ulimit -Sn 64; ulimit -Hn 64;", 1, "a daemon may open 64 files at most",
     "raise the hard limit: ulimit -Hn"},
    {"mv run/stdio_bus real; ln -s ../real run/stdio_bus;", 2, "run/stdio_bus is a symbolic link",
     "rm '"},
    {"chmod 750 run/stdio_bus;", 2, "run/stdio_bus has the mode 0750, and not 0700", "chmod 700 '"},
    {"rmdir run/stdio_bus; echo >run/stdio_bus;", 2, "run/stdio_bus is no directory", "rm '"},
    {"XDG_RUNTIME_DIR=$PWD/$(printf '%090d' 1);", 1, "a socket in it has a path of ",
     "set XDG_RUNTIME_DIR to a shorter directory"},
    {"HOME=$PWD/$(printf '%090d' 1);", 1, "the socket of --rmp: ", "--rmp PATH"},
    {FILE_OF(".cursor", "mcp.json", "{\n\"mcpServers\": {\"a\": sk-hidden}\n}"), 2,
     ".cursor/mcp.json:2:21: expected a value", "mend the line"},
    {FILE_OF(".codex", "config.toml", "[mcp_servers.a]\ncommand = sk-hidden"), 2,
     ".codex/config.toml:2:11: expected a value", "mend the line"},
    {"mkdir -p .gemini/settings.json;", 2, ".gemini/settings.json is no file", "take it away"},
    {DESKTOP_FILE("\"a\": {\"command\": \"no-such-server\"}"), 2,
     "\"a\": there is no program no-such-server in its PATH: ", "install it"},
    {DESKTOP_FILE("\"a\": {\"command\": \"npx -y sk-hidden\"}"), 2,
     "\"a\": there is no program npx... in its PATH", "write the arguments into \"args\""},
    {DESKTOP_FILE("\"a\": {\"command\": \"~/server\"}"), 2, "there is no program ~/server",
     "no shell replaces the ~"},
    {DESKTOP_FILE("\"a\": {\"command\": \"server\"}") "mv window/server bin;", 1,
     "\"a\": server is found here, but not in its PATH", "/bin/server in its place"},
    {DESKTOP_FILE("\"a\": {\"command\": \"build/server --key sk-hidden\"}"), 1,
     "\"a\": the command build/server is another one in each directory", "write the whole path"},
    {DESKTOP_FILE("\"a\": {\"command\": \"server\", \"args\": [\"/path/to/sk-hidden\"]}"), 1,
     "\"a\": \"args\" still holds the placeholder /path/to/", "write the value in its place"},
    {FILE_OF(".", ".mcp.json",
             "{\"mcpServers\": {\"a\": {\"command\": \"server\", \"env\": {\"A\": "
             "\"sk-hidden${NO_SUCH_NAME}\"}}}}"),
     1, "\"a\": A of \"env\" names a variable that is not set here", "set it before"},
    {DESKTOP_FILE("\"a\": {\"command\": \"server\", \"env\": {\"API_KEY\": \"sk-hidden\"}}"), 1,
     "claude_desktop_config.json holds secrets, and every user can read it", "chmod 600 '"},
    {DESKTOP_FILE("\"a\": {\"url\": \"http://x/\", \"headers\": {\"A\": \"sk-hidden\"}}"), 1,
     "claude_desktop_config.json holds secrets, and every user can read it", "chmod 600 '"},
    {DESKTOP_FILE("\"a\": {\"args\": [\"sk-hidden\"]}"), 1, "\"a\" has no command",
     "write its \"command\""},
    {DESKTOP_FILE("\"a\": {\"command\": \"stdio_bus\", \"args\": [\"--share\", \"--\", \"gone\"]}"),
     2, "\"a\": there is no program gone in its PATH", "install it"},
    {DESKTOP_FILE("\"a\": {\"command\": \"server\", \"env\": {\"PATH\": \"/sk-hidden\"}}"), 1,
     "\"a\": server is found here, but not in its PATH: that of its \"env\"", "in its place"},
    {FILE_OF(".", ".claude.json",
             "{\"projects\": {\"/\": {\"mcpServers\": {\"a\": {\"command\": \"./gone\"}}}}}"),
     2, ".claude.json: \"a\" of /: there is no program ./gone", "install it"},
};

/* Whether other users can enter the directory, once its owner and that of the test let them. */
static bool is_open(const char *dir)
{
    char *path = strdup(dir);
    struct stat status;
    bool open = chmod(test_format("%s/..", dir), 0711) == 0;

    for (char *slash = strrchr(path, '/'); open && slash > path; slash = strrchr(path, '/')) {
        *slash = '\0';
        open = stat(path, &status) == 0 && (status.st_mode & S_IXOTH) != 0;
    }
    free(path);
    return open;
}

/* Each is named, with its cure; and no value of a file is shown. */
TEST_ROWS(design_doctor_finds, COUNT(broken))
{
    const char *dir = test_dir(), *shown;
    if (strstr(broken[row].cure, "chmod 600") != NULL && !is_open(dir))
        return; /* where no other user can read it */
    shown = doctor_in(dir, broken[row].commands, "", broken[row].status);
    expect_word(shown, broken[row].finding);
    expect_word(strstr(shown, broken[row].finding), "cure: ");
    expect_word(strstr(strstr(shown, broken[row].finding), "cure: "), broken[row].cure);
    ck_assert_msg(strstr(shown, "hidden") == NULL, "a secret is shown: %s", shown);
}

/* What is in order, in the files of clients with and without windows. */
static const char in_order[] =
    DESKTOP_FILE("\"a\": {\"command\": \"npx\", \"args\": [\"-y\", \"x\"]}, "
                 "\"b\": {\"command\": \"stdio_bus\", \"args\": [\"--share\", \"--\", \"uvx\"]}")
        FILE_OF(".config/zed", "settings.json",
                "{\"context_servers\": {\"a\": {\"command\": \"only-here\"}}} // Zed")
            FILE_OF(".vscode", "mcp.json",
                    "{\"servers\": {\"a\": {\"command\": \"server\", \"env\": {\"K\": "
                    "\"${input:key}\"}}}}")
                FILE_OF(".", ".claude.json",
                        "{\"projects\": {\"/gone\": {\"mcpServers\": {\"a\": {\"command\": "
                        "\"gone\"}}}}}") "cp window/server bin/only-here; "
                                         "mkdir .cursor && printf '{}' >.cursor/mcp.json;";

TEST(design_doctor_of_a_whole_place)
{
    const char *shown = doctor(in_order, "", 0);
    ck_assert_msg(strstr(shown, "cure:") == NULL, "something is wrong: %s", shown);
    expect_word(shown, "Claude/claude_desktop_config.json: 2 servers with a command, 1 by ");
    expect_word(shown, ".cursor/mcp.json: 0 servers with a command");
    expect_word(shown, "/run/stdio_bus\n");
}

/* A program that is not there is no mistake; neither is a directory that is made when needed. */
TEST(design_doctor_of_a_new_user)
{
    const char *shown = doctor("rm -r run window/uvx;", "", 0);
    expect_word(shown, "note     programs    uvx: not installed\n");
    expect_word(shown, "run/stdio_bus will be made when it is needed");
}

/* --- daemons --- */

#define SHARES "{\"stdio_bus\":\"shares\",\"version\":\""

static const struct {
    const char *reply; /* NULL: nothing listens */
    int status;
    const char *finding, *cure;
} daemons[] = {
    {SHARES PACKAGE_VERSION "\",\"pid\":7}\n", 0, "ok       daemons     x.sock: process 7", NULL},
    {SHARES "0.0.1\",\"pid\":7}\n", 1, "x.sock: process 7 is version 0.0.1, this is ", "kill 7"},
    {"{\"version\":[],\"pid\":7}\n", 1, "process 7 is version unknown, this is ", "kill 7"},
    {"{\"version\":[],\"pid\":{}}\n", 1, "x.sock belongs to another program", "end the program"},
    {SHARES PACKAGE_VERSION "\",\"pid\":7,\"failure\":\"sk-hidden\"}\n", 2,
     "the server of process 7 does not start", "stdio_bus --list says why"},
    {"hidden\n", 1, "x.sock belongs to another program", "end the program"},
    {"", 1, "x.sock does not answer", "kill it if it hangs"},
    {NULL, 0, "x.sock: its daemon was killed", "nothing: "},
};

TEST_ROWS(design_doctor_asks_daemons, COUNT(daemons))
{
    const char *dir = test_dir(), *path, *shown, *from;
    ck_assert_int_eq(mkdir(test_format("%s/run", dir), 0700), 0);
    ck_assert_int_eq(mkdir(test_format("%s/run/stdio_bus", dir), 0700), 0);
    path = test_format("%s/run/stdio_bus/x.sock", dir);
    if (daemons[row].reply != NULL)
        plant_socket(path, daemons[row].reply);
    else
        plant_dead_socket(path);
    shown = doctor_in(dir, "", "", daemons[row].status);
    from = strstr(shown, daemons[row].finding);
    ck_assert_msg(from != NULL, "no \"%s\" in %s", daemons[row].finding, shown);
    if (daemons[row].cure != NULL)
        expect_word(strstr(from, "cure: "), daemons[row].cure);
    ck_assert_msg(strstr(shown, "hidden") == NULL, "a secret is shown: %s", shown);
}

/* The daemons of this build, and their control sockets. */
TEST(design_doctor_asks_a_daemon_by_its_control_socket)
{
    struct daemon *daemon = START(.arguments = {"--control", "@DIR@/test-x.control"});
    const char *shown = doctor(test_format("XDG_RUNTIME_DIR='%s';", daemon->dir), "", 0);
    expect_word(shown,
                test_format("%s/test-x.control: process %ld", daemon->dir, (long)daemon->pid));
}

/* --- words --- */

TEST(design_doctor_json)
{
    const char *shown = doctor(DESKTOP_FILE("\"a\": {\"command\": \"./x\\u009b\\u001b\"}"),
                               "--json", 1);
    struct span all = span_of(shown), finding, key;
    struct json_cursor cursor;
    bool found = false;
    ck_assert_msg(span_is(json_get(all, "worst"), "\"warning\""), "%s", shown);
    json_open(&cursor, json_get(all, "findings"));
    while (json_next(&cursor, &key, &finding)) {
        ck_assert_ptr_nonnull(json_get(finding, "examination").data);
        found = found || (span_is(json_get(finding, "severity"), "\"warning\"") &&
                          span_is(json_get(finding, "examination"), "\"clients\"") &&
                          json_get(finding, "cure").len > 2);
    }
    ck_assert_msg(found, "%s", shown);
    expect_word(shown, "./x\\u009b\\u001b is another one");
}

/* Names from files do not reach the terminal as they are. */
TEST(design_doctor_names_on_a_terminal)
{
    const char *shown = doctor(DESKTOP_FILE("\"\\u001b]0;x\\u0007\": {\"command\": \"./\\u009b\"}"),
                               "", 1);
    expect_word(shown, "\"\\x1b]0;x\\x07\": the command ./\\u009b is another one");
}

TEST(design_doctor_words)
{
    expect_word(doctor("", "--help", 0), "usage: stdio_bus doctor");
    expect_word(doctor("", "now", 64), "stdio_bus: doctor: now: neither an option nor expected");
    expect_word(doctor("", "--path", 64), "doctor: --path: neither an option");
    expect_word(doctor("", ">/dev/full", 71), "doctor: cannot write to stdout: ");
}
