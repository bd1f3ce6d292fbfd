#include "build_config.h"

#include "base/log_line.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/terminal.h"

#define ESCAPED_MAX 4 /* "\xNN" */

static const char *const level_names[] = {"DEBUG", "INFO", "WARN", "ERROR"};
static const char *const small_level_names[] = {"debug", "info", "warn", "error"};
static const int severities[] = {7, 6, 4, 3}; /* of RFC 5424 */
#define FACILITY 24                           /* "daemon" */

static const char *const format_names[] = {"text", "logfmt", "json", "journald"};

/* What follows the text, up to the end of the line. */
static const char *const endings[] = {
    [LOG_TEXT] = "\n",     [LOG_LOGFMT] = "\"\n", [LOG_JSON] = "\"}\n",
    [LOG_JOURNALD] = "\n", [LOG_SYSLOG] = "",
};

/* --- bytes --- */

/* Room for three dots and the ending is kept. A cut line takes no more. */
static void put_bytes(struct log_line *line, const char *bytes, size_t len)
{
    size_t end = sizeof line->bytes - strlen(endings[line->format]) - 3;

    line->cut = line->cut || line->len + len > end;
    if (line->cut)
        return;
    memcpy(line->bytes + line->len, bytes, len);
    line->len += len;
}

static void put(struct log_line *line, const char *text)
{
    put_bytes(line, text, strlen(text));
}

/* Appends text, what a terminal obeys escaped; in a string of logfmt or JSON also what would end
 * the string. Characters are never cut. */
static void put_text(struct log_line *line, const char *text)
{
    bool in_string = line->format == LOG_LOGFMT || line->format == LOG_JSON;
    enum terminal_form form = line->format == LOG_JSON ? TERMINAL_JSON : TERMINAL_TEXT;
    struct slice left = slice_of_text(text);
    char escape[TERMINAL_ESCAPE_MAX + 1];

    while (left.len > 0 && !line->cut) {
        size_t len = terminal_escape(escape, form, left);

        if (in_string && (*left.data == '"' || *left.data == '\\'))
            (void)snprintf(escape, sizeof escape, "\\%c", *left.data);
        if (escape[0] != '\0')
            put(line, escape);
        else
            put_bytes(line, left.data, len);
        left = slice_of(left.data + len, left.len - len);
    }
}

/* --- the parts of a line --- */

const char *log_time(char to[LOG_TIME_SIZE], time_t seconds, int ms)
{
    struct tm parts = {0};

    (void)gmtime_r(&seconds, &parts);
    (void)snprintf(to, LOG_TIME_SIZE, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", parts.tm_year + 1900,
                   parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, ms);
    return to;
}

static void put_time(struct log_line *line)
{
    struct timespec now = {0, 0};
    char text[LOG_TIME_SIZE];

    (void)clock_gettime(CLOCK_REALTIME, &now);
    put(line, log_time(text, now.tv_sec, (int)(now.tv_nsec / 1000000)));
}

/* RFC 3164: the local time. */
static void put_syslog_head(struct log_line *line, enum log_level level)
{
    static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    struct timespec now = {0, 0};
    struct tm parts = {0};
    char text[96];

    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)localtime_r(&now.tv_sec, &parts);
    (void)snprintf(text, sizeof text,
                   "<%d>%s %2d %02d:%02d:%02d stdio_bus[%ld]: ", FACILITY + severities[level],
                   months[parts.tm_mon % 12], parts.tm_mday, parts.tm_hour, parts.tm_min,
                   parts.tm_sec, (long)getpid());
    put(line, text);
}

static bool is_number(const char *text, size_t len)
{
    return len > 0 && len < 10 && text[0] != '0' && strspn(text, "0123456789") >= len;
}

/* Appends one word of the context, NAME=VALUE or NAME, as a member. Only a pool's id is a string
 * that may look like a number. */
static void put_member(struct log_line *line, const char *word, size_t len)
{
    const char *equals = memchr(word, '=', len);
    size_t name_len = equals != NULL ? (size_t)(equals - word) : len;
    const char *value = equals != NULL ? equals + 1 : "true";
    size_t value_len = equals != NULL ? len - name_len - 1 : 4;
    bool is_bare = equals == NULL ||
                   (is_number(value, value_len) && strncmp(word, "pool=", sizeof "pool=" - 1) != 0);
    char text[LOG_LINE_MAX];

    if (value_len >= 2 && value[0] == '"') {
        value++;
        value_len -= 2;
    }
    put(line, ",\"");
    put_bytes(line, word, name_len);
    put(line, is_bare ? "\":" : "\":\"");
    (void)snprintf(text, sizeof text, "%.*s", (int)value_len, value);
    put_text(line, text);
    put(line, is_bare ? "" : "\"");
}

