#include "build_config.h"

#include "config/schema.h"

#include <stdio.h>
#include <string.h>

#include "config/config.h"

/* --- JSON in lines --- */

/* Objects and arrays, none of which is empty, with a line for each member. */
struct lines {
    struct json_text *to;
    unsigned depth;
    bool in_string, escaped;
};

static void add_char(struct lines *lines, char c)
{
    json_text_add(lines->to, slice_of(&c, 1));
}

static void begin_line(struct lines *lines)
{
    add_char(lines, '\n');
    for (unsigned i = 0; i < lines->depth; i++)
        add_char(lines, ' ');
}

static void add_mark(struct lines *lines, char c)
{
    if (c == ' ')
        return;
    if (c == '}' || c == ']') {
        lines->depth--;
        begin_line(lines);
    }
    add_char(lines, c);
    if (c == '{' || c == '[')
        lines->depth++;
    if (c == '{' || c == '[' || c == ',')
        begin_line(lines);
    else if (c == ':')
        add_char(lines, ' ');
}

/* Adds a piece of JSON, which may have blanks anywhere. */
static void add_json(struct lines *lines, const char *json)
{
    for (; *json != '\0'; json++) {
        if (!lines->in_string)
            add_mark(lines, *json);
        else
            add_char(lines, *json);
        if (*json == '"' && !lines->escaped)
            lines->in_string = !lines->in_string;
        lines->escaped = *json == '\\' && !lines->escaped;
    }
}

/* Adds a string of ASCII in quotes. */
static void add_string(struct lines *lines, const char *text)
{
    add_json(lines, "\"");
    for (; *text != '\0'; text++) {
        if (*text == '"')
            add_char(lines, '\\');
        add_char(lines, *text);
    }
    add_json(lines, "\"");
}

static void add_integer(struct lines *lines, const char *member, int64_t integer)
{
    char text[48];

    (void)snprintf(text, sizeof text, ",\"%s\":%lld", member, (long long)integer);
    add_json(lines, text);
}

/* --- kinds --- */

/* The members that the values of a kind have, and what its bounds are called there. */
static const struct {
    const char *members, *min, *max;
} kinds[] = {
    [KEY_BOOLEAN] = {.members = ",\"type\":\"boolean\""},
    [KEY_INTEGER] = {.members = ",\"type\":\"integer\"", .min = "minimum", .max = "maximum"},
    [KEY_TEXT] = {.members = ",\"type\":\"string\"", .min = "minLength", .max = "maxLength"},
    [KEY_TEXTS] = {.members = ",\"type\":\"array\"", .min = "minItems"},
    [KEY_OBJECTS] = {.members = ",\"type\":\"array\"", .min = "minItems"},
};

/* Only an integer has a bound that is 0. */
static void add_bound(struct lines *lines, const struct key *key, const char *member, int64_t bound)
{
    if (member != NULL && (key->kind == KEY_INTEGER || bound > 0))
        add_integer(lines, member, bound);
}

/* The word of this index that the key may be, or NULL. */
static const char *word_at(const struct key *key, size_t index)
{
    const struct framing *framing;

    if (key->kind == KEY_WORD)
        return key->words[index];
    framing = framing_at(index);
    return framing != NULL ? framing->name : NULL;
}

static void add_words(struct lines *lines, const struct key *key)
{
    const char *word;

    add_json(lines, ",\"enum\":[");
    for (size_t i = 0; (word = word_at(key, i)) != NULL; i++) {
        add_json(lines, i > 0 ? "," : "");
        add_string(lines, word);
    }
    add_json(lines, "]");
}

static void add_object(struct lines *lines, const struct key_table *table);

static void add_described(struct lines *lines, const struct key_table *table)
{
    add_json(lines, "{\"description\":");
    add_string(lines, table->help);
    add_object(lines, table);
    add_json(lines, "}");
}

static void add_kind(struct lines *lines, const struct key *key)
{
    const char *further = key->schema != NULL ? key->schema : "";
    const char *before = key->schema != NULL ? "," : "";

    if (kinds[key->kind].members != NULL)
        add_json(lines, kinds[key->kind].members);
    add_bound(lines, key, kinds[key->kind].min, key->min);
    add_bound(lines, key, kinds[key->kind].max, key->max);
    if (key->kind == KEY_WORD || key->kind == KEY_FRAMING)
        add_words(lines, key);
    if (key->kind == KEY_TEXTS)
        add_json(lines, ",\"items\":{\"type\":\"string\"");
    add_json(lines, before);
    add_json(lines, further);
    add_json(lines, key->kind == KEY_TEXTS ? "}" : "");
    if (key->kind == KEY_OBJECT)
        add_object(lines, key->members);
    if (key->kind == KEY_OBJECTS) {
        add_json(lines, ",\"items\":");
        add_described(lines, key->members);
    }
}

/* --- keys --- */

static void add_help(struct lines *lines, const struct key *key)
{
    char text[160];

    if (key->has_default)
        (void)snprintf(text, sizeof text, "%s Default: %lld.", key->help, (long long)key->standard);
    add_json(lines, "\"description\":");
    add_string(lines, key->has_default ? text : key->help);
}

static void add_key(struct lines *lines, const struct key *key)
{
    add_string(lines, key->name);
    add_json(lines, ":{");
    add_help(lines, key);
    add_kind(lines, key);
    add_json(lines, "}");
}

static void add_required(struct lines *lines, const struct key_table *table)
{
    const char *before = ",\"required\":[";

    for (size_t i = 0; i < table->count; i++) {
        if (!table->keys[i].required)
            continue;
        add_json(lines, before);
        add_string(lines, table->keys[i].name);
        before = ",";
    }
    add_json(lines, before[1] == '\0' ? "]" : "");
}

/* The members of an object that has one already. A key without a sentence is read, and not meant to
 * be written. */
static void add_object(struct lines *lines, const struct key_table *table)
{
    const char *before = "";

    add_json(lines, ",\"type\":\"object\",\"properties\":{");
    for (size_t i = 0; i < table->count; i++) {
        if (table->keys[i].help == NULL)
            continue;
        add_json(lines, before);
        add_key(lines, &table->keys[i]);
        before = ",";
    }
    add_json(lines, "},\"patternProperties\":{\"^[_$]\":true},\"additionalProperties\":false");
    add_required(lines, table);
    if (table->schema != NULL) {
        add_json(lines, ",");
        add_json(lines, table->schema);
    }
}

void schema_add(struct json_text *text)
{
    struct lines lines = {.to = text};

    add_json(&lines, "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\","
                     "\"title\":\"stdio_bus.conf(5)\",\"description\":");
    add_string(&lines, config_keys.help);
    add_object(&lines, &config_keys);
    add_json(&lines, ",\"$defs\":{\"listener\":");
    add_described(&lines, &listen_keys);
    add_json(&lines, "}}");
    add_char(&lines, '\n');
}
