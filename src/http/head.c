#include "build_config.h"

#include "http/head.h"

#define VERSION_LEN (sizeof "HTTP/1.1" - 1)
#define LENGTH_DIGITS 18 /* of a Content-Length: fewer than 2^63 */

static int refuse(int status, const char **problem, const char *text)
{
    *problem = text;
    return status;
}

static struct http_span span_of(struct slice bytes, struct slice part)
{
    return (struct http_span){(uint16_t)(part.data - bytes.data), (uint16_t)part.len};
}

/* --- the request line --- */

static const char *const methods[] = {
    [HTTP_OTHER_METHOD] = "",   [HTTP_GET] = "GET",     [HTTP_HEAD] = "HEAD",
    [HTTP_POST] = "POST",       [HTTP_PUT] = "PUT",     [HTTP_DELETE] = "DELETE",
    [HTTP_OPTIONS] = "OPTIONS", [HTTP_PATCH] = "PATCH",
};

static enum http_method method_of(struct slice name)
{
    for (enum http_method method = HTTP_GET; method <= HTTP_PATCH; method++) {
        if (slice_equal(name, slice_of(methods[method], strlen(methods[method]))))
            return method;
    }
    return HTTP_OTHER_METHOD;
}

/* The part of the target that is path and query. */
static bool read_path(struct http_head *head, struct slice bytes, struct slice text)
{
    size_t len = http_span_bytes(text, HTTP_PATH_BYTES);
    struct slice path = slice_of(text.data, len), query;

    if (!http_escapes_valid(path))
        return false;
    head->path = span_of(bytes, path);
    if (len == text.len)
        return true;
    query = slice_of(text.data + len + 1, text.len - len - 1);
    head->query = span_of(bytes, query);
    return text.data[len] == '?' && http_span_bytes(query, HTTP_QUERY_BYTES) == query.len &&
           http_escapes_valid(query);
}

/* http://HOST/PATH, as clients ask proxies. */
static bool read_absolute(struct http_head *head, struct slice bytes, struct slice target)
{
    size_t start = target.len > 4 && (target.data[4] | 0x20) == 's' ? 5 : 4, len = 0;
    struct slice rest, host, port;

    if (target.len < start + 3 || !http_word_is(slice_of(target.data, 4), "http") ||
        memcmp(target.data + start, "://", 3) != 0)
        return false;
    rest = slice_of(target.data + start + 3, target.len - start - 3);
    while (len < rest.len && rest.data[len] != '/' && rest.data[len] != '?')
        len++;
    head->host = span_of(bytes, slice_of(rest.data, len));
    return len > 0 && http_authority_read(slice_of(rest.data, len), &host, &port) && host.len > 0 &&
           read_path(head, bytes, slice_of(rest.data + len, rest.len - len));
}

static bool read_target(struct http_head *head, struct slice bytes, struct slice target)
{
    if (target.len > 0 && target.data[0] == '/')
        return read_path(head, bytes, target);
    if (target.len == 1 && target.data[0] == '*') {
        head->path = span_of(bytes, target);
        return head->method == HTTP_OPTIONS;
    }
    return read_absolute(head, bytes, target);
}

/* 505 only for what is a version. */
static int read_version(struct http_head *head, struct slice text, const char **problem)
{
    if (memcmp(text.data, "HTTP/", 5) != 0 || !http_is_digit(text.data[5]) || text.data[6] != '.' ||
        !http_is_digit(text.data[7]))
        return refuse(400, problem, "the request line has no version");
    if (text.data[5] != '1')
        return refuse(505, problem, "only HTTP/1.1 and HTTP/1.0 are spoken here");
    head->minor = text.data[7] != '0';
    return 0;
}

static int read_request_line(struct http_head *head, struct slice bytes, struct slice line,
                             const char **problem)
{
    size_t method_len = http_span_bytes(line, HTTP_TOKEN_BYTES);
    struct slice target;
    int status;

    if (method_len == 0 || line.len < method_len + 2 + VERSION_LEN ||
        line.data[method_len] != ' ' || line.data[line.len - VERSION_LEN - 1] != ' ')
        return refuse(400, problem, "not a request line");
    status = read_version(head, slice_of(line.data + line.len - VERSION_LEN, VERSION_LEN), problem);
    if (status != 0)
        return status;
    head->method_len = (uint16_t)method_len;
    head->method = method_of(slice_of(line.data, method_len));
    if (slice_equal(slice_of(line.data, method_len), slice_of("CONNECT", 7)))
        return refuse(501, problem, "this is no proxy");
    target = slice_of(line.data + method_len + 1, line.len - VERSION_LEN - method_len - 2);
    if (!read_target(head, bytes, target))
        return refuse(400, problem, "the request target is malformed");
    return 0;
}

