/* The command line of load. */
#ifndef TESTS_BENCH_LOAD_OPTIONS_H
#define TESTS_BENCH_LOAD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "load_client.h"

struct load_options {
    const char *unix_path; /* connect there; */
    const char *tcp;       /* or to this host:port; else to the program's stdin and stdout */
    unsigned clients;
    struct client_options client;
    uint64_t requests;      /* to measure; 0: as many as fit in seconds */
    double seconds, warmup; /* the latter is not measured */
    double rate;            /* requests a second, all clients together; 0: as fast as they can */
    bool each;              /* a request is a write of its own */
    unsigned greedy;        /* window of client 0, which is not measured; 0: like the others */
    size_t greedy_payload;  /* its payload; 0: like the others */
    bool lockstep;          /* fills the window once all requests are answered */
    unsigned workers;       /* to wait for at the start */
    bool one_cpu;           /* for all processes together */
    bool idle;              /* measure the memory of a connected client */
    double slow;            /* with --push: client 0 reads this many bytes a second */
    char **argv;            /* the program under test */
};

/* Ends the program at a mistake. */
void load_options_read(struct load_options *options, int argc, char **argv);

#endif
