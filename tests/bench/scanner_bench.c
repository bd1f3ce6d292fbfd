/* How fast the scanner reads: GB/s over whole input, and handed over in pieces of 1 KiB.
 *
 *     scanner_bench [seconds per figure]
 *
 * The texts are random but the same in every run, and long enough that no processor learns them by
 * heart. What is told is the best of many short rounds. */
#include "build_config.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "format/scanner.h"

#define INPUT_BYTES (3 * 1024 * 1024)
#define PIECE_BYTES 1024

struct text {
    char *data;
    size_t len, size;
};

static uint32_t random_state = 1;

static uint32_t random_below(uint32_t limit)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)random_state * limit) >> 32);
}

static void add(struct text *text, const char *bytes, size_t len)
{
    if (text->size - text->len < len) {
        text->size = (text->size + len) * 2;
        text->data = realloc(text->data, text->size);
        if (text->data == NULL) {
            perror("scanner_bench");
            exit(1);
        }
    }
    memcpy(text->data + text->len, bytes, len);
    text->len += len;
}

static void add_text(struct text *text, const char *words)
{
    add(text, words, strlen(words));
}

static void add_number(struct text *text, const char *format, double number)
{
    char words[64];
    int len = snprintf(words, sizeof words, format, number);

    add(text, words, (size_t)len);
}

static void add_prose(struct text *text, size_t len, const char *line_end)
{
    static const char *const words[] = {"the",  "message", "of",     "a",      "worker",
                                        "and",  "its",     "answer", "cannot", "be",
                                        "lost", "between", "pipes",  "queue",  "when"};
    size_t begin = text->len, line = text->len;

    while (text->len - begin < len) {
        add_text(text, words[random_below(sizeof words / sizeof words[0])]);
        if (text->len - line > 60) {
            add_text(text, line_end);
            line = text->len;
        }
        add_text(text, " ");
    }
}

/* (a) requests of about 100 bytes, one a line */
static void requests(struct text *text)
{
    static const char *const methods[] = {"tools/call", "ping", "session/prompt",
                                          "resources/read"};

    for (unsigned id = 0; text->len < INPUT_BYTES; id++) {
        add_number(text, "{\"jsonrpc\":\"2.0\",\"id\":%.0f,\"method\":\"", id);
        add_text(text, methods[random_below(4)]);
        add_text(text, "\",\"params\":{\"name\":\"echo\",\"arguments\":{\"n\":");
        add_number(text, "%.0f", random_below(100000));
        add_text(text, ",\"text\":\"");
        add(text, "hello to all of you", 1 + random_below(19));
        add_text(text, "\"}}}\n");
    }
}

/* the same, spaced as Python writes it */
static void spaced_requests(struct text *text)
{
    for (unsigned id = 0; text->len < INPUT_BYTES; id++) {
        add_number(text, "{\"jsonrpc\": \"2.0\", \"id\": %.0f, \"method\": \"tools/call\", ", id);
        add_text(text, "\"params\": {\"name\": \"echo\", \"arguments\": {\"n\": ");
        add_number(text, "%.0f", random_below(100000));
        add_text(text, ", \"text\": \"");
        add(text, "hello to all of you", 1 + random_below(19));
        add_text(text, "\"}}}\n");
    }
}

