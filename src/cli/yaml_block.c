#include "build_config.h"

#include "cli/yaml_block.h"

#include <stdbool.h>

/* --- characters and lines --- */

static bool is_break(struct slice text, size_t at)
{
    return at >= text.len || text.data[at] == '\n' || text.data[at] == '\r';
}

static bool is_blank(struct slice text, size_t at)
{
    return is_break(text, at) || text.data[at] == ' ' || text.data[at] == '\t';
}

static bool is_char(struct slice text, size_t at, char c)
{
    return at < text.len && text.data[at] == c;
}

/* A sign that stands alone: followed by white space or the end of the line. */
static bool is_sign(struct slice text, size_t at, char c)
{
    return is_char(text, at, c) && is_blank(text, at + 1);
}

static size_t skip_spaces(struct slice text, size_t at)
{
    while (is_char(text, at, ' ') || is_char(text, at, '\t'))
        at++;
    return at;
}

static size_t next_line(struct slice text, size_t at)
{
    while (at < text.len && text.data[at] != '\n')
        at++;
    return at < text.len ? at + 1 : at;
}

size_t yaml_block_line(struct slice text, size_t at, size_t *column)
{
    while (at < text.len) {
        size_t first = skip_spaces(text, at);

        *column = first - at;
        if (!is_break(text, first) && text.data[first] != '#')
            return at;
        at = next_line(text, at);
    }
    return text.len;
}

static bool is_marker(struct slice text, size_t at)
{
    return at + 3 <= text.len && is_blank(text, at + 3) &&
           (slice_is(slice_of(text.data + at, 3), "---") ||
            slice_is(slice_of(text.data + at, 3), "..."));
}

/* --- values --- */

static size_t skip_quoted(struct slice text, size_t at)
{
    char quote = text.data[at], escape = '\\';

    if (quote == '\'')
        escape = quote; /* a quote is escaped by another one */
    for (at++; at < text.len; at++) {
        if (text.data[at] == escape && (quote == '"' || is_char(text, at + 1, quote)))
            at++;
        else if (text.data[at] == quote)
            return at + 1;
    }
    return text.len;
}

/* In a flow collection a quote begins a string after white space or one of [{,: alone. */
size_t yaml_block_flow(struct slice text, size_t at)
{
    size_t depth = 0;
    bool begins = true;

    if (is_char(text, at, '"') || is_char(text, at, '\''))
        return skip_quoted(text, at);
    while (at < text.len) {
        char c = text.data[at];

        if ((c == '"' || c == '\'') && begins) {
            at = skip_quoted(text, at);
            begins = false;
            continue;
        }
        if (c == '#' && begins) {
            at = next_line(text, at);
            continue;
        }
        depth += c == '[' || c == '{';
        depth -= c == ']' || c == '}';
        at++;
        if (depth == 0)
            return at;
        begins = c == '[' || c == '{' || c == ',' || c == ':' || is_blank(text, at - 1);
    }
    return text.len;
}

/* The end of a plain scalar in its line; *is_key: a colon follows. */
static size_t skip_plain(struct slice text, size_t at, bool *is_key)
{
    *is_key = false;
    for (; !is_break(text, at); at++) {
        *is_key = is_sign(text, at, ':');
        if (*is_key || (is_blank(text, at) && is_char(text, at + 1, '#')))
            break;
    }
    return at;
}

/* The lines of a scalar that continues while they are further to the right than `column`. Empty
 * lines after it may belong to it if it is a block. */
static size_t skip_deeper(struct slice text, size_t at, size_t column, bool is_block)
{
    size_t end = at = next_line(text, at);

    while (at < text.len) {
        size_t first = skip_spaces(text, at);
        bool is_empty = is_break(text, first);

        if (!is_empty && first - at <= column)
            break;
        at = next_line(text, at);
        if (!is_empty || is_block)
            end = at;
    }
    return end;
}

/* --- nodes --- */

struct walk {
    struct slice text;
    size_t at;
    size_t line;   /* its beginning */
    size_t column; /* of the collection that the value belongs to */
};

/* The value at walk->at, on this line; true: up to the beginning of another line. */
static bool skip_value(struct walk *walk)
{
    struct slice text = walk->text;
    char c = text.data[walk->at];
    bool is_key;
    size_t end;

    if (c == '|' || c == '>') {
        walk->at = skip_deeper(text, walk->at, walk->column, true);
        return true;
    }
    if (c == '&' || c == '!' || c == '*') {
        while (!is_blank(text, walk->at))
            walk->at++;
        return false;
    }
    if (c == '"' || c == '\'' || c == '[' || c == '{')
        end = yaml_block_flow(text, walk->at);
    else
        end = skip_plain(text, walk->at, &is_key);
    is_key = is_sign(text, skip_spaces(text, end), ':');
    if (is_key)
        walk->column = walk->at - walk->line;
    walk->at = is_key ? skip_spaces(text, end) + 1 : end;
    if (is_key || c == '"' || c == '\'' || c == '[' || c == '{')
        return false;
    walk->at = skip_deeper(text, end, walk->column, false);
    return true;
}

/* The rest of the line at walk->at. */
static void skip_rest(struct walk *walk)
{
    for (;;) {
        walk->at = skip_spaces(walk->text, walk->at);
        if (is_break(walk->text, walk->at) || walk->text.data[walk->at] == '#') {
            walk->at = next_line(walk->text, walk->at);
            return;
        }
        if (is_sign(walk->text, walk->at, '-') || is_sign(walk->text, walk->at, '?'))
            walk->column = walk->at++ - walk->line;
        else if (skip_value(walk))
            return;
    }
}

/* The end of the value of a key in this column, which begins at `at`. */
static size_t skip_node(struct slice text, size_t line, size_t at, size_t column)
{
    struct walk walk = {text, at, line, column};
    size_t end, found;

    skip_rest(&walk);
    for (;;) {
        end = walk.at;
        walk.line = yaml_block_line(text, end, &found);
        if (walk.line >= text.len || found < column ||
            (found == column && !is_sign(text, walk.line + found, '-')) ||
            (found == 0 && is_marker(text, walk.line)))
            return end;
        walk.at = walk.line + found;
        walk.column = found;
        skip_rest(&walk);
    }
}

enum yaml_found yaml_block_next(struct slice text, size_t at, size_t column,
                                struct yaml_entry *entry)
{
    size_t found = 0, line = yaml_block_line(text, at, &found), first = line + found, end;
    bool is_key;

    if (line >= text.len || found < column || (found == 0 && is_marker(text, line)))
        return YAML_END;
    if (found > column || is_sign(text, first, '-') || is_sign(text, first, '?'))
        return YAML_OTHER;
    if (text.data[first] == '"' || text.data[first] == '\'') {
        end = yaml_block_flow(text, first);
        entry->key = slice_of(text.data + first + 1, end - first - 2);
    } else {
        end = skip_plain(text, first, &is_key);
        entry->key = slice_of(text.data + first, end - first);
        while (entry->key.len > 0 && is_blank(text, first + entry->key.len - 1))
            entry->key.len--;
    }
    end = skip_spaces(text, end);
    if (!is_sign(text, end, ':'))
        return YAML_OTHER;
    entry->start = line;
    entry->value = end + 1;
    entry->end = skip_node(text, line, entry->value, column);
    return YAML_ENTRY;
}
