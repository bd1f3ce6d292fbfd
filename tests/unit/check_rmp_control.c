#include "build_config.h"

#include "rmp/control.h"

#include "rmp/bridge.h"
#include "rmp/peer.h"
#include "suite.h"

static const struct siphash_key key = {1, 2};
static const struct rmp_id id = {0x1122334455667788, 0x99aabbccddeeff00};
static const struct rmp_id other = {1, 2};

/* --- the body of a request --- */

static void put_submit(struct msgpack_writer *writer, struct rmp_id request_id, bool with_yaml)
{
    msgpack_put_map(writer, 1);
    msgpack_put_text(writer, "RunSubmit");
    msgpack_put_map(writer, with_yaml ? 2 : 1);
    msgpack_put_text(writer, "request_id");
    rmp_put_id(writer, request_id);
    if (with_yaml) {
        msgpack_put_text(writer, "opening_yaml");
        msgpack_put_text(writer, "name: a");
    }
}

static bool read_payload(struct rmp_control_request *request, const struct msgpack_writer *writer,
                         const char **problem)
{
    const struct rmp_header header = {.trace_id = id};
    const struct rmp_envelope envelope = {.payload = {writer->to, writer->len}};

    return rmp_control_read(request, &header, &envelope, problem);
}

TEST(submit_is_read)
{
    char bytes[256];
    struct msgpack_writer writer = {.to = bytes, .size = sizeof bytes};
    struct rmp_control_request request;
    const char *problem;
    struct msgpack_value yaml;

    put_submit(&writer, id, true);
    ck_assert(read_payload(&request, &writer, &problem));
    ck_assert_int_eq(request.kind, RMP_CONTROL_SUBMIT);
    ck_assert(rmp_id_equal(request.request_id, id) && rmp_id_equal(request.run_id, id));
    ck_assert(msgpack_find(request.members, "opening_yaml", &yaml, NULL));
    ck_assert(msgpack_is(&yaml, "name: a"));
}

TEST(submit_with_another_request_id)
{
    char bytes[256];
    struct msgpack_writer writer = {.to = bytes, .size = sizeof bytes};
    struct rmp_control_request request;
    const char *problem;

    put_submit(&writer, other, true);
    ck_assert(!read_payload(&request, &writer, &problem));
    ck_assert_str_eq(problem, "request_id is not the trace_id of the frame");
    ck_assert(rmp_id_equal(request.request_id, id));
}

TEST(submit_without_yaml)
{
    char bytes[256];
    struct msgpack_writer writer = {.to = bytes, .size = sizeof bytes};
    struct rmp_control_request request;
    const char *problem;

    put_submit(&writer, id, false);
    ck_assert(!read_payload(&request, &writer, &problem));
    ck_assert_str_eq(problem, "RunSubmit has no opening_yaml");
}

TEST(cancel_is_read)
{
    char bytes[256];
    struct msgpack_writer writer = {.to = bytes, .size = sizeof bytes};
    struct rmp_control_request request;
    const char *problem;

    msgpack_put_map(&writer, 1);
    msgpack_put_text(&writer, "RunCancel");
    msgpack_put_map(&writer, 1);
    msgpack_put_text(&writer, "trace_id");
    rmp_put_id(&writer, other);
    ck_assert(read_payload(&request, &writer, &problem));
    ck_assert_int_eq(request.kind, RMP_CONTROL_CANCEL);
    ck_assert(rmp_id_equal(request.request_id, id) && rmp_id_equal(request.run_id, other));
}

TEST(no_request)
{
    char bytes[64];
    struct msgpack_writer writer = {.to = bytes, .size = sizeof bytes};
    struct rmp_control_request request;
    const char *problem;

    msgpack_put_map(&writer, 1);
    msgpack_put_text(&writer, "RunCancel");
    msgpack_put_uint(&writer, 1);
    ck_assert(!read_payload(&request, &writer, &problem));
    ck_assert_str_eq(problem, "RunCancel has no trace_id");
    writer.len = 0;
    msgpack_put_map(&writer, 0);
    ck_assert(!read_payload(&request, &writer, &problem));
    ck_assert_str_eq(problem, "neither RunSubmit nor RunCancel");
}

/* --- requests that come again --- */

static struct rmp_control_request request_of(enum rmp_control_kind kind, uint64_t low)
{
    return (struct rmp_control_request){.kind = kind, .request_id = {7, low}, .user = RMP_USERS};
}

