/* The JSON Schema of the configuration, held against the parser: for each key that the schema
 * knows, files with many values are made, and both must agree about each of them. */
#include "build_config.h"

#include <regex.h>

#include "config/schema.h"
#include "config_fixture.h"
#include "json/document.h"

#define TEXT_MAX 65536

static struct document schema;
static struct json_text schema_text;

static void read_schema(void)
{
    struct document_error error;

    schema_add(&schema_text);
    ck_assert(!schema_text.failed);
    ck_assert_msg(document_read(&schema, json_text_slice(&schema_text), &error) == STDIO_BUS_OK,
                  "%zu: %s", error.at.line, error.text);
}

static void free_all(void)
{
    free_config();
    document_free(&schema);
    json_text_free(&schema_text);
}

/* --- a validator, for the words that the schema uses --- */

static bool conforms(const struct json_value *rule, const struct json_value *value);

/* What "$ref": "#/$defs/NAME" refers to; without a reference, the rule itself. */
static const struct json_value *referred(const struct json_value *rule)
{
    const struct json_value *ref = document_member(rule, "$ref");

    return ref == NULL ? rule
                       : document_member(document_member(schema.root, "$defs"),
                                         ref->text.data + strlen("#/$defs/"));
}

static bool has_type(const struct json_value *value, struct slice type)
{
    static const char *const names[] = {
        [JSON_BOOLEAN] = "boolean", [JSON_STRING] = "string", [JSON_ARRAY] = "array",
        [JSON_OBJECT] = "object",   [JSON_NUMBER] = "number", [JSON_NULL] = "null"};
    int64_t integer;

    if (slice_equal(type, slice_of("integer", 7)))
        return value->type == JSON_NUMBER && document_integer(value, &integer);
    return slice_equal(type, slice_of(names[value->type], strlen(names[value->type])));
}

static bool matches(const struct json_value *pattern, struct slice text)
{
    char copy[256];
    regex_t regex;
    bool found;

    ck_assert_uint_lt(text.len, sizeof copy);
    memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    ck_assert_int_eq(regcomp(&regex, pattern->text.data, REG_EXTENDED | REG_NOSUB), 0);
    found = regexec(&regex, copy, 0, NULL, 0) == 0;
    regfree(&regex);
    return found;
}

/* The rule for a member of an object; NULL: there is none. */
static const struct json_value *member_rule(const struct json_value *rule,
                                            const struct json_value *member)
{
    const struct json_value *properties = document_member(rule, "properties"), *found = NULL;
    const struct json_value *patterns = document_member(rule, "patternProperties");

    if (properties != NULL)
        found = document_member(properties, member->key.data);
    for (const struct json_value *p = patterns != NULL ? patterns->first : NULL; p != NULL;
         p = p->next) {
        struct json_value name = {.text = p->key};
        if (found == NULL && matches(&name, member->key))
            found = p;
    }
    return found != NULL ? found : document_member(rule, "additionalProperties");
}

static bool integer_conforms(const struct json_value *rule, const char *word, int sign, int64_t n)
{
    const struct json_value *bound = document_member(rule, word);
    int64_t limit;

    return bound == NULL || !document_integer(bound, &limit) || sign * (n - limit) <= 0;
}

static bool is_one_of(const struct json_value *words, const struct json_value *value)
{
    for (const struct json_value *word = words->first; word != NULL; word = word->next) {
        if (value->type == JSON_STRING && slice_equal(word->text, value->text))
            return true;
    }
    return false;
}

static bool conforms_to_any(const struct json_value *rules, const struct json_value *value)
{
    for (const struct json_value *rule = rules->first; rule != NULL; rule = rule->next) {
        if (conforms(rule, value))
            return true;
    }
    return false;
}

