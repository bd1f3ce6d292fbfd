/* Admission: which connections become clients. The others get one error line and are closed. */
#ifndef STDIO_BUS_BUS_ADMISSION_H
#define STDIO_BUS_BUS_ADMISSION_H

#include "bus/listeners.h"

#define ADMISSION_TEXT_MAX 160

/* Whether the listener refuses a connection of this origin; `text` says why, for the error line. */
bool admission_refuses(const struct bus_listener *listener, const struct origin *origin, char *text,
                       size_t size);

#endif
