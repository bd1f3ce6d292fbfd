/* Header fields that repeat parts of a message (MCP 2026-07-28). */
#include "build_config.h"

#include "http/mcp_headers.h"

#include "suite.h"

static struct slice slice(const char *text)
{
    return slice_of(text, text != NULL ? strlen(text) : 0);
}

TEST(versions_are_of_an_era)
{
    static const struct {
        const char *version;
        bool stateless, handshake;
    } rows[] = {
        {"2026-07-28", true, false},  {"2027-01-01", true, false},  {"2026-07-27", false, false},
        {"2025-11-25", false, true},  {"2025-06-18", false, true},  {"2025-03-26", false, true},
        {"2024-11-05", false, true},  {"2026-07-2", false, false},  {"2026-07-288", false, false},
        {"2026x07-28", false, false}, {"9", false, false},          {"", false, false},
        {"2026-07-2x", false, false}, {"DRAFT-2026", false, false},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct slice version = slice(rows[i].version);

        ck_assert_msg(mcp_version_is_stateless(version) == rows[i].stateless, "%s",
                      rows[i].version);
        ck_assert_msg(mcp_version_is_handshake(version) == rows[i].handshake, "%s",
                      rows[i].version);
    }
}

/* What the head says, what the message says, and the problem in a request and in a notification. */
static const struct {
    const char *head[3], *message[3];
    const char *problem, *of_notice;
} rows[] = {
    {{"2026-07-28", "m", NULL}, {"2026-07-28", "m", NULL}, NULL, NULL},
    {{NULL, "m", NULL}, {"2026-07-28", "m", NULL}, "MCP-Protocol-Version is missing", NULL},
    {{"2026-07-29", "m", NULL},
     {"2026-07-28", "m", NULL},
     "MCP-Protocol-Version does not",
     "MCP-Protocol-Version does not"},
    {{"2026-07-28", "m", NULL}, {NULL, "m", NULL}, NULL, NULL},
    {{"2026-07-28", NULL, NULL}, {"2026-07-28", "m", NULL}, "Mcp-Method is missing", NULL},
    {{"2026-07-28", "M", NULL},
     {"2026-07-28", "m", NULL},
     "Mcp-Method does not",
     "Mcp-Method does not"},
    {{"2026-07-28", "m", "x"}, {"2026-07-28", "m", NULL}, NULL, NULL},
    {{"2026-07-28", "tools/call", NULL},
     {"2026-07-28", "tools/call", "x"},
     "Mcp-Name is missing",
     NULL},
    {{"2026-07-28", "tools/call", "x"}, {"2026-07-28", "tools/call", "x"}, NULL, NULL},
    {{"2026-07-28", "tools/call", "y"},
     {"2026-07-28", "tools/call", "x"},
     "Mcp-Name does not",
     NULL},
    {{"2026-07-28", "tools/call", "y"}, {"2026-07-28", "tools/call", NULL}, NULL, NULL},
    {{"2026-07-28", "tools/call", "=?base64?w6k=?="},
     {"2026-07-28", "tools/call", "\xc3\xa9"},
     NULL,
     NULL},
    {{"2026-07-28", "tools/call", "=?base64?w6l=?="}, /* bits that are left over */
     {"2026-07-28", "tools/call", "\xc3\xa9"},
     "Mcp-Name does not",
     NULL},
    {{"2026-07-28", "tools/call", "=?base64?w6k?="},
     {"2026-07-28", "tools/call", "\xc3\xa9"},
     "Mcp-Name does not",
     NULL},
    {{"2026-07-28", "tools/call",
      "=?base64?"
      "?="},
     {"2026-07-28", "tools/call", ""},
     NULL,
     NULL},
    {{"2026-07-28", "tools/call", "=?base64?="},
     {"2026-07-28", "tools/call", "=?base64?="},
     NULL,
     NULL},
    {{"2026-07-28", "resources/read",
      "=?base64?"
      "eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4"
      "?="},
     {"2026-07-28", "resources/read", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"},
     NULL,
     NULL},
};

static struct mcp_headers headers(const char *const texts[3])
{
    return (struct mcp_headers){slice(texts[0]), slice(texts[1]), slice(texts[2])};
}

static void expect(const char *problem, const char *expected)
{
    if (expected == NULL)
        ck_assert_msg(problem == NULL, "%s", problem);
    else
        ck_assert_msg(problem != NULL && strncmp(problem, expected, strlen(expected)) == 0,
                      "%s instead of %s", problem != NULL ? problem : "nothing", expected);
}

TEST_ROWS(fields_are_compared, COUNT(rows))
{
    struct mcp_headers head = headers(rows[row].head), message = headers(rows[row].message);

    expect(mcp_headers_mismatch(&head, &message, true), rows[row].problem);
    expect(mcp_headers_mismatch(&head, &message, false), rows[row].of_notice);
}
