#include "build_config.h"

#include "http/lists.h"

#include <strings.h>

#include "base/assert.h"

/* Moves *at from the end of a line to the next value of the field. */
static bool next_line_of(const struct http_head *head, struct slice bytes, enum http_field field,
                         size_t *at)
{
    struct slice name, value;

    if (!(head->repeated >> field & 1))
        return false;
    *at += 2;
    while (http_head_next(head, bytes, at, &name, &value)) {
        if (http_field_of(name) == field) {
            *at = (size_t)(value.data - bytes.data);
            return true;
        }
    }
    return false;
}

/* The length of a member: to a comma outside quotes, or the end of the line. */
static size_t member_len(struct slice rest)
{
    bool quoted = false;
    size_t len = 0;

    for (; rest.data[len] != '\r' && (quoted || rest.data[len] != ','); len++) {
        if (rest.data[len] == '"')
            quoted = !quoted;
        else if (quoted && rest.data[len] == '\\' && rest.data[len + 1] != '\r')
            len++;
    }
    return len;
}

bool http_head_next_member(const struct http_head *head, struct slice bytes, enum http_field field,
                           size_t *at, struct slice *member)
{
    ASSERT(field < HTTP_LIST_FIELDS);
    if (head->fields[field].at == 0)
        return false;
    if (*at == 0)
        *at = head->fields[field].at;
    for (;;) {
        size_t len = member_len(slice_of(bytes.data + *at, bytes.len - *at));

        *member = http_trim(slice_of(bytes.data + *at, len));
        *at += len;
        if (bytes.data[*at] == ',')
            ++*at;
        else if (len == 0 && !next_line_of(head, bytes, field, at))
            return false;
        if (member->len > 0)
            return true;
    }
}

/* Takes the part before the first semicolon away from a member, and returns it. */
static struct slice take_parameter(struct slice *member)
{
    const char *end = memchr(member->data, ';', member->len);
    size_t len = end != NULL ? (size_t)(end - member->data) : member->len;
    struct slice part = http_trim(slice_of(member->data, len));

    *member = end != NULL ? slice_of(end + 1, member->len - len - 1) : slice_of(NULL, 0);
    return part;
}

bool http_head_lists(const struct http_head *head, struct slice bytes, enum http_field field,
                     const char *word)
{
    struct slice member;
    size_t at = 0;

    while (http_head_next_member(head, bytes, field, &at, &member)) {
        if (http_word_is(take_parameter(&member), word))
            return true;
    }
    return false;
}

/* Whether the parameters of a media range have q=0, or 0.000. */
static bool is_refused(struct slice parameters)
{
    while (parameters.len > 0) {
        struct slice part = take_parameter(&parameters);

        if (part.len < 3 || (part.data[0] | 0x20) != 'q' || part.data[1] != '=' ||
            part.data[2] != '0')
            continue;
        for (size_t i = 3; i < part.len; i++) {
            if (part.data[i] != '.' && part.data[i] != '0')
                return false;
        }
        return true;
    }
    return false;
}

/* How closely a media range describes the type: 3 it is the type, 2 its first word and a star, 1
 * all types, 0 another one. */
static int closeness(struct slice range, const char *type)
{
    size_t family = strcspn(type, "/") + 1;

    if (http_word_is(range, type))
        return 3;
    if (range.len < 3 || range.data[range.len - 1] != '*')
        return 0;
    if (slice_equal(range, slice_of("*/*", 3)))
        return 1;
    return range.len == family + 1 && strncasecmp(range.data, type, family) == 0 ? 2 : 0;
}

bool http_head_accepts(const struct http_head *head, struct slice bytes, const char *type)
{
    bool accepted = head->fields[HTTP_ACCEPT].at == 0;
    struct slice member;
    int closest = 0, close;
    size_t at = 0;

    while (http_head_next_member(head, bytes, HTTP_ACCEPT, &at, &member)) {
        close = closeness(take_parameter(&member), type);
        if (close > closest) {
            closest = close;
            accepted = !is_refused(member);
        }
    }
    return accepted;
}

bool http_head_keeps_alive(const struct http_head *head, struct slice bytes)
{
    if (http_head_lists(head, bytes, HTTP_CONNECTION, "close"))
        return false;
    return head->minor > 0 || http_head_lists(head, bytes, HTTP_CONNECTION, "keep-alive");
}
