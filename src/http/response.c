#include "build_config.h"

#include "http/response.h"

#include <inttypes.h>
#include <stdio.h>

static void add_part(struct http_output *out, const char *text, size_t len)
{
    if (out->full || len > out->size - out->len) {
        out->full = true;
        return;
    }
    if (len > 0)
        memcpy(out->to + out->len, text, len);
    out->len += len;
}

static void add_text(struct http_output *out, const char *text)
{
    add_part(out, text, strlen(text));
}

const char *http_reason(int status)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {
        {101, "Switching Protocols"},
        {200, "OK"},
        {202, "Accepted"},
        {204, "No Content"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {406, "Not Acceptable"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {421, "Misdirected Request"},
        {426, "Upgrade Required"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
    };

    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        if (reasons[i].status == status)
            return reasons[i].reason;
    }
    return "";
}

void http_write_status(struct http_output *out, int status)
{
    char line[24];

    snprintf(line, sizeof line, "HTTP/1.1 %03d ", status);
    add_text(out, line);
    add_text(out, http_reason(status));
    add_text(out, "\r\n");
}

void http_write_request(struct http_output *out, const char *method, struct slice target)
{
    add_text(out, method);
    add_text(out, " ");
    add_part(out, target.data, target.len);
    add_text(out, " HTTP/1.1\r\n");
}

void http_write_field(struct http_output *out, const char *name, struct slice value)
{
    size_t start;

    add_text(out, name);
    add_text(out, ": ");
    start = out->len;
    add_part(out, value.data, value.len);
    for (; start < out->len; start++) {
        unsigned char c = (unsigned char)out->to[start];

        if (c < ' ' || c == 0x7F)
            out->to[start] = ' ';
    }
    add_text(out, "\r\n");
}

void http_write_text(struct http_output *out, const char *name, const char *value)
{
    http_write_field(out, name, slice_of_text(value));
}

void http_write_number(struct http_output *out, const char *name, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, value);
    http_write_text(out, name, text);
}

/* --- dates --- */

struct date {
    int year, month, day; /* the month and the day from 0 */
};

static bool is_leap(int year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int days_in(int month, int year)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    return days[month] + (month == 1 && is_leap(year));
}

/* The date, this number of days after the first of January 1970. */
static struct date date_of(int64_t days)
{
    struct date date = {.year = 1970};

    while (days >= 365 + is_leap(date.year)) {
        days -= 365 + is_leap(date.year);
        date.year++;
    }
    while (days >= days_in(date.month, date.year)) {
        days -= days_in(date.month, date.year);
        date.month++;
    }
    date.day = (int)days;
    return date;
}

void http_write_date(struct http_output *out, int64_t seconds)
{
    static const char weekdays[][4] = {"Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"};
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    int64_t days = seconds / 86400;
    int second = (int)(seconds % 86400);
    struct date date = date_of(days);
    char text[80];

    snprintf(text, sizeof text, "%s, %02d %s %04d %02d:%02d:%02d GMT", weekdays[days % 7],
             date.day + 1, months[date.month], date.year, second / 3600, second / 60 % 60,
             second % 60);
    http_write_text(out, "Date", text);
}

void http_write_end(struct http_output *out)
{
    add_text(out, "\r\n");
}
