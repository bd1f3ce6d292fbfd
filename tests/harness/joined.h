/* A process of --connect, and for --connect http:// the server that a test is for it. */
#ifndef TESTS_HARNESS_JOINED_H
#define TESTS_HARNESS_JOINED_H

#include "client.h"
#include "web_server.h"

struct joined { /* a process of --connect, and the program on its stdin and stdout */
    pid_t pid;
    struct client *client;
    const char *log; /* the path of what it writes to stderr */
};

/* Starts it for this address or URL; words: more of the command line, up to NULL. */
struct joined joined_with(const char *address, const char *const *words);

#define JOINED(url, ...) joined_with(url, (const char *const[]){__VA_ARGS__, NULL})

/* The same for /mcp of the server. */
struct joined joined_to(const struct web_server *server);

/* It must exit with this status. */
void joined_expect_status(const struct joined *joined, int expected);

/* The field of the request must have this value; NULL: it must be missing. */
void web_expect_field(const struct web_request *request, const char *name, const char *value);

#define INITIALIZE                                                                                 \
    "{'jsonrpc':'2.0','id':0,'method':'initialize','params':{'protocolVersion':'2025-11-25'}}"
#define WELCOME "{'jsonrpc':'2.0','id':0,'result':{'protocolVersion':'2025-11-25'}}"
#define INITIALIZED "{'jsonrpc':'2.0','method':'notifications/initialized'}"
#define JSON "Content-Type: application/json\r\n"

/* The program asks; the request that comes; its answer, which is ANSWER. */
void joined_ask(const struct joined *joined, int id);
struct web_request *joined_asked(struct web_server *server, int id);
void joined_answer(const struct web_request *request, int id);

#define ANSWER "{'jsonrpc':'2.0','id':%d,'result':{}}"

#endif
