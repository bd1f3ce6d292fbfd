/* share/one_client.h: what says that a server keeps a state for one client. */
#include "build_config.h"

#include "share/one_client.h"

#include "suite.h"
#include "json/message.h"
#include "json/scanner.h"

/* The first tools of servers, as their own lists have them. */
static const struct {
    const char *server;
    const char *tools; /* separated by spaces */
    const char *state; /* NULL: it can be shared */
} servers[] = {
    {"@playwright/mcp", "browser_close browser_resize browser_console_messages browser_navigate",
     "a browser"},
    {"@browsermcp/mcp", "browser_navigate browser_go_back browser_snapshot", "a browser"},
    {"chrome-devtools-mcp", "click close_page drag emulate_cpu list_pages navigate_page new_page",
     "a browser"},
    {"server-puppeteer", "puppeteer_navigate puppeteer_screenshot puppeteer_click", "a browser"},
    {"@executeautomation/playwright-mcp-server", "playwright_navigate playwright_click",
     "a browser"},
    {"@browserbasehq/mcp", "browserbase_session_create browserbase_stagehand_navigate",
     "a browser"},
    {"desktop-commander", "get_config read_file start_process interact_with_process kill_process",
     "a terminal"},
    {"desktop-commander of before", "get_config execute_command read_output force_terminate",
     "a terminal"},
    {"iterm-mcp", "write_to_terminal read_terminal_output send_control_character", "a terminal"},
    {"pencil", "get_editor_state open_document snapshot_layout", "an editor"},
    {"serena", "read_file find_symbol activate_project", "a project"},
    {"server-filesystem", "read_file write_file edit_file list_directory search_files", NULL},
    {"server-memory", "create_entities create_relations open_nodes read_graph", NULL},
    {"server-everything", "echo add get-sum get-env trigger-long-running-operation", NULL},
    {"server-fetch", "fetch", NULL},
    {"server-git", "git_status git_diff git_commit git_log", NULL},
    {"server-github", "create_issue search_repositories get_file_contents", NULL},
    {"server-time", "get_current_time convert_time", NULL},
    {"names that are alike", "navigate browser_navigate2 browser browser_ NAVIGATE_PAGE", NULL},
};

static struct remembered remembered;
static struct one_client one_client;

static void take(const char *text, bool is_list)
{
    char line[4096];
    size_t len = (size_t)snprintf(line, sizeof line, "%s\n", text);
    struct remembering remembering;
    struct message_scratch scratch;
    struct scanner scanner;
    struct message message;
    struct slice cursor;

    scanner_reset(&scanner);
    ck_assert_uint_lt(len, sizeof line);
    ck_assert_int_eq(scanner_run(&scanner, line, len), SCAN_MESSAGE);
    ck_assert_int_eq(message_from_scan(&message, slice_of(line, len), &scanner.fields, &scratch),
                     MESSAGE_OK);
    if (!is_list) {
        (void)remembered_set_version(&remembered, slice_of_text("2025-06-18"), &message);
        return;
    }
    remembering_init(&remembering);
    remembering.wanted = 1u << REMEMBERED_TOOLS;
    ck_assert_ptr_nonnull(remembering_next(&remembering, &cursor));
    (void)remembering_answer(&remembering, &remembered, &message);
    remembering_clear(&remembering);
}

static void take_tools(const char *names)
{
    struct text *line = test_text();

    text_printf(line, "{\"id\":1,\"result\":{\"tools\":[");
    for (const char *at = names; *at != '\0';) {
        int len = (int)strcspn(at, " ");

        text_printf(line, "%s{\"name\":\"%.*s\"}", at == names ? "" : ",", len, at);
        at += len + (at[len] == ' ');
    }
    text_printf(line, "]}}");
    take(line->data, true);
}

static const struct one_client_sign *find(void)
{
    ck_assert(one_client_find(&one_client, &remembered));
    return one_client.sign;
}

static void begin(void)
{
    remembered_init(&remembered);
}

static void end(void)
{
    remembered_clear(&remembered);
}
FIXTURE(begin, end)

TEST_ROWS(tools_name_a_state, COUNT(servers))
{
    const struct one_client_sign *sign;

    ck_assert_ptr_null(find());
    ck_assert(!one_client.is_known);
    take_tools(servers[row].tools);
    sign = find();
    ck_assert(one_client.is_known);
    ck_assert_msg((sign != NULL) == (servers[row].state != NULL), "%s", servers[row].server);
    if (sign == NULL)
        return;
    ck_assert_str_eq(sign->state, servers[row].state);
    ck_assert_ptr_nonnull(strstr(servers[row].tools, sign->tool));
}

static const struct {
    const char *capabilities;
    bool found; /* although no tool says so */
    bool lifts; /* although a tool says so */
    bool known; /* before there are tools */
} words[] = {
    {"{\"x-mux\":{\"sharing\":\"isolated\"}}", true, false, true},
    {"{\"x-mux\":{\"sharing\":\"session-aware\"}}", true, false, true},
    {"{\"experimental\":{\"x-mux\":{\"sharing\":\"isolated\"}}}", true, false, true},
    {"{\"x-mux\":{\"sharing\":\"shared\"}}", false, true, true},
    {"{\"experimental\":{\"x-mux\":{\"sharing\":\"shared\"}}}", false, true, true},
    {"{\"x-mux\":{\"persistent\":true}}", false, false, true},
    {"{\"x-mux\":\"isolated\"}", false, false, true},
    {"{\"experimental\":[],\"tools\":{}}", false, false, false},
    {"[]", false, false, true},
};

TEST_ROWS(own_word_comes_first, COUNT(words))
{
    const struct one_client_sign *sign;

    take(test_format("{\"id\":1,\"result\":{\"capabilities\":%s}}", words[row].capabilities),
         false);
    sign = find();
    ck_assert_int_eq(sign != NULL, words[row].found);
    ck_assert(sign == NULL || sign->tool == NULL);
    ck_assert_int_eq(one_client.is_known, words[row].known);
    take_tools("browser_navigate");
    ck_assert_int_eq(find() != NULL, !words[row].lifts);
}

static const char *const odd[] = {
    "{\"id\":1,\"result\":{\"tools\":{}}}",
    "{\"id\":1,\"result\":{\"tools\":[1,null,{},{\"name\":5},[\"browser_navigate\"]]}}",
    "{\"id\":1,\"result\":{\"name\":\"browser_navigate\"}}",
    "{\"id\":1,\"result\":{\"tools\":[{\"title\":\"browser_navigate\"}]}}",
};

TEST_ROWS(other_lists_say_nothing, COUNT(odd))
{
    take(odd[row], true);
    ck_assert_ptr_null(find());
}

/* Each change is seen, and no other answer. */
TEST(edition_changes_with_the_answers)
{
    uint64_t edition = remembered.edition;

    take("{\"id\":1,\"result\":{\"capabilities\":{}}}", false);
    ck_assert_uint_ne(remembered.edition, edition);
    edition = remembered.edition;
    take_tools("fetch");
    ck_assert_uint_ne(remembered.edition, edition);
    edition = remembered.edition;
    take_tools("fetch");
    ck_assert_uint_eq(remembered.edition, edition);
    take_tools("browser_navigate");
    ck_assert_uint_ne(remembered.edition, edition);
}