/* --- fields --- */

#define NAME(text)                                                                                 \
    {                                                                                              \
        sizeof(text) - 1, text                                                                     \
    }

static const struct {
    size_t len;
    const char *lower;
} names[] = {
    [HTTP_ACCEPT] = NAME("accept"),
    [HTTP_ACCESS_CONTROL_REQUEST_HEADERS] = NAME("access-control-request-headers"),
    [HTTP_CONNECTION] = NAME("connection"),
    [HTTP_SEC_WEBSOCKET_EXTENSIONS] = NAME("sec-websocket-extensions"),
    [HTTP_SEC_WEBSOCKET_PROTOCOL] = NAME("sec-websocket-protocol"),
    [HTTP_UPGRADE] = NAME("upgrade"),
    [HTTP_ACCESS_CONTROL_REQUEST_METHOD] = NAME("access-control-request-method"),
    [HTTP_ACCESS_CONTROL_REQUEST_PRIVATE_NETWORK] = NAME("access-control-request-private-network"),
    [HTTP_AUTHORIZATION] = NAME("authorization"),
    [HTTP_CONTENT_ENCODING] = NAME("content-encoding"),
    [HTTP_CONTENT_LENGTH] = NAME("content-length"),
    [HTTP_CONTENT_TYPE] = NAME("content-type"),
    [HTTP_EXPECT] = NAME("expect"),
    [HTTP_HOST] = NAME("host"),
    [HTTP_LAST_EVENT_ID] = NAME("last-event-id"),
    [HTTP_MCP_METHOD] = NAME("mcp-method"),
    [HTTP_MCP_NAME] = NAME("mcp-name"),
    [HTTP_MCP_PROTOCOL_VERSION] = NAME("mcp-protocol-version"),
    [HTTP_MCP_SESSION_ID] = NAME("mcp-session-id"),
    [HTTP_ORIGIN] = NAME("origin"),
    [HTTP_SEC_FETCH_SITE] = NAME("sec-fetch-site"),
    [HTTP_SEC_WEBSOCKET_KEY] = NAME("sec-websocket-key"),
    [HTTP_SEC_WEBSOCKET_VERSION] = NAME("sec-websocket-version"),
    [HTTP_TRANSFER_ENCODING] = NAME("transfer-encoding"),
};

enum http_field http_field_of(struct slice name)
{
    enum http_field field = 0;

    while (field < HTTP_FIELD_COUNT &&
           (names[field].len != name.len || !http_word_is(name, names[field].lower)))
        field++;
    return field;
}

static int note_field(struct http_head *head, struct slice bytes, struct slice name,
                      struct slice value, const char **problem)
{
    enum http_field field = http_field_of(name);

    if (field == HTTP_FIELD_COUNT)
        return 0;
    if (head->fields[field].at == 0) {
        head->fields[field] = span_of(bytes, value);
        return 0;
    }
    if (field >= HTTP_LIST_FIELDS)
        return refuse(400, problem, "a field comes twice");
    head->repeated |= UINT32_C(1) << field;
    return 0;
}

/* The field line at the start of `rest`. Returns its length with its end, or 0. */
static size_t read_field_line(struct slice rest, struct slice *name, struct slice *value)
{
    size_t name_len = http_span_bytes(rest, HTTP_TOKEN_BYTES), end = name_len + 1;

    if (name_len == 0 || name_len >= rest.len || rest.data[name_len] != ':')
        return 0;
    for (; end < rest.len; end++) {
        unsigned char c = (unsigned char)rest.data[end];

        if ((c < ' ' && c != '\t') || c == 0x7F)
            break;
    }
    if (end + 1 >= rest.len || rest.data[end] != '\r' || rest.data[end + 1] != '\n')
        return 0;
    *name = slice_of(rest.data, name_len);
    *value = http_trim(slice_of(rest.data + name_len + 1, end - name_len - 1));
    return end + 2;
}

