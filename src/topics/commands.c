#include "build_config.h"

#include "topics/commands.h"

#include "base/error.h"
#include "rmp/command.h"
#include "rmp/reply.h"

/* --- publishing --- */

/* What can be told before the broker sees the message. False: *result. */
static bool check_message(const struct rmp_client *client, const struct rmp_command *command,
                          struct rmp_result *result)
{
    const struct rmp_header *header = &command->header;
    const struct rmp_rules *rules = &client->hub->rules;

    *result = (struct rmp_result){.outcome = RMP_RESULT_OK, .schema_id = header->schema_id};
    if (header->body_len != 0 && header->body_len != command->body.len) {
        result->outcome = RMP_RESULT_BODY_LENGTH_MISMATCH;
        result->expected = header->body_len;
        result->actual = command->body.len;
    } else if (command->body.len > rules->max_body) {
        result->outcome = RMP_RESULT_FORBIDDEN;
        result->text = slice_of_text("the body exceeds rmp.max_body");
    } else if (rmp_schemas_find(rules->schemas, header->schema_id) == NULL) {
        result->outcome = RMP_RESULT_UNKNOWN_SCHEMA;
    }
    return result->outcome == RMP_RESULT_OK;
}

/* Unless rmp.validate is false: whether the body is that of a frame. The broker judges what comes
 * first. */
static bool check_body(struct rmp_client *client, const struct rmp_publication *publication,
                       struct rmp_result *result)
{
    struct rmp_frame frame = {.header = publication->header};
    enum rmp_error error;

    if (!client->hub->bus->options.config->rmp.validate)
        return true;
    error = rmp_frame_read_body(&frame, publication->frame, &client->hub->rules,
                                rmp_hub_time(client->hub).epoch_ms);
    if (error != RMP_BODY_DECODE_ERROR && error != RMP_BODY_TYPE_MISMATCH)
        return true;
    result->outcome = RMP_RESULT_BODY_TYPE_MISMATCH;
    result->text = frame.has_envelope ? frame.envelope.type : slice_of("", 0);
    return false;
}

void rmp_commands_answer(struct rmp_client *client, const struct rmp_asked *asked,
                         const struct rmp_result *result)
{
    char reply[RMP_REPLY_MAX] UNINITIALIZED;

    rmp_client_send(client, slice_of(reply, rmp_reply_publish(reply, asked->id, result)));
}

/* The header goes in front of the body, where the reader of the command has left room. */
static enum rmp_next publish(struct rmp_client *client, const struct rmp_command *command,
                             char *work)
{
    struct rmp_publication publication = {.header = command->header, .topic = command->topic};
    struct rmp_asked asked = {.is_command = true, .id = command->id};
    struct rmp_result result;

    if (check_message(client, command, &result)) {
        publication.header.body_len = (uint32_t)command->body.len;
        rmp_header_write_prefixed(work, &publication.header);
        publication.frame = slice_of(work, RMP_BODY_OFFSET + command->body.len);
        asked.header = publication.header;
        if (check_body(client, &publication, &result) &&
            !rmp_client_publish(client, &publication, &asked, &result))
            return RMP_NEXT_WAIT;
    }
    rmp_commands_answer(client, &asked, &result);
    return RMP_NEXT_FRAME;
}

/* --- the other commands --- */

static void subscribe(struct rmp_client *client, const struct rmp_command *command)
{
    struct rmp_hub *hub = client->hub;
    struct rmp_sub_name name = {RMP_DIALECT_JSON, command->sub_id};
    struct rmp_result result = rmp_broker_subscribe(hub->broker, &client->peer, name,
                                                    command->topic, rmp_hub_time(hub));
    char reply[RMP_REPLY_MAX] UNINITIALIZED;

    rmp_client_send(client, slice_of(reply, rmp_reply_subscribe(reply, command->id, &result)));
    if (command->replay && result.is_new)
        rmp_runs_replay(hub->runs, &(struct rmp_replay){hub->broker, &client->peer, name,
                                                        command->topic, rmp_hub_time(hub)});
}

static enum rmp_next carry_out(struct rmp_client *client, const struct rmp_command *command,
                               char *work)
{
    struct rmp_sub_name name = {RMP_DIALECT_JSON, command->sub_id};
    char reply[RMP_REPLY_MAX] UNINITIALIZED;

    switch (command->type) {
    case RMP_HELLO:
        rmp_client_set_kind(client, command->kind);
        rmp_client_send(client, slice_of(reply, rmp_reply_hello(reply)));
        return RMP_NEXT_FRAME;
    case RMP_SUBSCRIBE:
        subscribe(client, command);
        return RMP_NEXT_FRAME;
    case RMP_UNSUBSCRIBE:
        rmp_broker_unsubscribe(client->hub->broker, &client->peer, name, slice_of("", 0));
        return RMP_NEXT_FRAME;
    case RMP_PUBLISH:
        break;
    }
    return publish(client, command, work);
}

enum rmp_next rmp_commands_take(struct rmp_client *client, struct slice wire)
{
    struct slice json = {wire.data + RMP_PREFIX_LEN, wire.len - RMP_PREFIX_LEN};
    struct buffer_pool *pool = &client->hub->bus->transport.pool;
    struct buffer *work = buffer_take(pool, RMP_COMMAND_WORK(json.len));
    enum rmp_next next = RMP_NEXT_CLOSE;
    struct rmp_command command;

    if (work == NULL) {
        log_error(client->hub->bus->log, client->context, "out of memory: closing it");
        return RMP_NEXT_CLOSE;
    }
    if (rmp_command_read(&command, json, work->data))
        next = carry_out(client, &command, work->data);
    buffer_give(pool, work);
    return next;
}

/* --- messages --- */

/* The part of the text that is the same for all subscribers; empty if out of memory. */
static struct slice text_of(struct rmp_hub *hub, const struct rmp_publication *publication)
{
    struct slice body = rmp_publication_body(publication);
    struct buffer_pool *pool = &hub->bus->transport.pool;
    size_t max = RMP_MESSAGE_REST_MAX(body.len);

    if (hub->text_number == publication->number && hub->text != NULL)
        return slice_of(hub->text->data, hub->text->end);
    if (hub->text == NULL || hub->text->capacity < max) {
        buffer_give(pool, hub->text);
        hub->text = buffer_take(pool, max);
        if (hub->text == NULL)
            return slice_of(NULL, 0);
    }
    hub->text->end = rmp_message_rest(hub->text->data, &publication->header, body);
    hub->text_number = publication->number;
    return slice_of(hub->text->data, hub->text->end);
}

enum rmp_taken rmp_commands_deliver(struct rmp_client *client, uint64_t sub_id,
                                    const struct rmp_publication *publication)
{
    struct slice rest = text_of(client->hub, publication);
    char start[RMP_MESSAGE_START_MAX] UNINITIALIZED;
    struct splice_edit edit = {.offset = 0};
    size_t len;

    if (rest.data == NULL)
        return RMP_REFUSED;
    len = rmp_message_start(start, sub_id, rest.len);
    edit.text = slice_of(start + RMP_PREFIX_LEN, len - RMP_PREFIX_LEN);
    return connection_send_body(&client->connection, NULL, rest, &edit, 1) == STDIO_BUS_OK
               ? RMP_TAKEN
               : RMP_REFUSED;
}
