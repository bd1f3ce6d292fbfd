#include "build_config.h"

#include "base/log.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "base/error.h"
#include "suite.h"

#define PREFIX_LEN (sizeof("2026-01-02T03:04:05.678Z ") - 1)
#define OUTPUT_MAX (1u << 21)

/* A log over the write end of a pipe (or one side of a socket pair), and its output. */
static struct {
    struct log log;
    int ends[2];
    char *output; /* everything read so far, NUL-terminated */
    size_t len;
} fixture;

static void set_non_blocking(int fd, bool on)
{
    int flags = fcntl(fd, F_GETFL);

    ck_assert_int_ge(flags, 0);
    flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
    ck_assert_int_eq(fcntl(fd, F_SETFL, flags), 0);
}

static void open_over(const int ends[2], enum log_level level)
{
    memset(&fixture, 0, sizeof fixture);
    fixture.ends[0] = ends[0];
    fixture.ends[1] = ends[1];
    fixture.output = malloc(OUTPUT_MAX);
    ck_assert_ptr_nonnull(fixture.output);
    fixture.output[0] = '\0';
    set_non_blocking(ends[0], true);
    log_open(&fixture.log, ends[1], level);
}

static void open_over_pipe(enum log_level level)
{
    int ends[2];

    ck_assert_int_eq(pipe(ends), 0);
    open_over(ends, level);
}

static void tear_down(void)
{
    if (fixture.output == NULL)
        return; /* not used by the test */
    log_close(&fixture.log);
    ck_assert_int_eq(close(fixture.ends[0]), 0);
    ck_assert_int_eq(close(fixture.ends[1]), 0); /* log_close has left it open */
    free(fixture.output);
    fixture.output = NULL;
}

/* Appends the output since the last call. */
static const char *read_output(void)
{
    ssize_t count;

    do {
        size_t room = OUTPUT_MAX - 1 - fixture.len;
        count = read(fixture.ends[0], fixture.output + fixture.len, room);
        if (count > 0)
            fixture.len += (size_t)count;
    } while (count > 0);
    fixture.output[fixture.len] = '\0';
    return fixture.output;
}

static void forget_output(void)
{
    fixture.len = 0;
    fixture.output[0] = '\0';
}

static size_t count_lines(const char *text)
{
    size_t lines = 0;

    for (; *text != '\0'; text++)
        lines += *text == '\n';
    return lines;
}

static bool has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

/* As if log_open could not get a description of its own from /dev/fd. */
static void take_own_description_away(struct log *log, int fd)
{
    if (log->output == LOG_OWN)
        ck_assert_int_eq(close(log->fd), 0);
    log->output = LOG_BORROWED;
    log->fd = fd;
}

/* Not with time(), which may be a tick later than the clock of the log. */
static void format_second(char *text, size_t size)
{
    struct timespec now;
    struct tm parts;

    ck_assert_int_eq(clock_gettime(CLOCK_REALTIME, &now), 0);
    ck_assert_ptr_nonnull(gmtime_r(&now.tv_sec, &parts));
    ck_assert_uint_gt(strftime(text, size, "%Y-%m-%dT%H:%M:%S.", &parts), 0);
}

TEST(line_has_time_level_context_and_text)
{
    const char *line;
    char before[32], after[32];

    open_over_pipe(LOG_LEVEL_DEBUG);
    format_second(before, sizeof before);
    log_warn(&fixture.log, "worker=2 pid=71", "lost %d of %s", 3, "them");
    log_info(&fixture.log, "", "plain");
    log_debug(&fixture.log, "a", "b");
    log_error(&fixture.log, "", "c");
    format_second(after, sizeof after);
    line = read_output();
    ck_assert(strncmp(line, before, 20) >= 0 && strncmp(line, after, 20) <= 0);
    ck_assert_uint_eq(strspn(line + 20, "0123456789"), 3);
    ck_assert_int_eq(line[23], 'Z');
    ck_assert(strncmp(line + 24, " WARN  [worker=2 pid=71] lost 3 of them\n", 40) == 0);
    ck_assert(has(line, "Z INFO  plain\n"));
    ck_assert(has(line, "Z DEBUG [a] b\n"));
    ck_assert(has(line, "Z ERROR c\n"));
    ck_assert_uint_eq(count_lines(line), 4);
}