static enum rmp_control_verdict take(struct rmp_control *control, enum rmp_control_kind kind,
                                     uint64_t low, struct slice *answer)
{
    struct rmp_control_request request = request_of(kind, low);

    return rmp_control_take(control, &request, answer);
}

/* Of this user, who submits the run `low`. */
static enum rmp_control_verdict submit_of(struct rmp_control *control, uint32_t user, uint64_t low)
{
    struct rmp_control_request request = request_of(RMP_CONTROL_SUBMIT, low);
    struct slice answer;

    request.user = user;
    return rmp_control_take(control, &request, &answer);
}

static void answer_run(struct rmp_control *control, uint64_t low)
{
    ck_assert(rmp_control_settle(control, RMP_CONTROL_SUBMIT, (struct rmp_id){7, low},
                                 slice_of("a", 1)));
}

TEST(duplicates)
{
    struct rmp_control control;
    struct slice answer;

    rmp_control_init(&control, &key, 8);
    ck_assert_int_eq(take(&control, RMP_CONTROL_SUBMIT, 1, &answer), RMP_CONTROL_NEW);
    ck_assert_int_eq(take(&control, RMP_CONTROL_SUBMIT, 1, &answer), RMP_CONTROL_PENDING);
    ck_assert_int_eq(take(&control, RMP_CONTROL_CANCEL, 1, &answer), RMP_CONTROL_NEW);
    rmp_control_settle(&control, RMP_CONTROL_SUBMIT, (struct rmp_id){7, 1}, slice_of("abc", 3));
    ck_assert_int_eq(take(&control, RMP_CONTROL_SUBMIT, 1, &answer), RMP_CONTROL_ANSWERED);
    ck_assert(slice_equal(answer, slice_of("abc", 3)));
    ck_assert_int_eq(take(&control, RMP_CONTROL_CANCEL, 1, &answer), RMP_CONTROL_PENDING);
    rmp_control_free(&control);
}

TEST(rejections_are_not_remembered)
{
    struct rmp_control control;
    struct slice answer;

    rmp_control_init(&control, &key, 8);
    ck_assert_int_eq(take(&control, RMP_CONTROL_SUBMIT, 1, &answer), RMP_CONTROL_NEW);
    rmp_control_forget(&control, RMP_CONTROL_SUBMIT, (struct rmp_id){7, 1});
    ck_assert_int_eq(take(&control, RMP_CONTROL_SUBMIT, 1, &answer), RMP_CONTROL_NEW);
    rmp_control_free(&control);
}

TEST(table_is_bounded)
{
    struct rmp_control control;
    struct slice answer;

    rmp_control_init(&control, &key, 4);
    for (uint64_t i = 0; i < 4; i++)
        ck_assert_int_eq(take(&control, RMP_CONTROL_SUBMIT, i, &answer), RMP_CONTROL_NEW);
    ck_assert_int_eq(take(&control, RMP_CONTROL_SUBMIT, 4, &answer), RMP_CONTROL_FULL);
    rmp_control_settle(&control, RMP_CONTROL_SUBMIT, (struct rmp_id){7, 2}, slice_of("a", 1));
    ck_assert_int_eq(take(&control, RMP_CONTROL_SUBMIT, 4, &answer), RMP_CONTROL_NEW);
    ck_assert_int_eq(take(&control, RMP_CONTROL_SUBMIT, 0, &answer), RMP_CONTROL_PENDING);
    rmp_control_settle(&control, RMP_CONTROL_SUBMIT, (struct rmp_id){7, 4}, slice_of("a", 1));
    ck_assert_int_eq(take(&control, RMP_CONTROL_SUBMIT, 2, &answer), RMP_CONTROL_NEW);
    rmp_control_free(&control);
}

TEST(user_with_most_requests_forgets_its_oldest)
{
    struct rmp_control control;

    rmp_control_init(&control, &key, 8);
    for (uint64_t i = 0; i < 3; i++) {
        ck_assert_int_eq(submit_of(&control, 2, i), RMP_CONTROL_NEW);
        answer_run(&control, i);
    }
    for (uint64_t i = 100; i < 200; i++) {
        ck_assert_int_eq(submit_of(&control, 3, i), RMP_CONTROL_NEW);
        answer_run(&control, i);
    }
    for (uint64_t i = 0; i < 3; i++)
        ck_assert_int_eq(submit_of(&control, 2, i), RMP_CONTROL_ANSWERED);
    for (uint64_t i = 195; i < 200; i++)
        ck_assert_int_eq(submit_of(&control, 3, i), RMP_CONTROL_ANSWERED);
    ck_assert_int_eq(submit_of(&control, 3, 100), RMP_CONTROL_NEW);
    rmp_control_free(&control);
}

