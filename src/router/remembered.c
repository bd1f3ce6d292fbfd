#include "build_config.h"

#include "router/remembered.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "json/document.h"

struct page {
    struct list_node node;
    struct kept_message answer;
    size_t next_len; /* of the cursor of the page after it; 0: none */
    char next[];
};

void remembered_init(struct remembered *remembered)
{
    memset(remembered, 0, sizeof *remembered);
    list_init(&remembered->versions);
    for (int i = 0; i < REMEMBERED_LISTS; i++)
        list_init(&remembered->lists[i].pages);
}

static void forget_pages(struct remembered_pages *pages)
{
    struct list_node *node;

    while ((node = list_take_first(&pages->pages)) != NULL) {
        kept_message_free(&list_entry(node, struct page, node)->answer);
        free(list_entry(node, struct page, node));
    }
    pages->count = pages->bytes = 0;
    pages->whole = false;
}

static void note_change(struct remembered *remembered)
{
    remembered->edition++;
}

/* The pages of `to` are forgotten. */
static void move_pages(struct remembered_pages *to, struct remembered_pages *from)
{
    struct list_node *node;

    forget_pages(to);
    while ((node = list_take_first(&from->pages)) != NULL)
        list_append(&to->pages, node);
    to->count = from->count;
    to->bytes = from->bytes;
    to->whole = from->whole;
    from->count = from->bytes = 0;
    from->whole = false;
}

void remembered_move(struct remembered *to, struct remembered *from)
{
    struct list_node *node;

    while ((node = list_take_first(&from->versions)) != NULL)
        list_append(&to->versions, node);
    for (int i = 0; i < REMEMBERED_LISTS; i++)
        move_pages(&to->lists[i], &from->lists[i]);
    to->refuses_stateless = from->refuses_stateless;
    from->refuses_stateless = false;
    note_change(to);
}

void remembered_clear(struct remembered *remembered)
{
    note_change(remembered);
    remembered->refuses_stateless = false;
    versions_forget(&remembered->versions, true);
    for (int i = 0; i < REMEMBERED_LISTS; i++)
        forget_pages(&remembered->lists[i]);
}

void remembered_refuse(struct remembered *remembered)
{
    remembered_clear(remembered);
    remembered->unfit = true;
}

void remembered_set_era(struct remembered *remembered, bool refuses_stateless)
{
    if (remembered->unfit || remembered->refuses_stateless == refuses_stateless)
        return;
    remembered->refuses_stateless = refuses_stateless;
    note_change(remembered);
}

/* --- initialize --- */

/* The bytes of both but for their ids. */
static bool is_same(const struct kept_message *a, const struct kept_message *b)
{
    size_t after_a = a->at.offset + a->at.len, after_b = b->at.offset + b->at.len;

    return a->at.offset == b->at.offset && a->line.len - after_a == b->line.len - after_b &&
           memcmp(a->line.data, b->line.data, a->at.offset) == 0 &&
           memcmp(a->line.data + after_a, b->line.data + after_b, a->line.len - after_a) == 0;
}

const struct version *remembered_version(const struct remembered *remembered, struct slice name)
{
    return versions_find(&remembered->versions, name);
}

static bool is_result(const struct message *answer)
{
    return answer != NULL && answer->has_result && !answer->has_error &&
           answer->id.type != ID_NONE && !message_is_cut(answer);
}

static size_t count_bytes(const struct list *versions)
{
    const struct list_node *node;
    size_t bytes = 0;

    for (node = versions->head.next; node != &versions->head; node = node->next)
        bytes += list_entry(node, const struct version, node)->answer.line.len;
    return bytes;
}

/* False: it is too long, or memory is lacking. */
static bool settle(struct remembered *remembered, struct version *version,
                   const struct message *answer)
{
    if (count_bytes(&remembered->versions) + answer->bytes.len > REMEMBERED_BYTES_MAX)
        return false;
    remembered->failed |= versions_settle(version, answer) != STDIO_BUS_OK;
    return version->state == VERSION_ANSWERED;
}

