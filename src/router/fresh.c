#include "build_config.h"

#include "router/fresh.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "json/document.h"

#define VERSION_KEY "io.modelcontextprotocol/protocolVersion"
#define LOG_LEVEL_KEY "io.modelcontextprotocol/logLevel"

struct fresh_answer {
    struct list_node node;
    struct kept_message answer;
    struct splice_edit ttl; /* its place in the line */
    int64_t until_ms;
    size_t key_len;
    char key[]; /* method, version, and cursor or URI, with newlines between them */
};

static const struct {
    const char *method, *param, *notification;
    bool is_content; /* it is never given when it is stale */
} kinds[] = {
    {"server/discover", NULL, NULL, false},
    {"tools/list", "cursor", "notifications/tools/list_changed", false},
    {"prompts/list", "cursor", "notifications/prompts/list_changed", false},
    {"resources/list", "cursor", "notifications/resources/list_changed", false},
    {"resources/templates/list", "cursor", "notifications/resources/list_changed", false},
    {"resources/read", "uri", "notifications/resources/updated", true},
};

#define KINDS (sizeof kinds / sizeof kinds[0])

/* --- the answers --- */

void fresh_init(struct fresh *fresh)
{
    *fresh = (struct fresh){.count = 0};
    list_init(&fresh->answers);
}

static void take_out(struct fresh *fresh, struct fresh_answer *answer)
{
    list_remove(&answer->node);
    fresh->count--;
    fresh->bytes -= answer->answer.line.len;
}

static void free_answer(struct fresh_answer *answer)
{
    if (answer == NULL)
        return;
    kept_message_free(&answer->answer);
    free(answer);
}

static void forget(struct fresh *fresh, struct fresh_answer *answer)
{
    take_out(fresh, answer);
    free_answer(answer);
}

void fresh_move(struct fresh *to, struct fresh *from)
{
    struct list_node *node;

    while ((node = list_take_first(&from->answers)) != NULL)
        list_append(&to->answers, node);
    to->count = from->count;
    to->bytes = from->bytes;
    to->edition++;
    from->count = from->bytes = 0;
}

void fresh_clear(struct fresh *fresh)
{
    struct list_node *node;

    while ((node = list_take_first(&fresh->answers)) != NULL)
        free_answer(list_entry(node, struct fresh_answer, node));
    fresh->count = fresh->bytes = 0;
    fresh->edition++;
}

static struct fresh_answer *find(const struct fresh *fresh, struct slice key)
{
    const struct list_node *node;

    for (node = fresh->answers.head.next; node != &fresh->answers.head; node = node->next) {
        struct fresh_answer *answer = list_entry(node, struct fresh_answer, node);

        if (slice_equal(slice_of(answer->key, answer->key_len), key))
            return answer;
    }
    return NULL;
}

/* --- the key of a request --- */

static size_t kind_of(struct slice method)
{
    size_t kind = 0;

    while (kind < KINDS && !slice_is(method, kinds[kind].method))
        kind++;
    return kind;
}

static const struct json_value *string_of(const struct json_value *object, const char *name)
{
    const struct json_value *value =
        object != NULL && object->type == JSON_OBJECT ? document_member(object, name) : NULL;

    return value != NULL && value->type == JSON_STRING ? value : NULL;
}

/* False: the result is for this request alone, or the client asks for logs too. */
static bool is_common(const struct json_value *params, const char *param)
{
    const struct json_value *member, *meta;

    if (params == NULL || params->type != JSON_OBJECT)
        return false;
    for (member = params->first; member != NULL; member = member->next) {
        if (!slice_is(member->key, "_meta") && (param == NULL || !slice_is(member->key, param)))
            return false;
    }
    meta = document_member(params, "_meta");
    return string_of(meta, VERSION_KEY) != NULL && document_member(meta, LOG_LEVEL_KEY) == NULL &&
           (param == NULL || document_member(params, param) == NULL ||
            string_of(params, param) != NULL);
}