TEST(lower_levels_are_silent)
{
    open_over_pipe(LOG_LEVEL_WARN);
    ck_assert(!log_enabled(&fixture.log, LOG_LEVEL_INFO));
    ck_assert(log_enabled(&fixture.log, LOG_LEVEL_WARN));
    log_debug(&fixture.log, "", "no");
    log_info(&fixture.log, "", "no");
    log_warn(&fixture.log, "", "yes");
    ck_assert_uint_eq(count_lines(read_output()), 1);
}

TEST(control_bytes_forge_no_line)
{
    open_over_pipe(LOG_LEVEL_INFO);
    log_info(&fixture.log, "c\nd", "a\nb\r\x1b[1m\x7f\t\xc3\xa9");
    ck_assert_str_eq(read_output() + PREFIX_LEN,
                     "INFO  [c\\x0ad] a\\x0ab\\x0d\\x1b[1m\\x7f\\x09\xc3\xa9\n");
}

/* Every length around the limit, of one-, two- and four-byte pieces: the line ends in "..." and a
 * newline, is no longer than it may be, and no piece is split. */
TEST_ROWS(long_text_is_cut, 4)
{
    static const char *const pieces[] = {"x", "\xc3\xa9", "\n", "\xf0\x9f\x98\x80"};
    static const char *const outputs[] = {"x", "\xc3\xa9", "\\x0a", "\xf0\x9f\x98\x80"};
    const char *piece = pieces[row], *output = outputs[row];
    char text[2 * LOG_LINE_MAX];

    open_over_pipe(LOG_LEVEL_INFO);
    for (size_t len = LOG_LINE_MAX - 64; len + 4 < sizeof text; len++) {
        const char *line;
        size_t at = 0;
        for (; at % 4 != len % 4; at++)
            text[at] = 'y';
        for (; at + strlen(piece) <= len; at += strlen(piece))
            memcpy(text + at, piece, strlen(piece));
        text[at] = '\0';
        log_info(&fixture.log, "", "%s", text);
        line = read_output();
        ck_assert_uint_le(fixture.len, LOG_LINE_MAX);
        ck_assert_uint_eq(count_lines(line), 1);
        line += PREFIX_LEN + strlen("INFO  ");
        line += strspn(line, "y");
        while (strncmp(line, output, strlen(output)) == 0)
            line += strlen(output);
        if (len > LOG_LINE_MAX)
            ck_assert_str_eq(line, "...\n");
        else
            ck_assert(strcmp(line, "...\n") == 0 || strcmp(line, "\n") == 0);
        forget_output();
    }
}

TEST(closed_descriptor_drops)
{
    struct log log;

    log_open(&log, -1, LOG_LEVEL_INFO);
    log_warn(&log, "", "to nowhere");
    ck_assert_uint_eq(log.dropped, 1);
    log_close(&log);
}

static void fill(int fd)
{
    char block[512];
    size_t size = sizeof block;

    memset(block, 'f', sizeof block);
    block[sizeof block - 1] = '\n';
    set_non_blocking(fd, true);
    while (size > 0) {
        if (write(fd, block + sizeof block - size, size) < 0) {
            ck_assert_int_eq(errno, EAGAIN);
            size /= 2;
        }
    }
    set_non_blocking(fd, false);
}

/* A pipe, a pipe without a description of its own, a socket. Each stays blocking: a write that
 * blocks ends in the timeout of the test. */
