#include "build_config.h"

#include "wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARK "\"chaos\":\""
#define SUM_DIGITS 16 /* as many as WIRE_NO_SUM has */

uint64_t wire_hash(const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ len;
    uint64_t word;

    for (; len >= sizeof word; len -= sizeof word, at += sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = (hash ^ word) * UINT64_C(0x9fb21c651e98df25);
        hash ^= hash >> 32;
    }
    for (; len > 0; len--, at++)
        hash = (hash ^ *at) * UINT64_C(0x100000001b3);
    return hash ^ (hash >> 29);
}

uint64_t wire_key_hash(const char *key)
{
    return wire_hash(key, strlen(key));
}

/* --- reading --- */

/* The start of the header's text, or NULL. */
static const char *find_header(const char *line, size_t len, const char **end)
{
    const char *at = memmem(line, len, MARK, sizeof MARK - 1);

    if (at == NULL)
        return NULL;
    at += sizeof MARK - 1;
    *end = memchr(at, '"', (size_t)(line + len - at));
    return *end != NULL ? at : NULL;
}

/* Copies the next word of the header; "-" becomes "". */
static bool next_word(const char **at, const char *end, char *to, size_t size)
{
    const char *stop = *at;
    size_t len;

    while (stop < end && *stop != ' ')
        stop++;
    len = (size_t)(stop - *at);
    if (len == 0 || len >= size)
        return false;
    memcpy(to, *at, len);
    to[len] = '\0';
    if (strcmp(to, "-") == 0)
        to[0] = '\0';
    *at = stop < end ? stop + 1 : stop;
    return true;
}

static bool next_serial(const char **at, const char *end, struct serial *serial)
{
    char word[48], *rest;

    if (!next_word(at, end, word, sizeof word))
        return false;
    serial->origin = strtoull(word, &rest, 16);
    if (*rest != '.')
        return false;
    serial->number = strtoull(rest + 1, &rest, 16);
    return *rest == '\0';
}

bool wire_parse(struct wire_header *header, const char *line, size_t len)
{
    const char *end;
    const char *at = find_header(line, len, &end);
    char kind[2];

    if (at == NULL || !next_word(&at, end, kind, sizeof kind))
        return false;
    header->kind = kind[0];
    wire_raw_id(header->raw_id, sizeof header->raw_id, line, len);
    wire_token(header->token, line, len);
    return next_serial(&at, end, &header->serial) && next_serial(&at, end, &header->ref) &&
           next_word(&at, end, header->key, sizeof header->key) &&
           next_word(&at, end, header->session, sizeof header->session) &&
           next_word(&at, end, header->orders, sizeof header->orders) && end - at == SUM_DIGITS;
}

/* The digits of the sum over all bytes before and after them. Returns their place, or NULL. */
static const char *compute_sum(const char *line, size_t len, char digits[SUM_DIGITS + 1])
{
    const char *end;
    const char *at = find_header(line, len, &end);
    struct wire_hole holes[WIRE_HOLES];
    uint64_t sum;

    if (at == NULL || end - at < SUM_DIGITS)
        return NULL;
    at = end - SUM_DIGITS;
    wire_find_holes(holes, line, len);
    sum = wire_part_hash(line, 0, (size_t)(at - line), holes) * 31 +
          wire_part_hash(line, (size_t)(end - line), len, holes);
    snprintf(digits, SUM_DIGITS + 1, "%016" PRIx64, sum);
    return at;
}

bool wire_sum_ok(const char *line, size_t len)
{
    char digits[SUM_DIGITS + 1];
    const char *at = compute_sum(line, len, digits);

    return at != NULL && memcmp(digits, at, SUM_DIGITS) == 0;
}

void wire_enter_sum(char *line, size_t len)
{
    char digits[SUM_DIGITS + 1];
    const char *at = compute_sum(line, len, digits);

    if (at != NULL)
        memcpy(line + (at - line), digits, SUM_DIGITS);
}

/* Skips `text`; NULL if other text stands at `at`. */
static const char *expect(const char *at, const char *end, const char *text)
{
    size_t len = strlen(text);

    if (at == NULL || (size_t)(end - at) < len || memcmp(at, text, len) != 0)
        return NULL;
    return at + len;
}

/* Copies the bytes before `stop`. */
static const char *take(const char *at, const char *end, char stop, char *to, size_t size)
{
    const char *found = at != NULL ? memchr(at, stop, (size_t)(end - at)) : NULL;

    if (found == NULL || (size_t)(found - at) >= size)
        return NULL;
    memcpy(to, at, (size_t)(found - at));
    to[found - at] = '\0';
    return found;
}

static const char *take_id(const char *at, const char *end, char *key, size_t size)
{
    if (at == NULL || at == end)
        return NULL;
    if (*at == 'n') {
        key[0] = '\0';
        return expect(at, end, "null");
    }
    if (*at == '"') {
        key[0] = 's';
        at = take(at + 1, end, '"', key + 1, size - 1);
        return at != NULL ? at + 1 : NULL;
    }
    key[0] = 'n';
    return take(at, end, ',', key + 1, size - 1);
}

bool wire_parse_error(struct wire_error *error, const char *line, size_t len)
{
    const char *end = line + len;
    const char *at = expect(line, end, "{\"jsonrpc\":\"2.0\",\"id\":");
    char code[16];

    at = take_id(at, end, error->key, sizeof error->key);
    at = expect(at, end, ",\"error\":{\"code\":");
    at = take(at, end, ',', code, sizeof code);
    at = expect(at, end, ",\"message\":\"");
    at = take(at, end, '"', error->text, sizeof error->text);
    at = expect(at, end, "\"}}\n");
    if (at != end)
        return false;
    error->code = (int)strtol(code, NULL, 10);
    return true;
}

bool wire_parse_cancel(char id[WIRE_TOKEN_MAX], const char *line, size_t len)
{
    static const char *const beginnings[] = {
        "notifications/cancelled\",\"params\":{\"requestId\":",
        "$/cancel_request\",\"params\":{\"requestId\":",
        "$/cancelRequest\",\"params\":{\"id\":",
    };
    const char *end = line + len, *at;

    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++) {
        at = expect(line, end, "{\"jsonrpc\":\"2.0\",\"method\":\"");
        at = expect(at, end, beginnings[i]);
        at = take(at, end, '}', id, WIRE_TOKEN_MAX);
        if (expect(at, end, "}}\n") != NULL)
            return true;
    }
    return false;
}
