#include "build_config.h"

#include "format/content_type.h"

bool is_token_byte(unsigned char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
           (c > ' ' && c < 0x7F && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

struct slice trim_blanks(struct slice text)
{
    for (; text.len > 0 && is_blank(text.data[0]); text.len--)
        text.data++;
    while (text.len > 0 && is_blank(text.data[text.len - 1]))
        text.len--;
    return text;
}

static char lower_case(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

bool same_but_case(struct slice text, const char *lower)
{
    size_t i;

    if (text.len != strlen(lower))
        return false;
    for (i = 0; i < text.len; i++) {
        if (lower_case(text.data[i]) != lower[i])
            return false;
    }
    return true;
}

/* Takes the first `len` bytes away from `text` and returns them. */
static struct slice take(struct slice *text, size_t len)
{
    struct slice taken = slice_of(text->data, len);

    text->data += len;
    text->len -= len;
    return taken;
}

static struct slice take_token(struct slice *text)
{
    size_t len = 0;

    while (len < text->len && is_token_byte((unsigned char)text->data[len]))
        len++;
    return take(text, len);
}

static bool take_byte(struct slice *text, char c)
{
    *text = trim_blanks(*text);
    if (text->len == 0 || text->data[0] != c)
        return false;
    take(text, 1);
    *text = trim_blanks(*text);
    return true;
}

/* A quoted string is what stands between its quotes; one with a backslash is no charset of ours,
 * but must be passed over. False when the closing quote is missing. */
static bool take_quoted(struct slice *text, struct slice *value)
{
    size_t len = 1;

    while (len < text->len && text->data[len] != '"')
        len += text->data[len] == '\\' ? 2 : 1;
    if (len >= text->len)
        return false;
    *value = take(text, len + 1);
    *value = slice_of(value->data + 1, value->len - 2);
    return true;
}

/* NAME=VALUE. False when it is not one, or a charset that is not UTF-8. */
static bool take_parameter(struct slice *text)
{
    struct slice name = take_token(text), value;

    if (name.len == 0 || !take_byte(text, '='))
        return false;
    if (text->len > 0 && text->data[0] == '"') {
        if (!take_quoted(text, &value))
            return false;
    } else {
        value = take_token(text);
        if (value.len == 0)
            return false;
    }
    return !same_but_case(name, "charset") || same_but_case(value, "utf-8") ||
           same_but_case(value, "utf8");
}

bool content_type_accepted(struct slice value)
{
    struct slice rest = trim_blanks(value), type, subtype;

    type = take_token(&rest);
    if (!same_but_case(type, "application") || rest.len == 0 || rest.data[0] != '/')
        return false;
    take(&rest, 1);
    subtype = take_token(&rest);
    if (!same_but_case(subtype, "vscode-jsonrpc") && !same_but_case(subtype, "json"))
        return false;
    while (take_byte(&rest, ';')) {
        if (rest.len > 0 && !take_parameter(&rest)) /* nothing behind the last ; is no harm */
            return false;
    }
    return rest.len == 0;
}
