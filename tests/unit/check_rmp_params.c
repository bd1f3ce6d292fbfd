/* The overrides of submit --params in the text of an opening. What is expected was compared with
 * what a YAML reader makes of it. */
#include "build_config.h"

#include "cli/rmp_params.h"

#include "cli/rmp_params.c"
#include "cli/yaml_block.c"
#include "suite.h"

static const char *const overrides[] = {"to=Bob", "{\"n\":[1,\"a \\u00e9\"]}"};

#define TO "  \"to\": \"Bob\"\n"
#define N "  \"n\": [1, \"a \xc3\xa9\"]\n"

static const struct {
    const char *opening, *merged;
} openings[] = {
    {"name: a", "name: a\nparams:\n" TO N},
    {"%YAML 1.2\n--- \nname: a\n", "%YAML 1.2\n--- \nname: a\nparams:\n" TO N},
    {"---\nname: a\n...\n", "---\nname: a\nparams:\n" TO N "...\n"},
    {"params: ~ # none\nname: b\n", "params:\n" TO N "name: b\n"},
    {"params:\nname: b\n", "params:\n" TO N "name: b\n"},
    {"params: {\"k\": 1,\n \"to\": 2}\nz: 1\n", "params:\n  \"k\": 1\n" TO N "z: 1\n"},
    {"params:\n  # one\n  to: Ann # two\n\n  u: 2\n# end\nz: 1\n",
     "params:\n  # one\n" TO "\n  u: 2\n" N "# end\nz: 1\n"},
    {"params:\n  to: |\n    a: b\n\n    c\n  u: >-\n    x\nz: 1\n",
     "params:\n" TO "  u: >-\n    x\n" N "z: 1\n"},
    {"params:\n  to: \"a\n  b\"\n  'u': it's\nz: 1\n", "params:\n" TO "  'u': it's\n" N "z: 1\n"},
    {"params:\n  to:\n  - x\n  - y: 1\n  u: 1\n", "params:\n" TO "  u: 1\n" N},
    {"text: |\n  params:\n    to: no\nparams:\n  'to': no\n",
     "text: |\n  params:\n    to: no\nparams:\n" TO N},
    {"steps: [\n{a: 'x ]'}, # ]\n]\n", "steps: [\n{a: 'x ]'}, # ]\n]\nparams:\n" TO N},
    {"steps:\n- params: no\n- - a\n", "steps:\n- params: no\n- - a\nparams:\n" TO N},
    {"{\"name\": \"a\", \"params\": {\"to\": 1, \"k\": null}}",
     "\"name\": \"a\"\nparams:\n  \"k\": null\n" TO N},
    {"params:\r\n  to: 1\r\n  u: 2\r\n", "params:\r\n" TO "  u: 2\r\n" N},
};

static bool merge(struct json_text *text, const char *opening, char *problem)
{
    return rmp_params_merge(text, slice_of_text(opening), overrides, COUNT(overrides), problem);
}

TEST_ROWS(openings_are_merged, COUNT(openings))
{
    struct json_text text = {.data = NULL};
    char problem[RMP_PARAMS_PROBLEM_MAX];
    bool merged = merge(&text, openings[row].opening, problem);

    ck_assert_int_eq(merged, openings[row].merged != NULL);
    if (merged)
        ck_assert_str_eq(test_format("%.*s", (int)text.len, text.data), openings[row].merged);
    json_text_free(&text);
}

/* An opening that is cut anywhere is merged or refused, and not read beyond its end. */
TEST_ROWS(openings_that_are_cut_are_read_to_their_end, COUNT(openings))
{
    size_t whole = strlen(openings[row].opening);

    for (size_t len = 0; len < whole; len++) {
        struct json_text text = {.data = NULL};
        char problem[RMP_PARAMS_PROBLEM_MAX], *part = malloc(len + 1);

        ck_assert_ptr_nonnull(part);
        memcpy(part, openings[row].opening, len);
        part = realloc(part, len > 0 ? len : 1);
        (void)rmp_params_merge(&text, slice_of(part, len), overrides, COUNT(overrides), problem);
        json_text_free(&text);
        free(part);
    }
}

static const struct {
    const char *opening, *problem;
} refused[] = {
    {"", "the opening is no mapping"},
    {"# a\n", "the opening is no mapping"},
    {"- a\n", "the opening is no mapping"},
    {"a b\n", "the opening is no mapping"},
    {"params: [1]\n", "params of the opening is no mapping"},
    {"params: *a\n", "params of the opening is no mapping"},
    {"params: &a\n  to: 1\n", "params of the opening is no mapping"},
    {"params:\n- a\n", "params of the opening is no mapping"},
    {"params:\n  ? a\n  : 1\n", "params of the opening is no mapping"},
    {"params: {to: 1}\n", "params of the opening is in braces and no JSON"},
    {"{name: 1}", "the opening is in braces and no JSON"},
    {"{\"params\": 1}", "params of the opening is no mapping"},
};

TEST_ROWS(openings_are_refused, COUNT(refused))
{
    struct json_text text = {.data = NULL};
    char problem[RMP_PARAMS_PROBLEM_MAX];

    ck_assert(!merge(&text, refused[row].opening, problem));
    ck_assert_msg(strstr(problem, refused[row].problem) != NULL, "%s", problem);
    json_text_free(&text);
}
