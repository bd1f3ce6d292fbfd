/* The keys of an object of the configuration, as a table: what a value may be, where it is stored,
 * what a reload does with a change, and a sentence about it. The rules, the readers, the difference
 * of two configurations and the JSON Schema (config/schema.h) are made of it. */
#ifndef STDIO_BUS_CONFIG_KEYS_H
#define STDIO_BUS_CONFIG_KEYS_H

#include "base/slice.h"
#include "config/diagnostics.h"

enum key_kind {
    KEY_OTHER,   /* `check` alone knows, and `schema` says it all */
    KEY_BOOLEAN, /* stored as a bool */
    KEY_INTEGER, /* from min to max; stored in 4 or 8 bytes */
    KEY_WORD,    /* one of `words`; stored as its index plus min, in a bool or an enum */
    KEY_FRAMING, /* stored as a const struct framing * */
    KEY_TEXT,    /* of min to max bytes, 0: any number; stored as a char *, NULL if it is empty */
    KEY_TEXTS,   /* an array of strings, min: of the schema alone; stored as a char ** that ends
                  * with NULL */
    KEY_OBJECT,  /* of `members`; stored in a struct inside the struct */
    KEY_OBJECTS  /* an array of them: `check` checks them all */
};

/* What a reload does with a pool of which the key has changed. */
enum key_change {
    CHANGE_KEEPS,   /* the workers stay */
    CHANGE_PROGRAM, /* other workers */
    CHANGE_SHARING  /* another pool */
};

typedef void key_check_fn(struct diagnostics *diagnostics, const struct json_value *value);
struct key_table;

struct key {
    const char *name;
    const char *help; /* of the schema */
    enum key_kind kind;
    enum key_change change;
    bool required;
    bool of_command;     /* decides which program is executed */
    bool is_negated;     /* a boolean whose opposite is stored */
    bool has_default;    /* an integer: the schema names `standard` */
    key_check_fn *check; /* after the kind's own, if that was passed; before the members */
    bool (*is_right)(struct slice text); /* of KEY_TEXT and KEY_TEXTS; NULL: each text is */
    const char *wanted;                  /* reported unless is_right */
    const char *const *words;            /* ends with NULL */
    const struct key_table *members;
    int64_t min, max, standard;
    int use;             /* for what the key is, as the owner of the table has it */
    const char *schema;  /* further members of the schema, of KEY_TEXTS those of its items */
    size_t size, offset; /* the member of a struct; size 0: not stored by the table */
};

enum unknown_keys {
    UNKNOWN_SUGGESTS, /* a warning that names the key which is likely to be meant */
    UNKNOWN_WARNS,
    UNKNOWN_FAILS
};

struct key_table {
    const struct key *keys;
    size_t count;
    enum unknown_keys unknown;
    const char *help;   /* of the schema, where the key has none: one of several objects */
    const char *schema; /* further members of the schema of the object */
};

#define KEY_TABLE(array) .keys = (array), .count = sizeof(array) / sizeof((array)[0])

/* A row, with at least one further initializer. */
#define KEY_ROW(text, sentence, ...)                                                               \
    {                                                                                              \
        .name = (text), .help = (sentence), __VA_ARGS__                                            \
    }

/* The initializers of a key's place in a struct. */
#define KEY_AT(type, member)                                                                       \
    .size = sizeof(((type *)NULL)->member), .offset = offsetof(type, member)
#define KEY_POINTER_AT(type, member) .size = sizeof(void *), .offset = offsetof(type, member)

/* The schema of a text that is not empty, where `check` knows why. */
#define KEY_FILLED_SCHEMA "\"minLength\": 1"

/* The row of a key; NULL: it is unknown. */
const struct key *key_find(const struct key_table *table, struct slice name);

/* The index of the string `value` in a list of words, or -1. */
int key_word(const struct json_value *value, const char *const *words);

/* Checks whether a value is a string that is not empty. */
bool key_check_filled(struct diagnostics *diagnostics, const struct json_value *value);

/* Checks the type, the members, and reports the others. */
void keys_check_object(struct diagnostics *diagnostics, const struct json_value *value,
                       const struct key_table *table);

/* Checks the members of an object. Returns false if a value that decides which program is executed
 * is wrong. */
bool keys_check_members(struct diagnostics *diagnostics, const struct json_value *object,
                        const struct key_table *table);

/* Reports each key that is not in the table. */
void keys_check_unknown(struct diagnostics *diagnostics, const struct json_value *object,
                        const struct key_table *table);

/* Stores what a valid object has, except texts; the rest of the struct at `to` stays. */
void keys_apply(void *to, const struct key_table *table, const struct json_value *object);

/* Stores copies of the texts of a valid object. False: out of memory; keys_free in any case. */
bool keys_copy(void *to, const struct key_table *table, const struct json_value *object);

/* Whether two structs differ in a key with this change. */
bool keys_differ(const void *before, const void *after, const struct key_table *table,
                 enum key_change change);

/* Whether two texts differ; each may be NULL. */
bool key_texts_differ(const char *before, const char *after);

/* Frees the texts of a struct. */
void keys_free(void *of, const struct key_table *table);

#endif
