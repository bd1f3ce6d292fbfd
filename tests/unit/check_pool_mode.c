/* The keys of a pool that make its mode (stdio_bus.conf(5), "Sharing"). */
#include "build_config.h"

#include "config_fixture.h"

/* Reads a pool with these members, from 2:2 on; ' stands for ". */
static void read_pool(const char *members, const char *expected)
{
    char quoted[1024];

    snprintf(quoted, sizeof quoted, " %s", members);
    for (char *p = quoted; *p != '\0'; p++)
        *p = *p == '\'' ? '"' : *p;
    expect_command("/bin/cat", quoted, expected);
}

static const char *describe(char *to, size_t size, const struct pool_mode *mode)
{
    static const char *const clients[] = {"shared", "sticky", "exclusive"};
    static const char *const protocols[] = {"-", "mcp", "acp", "lsp"};

    static const char *const exits[] = {"", " replays", " closes"};

    snprintf(to, size, "%s %s %s %s %u %u %u%s%s", protocols[mode->protocol],
             clients[mode->clients], mode->session_in_params ? "params" : "top",
             mode->rewrite_ids ? "rewrite" : "preserve", mode->spare, mode->busy_timeout_sec,
             mode->request_timeout_sec, exits[mode->on_exit],
             pool_mode_is_plain(mode) ? " plain" : "");
    return to;
}

static const struct {
    const char *members, *mode;
} modes[] = {
    {"'args': []", "- shared top preserve 0 10 0 plain"},
    {"'clients': 'shared', 'session': 'sessionId', 'ids': 'preserve', 'request_timeout_sec': 0, "
     "'spare': 0",
     "- shared top preserve 0 10 0 plain"},
    /* each key makes a difference */
    {"'clients': 'sticky'", "- sticky top preserve 0 10 0"},
    {"'clients': 'exclusive'", "- exclusive top preserve 0 10 0"},
    {"'session': 'params.sessionId'", "- shared params preserve 0 10 0"},
    {"'ids': 'rewrite'", "- shared top rewrite 0 10 0"},
    {"'request_timeout_sec': 1", "- shared top preserve 0 10 1"},
    {"'protocol': 'lsp', 'clients': 'exclusive'", "lsp exclusive top preserve 1 10 0 closes"},
    {"'clients': 'exclusive', 'session': 'params.sessionId', 'ids': 'rewrite', 'spare': 1, "
     "'busy_timeout_sec': 3, 'request_timeout_sec': 4",
     "- exclusive params rewrite 1 3 4"},
    /* a protocol sets the others */
    {"'protocol': 'mcp'", "mcp exclusive top preserve 1 10 0 replays"},
    {"'protocol': 'acp'", "acp sticky params rewrite 0 10 0"},
    {"'protocol': 'lsp'", "lsp exclusive top preserve 1 10 0 closes"},
    /* which override it */
    {"'clients': 'sticky', 'protocol': 'mcp'", "mcp sticky top rewrite 1 10 0 replays"},
    {"'clients': 'sticky', 'protocol': 'mcp', 'on_worker_exit': 'close'",
     "mcp sticky top rewrite 1 10 0 closes"},
    {"'clients': 'shared', 'protocol': 'mcp'", "mcp sticky top rewrite 1 10 0 replays"},
    {"'clients': 'sticky', 'ids': 'preserve', 'protocol': 'mcp'", "mcp sticky top preserve 1 10 0"},
    {"'protocol': 'acp', 'ids': 'preserve', 'session': 'sessionId', 'clients': 'shared'",
     "acp shared top preserve 0 10 0"},
    {"'protocol': 'mcp', 'spare': 0", "mcp exclusive top preserve 0 10 0 replays"},
    {"'protocol': 'mcp', 'lazy': true, 'idle_stop_sec': 5",
     "mcp exclusive top preserve 0 10 0 replays"},
    {"'protocol': 'acp', 'lazy': false, 'idle_stop_sec': 0", "acp sticky params rewrite 0 10 0"},
    {"'protocol': 'acp', 'clients': 'exclusive'", "acp exclusive params rewrite 0 10 0 closes"},
    {"'protocol': 'mcp', 'on_worker_exit': 'close'", "mcp exclusive top preserve 1 10 0 closes"},
    {"'clients': 'exclusive', 'on_worker_exit': 'close'", "- exclusive top preserve 0 10 0 closes"},
};

TEST_ROWS(mode_is_read, COUNT(modes))
{
    char text[128];

    read_pool(modes[row].members, "");
    ck_assert_str_eq(describe(text, sizeof text, &config.pools[0].mode), modes[row].mode);
}

#define REPLAY "\"replay\" needs \"protocol\": \"mcp\": other conversations cannot be begun again"
#define EXCLUSIVE                                                                                  \
    "must be \"exclusive\" with \"protocol\": \"lsp\": a language server keeps the documents of "  \
    "one editor"

static const struct {
    const char *members, *problem;
} wrong[] = {
    {"'clients': 'many'", "13: pools[0].clients: must be \"shared\", \"sticky\" or \"exclusive\""},
    {"'clients': 1", "13: pools[0].clients: must be a string, not a number"},
    {"'session': 'params'", "13: pools[0].session: must be \"sessionId\" or \"params.sessionId\""},
    {"'ids': 'Rewrite'", "9: pools[0].ids: must be \"preserve\" or \"rewrite\""},
    {"'protocol': ''", "14: pools[0].protocol: must be \"mcp\", \"acp\" or \"lsp\""},
    {"'clients': 'sticky', 'protocol': 'lsp'", "13: pools[0].clients: " EXCLUSIVE},
    {"'protocol': 'lsp', 'clients': 'shared'", "32: pools[0].clients: " EXCLUSIVE},
    {"'protocol': 'lsp', 'clients': 'x'",
     "32: pools[0].clients: must be \"shared\", \"sticky\" or \"exclusive\""},
    {"'on_worker_exit': 'restart'", "20: pools[0].on_worker_exit: must be \"replay\" or \"close\""},
    {"'on_worker_exit': 'replay', 'protocol': 'acp'", "20: pools[0].on_worker_exit: " REPLAY},
    {"'spare': -1", "11: pools[0].spare: must be an integer >= 0"},
    {"'spare': 1025", "11: pools[0].spare: must be an integer <= 1024"},
    {"'busy_timeout_sec': 86401", "22: pools[0].busy_timeout_sec: must be an integer <= 86400"},
    {"'request_timeout_sec': 0.5", "25: pools[0].request_timeout_sec: must be an integer >= 0"},
};

TEST_ROWS(wrong_value_is_an_error, COUNT(wrong))
{
    char expected[256];

    snprintf(expected, sizeof expected, "E c.json:2:%s\n", wrong[row].problem);
    read_pool(wrong[row].members, expected);
}

FIXTURE(NULL, free_config)
