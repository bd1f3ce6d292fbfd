/* stdio_bus doctor: looks at what goes wrong most around a daemon and its clients. */
#ifndef STDIO_BUS_DOCTOR_DOCTOR_H
#define STDIO_BUS_DOCTOR_DOCTOR_H

/* Reads the words that follow "doctor", and prints a line for each finding, with its cure. Returns
 * the exit status, which is that of the worst finding: see enum doctor_severity. */
int doctor_run(int argc, char *const argv[]);

#endif