static bool children_conform(const struct json_value *rule, const struct json_value *value)
{
    const struct json_value *required = document_member(rule, "required"), *name, *child;

    for (name = required != NULL ? required->first : NULL; name != NULL; name = name->next) {
        if (value->type == JSON_OBJECT && document_member(value, name->text.data) == NULL)
            return false;
    }
    for (child = value->first; child != NULL; child = child->next) {
        const struct json_value *of = value->type == JSON_ARRAY ? document_member(rule, "items")
                                                                : member_rule(rule, child);
        if (of != NULL && !conforms(of, child))
            return false;
    }
    return true;
}

static bool conforms(const struct json_value *rule, const struct json_value *value)
{
    const struct json_value *type, *words, *any, *pattern;
    int64_t n = 0;

    if (rule->type == JSON_BOOLEAN)
        return rule->boolean;
    if (referred(rule) != rule && !conforms(referred(rule), value))
        return false;
    type = document_member(rule, "type");
    words = document_member(rule, "enum");
    any = document_member(rule, "anyOf");
    pattern = document_member(rule, "pattern");
    if ((type != NULL && !has_type(value, type->text)) ||
        (words != NULL && !is_one_of(words, value)) ||
        (any != NULL && !conforms_to_any(any, value)))
        return false;
    if (value->type == JSON_NUMBER && document_integer(value, &n))
        return integer_conforms(rule, "minimum", -1, n) && integer_conforms(rule, "maximum", 1, n);
    if (value->type == JSON_STRING)
        return integer_conforms(rule, "minLength", -1, (int64_t)value->text.len) &&
               integer_conforms(rule, "maxLength", 1, (int64_t)value->text.len) &&
               (pattern == NULL || matches(pattern, value->text));
    if (value->type == JSON_ARRAY &&
        (!integer_conforms(rule, "minItems", -1, (int64_t)value->count) ||
         !integer_conforms(rule, "maxItems", 1, (int64_t)value->count)))
        return false;
    return children_conform(rule, value);
}

/* --- configurations --- */

/* What the schema cannot know, or does not: the parser is stricter in these. */
static const struct {
    const char *path, *value;
} stricter[] = {
    {"pools.command", NULL},                /* exists */
    {"pools.cwd", NULL},                    /* exists */
    {"pools.env", NULL},                    /* names of variables */
    {"pools.url", NULL},                    /* a URL, and no command beside it */
    {"pools.headers", NULL},                /* of a url */
    {"pools.tls_command", NULL},            /* the same */
    {"pools.remote", NULL},                 /* without a command, and with "nats" */
    {"pools.overflow", NULL},               /* in an exclusive pool, with "nats" */
    {"pools.on_worker_exit", "\"replay\""}, /* needs mcp */
    {"limits.max_message", NULL},           /* beside max_input_buffer and max_memory */
    {"listen.group", NULL},                 /* exists */
    {"listen.allow_uids", NULL},
    {"listen.token_file", NULL},
    {"listen.pool", NULL},
    {"metrics", NULL},
    {"listen.unix", NULL}, /* as long as a path of a socket may be */
    {"listen.tcp", NULL},  /* a port, an address */
    {"listen.http", NULL},
    {"listen.origins", NULL}, /* origins, and so on */
    {"listen.hosts", NULL},
    {"listen.routes", NULL},
    {"listen.oauth.resource", NULL},
    {"listen.oauth.authorization_servers", NULL},
    {"listen.oauth.scopes", NULL},
    {"rmp.ui_uids", NULL},
    {"rmp.socket_path", NULL}, /* an absolute path */
    {"rmp.sockets_dir", NULL},
    {"rmp.schemas.id", NULL},   /* of no other schema */
    {"rmp.schemas.type", NULL}, /* a family of RMP */
    {"include", NULL},          /* no file includes here */
#ifndef HAVE_NO_NEW_PRIVS
    {"pools.no_new_privs", "true"},
#endif
};

static bool parser_is_stricter(const char *path, const char *value)
{
    for (size_t i = 0; i < COUNT(stricter); i++) {
        if (strcmp(stricter[i].path, path) == 0 &&
            (stricter[i].value == NULL || strcmp(stricter[i].value, value) == 0))
            return true;
    }
    return false;
}

