/* The messages of links, between the daemon and a scripted server that is the other node. */
#ifndef TESTS_SPEC_NATS_LETTERS_H
#define TESTS_SPEC_NATS_LETTERS_H

#include <string.h>

#include "nats/link_stream.h"
#include "nats_broker.h"

#define OTHER "0123456789abcdef" /* the id of the other node */
#define HERE "stdio_bus.node." OTHER ".7"

struct letter {
    const char *subject, *reply; /* reply NULL: none */
    struct link_message message;
};

static inline char *text_of(struct span bytes)
{
    struct text *text = test_text();

    text_add(text, bytes.data, bytes.len);
    text_add(text, "", 1);
    return text->data;
}

/* The message that begins with this line of the protocol. */
static inline struct letter letter_of_line(struct client *link, struct span line)
{
    char *words[4] = {NULL}, *text = text_of(line), *save;
    struct letter letter = {.reply = NULL};
    size_t count = 0, len;

    for (char *word = strtok_r(text, " ", &save); word != NULL && count < 4;
         word = strtok_r(NULL, " ", &save))
        words[count++] = word;
    ck_assert_msg(count >= 3 && strcmp(words[0], "PUB") == 0, "%s", text);
    len = (size_t)strtoul(words[count - 1], NULL, 10);
    while (link->input.len - link->consumed < len + 2)
        ck_assert(client_read_before(link, deadline_usual()));
    letter.subject = words[1];
    letter.reply = count == 4 ? words[2] : NULL;
    text = text_of((struct span){link->input.data + link->consumed, len});
    link->consumed += len + 2;
    ck_assert(link_message_read(&letter.message, slice_of(text, len)));
    return letter;
}

/* The next message that the daemon publishes; signs of life are left out. */
static inline struct letter broker_letter(struct broker *broker)
{
    struct letter letter;

    do
        letter = letter_of_line(broker->link, client_line(broker->link));
    while (letter.message.kind == LINK_LIFE);
    return letter;
}

/* The next line begins like this; beside signs of life, claims, which are repeated, what says
 * that bytes have come, and questions for those that have not. */
static inline void broker_expect_line(struct broker *broker, const char *text)
{
    struct span line = client_line(broker->link);

    while (line.len > 4 && memcmp(line.data, "PUB ", 4) == 0) {
        enum link_kind kind = letter_of_line(broker->link, line).message.kind;

        ck_assert(kind == LINK_LIFE || kind == LINK_CLAIM || kind == LINK_ACK ||
                  kind == LINK_RESUME);
        line = client_line(broker->link);
    }
    ck_assert_msg(line.len >= strlen(text) && memcmp(line.data, text, strlen(text)) == 0,
                  "%.*s instead of %s", (int)line.len, line.data, text);
}

static inline struct letter broker_expect_letter(struct broker *broker, enum link_kind kind,
                                                 const char *subject, const char *payload)
{
    struct letter letter = broker_letter(broker);
    struct slice text;

    while (letter.message.kind != kind && /* once more; when it has waited long */
           (letter.message.kind == LINK_CLAIM || letter.message.kind == LINK_ACK ||
            letter.message.kind == LINK_RESUME))
        letter = broker_letter(broker);
    text = letter.message.payload;

    ck_assert_msg(letter.message.kind == kind, "%c instead of %c", (char)letter.message.kind,
                  (char)kind);
    if (subject != NULL)
        ck_assert_str_eq(letter.subject, subject);
    if (payload != NULL)
        ck_assert_msg(text.len >= strlen(payload) &&
                          memcmp(text.data, payload, strlen(payload)) == 0,
                      "%.*s instead of %s", (int)text.len, text.data, payload);
    return letter;
}

/* Of the end of a link whose subject this is. */
static inline uint64_t mark_of(const char *subject)
{
    const char *number = strrchr(subject, '.');

    return link_mark(test_format("%.16s", number - 16), strtoul(number + 1, NULL, 10));
}

/* A message of link 7 of the other node, unless it has another mark. */
static inline void broker_post(struct broker *broker, const char *sid, const char *subject,
                               const char *reply, const struct link_message *message)
{
    struct link_message marked = *message;
    char head[LINK_HEAD_LEN];

    if (message->mark == 0 && strchr("DEAR", (char)message->kind) != NULL)
        marked.mark = mark_of(subject) + link_mark(OTHER, 7);
    link_message_write(head, &marked);
    broker_say(broker, test_format("MSG %s %s %s %zu", subject, sid, reply,
                                   sizeof head + message->payload.len));
    client_send_bytes(broker->link, head, sizeof head);
    if (message->payload.len > 0)
        client_send_bytes(broker->link, message->payload.data, message->payload.len);
    client_send_bytes(broker->link, "\r\n", 2);
}

#define DELIVER(broker, sid, subject, reply, ...)                                                  \
    broker_post(broker, sid, subject, reply, &(const struct link_message){__VA_ARGS__})

/* No node listens to the subject of a question that has this one for its reply. */
static inline void broker_say_none(struct broker *broker, const char *sid, const char *subject)
{
    broker_say(broker, test_format("HMSG %s %s 16 16\r\nNATS/1.0 503\r\n\r\n", subject, sid));
}

/* --- the daemon serves pool a --- */

#define INBOX "14" /* the sid of its inbox */

/* The other node opens one of its links to pool a. Returns the subject of the daemon's end. */
static inline const char *open_numbered_link(struct broker *broker, unsigned number)
{
    const char *back = test_format("back.%u", number);
    struct letter letter;

    DELIVER(broker, "2", "stdio_bus.open.a", back, .kind = LINK_OPEN,
            .payload = slice_of_text(test_format(OTHER " %u far", number)));
    letter = broker_expect_letter(broker, LINK_ACCEPT, back, NULL);
    ck_assert_uint_gt(letter.message.payload.len, 17);
    return test_format("stdio_bus.node.%.16s.%ld", letter.message.payload.data,
                       strtol(letter.message.payload.data + 17, NULL, 10));
}

static inline const char *open_link(struct broker *broker)
{
    return open_numbered_link(broker, 7);
}

static inline const char *serving_config(unsigned port, const char *members)
{
    return test_format("{'pools':[{'id':'a','command':'@WORKER@','args':['--name','a'],"
                       "'export':true%s}],'nats':{'servers':['127.0.0.1:%u'],'node':'n1'}}",
                       members, port);
}

/* A daemon that serves the pool, with these members, at this server. */
static inline struct daemon *serve_pool(struct broker *broker, const char *members)
{
    struct daemon *daemon;

    broker_listen(broker);
    daemon = START(.config = serving_config(broker->port, members),
                   .arguments = {"--log-level", "debug"});
    broker_begin(broker);
    return daemon;
}

/* --- the daemon asks for pool a --- */

#define ASKING_INBOX "3"

static inline void begin_remote(struct broker *broker)
{
    broker_admit(broker);
    broker_expect_nodes(broker);
}

/* A daemon that asks for the pool, with these members, at this server. */
static inline struct daemon *ask_for_pool(struct broker *broker, const char *members)
{
    struct daemon *daemon;

    broker_listen(broker);
    daemon = START(.config = test_format("{'pools':[{'id':'a','remote':true%s}],"
                                         "'nats':{'servers':['127.0.0.1:%u'],'node':'n1'}}",
                                         members, broker->port));
    begin_remote(broker);
    return daemon;
}

#endif
