/* Endpoints of two kinds: streams, and one without a descriptor, which records what it is given.
 * Each takes messages of the other. */
#include "build_config.h"

#include "connection_fixture.h"
#include "recording_endpoint.h"

static struct recording_endpoint recorder;

static const struct framing *const framings[] = {&framing_ndjson, &framing_content_length,
                                                 &framing_length};

static void open_in(struct owner *owner, size_t which)
{
    recording_endpoint_init(&recorder);
    framing = framings[which];
    open_socket(owner);
    owner->forward_to = &recorder.endpoint;
}

static void send_in_framing(struct owner *owner, const char *body)
{
    char prefix[FRAME_PREFIX_MAX];

    if (framing->prefix != NULL)
        text_add(&owner->other.to_send, prefix, framing->prefix(prefix, strlen(body)));
    other_send(&owner->other, body);
    if (framing->prefix == NULL)
        other_send(&owner->other, "\n");
}

static void close_both(struct owner *owner)
{
    close_owner(owner);
    recording_endpoint_free(&recorder);
}

/* row: framing; copied, moved or edited. */
TEST_ROWS(messages_of_a_stream_reach_another_kind, 9)
{
    static const char *const expected[][3] = {
        [SENDING_FORWARD] = {"{\"id\":1}\n{\"id\":2}\n", "{\"id\":1}{\"id\":2}",
                             "{\"id\":1}{\"id\":2}"},
        [SENDING_COPY] = {"{\"id\":1}\n{\"id\":2}\n", "{\"id\":1}{\"id\":2}",
                          "{\"id\":1}{\"id\":2}"},
        [SENDING_EDITED] = {"{" EDIT EDIT "\"id\":1}\n{" EDIT EDIT "\"id\":2}\n",
                            "{" EDIT EDIT "\"id\":1}{" EDIT EDIT "\"id\":2}",
                            "{" EDIT EDIT "\"id\":1}{" EDIT EDIT "\"id\":2}"},
    };
    struct owner owner;

    open_in(&owner, row % 3);
    owner.sending = (enum sending)(row / 3);
    send_in_framing(&owner, "{\"id\":1}");
    send_in_framing(&owner, "{\"id\":2}");
    run_until(&owner, owner.messages == 2);
    ck_assert_str_eq(recorder.text, expected[row / 3][row % 3]);
    ck_assert_int_eq(recorder.deliveries, 2);
    ck_assert_int_eq(recorder.kept, owner.sending == SENDING_COPY ? 2 : 0);
    close_both(&owner);
}

/* A large message cannot move to an endpoint that has no queue of buffers: it is copied. */
TEST(large_message_stays_with_its_stream)
{
    struct owner owner;

    open_in(&owner, 0);
    add_message(&owner.other.to_send, 100000, 1);
    add_message(&owner.other.to_send, 30, 2);
    run_until(&owner, owner.messages == 2);
    ck_assert_int_eq(owner.handed_over, 0);
    ck_assert_uint_eq(recorder.len, owner.other.to_send.len);
    ck_assert_mem_eq(recorder.text, owner.other.to_send.data, recorder.len);
    close_both(&owner);
}

/* A delivery that fails leaves the message with its sender, which offers it again. */
TEST(failed_delivery_is_repeated)
{
    struct owner owner;

    open_in(&owner, 0);
    recorder.refuse = 2;
    other_send(&owner.other, "{\"id\":1}\n{\"id\":2}\n");
    run_until(&owner, owner.messages == 2);
    ck_assert_int_eq(owner.forward_failures, 2);
    ck_assert_int_eq(owner.offers, 4);
    ck_assert_str_eq(recorder.text, "{\"id\":1}\n{\"id\":2}\n");
    close_both(&owner);
}

static int deliver(struct owner *to, struct endpoint *from, const char *text)
{
    const struct delivery delivery = {.from = from, .bytes = {text, strlen(text)}};

    return to->stream.endpoint.ops->deliver(&to->stream.endpoint, &delivery);
}

/* The other kind's messages are bodies: one with newlines still becomes a single line. row: framing
 * of the stream. */
TEST_ROWS(messages_of_another_kind_reach_a_stream, 3)
{
    static const char *const expected[] = {
        "{ \"id\": 1 }\n{\"own\":1}\n",
        "Content-Length: 11\r\n\r\n{\n\"id\":\n1\r}Content-Length: 9\r\n\r\n{\"own\":1}",
        "\0\0\0\x0b{\n\"id\":\n1\r}\0\0\0\x09{\"own\":1}",
    };
    static const size_t lengths[] = {22, 63, 28};
    struct owner owner;

    open_in(&owner, row);
    ck_assert_int_eq(deliver(&owner, &recorder.endpoint, "{\n\"id\":\n1\r}"), STDIO_BUS_OK);
    ck_assert_int_eq(deliver(&owner, NULL, "{\"own\":1}\n"), STDIO_BUS_OK);
    run_until(&owner, owner.other.received.len >= lengths[row]);
    ck_assert_uint_eq(owner.other.received.len, lengths[row]);
    ck_assert_mem_eq(owner.other.received.data, expected[row], lengths[row]);
    close_both(&owner);
}

/* One switch for all kinds: the operations of each reach it. */
TEST(operations_reach_both_kinds)
{
    struct owner owner;
    struct endpoint *endpoint;

    open_in(&owner, 0);
    endpoint = &recorder.endpoint;
    endpoint->ops->pause(endpoint);
    endpoint->ops->resume(endpoint);
    endpoint->ops->close(endpoint);
    ck_assert_int_eq(recorder.pauses, 1);
    ck_assert_int_eq(recorder.resumes, 1);
    ck_assert_int_eq(recorder.closes, 1);
    endpoint = &owner.stream.endpoint;
    endpoint->ops->pause(endpoint);
    other_send(&owner.other, "{\"id\":1}\n");
    run_until(&owner, other_sent_all(&owner.other));
    run_some(&owner);
    ck_assert_int_eq(owner.offers, 0);
    ck_assert(!owner.stream.resumed);
    endpoint->ops->resume(endpoint);
    ck_assert(owner.stream.resumed);
    run_until(&owner, owner.messages == 1);
    ck_assert_int_eq(deliver(&owner, NULL, "{}\n"), STDIO_BUS_OK);
    endpoint->ops->close(endpoint);
    run_until(&owner, owner.other.eof);
    ck_assert_uint_eq(owner.other.received.len, 3);
    close_both(&owner);
}

TEST(stream_without_a_connection_loses_deliveries)
{
    struct stream stream = {.endpoint = {.context = "worker=1"}};
    const struct delivery delivery = {.bytes = {"{}\n", 3}};

    stream_init(&stream);
    ck_assert_int_eq(stream.endpoint.ops->deliver(&stream.endpoint, &delivery), STDIO_BUS_OK);
    stream.endpoint.ops->pause(&stream.endpoint);
    stream.endpoint.ops->resume(&stream.endpoint);
    stream.endpoint.ops->close(&stream.endpoint);
    ck_assert_uint_eq(stream.connection.output.bytes, 0);
}
