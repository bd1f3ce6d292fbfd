#include "build_config.h"

#include "format/references.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Scans and looks; the message is in memory of just its size. Returns the raw value in `to`, or
 * "-" where there is none. */
static const char *look(char *to, size_t size, const char *text, enum reference wanted,
                        bool with_hint)
{
    size_t len = strlen(text), hint = 0;
    char *message = malloc(len + 1);
    struct references found;
    struct scanner scanner;
    struct slice raw;

    ck_assert_ptr_nonnull(message);
    memcpy(message, text, len);
    message[len] = '\n';
    scanner_reset(&scanner);
    ck_assert_msg(scanner_run(&scanner, message, len + 1) == SCAN_MESSAGE, "%s", text);
    if (with_hint && scanner.fields.method.type == SCAN_STRING)
        hint = scanner.fields.method.offset + scanner.fields.method.len + 1;
    memset(&found, 0xa5, sizeof found);
    references_find(&found, slice_of(message, len + 1), hint);
    ck_assert_uint_eq(found.present >> REFERENCES_COUNT, 0);
    snprintf(to, size, "-");
    if (references_has(&found, wanted)) {
        raw = references_raw(slice_of(message, len + 1), &found.at[wanted]);
        snprintf(to, size, "%.*s", (int)raw.len, raw.data);
    }
    free(message);
    return to;
}

static const struct {
    const char *text;
    enum reference wanted;
    const char *raw;
} cases[] = {
    {"{}", REFERENCE_SESSION, "-"},
    {"{\"params\":{\"sessionId\":\"s\"}}", REFERENCE_SESSION, "\"s\""},
    {"{\"params\":{\"sessionId\":\"\"}}", REFERENCE_SESSION, "\"\""},
    {"{\"sessionId\":\"s\"}", REFERENCE_SESSION, "-"},
    {"{\"params\":[{\"sessionId\":\"s\"}]}", REFERENCE_SESSION, "-"},
    {"{\"params\":{\"a\":{\"sessionId\":\"s\"}}}", REFERENCE_SESSION, "-"},
    {"{\"result\":{\"sessionId\":\"s\"}}", REFERENCE_SESSION, "-"},
    {"{\"result\":{\"sessionId\":\"s\"}}", REFERENCE_RESULT_SESSION, "\"s\""},
    {"{\"result\":{\"a\":[{\"}\":\"]\"}],\"sessionId\":\"s\"}}", REFERENCE_RESULT_SESSION, "\"s\""},
    {"{\"params\":{\"_meta\":{\"progressToken\":7}}}", REFERENCE_META_TOKEN, "7"},
    {"{\"params\":{\"_meta\":{\"progressToken\":-1.5e3 }}}", REFERENCE_META_TOKEN, "-1.5e3"},
    {"{\"params\":{\"_meta\":{\"progressToken\":null}}}", REFERENCE_META_TOKEN, "null"},
    {"{\"params\":{\"_meta\":{\"progressToken\":{\"a\":[]}}}}", REFERENCE_META_TOKEN,
     "{\"a\":[]}"},
    {"{\"_meta\":{\"progressToken\":7}}", REFERENCE_META_TOKEN, "-"},
    {"{\"params\":{\"progressToken\":7}}", REFERENCE_META_TOKEN, "-"},
    {"{\"params\":{\"progressToken\":7}}", REFERENCE_PROGRESS_TOKEN, "7"},
    {"{\"params\":{\"_meta\":{\"progressToken\":7}}}", REFERENCE_PROGRESS_TOKEN, "-"},
    {"{\"params\":{\"_meta\":{\"_meta\":{\"progressToken\":7}}}}", REFERENCE_META_TOKEN, "-"},
    {"{\"params\":{\"workDoneToken\":\"w\",\"partialResultToken\":\"p\"}}", REFERENCE_WORK_TOKEN,
     "\"w\""},
    {"{\"params\":{\"workDoneToken\":\"w\",\"partialResultToken\":\"p\"}}",
     REFERENCE_PARTIAL_TOKEN, "\"p\""},
    {"{\"params\":{\"token\":\"t\"}}", REFERENCE_TOKEN, "\"t\""},
    {"{\"params\":{\"requestId\":1}}", REFERENCE_REQUEST_ID, "1"},
    {"{\"params\":{\"id\":\"x\"}}", REFERENCE_ID, "\"x\""},
    {"{\"id\":\"x\"}", REFERENCE_ID, "-"},
    /* spelled otherwise */
    {"{\"p\\u0061rams\":{\"session\\u0049d\":\"a\\\"b\"}}", REFERENCE_SESSION, "\"a\\\"b\""},
    {"{\"params\":{\"_m\\u0065ta\":{\"progress\\u0054oken\":\"\\\\\"}}}", REFERENCE_META_TOKEN,
     "\"\\\\\""},
    {"{\"params\":{\"partialResultToke\\u006e\":1}}", REFERENCE_PARTIAL_TOKEN, "1"},
    {"{\"params\":{\"partialResultToken\\u0000\":1}}", REFERENCE_PARTIAL_TOKEN, "-"},
    {"{\"params\":{\"sessionid\":\"s\"}}", REFERENCE_SESSION, "-"},
    {" {\t\"params\" : { \"id\" :\t3\t, \"b\" : 4 } } \r", REFERENCE_ID, "3"},
    /* the last one counts */
    {"{\"params\":{\"id\":1,\"id\":2}}", REFERENCE_ID, "2"},
    {"{\"params\":{\"id\":1},\"params\":{}}", REFERENCE_ID, "-"},
    {"{\"params\":{\"id\":1},\"params\":7}", REFERENCE_ID, "-"},
    {"{\"params\":7,\"params\":{\"id\":1}}", REFERENCE_ID, "1"},
    {"{\"params\":{\"_meta\":{\"progressToken\":1},\"_meta\":{}}}", REFERENCE_META_TOKEN, "-"},
    {"{\"params\":{\"_meta\":{\"progressToken\":1},\"_meta\":[]}}", REFERENCE_META_TOKEN, "-"},
    {"{\"params\":{\"_meta\":{\"progressToken\":1},\"id\":5}}", REFERENCE_META_TOKEN, "1"},
    {"{\"params\":{\"_meta\":{\"progressToken\":1}},\"params\":{}}", REFERENCE_META_TOKEN, "-"},
    {"{\"result\":{\"sessionId\":\"s\"},\"result\":{}}", REFERENCE_RESULT_SESSION, "-"},
    {"{\"result\":{\"sessionId\":\"s\"},\"params\":{}}", REFERENCE_RESULT_SESSION, "\"s\""},
    /* what only looks like it */
    {"{\"a\":\"\\\"params\\\":{\\\"id\\\":1}\",\"params\":{\"id\":2}}", REFERENCE_ID, "2"},
    {"{\"a\":\"\\\\\",\"params\":{\"id\":2}}", REFERENCE_ID, "2"},
    {"{\"a\":\"\\\\\\\"\",\"params\":{\"id\":2}}", REFERENCE_ID, "2"},
    {"{\"a\":[\"]\",{\"b\":\"}|{[\"}],\"params\":{\"id\":2}}", REFERENCE_ID, "2"},
    {"{\"params\":{\"a\":[[[]],{}],\"b\":\"|\xc3\xa9\",\"id\":2}}", REFERENCE_ID, "2"},
    /* before and behind the method */
    {"{\"method\":\"m\",\"params\":{\"id\":1}}", REFERENCE_ID, "1"},
    {"{\"params\":{\"id\":1},\"method\":\"m\"}", REFERENCE_ID, "1"},
    {"{\"params\":{\"id\":1},\"method\":\"m\",\"params\":{\"id\":2}}", REFERENCE_ID, "2"},
    {"{\"params\":{\"id\":1},\"method\":\"m\",\"params\":{\"a\":2}}", REFERENCE_ID, "-"},
    {"{\"method\":\"m\",\"params\":{\"id\":1},\"a\":2,\"params\":{}}", REFERENCE_ID, "-"},
    {"{\"method\":\"m\" , \"params\":{\"id\":1},\"a\":2}", REFERENCE_ID, "1"},
    {"{\"method\":\"m\"}", REFERENCE_ID, "-"},
};

