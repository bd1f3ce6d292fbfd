#include "build_config.h"

#include "base/log_line.h"

#include "suite.h"
#include "json/reader.h"

/* The line without the newline before it; of a time, the digits are replaced by 0. */
static const char *line_of(enum log_format format, enum log_level level, const char *context,
                           const char *text)
{
    static char shown[1 + LOG_LINE_MAX + 1];
    struct log_line line;
    char *time;

    log_line_make(&line, format, level, context, text);
    ck_assert_uint_le(line.len, sizeof line.bytes);
    ck_assert_int_eq(line.bytes[0], '\n');
    memcpy(shown, line.bytes + 1, line.len - 1);
    shown[line.len - 1] = '\0';
    time = strstr(shown, "20");
    for (int i = 0; format <= LOG_JSON && time != NULL && i < 23; i++) {
        if (time[i] >= '0' && time[i] <= '9')
            time[i] = '0';
    }
    return shown;
}

#define TIME "0000-00-00T00:00:00.000Z"

static const struct {
    enum log_format format;
    enum log_level level;
    const char *context, *text, *line;
} lines[] = {
    {LOG_TEXT, LOG_LEVEL_WARN, "client=3", "a \"b\"\n\\",
     TIME " WARN  [client=3] a \"b\"\\x0a\\\n"},
    {LOG_TEXT, LOG_LEVEL_INFO, "", "x", TIME " INFO  x\n"},
    {LOG_LOGFMT, LOG_LEVEL_WARN, "client=3", "a \"b\"\n\\",
     "time=" TIME " level=warn client=3 msg=\"a \\\"b\\\"\\x0a\\\\\"\n"},
    {LOG_LOGFMT, LOG_LEVEL_ERROR, "", "x", "time=" TIME " level=error msg=\"x\"\n"},
    {LOG_LOGFMT, LOG_LEVEL_DEBUG, "worker=2 pool=\"a b\"", "",
     "time=" TIME " level=debug worker=2 pool=\"a b\" msg=\"\"\n"},
    {LOG_JSON, LOG_LEVEL_WARN, "client=3", "a \"b\"\n\\",
     "{\"time\":\"" TIME
     "\",\"level\":\"warn\",\"client\":3,\"message\":\"a \\\"b\\\"\\u000a\\\\\"}\n"},
    {LOG_JSON, LOG_LEVEL_INFO, "", "x",
     "{\"time\":\"" TIME "\",\"level\":\"info\",\"message\":\"x\"}\n"},
    {LOG_JSON, LOG_LEVEL_INFO, "rmp pool=7", "x",
     "{\"time\":\"" TIME "\",\"level\":\"info\",\"rmp\":true,\"pool\":\"7\",\"message\":\"x\"}\n"},
    {LOG_JSON, LOG_LEVEL_INFO, "worker=2 pid=70 pool=\"a b=\\x22\"", "x",
     "{\"time\":\"" TIME "\",\"level\":\"info\",\"worker\":2,\"pid\":70,\"pool\":\"a b=\\\\x22\","
     "\"message\":\"x\"}\n"},
    {LOG_JSON, LOG_LEVEL_INFO, "", "\xc3\xa9\xff\xc3 \xed\xa0\x80 \xf0\x9f\x98\x80",
     "{\"time\":\"" TIME "\",\"level\":\"info\",\"message\":\"\xc3\xa9\\u00ff\\u00c3 "
     "\\u00ed\\u00a0\\u0080 \xf0\x9f\x98\x80\"}\n"},
    {LOG_JOURNALD, LOG_LEVEL_DEBUG, "client=3", "x", "<7>[client=3] x\n"},
    {LOG_JOURNALD, LOG_LEVEL_INFO, "", "x\ny", "<6>x\\x0ay\n"},
    {LOG_JOURNALD, LOG_LEVEL_WARN, "", "x", "<4>x\n"},
    {LOG_JOURNALD, LOG_LEVEL_ERROR, "", "x", "<3>x\n"},
};

TEST_ROWS(line_in_each_format, COUNT(lines))
{
    ck_assert_str_eq(line_of(lines[row].format, lines[row].level, lines[row].context,
                             lines[row].text),
                     lines[row].line);
}