static bool add(char *to, size_t *len, struct slice text)
{
    if (*len + text.len + 1 > SUBSCRIPTION_URI_MAX)
        return false;
    if (text.len > 0)
        memcpy(to + *len, text.data, text.len);
    *len += text.len;
    to[(*len)++] = '\n';
    return true;
}

/* Into decision->named. False: the answer to the request is not kept. */
static bool write_key(struct decision *decision, const struct json_value *request, size_t kind)
{
    const struct json_value *params = document_member(request, "params"), *value;
    size_t len = 0;

    if (!is_common(params, kinds[kind].param))
        return false;
    value = kinds[kind].param != NULL ? string_of(params, kinds[kind].param) : NULL;
    if (!add(decision->named_text, &len, slice_of_text(kinds[kind].method)) ||
        !add(decision->named_text, &len,
             string_of(document_member(params, "_meta"), VERSION_KEY)->text) ||
        (value != NULL && !add(decision->named_text, &len, value->text)))
        return false;
    decision->named = slice_of(decision->named_text, len);
    return true;
}

static bool read_key(struct decision *decision, size_t kind)
{
    struct document_error error;
    struct document document;
    bool is_known;

    if (decision->message->bytes.len > FRESH_REQUEST_MAX ||
        document_read(&document, decision->message->bytes, &error) != STDIO_BUS_OK)
        return false;
    is_known = write_key(decision, document.root, kind);
    document_free(&document);
    return is_known;
}

/* --- a request --- */

/* No process could be asked without being started. */
static bool sleeps(const struct group *pool)
{
    bool any = false;

    for (size_t i = 0; i < pool->count; i++) {
        const struct peer *worker = pool->workers[i];

        if (worker->availability >= PEER_DRAINING ||
            (!peer_is_fresh(worker) && worker->rest == PEER_AWAKE))
            return false;
        any = any || worker->rest == PEER_ASLEEP;
    }
    return any;
}

static void give(struct decision *decision, const struct fresh_answer *answer, int64_t left_ms)
{
    struct splice_edit ttl = answer->ttl, *edits = decision->edits;
    struct splice_edit id;

    decision_answer(decision, answer->answer.line, answer->answer.at);
    snprintf(decision->numbers[1], sizeof decision->numbers[1], "%d", (int)left_ms);
    ttl.text = slice_of_text(decision->numbers[1]);
    id = edits[0];
    edits[0] = id.offset < ttl.offset ? id : ttl;
    edits[1] = id.offset < ttl.offset ? ttl : id;
    decision->edit_count = 2;
}

bool fresh_takes(struct decision *decision)
{
    const struct fresh *fresh = decision->pool->fresh;
    const struct fresh_answer *answer;
    int64_t left_ms;
    size_t kind;

    if (!decision->asks || decision->message->method.data == NULL)
        return false;
    kind = kind_of(decision->message->method);
    if (kind == KINDS || !read_key(decision, kind))
        return false;
    answer = find(fresh, decision->named);
    if (answer == NULL)
        return false;
    left_ms = answer->until_ms - decision->router->now_ms;
    if (left_ms <= 0 && (kinds[kind].is_content || !sleeps(decision->pool)))
        return false;
    give(decision, answer, left_ms > 0 ? left_ms : 0);
    return true;
}

/* --- an answer --- */

/* The place of the value of ttlMs. False: the result is not to be kept. */
static bool read_ttl(struct slice line, struct slice *value, int64_t *ttl_ms)
{
    struct slice result, type;
    char digits[16];

    if (!param_fields_member(line, "result", &result) ||
        !param_fields_member(result, "ttlMs", value) || value->len >= sizeof digits)
        return false;
    if (param_fields_member(result, "resultType", &type) && !slice_is(type, "\"complete\""))
        return false;
    memcpy(digits, value->data, value->len);
    digits[value->len] = '\0';
    if (digits[strspn(digits, "0123456789")] != '\0')
        return false;
    *ttl_ms = (int64_t)strtoull(digits, NULL, 10); /* of at most 15 digits */
    if (*ttl_ms > FRESH_TTL_MAX_MS)
        *ttl_ms = FRESH_TTL_MAX_MS;
    return true;
}