static void open_kind(int kind)
{
    int ends[2];

    ck_assert_int_eq(kind < 2 ? pipe(ends) : socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    open_over(ends, LOG_LEVEL_INFO);
#ifdef __linux__
    if (kind == 0) {
        ck_assert_int_eq(fixture.log.output, LOG_OWN);
        ck_assert_int_eq(fcntl(fixture.log.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    }
#endif
    if (kind == 1)
        take_own_description_away(&fixture.log, fixture.ends[1]);
    if (kind == 2)
        ck_assert_int_eq(fixture.log.output, LOG_SOCKET);
}

TEST_ROWS(full_output_drops_and_reports, 3)
{
    const char *output;
    int flags;

    open_kind((int)row);
    flags = fcntl(fixture.ends[1], F_GETFL);
    fill(fixture.ends[1]);
    for (int i = 0; i < 3; i++)
        log_info(&fixture.log, "", "lost %d", i);
    ck_assert_uint_eq(fixture.log.dropped, 3);
    ck_assert(!has(read_output(), "lost"));
    forget_output();
    log_info(&fixture.log, "", "found");
    log_info(&fixture.log, "", "more");
    output = read_output();
    ck_assert_uint_eq(count_lines(output), 3);
    ck_assert(has(output, "WARN  3 log lines dropped"));
    ck_assert(strstr(output, "INFO  found") > strstr(output, "dropped"));
    ck_assert(has(output, "INFO  more"));
    ck_assert_uint_eq(fixture.log.dropped, 0);
    ck_assert_int_eq(fcntl(fixture.ends[1], F_GETFL), flags);
}

/* A terminal whose reader has stopped takes parts of lines. Its descriptor stays blocking. */
TEST(stopped_terminal_drops_and_reports)
{
    int ends[2] = {posix_openpt(O_RDWR | O_NOCTTY), -1};
    const char *output;

    if (ends[0] < 0)
        return; /* a system without terminals */
    ck_assert_int_eq(grantpt(ends[0]), 0);
    ck_assert_int_eq(unlockpt(ends[0]), 0);
    ends[1] = open(ptsname(ends[0]), O_RDWR | O_NOCTTY);
    ck_assert_int_ge(ends[1], 0);
    open_over(ends, LOG_LEVEL_INFO);
    for (int i = 0; i < 100000 && fixture.log.dropped < 3; i++)
        log_info(&fixture.log, "", "line of a length that fits no block %d", i);
    ck_assert_uint_ge(fixture.log.dropped, 3);
    ck_assert_int_eq(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0);
    (void)read_output();
    log_info(&fixture.log, "", "found");
    output = read_output();
    ck_assert(has(output, " WARN  3 log lines dropped"));
    ck_assert(has(output, " INFO  found\r\n"));
    for (const char *line = output; *line != '\0'; line = strchr(line, '\n') + 1)
        ck_assert(strncmp(line, "20", 2) == 0 && strchr(line, '\n') != NULL);
}

/* A socket raises no SIGPIPE, which may be at its default in a host; a pipe does. */
TEST_ROWS(output_without_reader_drops_and_leaves_errno_alone, 2)
{
    struct sigaction action = {.sa_handler = row == 0 ? SIG_DFL : SIG_IGN};
    struct log log;
    int ends[2];

    ck_assert_int_eq(sigaction(SIGPIPE, &action, NULL), 0);
    ck_assert_int_eq(row == 0 ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe(ends), 0);
    log_open(&log, ends[1], LOG_LEVEL_INFO);
    ck_assert_int_eq(close(ends[0]), 0);
    errno = 1234;
    log_info(&log, "", "unread");
    log_info(&log, "", "unread");
    ck_assert_int_eq(errno, 1234);
    ck_assert_uint_eq(log.dropped, 2);
    log_close(&log);
    ck_assert_int_eq(close(ends[1]), 0);
}

static void limit_file_size(rlim_t size)
{
    struct rlimit limit;

    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = size;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

#define FIRST_LINE_LEN (PREFIX_LEN + sizeof("INFO  first\n") - 1)

/* A file at its size limit takes a part of a line: the next one begins on a line of its own. The
 * limit is put everywhere in the first line. */
TEST_ROWS(torn_line_does_not_garble_the_next, FIRST_LINE_LEN)
{
    struct sigaction action = {.sa_handler = SIG_IGN};
    struct rlimit old;
    char output[512];
    FILE *file = tmpfile();
    struct log log;
    size_t len;

    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(sigaction(SIGXFSZ, &action, NULL), 0);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
    log_open(&log, fileno(file), LOG_LEVEL_INFO);
    limit_file_size((rlim_t)row);
    log_info(&log, "", "first");
    log_info(&log, "", "second");
    ck_assert_uint_eq(log.dropped, 2);
    limit_file_size(old.rlim_cur);
    log_info(&log, "", "third");
    log_close(&log);
    rewind(file);
    len = fread(output, 1, sizeof output - 1, file);
    output[len] = '\0';
    ck_assert_uint_eq(count_lines(output), row == 0 ? 2 : 3);
    ck_assert(has(output, "Z WARN  2 log lines dropped"));
    ck_assert(has(output, "Z INFO  third\n"));
    ck_assert(row == 0 || output[row] == '\n');
    ck_assert_int_eq(fclose(file), 0);
}

static void repeat(struct log *log, int times)
{
    for (int i = 0; i < times; i++)
        log_warn(log, "", "again %d", i);
}

/* As if the call site's window had begun that much earlier. */
static void let_windows_pass(struct log *log)
{
    for (size_t i = 0; i < REPETITION_KINDS; i++)
        log->kinds[i].window_start_ms -= REPETITION_WINDOW_MS;
}

TEST(repeated_warning_is_limited_and_summed_up)
{
    const char *output;

    open_over_pipe(LOG_LEVEL_INFO);
    repeat(&fixture.log, REPETITION_BURST + 7);
    ck_assert_uint_eq(count_lines(read_output()), REPETITION_BURST);
    forget_output();
    log_info(&fixture.log, "", "another");
    ck_assert_uint_eq(count_lines(read_output()), 1);
    forget_output();
    let_windows_pass(&fixture.log);
    log_info(&fixture.log, "", "another");
    output = read_output();
    ck_assert_uint_eq(count_lines(output), 2);
    ck_assert(has(output, "WARN  7 more lines left out within 1 s, the first: again 10\n"));
    forget_output();
    repeat(&fixture.log, 1);
    ck_assert(has(read_output(), "again 0"));
    ck_assert_uint_eq(count_lines(fixture.output), 1);
}

TEST(no_error_is_left_out)
{
    open_over_pipe(LOG_LEVEL_DEBUG);
    for (int i = 0; i < 3 * REPETITION_BURST; i++) {
        log_debug(&fixture.log, "", "debug");
        log_info(&fixture.log, "", "info");
        log_error(&fixture.log, "", "error");
        log_write(&fixture.log, LOG_LEVEL_WARN, "", "crash");
    }
    ck_assert_uint_eq(count_lines(read_output()), 12 * REPETITION_BURST);
}

static void arrive(const char *source, int times)
{
    for (int i = 0; i < times; i++)
        log_repeated(&fixture.log, LOG_LEVEL_INFO, "client=1", slice_of(source, strlen(source)),
                     "from %s", source);
}

TEST(source_hides_no_other)
{
    const char *output;

    open_over_pipe(LOG_LEVEL_INFO);
    arrive("uid 1", REPETITION_BURST + 100);
    arrive("uid 2", 3);
    output = read_output();
    ck_assert_uint_eq(count_lines(output), REPETITION_BURST + 3);
    ck_assert(has(output, "INFO  [client=1] from uid 2\n"));
    forget_output();
    log_close(&fixture.log);
    ck_assert(has(read_output(), "INFO  100 more lines of uid 1 left out within 1 s, the first: "
                                 "[client=1] from uid 1\n"));
}

/* A storm of one line each from thousands of addresses is bounded, too. */
TEST(many_sources_share_a_window)
{
    char source[32];

    open_over_pipe(LOG_LEVEL_INFO);
    for (int i = 0; i < 1000; i++) {
        snprintf(source, sizeof source, "10.0.0.%d", i);
        arrive(source, 1);
    }
    ck_assert_uint_eq(count_lines(read_output()), REPETITION_SOURCES + REPETITION_BURST);
    forget_output();
    log_close(&fixture.log);
    ck_assert(has(read_output(), " more lines of various origins left out within 1 s, the first: "
                                 "[client=1] from 10.0.0.14\n"));
}

TEST(crash_is_not_hidden_by_expected_exits)
{
    open_over_pipe(LOG_LEVEL_INFO);
    for (int i = 0; i < 2 * REPETITION_BURST; i++)
        log_repeated(&fixture.log, i < REPETITION_BURST ? LOG_LEVEL_INFO : LOG_LEVEL_WARN, "",
                     LOG_NO_SOURCE, "exited");
    ck_assert_uint_eq(count_lines(read_output()), 2 * REPETITION_BURST);
}

static void note_left_out(void *user_data)
{
    ++*(int *)user_data;
}

TEST(summary_can_be_asked_for)
{
    int noted = 0;

    open_over_pipe(LOG_LEVEL_INFO);
    log_on_left_out(&fixture.log, note_left_out, &noted);
    repeat(&fixture.log, REPETITION_BURST);
    ck_assert_int_eq(noted, 0);
    ck_assert(!log_report(&fixture.log));
    repeat(&fixture.log, 5);
    ck_assert_int_eq(noted, 1);
    ck_assert(log_report(&fixture.log));
    ck_assert_uint_eq(count_lines(read_output()), REPETITION_BURST);
    let_windows_pass(&fixture.log);
    ck_assert(!log_report(&fixture.log));
    ck_assert(has(read_output(), "WARN  5 more lines left out within 1 s, the first: again 0\n"));
}

TEST(line_that_a_peer_causes_is_limited)
{
    open_over_pipe(LOG_LEVEL_INFO);
    for (int i = 0; i < REPETITION_BURST + 5; i++) {
        log_repeated(&fixture.log, LOG_LEVEL_INFO, "client=1", LOG_NO_SOURCE, "connected %d", i);
        log_repeated(&fixture.log, LOG_LEVEL_DEBUG, "", LOG_NO_SOURCE, "not seen %d", i);
    }
    ck_assert_uint_eq(count_lines(read_output()), REPETITION_BURST);
    ck_assert(has(fixture.output, "INFO  [client=1] connected 9\n"));
    forget_output();
    log_close(&fixture.log);
    ck_assert(has(read_output(), "INFO  5 more lines left out within 1 s, the first: [client=1] "
                                 "connected 10\n"));
}

/* --- files --- */

/* The content of the file; it lives until the next call. */
static const char *contents(const char *path)
{
    static char text[4096];
    FILE *file = fopen(path, "r");
    size_t len;

    ck_assert_ptr_nonnull(file);
    len = fread(text, 1, sizeof text - 1, file);
    text[len] = '\0';
    fclose(file);
    return text;
}

TEST(file_is_appended_to_and_reopened)
{
    char dir[] = "/tmp/check_log.XXXXXX", path[64], moved[64];
    struct log log;

    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/log", dir);
    snprintf(moved, sizeof moved, "%s/log.1", dir);
    ck_assert_int_eq(log_open_file(&log, path, LOG_LEVEL_INFO), STDIO_BUS_OK);
    log_info(&log, "", "first");
    log_debug(&log, "", "silent");
    log_close(&log);
    ck_assert_int_eq(log_open_file(&log, path, LOG_LEVEL_INFO), STDIO_BUS_OK);
    log_info(&log, "", "second");
    ck_assert(has(contents(path), "first\n") && has(contents(path), "second\n"));
    ck_assert(!has(contents(path), "silent"));
    ck_assert_int_eq(rename(path, moved), 0);
    log_info(&log, "", "third");
    ck_assert_int_eq(log_reopen(&log), STDIO_BUS_OK);
    log_info(&log, "", "fourth");
    ck_assert(has(contents(moved), "third\n") && !has(contents(moved), "fourth"));
    ck_assert(!has(contents(path), "third") && has(contents(path), "fourth\n"));

    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkdir(path, 0700), 0); /* cannot be opened: continues where it was */
    ck_assert_int_eq(log_reopen(&log), STDIO_BUS_ERR);
    ck_assert_int_eq(errno, EISDIR);
    log_info(&log, "", "fifth");
    log_close(&log);
    ck_assert_int_eq(log_open_file(&log, path, LOG_LEVEL_INFO), STDIO_BUS_ERR);
    ck_assert_int_eq(rmdir(path), 0);
    ck_assert_int_eq(unlink(moved), 0);
    ck_assert_int_eq(rmdir(dir), 0);
}

TEST(without_a_path_nothing_is_reopened)
{
    bool shares;

    open_over_pipe(LOG_LEVEL_INFO);
    ck_assert_int_eq(log_reopen(&fixture.log), STDIO_BUS_OK);
    log_info(&fixture.log, "", "still there");
    ck_assert(has(read_output(), "still there\n"));
    ck_assert_int_eq(log_shares(&fixture.log, fixture.ends[1], &shares), STDIO_BUS_OK);
    ck_assert(shares);
    ck_assert_int_eq(log_shares(&fixture.log, STDIN_FILENO, &shares), STDIO_BUS_OK);
    ck_assert(!shares);
    ck_assert_int_eq(log_shares(&fixture.log, -1, &shares), STDIO_BUS_ERR);
}

/* log_open_file does not wait for the reader of a fifo. */
TEST(fifo_without_reader_is_refused)
{
    char dir[] = "/tmp/check_log.XXXXXX", path[64];
    struct log log;

    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/fifo", dir);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(log_open_file(&log, path, LOG_LEVEL_INFO), STDIO_BUS_ERR);
    ck_assert_int_eq(errno, ENXIO);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(dir), 0);
}

TEST(close_reports_the_rest)
{
    const char *output;

    open_over_pipe(LOG_LEVEL_INFO);
    repeat(&fixture.log, REPETITION_BURST + 2);
    fill(fixture.ends[1]);
    log_info(&fixture.log, "", "lost");
    (void)read_output();
    forget_output();
    log_close(&fixture.log);
    output = read_output();
    ck_assert(has(output, "WARN  2 more lines left out within 1 s, the first: again 10\n"));
    ck_assert(has(output, "WARN  1 log lines dropped"));
    ck_assert_uint_eq(count_lines(output), 2);
}

/* More call sites than places: a place is taken over, and its number reported. */
TEST(more_kinds_than_places)
{
    static char formats[REPETITION_KINDS + 2][8];
    const char *output;

    open_over_pipe(LOG_LEVEL_INFO);
    for (size_t i = 0; i < REPETITION_KINDS + 2; i++)
        snprintf(formats[i], sizeof formats[i], "k%zu", i);
    for (size_t i = 0; i < REPETITION_KINDS; i++) {
        for (int j = 0; j < REPETITION_BURST + 1; j++)
            log_warn(&fixture.log, "", formats[i], 0);
        for (size_t j = 0; j <= i; j++)
            fixture.log.kinds[j].window_start_ms--; /* the first is the oldest */
        (void)read_output();                        /* a pipe has 16 KiB on some systems */
    }
    ck_assert_uint_eq(count_lines(read_output()), REPETITION_KINDS * REPETITION_BURST);
    forget_output();
    log_warn(&fixture.log, "", formats[REPETITION_KINDS], 0);
    output = read_output();
    ck_assert_uint_eq(count_lines(output), 2);
    ck_assert(has(output, "WARN  1 more line left out within 1 s, the first: k0\n"));
    ck_assert(has(output, "WARN  k64\n"));
    fill(fixture.ends[1]);
    log_warn(&fixture.log, "", formats[REPETITION_KINDS + 1], 0);
    ck_assert_uint_eq(fixture.log.dropped, 2); /* the line, and the one left out before */
}

TEST(escape_shows_any_byte)
{
    char text[64];
    static const char bytes[] = "a\"b'c\\d\n\0\x7f\xff ~";

    ck_assert_str_eq(log_escape(text, sizeof text, slice_of(bytes, sizeof bytes - 1)),
                     "a\\x22b\\x27c\\x5cd\\x0a\\x00\\x7f\\xff ~");
    ck_assert_str_eq(log_escape(text, sizeof text, slice_of(NULL, 0)), "");
}

/* Every size: never longer than it may be, a cut text is a prefix of whole pieces and "...". */
TEST(escape_cuts)
{
    static const char bytes[] = "ab\ncd\ne";
    static const char whole[] = "ab\\x0acd\\x0ae";
    char text[64];

    for (size_t size = 1; size < sizeof text; size++) {
        size_t len;
        memset(text, '#', sizeof text);
        ck_assert_ptr_eq(log_escape(text, size, slice_of(bytes, sizeof bytes - 1)), text);
        ck_assert_int_eq(text[size], '#');
        len = strlen(text);
        ck_assert_uint_lt(len, size);
        if (size > sizeof whole - 1) {
            ck_assert_str_eq(text, whole);
            continue;
        }
        if (size <= 4) {
            ck_assert(strncmp(text, "...", size - 1) == 0);
            continue;
        }
        ck_assert_str_eq(text + len - 3, "...");
        ck_assert(strncmp(text, whole, len - 3) == 0);
        ck_assert_msg(strchr("abcde\\", whole[len - 3]) != NULL, "cut inside of \\x0a: %s", text);
    }
    text[0] = '#';
    ck_assert_ptr_eq(log_escape(text, 0, slice_of(bytes, 1)), text);
    ck_assert_int_eq(text[0], '#');
}

TEST(level_names)
{
    static const struct {
        const char *name;
        int level; /* -1: none */
    } cases[] = {
        {"error", LOG_LEVEL_ERROR}, {"WARN", LOG_LEVEL_WARN}, {"Info", LOG_LEVEL_INFO},
        {"debug", LOG_LEVEL_DEBUG}, {"warning", -1},          {"", -1},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        enum log_level level = LOG_LEVEL_ERROR, expected = LOG_LEVEL_ERROR;

        ck_assert_int_eq(log_level_from_name(cases[i].name, &level), cases[i].level >= 0);
        if (cases[i].level >= 0)
            expected = (enum log_level)cases[i].level;
        ck_assert_int_eq(level, expected);
    }
}

FIXTURE(NULL, tear_down)

/* --- calls --- */

static char taken[LOG_LINE_MAX + 100];
static enum log_level taken_level;

static void take_line(void *user_data, enum log_level level, const char *line)
{
    ck_assert_ptr_eq(user_data, taken);
    taken_level = level;
    snprintf(taken, sizeof taken, "%s", line);
}

TEST(lines_are_given_to_a_function)
{
    struct log log;
    char long_text[2 * LOG_LINE_MAX];

    log_open_calls(&log, take_line, taken, LOG_LEVEL_INFO);
    log_debug(&log, "", "not this one");
    ck_assert_str_eq(taken, "");
    log_info(&log, "worker=2", "hello\n\x1b[1m");
    ck_assert_str_eq(taken, "[worker=2] hello\\x0a\\x1b[1m");
    log_error(&log, "", "%s", "bad");
    ck_assert_str_eq(taken, "bad");
    ck_assert_int_eq(taken_level, LOG_LEVEL_ERROR);
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    log_info(&log, "", "%s", long_text);
    ck_assert_str_eq(taken + strlen(taken) - 3, "...");
    log_close(&log);
}
