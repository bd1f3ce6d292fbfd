#include "build_config.h"

#include "cli/rmp_decode.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/terminal.h"
#include "cli/rmp_show.h"
#include "rmp/frame.h"
#include "rmp/msgpack.h"
#include "json/string.h"

#define READ_SIZE 65536
#define INPUT_MAX ((size_t)64 << 20)

/* --- hexadecimal --- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The first digit of a line, after its offset. */
static size_t skip_offset(const char *text, size_t len, size_t at)
{
    size_t digits = at;

    while (digits < len && is_hex_digit((unsigned char)text[digits]))
        digits++;
    return digits > at && digits < len && text[digits] == ':' ? digits + 1 : at;
}

static unsigned digit_value(char c)
{
    return c <= '9' ? (unsigned)(c - '0') : (unsigned)((c | 0x20) - 'a') + 10;
}

/* Whether the text consists of pairs of digits; `to`, unless NULL, gets the bytes. */
static bool read_hex(const char *text, size_t len, char *to, size_t *count)
{
    *count = 0;
    for (size_t at = skip_offset(text, len, 0); at < len; at++) {
        if (is_space(text[at])) {
            if (text[at] == '\n')
                at = skip_offset(text, len, at + 1) - 1;
            continue;
        }
        if (at + 1 == len || !is_hex_digit((unsigned char)text[at]) ||
            !is_hex_digit((unsigned char)text[at + 1]))
            return false;
        if (to != NULL)
            to[*count] = (char)(digit_value(text[at]) << 4 | digit_value(text[at + 1]));
        (*count)++;
        at++;
    }
    return true;
}

size_t rmp_decode_hex(char *text, size_t len)
{
    size_t count;

    if (!read_hex(text, len, NULL, &count))
        return 0;
    (void)read_hex(text, len, text, &count);
    return count;
}

/* --- reading --- */

static char *read_all(int fd, size_t *len)
{
    char *bytes = NULL;
    size_t capacity = 0;

    *len = 0;
    for (;;) {
        char *grown = array_grow(bytes, &capacity, *len + READ_SIZE, 1);
        ssize_t got;

        if (grown == NULL || *len > INPUT_MAX) {
            free(grown != NULL ? grown : bytes);
            errno = grown == NULL ? ENOMEM : EFBIG;
            return NULL;
        }
        bytes = grown;
        got = read(fd, bytes + *len, READ_SIZE);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            free(bytes);
            return NULL;
        }
        if (got == 0)
            return bytes;
        *len += (size_t)got;
    }
}

/* --- frames --- */

/* Prints the frame that the bytes begin with, and moves *bytes past it. */
static enum rmp_error show_next(struct slice *bytes, bool json)
{
    static const struct rmp_schemas public_schemas;
    static const struct rmp_rules rules = {.schemas = &public_schemas, .max_body = UINT32_MAX};
    uint32_t len = bytes->len >= RMP_PREFIX_LEN ? wire_get_u32(bytes->data) : 0;
    size_t whole = (size_t)len + RMP_PREFIX_LEN;
    struct rmp_received shown = {.wire = *bytes};
    struct rmp_frame frame;
    enum rmp_error error;

    if (whole < bytes->len)
        shown.wire.len = whole;
    error = rmp_frame_read(&frame, shown.wire, &rules, clock_epoch_ms());
    *bytes = slice_of(bytes->data + shown.wire.len, bytes->len - shown.wire.len);
    if (error == RMP_TRUNCATED_HEADER)
        return error;
    shown.header = frame.header;
    if (shown.wire.len >= RMP_BODY_OFFSET)
        shown.has_envelope = rmp_envelope_read(&shown.envelope,
                                               slice_of(shown.wire.data + RMP_BODY_OFFSET,
                                                        shown.wire.len - RMP_BODY_OFFSET)) ==
                             RMP_OK;
    if (json)
        rmp_show_json(NULL, &shown, error);
    else
        rmp_show_table(&shown, error);
    return error;
}

/* Expiry and the registry of another daemon are no faults of the frame. */
static bool is_fault(enum rmp_error error)
{
    return error != RMP_OK && error != RMP_EXPIRED && error != RMP_UNKNOWN_SCHEMA;
}

static int show_all(struct slice bytes, bool json)
{
    int status = EXIT_DONE;

    do {
        enum rmp_error error = show_next(&bytes, json);

        if (is_fault(error)) {
            fflush(stdout);
            terminal_line(stderr, "stdio_bus_rmp: %s: %s", rmp_error_name(error),
                          rmp_error_text(error));
            status = EXIT_DATA_ERROR;
        }
        if (!json && bytes.len > 0)
            terminal_line(stdout, "%s", "");
    } while (bytes.len > 0 && status == EXIT_DONE);
    return status;
}

int rmp_decode(int fd, bool json)
{
    size_t len, count;
    char *bytes = read_all(fd, &len);
    int status;

    if (bytes == NULL) {
        terminal_line(stderr, "stdio_bus_rmp: cannot read the frame: %s", strerror(errno));
        return EXIT_OS_ERROR;
    }
    count = rmp_decode_hex(bytes, len);
    status = show_all(slice_of(bytes, count > 0 ? count : len), json);
    free(bytes);
    return status;
}
