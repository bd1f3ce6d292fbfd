/* Reports the results of the scanner, for a test that compares it with another reader of JSON.
 *
 * scan_texts: reads texts from stdin, each after its length in four bytes, the highest first, and
 * writes a line about the first line of each:
 *
 *   invalid | blank | message LENGTH PROBLEM RESPONSE ID RAW-ID SESSION METHOD POOL
 *
 * LENGTH counts the newline, which is added to the text. PROBLEM is an enum message_problem.
 * RESPONSE is "r", "e", "re" or "-". The others are "-" when absent, or bytes in hexadecimal after
 * "=" (after "s=" and "n=" for an id that is a string or a number). RAW-ID and METHOD are as they
 * stand in the text. A text that is not the same when it comes in pieces makes a line "differs".
 *
 * scan_texts --texts: writes the texts of tests/data/json_texts.h in that form instead. */
#include "build_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/json_texts.h"
#include "json/message.h"

struct outcome {
    enum scan_status status;
    struct scanner scanner;
};

static void scan(struct outcome *outcome, const char *text, size_t len, size_t piece)
{
    size_t have = 0;

    memset(&outcome->scanner, 0xA5, sizeof outcome->scanner);
    scanner_reset(&outcome->scanner);
    do {
        have += piece < len - have ? piece : len - have;
        outcome->status = scanner_run(&outcome->scanner, text, have);
    } while (outcome->status == SCAN_MORE && have < len);
}

static bool same_field(const struct scan_field *a, const struct scan_field *b)
{
    return a->type == b->type &&
           (a->type == SCAN_ABSENT || (a->offset == b->offset && a->len == b->len)) &&
           (a->type != SCAN_STRING || a->escaped == b->escaped);
}

static bool same(const struct outcome *a, const struct outcome *b)
{
    const struct scan_fields *f = &a->scanner.fields, *g = &b->scanner.fields;

    if (a->status != b->status || a->scanner.position != b->scanner.position ||
        a->scanner.error != b->scanner.error)
        return false;
    return a->status != SCAN_MESSAGE ||
           (same_field(&f->id, &g->id) && same_field(&f->session_id, &g->session_id) &&
            same_field(&f->method, &g->method) && same_field(&f->pool, &g->pool) &&
            f->has_result == g->has_result && f->has_error == g->has_error);
}

static void print_bytes(const char *type, struct slice bytes)
{
    static const char digits[] = "0123456789abcdef";

    if (bytes.data == NULL) {
        fputs(" -", stdout);
        return;
    }
    printf(" %s=", type);
    for (size_t i = 0; i < bytes.len; i++) {
        putchar_unlocked(digits[(unsigned char)bytes.data[i] >> 4]);
        putchar_unlocked(digits[(unsigned char)bytes.data[i] & 15]);
    }
}

static void print_message(const char *text, const struct scanner *scanner)
{
    const struct scan_fields *fields = &scanner->fields;
    struct slice raw_id = {NULL, 0};
    struct message_scratch scratch;
    struct message message;
    enum message_problem problem = message_from_scan(&message, slice_of(text, scanner->position),
                                                     fields, &scratch);

    printf("message %zu %d %s%s%s", scanner->position, (int)problem, message.has_result ? "r" : "",
           message.has_error ? "e" : "", message_is_response(&message) ? "" : "-");
    if (fields->id.type == SCAN_STRING || fields->id.type == SCAN_NUMBER)
        raw_id = slice_of(text + fields->id.offset, fields->id.len);
    if (message.id.type == ID_NONE)
        message.id.text.data = NULL;
    print_bytes(message.id.type == ID_STRING ? "s" : "n", message.id.text);
    print_bytes("", raw_id);
    print_bytes("", message.session_id);
    print_bytes("", message.method);
    print_bytes("", message.pool);
}

static void report(const char *text, size_t len)
{
    static const size_t pieces[] = {1, 2, 3, 7, 16, 31, 100};
    struct outcome whole, cut;

    scan(&whole, text, len, len);
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        scan(&cut, text, len, pieces[i]);
        if (!same(&whole, &cut)) {
            printf("differs in pieces of %zu\n", pieces[i]);
            return;
        }
    }
    if (whole.status == SCAN_MESSAGE)
        print_message(text, &whole.scanner);
    else
        fputs(whole.status == SCAN_BLANK ? "blank" : "invalid", stdout);
    putchar('\n');
}

static void write_texts(void)
{
    for (size_t i = 0; i < JSON_TEXT_COUNT; i++) {
        size_t len = json_texts[i].len - 1;

        for (int shift = 24; shift >= 0; shift -= 8)
            putchar((int)(len >> shift & 255));
        fwrite(json_texts[i].text, 1, len, stdout);
    }
}

int main(int argc, char **argv)
{
    unsigned char prefix[4];

    if (argc > 1 && strcmp(argv[1], "--texts") == 0)
        write_texts();
    while (argc == 1 && fread(prefix, 1, sizeof prefix, stdin) == sizeof prefix) {
        size_t len = (size_t)prefix[0] << 24 | (size_t)prefix[1] << 16 | (size_t)prefix[2] << 8 |
                     prefix[3];
        char *text = malloc(len + 1);

        if (text == NULL || fread(text, 1, len, stdin) != len)
            return EXIT_FAILURE;
        text[len] = '\n';
        report(text, len + 1);
        free(text);
    }
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