/* (b) one message that is nearly all strings of some KiB */
static void strings_without_escapes(struct text *text)
{
    add_text(text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[");
    while (text->len < INPUT_BYTES) {
        add_text(text, "{\"type\":\"text\",\"text\":\"");
        add_prose(text, 2048 + random_below(8192), "");
        add_text(text, "\"},");
    }
    add_text(text, "null]}}\n");
}

/* the same with an escaped newline every 60 to 70 bytes */
static void strings_with_escapes(struct text *text)
{
    add_text(text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[");
    while (text->len < INPUT_BYTES) {
        add_text(text, "{\"type\":\"text\",\"text\":\"");
        add_prose(text, 2048 + random_below(8192), "\\n");
        add_text(text, "\"},");
    }
    add_text(text, "null]}}\n");
}

/* text that is nothing but escaped characters */
static void strings_of_hex_escapes(struct text *text)
{
    add_text(text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"");
    while (text->len < INPUT_BYTES) {
        char words[8];
        int len = snprintf(words, sizeof words, "\\u%04x", 0x400 + random_below(0x100));
        add(text, words, (size_t)len);
    }
    add_text(text, "\"}\n");
}

/* text in Cyrillic, Greek, Chinese and with emoji */
static void strings_not_ascii(struct text *text)
{
    static const char *const words[] = {
        "\xD1\x81\xD0\xBE\xD0\xBE\xD0\xB1\xD1\x89\xD0\xB5\xD0\xBD\xD0\xB8\xD0\xB5 ",
        "\xCE\xBC\xCE\xAE\xCE\xBD\xCF\x85\xCE\xBC\xCE\xB1 ",
        "\xE6\xB6\x88\xE6\x81\xAF\xE4\xB8\x8D\xE4\xBC\x9A\xE4\xB8\xA2\xE5\xA4\xB1",
        "\xE5\xB7\xA5\xE4\xBD\x9C\xE8\x80\x85", "\xF0\x9F\x9A\x8C "};

    add_text(text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"");
    while (text->len < INPUT_BYTES)
        add_text(text, words[random_below(sizeof words / sizeof words[0])]);
    add_text(text, "\"}\n");
}

/* (c) one message of small objects, arrays, numbers and literals */
static void structure(struct text *text)
{
    static const char *const literal[] = {"true", "false", "null"};

    add_text(text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"rows\":[");
    while (text->len < INPUT_BYTES) {
        add_number(text, "{\"id\":%.0f,", random_below(100000));
        add_number(text, "\"x\":%.3f,", (double)random_below(2000000) / 1000 - 1000);
        add_number(text, "\"y\":%.6f,", (double)random_below(2000000) / 1000 - 1000);
        add_number(text, "\"weight\":%.17g,", (double)random_below(1000000) / 999983.0);
        add_number(text, "\"scale\":%.3e,\"shape\":[", (double)random_below(1000) / 7);
        for (uint32_t n = random_below(8); n > 0; n--)
            add_number(text, "%.0f,", random_below(1000));
        add_number(text, "[%.0f,[]],{}],\"ok\":", random_below(10));
        add_text(text, literal[random_below(3)]);
        add_text(text, "},");
    }
    add_text(text, "null]}}\n");
}

/* the same numbers only */
static void numbers(struct text *text)
{
    add_text(text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[");
    while (text->len < INPUT_BYTES) {
        add_number(text, "[%.15f,", (double)random_below(2000000) / 999983.0 - 1);
        add_number(text, "%.15f],", (double)random_below(2000000) / 999983.0 - 1);
        add_number(text, "%.0f,", random_below(1000000));
    }
    add_text(text, "null]}\n");
}

/* Scans all messages of `text`, each handed over `piece` bytes at a time; returns their number. */
static size_t scan(const struct text *text, size_t piece)
{
    struct scanner scanner;
    size_t begin = 0, there = 0, messages = 0;

    scanner_reset(&scanner);
    while (there < text->len) {
        there = text->len - there < piece ? text->len : there + piece;
        for (;;) {
            enum scan_status status = scanner_run(&scanner, text->data + begin, there - begin);
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
    struct text text = {NULL, 0, 0};
    size_t messages;
    double whole, pieces;

    generate(&text);
    messages = scan(&text, text.len);
    whole = gigabytes_per_second(&text, text.len, seconds);
    pieces = gigabytes_per_second(&text, PIECE_BYTES, seconds);
    printf("%-32s %8zu messages of %8zu bytes: whole %6.2f GB/s, in 1 KiB pieces %6.2f GB/s\n",
           name, messages, text.len / messages, whole, pieces);
    free(text.data);
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