static int read_fields(struct http_head *head, struct slice bytes, const char **problem)
{
    size_t at = head->fields_start, count = 0, len;
    struct slice name, value;
    int status = 0;

    while (status == 0 && at + 2 < bytes.len) {
        len = read_field_line(slice_of(bytes.data + at, bytes.len - at), &name, &value);
        if (len == 0)
            return refuse(400, problem, "a field is malformed");
        if (++count > HTTP_FIELDS_MAX)
            return refuse(431, problem, "too many fields");
        status = note_field(head, bytes, name, value, problem);
        at += len;
    }
    return status;
}

/* --- what the fields say --- */

static int read_host(struct http_head *head, struct slice bytes, const char **problem)
{
    struct slice value = http_head_value(head, bytes, HTTP_HOST), host, port;

    if (value.data == NULL && head->minor > 0)
        return refuse(400, problem, "Host is missing");
    if (value.data != NULL && !http_authority_read(value, &host, &port))
        return refuse(400, problem, "Host is malformed");
    if (head->host.at == 0)
        head->host = head->fields[HTTP_HOST];
    return 0;
}

/* A coding that ends the body by itself is understood only if it is the only one. */
static int read_coding(struct http_head *head, struct slice value, const char **problem)
{
    size_t start = value.len;

    if (head->minor == 0 || head->fields[HTTP_CONTENT_LENGTH].at > 0)
        return refuse(400, problem, "Transfer-Encoding in HTTP/1.0 or beside Content-Length");
    while (start > 0 && value.data[start - 1] != ',')
        start--;
    if (!http_word_is(http_trim(slice_of(value.data + start, value.len - start)), "chunked"))
        return refuse(400, problem, "Transfer-Encoding does not end with chunked");
    if (start > 0)
        return refuse(501, problem, "a Transfer-Encoding beside chunked");
    head->body = HTTP_BODY_CHUNKED;
    return 0;
}

static int read_length(struct http_head *head, struct slice value, const char **problem)
{
    bool good = value.len > 0 && value.len <= LENGTH_DIGITS;

    for (size_t i = 0; good && i < value.len; i++) {
        good = http_is_digit(value.data[i]);
        head->length = head->length * 10 + (uint64_t)(value.data[i] - '0');
    }
    if (!good)
        return refuse(400, problem, "Content-Length is not a number");
    head->body = head->length > 0 ? HTTP_BODY_SIZED : HTTP_BODY_NONE;
    return 0;
}

static int read_body(struct http_head *head, struct slice bytes, const char **problem)
{
    struct slice coding = http_head_value(head, bytes, HTTP_TRANSFER_ENCODING);
    struct slice length = http_head_value(head, bytes, HTTP_CONTENT_LENGTH);

    if (coding.data != NULL)
        return read_coding(head, coding, problem);
    return length.data != NULL ? read_length(head, length, problem) : 0;
}

static int read_expectation(struct http_head *head, struct slice bytes, const char **problem)
{
    struct slice value = http_head_value(head, bytes, HTTP_EXPECT);

    if (value.data == NULL || head->minor == 0)
        return 0;
    head->expects_continue = head->body != HTTP_BODY_NONE;
    return http_word_is(value, "100-continue") ? 0 : refuse(417, problem, "Expect is unknown");
}

bool http_head_next(const struct http_head *head, struct slice bytes, size_t *at,
                    struct slice *name, struct slice *value)
{
    if (*at == 0)
        *at = head->fields_start;
    if (*at + 2 >= bytes.len)
        return false;
    *at += read_field_line(slice_of(bytes.data + *at, bytes.len - *at), name, value);
    return true;
}

/* --- the whole head --- */

int http_head_read(struct http_head *head, struct slice bytes, const char **problem)
{
    const char *end = memchr(bytes.data, '\r', bytes.len);
    int status;

    *head = (struct http_head){.method = HTTP_OTHER_METHOD};
    if (end == NULL || end[1] != '\n')
        return refuse(400, problem, "not a request line");
    head->fields_start = (uint16_t)(end + 2 - bytes.data);
    status = read_request_line(head, bytes, slice_of(bytes.data, (size_t)(end - bytes.data)),
                               problem);
    if (status == 0)
        status = read_fields(head, bytes, problem);
    if (status == 0)
        status = read_host(head, bytes, problem);
    if (status == 0)
        status = read_body(head, bytes, problem);
    if (status == 0)
        status = read_expectation(head, bytes, problem);
    return status;
}
