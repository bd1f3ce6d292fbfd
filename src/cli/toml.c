#include "build_config.h"

#include "cli/toml.h"

#include <stdlib.h>

#include "base/error.h"
#include "cli/toml_text.h"

/* How a table or array came to be, which decides about what may be added to it. */
enum origin {
    ORIGIN_IMPLIED, /* a table before a dot of a header: it may be defined later */
    ORIGIN_DOTTED,  /* the same, of a key */
    ORIGIN_HEADER,  /* [table], or an element of [[tables]] */
    ORIGIN_TABLES,  /* the array of [[tables]] */
    ORIGIN_VALUE    /* the value of a key: nothing is added */
};

struct toml_node {
    struct json_value value;
    struct toml_node *next; /* in toml->nodes */
    struct json_value *last;
    enum origin origin;
    char *key, *text; /* decoded; NULL: there is none */
};

struct reader {
    struct toml_text text;
    struct toml *toml;
    struct json_value *table; /* of the last header */
    unsigned depth;
};

static struct toml_node *node_of(struct json_value *value)
{
    return (struct toml_node *)value;
}

/* --- the tree --- */

/* A key that is owned by the node from now on. NULL: out of memory, and the key was freed. */
static struct json_value *add_value(struct reader *reader, struct json_value *parent,
                                    struct toml_key *key)
{
    struct toml_node *node = calloc(1, sizeof *node);
    struct json_value *value;

    if (node == NULL) {
        free(key->text);
        key->text = NULL;
        reader->text.code = STDIO_BUS_ERR;
        return NULL;
    }
    value = &node->value;
    node->key = key->text;
    key->text = NULL;
    value->key = slice_of(node->key, key->len);
    value->at = value->key_at = key->at;
    value->parent = parent;
    node->next = reader->toml->nodes;
    reader->toml->nodes = node;
    if (parent == NULL)
        return value;
    value->index = parent->count++;
    if (parent->first == NULL)
        parent->first = value;
    else
        node_of(parent)->last->next = value;
    node_of(parent)->last = value;
    return value;
}

static struct json_value *find(const struct json_value *table, const struct toml_key *key)
{
    struct json_value *value = table->first;

    while (value != NULL && !slice_equal(value->key, slice_of(key->text, key->len)))
        value = value->next;
    return value;
}

/* The error is at the key, in the table. */
static void refuse_key(struct reader *reader, const struct json_value *table,
                       const struct toml_key *key, const char *problem)
{
    toml_text_fail(&reader->text, key->at, "%s", problem);
    document_path(reader->text.error->path, DOCUMENT_PATH_MAX, table);
}

static struct json_value *new_table(struct reader *reader, struct json_value *parent,
                                    struct toml_key *key, enum origin origin)
{
    struct json_value *table = add_value(reader, parent, key);

    if (table == NULL)
        return NULL;
    table->type = JSON_OBJECT;
    node_of(table)->origin = origin;
    return table;
}

/* The table of the key before a dot, which may be the last one of an array of them; a new one has
 * this origin. A table of another origin gets no dotted keys. NULL: there is an error. Frees the
 * key. */
static struct json_value *enter(struct reader *reader, struct json_value *table,
                                struct toml_key *key, enum origin origin)
{
    struct json_value *found = find(table, key);
    enum origin was;

    if (found == NULL)
        return new_table(reader, table, key, origin);
    was = node_of(found)->origin;
    if (was == ORIGIN_VALUE)
        refuse_key(reader, table, key, "it is no table that can be added to");
    else if (origin == ORIGIN_DOTTED && was != ORIGIN_DOTTED)
        refuse_key(reader, table, key, "it is a table with a header of its own");
    else if (was == ORIGIN_TABLES)
        found = node_of(found)->last;
    free(key->text);
    key->text = NULL;
    return reader->text.code == STDIO_BUS_OK ? found : NULL;
}

/* Reads a path of keys. *key is the last one, which the caller frees or uses, and the result the
 * table that it is in. NULL: there is an error. */
static struct json_value *take_path(struct reader *reader, struct json_value *table,
                                    struct toml_key *key, enum origin origin)
{
    unsigned depth = 0;

    while (toml_text_key(&reader->text, key)) {
        toml_text_blanks(&reader->text);
        if (!toml_text_take(&reader->text, '.'))
            return table;
        toml_text_blanks(&reader->text);
        if (++depth > TOML_MAX_DEPTH) {
            refuse_key(reader, table, key, "too many keys in a row");
            free(key->text);
            return NULL;
        }
        table = enter(reader, table, key, origin);
        if (table == NULL)
            return NULL;
    }
    return NULL;
}

/* --- values --- */

static void take_value(struct reader *reader, struct json_value *value);

static void take_string_value(struct reader *reader, struct json_value *value)
{
    struct toml_node *node = node_of(value);
    size_t len;

    value->type = JSON_STRING;
    if (toml_text_string(&reader->text, &node->text, &len))
        value->text = slice_of(node->text, len);
}

static void take_array(struct reader *reader, struct json_value *array)
{
    struct toml_text *text = &reader->text;

    array->type = JSON_ARRAY;
    text->p++;
    for (toml_text_space(text); text->code == STDIO_BUS_OK && !toml_text_take(text, ']');
         toml_text_space(text)) {
        struct toml_key none = {.text = NULL, .at = toml_text_place(text)};
        struct json_value *value = add_value(reader, array, &none);

        if (value == NULL)
            return;
        take_value(reader, value);
        toml_text_space(text);
        if (text->code == STDIO_BUS_OK && !toml_text_take(text, ',') &&
            (text->p == text->end || *text->p != ']'))
            toml_text_expected(text, "a comma or ]");
    }
}

