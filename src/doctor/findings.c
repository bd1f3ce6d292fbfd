#include "build_config.h"

#include "doctor/findings.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/terminal.h"
#include "json/text.h"

static const char *const names[] = {
    [DOCTOR_OK] = "ok",
    [DOCTOR_WARNING] = "warning",
    [DOCTOR_ERROR] = "error",
    [DOCTOR_NOTE] = "note",
};

void doctor_cure(struct doctor *doctor, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(doctor->cure, sizeof doctor->cure, format, args);
    va_end(args);
}

static void note_status(struct doctor *doctor, int status)
{
    if (status == STDIO_BUS_OK || doctor->cannot_print)
        return;
    doctor->error = errno;
    doctor->cannot_print = true;
}

static void print(struct doctor *doctor, const char *json)
{
    note_status(doctor, terminal_lines(stdout, TERMINAL_JSON, slice_of_text(json)));
}

/* A finding that did not become JSON, for lack of memory. */
static void print_plainly(struct doctor *doctor, enum doctor_severity severity, const char *text)
{
    errno = ENOMEM;
    note_status(doctor, STDIO_BUS_ERR);
    terminal_line(stderr, "%-8s %-11s %s", names[severity], doctor->examination, text);
}

static void print_json(struct doctor *doctor, enum doctor_severity severity, const char *text)
{
    struct json_text row = {.data = NULL};

    row_begin(&row, NULL, '{');
    row_string(&row, "examination", doctor->examination);
    row_string(&row, "severity", names[severity]);
    row_string(&row, "text", text);
    if (doctor->cure[0] != '\0')
        row_string(&row, "cure", doctor->cure);
    row_end(&row, '}');
    json_text_add(&row, slice_of("", 1));
    print(doctor, doctor->examined ? ",\n" : "\n");
    doctor->examined = true;
    if (row.failed)
        print_plainly(doctor, severity, text);
    else
        print(doctor, row.data);
    json_text_free(&row);
}

static void print_text(struct doctor *doctor, enum doctor_severity severity, const char *text)
{
    note_status(doctor,
                terminal_line(stdout, "%-8s %-11s %s", names[severity], doctor->examination, text));
    if (doctor->cure[0] != '\0')
        note_status(doctor, terminal_line(stdout, "%20s cure: %s", "", doctor->cure));
}

void doctor_find(struct doctor *doctor, enum doctor_severity severity, const char *format, ...)
{
    char text[FINDING_TEXT_MAX];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (severity != DOCTOR_NOTE && severity > doctor->worst)
        doctor->worst = severity;
    (doctor->json ? print_json : print_text)(doctor, severity, text);
    doctor->cure[0] = '\0';
}

void doctor_cannot_look(struct doctor *doctor, const char *path)
{
    int error = errno;

    if (error == ENOENT || error == ENOTDIR)
        return;
    doctor_cure(doctor, "let this user read it, and look again");
    doctor_find(doctor, DOCTOR_WARNING, "cannot look at %s: %s", path, strerror(error));
}

void doctor_begin(struct doctor *doctor)
{
    if (doctor->json)
        print(doctor, "{\"findings\":[");
}

void doctor_end(struct doctor *doctor)
{
    if (!doctor->json)
        return;
    print(doctor, "\n],\"worst\":\"");
    print(doctor, names[doctor->worst]);
    print(doctor, "\"}\n");
}
