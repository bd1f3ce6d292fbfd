/* Admission: which connections become clients. The others get one error line and are closed. */
#ifndef STDIO_BUS_BUS_ADMISSION_H
#define STDIO_BUS_BUS_ADMISSION_H

#include "bus/listeners.h"

#define ADMISSION_TEXT_MAX 160

enum admission {
    ADMISSION_GRANTED,
    ADMISSION_DENIED, /* this origin is not served here */
    ADMISSION_FULL    /* not now: there are too many connections */
};

/* Whether the listener takes a connection of this origin. If not, `text` says why, for the error
 * line. */
enum admission admission_judge(const struct bus_listener *listener, const struct origin *origin,
                               char *text, size_t size);

#endif
