#include "build_config.h"

#include "share/identity.h"

#include "share/variables.h"
#include "suite.h"

static char *words[] = {(char *)"server", (char *)"an arg", NULL};
static char *variables[] = {(char *)"A=1", (char *)"HOME=/h", (char *)"TOKEN=s3cret", NULL};

static const struct identity_parts usual = {
    .words = words,
    .variables = variables,
    .directory = "/a b",
    .protocol = "mcp",
    .clients = "sticky",
    .mask = 022,
};

/* --- variables --- */

static void expect_selected(const char *const *inherited, const char *names,
                            const char *const *wanted)
{
    char **selected = variables_select((char *const *)(const void *)inherited, names);
    size_t i;

    ck_assert_ptr_nonnull(selected);
    for (i = 0; wanted[i] != NULL; i++)
        ck_assert_str_eq(selected[i], wanted[i]);
    ck_assert_ptr_null(selected[i]);
    free(selected);
}

TEST(test_variables_of_the_session_are_not_passed)
{
    const char *const inherited[] = {"Z=1",
                                     "TERM=vt100",
                                     "TERMINFO=/t",
                                     "SSH_TTY=x",
                                     "PWD=/",
                                     "_=/bin/sh",
                                     "VSCODE_PID=1",
                                     "SSH_AUTH_SOCK=/s",
                                     "TMUX=1",
                                     "TMUXP=2",
                                     "nonsense",
                                     "STDIO_BUS_LOG=x",
                                     "XDG_SEAT=a",
                                     "XDG_DATA_HOME=d",
                                     "=",
                                     "A=",
                                     NULL};
    const char *const wanted[] = {
        "=", "A=", "SSH_AUTH_SOCK=/s", "TERMINFO=/t", "TMUXP=2", "XDG_DATA_HOME=d", "Z=1", NULL};

    expect_selected(inherited, NULL, wanted);
}

TEST(test_variables_by_name)
{
    const char *const inherited[] = {"PATH=/p", "HOME=/h", "LC_ALL=C",         "AB=1", "A=2",
                                     "TERM=x",  "C=3",     "XDG_SESSION_ID=4", NULL};
    const char *const wanted[] = {"A=2", "HOME=/h", "LC_ALL=C", "PATH=/p", "TERM=x", NULL};

    expect_selected(inherited, "A,TERM", wanted);
    ck_assert_int_eq(variable_kind_of("A=2", "A,TERM"), VARIABLE_COUNTS);
    ck_assert_int_eq(variable_kind_of("HOME=/h", "A,TERM"), VARIABLE_COUNTS);
    ck_assert_int_eq(variable_kind_of("PATH=/p", "A,TERM"), VARIABLE_PASSED);
    ck_assert_int_eq(variable_kind_of("AB=1", "A,TERM"), VARIABLE_OF_HOST);
    ck_assert_int_eq(variable_kind_of("PATH=/p", NULL), VARIABLE_COUNTS);
}

/* --- the text --- */

TEST(test_identity_is_a_json_string_as_it_stands)
{
    char *odd[] = {(char *)"a\"b\\c%d\n\xff", NULL}, *none[] = {NULL};
    struct identity_parts parts = {.words = odd, .variables = none};
    char *identity = identity_write(&parts);

    ck_assert_ptr_nonnull(identity);
    ck_assert_ptr_nonnull(strstr(identity, "arg=a%22b%5Cc%25d%0A%FF "));
    for (const char *at = identity; *at != '\0'; at++)
        ck_assert(*at >= ' ' && *at < 0x7F && *at != '"' && *at != '\\');
    free(identity);
}

struct change {
    void (*apply)(struct identity_parts *parts);
    const char *difference;
};

static char *other_words[] = {(char *)"server", (char *)"an", (char *)"arg", NULL};
static char *more_variables[] = {(char *)"A=1", (char *)"A.B=2", (char *)"HOME=/h",
                                 (char *)"TOKEN=other", NULL};
static char *fewer_variables[] = {(char *)"HOME=/h", NULL};

static void nothing(struct identity_parts *parts)
{
    (void)parts;
}

static void command(struct identity_parts *parts)
{
    parts->words = other_words;
}

static void directory(struct identity_parts *parts)
{
    parts->directory = "/a";
}

static void any_directory(struct identity_parts *parts)
{
    parts->directory = NULL;
}

static void more(struct identity_parts *parts)
{
    parts->variables = more_variables;
}

static void fewer(struct identity_parts *parts)
{
    parts->variables = fewer_variables;
}

static void names(struct identity_parts *parts)
{
    parts->names = "A";
}

static void options(struct identity_parts *parts)
{
    parts->clients = "exclusive";
    parts->mask = 077;
}

static const struct change changes[] = {
    {nothing, ""},
    {command, "the command"},
    {directory, "the working directory"},
    {any_directory, "the working directory"},
    {more, "A.B, TOKEN"},
    {fewer, "A, TOKEN"},
    {names, "--env, TOKEN"},
    {options, "--clients, the umask"},
};

TEST_ROWS(test_identity_difference, COUNT(changes))
{
    const struct change *change = &changes[row];
    struct identity_parts parts = usual;
    char text[256];
    char *a = identity_write(&usual), *b, *hidden_a, *hidden_b;

    change->apply(&parts);
    b = identity_write(&parts);
    ck_assert(a != NULL && b != NULL);
    ck_assert_int_eq(strcmp(a, b) == 0, change->difference[0] == '\0');
    identity_difference(text, sizeof text, slice_of_text(a), slice_of_text(b));
    ck_assert_str_eq(text, change->difference);
    identity_difference(text, sizeof text, slice_of_text(b), slice_of_text(a));
    ck_assert_str_eq(text, change->difference);
    /* The same is seen without the values. */
    hidden_a = identity_hide(a);
    hidden_b = identity_hide(b);
    identity_difference(text, sizeof text, slice_of_text(hidden_a), slice_of_text(hidden_b));
    ck_assert_str_eq(text, change->difference);
    ck_assert_int_eq(identity_fits(slice_of_text(b), slice_of_text(a)), text[0] == '\0');
    ck_assert_ptr_null(strstr(hidden_a, "s3cret"));
    free(a);
    free(b);
    free(hidden_a);
    free(hidden_b);
}

