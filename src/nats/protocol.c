#include "build_config.h"

#include "nats/protocol.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "json/document.h"

#define WORDS_MAX 5
#define SIZE_MAX_DIGITS 15

/* --- control lines --- */

/* Splits the text at white space. Returns the number of words; WORDS_MAX + 1: too many. */
static size_t split(struct slice words[WORDS_MAX], struct slice text)
{
    size_t count = 0, at = 0;

    for (;;) {
        size_t start;

        while (at < text.len && slice_is_blank(text.data[at]))
            at++;
        if (at == text.len)
            return count;
        if (count == WORDS_MAX)
            return WORDS_MAX + 1;
        start = at;
        while (at < text.len && !slice_is_blank(text.data[at]))
            at++;
        words[count++] = slice_of(text.data + start, at - start);
    }
}

bool nats_number_read(struct slice text, uint64_t *number)
{
    *number = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        *number = *number * 10 + (uint64_t)(text.data[i] - '0');
    }
    return text.len > 0 && text.len <= SIZE_MAX_DIGITS;
}

static bool read_size(struct slice text, size_t *size)
{
    uint64_t number;

    if (!nats_number_read(text, &number) || number > SIZE_MAX / 2)
        return false;
    *size = (size_t)number;
    return true;
}

/* SUBJECT SID [REPLY] [HEADERS] LENGTH */
static const char *read_message(struct nats_line *line, struct slice text)
{
    struct slice words[WORDS_MAX];
    size_t sizes = line->kind == NATS_HMSG ? 2 : 1, count = split(words, text);

    if ((count != 2 + sizes && count != 3 + sizes) || !nats_number_read(words[1], &line->sid) ||
        !read_size(words[count - 1], &line->len) ||
        (sizes == 2 && !read_size(words[count - 2], &line->head_len)) || line->head_len > line->len)
        return "a message that cannot be read";
    line->subject = words[0];
    if (count == 3 + sizes)
        line->reply = words[2];
    return NULL;
}

static struct slice without_quotes(struct slice text)
{
    while (text.len > 0 && (slice_is_blank(text.data[0]) || text.data[0] == '\'')) {
        text.data++;
        text.len--;
    }
    while (text.len > 0 &&
           (slice_is_blank(text.data[text.len - 1]) || text.data[text.len - 1] == '\''))
        text.len--;
    return text;
}

static bool is_word(struct slice word, const char *name)
{
    size_t len = strlen(name);

    if (word.len != len)
        return false;
    for (size_t i = 0; i < len; i++) {
        char byte = word.data[i];

        if (byte >= 'a' && byte <= 'z')
            byte = (char)(byte - 'a' + 'A');
        if (byte != name[i])
            return false;
    }
    return true;
}

const char *nats_line_read(struct nats_line *line, struct slice text)
{
    static const char *const names[] = {
        [NATS_INFO] = "INFO", [NATS_MSG] = "MSG", [NATS_HMSG] = "HMSG", [NATS_PING] = "PING",
        [NATS_PONG] = "PONG", [NATS_OK] = "+OK",  [NATS_ERR] = "-ERR",
    };
    size_t len = 0;

    *line = (struct nats_line){.kind = NATS_INFO};
    while (len < text.len && !slice_is_blank(text.data[len]))
        len++;
    for (size_t kind = 0; kind < sizeof names / sizeof names[0]; kind++) {
        if (!is_word(slice_of(text.data, len), names[kind]))
            continue;
        line->kind = (enum nats_kind)kind;
        text = slice_of(text.data + len, text.len - len);
        if (kind == NATS_MSG || kind == NATS_HMSG)
            return read_message(line, text);
        line->text = kind == NATS_ERR ? without_quotes(text) : text;
        return NULL;
    }
    return "not a line of a NATS server";
}

void nats_frame_read(struct nats_frame *frame, struct slice bytes)
{
    const char *end = memchr(bytes.data, '\n', bytes.len);
    size_t len = end != NULL ? (size_t)(end - bytes.data) : bytes.len;
    struct slice text = slice_of(bytes.data, len - (len > 0 && bytes.data[len - 1] == '\r'));

    *frame = (struct nats_frame){.headers = {NULL, 0}};
    if (nats_line_read(&frame->line, text) != NULL || end == NULL ||
        (frame->line.kind != NATS_MSG && frame->line.kind != NATS_HMSG))
        return;
    frame->headers = slice_of(end + 1, frame->line.head_len);
    frame->payload = slice_of(end + 1 + frame->line.head_len,
                              frame->line.len - frame->line.head_len);
}

bool nats_no_responders(struct slice headers)
{
    static const char line[] = "NATS/1.0 503";

    return headers.len >= sizeof line - 1 && memcmp(headers.data, line, sizeof line - 1) == 0;
}

struct slice nats_header(struct slice headers, const char *name)
{
    size_t name_len = strlen(name);

    while (headers.len > 0) {
        const char *end = memchr(headers.data, '\n', headers.len);
        size_t taken = end != NULL ? (size_t)(end - headers.data) + 1 : headers.len;
        size_t len = end != NULL ? taken - 1 : taken;

        len -= len > 0 && headers.data[len - 1] == '\r';
        if (len > name_len && headers.data[name_len] == ':' &&
            memcmp(headers.data, name, name_len) == 0)
            return slice_trim(slice_of(headers.data + name_len + 1, len - name_len - 1));
        headers = slice_of(headers.data + taken, headers.len - taken);
    }
    return slice_of(NULL, 0);
}