bool remembered_set_version(struct remembered *remembered, struct slice name,
                            const struct message *answer)
{
    struct version *version = versions_find(&remembered->versions, name);
    struct kept_message before = {.line = {NULL, 0}};
    bool changed = false;

    if (remembered->unfit)
        return false;
    if (version != NULL) {
        before = version->answer;
        memset(&version->answer, 0, sizeof version->answer);
    } else if ((version = versions_new(&remembered->versions, name)) == NULL) {
        remembered->failed = true;
        return false;
    }
    version->state = VERSION_REFUSED; /* unless there is an answer */
    if (is_result(answer) && settle(remembered, version, answer))
        changed = before.line.data != NULL && !is_same(&before, &version->answer);
    if (changed || before.line.data == NULL || version->state != VERSION_ANSWERED)
        note_change(remembered);
    versions_forget(&remembered->versions, false);
    kept_message_free(&before);
    return changed;
}

/* --- the names of lists --- */

static const struct {
    const char *method, *notification;
} names[] = {
    [REMEMBERED_TOOLS] = {"tools/list", "notifications/tools/list_changed"},
    [REMEMBERED_PROMPTS] = {"prompts/list", "notifications/prompts/list_changed"},
    [REMEMBERED_RESOURCES] = {"resources/list", "notifications/resources/list_changed"},
    [REMEMBERED_TEMPLATES] = {"resources/templates/list", "notifications/resources/list_changed"},
};

const char *remembered_method(enum remembered_list list)
{
    return names[list].method;
}

enum remembered_list remembered_list_of(struct slice method)
{
    int list = 0;

    while (list < REMEMBERED_LISTS && !slice_is(method, names[list].method))
        list++;
    return (enum remembered_list)list;
}

unsigned remembered_changed_by(struct slice method)
{
    unsigned bits = 0;

    for (int list = 0; list < REMEMBERED_LISTS; list++)
        bits |= slice_is(method, names[list].notification) ? 1u << list : 0;
    return bits;
}

/* --- pages --- */

static struct page *last_page(const struct remembered_pages *pages)
{
    return list_empty(&pages->pages) ? NULL : list_entry(pages->pages.head.prev, struct page, node);
}

static struct slice next_of(const struct page *page)
{
    return page != NULL && page->next_len > 0 ? slice_of(page->next, page->next_len)
                                              : slice_of(NULL, 0);
}

static bool has_room(const struct remembered_pages *pages, size_t len, struct slice next)
{
    return next.len <= REMEMBERED_CURSOR_MAX && pages->count < REMEMBERED_PAGES_MAX &&
           pages->bytes + len <= REMEMBERED_BYTES_MAX;
}

/* Takes over the answer. STDIO_BUS_ERR if out of memory: then it is freed. */
static int add_page(struct remembered_pages *pages, struct kept_message *answer, struct slice next)
{
    struct page *page = malloc(sizeof *page + next.len);

    if (page == NULL) {
        kept_message_free(answer);
        return STDIO_BUS_ERR;
    }
    page->node = (struct list_node){NULL, NULL};
    page->answer = *answer;
    page->next_len = next.len;
    if (next.len > 0)
        memcpy(page->next, next.data, next.len);
    list_append(&pages->pages, &page->node);
    pages->count++;
    pages->bytes += answer->line.len;
    pages->whole = next.len == 0;
    return STDIO_BUS_OK;
}

static bool are_same(const struct remembered_pages *a, const struct remembered_pages *b)
{
    const struct list_node *in_a = a->pages.head.next, *in_b = b->pages.head.next;

    if (a->count != b->count || a->whole != b->whole)
        return false;
    for (; in_a != &a->pages.head; in_a = in_a->next, in_b = in_b->next) {
        if (!is_same(&list_entry(in_a, struct page, node)->answer,
                     &list_entry(in_b, struct page, node)->answer))
            return false;
    }
    return true;
}

/* --- a client's request --- */

/* Whether the object has no other members than these; NULL has none. */
static bool has_only(const struct json_value *object, const char *key, const char *other)
{
    const struct json_value *member = object != NULL ? object->first : NULL;

    for (; member != NULL; member = member->next) {
        if (!slice_is(member->key, key) && !slice_is(member->key, other))
            return false;
    }
    return object == NULL || object->type == JSON_OBJECT;
}