/* One datagram: no newline. */
TEST(line_for_the_system_log)
{
    const char *line = line_of(LOG_SYSLOG, LOG_LEVEL_WARN, "client=3", "x\ny");
    char month[4], tag[40], rest[40];
    int day, hour, minute, second, pid;

    ck_assert_int_eq(sscanf(line, "<28>%3s %d %d:%d:%d %20[^[][%d]: %30[^\t]", month, &day, &hour,
                            &minute, &second, tag, &pid, rest),
                     8);
    ck_assert_str_eq(tag, "stdio_bus");
    ck_assert_str_eq(rest, "[client=3] x\\x0ay");
    ck_assert_int_eq(line[strlen("<28>Jan")], ' ');
    ck_assert_int_eq(line[strlen("<28>Jan  2")], ' ');
}

/* However long the text and whatever its bytes: a line is no longer than it may be, has one
 * newline, at its end, and a line of JSON is JSON. */
TEST_ROWS(any_text_makes_one_line, 5 * 40)
{
    enum log_format format = (enum log_format)(row % 5);
    char text[2 * LOG_LINE_MAX + 1];
    struct log_line line;

    srandom((unsigned)row);
    for (size_t len = 0; len < sizeof text; len += (size_t)random() % 97) {
        for (size_t i = 0; i < len; i++) {
            text[i] = (char)(row % 3 == 0 ? random() : row % 3 == 1 ? '"' : 'a');
            text[i] = text[i] == '\0' ? 'x' : text[i];
        }
        text[len] = '\0';
        log_line_make(&line, format, LOG_LEVEL_INFO, "worker=1 pool=\"a b\"", text);
        ck_assert_uint_le(line.len, sizeof line.bytes);
        if (format == LOG_SYSLOG)
            ck_assert_ptr_null(memchr(line.bytes + 1, '\n', line.len - 1));
        else
            ck_assert_ptr_eq(memchr(line.bytes + 1, '\n', line.len - 1), line.bytes + line.len - 1);
        if (format == LOG_JSON) {
            struct json_reader reader = {line.bytes, line.bytes + line.len};
            ck_assert_msg(json_skip_value(&reader) && json_peek(&reader) == '\0', "%.*s",
                          (int)line.len, line.bytes);
        }
    }
}

/* A character of UTF-8 is not cut. */
TEST_ROWS(long_text_ends_in_dots, 4)
{
    char text[LOG_LINE_MAX + 4];
    const char *line, *end;

    for (size_t i = 0; i + 2 < sizeof text; i += 2)
        memcpy(text + i, "\xc3\xa9", 3);
    line = line_of((enum log_format)row, LOG_LEVEL_INFO, "", text);
    end = line + strlen(line);
    ck_assert_uint_ge(strlen(line), LOG_LINE_MAX - 1);
    while (strchr("\"}\n", end[-1]) != NULL)
        end--;
    ck_assert(memcmp(end - 5, "\xc3\xa9...", 5) == 0);
}

static const struct {
    const char *value, *quoted;
} values[] = {
    {"tools", "tools"},
    {"a b", "\"a b\""},
    {"", "\"\""},
    {"a\"b\\", "\"a\\x22b\\x5c\""},
    {"a=b", "\"a=b\""},
    {"[x]", "\"[x]\""},
    {"\xc3\xa9", "\"\\xc3\\xa9\""},
    {"./a-b_c.1:2@x+y", "./a-b_c.1:2@x+y"},
    {"123456789 123456789 123456789 123456789", "\"123456789 123456789 123456...\""},
    {"1234567890123456789012345678901234567890", "1234567890123456789012345678..."},
};

TEST_ROWS(value_is_quoted_where_it_must_be, COUNT(values))
{
    char to[32];

    ck_assert_str_eq(log_quote(to, sizeof to, values[row].value), values[row].quoted);
}

TEST(format_has_a_name)
{
    enum log_format format = LOG_TEXT;

    ck_assert(log_format_from_name("JSON", &format) && format == LOG_JSON);
    ck_assert(log_format_from_name("journald", &format) && format == LOG_JOURNALD);
    ck_assert(log_format_from_name("logfmt", &format) && format == LOG_LOGFMT);
    ck_assert(!log_format_from_name("syslog", &format) && format == LOG_LOGFMT);
}