/* Writes a configuration with the value at the path. */
static void write_config(char text[TEXT_MAX], const char *path, const char *value)
{
    static const char pool[] = "\"id\": \"a\", \"command\": \"sh\", \"instances\": 1";
    const char *key = strrchr(path, '.');
    char rest[256] = "";

    if (strncmp(path, "pools.rmp.", 10) == 0) {
        snprintf(text, TEXT_MAX, "{\"pools\": [{%s, \"rmp\": {\"%s\": %s}}], \"rmp\": {}}", pool,
                 path + 10, value);
    } else if (strncmp(path, "pools.", 6) == 0) {
        for (const char *at = pool; at != NULL; at = strchr(at, ',') + 2) { /* but for that key */
            size_t len = strcspn(at, ",");
            if (strncmp(at + 1, key + 1, strlen(key + 1)) != 0)
                snprintf(rest + strlen(rest), sizeof rest - strlen(rest), "%.*s, ", (int)len, at);
            if (at[len] == '\0')
                break;
        }
        snprintf(text, TEXT_MAX, "{\"pools\": [{%s\"%s\": %s}]%s}", rest, key + 1, value,
                 strcmp(path, "pools.rmp") == 0 ? ", \"rmp\": {}" : "");
    } else if (strncmp(path, "rmp.schemas.", 12) == 0) {
        bool is_id = strcmp(key, ".id") == 0;
        snprintf(text, TEXT_MAX, "{\"rmp\": {\"schemas\": [{\"id\": %s, \"type\": %s}]}}",
                 is_id ? value : "4660", is_id ? "\"intent.my.thing.v1\"" : value);
    } else if (strncmp(path, "listen.oauth.", 13) == 0) {
        bool is_url = strcmp(key, ".resource") == 0;
        bool is_list = strcmp(key, ".authorization_servers") == 0;
        snprintf(text, TEXT_MAX, "{\"pools\": [{%s}], \"listen\": {\"oauth\": {%s%s \"%s\": %s}}}",
                 pool, is_url ? "" : "\"resource\": \"https://a\",",
                 is_list ? "" : "\"authorization_servers\": [\"https://b\"],", key + 1, value);
    } else if (key != NULL) {
        snprintf(text, TEXT_MAX, "{\"pools\": [{%s}], \"%.*s\": {\"%s\": %s}}", pool,
                 (int)(key - path), path, key + 1, value);
    } else if (strcmp(path, "pools") == 0) {
        snprintf(text, TEXT_MAX, "{\"pools\": %s}", value);
    } else {
        snprintf(text, TEXT_MAX, "{\"pools\": [{%s}], \"%s\": %s}", pool, path, value);
    }
}

/* A warning counts if it is about a key that is unknown. */
static bool parser_takes(const char *text)
{
    int status;

    free_config();
    status = config_read_text(&config, text, strlen(text), "c.json", note_report, reports);
    return status == STDIO_BUS_OK && strstr(reports, "unknown key") == NULL;
}

static void expect_agreement(const char *path, const char *value)
{
    static char text[TEXT_MAX];
    struct document document;
    struct document_error error;
    bool by_schema, by_parser;

    write_config(text, path, value);
    ck_assert_msg(document_read(&document, slice_of(text, strlen(text)), &error) == STDIO_BUS_OK,
                  "%s", text);
    by_schema = conforms(schema.root, document.root);
    document_free(&document);
    by_parser = parser_takes(text);
    if (by_schema && !by_parser && parser_is_stricter(path, value))
        return;
    ck_assert_msg(by_schema == by_parser, "the schema says %d: %s\n%s", by_schema, text, reports);
}

/* --- the walk --- */

static void try_number(const char *path, const struct json_value *rule, const char *word,
                       int beside)
{
    const struct json_value *bound = document_member(rule, word);
    char value[32];
    int64_t number;

    if (bound == NULL || !document_integer(bound, &number))
        return;
    for (int by = -1; by <= 1; by++) {
        snprintf(value, sizeof value, "%lld", (long long)number + by * beside);
        expect_agreement(path, value);
    }
}

