/* A reload: the configuration is read again and takes the place of the one before, while clients
 * stay connected and requests are answered.
 *
 * What can fail comes first and changes nothing: the files are read and checked, memory is taken,
 * new pools and workers are made, new sockets are bound. Then everything changes at once. What
 * takes its time is left to reload/renewals.h: workers that end when they are free. */
#ifndef STDIO_BUS_RELOAD_RELOAD_H
#define STDIO_BUS_RELOAD_RELOAD_H

#include "bus/service.h"

/* Reloads as a service of the bus: SIGHUP, and "reload" on the control socket. */
extern const struct service reload_service;

#endif
