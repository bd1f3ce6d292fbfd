#include "build_config.h"

#include "base/authority.h"

bool authority_split(struct slice text, struct slice *host, struct slice *port)
{
    bool has_brackets = text.len > 0 && text.data[0] == '[';
    size_t start = has_brackets ? 1 : 0, after;
    const char *end = text.len > 0 ? memchr(text.data, has_brackets ? ']' : ':', text.len) : NULL;

    *host = text;
    *port = slice_of(NULL, 0);
    if (end == NULL)
        return !has_brackets;
    *host = slice_of(text.data + start, (size_t)(end - text.data) - start);
    after = start + host->len + start;
    if (after == text.len)
        return true;
    if (text.data[after] != ':')
        return false;
    *port = slice_of(text.data + after + 1, text.len - after - 1);
    return true;
}

bool authority_read_port(struct slice text, uint16_t *port)
{
    unsigned value = 0;

    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9' || value > UINT16_MAX)
            return false;
        value = value * 10 + (unsigned)(text.data[i] - '0');
    }
    *port = (uint16_t)value;
    return text.len > 0 && value <= UINT16_MAX;
}
