/* The reader of whole JSON texts. The commands of the RMP socket test what it takes one by one. */
#include "build_config.h"

#include "data/json_texts.h"
#include "suite.h"
#include "json/reader.h"

static unsigned depth_of(const char *text, size_t len)
{
    unsigned depth = 0, most = 0;
    bool in_string = false;

    for (size_t i = 0; i < len; i++) {
        if (text[i] == '"')
            in_string = !in_string;
        else if (in_string)
            i += text[i] == '\\';
        else if (text[i] == '{' || text[i] == '[')
            most = ++depth > most ? depth : most;
        else if (text[i] == '}' || text[i] == ']')
            depth--;
    }
    return most;
}

/* Whether an exact copy is one value. */
static bool is_value(const char *text, size_t len)
{
    char *copy = malloc(len + (len == 0));
    struct json_reader reader = {copy, copy + len};
    bool good;

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, text, len);
    good = json_skip_value(&reader) && json_peek(&reader) == '\0' && reader.p == reader.end;
    free(copy);
    return good;
}

/* Values that are no objects are values all the same, and a newline does not end them. */
TEST_ROWS(json_texts_are_skipped, COUNT(json_texts))
{
    const struct json_text *text = &json_texts[row];
    bool has_newline = memchr(text->text, '\n', text->len - 1) != NULL;

    if (text->error == SCAN_ERROR_NONE)
        ck_assert(is_value(text->text, text->len) ==
                  (depth_of(text->text, text->len) <= JSON_READER_MAX_DEPTH));
    else if (text->error != SCAN_ERROR_NOT_OBJECT && !has_newline)
        ck_assert(!is_value(text->text, text->len));
}

TEST_ROWS(json_texts_are_refused_when_cut, COUNT(json_texts))
{
    const struct json_text *text = &json_texts[row];

    for (size_t len = 0; len < text->at && len < 1000; len++) {
        const char *end = memchr(text->text, '}', len);

        ck_assert(end != NULL || !is_value(text->text, len) || text->text[0] != '{');
    }
}

TEST(texts_are_decoded)
{
    static const char json[] = " \"plain\" \"\\u0041\\n\" \"\\u0041\\u0042\\u0043\"";
    struct json_reader reader = {json, json + sizeof json - 1};
    struct slice text;
    char room[2];

    ck_assert(json_take_text(&reader, &text, room, sizeof room));
    ck_assert(slice_equal(text, slice_of("plain", 5)) && text.data == json + 2);
    ck_assert(json_take_text(&reader, &text, room, sizeof room));
    ck_assert(slice_equal(text, slice_of("A\n", 2)) && text.data == room);
    ck_assert(!json_take_text(&reader, &text, room, sizeof room));
}