/* key = value */
static void take_pair(struct reader *reader, struct json_value *table)
{
    struct toml_text *text = &reader->text;
    struct toml_key key = {.text = NULL};
    struct json_value *within = take_path(reader, table, &key, ORIGIN_DOTTED), *value;

    if (within == NULL)
        return;
    if (find(within, &key) != NULL)
        refuse_key(reader, within, &key, "it is there twice");
    else if (!toml_text_take(text, '='))
        toml_text_expected(text, "= after a key");
    if (text->code != STDIO_BUS_OK) {
        free(key.text);
        return;
    }
    value = add_value(reader, within, &key);
    if (value == NULL)
        return;
    toml_text_blanks(text);
    take_value(reader, value);
}

static void take_inline_table(struct reader *reader, struct json_value *table)
{
    struct toml_text *text = &reader->text;

    table->type = JSON_OBJECT;
    text->p++;
    toml_text_blanks(text);
    if (toml_text_take(text, '}'))
        return;
    do {
        toml_text_blanks(text);
        take_pair(reader, table);
        toml_text_blanks(text);
    } while (text->code == STDIO_BUS_OK && toml_text_take(text, ','));
    if (text->code == STDIO_BUS_OK && !toml_text_take(text, '}'))
        toml_text_expected(text, "a comma or }");
}

/* A number, a date, true or false. */
static void take_word(struct reader *reader, struct json_value *value)
{
    struct slice word = toml_text_word(&reader->text);

    value->type = JSON_NUMBER;
    value->text = word;
    if (slice_is(word, "true") || slice_is(word, "false")) {
        value->type = JSON_BOOLEAN;
        value->boolean = word.len == 4;
    }
}

static void take_value(struct reader *reader, struct json_value *value)
{
    struct toml_text *text = &reader->text;
    char first = toml_text_next(text);

    value->at = toml_text_place(text);
    if (first == '"' || first == '\'') {
        take_string_value(reader, value);
    } else if (first != '[' && first != '{') {
        take_word(reader, value);
    } else if (++reader->depth > TOML_MAX_DEPTH) {
        toml_text_fail(text, value->at, "it is nested more than %d levels deep", TOML_MAX_DEPTH);
    } else {
        if (first == '[')
            take_array(reader, value);
        else
            take_inline_table(reader, value);
        reader->depth--;
    }
    node_of(value)->origin = ORIGIN_VALUE;
}

/* --- lines --- */

/* [table] */
static void define_table(struct reader *reader, struct json_value *within, struct toml_key *key)
{
    struct json_value *table = find(within, key);

    if (table == NULL) {
        table = new_table(reader, within, key, ORIGIN_HEADER);
    } else if (node_of(table)->origin == ORIGIN_IMPLIED) {
        node_of(table)->origin = ORIGIN_HEADER;
        free(key->text);
    } else {
        refuse_key(reader, within, key, "it is there twice");
        free(key->text);
    }
    reader->table = table;
}

/* [[tables]] */
static void add_element(struct reader *reader, struct json_value *within, struct toml_key *key)
{
    struct json_value *array = find(within, key);
    struct toml_key none = {.text = NULL, .at = key->at};

    if (array == NULL) {
        array = add_value(reader, within, key);
        if (array == NULL)
            return;
        array->type = JSON_ARRAY;
        node_of(array)->origin = ORIGIN_TABLES;
    } else {
        if (node_of(array)->origin != ORIGIN_TABLES)
            refuse_key(reader, within, key, "it is there twice, and no array of tables");
        free(key->text);
    }
    if (reader->text.code == STDIO_BUS_OK)
        reader->table = new_table(reader, array, &none, ORIGIN_HEADER);
}

static void take_header(struct reader *reader)
{
    struct toml_text *text = &reader->text;
    struct toml_key key = {.text = NULL};
    struct json_value *within;
    bool is_element;

    text->p++;
    is_element = toml_text_take(text, '[');
    toml_text_blanks(text);
    within = take_path(reader, reader->toml->root, &key, ORIGIN_IMPLIED);
    if (within == NULL)
        return;
    if (!toml_text_take(text, ']') || (is_element && !toml_text_take(text, ']'))) {
        toml_text_expected(text, is_element ? "]] after a name" : "] after a name");
        free(key.text);
    } else if (is_element) {
        add_element(reader, within, &key);
    } else {
        define_table(reader, within, &key);
    }
}

static void take_lines(struct reader *reader)
{
    struct toml_text *text = &reader->text;

    for (toml_text_space(text); text->code == STDIO_BUS_OK && text->p < text->end;
         toml_text_space(text)) {
        if (*text->p == '[')
            take_header(reader);
        else
            take_pair(reader, reader->table);
        if (text->code == STDIO_BUS_OK)
            toml_text_line_end(text);
    }
}

int toml_read(struct toml *toml, struct slice source, struct document_error *error)
{
    struct reader reader = {.toml = toml};
    struct toml_key none = {.text = NULL, .at = {1, 1}};

    *toml = (struct toml){.root = NULL};
    toml_text_open(&reader.text, source, error);
    toml->root = reader.table = new_table(&reader, NULL, &none, ORIGIN_HEADER);
    if (reader.text.code == STDIO_BUS_OK)
        take_lines(&reader);
    return reader.text.code;
}

void toml_free(struct toml *toml)
{
    struct toml_node *node = toml->nodes, *next;

    for (; node != NULL; node = next) {
        next = node->next;
        free(node->key);
        free(node->text);
        free(node);
    }
    *toml = (struct toml){.root = NULL};
}
