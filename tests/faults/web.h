/* A connection to an HTTP listener at DIR/http. */
#ifndef TESTS_FAULTS_WEB_H
#define TESTS_FAULTS_WEB_H

#include "run.h"

struct web {
    struct run *run;
    int fd;            /* -1: closed; where a fault is the reason run->client_lost is set */
    struct text input; /* since the last request */
};

/* If the daemon has ended the connection is closed. */
void web_open(struct web *web, struct run *run);

void web_close(struct web *web);

void web_send_bytes(struct web *web, const void *bytes, size_t len);

/* Sends a request (' for " in the body). */
void web_send(struct web *web, const char *head, const char *body);

/* Takes what has come. False: it was nothing, for a while. */
bool web_read(struct web *web);

/* Reads the rest of an answer. False: it was lost. */
bool web_await(struct web *web);

/* Sends a request and reads the answer. */
bool web_ask(struct web *web, const char *head, const char *body);

/* Reads until these words have come. False: they were lost. */
bool web_await_words(struct web *web, const char *words);

#endif
