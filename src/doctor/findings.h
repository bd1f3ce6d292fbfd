/* What an examination finds, printed as it is found. */
#ifndef STDIO_BUS_DOCTOR_FINDINGS_H
#define STDIO_BUS_DOCTOR_FINDINGS_H

#include <stdbool.h>

#define FINDING_TEXT_MAX 2048

/* The numbers are the exit statuses. A note counts as DOCTOR_OK. */
enum doctor_severity { DOCTOR_OK, DOCTOR_WARNING, DOCTOR_ERROR, DOCTOR_NOTE };

struct doctor {
    bool json;
    bool examined;           /* something was found */
    const char *window_path; /* the PATH that programs with windows get */
    const char *path;        /* of this process */
    const char *examination; /* the name of the one that is running */
    enum doctor_severity worst;
    bool cannot_print; /* errno of the first failure: */
    int error;
    char cure[FINDING_TEXT_MAX];
};

/* Writes the cure of the next finding. */
void doctor_cure(struct doctor *doctor, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints the finding: one line and, but for DOCTOR_OK, the cure, if one was written. The text must
 * not hold the value of a variable or of an argument: both may be secrets. */
void doctor_find(struct doctor *doctor, enum doctor_severity severity, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A finding about a place that cannot be looked at, for the reason in errno. What is not there has
 * none. */
void doctor_cannot_look(struct doctor *doctor, const char *path);

/* Before the first finding, and after the last one. */
void doctor_begin(struct doctor *doctor);
void doctor_end(struct doctor *doctor);

#endif
