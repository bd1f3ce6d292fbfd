/* The page for browsers: its parts that need no daemon. */
#include "build_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "page/errors.h"
#include "page/figures.h"
#include "page/html.h"
#include "page/sha256.h"
#include "page/source.h"
#include "suite.h"

static void expect_text(struct json_text *text, const char *expected)
{
    json_text_add(text, slice_of("", 1));
    ck_assert(!text->failed);
    ck_assert_str_eq(text->data, expected);
    json_text_free(text);
}

/* --- hashes: the examples of FIPS 180-4, and lengths around a block --- */

static const struct {
    const char *text;
    unsigned times;
    const char *hash;
} hashes[] = {
    {"", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {"a", 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318"},
    {"a", 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb"},
    {"a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
};

TEST_ROWS(sha256_hashes, COUNT(hashes))
{
    unsigned char hash[SHA256_BYTES];
    char text[2 * SHA256_BYTES + 1];
    size_t len = strlen(hashes[row].text), all = len * hashes[row].times;
    char *bytes = malloc(all + 1);

    ck_assert_ptr_nonnull(bytes);
    for (size_t i = 0; i < all; i++)
        bytes[i] = hashes[row].text[i % len];
    sha256(hash, slice_of(bytes, all));
    free(bytes);
    for (size_t i = 0; i < SHA256_BYTES; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", hash[i]);
    ck_assert_str_eq(text, hashes[row].hash);
}

TEST(source_is_small_and_one_page)
{
    ck_assert_uint_le(page_source_len, 16384);
    ck_assert_uint_eq(strlen(page_source), page_source_len);
    ck_assert_ptr_null(strstr(page_source, "http-equiv"));
    ck_assert_ptr_null(strstr(page_source, "style=\""));
    ck_assert_ptr_null(strstr(page_source, "innerHTML"));
}

/* --- values --- */

static const struct {
    enum html_kind kind;
    const char *json, *shown;
} values[] = {
    {HTML_NUMBER, "12", "12"},
    {HTML_NUMBER, "null", "\xE2\x80\x93"},
    {HTML_TENTHS, "125", "12.5"},
    {HTML_BYTES, "999", "999 B"},
    {HTML_BYTES, "1000", "1.0 kB"},
    {HTML_BYTES, "2740224", "2.7 MB"},
    {HTML_MS, "-1", "\xE2\x80\x93"},
    {HTML_MS, "999", "999 ms"},
    {HTML_MS, "59999", "59.9 s"},
    {HTML_MS, "60000", "1 min"},
    {HTML_MS, "5400000", "1.5 h"},
    {HTML_US, "500", "0.5 ms"},
    {HTML_CLOCK, "1795654825089", "01:00:25"},
    {HTML_TEXT, "\"<b>\\\"'&\\n\"", "&#60;b&#62;&#34;&#39;&#38; "},
    {HTML_TEXT, "\"\\u00e9\"", "\xC3\xA9"},
    {HTML_NUMBER, "\"text\"", "text"},
};

TEST_ROWS(values_are_shown, COUNT(values))
{
    struct json_text text = {.data = NULL};
    struct document document;
    struct document_error error;

    ck_assert_int_eq(document_read(&document, slice_of_text(values[row].json), &error), 0);
    html_value(&text, values[row].kind, document.root);
    expect_text(&text, values[row].shown);
    document_free(&document);
}

TEST(absent_value_is_a_dash)
{
    struct json_text text = {.data = NULL};

    html_value(&text, HTML_TEXT, NULL);
    expect_text(&text, "\xE2\x80\x93");
}

/* --- times --- */

TEST(quantiles_are_between_the_bounds_of_their_bucket)
{
    struct request_counts counts = {.total_ms = 0};

    ck_assert_int_eq(figures_quantile_us(&counts, 50), -1);
    request_counts_add_time(&counts, 0);
    ck_assert_int_eq(figures_quantile_us(&counts, 50), 1000);
    request_counts_add_time(&counts, 0);
    ck_assert_int_eq(figures_quantile_us(&counts, 50), 500);
    for (int i = 0; i < 98; i++)
        request_counts_add_time(&counts, 200);
    ck_assert_int_eq(figures_quantile_us(&counts, 50), 100000 + 150000 * 48 / 98);
    request_counts_add_time(&counts, 9000);
    ck_assert_int_eq(figures_quantile_us(&counts, 100), 10000000);
}

/* --- errors --- */

TEST(errors_are_the_last_ones_the_newest_first)
{
    static struct page_errors errors;
    struct json_text text = {.data = NULL};
    char number[16];
    const char *at;

    for (unsigned i = 0; i < PAGE_ERRORS_MAX + 5; i++) {
        (void)snprintf(number, sizeof number, "n%u.", i);
        page_errors_note(&errors, i % 2 ? LOG_LEVEL_WARN : LOG_LEVEL_ERROR, "of", number);
    }
    row_begin(&text, NULL, '{');
    page_errors_write(&errors, &text);
    row_end(&text, '}');
    json_text_add(&text, slice_of("", 1));
    at = strstr(text.data, "\"n24.\"");
    ck_assert_ptr_nonnull(at);
    ck_assert_ptr_nonnull(strstr(at, "\"n5.\""));
    ck_assert_ptr_null(strstr(text.data, "\"n4.\""));
    ck_assert_ptr_nonnull(strstr(text.data, "\"total\":20}"));
    json_text_free(&text);
}

TEST(errors_are_forgotten)
{
    static struct page_errors errors;
    struct json_text text = {.data = NULL};

    page_errors_note(&errors, LOG_LEVEL_WARN, "of", "old");
    errors.ring[0].epoch_ms -= PAGE_ERRORS_MS + 1000;
    page_errors_write(&errors, &text);
    expect_text(&text, "\"errors\":{\"errors\":[],\"total\":0}");
}
