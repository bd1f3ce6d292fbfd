#include "build_config.h"

#include "framing/opening.h"

static size_t skip_blanks(struct slice line, size_t at)
{
    while (at < line.len && strchr(" \t\r\n", line.data[at]) != NULL && line.data[at] != '\0')
        at++;
    return at;
}

/* Moves *at past the word and the white space around it. */
static bool take_word(struct slice line, size_t *at, const char *word)
{
    size_t len = strlen(word), start = skip_blanks(line, *at);

    if (line.len - start < len || memcmp(line.data + start, word, len) != 0)
        return false;
    *at = skip_blanks(line, start + len);
    return true;
}

/* The text between the quotes of the string that begins at *at; moves *at past it. */
static bool take_string(struct slice line, size_t *at, struct slice *raw)
{
    size_t start = *at + 1, end = start;

    if (*at >= line.len || line.data[*at] != '"')
        return false;
    while (end < line.len && line.data[end] != '"')
        end += line.data[end] == '\\' ? 2 : 1;
    if (end >= line.len)
        return false;
    *raw = slice_of(line.data + start, end - start);
    *at = end + 1;
    return true;
}

static bool take_member(struct slice line, size_t *at, struct opening *opening)
{
    struct slice *value = NULL;

    if (take_word(line, at, "\"token\""))
        value = &opening->token;
    else if (take_word(line, at, "\"pool\""))
        value = &opening->pool;
    return value != NULL && value->data == NULL && take_word(line, at, ":") &&
           take_string(line, at, value);
}

bool opening_read(struct opening *opening, struct slice line)
{
    size_t at = 0;

    *opening = (struct opening){.token = {NULL, 0}};
    if (line.len > OPENING_MAX || !take_word(line, &at, "{"))
        return false;
    do {
        if (!take_member(line, &at, opening))
            return false;
    } while (take_word(line, &at, ","));
    return take_word(line, &at, "}") && at == line.len;
}
