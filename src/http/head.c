#include "build_config.h"

#include "http/head.h"

#include <stdint.h>
#include <strings.h>

#include "base/assert.h"
#include "base/authority.h"

size_t http_span_bytes(struct slice text, enum http_bytes set)
{
    /* A bit per character. */
    static const uint32_t sets[][4] = {
        [HTTP_TOKEN_BYTES] = {0, 0x03FF6CFA, 0xC7FFFFFE, 0x57FFFFFF},
        [HTTP_PATH_BYTES] = {0, 0x2FFFFFF2, 0x87FFFFFF, 0x47FFFFFE},
        [HTTP_QUERY_BYTES] = {0, 0xAFFFFFF2, 0x87FFFFFF, 0x47FFFFFE},
        [HTTP_NAME_BYTES] = {0, 0x2BFF7FF2, 0x87FFFFFE, 0x47FFFFFE},
        [HTTP_ADDRESS_BYTES] = {0, 0x07FF4000, 0x0000007E, 0x0000007E},
    };
    const uint32_t *bits = sets[set];
    size_t len = 0;

    for (; len < text.len; len++) {
        unsigned char c = (unsigned char)text.data[len];

        if (c > 0x7F || !(bits[c / 32] >> c % 32 & 1))
            break;
    }
    return len;
}

int http_hex_value(char c)
{
    if (http_is_digit(c))
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool http_word_is(struct slice text, const char *lower)
{
    size_t i;

    for (i = 0; i < text.len && lower[i] != '\0'; i++) {
        char c = text.data[i];

        if ((c >= 'A' && c <= 'Z' ? c | 0x20 : c) != lower[i])
            return false;
    }
    return i == text.len && lower[i] == '\0';
}

/* --- escapes --- */

/* The byte that the escape at `text` stands for; 0: it is none, or NUL. */
static int escaped_byte(struct slice text)
{
    int high, low;

    if (text.len < 3)
        return 0;
    high = http_hex_value(text.data[1]);
    low = http_hex_value(text.data[2]);
    return high < 0 || low < 0 ? 0 : high * 16 + low;
}

/* Whether each percent sign precedes two hexadecimal digits, which are not those of NUL. */
static bool http_escapes_valid(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] == '%' && escaped_byte(slice_of(text.data + i, text.len - i)) == 0)
            return false;
    }
    return true;
}

bool http_percent_decode(char *to, size_t size, struct slice text, size_t *len)
{
    size_t i = 0, count = 0;

    for (; i < text.len; i++) {
        char c = text.data[i];

        if (c == '%') {
            c = (char)escaped_byte(slice_of(text.data + i, text.len - i));
            if (c == '\0')
                return false;
            i += 2;
        }
        if (count == size)
            return false;
        to[count++] = c;
    }
    *len = count;
    return true;
}

/* --- parts of URIs --- */

struct slice http_query_value(struct slice query, const char *name)
{
    size_t name_len = strlen(name), start = 0;

    while (start < query.len) {
        const char *pair = query.data + start;
        const char *end = memchr(pair, '&', query.len - start);
        size_t len = end != NULL ? (size_t)(end - pair) : query.len - start;

        if (len > name_len && memcmp(pair, name, name_len) == 0 && pair[name_len] == '=')
            return slice_of(pair + name_len + 1, len - name_len - 1);
        start += len + 1;
    }
    return slice_of(NULL, 0);
}

bool http_authority_read(struct slice text, struct slice *host, struct slice *port)
{
    if (!authority_split(text, host, port) || (port->data != NULL && host->len == 0))
        return false;
    ASSERT(port->data != NULL || port->len == 0);
    if (host->data == text.data) {
        if (http_span_bytes(*host, HTTP_NAME_BYTES) < host->len || !http_escapes_valid(*host))
            return false;
    } else {
        if (host->len == 0 || http_span_bytes(*host, HTTP_ADDRESS_BYTES) < host->len)
            return false;
        *host = slice_of(text.data, host->len + 2);
    }
    for (size_t i = 0; i < port->len; i++) {
        if (!http_is_digit(port->data[i]))
            return false;
    }
    return port->len <= 5;
}

