/* Rules for the keys of an object of the configuration, as tables. */
#ifndef STDIO_BUS_CONFIG_RULES_H
#define STDIO_BUS_CONFIG_RULES_H

#include "base/slice.h"
#include "config/diagnostics.h"

typedef void rules_check_fn(struct diagnostics *diagnostics, const struct json_value *value);

/* The rule for a key, of one of four kinds: a word, which may have a check too, an integer, an
 * object with keys of its own, or a check. */
struct rule {
    const char *key;
    const char *const *words; /* the values; ends with NULL */
    int64_t min, max;         /* of an integer; max > 0 */
    const struct rule *members;
    size_t member_count;
    rules_check_fn *check;
    bool required;
    bool of_command;     /* decides which program is executed */
    size_t size, offset; /* of an integer: the member of a struct, for rules_apply */
};

/* Check one value. check_filled returns whether it is a string that is not empty. */
void rules_check_boolean(struct diagnostics *diagnostics, const struct json_value *value);
void rules_check_string(struct diagnostics *diagnostics, const struct json_value *value);
bool rules_check_filled(struct diagnostics *diagnostics, const struct json_value *value);

/* Checks the type, the members, and warns about the others. */
void rules_check_object(struct diagnostics *diagnostics, const struct json_value *value,
                        const struct rule *rules, size_t count);

/* Checks the members of an object. Returns false if a value that decides which program is executed
 * is wrong. */
bool rules_check_members(struct diagnostics *diagnostics, const struct json_value *object,
                         const struct rule *rules, size_t count);

/* Warns about each key without a rule and names the key that is likely to be meant. */
void rules_warn_unknown(struct diagnostics *diagnostics, const struct json_value *object,
                        const struct rule *rules, size_t count);

/* Puts the integers that a valid object has into their members of the struct at `to`. */
void rules_apply(void *to, const struct rule *rules, size_t count, const struct json_value *object);

#endif
