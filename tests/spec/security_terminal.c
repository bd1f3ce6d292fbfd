/* doc/security.md: what other programs say, on the terminal of the user. */
#include "build_config.h"

#include "harness.h"
#include "planted.h"

/* A control sequence in each spelling, a text that is turned around, and letters. */
#define RAW                                                                                        \
    "\xc3\xa9\xc2\x9b"                                                                             \
    "31m\xe2\x80\xae\x7f"
#define SHOWN_TEXT "\xc3\xa9\\u009b31m\\u202e\\x7f"
#define SHOWN_JSON "\xc3\xa9\\u009b31m\\u202e\\u007f"
#define ESCAPED "\\u001b]0;x\\u0007\\n" RAW /* a string of JSON */
#define SHOWN_ESCAPED "\\x1b]0;x\\x07\\x0a" SHOWN_TEXT

#define SHOWN_IN_TABLE "\\x1b]0;x\\x07\\x0a\xc3\xa9\\u009b31m" /* which is as wide as a terminal */
#define SHOWN_IN_EVENT "\\u001b]0;x\\u0007\\n" SHOWN_JSON

/* --- what reaches the terminal --- */

/* Runs a command of the shell, in which @BUS@ stands for the program; returns what it writes to
 * stdout and stderr, in which there may be no control character but newlines. */
static const char *run(const char *command)
{
    const char *bus = getenv("STDIO_BUS");
    struct text *shown = test_text();
    FILE *from =
        popen(test_format("BUS='%s'; { %s; } 2>&1", bus != NULL ? bus : "./stdio_bus", command),
              "r");
    int byte;

    ck_assert_ptr_nonnull(from);
    while ((byte = fgetc(from)) != EOF) {
        char character = (char)byte;

        text_add(shown, &character, 1);
    }
    ck_assert_int_eq(pclose(from), 0);
    for (size_t i = 0; i < shown->len; i++) {
        unsigned char at = (unsigned char)shown->data[i];
        bool is_c1 = at == 0xc2 && (unsigned char)shown->data[i + 1] < 0xa0;

        ck_assert_msg((at >= ' ' || at == '\n') && at != 0x7f && !is_c1 &&
                          strncmp(shown->data + i, "\xe2\x80\xae", 3) != 0,
                      "byte %zu is %02x in: %s", i, at, shown->data);
    }
    return shown->data != NULL ? shown->data : "";
}

#define RESULT(json) "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":" json "}\n"
#define ERROR(text)                                                                                \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1,\"message\":\"" text "\"}}\n"
#define EVENT(text)                                                                                \
    "{\"method\":\"event\",\"params\":{\"event\":\"" text "\",\"of\":\"" text                      \
    "\",\"text\":\"" text "\"}}\n"

static const struct {
    const char *words, *reply, *shown;
} commands[] = {
    {"clients --table", RESULT("{\"clients\":[{\"client\":1,\"peer\":\"" ESCAPED "\"}]}"),
     SHOWN_IN_TABLE},
    {"clients --json", RESULT("{\"clients\":[{\"client\":1,\"peer\":\"" RAW "\"}]}"), SHOWN_JSON},
    {"clients --json", RESULT("\r{\t\"clients\":[]}"), " { \"clients\":[]}"},
    {"status --table", RESULT("{\"" ESCAPED "\":\"" RAW "\"}"), SHOWN_ESCAPED},
    {"status --table", RESULT("{\"a\":{\"" RAW "\":\"" ESCAPED "\"}}"), SHOWN_TEXT},
    {"status", ERROR(ESCAPED), SHOWN_ESCAPED},
    {"status", "\x1b]0;x\a\x9b\n", "cannot be read"},
    {"metrics", RESULT("\"a\\u001b[2J\\nb\\r" RAW "\""), "a\\x1b[2J\nb\\x0d" SHOWN_TEXT},
    {"metrics", ERROR(RAW), SHOWN_TEXT},
    {"top",
     RESULT("{\"clients\":[{\"client\":1,\"peer\":\"" ESCAPED "\",\"held_for\":\"" RAW
            "\"}],\"workers\":[{\"worker\":1,\"pool\":\"" RAW "\",\"state\":\"" ESCAPED
            "\"}],\"version\":\"" ESCAPED "\"}"),
     "stdio_bus " SHOWN_ESCAPED},
};

