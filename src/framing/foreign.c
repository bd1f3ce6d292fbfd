#include "build_config.h"

#include "framing/foreign.h"

#include <strings.h>

#define METHOD_MAX 24 /* bytes; longer than any registered method */
#define TLS_HANDSHAKE 0x16
#define TLS_MAJOR 0x03

static bool is_method_byte(char c)
{
    return (c >= 'A' && c <= 'Z') || c == '-';
}

enum foreign foreign_start(struct slice bytes)
{
    size_t i = 0;

    if (bytes.len == 0)
        return FOREIGN_MAYBE;
    if ((unsigned char)bytes.data[0] == TLS_HANDSHAKE) {
        if (bytes.len == 1)
            return FOREIGN_MAYBE;
        return bytes.data[1] == TLS_MAJOR ? FOREIGN_TLS : FOREIGN_NO;
    }
    while (i < bytes.len && i < METHOD_MAX && is_method_byte(bytes.data[i]))
        i++;
    if (i == bytes.len)
        return FOREIGN_MAYBE;
    return i > 0 && bytes.data[i] == ' ' ? FOREIGN_HTTP : FOREIGN_NO;
}

bool foreign_header(struct slice name)
{
    /* A name that ends with a dash stands for all that begin so. */
    static const char *const names[] = {
        "accept",
        "accept-",
        "access-control-",
        "authorization",
        "cache-control",
        "cookie",
        "connection",
        "dnt",
        "expect",
        "forwarded",
        "host",
        "if-",
        "keep-alive",
        "origin",
        "pragma",
        "priority",
        "proxy-",
        "range",
        "referer",
        "sec-",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "upgrade-",
        "user-agent",
        "via",
        "x-forwarded-",
    };
    size_t i, len;

    for (i = 0; i < sizeof names / sizeof names[0]; i++) {
        len = strlen(names[i]);
        if ((name.len == len || (name.len > len && names[i][len - 1] == '-')) &&
            strncasecmp(name.data, names[i], len) == 0)
            return true;
    }
    return false;
}
