/* Processes as /proc shows them. Without /proc, proc_available() is false and tests that need it
 * end early. */
#ifndef TESTS_HARNESS_PROC_H
#define TESTS_HARNESS_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "text.h"

bool proc_available(void);

/* Children of `parent`, at most `max` of them. Returns how many there are. */
size_t proc_children(pid_t parent, pid_t *children, size_t max);

/* 'R', 'S', 'T', 'Z' ...; 0 when there is no such process. */
char proc_state(pid_t pid);

/* There is such a process and it is no zombie. */
bool proc_alive(pid_t pid);

/* The number after "name:" in /proc/PID/status, or -1. */
long proc_status(pid_t pid, const char *name);

/* Processor time used so far, in milliseconds, or -1. */
long proc_cpu_ms(pid_t pid);

/* Open descriptors, or -1. */
int proc_fd_count(pid_t pid);

/* Appends the contents of a file. Returns false when it cannot be opened. */
bool read_file(struct text *text, const char *path);

#endif
