/* The configuration: every text is accepted or refused with reports of one line, and an accepted
 * configuration keeps the rules; the servers of an MCP client become JSON. */
#include "build_config.h"

#include "config/config.h"

#include "base/error.h"
#include "cli/import.h"
#include "common.h"
#include "reference_json.h"
#include "json/document.h"

#define NAME "fuzz.json"

struct reports {
    size_t errors, warnings;
    uint64_t digest;
    char first_error[256];
};

static void report(void *user_data, bool is_error, const char *text)
{
    struct reports *reports = user_data;
    const unsigned char *p = (const unsigned char *)text;

    EXPECT(strncmp(text, NAME ":", sizeof NAME) == 0, "does not begin with the file: %s", text);
    for (; *p != '\0'; p++) {
        EXPECT(*p >= ' ' && *p != 0x7F, "a control character in %s", text);
        reports->digest = (reports->digest ^ *p) * UINT64_C(0x100000001b3);
    }
    reports->digest += is_error;
    if (is_error && reports->errors++ == 0)
        snprintf(reports->first_error, sizeof reports->first_error, "%s", text);
    reports->warnings += !is_error;
}

static void check_pool(const struct config *config, size_t index)
{
    const struct pool_config *pool = &config->pools[index];

    EXPECT(pool->id != NULL && pool->id[0] != '\0', "pool %zu has no id", index);
    EXPECT(strlen(pool->id) <= 256, "pool %zu has a long id", index);
    EXPECT(pool->command != NULL && pool->command[0] != '\0', "pool %zu has no command", index);
    EXPECT(pool->argv != NULL && pool->argv[0] == pool->command, "pool %zu: argv[0]", index);
    EXPECT(pool->instances >= 1 && pool->instances <= 1024, "pool %zu: %u instances", index,
           pool->instances);
    for (size_t i = 0; pool->argv[i] != NULL; i++)
        EXPECT(strlen(pool->argv[i]) < ((size_t)1 << 24), "an argument");
    EXPECT(pool->envp != NULL, "pool %zu has no environment", index);
    for (size_t i = 0; pool->envp[i] != NULL; i++)
        EXPECT(strlen(pool->envp[i]) > 0, "a variable");
    for (size_t i = 0; i < index; i++)
        EXPECT(strcmp(config->pools[i].id, pool->id) != 0, "two pools have the id %s", pool->id);
}

static void check_limits(const struct limits *limits)
{
    const size_t gib = (size_t)1 << 30;

#define CHECK_RANGE(field, min, max)                                                               \
    EXPECT(limits->field + 1 > (min) && limits->field <= (max), #field)
    CHECK_RANGE(max_input_buffer, 1, gib);
    CHECK_RANGE(max_message, 1, gib);
    EXPECT(limits->max_message >= limits->max_input_buffer, "%zu", limits->max_message);
    CHECK_RANGE(max_output_queue, 1, gib);
    CHECK_RANGE(max_restarts, 0, 1000);
    CHECK_RANGE(restart_window_sec, 1, 86400);
    CHECK_RANGE(drain_timeout_sec, 0, 86400);
    CHECK_RANGE(backpressure_timeout_sec, 1, 86400);
    CHECK_RANGE(max_memory, 1048576, SIZE_MAX / 2);
    CHECK_RANGE(half_close_sec, 1, 86400);
    CHECK_RANGE(slow_client_timeout_sec, 1, 60);
    CHECK_RANGE(max_connections, 1, 1000000);
    CHECK_RANGE(max_sessions, 1, 1000000);
    CHECK_RANGE(max_pending_requests, 1, 1000000);
#undef CHECK_RANGE
}

static bool contains(const char *text, const char *what)
{
    return strstr(text, what) != NULL;
}

/* The strict reader accepts the documents of the reference, but for those with a reason it names.
 * */
static void check_reader(const char *text, size_t len)
{
    struct document document;
    struct document_error error;
    int code = document_read(&document, slice_of(text, len), &error);
    bool valid = reference_document(text, len, 4096);

    if (code == STDIO_BUS_OK) {
        EXPECT(valid, "read, but it is not JSON");
        EXPECT(reference_document(text, len, DOCUMENT_MAX_DEPTH), "nested too deeply");
        document_free(&document);
        return;
    }
    EXPECT(code == STDIO_BUS_EINVAL && document.root == NULL, "code %d", code);
    EXPECT(error.at.line >= 1 && error.at.column >= 1, "no position");
    EXPECT(!valid || contains(error.text, "nested deeper") ||
               contains(error.text, "duplicate key") || contains(error.text, "surrogate pair"),
           "JSON is refused: %s", error.text);
}

static struct reports read_once(const char *text, size_t len, bool check)
{
    static const struct reports nothing;
    struct reports reports = nothing;
    struct config config;
    int code;

    memset(&config, 0xA5, sizeof config);
    code = config_read_text(&config, text, len, NAME, report, &reports);
    EXPECT(code == (reports.errors == 0 ? STDIO_BUS_OK : STDIO_BUS_EINVAL), "%d with %zu errors",
           code, reports.errors);
    if (code != STDIO_BUS_OK) {
        EXPECT(config.pools == NULL && config.pool_count == 0, "something is left");
    } else if (check) {
        EXPECT(config.pool_count > 0, "no pool");
        for (size_t i = 0; i < config.pool_count; i++)
            check_pool(&config, i);
        check_limits(&config.limits);
        EXPECT(reference_document(text, len, DOCUMENT_MAX_DEPTH), "taken, but it is not JSON");
    }
    config_free(&config);
    return reports;
}

/* JSON is left as it is by the pass over comments, and what is imported is JSON again. */
static void check_import(const char *text, size_t len)
{
    char *copy = fuzz_copy((const uint8_t *)text, len);
    struct document document, imported;
    struct document_error error;
    struct import import;

    comments_blank(copy, len);
    EXPECT(len == 0 || !reference_document(text, len, 4096) || memcmp(copy, text, len) == 0,
           "JSON is changed");
    if (document_read(&document, slice_of(copy, len), &error) == STDIO_BUS_OK) {
        if (import_read(&import, document.root, len % 2 == 0) == STDIO_BUS_OK) {
            struct slice config = slice_of(import.config, strlen(import.config));
            int code = document_read(&imported, config, &error);

            EXPECT(code == STDIO_BUS_OK, "%s in %s", error.text, import.config);
            EXPECT(document_member(imported.root, "pools")->count == import.servers, "pools");
            document_free(&imported);
        }
        import_free(&import);
        document_free(&document);
    }
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_copy(data, size);
    struct reports first = read_once(text, size, true), second = read_once(text, size, false);

    EXPECT(first.digest == second.digest, "the second time it says something else");
    if (!reference_document(text, size, 4096))
        EXPECT(first.errors == 1 && first.warnings == 0, "a syntax error is reported alone");
    check_reader(text, size);
    check_import(text, size);
    free(text);
    return 0;
}
