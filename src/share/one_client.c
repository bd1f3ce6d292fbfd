#include "build_config.h"

#include "share/one_client.h"

#include "base/error.h"
#include "bus/state.h"
#include "process/pool.h"
#include "json/document.h"

/* Names that no other kind of server is known to use. */
static const struct one_client_sign tools[] = {
    {"browser_navigate", "a browser"},               /* @playwright/mcp, @browsermcp/mcp */
    {"puppeteer_navigate", "a browser"},             /* server-puppeteer */
    {"playwright_navigate", "a browser"},            /* @executeautomation/playwright-mcp-server */
    {"navigate_page", "a browser"},                  /* chrome-devtools-mcp */
    {"browserbase_stagehand_navigate", "a browser"}, /* @browserbasehq/mcp */
    {"interact_with_process", "a terminal"},         /* desktop-commander */
    {"force_terminate", "a terminal"},               /* its versions of before */
    {"write_to_terminal", "a terminal"},             /* iterm-mcp */
    {"get_editor_state", "an editor"},               /* pencil */
    {"activate_project", "a project"},               /* serena */
};

const struct one_client_sign *one_client_tool(struct slice name)
{
    for (size_t i = 0; i < sizeof tools / sizeof tools[0]; i++) {
        if (slice_is(name, tools[i].tool))
            return &tools[i];
    }
    return NULL;
}

/* --- its own word --- */

enum word { SAYS_NOTHING, SAYS_SHARED, SAYS_ONE_CLIENT };

static const struct json_value *find_word(const struct json_value *capabilities)
{
    const struct json_value *mux = document_member_of(capabilities, "x-mux", JSON_OBJECT);

    if (mux == NULL)
        mux = document_member_of(document_member_of(capabilities, "experimental", JSON_OBJECT),
                                 "x-mux", JSON_OBJECT);
    return document_member_of(mux, "sharing", JSON_STRING);
}

/* "session-aware" needs ids of clients that the bus does not add. */
static enum word word_of(const struct json_value *word)
{
    if (word == NULL)
        return SAYS_NOTHING;
    return slice_is(word->text, "isolated") || slice_is(word->text, "session-aware")
               ? SAYS_ONE_CLIENT
               : SAYS_SHARED;
}

/* --- what is remembered --- */

/* Whether there is a document: an answer may be one that the strict reader does not take. */
static bool read_answer(struct document *document, struct slice line, bool *failed)
{
    struct document_error error;
    int status = document_read(document, line, &error);

    *failed |= status == STDIO_BUS_ERR;
    return status == STDIO_BUS_OK;
}

/* What the answers to initialize say. */
struct said {
    enum word word;
    bool any, has_tools;
};

static struct said read_versions(const struct remembered *remembered, bool *failed)
{
    const struct list_node *node, *end = &remembered->versions.head;
    struct said said = {SAYS_NOTHING, false, false};
    struct document document;

    for (node = remembered->versions.head.next; said.word == SAYS_NOTHING && node != end;
         node = node->next) {
        const struct version *version = list_entry(node, const struct version, node);
        const struct json_value *capabilities;

        if (!read_answer(&document, version->answer.line, failed))
            continue;
        capabilities = document_member_of(document_member_of(document.root, "result", JSON_OBJECT),
                                          "capabilities", JSON_OBJECT);
        said.any = true;
        said.has_tools |= document_member(capabilities, "tools") != NULL;
        said.word = word_of(find_word(capabilities));
        document_free(&document);
    }
    return said;
}

static const struct one_client_sign *find_in_page(const struct json_value *answer)
{
    const struct json_value *result = document_member_of(answer, "result", JSON_OBJECT);
    const struct json_value *list = document_member_of(result, "tools", JSON_ARRAY);
    const struct json_value *tool = list != NULL ? list->first : NULL;
    const struct one_client_sign *sign = NULL;

    for (; tool != NULL && sign == NULL; tool = tool->next) {
        const struct json_value *name = document_member_of(tool, "name", JSON_STRING);

        if (name != NULL)
            sign = one_client_tool(name->text);
    }
    return sign;
}

static const struct one_client_sign *find_in_tools(const struct remembered *remembered,
                                                   bool *failed)
{
    const struct one_client_sign *sign = NULL;
    const struct kept_message *page = NULL;
    struct document document;

    while (sign == NULL &&
           (page = remembered_next_page(remembered, REMEMBERED_TOOLS, page)) != NULL) {
        if (!read_answer(&document, page->line, failed))
            continue;
        sign = find_in_page(document.root);
        document_free(&document);
    }
    return sign;
}

bool one_client_find(struct one_client *one_client, const struct remembered *remembered)
{
    static const struct one_client_sign own_word = {NULL, "a state"};
    bool failed = false;
    struct said said = read_versions(remembered, &failed);

    one_client->sign = said.word == SAYS_ONE_CLIENT ? &own_word : NULL;
    if (said.word == SAYS_NOTHING)
        one_client->sign = find_in_tools(remembered, &failed);
    one_client->is_known = !failed && (said.word != SAYS_NOTHING ||
                                       remembered->lists[REMEMBERED_TOOLS].whole ||
                                       (said.any && !said.has_tools));
    return !failed;
}

/* --- the bus --- */

static void report(const struct stdio_bus *bus, const struct one_client_sign *sign)
{
    log_warn(bus->log, "",
             "%s%s: the server keeps %s for one client: --clients exclusive before "
             "the -- gives each client a process of its own",
             sign->tool != NULL ? "its tool " : "it says so itself",
             sign->tool != NULL ? sign->tool : "", sign->state);
}

/* What is forgotten since the server asks its client for roots was known before, if at all. */
void one_client_look(struct one_client *one_client, const struct stdio_bus *bus)
{
    const struct remembered *remembered =
        list_entry(bus->pools.head.next, const struct pool, link)->group.remembered;
    const struct one_client_sign *before = one_client->sign;

    if (remembered == NULL || remembered->edition == one_client->edition)
        return;
    one_client->edition = remembered->edition;
    if (remembered->unfit)
        return;
    if (!one_client_find(one_client, remembered))
        log_error(bus->log, "", "out of memory: whether the server is for one client is not known");
    if (one_client->sign != NULL && one_client->sign != before)
        report(bus, one_client->sign);
}