/* --- INFO --- */

static bool is_true(const struct json_value *object, const char *key)
{
    const struct json_value *value = document_member_of(object, key, JSON_BOOLEAN);

    return value != NULL && value->boolean;
}

static void read_urls(struct nats_info *info, const struct json_value *urls)
{
    const struct json_value *url = urls != NULL ? urls->first : NULL;

    for (; url != NULL && info->url_count < NATS_URLS_MAX; url = url->next) {
        if (url->type != JSON_STRING || url->text.len == 0 || url->text.len >= NATS_URL_MAX ||
            memchr(url->text.data, '\0', url->text.len) != NULL)
            continue;
        memcpy(info->urls[info->url_count], url->text.data, url->text.len);
        info->urls[info->url_count++][url->text.len] = '\0';
    }
}

int nats_info_read(struct nats_info *info, struct slice json)
{
    struct document document;
    struct document_error error;
    const struct json_value *root, *nonce;
    bool is_object;
    int status;

    *info = (struct nats_info){.max_payload = 0};
    status = document_read(&document, json, &error);
    if (status != STDIO_BUS_OK)
        return status;
    root = document.root;
    is_object = root->type == JSON_OBJECT;
    if (is_object) {
        int64_t max = document_number(root, "max_payload");

        info->max_payload = max > 0 ? (uint64_t)max : 0;
        info->tls_required = is_true(root, "tls_required");
        info->tls_available = is_true(root, "tls_available");
        info->auth_required = is_true(root, "auth_required");
        info->headers = is_true(root, "headers");
        info->lame_duck = is_true(root, "ldm");
        info->clustered = document_member_of(root, "cluster", JSON_STRING) != NULL;
        nonce = document_member_of(root, "nonce", JSON_STRING);
        if (nonce != NULL)
            snprintf(info->nonce, sizeof info->nonce, "%.*s", (int)sizeof info->nonce - 1,
                     nonce->text.data);
        read_urls(info, document_member_of(root, "connect_urls", JSON_ARRAY));
    }
    document_free(&document);
    return is_object ? STDIO_BUS_OK : STDIO_BUS_EINVAL;
}

/* --- subjects --- */

static bool is_plain(unsigned char byte)
{
    return byte > ' ' && byte != 0x7f && strchr("%.*>", byte) == NULL;
}

size_t nats_write_name(char *to, struct slice name)
{
    static const char digits[] = "0123456789ABCDEF";
    bool is_start = true; /* of a part, none of which may be empty */
    size_t len = 0;

    for (size_t i = 0; i < name.len; i++) {
        unsigned char byte = (unsigned char)name.data[i];
        bool parts = byte == '/' && !is_start && i + 1 < name.len;

        if (parts) {
            to[len++] = '.';
        } else if (byte != '/' && is_plain(byte)) {
            to[len++] = (char)byte;
        } else {
            to[len++] = '%';
            to[len++] = digits[byte >> 4];
            to[len++] = digits[byte & 15];
        }
        is_start = parts;
    }
    return len;
}

/* --- what a client sends --- */

static void put_login(struct json_text *to, const char *key, struct slice value)
{
    if (value.data != NULL)
        row_slice(to, key, value);
}

void nats_put_connect(struct json_text *to, const struct nats_login *login)
{
    json_text_literal(to, "CONNECT {");
    row_boolean(to, "verbose", false);
    row_boolean(to, "pedantic", false);
    row_boolean(to, "tls_required", false);
    row_boolean(to, "headers", true);
    row_boolean(to, "no_responders", true);
    row_boolean(to, "echo", false);
    row_number(to, "protocol", 1);
    row_string(to, "lang", "c");
    row_string(to, "name", login->name);
    row_string(to, "version", login->version);
    put_login(to, "user", login->user);
    put_login(to, "pass", login->password);
    put_login(to, "auth_token", login->auth_token);
    json_text_literal(to, "}\r\n");
}

void nats_put_sub(struct json_text *to, const char *subject, const char *queue, uint64_t sid)
{
    json_text_literal(to, "SUB ");
    json_text_literal(to, subject);
    if (queue != NULL) {
        json_text_literal(to, " ");
        json_text_literal(to, queue);
    }
    json_text_format(to, " %llu\r\n", (unsigned long long)sid);
}

void nats_put_unsub(struct json_text *to, uint64_t sid)
{
    json_text_format(to, "UNSUB %llu\r\n", (unsigned long long)sid);
}

void nats_put_pub(struct json_text *to, const struct nats_head *head, size_t len)
{
    bool has_headers = head->headers.data != NULL;

    json_text_literal(to, has_headers ? "HPUB " : "PUB ");
    json_text_add(to, head->subject);
    if (head->reply.data != NULL) {
        json_text_literal(to, " ");
        json_text_add(to, head->reply);
    }
    if (has_headers)
        json_text_format(to, " %zu", head->headers.len);
    json_text_format(to, " %zu\r\n", head->headers.len + head->prefix.len + len);
    if (has_headers)
        json_text_add(to, head->headers);
    if (head->prefix.data != NULL)
        json_text_add(to, head->prefix);
}
