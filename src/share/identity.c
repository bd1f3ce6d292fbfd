#include "build_config.h"

#include "share/identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/siphash.h"
#include "share/variables.h"

#define VARIABLE "env="
#define OF_MACHINE "any=" /* a variable, too; as long as VARIABLE */
#define WORD "arg="
#define DIRECTORY "directory="

/* --- writing --- */

/* Bytes that are counted first, and written then. */
struct writer {
    char *to; /* NULL: they are only counted */
    size_t len;
};

static void add_bytes(struct writer *out, const char *bytes, size_t len)
{
    if (out->to != NULL)
        memcpy(out->to + out->len, bytes, len);
    out->len += len;
}

static bool is_plain(char c)
{
    return c > ' ' && c < 0x7F && c != '"' && c != '\\' && c != '%';
}

static void add_field(struct writer *out, const char *name, const char *value)
{
    char escaped[4];

    if (value == NULL)
        return;
    add_bytes(out, name, strlen(name));
    for (; *value != '\0'; value++) {
        if (is_plain(*value)) {
            add_bytes(out, value, 1);
            continue;
        }
        snprintf(escaped, sizeof escaped, "%%%02X", (unsigned)(unsigned char)*value);
        add_bytes(out, escaped, 3);
    }
    add_bytes(out, " ", 1);
}

static void write_variable(struct writer *out, const char *entry, const char *names)
{
    enum variable_kind kind = variable_kind_of(entry, names);

    if (kind == VARIABLE_COUNTS || kind == VARIABLE_OF_MACHINE)
        add_field(out, kind == VARIABLE_COUNTS ? VARIABLE : OF_MACHINE, entry);
}

static void write_parts(struct writer *out, const struct identity_parts *parts)
{
    char mask[16];
    size_t i;

    snprintf(mask, sizeof mask, "%03o", parts->mask);
    add_field(out, "version=", PACKAGE_VERSION);
    add_field(out, "protocol=", parts->protocol);
    add_field(out, "clients=", parts->clients);
    add_field(out, "instances=", parts->instances);
    add_field(out, "framing=", parts->framing);
    add_field(out, "umask=", mask);
    add_field(out, DIRECTORY, parts->directory);
    add_field(out, "env-names=", parts->names);
    for (i = 0; parts->words[i] != NULL; i++)
        add_field(out, WORD, parts->words[i]);
    for (i = 0; parts->variables[i] != NULL; i++)
        write_variable(out, parts->variables[i], parts->names);
    add_bytes(out, "", 1);
}

char *identity_write(const struct identity_parts *parts)
{
    struct writer out = {.to = NULL};

    write_parts(&out, parts);
    out.to = malloc(out.len);
    out.len = 0;
    if (out.to != NULL)
        write_parts(&out, parts);
    return out.to;
}

/* --- hashes --- */

/* Not secret: what a name hides is only what differs. */
static uint64_t hash_of(const char *text, size_t len, uint64_t which)
{
    const struct siphash_key key = {UINT64_C(0x7374646962757321), which};

    return siphash(&key, text, len);
}

/* --- reading --- */

/* Takes the first field, without its blank, off the text. False: there is none. */
static bool take_field(struct slice *text, struct slice *field)
{
    const char *blank = text->len > 0 ? memchr(text->data, ' ', text->len) : NULL;

    if (blank == NULL)
        return false;
    *field = slice_of(text->data, (size_t)(blank - text->data));
    *text = slice_of(blank + 1, text->len - field->len - 1);
    return true;
}

static bool begins(struct slice field, const char *with)
{
    size_t len = strlen(with);

    return field.len >= len && memcmp(field.data, with, len) == 0;
}

static size_t name_len(struct slice field)
{
    const char *end = memchr(field.data, '=', field.len);

    return end != NULL ? (size_t)(end - field.data) : field.len;
}

/* The field without "env=" or "any=", and the value cut off. */
static struct slice variable_name(struct slice field)
{
    struct slice entry = slice_of(field.data + strlen(VARIABLE), field.len - strlen(VARIABLE));

