#include "build_config.h"

#include "config/headers.h"

#include <stdlib.h>
#include <strings.h>

static bool is_named(const struct remote_header *header, const char *name)
{
    return strlen(name) == header->name.len &&
           strncasecmp(header->name.data, name, header->name.len) == 0;
}

/* The fields that this program writes, or that say how a message is sent. */
static bool is_reserved(const struct remote_header *header)
{
    static const char *const names[] = {"accept",
                                        "connection",
                                        "content-length",
                                        "content-type",
                                        "expect",
                                        "host",
                                        "last-event-id",
                                        "mcp-method",
                                        "mcp-name",
                                        "mcp-protocol-version",
                                        "mcp-session-id",
                                        "proxy-authorization",
                                        "te",
                                        "trailer",
                                        "transfer-encoding",
                                        "upgrade"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (is_named(header, names[i]))
            return true;
    }
    return false;
}

/* A token of RFC 9110. */
static bool is_name(struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        if (name.data[i] <= ' ' || name.data[i] > '~' ||
            strchr("()<>@,;:\\\"/[]?={}", name.data[i]) != NULL)
            return false;
    }
    return name.len > 0;
}

static bool is_value(const char *value)
{
    while ((unsigned char)*value >= ' ' || *value == '\t') {
        if (*value++ == 0x7F)
            return false;
    }
    return *value == '\0';
}

const char *headers_add_pair(struct remote_headers *headers, struct slice name, const char *value)
{
    struct remote_header header = {name, value};
    size_t bytes = name.len + strlen(value) + 4;

    if (!is_name(name))
        return "the name of a field has only letters, digits and -";
    if (is_reserved(&header))
        return "this field is written by stdio_bus itself";
    if (!is_value(value))
        return "the value has a control character";
    if (headers->count == REMOTE_HEADERS_MAX || headers->bytes + bytes > HEADERS_BYTES_MAX)
        return "at most 32 fields with 16384 bytes can be given";
    headers->bytes += bytes;
    headers->all[headers->count++] = header;
    return NULL;
}

const char *headers_add(struct remote_headers *headers, const char *text)
{
    size_t len = strcspn(text, ":");

    if (text[len] == '\0')
        return "must be NAME: VALUE";
    return headers_add_pair(headers, slice_of(text, len),
                            text + len + 1 + strspn(text + len + 1, " \t"));
}

const char *headers_add_variable(struct remote_headers *headers, const char *text)
{
    size_t len = strcspn(text, "=");
    const char *value = text[len] != '\0' ? getenv(text + len + 1) : NULL;

    if (text[len] == '\0')
        return "must be NAME=VARIABLE";
    return value != NULL ? headers_add_pair(headers, slice_of(text, len), value)
                         : "the variable of the environment is not set";
}

bool headers_have(const struct remote_headers *headers, const char *name)
{
    for (size_t i = 0; i < headers->count; i++) {
        if (is_named(&headers->all[i], name))
            return true;
    }
    return false;
}
