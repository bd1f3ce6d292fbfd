#include "build_config.h"

#include "cli/import_writer.h"

#include <string.h>

#include "config/variable.h"

void import_add(struct json_output *out, const char *text)
{
    json_output_add(out, slice_of(text, strlen(text)));
}

void import_add_string(struct json_output *out, const char *text)
{
    json_output_string(out, slice_of(text, strlen(text)));
}

/* Begins a note about the server: the name, and the text. */
void import_note(struct import_writer *writer, const char *text)
{
    import_add_string(&writer->notes, writer->name);
    import_add(&writer->notes, ": ");
    import_add(&writer->notes, text);
}

/* --- variables in values --- */

/* The name of the variable that `name`, of "${name}", stands for. Clients have ${NAME},
 * ${NAME:-DEFAULT}, ${env:NAME} and, VS Code, ${userHome}. `otherwise` gets the default; its data
 * is NULL without one. */
static struct slice variable_of(struct slice name, struct slice *otherwise)
{
    const char *colon = memchr(name.data, ':', name.len);

    *otherwise = slice_of(NULL, 0);
    if (name.len > 4 && memcmp(name.data, "env:", 4) == 0)
        return slice_of(name.data + 4, name.len - 4);
    if (slice_equal(name, slice_of("userHome", 8)))
        return slice_of("HOME", 4);
    if (colon == NULL || colon + 1 == name.data + name.len || colon[1] != '-')
        return name;
    *otherwise = slice_of(colon + 2, name.len - (size_t)(colon + 2 - name.data));
    return slice_of(name.data, (size_t)(colon - name.data));
}

/* A text that is no variable: where the daemon replaces variables, "$$" stands for a "$". */
static void add_plain(struct json_output *out, struct slice text, enum import_use use)
{
    for (size_t i = 0; i < text.len; i++) {
        json_output_add(out, slice_of(text.data + i, 1));
        if (text.data[i] == '$' && use == USE_VARIABLE)
            import_add(out, "$");
    }
}

/* The length of "${" or, of opencode, "{env:" at the beginning of `text`, after which a name
 * follows; 0: there is none. */
static size_t opening_len(struct slice text)
{
    if (text.len > 1 && memcmp(text.data, "${", 2) == 0)
        return 2;
    return text.len > 5 && memcmp(text.data, "{env:", 5) == 0 ? 5 : 0;
}

/* Appends what "${NAME}" at the beginning of `text`, whose name begins at `at`, stands for. Returns
 * its length, or 0 if it stands for nothing that is known here. */
static size_t translate_variable(struct json_output *out, struct slice text, size_t at,
                                 enum import_use use)
{
    const char *end = memchr(text.data, '}', text.len), *value;
    struct slice name, otherwise;
    bool is_found;

    if (end == NULL)
        return 0;
    name = variable_of(slice_of(text.data + at, (size_t)(end - text.data) - at), &otherwise);
    is_found = variable_find(name, &value) == VARIABLE_FOUND;
    if (!is_found && otherwise.data == NULL)
        return 0;
    if (!is_found) {
        add_plain(out, otherwise, use);
    } else if (use == USE_VARIABLE) {
        import_add(out, "${");
        json_output_add(out, name);
        import_add(out, "}");
    } else {
        import_add(out, value);
    }
    return (size_t)(end - text.data) + 1;
}

/* Translates the text into writer->scratch. Returns false if it names something that is not known
 * here; that stays as it is. */
bool import_translate(struct import_writer *writer, struct slice text, enum import_use use)
{
    struct json_output *out = &writer->scratch;
    const char *home;
    bool known = true;

    out->len = 0;
    if (use == USE_PATH && text.len > 1 && memcmp(text.data, "~/", 2) == 0 &&
        variable_find(slice_of("HOME", 4), &home) == VARIABLE_FOUND) {
        import_add(out, home);
        text = slice_of(text.data + 1, text.len - 1);
    }
    while (text.len > 0) {
        size_t at = opening_len(text);
        size_t len = at > 0 ? translate_variable(out, text, at, use) : 0;

        known = known && (at == 0 || len > 0);
        if (len == 0) {
            add_plain(out, slice_of(text.data, 1), use);
            len = 1;
        }
        text = slice_of(text.data + len, text.len - len);
    }
    return known;
}

const char *import_remedy(struct slice text)
{
    static const struct {
        const char *word, *remedy;
    } placeholders[] = {
        {"${workspace", "the editor writes the folder there that is open: write its path"},
        {"${file", "the editor writes the path of the file there that is open: write its path"},
        {"${input:", "the editor asks for it: write the value"},
        {"${command:", "the editor runs a command for it: write the value"},
        {"${config:", "it is a setting of the editor: write the value"},
        {"{file:", "it is the content of a file: write the value"},
    };

    for (size_t i = 0; i < sizeof placeholders / sizeof placeholders[0]; i++) {
        if (strstr(text.data, placeholders[i].word) != NULL)
            return placeholders[i].remedy;
    }
    return NULL;
}

/* Notes what is not known here, and what becomes of it. */
void import_note_placeholder(struct import_writer *writer, const char *key, struct slice text,
                             const char *effect)
{
    const char *remedy = import_remedy(text);

    import_note(writer, key);
    import_add(&writer->notes, " holds ");
    json_output_string(&writer->notes, text);
    import_add(&writer->notes, effect);
    import_add(&writer->notes,
               remedy != NULL ? remedy : "write the value, or set the variable and import again");
    import_add(&writer->notes, "\n");
}
