#include "build_config.h"

#include "test_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define READ_SIZE 65536
#define FLUSH_SIZE 131072

void worker_write(const char *bytes, size_t len)
{
    size_t done = 0;
    while (done < len) {
        ssize_t n = write(STDOUT_FILENO, bytes + done, len - done);
        if (n < 0 && errno != EINTR)
            _exit(3);
        if (n > 0)
            done += (size_t)n;
    }
}

void worker_flush(struct worker *worker)
{
    if (worker->framing != NULL)
        worker_frame_lines(worker);
    worker_write(worker->output.data, worker->output.len);
    worker->output.len = 0;
}

static bool next_line(struct worker *worker, struct span *line)
{
    size_t len = worker->input.len - worker->consumed;
    if (len == 0)
        return false;
    const char *start = worker->input.data + worker->consumed;
    const char *newline = memchr(start, '\n', len);
    if (newline == NULL)
        return false;
    *line = (struct span){start, (size_t)(newline - start) + 1};
    worker->consumed += line->len;
    return true;
}

/* Handles every whole message in the input. */
static void handle_messages(struct worker *worker)
{
    struct span line;
    while (worker->framing != NULL ? worker_next_body(worker, &line) : next_line(worker, &line)) {
        worker_handle(worker, line);
        if (worker->output.len >= FLUSH_SIZE)
            worker_flush(worker);
    }
    size_t rest = worker->input.len - worker->consumed;
    if (rest > 0)
        memmove(worker->input.data, worker->input.data + worker->consumed, rest);
    worker->input.len = rest;
    worker->consumed = 0;
}

/* Returns false at the end of the input. */
static bool read_input(struct worker *worker)
{
    if (worker->wait_with_signals)
        worker_wait_input(worker);
    char *to = text_room(&worker->input, READ_SIZE);
    ssize_t n;
    do
        n = read(STDIN_FILENO, to, READ_SIZE);
    while (n < 0 && errno == EINTR);
    if (n > 0)
        worker->input.len += (size_t)n;
    return n > 0;
}

static void record_start(const char *path)
{
    struct timespec now;
    char line[64];
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    clock_gettime(CLOCK_MONOTONIC, &now);
    int len = snprintf(line, sizeof line, "%ld %lld\n", (long)getpid(),
                       (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000);
    if (fd < 0 || write(fd, line, (size_t)len) != len)
        _exit(4);
    close(fd);
}

static void crash_once(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0)
        _exit(1);
}

static void say_hex(const char *hex)
{
    struct text bytes = {0};
    worker_decode_hex(&bytes, span_of(hex));
    worker_write(bytes.data, bytes.len);
    text_free(&bytes);
}

bool worker_options(struct worker *worker, int argc, char *const argv[])
{
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *value = argv[i + 1] != NULL ? argv[i + 1] : "";
        i++;
        if (strcmp(word, "--name") == 0) {
            worker->name = value;
        } else if (strcmp(word, "--record") == 0) {
            record_start(value);
        } else if (strcmp(word, "--exit") == 0) {
            _exit((int)strtol(value, NULL, 10));
        } else if (strcmp(word, "--crash-once") == 0) {
            crash_once(value);
        } else if (strcmp(word, "--on-sigterm") == 0) {
            worker_on_sigterm(worker, span_of(value), 0);
        } else if (strcmp(word, "--say") == 0) {
            say_hex(value);
        } else if (strcmp(word, "--framing") == 0) {
            worker->framing = value;
        } else if (strcmp(word, "--lists") == 0) {
            worker->lists = value;
        } else if (strcmp(word, "--discover") == 0) {
            worker->discover = value;
        } else if (strcmp(word, "--one-initialize") == 0) {
            worker->one_initialize = true;
            i--;
        } else if (strcmp(word, "--stay") == 0) {
            worker->stay = true;
            i--;
        } else {
            fprintf(stderr, "test_worker: unknown option %s\n", word);
            return false;
        }
    }
    return true;
}

int main(int argc, char *argv[])
{
    struct worker worker = {.name = "worker", .pid = getpid()};
    const char *slash = strrchr(argv[0], '/');
    /* It may be killed as it ends: the leak sanitizer would leave its process behind. */
    if (strcmp(slash != NULL ? slash + 1 : argv[0], "openssl") == 0 ||
        (argc > 1 && strcmp(argv[1], "--tunnel") == 0))
        _exit(worker_tunnel(argc, argv));
    worker_birth(&worker.birth, argc, argv);
    if (!worker_options(&worker, argc, argv))
        return 64;
    do {
        handle_messages(&worker);
        worker_flush(&worker);
    } while (read_input(&worker));
    handle_messages(&worker);
    worker_flush(&worker);
    while (worker.stay)
        worker_wait_signal(&worker);
    _exit(0);
}