TEST_ROWS(security_terminal_gets_nothing_of_a_planted_control_socket, COUNT(commands))
{
    const char *path = test_format("%s/c", test_dir());

    plant_socket(path, commands[row].reply);
    expect_word(run(test_format("$BUS ctl %s %s || :", path, commands[row].words)),
                commands[row].shown);
}

/* The first reply is to the request, and the events follow until the socket is closed. */
TEST_ROWS(security_terminal_gets_nothing_of_planted_events, 3)
{
    static const char *const shown[] = {SHOWN_ESCAPED, SHOWN_IN_EVENT, "\\u009b"};
    const char *path = test_format("%s/c", test_dir());

    plant_socket(path,
                 row < 2 ? RESULT("{}") EVENT(ESCAPED) : RESULT("{}") "\x1b]0;x\a\x9b" RAW "\n");
    expect_word(run(test_format("timeout -s INT 2 $BUS ctl %s events %s || :", path,
                                row == 0 ? "--table" : "--json")),
                shown[row]);
}

TEST_ROWS(security_terminal_gets_nothing_of_a_planted_ping, 2)
{
    const char *path = test_format("%s/c", test_dir());

    plant_socket(path, row == 0 ? ERROR(ESCAPED)
                                : RESULT("{\"healthy\":false,\"phase\":\"" ESCAPED "\"}"));
    expect_word(run(test_format("$BUS --ping %s || :", path)), "stdio_bus: ");
}

static const struct {
    const char *reply, *shown;
} shared[] = {
    {"{\"pid\":1,\"clients\":1,\"seconds\":1,\"identity\":\"1:" ESCAPED "\"}\n", "NAME"},
    {"{\"identity\":\"C=" ESCAPED ",A=" ESCAPED "\",\"workers\":[]}\n", "NAME"},
    {"\x1b]0;x\a" RAW "\n", "\\x1b]0;x\\x07" SHOWN_TEXT},
    {"[\"\x1b" RAW "\"]\n", "\\x1b" SHOWN_TEXT},
};

/* The names of the sockets too. */
TEST_ROWS(security_terminal_gets_nothing_of_a_planted_shared_server, COUNT(shared))
{
    const char *base = test_dir(), *dir = test_format("%s/stdio_bus", base);
    const char *first = test_format("%s/\x1b" RAW ".sock", dir),
               *second = test_format("%s/b.sock", dir), *text;

    ck_assert_int_eq(mkdir(dir, 0700), 0);
    plant_socket(first, shared[row].reply);
    plant_socket(second, shared[row].reply);
    text = run(test_format("XDG_RUNTIME_DIR='%s' $BUS --list || :", base));
    expect_word(text, shared[row].shown);
    expect_word(text, "\\x1b" SHOWN_TEXT);
    expect_word(run(test_format("XDG_RUNTIME_DIR='%s' $BUS --list --json || :", base)),
                row < 2 ? "\\u001b" SHOWN_JSON : "\"total\":0");
    unlink(first);
    unlink(second);
    rmdir(dir);
}

/* A file that was sent to the user. */
TEST(security_terminal_gets_nothing_of_a_configuration)
{
    const char *path = test_format("%s/x", test_dir());
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    fputs("{\"mcpServers\":{\"" ESCAPED "\":{\"command\":\"" RAW "\",\"args\":[\"" ESCAPED
          "\"],\"env\":{\"" RAW "\":\"" ESCAPED "\"}}}}",
          file);
    ck_assert_int_eq(fclose(file), 0);
    expect_word(run(test_format("$BUS --import %s", path)), SHOWN_JSON);
    expect_word(run(test_format("$BUS --config %s --check-config || :", path)), "ERROR");
    expect_word(run("$BUS ctl \"$(printf 'a\\033b')\" || :"), "a\\x1bb");
    expect_word(run("$BUS \"--$(printf 'a\\033\\302\\233b')\" || :"), "stdio_bus: ");
}
