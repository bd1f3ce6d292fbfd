/* The reader of TOML for --import. */
#include "build_config.h"

#include "cli/toml.h"

#include "base/error.h"
#include "suite.h"

static struct toml toml;
static struct document_error error;

static void write_value(struct text *to, const struct json_value *value)
{
    const struct json_value *child;

    if (value->type == JSON_STRING)
        text_printf(to, "'%.*s'", (int)value->text.len, value->text.data);
    else if (value->type == JSON_NUMBER)
        text_printf(to, "%.*s", (int)value->text.len, value->text.data);
    else if (value->type == JSON_BOOLEAN)
        text_printf(to, "%s", value->boolean ? "true" : "false");
    else
        text_printf(to, value->type == JSON_ARRAY ? "[" : "{");
    for (child = value->first; child != NULL; child = child->next) {
        if (value->type == JSON_OBJECT)
            text_printf(to, "%.*s:", (int)child->key.len, child->key.data);
        write_value(to, child);
        if (child->next != NULL)
            text_printf(to, ",");
    }
    if (value->type == JSON_ARRAY || value->type == JSON_OBJECT)
        text_printf(to, value->type == JSON_ARRAY ? "]" : "}");
}

static const struct {
    const char *text, *values;
} documents[] = {
    {"", "{}"},
    {"# nothing\r\n\n  \t# more", "{}"},
    {"a = 1\nb=-0x1F # x\nc = 2026-11-24T10:00:00.5Z\nd = +inf",
     "{a:1,b:-0x1F,c:2026-11-24T10:00:00.5Z,d:+inf}"},
    {"a-b_1 = true\n\"c d\" = false\n'e.f' = nan\n\"\" = 0", "{a-b_1:true,c d:false,e.f:nan,:0}"},
    {"[a]\nb = 'x'\n[c . 'd.e']\nf = \"y\"\n[c]\ng = 1", "{a:{b:'x'},c:{d.e:{f:'y'},g:1}}"},
    {"a.b.c = 1\na.b.d = 2\na.e = 3", "{a:{b:{c:1,d:2},e:3}}"},
    {"a.b = 1\n[a.c]\nd = 2", "{a:{b:1,c:{d:2}}}"},
    {"[[a]]\nb = 1\n[a.c]\nd = 2\n[[a]]\n[[a.e]]", "{a:[{b:1,c:{d:2}},{e:[{}]}]}"},
    {"a = [ 1, # one\n\n 'two' ,\n\t[ ],]\n", "{a:[1,'two',[]]}"},
    {"a = { b = 1, c.d = [2], 'e' = {} }", "{a:{b:1,c:{d:[2]},e:{}}}"},
    {"a = \"\\b\\t\\n\\f\\r\\\"\\\\\\u00e9\\U0001F600\"",
     "{a:'\b\t\n\f\r\"\\\xC3\xA9\xF0\x9F\x98\x80'}"},
    {"a = 'C:\\x'\nb = \"\xE2\x82\xAC\t\"", "{a:'C:\\x',b:'\xE2\x82\xAC\t'}"},
    {"a = \"\"\"\nx\r\n \"\" y\\  \n\n  z\"\"\"", "{a:'x\n \"\" yz'}"},
    {"a = '''\r\n'x'''''", "{a:''x'''}"},
    {"a = \"\"\"\"\"\"\"\"\nb = ''", "{a:'\"\"',b:''}"},
    {"\xEF\xBB\xBF\x61 = 1", "{a:1}"},
};

TEST_ROWS(toml_is_read, COUNT(documents))
{
    const char *text = documents[row].text;
    struct text *values = test_text();
    int code = toml_read(&toml, slice_of(text, strlen(text)), &error);

    ck_assert_msg(code == STDIO_BUS_OK, "%zu:%zu: %s", error.at.line, error.at.column, error.text);
    write_value(values, toml.root);
    ck_assert_str_eq(values->data, documents[row].values);
    toml_free(&toml);
}

