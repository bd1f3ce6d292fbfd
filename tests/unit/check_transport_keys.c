#include "build_config.h"

#include "config_fixture.h"

/* The configuration with further members, from line 2 column 1 on. */
static void expect_members(const char *members, const char *expected)
{
    char text[1024];

    snprintf(text, sizeof text,
             "{\"pools\": [{\"id\": \"a\", \"command\": \"/bin/cat\", \"instances\": 1}],\n%s}",
             members);
    expect_text(text, expected);
}

static const struct {
    const char *members, *framing, *socket_mode;
} understood[] = {
    {"\"transport\": {}", NULL, NULL},
    {"\"transport\": {\"framing\": \"ndjson\", \"protocol\": \"json\", \"mode\": \"stdio\"}",
     "ndjson", NULL},
    {"\"transport\": {\"framing\": \"length\", \"mode\": \"unix\"}", "length", "unix"},
    {"\"transport\": {\"mode\": \"tcp\", \"_note\": 1, \"$x\": []}", NULL, "tcp"},
    {"\"listen\": {\"framing\": \"content-length\"}, \"transport\": {\"mode\": \"tcp\"}",
     "content-length", "tcp"},
    {"\"listen\": {}, \"transport\": {\"framing\": \"length\"}", "length", NULL},
};

TEST_ROWS(transport_that_is_understood, COUNT(understood))
{
    expect_members(understood[row].members, "");
    ck_assert_ptr_eq(config.listen.framing, understood[row].framing != NULL
                                                ? framing_named(understood[row].framing)
                                                : NULL);
    ck_assert_pstr_eq(config.socket_mode, understood[row].socket_mode);
    free_config();
}

static const struct {
    const char *members, *expected;
} refused[] = {
    {"\"transport\": \"stdio\"", "E c.json:2:14: transport: must be an object, not a string\n"},
    {"\"transport\": {\"framing\": \"content-length\"}",
     "E c.json:2:26: transport.framing: must be \"ndjson\" or \"length\"\n"},
    {"\"transport\": {\"framing\": 4}",
     "E c.json:2:26: transport.framing: must be a string, not a number\n"},
    {"\"transport\": {\"protocol\": \"rmp\"}",
     "E c.json:2:27: transport.protocol: must be \"json\"\n"},
    {"\"transport\": {\"mode\": \"http\"}",
     "E c.json:2:23: transport.mode: must be \"stdio\", \"unix\" or \"tcp\"\n"},
    {"\"transport\": {\"modes\": \"tcp\"}", "E c.json:2:24: transport.modes: unknown key\n"},
    {"\"transport\": {\"framing\": \"ndjson\"}, \"listen\": {\"framing\": \"ndjson\"}",
     "E c.json:2:26: transport.framing: listen.framing is set already\n"},
    {"\"transport\": {\"framing\": \"ndjson\"}, \"listen\": 1",
     "E c.json:2:47: listen: must be an object, not a number\n"},
};

TEST_ROWS(transport_that_is_refused, COUNT(refused))
{
    expect_members(refused[row].members, refused[row].expected);
}