#define VERSION_LEN (sizeof "HTTP/1.1" - 1)
#define LENGTH_DIGITS 18 /* of a Content-Length: fewer than 2^63 */

static int refuse_head(int status, const char **problem, const char *text)
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
        if (slice_is(name, methods[method]))
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
        return refuse_head(400, problem, "the request line has no version");
    if (text.data[5] != '1')
        return refuse_head(505, problem, "only HTTP/1.1 and HTTP/1.0 are spoken here");
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
        return refuse_head(400, problem, "not a request line");
    status = read_version(head, slice_of(line.data + line.len - VERSION_LEN, VERSION_LEN), problem);
    if (status != 0)
        return status;
    head->method_len = (uint16_t)method_len;
    head->method = method_of(slice_of(line.data, method_len));
    if (slice_is(slice_of(line.data, method_len), "CONNECT"))
        return refuse_head(501, problem, "this is no proxy");
    target = slice_of(line.data + method_len + 1, line.len - VERSION_LEN - method_len - 2);
    if (!read_target(head, bytes, target))
        return refuse_head(400, problem, "the request target is malformed");
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
        return refuse_head(400, problem, "a field comes twice");
    head->repeated |= UINT32_C(1) << field;
    return 0;
}

struct slice http_take_until(struct slice *rest, char separator)
{
    struct slice part;

    (void)slice_cut(rest, separator, &part);
    return slice_trim(part);
}

/* As far as the colon; 0: the line is folded. */
static size_t loose_name_len(struct slice line)
{
    size_t len = 0;

    while (len < line.len && line.data[len] != ':' && line.data[len] != '\n')
        len++;
    return len > 0 && slice_is_blank(line.data[0]) ? 0 : len;
}

size_t http_field_line_read(struct slice rest, bool loose, struct slice *name, struct slice *value)
{
    size_t name_len = loose ? loose_name_len(rest) : http_span_bytes(rest, HTTP_TOKEN_BYTES);
    size_t end = name_len + 1, len;

    if (name_len == 0 || name_len >= rest.len || rest.data[name_len] != ':')
        return 0;
    for (; end < rest.len; end++) {
        unsigned char c = (unsigned char)rest.data[end];

        if (loose ? c == '\n' : (c < ' ' && c != '\t') || c == 0x7F)
            break;
    }
    if (loose && rest.data[end - 1] == '\r')
        end--;
    len = end < rest.len && rest.data[end] == '\r' ? end + 1 : loose ? end : rest.len;
    if (len >= rest.len || rest.data[len] != '\n')
        return 0;
    *name = slice_of(rest.data, name_len);
    if (loose)
        *name = slice_trim(*name);
    *value = slice_trim(slice_of(rest.data + name_len + 1, end - name_len - 1));
    return len + 1;
}

bool http_length_read(struct slice digits, uint64_t *length)
{
    *length = 0;
    if (digits.len == 0 || digits.len > LENGTH_DIGITS)
        return false;
    for (size_t i = 0; i < digits.len; i++) {
        if (!http_is_digit(digits.data[i]))
            return false;
        *length = *length * 10 + (uint64_t)(digits.data[i] - '0');
    }
    return true;
}