/* False: it has params of its own. The cursor has data NULL if there is none. */
static bool read_cursor(const struct json_value *request, struct slice *cursor)
{
    const struct json_value *params = document_member(request, "params"), *meta, *value;

    *cursor = slice_of(NULL, 0);
    if (params == NULL)
        return true;
    if (!has_only(params, "cursor", "_meta"))
        return false;
    meta = document_member(params, "_meta");
    value = document_member(params, "cursor");
    if (value != NULL && value->type == JSON_STRING)
        *cursor = value->text;
    return (value == NULL || value->type == JSON_STRING) &&
           has_only(meta, "progressToken", "progressToken");
}

static const struct kept_message *page_at(const struct remembered_pages *pages, struct slice cursor)
{
    const struct list_node *node;
    struct slice at = slice_of(NULL, 0);

    for (node = pages->pages.head.next; node != &pages->pages.head; node = node->next) {
        const struct page *page = list_entry(node, const struct page, node);

        if ((at.data == NULL) == (cursor.data == NULL) && slice_equal(at, cursor))
            return &page->answer;
        at = slice_of(page->next, page->next_len);
    }
    return NULL;
}

const struct kept_message *remembered_next_page(const struct remembered *remembered,
                                                enum remembered_list list,
                                                const struct kept_message *page)
{
    const struct list *pages = &remembered->lists[list].pages;
    const struct list_node *node = pages->head.next;

    if (page != NULL)
        node = list_entry(page, const struct page, answer)->node.next;
    return node != &pages->head ? &list_entry(node, const struct page, node)->answer : NULL;
}

const struct kept_message *remembered_page(struct remembered *remembered,
                                           const struct message *request)
{
    enum remembered_list list = remembered_list_of(request->method);
    const struct kept_message *page = NULL;
    struct document_error error;
    struct document document;
    struct slice cursor;
    int status;

    if (list == REMEMBERED_LISTS || !remembered->lists[list].whole ||
        request->bytes.len > REMEMBERED_REQUEST_MAX)
        return NULL;
    status = document_read(&document, request->bytes, &error);
    remembered->failed |= status == STDIO_BUS_ERR;
    if (status != STDIO_BUS_OK)
        return NULL;
    if (read_cursor(document.root, &cursor))
        page = page_at(&remembered->lists[list], cursor);
    document_free(&document);
    return page;
}

/* --- asking --- */

void remembering_init(struct remembering *remembering)
{
    memset(remembering, 0, sizeof *remembering);
    list_init(&remembering->fresh.pages);
}

void remembering_clear(struct remembering *remembering)
{
    forget_pages(&remembering->fresh);
    remembering->wanted = remembering->told = remembering->changed = 0;
    remembering->asks = false;
}

const char *remembering_next(struct remembering *remembering, struct slice *cursor)
{
    int list = 0;

    if (remembering->asks)
        return NULL;
    *cursor = next_of(last_page(&remembering->fresh));
    if (cursor->data == NULL) {
        if (remembering->wanted == 0)
            return NULL;
        while ((remembering->wanted >> list & 1) == 0)
            list++;
        remembering->wanted &= ~(1u << list);
        remembering->list = (enum remembered_list)list;
    }
    remembering->asks = true;
    return names[remembering->list].method;
}

/* False: it is no page. *next has data NULL if it is the last one. */
static bool read_page(const struct json_value *answer, struct slice *next)
{
    const struct json_value *result = document_member_of(answer, "result", JSON_OBJECT);
    const struct json_value *cursor = document_member_of(result, "nextCursor", JSON_STRING);

    *next = slice_of(NULL, 0);
    if (cursor != NULL && cursor->text.len > 0)
        *next = cursor->text;
    return result != NULL;
}

/* STDIO_BUS_EINVAL: the list cannot be remembered. STDIO_BUS_ERR: out of memory. */
static int take_page(struct remembered_pages *pages, const struct message *answer)
{
    struct kept_message kept = {.line = {NULL, 0}};
    struct document_error error;
    struct document document;
    struct slice next;
    int status;

    if (!is_result(answer) || answer->bytes.len > VERSION_ANSWER_MAX)
        return STDIO_BUS_EINVAL;
    status = document_read(&document, answer->bytes, &error);
    if (status != STDIO_BUS_OK)
        return status;
    if (!read_page(document.root, &next) || !has_room(pages, answer->bytes.len + 1, next))
        status = STDIO_BUS_EINVAL;
    if (status == STDIO_BUS_OK)
        status = kept_message_copy(&kept, answer);
    if (status == STDIO_BUS_OK)
        status = add_page(pages, &kept, next);
    document_free(&document);
    return status;
}

