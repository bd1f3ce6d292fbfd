#include "build_config.h"

#include "json/comments.h"

#include <stdbool.h>
#include <string.h>

static void blank(char *text, size_t from, size_t to)
{
    for (; from < to; from++) {
        if (text[from] != '\n')
            text[from] = ' ';
    }
}

/* The end of the string that begins at `at`. */
static size_t end_of_string(const char *text, size_t at, size_t len)
{
    for (at++; at < len && text[at] != '"' && text[at] != '\n'; at++) {
        if (text[at] == '\\' && at + 1 < len)
            at++;
    }
    return at < len ? at + 1 : len;
}

/* The end of the comment that begins at `at`; `at` itself if none does. One that is never closed is
 * none. */
static size_t end_of_comment(const char *text, size_t at, size_t len)
{
    size_t end = at + 2;

    if (len - at < 2 || text[at] != '/')
        return at;
    if (text[at + 1] == '/') {
        while (end < len && text[end] != '\n')
            end++;
        return end;
    }
    if (text[at + 1] != '*')
        return at;
    while (len - end >= 2 && (text[end] != '*' || text[end + 1] != '/'))
        end++;
    return len - end >= 2 ? end + 2 : at;
}

static bool is_one_of(char c, const char *these)
{
    return c != '\0' && strchr(these, c) != NULL;
}

void comments_blank(char *text, size_t len)
{
    size_t at = 0, end, comma = len; /* comma: after a value, with nothing after it so far */
    char last = '[';                 /* before `at`, but for white space */

    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        blank(text, 0, 3);
    while (at < len) {
        end = end_of_comment(text, at, len);
        if (end > at) {
            blank(text, at, end);
            at = end;
            continue;
        }
        if (is_one_of(text[at], "}]") && comma < len)
            text[comma] = ' ';
        if (!is_one_of(text[at], " \t\r\n")) {
            comma = text[at] == ',' && !is_one_of(last, "[{,:") ? at : len;
            last = text[at];
        }
        at = text[at] == '"' ? end_of_string(text, at, len) : at + 1;
    }
}
