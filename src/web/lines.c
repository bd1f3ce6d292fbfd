#include "build_config.h"

#include "web/lines.h"

#include <stdlib.h>

#include "bus/deliver.h"

struct http_line {
    struct list_node node; /* session->lines */
    size_t len;
    char text[MESSAGE_ERROR_MAX];
};

/* Reads a whole message. False: it is none. */
static bool read_message(struct message *message, struct scanner *scanner,
                         struct message_scratch *scratch, struct slice text)
{
    return message_scan(scanner, text) &&
           message_from_scan(message, text, &scanner->fields, scratch) == MESSAGE_OK;
}

void http_lines_refuse(struct http_session *session, const struct event *event)
{
    struct http_line *line = malloc(sizeof *line);
    struct message_scratch scratch UNINITIALIZED;
    struct message message UNINITIALIZED;
    struct scanner scanner;

    if (line == NULL ||
        !read_message(&message, &scanner, &scratch, slice_of(event->data, event->len))) {
        log_error(session->hub->bus->log, session->endpoint.context,
                  "a question of a worker gets no answer: out of memory");
        free(line);
        return;
    }
    line->node = (struct list_node){NULL, NULL};
    line->len = message_write_error(line->text, sizeof line->text, message.id, JSONRPC_SERVER_ERROR,
                                    "the client does not fetch what it is asked") -
                1; /* the newline is no part of the message */
    list_append(&session->lines, &line->node);
    http_hub_note(session->hub, &session->due);
}

void http_lines_offer(struct http_session *session)
{
    struct message_scratch scratch UNINITIALIZED;
    struct message message UNINITIALIZED;
    struct scanner scanner;
    struct list_node *node;

    while (!session->paused && (node = list_take_first(&session->lines)) != NULL) {
        struct http_line *line = list_entry(node, struct http_line, node);

        if (read_message(&message, &scanner, &scratch, slice_of(line->text, line->len)))
            deliver_message(&session->endpoint, &message);
        if (session->paused)
            list_prepend(&session->lines, &line->node);
        else
            free(line);
    }
}

static void archive_line(struct archive *archive, void *owner, void *item)
{
    struct http_session *session = owner;
    struct http_line *line = item != NULL ? item : calloc(1, sizeof *line);

    if (!archive_made(archive, line != NULL))
        return;
    ARCHIVE_ENUM(archive, line->len, sizeof line->text);
    archive_bytes(archive, line->text, line->len);
    if (!archive->saves)
        list_append(&session->lines, &line->node);
}

void http_lines_archive(struct archive *archive, struct http_session *session)
{
    ARCHIVE_LIST(archive, &session->lines, struct http_line, node, archive_line, session);
}

void http_lines_clear(struct http_session *session)
{
    struct list_node *node;

    while ((node = list_take_first(&session->lines)) != NULL)
        free(list_entry(node, struct http_line, node));
}