START_TEST(finds_what_is_there)
{
    char raw[64];

    ck_assert_str_eq(look(raw, sizeof raw, cases[_i].text, cases[_i].wanted, false), cases[_i].raw);
    ck_assert_str_eq(look(raw, sizeof raw, cases[_i].text, cases[_i].wanted, true), cases[_i].raw);
}
END_TEST

/* Wherever the bytes stand in the blocks that are looked at together. */
START_TEST(finds_it_at_any_place)
{
    char text[1024], raw[100];
    int before, inside;

    for (before = 0; before < 140; before++) {
        for (inside = 0; inside < 70; inside += 3) {
            snprintf(text, sizeof text,
                     "{\"a\":\"%*s\",\"params\":{\"b\":\"%*s\\\"[\",\"id\":\"%*s\"}}", before, "",
                     inside, "", inside, "x");
            look(raw, sizeof raw, text, REFERENCE_ID, false);
            ck_assert_int_eq((int)strlen(raw), 2 + (inside > 1 ? inside : 1));
        }
    }
}
END_TEST

START_TEST(strings_are_decoded)
{
    static const char text[] = "{\"params\":{\"sessionId\":\"a\\u0062\",\"id\":7}}\n";
    struct slice message = slice_of(text, sizeof text - 1), value;
    struct references found;
    char to[8];

    references_find(&found, message, 0);
    ck_assert(references_string(&found, REFERENCE_SESSION, message, to, sizeof to, &value));
    ck_assert(slice_equal(value, slice_of("ab", 2)));
    ck_assert(!references_string(&found, REFERENCE_SESSION, message, to, 1, &value));
    ck_assert(!references_string(&found, REFERENCE_ID, message, to, sizeof to, &value));
    ck_assert(!references_string(&found, REFERENCE_TOKEN, message, to, sizeof to, &value));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("references");
    TCase *tcase = tcase_create("references");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_loop_test(tcase, finds_what_is_there, 0, COUNT(cases));
    tcase_add_test(tcase, finds_it_at_any_place);
    tcase_add_test(tcase, strings_are_decoded);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