TEST(user_with_few_requests_gets_in_beside_one_with_many)
{
    struct rmp_control control;

    rmp_control_init(&control, &key, 8);
    ck_assert_int_eq(submit_of(&control, 2, 0), RMP_CONTROL_NEW);
    answer_run(&control, 0);
    for (uint64_t i = 100; i < 107; i++)
        ck_assert_int_eq(submit_of(&control, 3, i), RMP_CONTROL_NEW);
    /* Those of the greedy user are not answered: nothing of the other one goes for its sake. */
    ck_assert_int_eq(submit_of(&control, 3, 107), RMP_CONTROL_FULL);
    ck_assert_int_eq(submit_of(&control, 2, 0), RMP_CONTROL_ANSWERED);
    /* Less than a quarter of 8 with two users, a sixth with three. */
    ck_assert_int_eq(submit_of(&control, 2, 1), RMP_CONTROL_NEW);
    ck_assert_int_eq(submit_of(&control, 4, 200), RMP_CONTROL_NEW);
    ck_assert_int_eq(submit_of(&control, 4, 201), RMP_CONTROL_NEW);
    ck_assert_int_eq(submit_of(&control, 4, 202), RMP_CONTROL_FULL);
    /* Beyond its share a user gives up an old one of its own. */
    ck_assert_int_eq(submit_of(&control, 2, 2), RMP_CONTROL_NEW);
    ck_assert_int_eq(submit_of(&control, 2, 1), RMP_CONTROL_PENDING);
    ck_assert_int_eq(submit_of(&control, 2, 0), RMP_CONTROL_FULL);
    rmp_control_free(&control);
}

/* As an upgrade in place does it: more than the table has room for, by shares. */
TEST(requests_beyond_the_bound_survive_an_archive)
{
    struct rmp_control control, loaded;
    struct archive archive, reader;

    rmp_control_init(&control, &key, 8);
    for (uint64_t i = 100; i < 108; i++)
        ck_assert_int_eq(submit_of(&control, 3, i), RMP_CONTROL_NEW);
    ck_assert_int_eq(submit_of(&control, 2, 0), RMP_CONTROL_NEW);
    ck_assert_int_eq(submit_of(&control, 2, 1), RMP_CONTROL_NEW);
    answer_run(&control, 0);
    archive_begin_saving(&archive);
    rmp_control_archive(&archive, &control);
    rmp_control_init(&loaded, &key, 8);
    archive_begin_loading(&reader, slice_of(archive.data, archive.len), -1);
    rmp_control_archive(&reader, &loaded);
    ck_assert_ptr_null(reader.problem);
    ck_assert_uint_eq(loaded.table.count, 10);
    ck_assert_int_eq(submit_of(&loaded, 2, 0), RMP_CONTROL_ANSWERED);
    ck_assert_int_eq(submit_of(&loaded, 2, 1), RMP_CONTROL_PENDING);
    ck_assert_uint_eq(rmp_control_user(&loaded, (struct rmp_id){7, 107}), 3);
    ck_assert_int_eq(submit_of(&loaded, 3, 108), RMP_CONTROL_FULL);
    archive_free(&archive);
    archive_free(&reader);
    rmp_control_free(&control);
    rmp_control_free(&loaded);
}

/* The request that goes is its user's only one. */
TEST(only_request_of_a_user_makes_room_for_its_next)
{
    struct rmp_control control;

    rmp_control_init(&control, &key, 1);
    for (uint64_t i = 0; i < 3; i++) {
        ck_assert_int_eq(submit_of(&control, 2, i), RMP_CONTROL_NEW);
        answer_run(&control, i);
        ck_assert_int_eq(submit_of(&control, 2, i), RMP_CONTROL_ANSWERED);
    }
    rmp_control_free(&control);
}

/* --- events that precede the answer --- */

static void expect_kept(struct rmp_control *control, struct rmp_id run, const char *texts)
{
    struct list_node *node;
    struct list events;

    list_init(&events);
    rmp_control_take_events(control, run, &events);
    for (; (node = list_take_first(&events)) != NULL; texts++) {
        struct rmp_early_event *event = list_entry(node, struct rmp_early_event, link);

        ck_assert_uint_eq(event->len, 1);
        ck_assert_int_eq(event->payload[0], *texts);
        free(event);
    }
    ck_assert_int_eq(*texts, '\0');
}