    return slice_of(entry.data, name_len(entry));
}

static bool is_variable(struct slice field)
{
    return begins(field, VARIABLE) || begins(field, OF_MACHINE);
}

/* The hash of each field goes into the next. */
void identity_name(char to[IDENTITY_NAME_MAX], const char *identity)
{
    struct slice text = slice_of_text(identity), field;
    uint64_t hash = 0;

    while (take_field(&text, &field)) {
        if (!begins(field, OF_MACHINE))
            hash = hash_of(field.data, field.len, hash);
    }
    snprintf(to, IDENTITY_NAME_MAX, "%016llx", (unsigned long long)hash);
}

static void hide(struct writer *out, struct slice text)
{
    struct slice field, name;
    char hash[24];

    while (take_field(&text, &field)) {
        if (is_variable(field)) {
            name = variable_name(field);
            snprintf(hash, sizeof hash, "=%016llx",
                     (unsigned long long)hash_of(name.data, field.len - strlen(VARIABLE), 1));
            add_bytes(out, field.data, strlen(VARIABLE));
            add_bytes(out, name.data, name.len);
            add_bytes(out, hash, strlen(hash));
        } else {
            add_bytes(out, field.data, field.len);
        }
        add_bytes(out, " ", 1);
    }
    add_bytes(out, "", 1);
}

char *identity_hide(const char *identity)
{
    struct slice text = slice_of_text(identity);
    struct writer out = {.to = NULL};

    hide(&out, text);
    out.to = malloc(out.len);
    out.len = 0;
    if (out.to != NULL)
        hide(&out, text);
    return out.to;
}

/* --- comparing --- */

struct names {
    char *to;
    size_t size, len;
};

static bool has_name(const struct names *names, const char *shown)
{
    size_t len = strlen(shown);
    const char *at = names->to;

    while ((at = strstr(at, shown)) != NULL) {
        if ((at == names->to || at[-1] == ' ') && (at[len] == ',' || at[len] == '\0'))
            return true;
        at += len;
    }
    return false;
}

static void add_name(struct names *names, struct slice name)
{
    char shown[80];
    int n;

    log_escape(shown, sizeof shown, name);
    if (names->len + 1 >= names->size || shown[0] == '\0' || has_name(names, shown))
        return;
    n = snprintf(names->to + names->len, names->size - names->len, "%s%s",
                 names->len > 0 ? ", " : "", shown);
    if (n > 0)
        names->len += (size_t)n;
}

/* Takes the first field of a kind off the text; an empty one if there is none. */
static struct slice take_of(struct slice *text, const char *kind)
{
    struct slice field;

    while (take_field(text, &field)) {
        if (begins(field, kind))
            return field;
    }
    return slice_of("", 0);
}

static struct slice take_variable(struct slice *text)
{
    struct slice field;

    while (take_field(text, &field)) {
        if (is_variable(field))
            return field;
    }
    return slice_of("", 0);
}

static struct slice first_of(struct slice text, const char *kind)
{
    return take_of(&text, kind);
}

bool identity_same_command(struct slice a, struct slice b)
{
    struct slice x, y;

    do {
        x = take_of(&a, WORD);
        y = take_of(&b, WORD);
    } while (x.len > 0 && slice_equal(x, y));
    return x.len == 0 && y.len == 0;
}

/* Whether `a` is before `b` in the order of the entries. An empty one is after all. */
static int compare_names(struct slice a, struct slice b)
{
    struct slice x, y;
    int order;

    if (a.len == 0 || b.len == 0)
        return (a.len == 0) - (b.len == 0);
    x = variable_name(a);
    y = variable_name(b);
    order = memcmp(x.data, y.data, x.len < y.len ? x.len : y.len);
    if (order != 0 || x.len == y.len)
        return order;
    /* As the entries are sorted, with their '=' and in the longer name a byte that may be less. */
    return x.len < y.len ? '=' - (unsigned char)y.data[x.len] : (unsigned char)x.data[y.len] - '=';
}

