/* The file of a listener's tokens: one without a name, or several with names. */
#include "build_config.h"

#include <sys/stat.h>

#include "base/error.h"
#include "config/tokens.h"
#include "suite.h"

static const char *write_file(const char *content)
{
    const char *path = test_format("%s/tokens", test_dir());
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    fputs(content, file);
    fclose(file);
    ck_assert_int_eq(chmod(path, 0600), 0);
    return path;
}

static void rewrite(const char *path, const char *content)
{
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    fputs(content, file);
    fclose(file);
}

static const struct named_token *find(const struct tokens *tokens, const char *text)
{
    return tokens_find(tokens, slice_of(text, strlen(text)));
}

/* --- files --- */

static const struct {
    const char *content, *name, *token; /* one of the tokens */
    size_t count;
} files[] = {
    {"secret", "", "secret", 1},
    {"secret\n", "", "secret", 1},
    {"ann:secret\n", "", "ann:secret", 1}, /* one line is one token, as it always was */
    {"# secret\n", "", "# secret", 1},
    {" a b \n", "", " a b ", 1},
    {"ann:secret\nbob:other\n", "ann", "secret", 2},
    {"ann:secret\nbob:other", "bob", "other", 2},
    {"# names\nann:secret\n", "ann", "secret", 1},
    {"ann:secret\n\n", "ann", "secret", 1},
    {"\n\nann:a:b\n\n# end\n", "ann", "a:b", 1},
    {"ann:1\nann:2\n", "ann", "2", 2}, /* an old and a new one */
    {"a.b_c@d+e-9: x\nb:y\n", "a.b_c@d+e-9", " x", 2},
};

TEST_ROWS(files_of_tokens, COUNT(files))
{
    struct tokens tokens = {.count = 0};
    char reason[TOKEN_REASON_MAX] = "";
    const struct named_token *found;

    ck_assert_msg(tokens_read(&tokens, write_file(files[row].content), reason) == STDIO_BUS_OK,
                  "%s", reason);
    ck_assert_uint_eq(tokens.count, files[row].count);
    found = find(&tokens, files[row].token);
    ck_assert_ptr_nonnull(found);
    ck_assert_str_eq(found->name, files[row].name);
    ck_assert(tokens_has(&tokens, found->serial) && found->serial != 0);
    ck_assert_ptr_null(find(&tokens, ""));
    ck_assert_ptr_null(find(&tokens, "secre"));
    tokens_free(&tokens);
}

static const struct {
    const char *content, *reason;
} bad_files[] = {
    {"", "it is empty"},
    {"\n", "it is empty"},
    {"\n\n", "it has no token"},
    {"# a\n# b\n", "it has no token"},
    {"a\nb\n", "line 1 is not NAME:TOKEN"},
    {"a:x\nsecret\n", "line 2 is not NAME:TOKEN"},
    {"a:x\n:y\n", "line 2: a name has 1 to 64 letters, digits and . _ @ + -"},
    {"a b:x\nc:y\n", "line 1: a name has 1 to 64 letters, digits and . _ @ + -"},
    {"a:x\n\nb:\n", "line 3: a token has 1 to 1024 bytes"},
    {"a:x\nb:\x01\n", "line 2 is not text in UTF-8"},
    {"a:x\r\nb:y\r\n", "line 1 is not text in UTF-8"},
    {"a:x\nb:x\n", "line 2 has the token of an earlier one"},
    {"\xFF", "it is not one line of text in UTF-8"},
};

/* Nothing of the file is in the reason. The tokens of before stay. */
TEST_ROWS(files_that_are_refused, COUNT(bad_files))
{
    struct tokens tokens = {.count = 0};
    char reason[TOKEN_REASON_MAX] = "";
    const char *path = write_file("before");

    ck_assert_int_eq(tokens_read(&tokens, path, reason), STDIO_BUS_OK);
    rewrite(path, bad_files[row].content);
    ck_assert_int_eq(tokens_read(&tokens, path, reason), STDIO_BUS_EINVAL);
    ck_assert_str_eq(reason, bad_files[row].reason);
    ck_assert_ptr_nonnull(find(&tokens, "before"));
    tokens_free(&tokens);
}

