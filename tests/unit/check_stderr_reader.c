#include "build_config.h"

#include "process/stderr_reader.h"

#include <fcntl.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "suite.h"

static struct stdio_bus_event_loop *loop;
static struct stderr_reader *reader;
static struct log test_log;
static char log_path[512];
static int ends[2];

static void begin(void)
{
    snprintf(log_path, sizeof log_path, "%s/log", test_dir());
    ck_assert_int_eq(log_open_file(&test_log, log_path, LOG_LEVEL_INFO), STDIO_BUS_OK);
    loop = stdio_bus_event_loop_create();
    ck_assert_ptr_nonnull(loop);
    reader = stderr_reader_create(loop, &test_log, "worker=1 pool=p");
    ck_assert_ptr_nonnull(reader);
    ck_assert_int_eq(descriptor_open_pipe(ends, O_NONBLOCK), STDIO_BUS_OK);
    ck_assert_int_eq(stderr_reader_begin(reader, ends[0]), STDIO_BUS_OK);
}

static void say(const char *text)
{
    ck_assert_int_eq(write(ends[1], text, strlen(text)), (ssize_t)strlen(text));
}

static void finish(void)
{
    stderr_reader_destroy(reader);
    stdio_bus_event_loop_destroy(loop);
    log_close(&test_log);
    close(ends[1]);
}

/* How often the word is in the log. */
static size_t count(const char *word)
{
    static char text[1 << 20];
    FILE *file = fopen(log_path, "r");
    size_t found = 0, len;

    ck_assert_ptr_nonnull(file);
    len = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[len] = '\0';
    for (const char *at = text; (at = strstr(at, word)) != NULL; at++)
        found++;
    return found;
}

static const char *last_line(void)
{
    static char line[64];

    stderr_reader_last_line(reader, line, sizeof line);
    return line;
}

TEST(stderr_is_logged_by_the_line)
{
    begin();
    say("first\nsec");
    ck_assert_int_ge(stdio_bus_event_loop_run_once(loop, 0), 1);
    ck_assert_uint_eq(count(" INFO  [worker=1 pool=p] stderr: first\n"), 1);
    ck_assert_uint_eq(count("sec"), 0);
    say("ond\r\n\n \n\x1b[31mth\x07ird");
    stderr_reader_drain(reader);
    ck_assert_uint_eq(count("stderr: second"), 1);
    stderr_reader_end(reader);
    ck_assert_uint_eq(count("stderr: th ird"), 1);
    ck_assert_uint_eq(count("stderr"), 3);
    finish();
}

TEST(stderr_that_is_kept_is_the_last)
{
    char lines[32];

    begin();
    ck_assert_str_eq(last_line(), "");
    say("one\ntwo\n\x1b[1mthree\x1b[0m  \n\n\n");
    stderr_reader_drain(reader);
    ck_assert_str_eq(last_line(), "three");
    stderr_reader_last_lines(reader, lines, sizeof lines);
    ck_assert_str_eq(lines, "one\ntwo\nthree\n");
    stderr_reader_last_lines(reader, lines, 12);
    ck_assert_str_eq(lines, "two\nthree\n");
    for (int i = 0; i < 2000; i++) {
        say("filled ");
        stderr_reader_drain(reader);
    }
    say("\nend of it, which is far longer than the line that is asked for, and cut");
    stderr_reader_drain(reader);
    ck_assert_uint_eq(reader->kept_len, STDERR_KEPT);
    ck_assert_uint_eq(strlen(last_line()), 63);
    ck_assert_int_eq(strncmp(last_line(), "end of it, ", 11), 0);
    finish();
}

/* The next process begins again. */
TEST(stderr_of_the_next_process)
{
    begin();
    say("of the first");
    stderr_reader_drain(reader);
    close(ends[1]);
    ck_assert_int_eq(descriptor_open_pipe(ends, O_NONBLOCK), STDIO_BUS_OK);
    ck_assert_int_eq(stderr_reader_begin(reader, ends[0]), STDIO_BUS_OK);
    ck_assert_uint_eq(count("stderr: of the first\n"), 1);
    ck_assert_str_eq(last_line(), "");
    finish();
}

/* The log has this number of lines and a count; the reader has all of the end. */
TEST(flood_of_stderr_is_bounded)
{
    begin();
    for (int i = 0; i < 50 * STDERR_LINES; i++) {
        say(test_format("flood %d\n", i));
        stderr_reader_drain(reader);
    }
    ck_assert_uint_eq(count("stderr: flood"), STDERR_LINES);
    ck_assert_str_eq(last_line(), test_format("flood %d", 50 * STDERR_LINES - 1));
    ck_assert_uint_eq(reader->left_out, 49 * STDERR_LINES);
    /* Beyond its bytes the process waits for the end of the window. */
    reader->bytes = STDERR_BYTES;
    say("one more");
    ck_assert_int_ge(stdio_bus_event_loop_run_once(loop, 0), 1);
    say("and one");
    ck_assert_int_eq(stdio_bus_event_loop_run_once(loop, 0), 0);
    reader->window.fn(reader->window.user_data);
    ck_assert_uint_eq(count("4900 more lines of its stderr within 10 seconds are left out"), 1);
    ck_assert_int_ge(stdio_bus_event_loop_run_once(loop, 0), 1);
    finish();
}

TEST(stderr_in_an_archive)
{
    struct archive archive, loaded;
    struct stderr_reader *other;

    begin();
    say("kept\nbegun");
    stderr_reader_drain(reader);
    archive_begin_saving(&archive);
    stderr_reader_archive(&archive, reader);
    ck_assert(archive_ok(&archive));
    ck_assert_int_eq(stdio_bus_event_loop_remove(loop, reader->fd), STDIO_BUS_OK);
    other = stderr_reader_create(loop, &test_log, "worker=1 pool=p");
    ck_assert_ptr_nonnull(other);
    archive_begin_loading(&loaded, slice_of(archive.data, archive.len), -1);
    stderr_reader_archive(&loaded, other);
    ck_assert(archive_ok(&loaded));
    reader->fd = -1;
    stderr_reader_destroy(reader);
    reader = other;
    say(" and ended\n");
    ck_assert_int_ge(stdio_bus_event_loop_run_once(loop, 0), 1);
    ck_assert_uint_eq(count("stderr: begun and ended\n"), 1);
    ck_assert_str_eq(last_line(), "begun and ended");
    archive_free(&archive);
    archive_free(&loaded);
    finish();
}