/* Values of each type, those at the bounds, and each word. */
static void try_values(const char *path, const struct json_value *rule)
{
    static const char *const any[] = {
        "null",       "true",        "false",   "\"x\"",      "\"\"",     "[]",
        "{}",         "[1]",         "[\"a\"]", "[{}]",       "[null]",   "{\"A\": \"b\"}",
        "{\"A\": 1}", "{\"_A\": 1}", "-1",      "0",          "1",        "2",
        "0.5",        "1e0",         "1e30",    "\"ndjson\"", "\"0640\"", "\"0440\"",
        "\"1000\"",   "\"\\u0000\""};
    const struct json_value *words = document_member(rule, "enum");
    char value[64];

    for (size_t i = 0; i < COUNT(any); i++) {
        if (strcmp(any[i], "\"\\u0000\"") != 0)
            expect_agreement(path, any[i]);
    }
    try_number(path, rule, "minimum", 1);
    try_number(path, rule, "maximum", 1);
    for (const struct json_value *word = words != NULL ? words->first : NULL; word != NULL;
         word = word->next) {
        snprintf(value, sizeof value, "\"%s\"", word->text.data);
        expect_agreement(path, value);
        snprintf(value, sizeof value, "\"%sx\"", word->text.data);
        expect_agreement(path, value);
    }
}

/* The rule for the objects that a value is, or that are in its array. */
static const struct json_value *objects_of(const struct json_value *rule)
{
    const struct json_value *items = document_member(rule, "items");
    const struct json_value *any = document_member(rule, "anyOf");

    if (any != NULL && document_member(any->first, "$ref") != NULL)
        return referred(any->first);
    return items != NULL ? items : rule;
}

static size_t walk(const char *path, const struct json_value *rule)
{
    const struct json_value *properties;
    size_t count = 1;

    if (path[0] != '\0')
        try_values(path, rule);
    properties = document_member(objects_of(rule), "properties");
    if (properties == NULL)
        return count;
    for (const struct json_value *key = properties->first; key != NULL; key = key->next) {
        char below[256];
        snprintf(below, sizeof below, "%s%s%s", path, path[0] != '\0' ? "." : "", key->key.data);
        count += walk(below, key);
        snprintf(below, sizeof below, "%s%s%sx", path, path[0] != '\0' ? "." : "", key->key.data);
        expect_agreement(below, "1"); /* a key that is misspelt */
    }
    return count;
}

TEST(schema_and_parser_agree)
{
    read_schema();
    ck_assert_uint_gt(walk("", schema.root), 60);
    free_all();
}

static const char *const lists[] = {
    "[]",
    "[{}]",
    "[7]",
    "{}",
    "{\"http\": \":0\"}",
    "[{\"unix\": \"/s\"}]",
    "[{\"unix\": \"/s\"}, {\"tcp\": \":0\", \"pool\": \"a\"}, {\"http\": \"unix:/h\"}]",
    "[{\"http\": \":0\", \"routes\": {\"/a\": \"a\"}}]",
    "[{\"http\": \":0\", \"routes\": {\"/a\": {\"pool\": \"a\", \"as\": \"rpc\"}}}]",
    "[{\"http\": \":0\", \"routes\": {\"/a\": {\"as\": \"rpc\"}}}]",
    "[{\"http\": \":0\", \"routes\": {\"/a\": {\"pool\": \"a\", \"as\": \"ftp\"}}}]",
    "[{\"http\": \":0\", \"rootes\": 1}]",
    "[{\"fd\": \"a\"}, {\"http\": \"fd:b\"}]",
};

TEST(schema_takes_a_list_of_listeners)
{
    read_schema();
    for (size_t i = 0; i < COUNT(lists); i++)
        expect_agreement("listen", lists[i]);
    free_all();
}

/* A file names its schema. */
TEST(schema_has_a_key)
{
    read_schema();
    expect_agreement("$schema", "\"stdio_bus.schema.json\"");
    expect_agreement("_comment", "[]");
    free_all();
}
