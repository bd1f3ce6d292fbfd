/* The file that the faulty daemon and the sweep map. The daemon counts its calls of the C library
 * there, by call site, and reads which of them fail. Its children do so too until exec. */
#ifndef TESTS_FAULTS_BOARD_H
#define TESTS_FAULTS_BOARD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define BOARD_VARIABLE "STDIO_BUS_FAULT_BOARD" /* the environment variable with the file's path */
#define BOARD_SITES 1024                       /* a power of two */
#define BOARD_SPEED 20                         /* seconds of the daemon's clock in one second */
#define BOARD_SPEED_LOW 4                      /* the same in a repeated run */

#define FOLLOWERS_MAX 96 /* calls after a fault, in the same round of the event loop */
#define FOLLOWERS_SITE 2 /* of them at one site */
#define FAULTS_MAX 3     /* a fault, one in the handling of that, and one more */

#define FAULT_SHORT (-1) /* instead of an error: the call does one byte's work */

enum board_role {
    ROLE_DAEMON,
    ROLE_CHILD, /* between fork and exec */
    ROLE_COUNT
};

/* A call instruction. Its offset from the start of the program is the same in each run. */
struct site {
    uint64_t key; /* site_key(); 0: a free entry */
    uint32_t calls;
};

struct call {
    uint64_t key;
    uint32_t number; /* at its site, from 1 on */
};

struct fault {
    uint64_t key;
    uint32_t number; /* of the site's call that fails */
    int error;       /* errno, or the error that the function returns, or FAULT_SHORT */
    bool lasting;    /* all calls of the function fail, at all sites, while armed */
};

struct board {
    struct fault faults[FAULTS_MAX];
    uint32_t fault_count;
    uint32_t speed;                  /* BOARD_SPEED or BOARD_SPEED_LOW */
    uint32_t ahead_sec;              /* of the daemon's clock: seconds that were skipped */
    uint32_t hits[FAULTS_MAX];       /* calls that failed on purpose */
    uint32_t armed;                  /* lasting faults have begun */
    uint32_t lifted;                 /* lasting faults have ended */
    uint32_t waits;                  /* for events */
    struct sockaddr_storage address; /* that the daemon listens on */
    uint32_t address_len;            /* 0: none yet */
    uint32_t deaf;                   /* it is about to end: SIGTERM would kill it */
    uint32_t ended;                  /* main has returned: the counts below are valid */
    int32_t allocations;             /* not freed */
    int32_t descriptors;             /* not closed */
    uint32_t follower_count;
    struct call followers[FOLLOWERS_MAX]; /* the daemon's calls after the first fault */
    struct site sites[BOARD_SITES];
};

static inline uint64_t site_key(enum board_role role, unsigned name, uint64_t offset)
{
    return offset << 16 | (uint64_t)name << 8 | (uint64_t)role << 1 | 1;
}

/* Role and function: the same for all sites of a function. */
static inline uint64_t site_kind(uint64_t key)
{
    return key & 0xffff;
}

static inline enum board_role site_role(uint64_t key)
{
    return (enum board_role)(key >> 1 & 1);
}

static inline unsigned site_name(uint64_t key)
{
    return key >> 8 & 0xff;
}

static inline uint64_t site_offset(uint64_t key)
{
    return key >> 16;
}

#endif
