/* JSON with comments and trailing commas: what is left without them is JSON exactly where a reader
 * that knows them accepts the text, and every other byte stays where it was. */
#include "build_config.h"

#include "json/document.h"

#include "common.h"
#include "reference_json.h"

#define DEPTH_MAX 512 /* this reader calls itself */

/* --- a reader that knows comments, a byte at a time --- */

struct reader {
    const char *p, *end;
    bool bad;
};

static bool begins(const struct reader *reader, const char *word)
{
    size_t len = strlen(word);

    return (size_t)(reader->end - reader->p) >= len && memcmp(reader->p, word, len) == 0;
}

static void skip_block(struct reader *reader)
{
    for (reader->p += 2; reader->p < reader->end && !begins(reader, "*/");)
        reader->p++;
    reader->bad |= reader->p == reader->end;
    reader->p += reader->p < reader->end ? 2 : 0;
}

static void skip_blanks(struct reader *reader)
{
    for (;;) {
        if (begins(reader, " ") || begins(reader, "\t") || begins(reader, "\r") ||
            begins(reader, "\n")) {
            reader->p++;
        } else if (begins(reader, "//")) {
            while (reader->p < reader->end && *reader->p != '\n')
                reader->p++;
        } else if (begins(reader, "/*")) {
            skip_block(reader);
        } else {
            return;
        }
    }
}

static bool take(struct reader *reader, const char *word)
{
    bool is_there = begins(reader, word);

    reader->p += is_there;
    if (is_there)
        skip_blanks(reader);
    return is_there;
}

/* A string, a number or a word: JSON without any structure. */
static void read_scalar(struct reader *reader)
{
    const char *start = reader->p;

    if (begins(reader, "\"")) {
        for (reader->p++; reader->p < reader->end && *reader->p != '"'; reader->p++)
            reader->p += *reader->p == '\\' && reader->end - reader->p > 1;
        reader->p += reader->p < reader->end;
    } else {
        while (reader->p < reader->end && strchr(" \t\r\n,:[]{}\"/", *reader->p) == NULL)
            reader->p++;
    }
    if (!reference_document(start, (size_t)(reader->p - start), 1))
        reader->bad = true;
    skip_blanks(reader);
}

static void read_value(struct reader *reader, unsigned depth)
{
    bool is_object = begins(reader, "{");
    const char *close = is_object ? "}" : "]";

    if (!is_object && !begins(reader, "[")) {
        read_scalar(reader);
        return;
    }
    reader->bad |= depth == 0;
    take(reader, is_object ? "{" : "[");
    while (!reader->bad && !take(reader, close)) {
        if (is_object) {
            reader->bad |= !begins(reader, "\"");
            read_scalar(reader);
            reader->bad |= !take(reader, ":");
        }
        if (!reader->bad)
            read_value(reader, depth - 1);
        if (!take(reader, ",")) {
            reader->bad |= !take(reader, close);
            return;
        }
    }
}

static bool is_json_with_comments(const char *text, size_t len)
{
    struct reader reader = {text, text + len, false};

    if (begins(&reader, "\xef\xbb\xbf"))
        reader.p += 3;
    skip_blanks(&reader);
    read_value(&reader, DEPTH_MAX);
    return !reader.bad && reader.p == reader.end;
}

/* --- what is promised --- */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_copy(data, size), *left = fuzz_copy(data, size), *again;

    comments_blank(left, size);
    for (size_t i = 0; i < size; i++) {
        EXPECT(left[i] == text[i] || left[i] == ' ', "byte %zu is another one", i);
        EXPECT((left[i] == '\n') == (text[i] == '\n'), "line ends are others, at %zu", i);
    }
    EXPECT(is_json_with_comments(text, size) == reference_document(left, size, DEPTH_MAX),
           "only one of the readers accepts: %.*s", (int)size, text);
    again = fuzz_copy(left, size);
    if (reference_document(left, size, DEPTH_MAX)) {
        comments_blank(again, size);
        EXPECT(size == 0 || memcmp(again, left, size) == 0, "JSON is changed");
    }
    if (reference_document(text, size, DEPTH_MAX))
        EXPECT(size == 0 || memcmp(text, left, size) == 0, "JSON is changed");
    free(again);
    free(left);
    free(text);
    return 0;
}
