/* The speed of the scanner in GB/s, over whole input and over input in pieces of 1 KiB.
 *
 *     scanner_bench [seconds per figure]
 *
 * The texts are pseudo-random, the same in each run, and too long for branch predictors to learn.
 * Each figure is the best of many short rounds. */
#include "build_config.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "text.h"
#include "json/scanner.h"

#define INPUT_BYTES (3 * 1024 * 1024)
#define PIECE_BYTES 1024

static uint32_t random_state = 1;

static uint32_t random_below(uint32_t limit)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)random_state * limit) >> 32);
}

/* Words of at least `len` bytes; `line_end` follows every 60 to 70 bytes. */
static void add_prose(struct text *text, size_t len, const char *line_end)
{
    static const char *const words[] = {"the",  "message", "of",     "a",      "worker",
                                        "and",  "its",     "answer", "cannot", "be",
                                        "lost", "between", "pipes",  "queue",  "when"};
    size_t begin = text->len, line = text->len;

    while (text->len - begin < len) {
        text_printf(text, "%s", words[random_below(sizeof words / sizeof words[0])]);
        if (text->len - line > 60) {
            text_printf(text, "%s", line_end);
            line = text->len;
        }
        text_printf(text, " ");
    }
}

/* The text of a small request is up to 19 bytes long. */
static void add_hello(struct text *text, const char *before)
{
    text_printf(text, "%s", before);
    text_add(text, "hello to all of you", 1 + random_below(19));
    text_printf(text, "\"}}}\n");
}

/* (a) requests of about 100 bytes, one a line */
static void requests(struct text *text)
{
    static const char *const methods[] = {"tools/call", "ping", "session/prompt", "resources/read"};

    for (unsigned id = 0; text->len < INPUT_BYTES; id++) {
        text_printf(text, "{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"%s\",\"params\":{", id,
                    methods[random_below(4)]);
        text_printf(text, "\"name\":\"echo\",\"arguments\":{\"n\":%u", random_below(100000));
        add_hello(text, ",\"text\":\"");
    }
}

/* the same, spaced as Python writes it */
static void spaced_requests(struct text *text)
{
    for (unsigned id = 0; text->len < INPUT_BYTES; id++) {
        text_printf(text, "{\"jsonrpc\": \"2.0\", \"id\": %u, \"method\": \"tools/call\", ", id);
        text_printf(text, "\"params\": {\"name\": \"echo\", \"arguments\": {\"n\": %u",
                    random_below(100000));
        add_hello(text, ", \"text\": \"");
    }
}

