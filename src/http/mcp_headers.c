#include "build_config.h"

#include "http/mcp_headers.h"

#include <string.h>

#include "http/base64.h"

#define ENCODED_BEFORE "=?base64?"
#define ENCODED_AFTER "?="

enum mcp_name mcp_name_of(struct slice method)
{
    static const struct {
        const char *method;
        enum mcp_name name;
    } names[] = {
        {"tools/call", MCP_NAME_NAME},    {"prompts/get", MCP_NAME_NAME},
        {"resources/read", MCP_NAME_URI}, {"tasks/get", MCP_NAME_TASK},
        {"tasks/update", MCP_NAME_TASK},  {"tasks/cancel", MCP_NAME_TASK},
    };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (slice_is(method, names[i].method))
            return names[i].name;
    }
    return MCP_NAME_NONE;
}

/* --- versions --- */

static bool is_date(struct slice text)
{
    static const char form[] = "0000-00-00";

    if (text.len != sizeof form - 1)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        bool is_digit = text.data[i] >= '0' && text.data[i] <= '9';

        if (form[i] == '-' ? text.data[i] != '-' : !is_digit)
            return false;
    }
    return true;
}

bool mcp_version_is_stateless(struct slice version)
{
    return is_date(version) && memcmp(version.data, MCP_STATELESS_VERSION, version.len) >= 0;
}

bool mcp_version_is_handshake(struct slice version)
{
    return slice_is(version, "2025-11-25") || slice_is(version, "2025-06-18") ||
           slice_is(version, "2025-03-26") || slice_is(version, "2024-11-05");
}

/* --- the comparison --- */

static bool is_encoded(struct slice field)
{
    size_t before = sizeof ENCODED_BEFORE - 1, after = sizeof ENCODED_AFTER - 1;

    return field.len >= before + after && memcmp(field.data, ENCODED_BEFORE, before) == 0 &&
           memcmp(field.data + field.len - after, ENCODED_AFTER, after) == 0;
}

/* The text is compared by encoding it: one text has one spelling in Base64 (RFC 4648, 3.5). */
static bool equals_encoded(struct slice field, struct slice text)
{
    size_t before = sizeof ENCODED_BEFORE - 1,
           len = field.len - before - (sizeof ENCODED_AFTER - 1);
    const char *code = field.data + before;
    char piece[BASE64_LEN(48)];

    if (BASE64_LEN(text.len) != len)
        return false;
    while (text.len > 0) {
        struct slice part = {text.data, text.len < 48 ? text.len : 48};

        base64_encode(piece, part);
        if (memcmp(piece, code, BASE64_LEN(part.len)) != 0)
            return false;
        code += BASE64_LEN(part.len);
        text = slice_of(text.data + part.len, text.len - part.len);
    }
    return true;
}

static const char *name_mismatch(const struct mcp_headers *fields,
                                 const struct mcp_headers *message)
{
    if (fields->name.data == NULL)
        return message->name.data != NULL ? "Mcp-Name is missing" : NULL;
    if (message->name.data == NULL)
        return NULL; /* the server says what is wrong with its params */
    if (is_encoded(fields->name) ? !equals_encoded(fields->name, message->name)
                                 : !slice_equal(fields->name, message->name))
        return "Mcp-Name does not match the message";
    return NULL;
}

const char *mcp_headers_mismatch(const struct mcp_headers *fields,
                                 const struct mcp_headers *message, bool is_request)
{
    if (is_request && fields->version.data == NULL)
        return "MCP-Protocol-Version is missing";
    if (fields->version.data != NULL && message->version.data != NULL &&
        !slice_equal(fields->version, message->version))
        return "MCP-Protocol-Version does not match the message";
    if (is_request && fields->method.data == NULL)
        return "Mcp-Method is missing";
    if (fields->method.data != NULL && !slice_equal(fields->method, message->method))
        return "Mcp-Method does not match the message";
    if (!is_request || mcp_name_of(message->method) == MCP_NAME_NONE)
        return NULL;
    return name_mismatch(fields, message);
}
