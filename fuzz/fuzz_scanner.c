/* The scanner: the result of a text does not depend on its pieces, and is that of RFC 8259. */
#include "build_config.h"

#include "json/scanner.h"

#include "common.h"
#include "reference_json.h"

struct outcome {
    enum scan_status status;
    size_t position;
    enum scan_error error;
    struct scan_fields fields;
};

static struct outcome outcome_of(const struct scanner *scanner, enum scan_status status)
{
    struct outcome outcome = {status, scanner->position, scanner->error, scanner->fields};

    return outcome;
}

static struct outcome scan_whole(const char *text, size_t len)
{
    struct scanner scanner;

    memset(&scanner, 0xA5, sizeof scanner); /* scanner_reset suffices */
    scanner_reset(&scanner);
    return outcome_of(&scanner, scanner_run(&scanner, text, len));
}

/* Each piece comes with all bytes before it, at another place in memory. */
static struct outcome scan_cut(const char *text, size_t len, struct cutter *cutter)
{
    enum scan_status status = SCAN_MORE;
    struct scanner scanner;
    size_t have = 0;

    memset(&scanner, 0x5A, sizeof scanner);
    scanner_reset(&scanner);
    while (status == SCAN_MORE && have < len) {
        size_t before = have;
        char *copy;

        have += cutter_next(cutter, len - have);
        copy = fuzz_copy(text, have);
        status = scanner_run(&scanner, copy, have);
        free(copy);
        EXPECT(scanner.position >= before, "a byte is read twice: at %zu of %zu", scanner.position,
               have);
        EXPECT(status != SCAN_MORE || scanner.position == have, "MORE before all was read");
    }
    return outcome_of(&scanner, status);
}

static void compare_field(const char *name, const struct scan_field *a, const struct scan_field *b)
{
    EXPECT(a->type == b->type, "%s: type %d and %d", name, (int)a->type, (int)b->type);
    if (a->type == SCAN_ABSENT)
        return;
    EXPECT(a->offset == b->offset && a->len == b->len, "%s: %zu+%zu and %zu+%zu", name, a->offset,
           a->len, b->offset, b->len);
    EXPECT(a->type != SCAN_STRING || a->escaped == b->escaped, "%s: escaped", name);
}

/* After a number, the scanner reports a byte that no number has as SYNTAX. */
static enum scan_error kind_of(enum scan_error error)
{
    return error == SCAN_ERROR_NUMBER ? SCAN_ERROR_SYNTAX : error;
}

static void compare(const struct outcome *a, enum scan_status status, size_t position,
                    enum scan_error error, const struct scan_fields *fields)
{
    EXPECT(a->status == status, "status %d and %d", (int)a->status, (int)status);
    EXPECT(a->position == position, "position %zu and %zu", a->position, position);
    if (status == SCAN_INVALID)
        EXPECT(kind_of(a->error) == kind_of(error), "error %d and %d", (int)a->error, (int)error);
    if (status != SCAN_MESSAGE)
        return;
    compare_field("id", &a->fields.id, &fields->id);
    compare_field("sessionId", &a->fields.session_id, &fields->session_id);
    compare_field("method", &a->fields.method, &fields->method);
    compare_field("pool", &a->fields.pool, &fields->pool);
    EXPECT(a->fields.has_result == fields->has_result, "result");
    EXPECT(a->fields.has_error == fields->has_error, "error");
}

/* Returns the length of the first message, 0 when there is none. */
static size_t check_message(const char *text, size_t len, struct cutter *cutter)
{
    struct outcome whole = scan_whole(text, len);
    struct outcome cut = scan_cut(text, len, cutter);
    struct reference_result reference;

    compare(&whole, cut.status, cut.position, cut.error, &cut.fields);
    EXPECT(whole.error == cut.error, "error %d and %d", (int)whole.error, (int)cut.error);
    reference_line(&reference, text, len);
    compare(&whole, reference.status, reference.position, reference.error, &reference.fields);
    if (whole.status == SCAN_INVALID)
        EXPECT(scan_error_text(whole.error)[0] != '\0', "an error without words");
    return whole.status == SCAN_MESSAGE || whole.status == SCAN_BLANK ? whole.position : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cutter cutter;
    size_t at = CUTTER_BYTES, used = 1;

    if (size < CUTTER_BYTES)
        return 0;
    cutter = cutter_of(data);
    for (; at < size && used > 0; at += used)
        used = check_message((const char *)data + at, size - at, &cutter);
    return 0;
}