static void make_way(struct fresh *fresh, size_t bytes)
{
    while (fresh->count >= FRESH_COUNT_MAX || fresh->bytes + bytes > FRESH_BYTES_MAX)
        forget(fresh, list_entry(fresh->answers.head.next, struct fresh_answer, node));
}

/* Until its time is over, after now_ms. NULL without memory, or if it is not to be kept. */
static struct fresh_answer *keep(struct fresh *fresh, struct slice key,
                                 const struct message *message, int64_t now_ms)
{
    struct fresh_answer *answer = calloc(1, sizeof *answer + key.len);
    struct slice value;
    int64_t ttl_ms;

    ASSERT(key.data != NULL);
    if (answer == NULL)
        return NULL;
    if (kept_message_copy(&answer->answer, message) != STDIO_BUS_OK ||
        !read_ttl(slice_without_newline(answer->answer.line), &value, &ttl_ms)) {
        free_answer(answer);
        return NULL;
    }
    answer->ttl = (struct splice_edit){.offset = (size_t)(value.data - answer->answer.line.data),
                                       .len = value.len};
    answer->until_ms = now_ms + ttl_ms;
    answer->key_len = key.len;
    memcpy(answer->key, key.data, key.len);
    make_way(fresh, answer->answer.line.len);
    list_append(&fresh->answers, &answer->node);
    fresh->count++;
    fresh->bytes += answer->answer.line.len;
    return answer;
}

static bool is_kept(const struct message *answer)
{
    return answer->has_result && !answer->has_error && answer->id.type != ID_NONE &&
           !message_is_cut(answer) && answer->bytes.len <= FRESH_ANSWER_MAX;
}

static bool is_content(const struct fresh_answer *answer)
{
    static const char method[] = "resources/read\n";

    return answer->key_len >= sizeof method - 1 &&
           memcmp(answer->key, method, sizeof method - 1) == 0;
}

/* The bytes of the result before its time, and after it. */
static struct slice part_of(const struct fresh_answer *answer, bool after)
{
    struct slice line = slice_without_newline(answer->answer.line), result = line;
    size_t begin, end;

    (void)param_fields_member(line, "result", &result);
    begin = (size_t)(result.data - line.data);
    end = answer->ttl.offset + answer->ttl.len;
    return after ? slice_of(line.data + end, begin + result.len - end)
                 : slice_of(result.data, answer->ttl.offset - begin);
}

static bool is_same(const struct fresh_answer *one, const struct fresh_answer *other)
{
    return slice_equal(part_of(one, false), part_of(other, false)) &&
           slice_equal(part_of(one, true), part_of(other, true));
}

void fresh_answered(struct decision *decision, struct slice key)
{
    struct fresh *fresh = decision->pool->fresh;
    const struct message *message = decision->message;
    struct fresh_answer *before, *answer = NULL;

    if (fresh == NULL || key.data == NULL || decision->from->outdated)
        return;
    before = find(fresh, key);
    if (before != NULL)
        take_out(fresh, before);
    if (is_kept(message))
        answer = keep(fresh, key, message, decision->router->now_ms);
    if (answer == NULL ? before != NULL
                       : !is_content(answer) && (before == NULL || !is_same(before, answer)))
        fresh->edition++;
    free_answer(before);
}

/* --- changes --- */