bool remembering_answer(struct remembering *remembering, struct remembered *remembered,
                        const struct message *answer)
{
    struct remembered_pages *pages = &remembered->lists[remembering->list];
    unsigned bit = 1u << remembering->list;
    bool tells = pages->whole && (remembering->told & bit) == 0;
    int status = remembered->unfit ? STDIO_BUS_EINVAL : take_page(&remembering->fresh, answer);

    remembering->asks = false;
    remembered->failed |= status == STDIO_BUS_ERR;
    if (status != STDIO_BUS_OK) {
        forget_pages(&remembering->fresh);
        if (pages->count > 0)
            note_change(remembered);
        forget_pages(pages);
        return false;
    }
    if (!remembering->fresh.whole)
        return false;
    remembering->told &= ~bit;
    if (are_same(pages, &remembering->fresh)) {
        forget_pages(&remembering->fresh);
        return false;
    }
    move_pages(pages, &remembering->fresh);
    note_change(remembered);
    if (tells)
        remembering->changed |= bit;
    return true;
}

/* --- the archive --- */

/* Of what was loaded. A client gets the line with its own id in place of the one that is in it. */
static void check_answer(struct archive *archive, const struct kept_message *answer)
{
    struct slice line = answer->line;
    struct scanner scanner = {.position = 0};
    struct message_scratch scratch;
    struct message message;
    size_t quote;

    scanner_reset(&scanner);
    if (line.data == NULL || line.len == 0 || line.data[line.len - 1] != '\n' ||
        scanner_run(&scanner, line.data, line.len) != SCAN_MESSAGE ||
        scanner.position != line.len ||
        message_from_scan(&message, line, &scanner.fields, &scratch) != MESSAGE_OK ||
        !is_result(&message)) {
        archive_fail(archive, "an answer is none");
        return;
    }
    quote = scanner.fields.id.type == SCAN_STRING ? 1 : 0;
    archive_expect(archive,
                   answer->at.offset == scanner.fields.id.offset - quote &&
                       answer->at.len == scanner.fields.id.len + 2 * quote,
                   "the id of an answer is elsewhere");
}

/* Of what was loaded. */
static void check_versions(struct remembered *remembered, struct archive *archive)
{
    const struct list *versions = &remembered->versions;
    const struct list_node *node;

    for (node = versions->head.next; node != &versions->head; node = node->next) {
        const struct version *version = list_entry(node, struct version, node);

        archive_expect(archive, version->state == VERSION_ANSWERED, "a version has no answer");
        check_answer(archive, &version->answer);
    }
}

static void archive_page(struct archive *archive, void *owner, void *item)
{
    struct remembered_pages *pages = owner;
    struct page *page = item;
    struct kept_message answer = {.line = {NULL, 0}};
    struct slice next = archive_slice(archive, next_of(page));

    kept_message_archive(page != NULL ? &page->answer : &answer, archive);
    if (!archive_loads(archive)) {
        kept_message_free(&answer);
        return;
    }
    check_answer(archive, &answer);
    archive_expect(archive, has_room(pages, answer.line.len, next), "a list is too long");
    if (!archive_ok(archive))
        kept_message_free(&answer);
    else
        (void)archive_done(archive, add_page(pages, &answer, next));
}

void remembered_archive(struct remembered *remembered, struct archive *archive)
{
    static const struct archive_field fields[] = {
        ARCHIVE_FLAGS(struct remembered, unfit, refuses_stateless),
    };

    archive_mark(archive, "remembered");
    ARCHIVE_FIELDS(archive, remembered, fields);
    versions_archive(&remembered->versions, archive);
    if (!archive->saves)
        check_versions(remembered, archive);
    for (int i = 0; i < REMEMBERED_LISTS; i++)
        ARCHIVE_LIST(archive, &remembered->lists[i].pages, struct page, node, archive_page,
                     &remembered->lists[i]);
}
