/* A program with a bus inside: it waits for the poll_fd alone, and notes what its callbacks get. */
#ifndef TESTS_UNIT_EMBED_FIXTURE_H
#define TESTS_UNIT_EMBED_FIXTURE_H

#include "deadline.h"
#include "embed/stdio_bus_embed.h"
#include "json.h"
#include "suite.h"
#include "text.h"

struct embed {
    stdio_bus_t *bus;
    struct text config;
    stdio_bus_options_t options;
    struct text messages; /* all, each with a newline */
    size_t taken;         /* bytes of these that embed_message has given out */
    size_t count, bytes;  /* of messages */
    struct text events;   /* "worker 1 started\n", "connected 1 unix\n", "error -10 text\n" */
    struct text log;
    int steps;                                                      /* calls of stdio_bus_step */
    void (*hook)(struct embed *embed, const char *msg, size_t len); /* in on_message; NULL: none */
    void *hook_data;
    bool quiet; /* messages are counted alone */
};

/* The options of a bus with `instances` of the test worker, with further arguments, and members of
 * the configuration; ' stands for ". Either may be "". */
void embed_init(struct embed *embed, unsigned instances, const char *args, const char *members);

/* The same with this whole configuration, in which @WORKER@ is the test worker. */
void embed_init_config(struct embed *embed, const char *config);

/* Creates and starts it. */
void embed_start(struct embed *embed);

/* Waits for the poll_fd, and steps once without waiting. */
void embed_step(struct embed *embed, int64_t deadline);

/* Steps until the condition is true. */
#define EMBED_UNTIL(embed, condition)                                                              \
    for (int64_t embed_deadline = deadline_usual(); !(condition);) {                               \
        ck_assert_msg(!deadline_over(embed_deadline), "no %s; events:\n%s\nlog:\n%s", #condition,  \
                      (embed)->events.data, (embed)->log.data);                                    \
        embed_step((embed), embed_deadline);                                                       \
    }

/* Offers a message (printf; ' stands for "). */
int embed_ingest(struct embed *embed, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same, which must be taken. */
#define EMBED_SEND(embed, ...) ck_assert_int_eq(embed_ingest((embed), __VA_ARGS__), STDIO_BUS_OK)

/* The next message, without its newline; steps until there is one. */
struct span embed_message(struct embed *embed);

/* Steps until this event is noted ("worker 1 started"). */
void embed_await(struct embed *embed, const char *event);
bool embed_has(const struct embed *embed, const char *event);

stdio_bus_stats_t embed_stats(const struct embed *embed);

/* Stops, and steps until the bus is STOPPED. */
void embed_stop(struct embed *embed);

/* Destroys the bus, and frees everything. */
void embed_end(struct embed *embed);

#endif