/* With `fits`, what `b` may leave out is no difference. */
static void compare_variables(struct names *names, struct slice a, struct slice b, bool fits)
{
    struct slice x = take_variable(&a), y = take_variable(&b);

    while (x.len > 0 || y.len > 0) {
        int order = compare_names(x, y);

        if (!slice_equal(x, y) && !(fits && order < 0 && begins(x, OF_MACHINE)))
            add_name(names, variable_name(order <= 0 ? x : y));
        if (order <= 0)
            x = take_variable(&a);
        if (order >= 0)
            y = take_variable(&b);
    }
}

static void compare(struct names *names, struct slice a, struct slice b, bool fits)
{
    static const struct {
        const char *field, *name;
    } fields[] = {
        {"version=", "the version of stdio_bus"},
        {"protocol=", "--protocol"},
        {"clients=", "--clients"},
        {"instances=", "--instances"},
        {"framing=", "--worker-framing"},
        {"umask=", "the umask"},
        {DIRECTORY, IDENTITY_DIRECTORY},
        {"env-names=", "--env"},
    };
    size_t i;

    if (!identity_same_command(a, b))
        add_name(names, slice_of_text("the command"));
    for (i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (!slice_equal(first_of(a, fields[i].field), first_of(b, fields[i].field)))
            add_name(names, slice_of_text(fields[i].name));
    }
    compare_variables(names, a, b, fits);
}

void identity_difference(char *to, size_t size, struct slice own, struct slice wanted)
{
    struct names names = {.to = to, .size = size};

    to[0] = '\0';
    compare(&names, own, wanted, true);
}

void identity_add_differences(char *to, size_t size, struct slice a, struct slice b)
{
    struct names names = {.to = to, .size = size, .len = strlen(to)};

    compare(&names, a, b, false);
}

bool identity_fits(struct slice wanted, struct slice own)
{
    struct slice x = slice_of("", 0), y;
    bool more, own_more;

    do {
        more = take_field(&wanted, &x);
        do
            own_more = take_field(&own, &y);
        while (own_more && begins(y, OF_MACHINE) && !(more && slice_equal(x, y)));
    } while (more && own_more && slice_equal(x, y));
    return !more && !own_more && wanted.len == 0 && own.len == 0;
}

/* --- for people --- */

static unsigned hex(char c)
{
    return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'A' + 10);
}

/* Takes the first byte, as it was written, off the value of a field. */
static char take_byte(struct slice *value)
{
    size_t len = value->len > 2 && value->data[0] == '%' ? 3 : 1;
    char c = value->data[0];

    if (len == 3)
        c = (char)(hex(value->data[1]) << 4 | hex(value->data[2]));
    *value = slice_of(value->data + len, value->len - len);
    return c;
}

static struct slice value_of(struct slice field, const char *kind)
{
    return slice_of(field.data + strlen(kind), field.len - strlen(kind));
}

static size_t decode(char *to, struct slice value)
{
    size_t len = 0;

    while (value.len > 0)
        to[len++] = take_byte(&value);
    return len;
}

bool identity_take_word(char *to, size_t *len, struct slice *rest)
{
    struct slice field = take_of(rest, WORD);

    if (field.len == 0)
        return false;
    *len = decode(to, value_of(field, WORD));
    return true;
}

bool identity_directory(char *to, size_t *len, struct slice identity)
{
    struct slice field = first_of(identity, DIRECTORY);

    if (field.len == 0)
        return false;
    *len = decode(to, value_of(field, DIRECTORY));
    return true;
}

void identity_command(char *to, size_t size, struct slice identity)
{
    struct slice word;
    size_t len = 0;

    to[0] = '\0';
    while ((word = take_of(&identity, WORD)).len > 0) {
        if (len > 0 && len + 1 < size)
            to[len++] = ' ';
        word = value_of(word, WORD);
        while (word.len > 0 && len + 1 < size) {
            char c = take_byte(&word);

            if ((unsigned char)c < ' ' || c == 0x7F)
                c = '?';
            to[len++] = c;
        }
        to[len] = '\0';
    }
}