TEST(events_wait_for_the_answer)
{
    const struct rmp_id run = {7, 1}, none = {7, 2};
    struct rmp_control control;
    struct slice answer;

    rmp_control_init(&control, &key, 8);
    ck_assert_int_eq(rmp_control_keep_event(&control, run, slice_of("a", 1)), RMP_EVENT_NOW);
    take(&control, RMP_CONTROL_SUBMIT, 1, &answer);
    take(&control, RMP_CONTROL_CANCEL, 2, &answer);
    ck_assert_int_eq(rmp_control_keep_event(&control, run, slice_of("a", 1)), RMP_EVENT_KEPT);
    ck_assert_int_eq(rmp_control_keep_event(&control, run, slice_of("b", 1)), RMP_EVENT_KEPT);
    ck_assert_int_eq(rmp_control_keep_event(&control, none, slice_of("c", 1)), RMP_EVENT_NOW);
    ck_assert_uint_eq(control.early_bytes, 2);
    expect_kept(&control, run, "ab");
    expect_kept(&control, run, "");
    ck_assert_uint_eq(control.early_bytes, 0);
    rmp_control_settle(&control, RMP_CONTROL_SUBMIT, run, slice_of("x", 1));
    ck_assert_int_eq(rmp_control_keep_event(&control, run, slice_of("d", 1)), RMP_EVENT_NOW);
    rmp_control_free(&control);
}

TEST(events_that_are_kept_are_bounded)
{
    const struct rmp_id run = {7, 1};
    static char much[RMP_CONTROL_EARLY_BYTES];
    struct rmp_control control;
    struct slice answer;

    rmp_control_init(&control, &key, 8);
    take(&control, RMP_CONTROL_SUBMIT, 1, &answer);
    ck_assert_int_eq(rmp_control_keep_event(&control, run, slice_of(much, sizeof much - 1)),
                     RMP_EVENT_KEPT);
    ck_assert_int_eq(rmp_control_keep_event(&control, run, slice_of("ab", 2)), RMP_EVENT_NO_ROOM);
    ck_assert_int_eq(rmp_control_keep_event(&control, run, slice_of("a", 1)), RMP_EVENT_KEPT);
    rmp_control_forget(&control, RMP_CONTROL_SUBMIT, run);
    ck_assert_uint_eq(control.early_bytes, 0);
    rmp_control_free(&control);
}

/* --- the end of a run --- */

static const char *const end_names[] = {"completed", "failed", "cancelled", "started", ""};

TEST_ROWS(end_of_a_run, COUNT(end_names))
{
    char bytes[64];
    struct msgpack_writer writer = {.to = bytes, .size = sizeof bytes};
    enum rmp_run_end end = row < 3 ? (enum rmp_run_end)(row + 1) : RMP_RUN_OPEN;

    msgpack_put_map(&writer, 2);
    msgpack_put_text(&writer, "kind");
    msgpack_put_text(&writer, "status");
    msgpack_put_text(&writer, "message");
    msgpack_put_text(&writer, end_names[row]);
    ck_assert_int_eq(rmp_run_end_of(slice_of(bytes, writer.len)), end);
    if (end != RMP_RUN_OPEN)
        ck_assert_str_eq(rmp_run_end_name(end), end_names[row]);
    bytes[6] = 'S'; /* another kind */
    ck_assert_int_eq(rmp_run_end_of(slice_of(bytes, writer.len)), RMP_RUN_OPEN);
}

TEST(run_of_a_daemon_before)
{
    struct rmp_control control;
    struct slice accepted;

    rmp_control_init(&control, &key, 2);
    ck_assert(rmp_control_restore(&control, id, 7, slice_of("yes", 3)));
    ck_assert(!rmp_control_restore(&control, id, 8, slice_of("no", 2)));
    rmp_control_end(&control, id, RMP_RUN_FAILED);
    rmp_control_end(&control, other, RMP_RUN_FAILED);
    ck_assert_int_eq(rmp_control_run(&control, id, &accepted), RMP_RUN_FAILED);
    ck_assert(slice_equal(accepted, slice_of("yes", 3)));
    ck_assert_int_eq(rmp_control_run(&control, other, &accepted), RMP_RUN_OPEN);
    ck_assert_uint_eq(rmp_control_user(&control, id), 7);
    ck_assert_uint_eq(rmp_control_user(&control, other), RMP_USER_BUS);
    ck_assert_uint_eq(accepted.len, 0);
    rmp_control_free(&control);
}
