/* The bytes of a run's file. */
#include "build_config.h"

#include "rmp/run_file.h"

#include "rmp/bridge.h"
#include "rmp/control.h"
#include "suite.h"

#define MAX_BODY 4096
#define EPOCH_MS 1700000000000

static const struct rmp_id run = {0x1122334455667788, 0x99aabbccddeeff00};

static struct rmp_kept_event *event_of(const char *kind)
{
    static char room[512];
    struct rmp_kept_event *event = (struct rmp_kept_event *)(void *)room;
    struct msgpack_writer writer = {.to = event->payload, .size = 256};

    *event = (struct rmp_kept_event){.msg_id = 7, .at_ms = EPOCH_MS};
    msgpack_put_map(&writer, 1);
    msgpack_put_text(&writer, kind);
    msgpack_put_text(&writer, "log");
    event->len = writer.len;
    return event;
}

static struct slice accepted(char to[256])
{
    static const char nil[] = "\xc0";
    struct msgpack_writer writer = {.to = to, .size = 256};

    rmp_control_put_accepted(&writer, run, slice_of(nil, 1), slice_of(nil, 1));
    return slice_of(to, writer.len);
}

TEST(file_is_read_as_it_was_written)
{
    char payload[256], *first, *second, bytes[2048];
    struct run_file_record record;
    struct slice answer = accepted(payload);
    const struct rmp_kept_event *event = event_of("kind");
    size_t one, other;

    first = run_file_accepted(run, 1002, answer, EPOCH_MS, &one);
    second = run_file_event(run, event, &other);
    memcpy(bytes, first, one);
    memcpy(bytes + one, second, other);
    ck_assert_int_eq(run_file_read(&record, run, slice_of(bytes, one + other), MAX_BODY),
                     RUN_FILE_ACCEPTED);
    ck_assert_uint_eq(record.len, one);
    ck_assert(slice_equal(record.payload, answer));
    ck_assert_uint_eq(record.user, 1002);
    ck_assert_int_eq(run_file_read(&record, run, slice_of(bytes + one, other), MAX_BODY),
                     RUN_FILE_EVENT);
    ck_assert_uint_eq(record.len, other);
    ck_assert_uint_eq(record.msg_id, 7);
    ck_assert_uint_eq(record.at_ms, EPOCH_MS);
    ck_assert(slice_equal(record.payload, slice_of(event->payload, event->len)));
    for (size_t len = 0; len < other; len++)
        ck_assert_int_eq(run_file_read(&record, run, slice_of(bytes + one, len), MAX_BODY),
                         RUN_FILE_CUT);
    free(first);
    free(second);
}

/* Every bit of the head matters, but those of times, schema and msg_id. */
TEST(damage_is_found)
{
    struct run_file_record record;
    size_t len;
    char *frame = run_file_event(run, event_of("kind"), &len);
    static const size_t heads[] = {0, 4, 8, 10, 12, 18, 20, 40, 55, 64, 68, 69};

    for (size_t i = 0; i < COUNT(heads); i++) {
        frame[heads[i]] ^= 0x40;
        ck_assert_int_ge(run_file_read(&record, run, slice_of(frame, len), MAX_BODY), RUN_FILE_CUT);
        frame[heads[i]] ^= 0x40;
    }
    ck_assert_int_eq(run_file_read(&record, run, slice_of(frame, len), MAX_BODY), RUN_FILE_EVENT);
    ck_assert_int_eq(run_file_read(&record, run, slice_of(frame, len), 10), RUN_FILE_DAMAGED);
    ck_assert_int_eq(run_file_read(&record, (struct rmp_id){1, 2}, slice_of(frame, len), MAX_BODY),
                     RUN_FILE_DAMAGED);
    free(frame);
    frame = run_file_event(run, event_of("other"), &len);
    ck_assert_int_eq(run_file_read(&record, run, slice_of(frame, len), MAX_BODY), RUN_FILE_DAMAGED);
    free(frame);
}

TEST(replayed_frame_is_not_expired)
{
    static const char topic[] = "rlp/runs/trace:11223344-5566-7788-99aa-bbccddeeff00/events";
    static const struct rmp_schemas schemas;
    const struct rmp_rules rules = {&schemas, MAX_BODY};
    struct rmp_header header;
    struct rmp_frame frame;
    size_t len;
    char *bytes = run_file_replay(run, event_of("kind"), EPOCH_MS + 5000000, &header, &len);

    ck_assert_int_eq(rmp_frame_read(&frame, slice_of(bytes, len), &rules,
                                    EPOCH_MS + 5000000 + RUN_FILE_REPLAY_MS - 1),
                     RMP_OK);
    ck_assert_int_eq(rmp_frame_read(&frame, slice_of(bytes, len), &rules,
                                    EPOCH_MS + 5000000 + RUN_FILE_REPLAY_MS),
                     RMP_EXPIRED);
    ck_assert_uint_eq(frame.header.created_at_ms, EPOCH_MS);
    ck_assert_uint_eq(header.ttl_ms, frame.header.ttl_ms);
    ck_assert_uint_eq(frame.header.msg_id, 7);
    ck_assert(rmp_id_equal(frame.header.trace_id, run));
    ck_assert(slice_equal(rmp_envelope_topic(&frame.envelope), slice_of(topic, sizeof topic - 1)));
    free(bytes);
}

static const struct {
    const char *topic;
    bool is_run;
} topics[] = {
    {"rlp/runs/trace:11223344-5566-7788-99aa-bbccddeeff00/events", true},
    {"rlp/runs/11223344-5566-7788-99aa-bbccddeeff00/events", true},
    {"rlp/runs/11223344-5566-7788-99AA-bbccddeeff00/events", false},
    {"rlp/runs/trace:trace:11223344-5566-7788-99aa-bbccddeeff00/events", false},
    {"rlp/runs/11223344-5566-7788-99aa-bbccddeeff00/event", false},
    {"rlp/runs/11223344-5566-7788-99aa-bbccddeeff00/eventss", false},
    {"rlp/runs/11223344-5566-7788-99aa-bbccddeeff0/events", false},
    {"rlp/runs/11223344-5566-7788-99aa_bbccddeeff00/events", false},
    {"rlp/runs/", false},
    {"rlp/ctrl", false},
};

TEST_ROWS(topic_names_a_run, COUNT(topics))
{
    struct rmp_id found = {0, 0};
    const char *topic = topics[row].topic;

    ck_assert_int_eq(bridge_run_of_topic(slice_of(topic, strlen(topic)), &found),
                     topics[row].is_run);
    ck_assert(!topics[row].is_run || rmp_id_equal(found, run));
}
