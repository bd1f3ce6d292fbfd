/* What the program was built with: configure --without-NAME leaves a part out. */
#ifndef STDIO_BUS_CONFIG_PARTS_H
#define STDIO_BUS_CONFIG_PARTS_H

#include <stdbool.h>

enum part {
    PART_HTTP,    /* listeners of HTTP and WebSocket, health and metrics by HTTP */
    PART_PAGE,    /* a page for browsers at / of a listener of HTTP */
    PART_RMP,     /* the topic bus */
    PART_NATS,    /* pools over NATS */
    PART_CONTROL, /* the control socket, ctl and --ping */
    PART_RELOAD,  /* SIGHUP */
    PART_UPGRADE, /* SIGUSR2 */
    PART_REMOTE,  /* --connect URL */
    PART_SHARE,   /* --share and --list */
    PART_DOCTOR,  /* doctor and --import */
    PARTS
};

#define PART_MISSING_MAX 40

/* The name in configure's options: "http". */
extern const char *const part_names[PARTS];

bool part_is_in(enum part part);

/* "built without http", for an error; NULL: the part is in. */
const char *part_missing(char text[PART_MISSING_MAX], enum part part);

#endif