/* The bytes of the word that the context begins with; spaces between quotes are its own. */
static size_t word_bytes(const char *context)
{
    bool is_quoted = false;
    size_t len;

    for (len = 0; context[len] != '\0' && (is_quoted || context[len] != ' '); len++)
        is_quoted ^= context[len] == '"';
    return len;
}

static void put_members(struct log_line *line, const char *context)
{
    while (*context != '\0') {
        size_t len = word_bytes(context);

        put_member(line, context, len);
        context += len;
        context += *context == ' ';
    }
}

static void put_head(struct log_line *line, enum log_level level, const char *context)
{
    char text[16];

    switch (line->format) {
    case LOG_TEXT:
        put_time(line);
        (void)snprintf(text, sizeof text, " %-5s ", level_names[level]);
        put(line, text);
        break;
    case LOG_LOGFMT:
        put(line, "time=");
        put_time(line);
        put(line, " level=");
        put(line, small_level_names[level]);
        put(line, context[0] != '\0' ? " " : "");
        put(line, context);
        put(line, " msg=\"");
        return;
    case LOG_JSON:
        put(line, "{\"time\":\"");
        put_time(line);
        put(line, "\",\"level\":\"");
        put(line, small_level_names[level]);
        put(line, "\"");
        put_members(line, context);
        put(line, ",\"message\":\"");
        return;
    case LOG_JOURNALD:
        (void)snprintf(text, sizeof text, "<%d>", severities[level]);
        put(line, text);
        break;
    case LOG_SYSLOG:
        put_syslog_head(line, level);
        break;
    }
    if (context[0] == '\0')
        return;
    put(line, "[");
    put_text(line, context);
    put(line, "] ");
}

static void put_end(struct log_line *line)
{
    const char *ending = endings[line->format];
    size_t len = strlen(ending);

    if (line->cut) {
        memcpy(line->bytes + line->len, "...", 3);
        line->len += 3;
    }
    memcpy(line->bytes + line->len, ending, len);
    line->len += len;
}

void log_line_make(struct log_line *line, enum log_format format, enum log_level level,
                   const char *context, const char *text)
{
    line->bytes[0] = '\n';
    line->len = 1;
    line->cut = false;
    line->format = format;
    put_head(line, level, context);
    put_text(line, text);
    put_end(line);
}

/* --- names and values --- */

/* Writes the byte, or its escape. Returns the bytes written. */
static size_t escape_byte(char to[ESCAPED_MAX + 1], unsigned char byte)
{
    bool plain = byte >= 0x20 && byte < 0x7f && strchr("\"'\\", byte) == NULL;

    if (!plain)
        return (size_t)snprintf(to, ESCAPED_MAX + 1, "\\x%02x", byte);
    to[0] = (char)byte;
    return 1;
}

const char *log_escape(char *to, size_t size, struct slice bytes)
{
    size_t len = 0, fits = 0; /* fits: the bytes that stay when "..." has to follow */

    if (size == 0)
        return to;
    for (size_t i = 0; i < bytes.len; i++) {
        char escaped[ESCAPED_MAX + 1];
        size_t need = escape_byte(escaped, (unsigned char)bytes.data[i]);

        if (len + need > size - 1) {
            (void)snprintf(to + fits, size - fits, "...");
            return to;
        }
        memcpy(to + len, escaped, need);
        len += need;
        if (len + 3 <= size - 1)
            fits = len;
    }
    to[len] = '\0';
    return to;
}

const char *log_quote(char *to, size_t size, const char *value)
{
    static const char bare[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./@+:";
    size_t len = strlen(value);

    if (len > 0 && strspn(value, bare) == len) {
        log_escape(to, size, slice_of(value, len));
        return to;
    }
    to[0] = '"';
    log_escape(to + 1, size - 2, slice_of(value, len));
    len = strlen(to);
    to[len] = '"';
    to[len + 1] = '\0';
    return to;
}

/* The place of the name in the list, or -1. */
static int index_of(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcasecmp(name, names[i]) == 0)
            return (int)i;
    }
    return -1;
}

bool log_level_from_name(const char *name, enum log_level *level)
{
    int found = index_of(name, level_names, sizeof level_names / sizeof level_names[0]);

    if (found >= 0)
        *level = (enum log_level)found;
    return found >= 0;
}

bool log_format_from_name(const char *name, enum log_format *format)
{
    int found = index_of(name, format_names, sizeof format_names / sizeof format_names[0]);

    if (found >= 0)
        *format = (enum log_format)found;
    return found >= 0;
}