static const struct {
    const char *text, *where, *problem;
} refused[] = {
    {"a", "1:2 ", "expected = after a key, found the end of the file"},
    {"\xC3\xA9 = 1", "1:1 ", "expected a key"},
    {"a = 1\n\n  = 2", "3:3 ", "expected a key, found ="},
    {"a =\n", "1:4 ", "expected a value, found the end of the line"},
    {"'\xC3\xA9' = x", "1:7 ", "expected a value: text stands in quotes"},
    {"a = 1 2", "1:7 ", "expected the end of the line, found 2"},
    {"a = 'x\n'", "1:7 ", "a string has no end in its line"},
    {"a = \"\"\"x\n", "2:1 ", "a string has no end"},
    {"a = \"\\x\"", "1:6 ", "unknown escape"},
    {"a = \"\\ud800\"", "1:6 ", "no character has this escape"},
    {"a = \"\\u00g0\"", "1:6 ", "no character has this escape"},
    {"a = \"\x01\"", "1:6 ", "a string must be UTF-8 without controls"},
    {"a = \"\xFF\"", "1:6 ", "a string must be UTF-8 without controls"},
    {"# \xFF", "1:3 ", "expected a key"},
    {"\"\"\"a\nb\"\"\" = 1", "1:1 ", "a key is one line"},
    {"a = 1\na = 2", "2:1 ", "it is there twice"},
    {"[x]\n'a' = 1\na = 2", "3:1 x", "it is there twice"},
    {"[a]\n[a]", "2:2 ", "it is there twice"},
    {"[a]\n[[a]]", "2:3 ", "it is there twice, and no array of tables"},
    {"[[a]]\n[a]", "2:2 ", "it is there twice"},
    {"a.b = 1\n[a]", "2:2 ", "it is there twice"},
    {"[a.b]\n[a]\nb.c = 1", "3:1 a", "it is a table with a header of its own"},
    {"a = {}\na.b = 1", "2:1 ", "it is no table that can be added to"},
    {"a = 1\n[a.b]", "2:2 ", "it is no table that can be added to"},
    {"a = [1 2]", "1:8 ", "expected a comma or ], found 2"},
    {"a = [", "1:6 ", "expected a value, found the end of the file"},
    {"a = {b = 1,}", "1:12 ", "expected a key, found }"},
    {"a = {b = 1\n}", "1:11 ", "expected a comma or }, found the end of the line"},
    {"[a", "1:3 ", "expected ] after a name, found the end of the file"},
    {"[[a]", "1:5 ", "expected ]] after a name, found the end of the file"},
    {"a\r = 1", "1:2 ", "expected = after a key, found the end of the line"},
};

TEST_ROWS(toml_is_refused, COUNT(refused))
{
    const char *text = refused[row].text;
    char where[300];

    ck_assert_int_eq(toml_read(&toml, slice_of(text, strlen(text)), &error), STDIO_BUS_EINVAL);
    snprintf(where, sizeof where, "%zu:%zu %s", error.at.line, error.at.column, error.path);
    ck_assert_str_eq(error.text, refused[row].problem);
    ck_assert_str_eq(where, refused[row].where);
    toml_free(&toml);
}

TEST_ROWS(toml_has_a_depth, 3)
{
    static const char *const parts[] = {"[", "{a=", "a."};
    struct text *text = test_text();

    text_printf(text, "%s", row < 2 ? "a = " : "");
    for (int i = 0; i <= TOML_MAX_DEPTH; i++)
        text_printf(text, "%s", parts[row]);
    text_printf(text, "a = 1");
    ck_assert_int_eq(toml_read(&toml, slice_of(text->data, text->len), &error), STDIO_BUS_EINVAL);
    ck_assert_str_eq(error.text,
                     row < 2 ? "it is nested more than 64 levels deep" : "too many keys in a row");
    toml_free(&toml);
}