static int read_fields(struct http_head *head, struct slice bytes, const char **problem)
{
    size_t at = head->fields_start, count = 0, len;
    struct slice name, value;
    int status = 0;

    while (status == 0 && at + 2 < bytes.len) {
        len = http_field_line_read(slice_of(bytes.data + at, bytes.len - at), false, &name, &value);
        if (len == 0)
            return refuse_head(400, problem, "a field is malformed");
        if (++count > HTTP_FIELDS_MAX)
            return refuse_head(431, problem, "too many fields");
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
        return refuse_head(400, problem, "Host is missing");
    if (value.data != NULL && !http_authority_read(value, &host, &port))
        return refuse_head(400, problem, "Host is malformed");
    if (head->host.at == 0)
        head->host = head->fields[HTTP_HOST];
    return 0;
}

/* A coding that ends the body by itself is understood only if it is the only one. */
static int read_coding(struct http_head *head, struct slice value, const char **problem)
{
    size_t start = value.len;

    if (head->minor == 0 || head->fields[HTTP_CONTENT_LENGTH].at > 0)
        return refuse_head(400, problem, "Transfer-Encoding in HTTP/1.0 or beside Content-Length");
    while (start > 0 && value.data[start - 1] != ',')
        start--;
    if (!http_word_is(slice_trim(slice_of(value.data + start, value.len - start)), "chunked"))
        return refuse_head(400, problem, "Transfer-Encoding does not end with chunked");
    if (start > 0)
        return refuse_head(501, problem, "a Transfer-Encoding beside chunked");
    head->body = HTTP_BODY_CHUNKED;
    return 0;
}

static int read_length(struct http_head *head, struct slice value, const char **problem)
{
    if (!http_length_read(value, &head->length))
        return refuse_head(400, problem, "Content-Length is not a number");
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
    return http_word_is(value, "100-continue") ? 0 : refuse_head(417, problem, "Expect is unknown");
}

bool http_head_next(const struct http_head *head, struct slice bytes, size_t *at,
                    struct slice *name, struct slice *value)
{
    if (*at == 0)
        *at = head->fields_start;
    if (*at + 2 >= bytes.len)
        return false;
    *at += http_field_line_read(slice_of(bytes.data + *at, bytes.len - *at), false, name, value);
    return true;
}

/* --- the whole head --- */

int http_head_read(struct http_head *head, struct slice bytes, const char **problem)
{
    const char *end = memchr(bytes.data, '\r', bytes.len);
    int status;

    *head = (struct http_head){.method = HTTP_OTHER_METHOD};
    if (end == NULL || end[1] != '\n')
        return refuse_head(400, problem, "not a request line");
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

        *member = slice_trim(slice_of(bytes.data + *at, len));
        *at += len;
        if (bytes.data[*at] == ',')
            ++*at;
        else if (len == 0 && !next_line_of(head, bytes, field, at))
            return false;
        if (member->len > 0)
            return true;
    }
}

bool http_head_lists(const struct http_head *head, struct slice bytes, enum http_field field,
                     const char *word)
{
    struct slice member;
    size_t at = 0;

    while (http_head_next_member(head, bytes, field, &at, &member)) {
        if (http_word_is(http_take_until(&member, ';'), word))
            return true;
    }
    return false;
}

/* Whether the parameters of a media range have q=0, or 0.000. */
static bool is_refused(struct slice parameters)
{
    while (parameters.len > 0) {
        struct slice part = http_take_until(&parameters, ';');

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
    if (slice_is(range, "*/*"))
        return 1;
    return range.len == family + 1 && strncasecmp(range.data, type, family) == 0 ? 2 : 0;
}

unsigned http_head_accepts(const struct http_head *head, struct slice bytes)
{
    static const char *const types[] = {"application/json", "text/event-stream"};
    unsigned accepted = head->fields[HTTP_ACCEPT].at == 0 ? HTTP_ACCEPTS_ALL : 0;
    struct slice member, range;
    int closest[] = {0, 0}, close;
    size_t at = 0;

    while (http_head_next_member(head, bytes, HTTP_ACCEPT, &at, &member)) {
        range = http_take_until(&member, ';');
        for (unsigned i = 0; i < 2; i++) {
            close = closeness(range, types[i]);
            if (close <= closest[i])
                continue;
            closest[i] = close;
            accepted = is_refused(member) ? accepted & ~(1U << i) : accepted | 1U << i;
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