/* All pages of a list, or what was read of one resource. */
static void forget_kind(struct fresh *fresh, size_t kind, struct slice uri)
{
    size_t len = strlen(kinds[kind].method);
    struct list_node *node, *following;

    fresh->edition++;
    list_each(&fresh->answers, node, following) {
        struct fresh_answer *answer = list_entry(node, struct fresh_answer, node);

        if (answer->key_len <= len || answer->key[len] != '\n' ||
            memcmp(answer->key, kinds[kind].method, len) != 0)
            continue;
        if (uri.data == NULL ||
            (answer->key_len > uri.len + 1 &&
             memcmp(answer->key + answer->key_len - uri.len - 1, uri.data, uri.len) == 0))
            forget(fresh, answer);
    }
}

void fresh_note(const struct decision *decision)
{
    struct fresh *fresh = decision->pool->fresh;
    char text[SUBSCRIPTION_URI_MAX];
    struct slice uri = {NULL, 0};

    if (fresh == NULL || decision->message->method.data == NULL)
        return;
    for (size_t kind = 0; kind < KINDS; kind++) {
        if (kinds[kind].notification == NULL ||
            !slice_is(decision->message->method, kinds[kind].notification))
            continue;
        if (kinds[kind].is_content &&
            !param_fields_string(&decision->fields, PARAM_URI, decision->message->bytes, text,
                                 sizeof text, &uri))
            uri.data = NULL;
        forget_kind(fresh, kind, uri);
    }
}

/* --- the archive --- */

static void load(struct fresh *fresh, struct archive *archive, struct slice key, struct slice line,
                 int64_t until_ms)
{
    struct message_scratch scratch;
    struct fresh_answer *answer;
    struct scanner scanner;
    struct message message;

    scanner_reset(&scanner);
    archive_expect(archive,
                   key.data != NULL && key.len <= SUBSCRIPTION_URI_MAX && line.len > 0 &&
                       until_ms >= 0 && line.data[line.len - 1] == '\n' &&
                       scanner_run(&scanner, line.data, line.len) == SCAN_MESSAGE &&
                       scanner.position == line.len &&
                       message_from_scan(&message, line, &scanner.fields, &scratch) == MESSAGE_OK &&
                       is_kept(&message),
                   "a fresh answer is none");
    if (!archive_ok(archive))
        return;
    answer = keep(fresh, key, &message, 0);
    if (answer != NULL)
        answer->until_ms = until_ms;
}

static void archive_answer(struct archive *archive, void *owner, void *item)
{
    const struct fresh_answer none = {.key_len = 0}, *answer = item != NULL ? item : &none;
    struct slice key = archive_slice(archive, slice_of(answer->key, answer->key_len));
    struct slice line = archive_slice(archive, answer->answer.line);
    int64_t until_ms = answer->until_ms;

    ARCHIVE_INTEGER(archive, until_ms);
    if (archive_loads(archive))
        load(owner, archive, key, line, until_ms);
}

/* What a resource says is never given after its time. */
static void archive_stale_answer(struct archive *archive, void *owner, void *item)
{
    const struct fresh_answer none = {.key_len = 0}, *answer = item;
    struct slice key = slice_of(NULL, 0), line = key;

    if (answer == NULL)
        answer = &none;
    if (!is_content(answer)) {
        key = slice_of(answer->key, answer->key_len);
        line = answer->answer.line;
    }
    key = archive_slice(archive, key);
    line = archive_slice(archive, line);
    if (archive_loads(archive) && key.data != NULL)
        load(owner, archive, key, line, 0);
}

static void archive_answers(struct fresh *fresh, struct archive *archive, archive_item_fn *fn)
{
    struct fresh unwanted, *used = fresh;

    fresh_init(&unwanted);
    if (fresh == NULL)
        used = &unwanted;
    archive_mark(archive, "fresh");
    if (archive_present(archive, fresh != NULL))
        ARCHIVE_LIST(archive, &used->answers, struct fresh_answer, node, fn, used);
    fresh_clear(&unwanted);
}

void fresh_archive(struct fresh *fresh, struct archive *archive)
{
    archive_answers(fresh, archive, archive_answer);
}

void fresh_archive_stale(struct fresh *fresh, struct archive *archive)
{
    archive_answers(fresh, archive, archive_stale_answer);
}
