/* echo_worker: answers the requests of load, at a small part of their cost in the bus. It knows
 * their exact form (messages.h) and no other JSON; any other message ends it. The complete lines of
 * one read are answered by one write or, with the argument --each, by one write each, as most
 * programs do. */
#include "build_config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "messages.h"

#define READ_SIZE 65536
#define PUSH_SIZE 65536

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void write_all(const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(STDOUT_FILENO, data, len);

        if (n < 0 && errno != EINTR)
            fail("echo_worker: write");
        if (n > 0) {
            data += n;
            len -= (size_t)n;
        }
    }
}

static bool starts_with(const char *text, size_t len, const char *start, size_t start_len)
{
    return len >= start_len && memcmp(text, start, start_len) == 0;
}

#define STARTS_WITH(at, end, text) starts_with(at, (size_t)((end) - (at)), text, LENGTH(text))

static void refuse(const char *line, const char *end) __attribute__((noreturn));

static void refuse(const char *line, const char *end)
{
    int len = end - line < 200 ? (int)(end - line) : 200;

    fprintf(stderr, "echo_worker: not a message of load: %.*s\n", len, line);
    exit(1);
}

static char *find(char *at, const char *end, char what)
{
    char *found = memchr(at, what, (size_t)(end - at));

    if (found == NULL)
        refuse(at, end);
    return found;
}

static void push(const char *session, size_t len) __attribute__((noreturn));

/* Turns the request into its answer. A push request does not return. */
static void answer(char *line, const char *end)
{
    char *at = line, *session = NULL;
    size_t session_len = 0;

    if (!STARTS_WITH(at, end, MESSAGE_START))
        refuse(line, end);
    at = find(at + LENGTH(MESSAGE_START), end, ',');
    if (STARTS_WITH(at, end, MESSAGE_SESSION)) {
        session = at + LENGTH(MESSAGE_SESSION);
        at = find(session, end, '"') + 1;
        session_len = (size_t)(at - 1 - session);
    }
    if (STARTS_WITH(at, end, MESSAGE_ECHO)) {
        memcpy(at, MESSAGE_ECHOED, LENGTH(MESSAGE_ECHOED));
    } else if (session != NULL && STARTS_WITH(at, end, MESSAGE_PUSH)) {
        memcpy(at, MESSAGE_PUSHED, LENGTH(MESSAGE_PUSHED));
        write_all(line, (size_t)(end - line));
        push(session, session_len);
    } else {
        refuse(line, end);
    }
}

/* Answers the complete lines; returns their length. */
static size_t answer_lines(char *data, size_t len, bool each)
{
    char *at = data, *const end = data + len;

    while (at < end) {
        char *newline = memchr(at, '\n', (size_t)(end - at));

        if (newline == NULL)
            break;
        answer(at, newline + 1);
        if (each)
            write_all(at, (size_t)(newline + 1 - at));
        at = newline + 1;
    }
    if (!each)
        write_all(data, (size_t)(at - data));
    return (size_t)(at - data);
}

static void put_number(char *to, uint64_t number)
{
    for (int i = NOTE_DIGITS - 1; i >= 0; i--, number /= 10)
        to[i] = (char)('0' + number % 10);
}

/* Sends notifications until stdout is closed. */
static void push(const char *session, size_t len)
{
    static char block[PUSH_SIZE];
    uint64_t number = NOTE_FIRST;
    size_t digits_at = LENGTH(NOTE_START) + len + LENGTH(NOTE_MIDDLE);
    size_t note_len = digits_at + NOTE_DIGITS + LENGTH(NOTE_END);
    size_t notes = PUSH_SIZE / note_len;

    for (size_t i = 0; i < notes; i++) {
        char *note = block + i * note_len;

        memcpy(note, NOTE_START, LENGTH(NOTE_START));
        memcpy(note + LENGTH(NOTE_START), session, len);
        memcpy(note + LENGTH(NOTE_START) + len, NOTE_MIDDLE, LENGTH(NOTE_MIDDLE));
        memcpy(note + digits_at + NOTE_DIGITS, NOTE_END, LENGTH(NOTE_END));
    }
    for (;;) {
        for (size_t i = 0; i < notes; i++)
            put_number(block + i * note_len + digits_at, number++);
        write_all(block, notes * note_len);
    }
}

static char *grow(char *data, size_t capacity)
{
    char *bigger = realloc(data, capacity);

    if (bigger == NULL)
        fail("echo_worker");
    return bigger;
}

int main(int argc, char **argv)
{
    bool each = argc > 1 && strcmp(argv[1], "--each") == 0;
    size_t capacity = 4 * READ_SIZE, len = 0;
    char *data = grow(NULL, capacity);

    for (;;) {
        size_t done;
        ssize_t n;

        n = read(STDIN_FILENO, data + len, READ_SIZE);
        if (n == 0)
            return 0;
        if (n < 0 && errno != EINTR)
            fail("echo_worker: read");
        if (n < 0)
            continue;
        /* Only new bytes can hold the end of a long line. */
        done = 0;
        if (memchr(data + len, '\n', (size_t)n) != NULL)
            done = answer_lines(data, len + (size_t)n, each);
        len = len + (size_t)n - done;
        if (done > 0)
            memmove(data, data + done, len);
        if (capacity - len < READ_SIZE)
            data = grow(data, capacity *= 2);
    }
}
