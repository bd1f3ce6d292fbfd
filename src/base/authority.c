#include "build_config.h"

#include "base/authority.h"

#include <string.h>

bool authority_split(struct slice text, struct slice *host, struct slice *port)
{
    bool is_address = text.len > 0 && text.data[0] == '[';
    const char *end = text.len > 0 ? memchr(text.data, is_address ? ']' : ':', text.len) : NULL;
    size_t len = end != NULL ? (size_t)(end - text.data) + is_address : text.len;

    *host = slice_of(text.data, len);
    *port = slice_of(NULL, 0);
    if (len == text.len)
        return end != NULL || !is_address;
    *port = slice_of(text.data + len + 1, text.len - len - 1);
    for (size_t i = 0; i < port->len; i++) {
        if (port->data[i] < '0' || port->data[i] > '9')
            return false;
    }
    return text.data[len] == ':';
}