/* one message that is nearly all strings of some KiB */
static void strings(struct text *text, const char *line_end)
{
    text_printf(text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[");
    while (text->len < INPUT_BYTES) {
        text_printf(text, "{\"type\":\"text\",\"text\":\"");
        add_prose(text, 2048 + random_below(8192), line_end);
        text_printf(text, "\"},");
    }
    text_printf(text, "null]}}\n");
}

/* (b) without escapes */
static void strings_without_escapes(struct text *text)
{
    strings(text, "");
}

/* the same with an escaped newline every 60 to 70 bytes */
static void strings_with_escapes(struct text *text)
{
    strings(text, "\\n");
}

/* text of escaped characters only */
static void strings_of_hex_escapes(struct text *text)
{
    text_printf(text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"");
    while (text->len < INPUT_BYTES)
        text_printf(text, "\\u%04x", 0x400 + random_below(0x100));
    text_printf(text, "\"}\n");
}

/* text in Cyrillic, Greek, Chinese and with emoji */
static void strings_not_ascii(struct text *text)
{
    static const char *const words[] = {
        "\xD1\x81\xD0\xBE\xD0\xBE\xD0\xB1\xD1\x89\xD0\xB5\xD0\xBD\xD0\xB8\xD0\xB5 ",
        "\xCE\xBC\xCE\xAE\xCE\xBD\xCF\x85\xCE\xBC\xCE\xB1 ",
        "\xE6\xB6\x88\xE6\x81\xAF\xE4\xB8\x8D\xE4\xBC\x9A\xE4\xB8\xA2\xE5\xA4\xB1",
        "\xE5\xB7\xA5\xE4\xBD\x9C\xE8\x80\x85", "\xF0\x9F\x9A\x8C "};

    text_printf(text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"");
    while (text->len < INPUT_BYTES)
        text_printf(text, "%s", words[random_below(sizeof words / sizeof words[0])]);
    text_printf(text, "\"}\n");
}

static double random_fraction(uint32_t limit, double divisor)
{
    return (double)random_below(limit) / divisor;
}

/* (c) one message of small objects, arrays, numbers and literals */
static void structure(struct text *text)
{
    static const char *const literal[] = {"true", "false", "null"};

    text_printf(text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"rows\":[");
    while (text->len < INPUT_BYTES) {
        text_printf(text, "{\"id\":%u,", random_below(100000));
        text_printf(text, "\"x\":%.3f,", random_fraction(2000000, 1000) - 1000);
        text_printf(text, "\"y\":%.6f,", random_fraction(2000000, 1000) - 1000);
        text_printf(text, "\"weight\":%.17g,", random_fraction(1000000, 999983.0));
        text_printf(text, "\"scale\":%.3e,\"shape\":[", random_fraction(1000, 7));
        for (uint32_t n = random_below(8); n > 0; n--)
            text_printf(text, "%u,", random_below(1000));
        text_printf(text, "[%u,[]],{}],\"ok\":", random_below(10));
        text_printf(text, "%s},", literal[random_below(3)]);
    }
    text_printf(text, "null]}}\n");
}

/* the same numbers only */
static void numbers(struct text *text)
{
    text_printf(text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[");
    while (text->len < INPUT_BYTES) {
        text_printf(text, "[%.15f,", random_fraction(2000000, 999983.0) - 1);
        text_printf(text, "%.15f],", random_fraction(2000000, 999983.0) - 1);
        text_printf(text, "%u,", random_below(1000000));
    }
    text_printf(text, "null]}\n");
}

/* Scans all messages of `text`, in pieces of `piece` bytes; returns the number of messages. */
static size_t scan(const struct text *text, size_t piece)
{
    struct scanner scanner;
    size_t begin = 0, end = 0, messages = 0;

    scanner_reset(&scanner);
    while (end < text->len) {
        end = text->len - end < piece ? text->len : end + piece;
        for (;;) {
            enum scan_status status = scanner_run(&scanner, text->data + begin, end - begin);
            if (status == SCAN_MORE)
                break;
            if (status == SCAN_INVALID) {
                fprintf(stderr, "scanner_bench: %s at %zu\n", scan_error_text(scanner.error),
                        begin + scanner.position);
                exit(1);
            }
            begin += scanner.position;
            messages++;
            scanner_reset(&scanner);
        }
    }
    return messages;
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double gigabytes_per_second(const struct text *text, size_t piece, double seconds)
{
    double best = 0, stop = now() + seconds;

    while (now() < stop) {
        double begin = now(), rate;
        scan(text, piece);
        rate = (double)text->len / (now() - begin) / 1e9;
        if (rate > best)
            best = rate;
    }
    return best;
}

static void measure(const char *name, void (*generate)(struct text *), double seconds)
{
    struct text text = {0};
    size_t messages;
    double whole, pieces;

    generate(&text);
    messages = scan(&text, text.len);
    whole = gigabytes_per_second(&text, text.len, seconds);
    pieces = gigabytes_per_second(&text, PIECE_BYTES, seconds);
    printf("%-32s %8zu messages of %8zu bytes: whole %6.2f GB/s, in 1 KiB pieces %6.2f GB/s\n",
           name, messages, text.len / messages, whole, pieces);
    text_free(&text);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 0.5;

    measure("small requests", requests, seconds);
    measure("small requests, spaced", spaced_requests, seconds);
    measure("long strings", strings_without_escapes, seconds);
    measure("long strings with escapes", strings_with_escapes, seconds);
    measure("long strings of hex escapes", strings_of_hex_escapes, seconds);
    measure("long strings, not ASCII", strings_not_ascii, seconds);
    measure("structure and numbers", structure, seconds);
    measure("long numbers", numbers, seconds);
    return 0;
}