TEST(limits_of_a_file)
{
    struct tokens tokens = {.count = 0};
    char reason[TOKEN_REASON_MAX] = "";
    const char *long_token = test_fill('t', TOKEN_MAX), *name = test_fill('n', TOKEN_NAME_MAX);

    ck_assert_int_eq(tokens_read(&tokens, write_file(test_format("%s:%s\n\n", name, long_token)),
                                 reason),
                     STDIO_BUS_OK);
    ck_assert_str_eq(find(&tokens, long_token)->name, name);
    ck_assert_int_eq(tokens_read(&tokens, write_file(test_format("%s", long_token)), reason),
                     STDIO_BUS_OK);
    ck_assert_int_eq(tokens_read(&tokens, write_file(test_format("%st", long_token)), reason),
                     STDIO_BUS_EINVAL);
    ck_assert_str_eq(reason, "it is longer than 1024 bytes");
    ck_assert_int_eq(tokens_read(&tokens, write_file(test_format("n:%st\n\n", long_token)), reason),
                     STDIO_BUS_EINVAL);
    ck_assert_int_eq(tokens_read(&tokens, write_file(test_format("%sn:t\n\n", name)), reason),
                     STDIO_BUS_EINVAL);
    ck_assert_int_eq(tokens_read(&tokens, write_file(test_fill('\n', TOKENS_FILE_MAX + 1)), reason),
                     STDIO_BUS_EINVAL);
    ck_assert_str_eq(reason, "it is longer than 1048576 bytes");
    ck_assert_ptr_nonnull(find(&tokens, long_token));
    tokens_free(&tokens);
}

/* --- reading again --- */

/* A token that stays keeps its number; a new one, or one with another name, gets a new number. */
TEST(serial_numbers)
{
    struct tokens tokens = {.count = 0};
    char reason[TOKEN_REASON_MAX] = "";
    const char *path = write_file("ann:1\nbob:2\n");
    unsigned ann, bob;

    ck_assert_int_eq(tokens_read(&tokens, path, reason), STDIO_BUS_OK);
    ann = find(&tokens, "1")->serial;
    bob = find(&tokens, "2")->serial;
    ck_assert_uint_ne(ann, bob);
    rewrite(path, "carl:3\nann:1\neve:2\n");
    ck_assert(tokens_changed(&tokens, path));
    ck_assert_int_eq(tokens_read(&tokens, path, reason), STDIO_BUS_OK);
    ck_assert_uint_eq(find(&tokens, "1")->serial, ann);
    ck_assert(!tokens_has(&tokens, bob));
    ck_assert(tokens_has(&tokens, ann));
    ck_assert_uint_gt(find(&tokens, "2")->serial, bob);
    ck_assert_uint_gt(find(&tokens, "3")->serial, bob);
    tokens_free(&tokens);
}

/* A file that was just written may be written again and look the same: it counts as changed. */
TEST(changes_are_seen)
{
    struct tokens tokens = {.count = 0};
    char reason[TOKEN_REASON_MAX] = "";
    const char *path = write_file("a");

    ck_assert_int_eq(tokens_read(&tokens, path, reason), STDIO_BUS_OK);
    ck_assert(tokens.seen_young && tokens_changed(&tokens, path));
    tokens.seen_young = false;
    ck_assert(!tokens_changed(&tokens, path));
    ck_assert_int_eq(chmod(path, 0400), 0);
    ck_assert(tokens_changed(&tokens, path));
    ck_assert_int_eq(unlink(path), 0);
    ck_assert(tokens_changed(&tokens, path));
    tokens_free(&tokens);
}

/* The text of a JSON string, with its escapes. */
TEST(escaped_tokens)
{
    struct tokens tokens = {.count = 0};
    char reason[TOKEN_REASON_MAX] = "";

    ck_assert_int_eq(tokens_read(&tokens, write_file("a:x\"\nb:y\n"), reason), STDIO_BUS_OK);
    ck_assert_str_eq(tokens_find_escaped(&tokens, slice_of("\\u0078\\\"", 8))->name, "a");
    ck_assert_ptr_null(tokens_find_escaped(&tokens, slice_of("x", 1)));
    tokens_free(&tokens);
}