/* --- variables that a client may leave out --- */

static char *with_display[] = {(char *)"A=1",    (char *)"DISPLAY=:0",   (char *)"HOME=/h",
                               (char *)"LANG=C", (char *)"TOKEN=s3cret", NULL};
static char *other_display[] = {(char *)"A=1", (char *)"DISPLAY=:1", (char *)"HOME=/h",
                                (char *)"TOKEN=s3cret", NULL};

static const struct {
    char **own, **wanted;
    const char *difference; /* what keeps the client from the server; "": it fits */
    const char *both;       /* what differs at all */
} machines[] = {
    {with_display, with_display, "", ""},
    {with_display, variables, "", "DISPLAY, LANG"},
    {variables, with_display, "DISPLAY, LANG", "DISPLAY, LANG"},
    {with_display, other_display, "DISPLAY", "DISPLAY, LANG"},
    {with_display, fewer_variables, "A, TOKEN", "A, DISPLAY, LANG, TOKEN"},
};

TEST_ROWS(test_identity_without_variables_of_the_machine, COUNT(machines))
{
    struct identity_parts own = usual, wanted = usual;
    char text[256], names[2][IDENTITY_NAME_MAX], *a, *b;

    own.variables = machines[row].own;
    wanted.variables = machines[row].wanted;
    a = identity_write(&own);
    b = identity_write(&wanted);
    ck_assert(a != NULL && b != NULL);
    ck_assert_int_eq(identity_fits(slice_of_text(b), slice_of_text(a)),
                     machines[row].difference[0] == '\0');
    identity_difference(text, sizeof text, slice_of_text(a), slice_of_text(b));
    ck_assert_str_eq(text, machines[row].difference);
    text[0] = '\0';
    identity_add_differences(text, sizeof text, slice_of_text(a), slice_of_text(b));
    ck_assert_str_eq(text, machines[row].both);
    identity_add_differences(text, sizeof text, slice_of_text(b), slice_of_text(a));
    ck_assert_str_eq(text, machines[row].both); /* each name once */
    /* The client looks for the server under the name that it has. */
    identity_name(names[0], a);
    identity_name(names[1], b);
    ck_assert_int_eq(strcmp(names[0], names[1]) == 0, machines[row].wanted != fewer_variables);
    free(a);
    free(b);
}

TEST(test_identity_texts_are_cut)
{
    char text[12], name[IDENTITY_NAME_MAX];
    char *identity = identity_write(&usual);
    struct slice none = slice_of("", 0);

    ck_assert_ptr_nonnull(identity);
    identity_difference(text, sizeof text, slice_of_text(identity), none);
    ck_assert_uint_lt(strlen(text), sizeof text);
    identity_command(text, sizeof text, slice_of_text(identity));
    ck_assert_str_eq(text, "server an a");
    identity_command(text, sizeof text, none);
    ck_assert_str_eq(text, "");
    identity_name(name, identity);
    ck_assert_uint_eq(strlen(name), 16);
    ck_assert_uint_eq(strspn(name, "0123456789abcdef"), 16);
    free(identity);
}

TEST(test_identity_words_are_those_of_the_command)
{
    static char *said[] = {(char *)"a b", (char *)"", (char *)"%\"\\\n\xff", NULL};
    struct identity_parts parts = usual;
    char *identity, to[512];
    struct slice rest;
    size_t len, i;

    parts.words = said;
    parts.directory = "/the home";
    identity = identity_write(&parts);
    ck_assert_ptr_nonnull(identity);
    rest = slice_of_text(identity);
    for (i = 0; said[i] != NULL; i++) {
        ck_assert(identity_take_word(to, &len, &rest));
        ck_assert(slice_equal(slice_of(to, len), slice_of_text(said[i])));
    }
    ck_assert(!identity_take_word(to, &len, &rest));
    ck_assert(identity_directory(to, &len, slice_of_text(identity)));
    ck_assert(slice_equal(slice_of(to, len), slice_of_text("/the home")));
    free(identity);
    parts.directory = NULL;
    identity = identity_write(&parts);
    ck_assert(!identity_directory(to, &len, slice_of_text(identity)));
    free(identity);
}

/* What a stranger sends is no identity, and is compared all the same. */
TEST(test_identity_of_a_stranger)
{
    static const char *const texts[] = {" ", "env= ", "env ", "arg=% ", "arg=%4 ", "=", "env=A=1"};
    char *identity = identity_write(&usual);
    struct slice rest;
    char text[256];
    size_t i, len;

    for (i = 0; i < COUNT(texts); i++) {
        identity_difference(text, sizeof text, slice_of_text(identity), slice_of_text(texts[i]));
        ck_assert_str_ne(text, "");
        identity_difference(text, sizeof text, slice_of_text(texts[i]), slice_of_text(identity));
        ck_assert(!identity_fits(slice_of_text(texts[i]), slice_of_text(identity)));
        ck_assert(!identity_fits(slice_of_text(identity), slice_of_text(texts[i])));
        identity_command(text, sizeof text, slice_of_text(texts[i]));
        rest = slice_of_text(texts[i]);
        while (identity_take_word(text, &len, &rest))
            ck_assert_uint_le(len, strlen(texts[i]));
        free(identity_hide(texts[i]));
    }
    free(identity);
}
