#include "build_config.h"

#include "router/requests.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quick_assert.h"

/* The table with an allocator that fails on demand: this object's functions take the place of the
 * library's. */
static long allocations_left = -1; /* negative: no limit */

static bool may_allocate(void)
{
    if (allocations_left == 0)
        return false;
    if (allocations_left > 0)
        allocations_left--;
    return true;
}

static void *failing_malloc(size_t size)
{
    return may_allocate() ? malloc(size) : NULL;
}

static void *failing_calloc(size_t count, size_t size)
{
    return may_allocate() ? calloc(count, size) : NULL;
}

#define malloc failing_malloc
#define calloc failing_calloc
#include "base/hash_table.c"
#include "router/requests.c"
#undef malloc
#undef calloc

#define PEERS 6
#define MAX_ACTIVE 200
#define STEPS 20000

static struct requests requests;
static struct peer askers[PEERS], answerers[PEERS];

static void set_up(void)
{
    const struct siphash_key key = {1, 2};
    uint64_t number = 0;
    int i;

    requests_init(&requests, &key, MAX_ACTIVE);
    for (i = 0; i < PEERS; i++) {
        memset(&askers[i], 0, sizeof askers[i]);
        memset(&answerers[i], 0, sizeof answerers[i]);
        askers[i].number = ++number;
        answerers[i].number = ++number;
        list_init(&askers[i].asked);
        list_init(&answerers[i].answering);
    }
}

static void tear_down(void)
{
    allocations_left = -1;
    requests_free(&requests);
}

static size_t length(const struct list *list)
{
    const struct list_node *node;
    size_t count = 0;

    for (node = list->head.next; node != &list->head; node = node->next)
        count++;
    return count;
}

static struct message_id number_id(const char *text)
{
    return (struct message_id){ID_NUMBER, {text, strlen(text)}};
}

static struct message_id string_id(const char *text)
{
    return (struct message_id){ID_STRING, {text, strlen(text)}};
}

static struct request *add(struct peer *asker, struct peer *answerer, struct message_id id)
{
    return requests_add(&requests, asker, answerer, id, requests_hash(&requests, id));
}

static struct request *at_answerer(struct peer *answerer, struct message_id id)
{
    return requests_by_answerer(&requests, answerer, id, requests_hash(&requests, id));
}

static struct request *at_asker(struct peer *asker, struct message_id id)
{
    return requests_by_asker(&requests, asker, id, requests_hash(&requests, id));
}

START_TEST(found_from_both_sides)
{
    struct request *request = add(&askers[0], &answerers[0], number_id("7"));

    ck_assert_ptr_nonnull(request);
    ck_assert_int_eq(request->state, REQUEST_ACTIVE);
    ck_assert_ptr_eq(request->asker, &askers[0]);
    ck_assert_ptr_eq(request->answerer, &answerers[0]);
    ck_assert_ptr_eq(at_answerer(&answerers[0], number_id("7")), request);
    ck_assert_ptr_eq(at_asker(&askers[0], number_id("7")), request);
    ck_assert_uint_eq(length(&askers[0].asked), 1);
    ck_assert_uint_eq(length(&answerers[0].answering), 1);
    ck_assert_uint_eq(requests.active_count, 1);
    /* Not by somebody else, not from the other side, not another id. */
    ck_assert_ptr_null(at_answerer(&answerers[1], number_id("7")));
    ck_assert_ptr_null(at_asker(&askers[1], number_id("7")));
    ck_assert_ptr_null(at_answerer(&askers[0], number_id("7")));
    ck_assert_ptr_null(at_asker(&answerers[0], number_id("7")));
    ck_assert_ptr_null(at_answerer(&answerers[0], number_id("77")));
    ck_assert_ptr_null(at_answerer(&answerers[0], number_id("")));
    request_remove(request);
    ck_assert_ptr_null(at_answerer(&answerers[0], number_id("7")));
    ck_assert_ptr_null(at_asker(&askers[0], number_id("7")));
    ck_assert_uint_eq(length(&askers[0].asked), 0);
    ck_assert_uint_eq(length(&answerers[0].answering), 0);
    ck_assert_uint_eq(requests.active_count, 0);
}
END_TEST

START_TEST(number_and_string_are_two_ids)
{
    struct request *number = add(&askers[0], &answerers[0], number_id("1"));
    struct request *string = add(&askers[0], &answerers[0], string_id("1"));

    ck_assert_ptr_ne(number, string);
    ck_assert_ptr_eq(at_answerer(&answerers[0], number_id("1")), number);
    ck_assert_ptr_eq(at_answerer(&answerers[0], string_id("1")), string);
    ck_assert_ptr_eq(at_asker(&askers[0], number_id("1")), number);
    ck_assert_ptr_eq(at_asker(&askers[0], string_id("1")), string);
    request_remove(number);
    ck_assert_ptr_null(at_answerer(&answerers[0], number_id("1")));
    ck_assert_ptr_eq(at_answerer(&answerers[0], string_id("1")), string);
}
END_TEST

START_TEST(same_id_at_other_peers_is_another_request)
{
    struct request *mine = add(&askers[0], &answerers[0], number_id("1"));
    struct request *yours = add(&askers[1], &answerers[1], number_id("1"));

    ck_assert_ptr_eq(at_answerer(&answerers[0], number_id("1")), mine);
    ck_assert_ptr_eq(at_answerer(&answerers[1], number_id("1")), yours);
    ck_assert_ptr_eq(at_asker(&askers[0], number_id("1")), mine);
    ck_assert_ptr_eq(at_asker(&askers[1], number_id("1")), yours);
}
END_TEST

/* Lengths around what is stored inline, and the longest. */
static const size_t id_lengths[] = {0,  1,  REQUEST_TEXT_INLINE - 1,     REQUEST_TEXT_INLINE,
                                    41, 64, STDIO_BUS_MAX_REQUEST_ID_LEN};

#define ID_LENGTHS (int)(sizeof id_lengths / sizeof id_lengths[0])

START_TEST(text_of_the_id_is_copied)
{
    char text[STDIO_BUS_MAX_REQUEST_ID_LEN], same[STDIO_BUS_MAX_REQUEST_ID_LEN];
    size_t len = id_lengths[_i];
    struct message_id id = {ID_STRING, {text, len}}, again = {ID_STRING, {same, len}};
    struct request *request;
    size_t i;

    for (i = 0; i < len; i++)
        text[i] = same[i] = (char)(i * 5); /* NUL bytes too */
    request = add(&askers[0], &answerers[0], id);
    memset(text, '#', sizeof text);
    ck_assert_ptr_eq(at_answerer(&answerers[0], again), request);
    ck_assert_ptr_eq(at_asker(&askers[0], again), request);
    ck_assert(message_id_equal(request->asker_id, again));
    ck_assert(message_id_equal(request->answerer_id, again));
    if (len > 0) {
        same[len - 1]++;
        ck_assert_ptr_null(at_answerer(&answerers[0], again));
    }
    request_remove(request);
}
END_TEST

START_TEST(full_counts_those_that_are_waited_for)
{
    struct request *request = NULL;
    char text[16];
    int i;

    for (i = 0; i < MAX_ACTIVE; i++) {
        ck_assert(!requests_full(&requests));
        snprintf(text, sizeof text, "%d", i);
        request = add(&askers[0], &answerers[0], number_id(text));
        ck_assert_ptr_nonnull(request);
    }
    ck_assert(requests_full(&requests));
    request_abandon(request);
    ck_assert(!requests_full(&requests));
    request_reserve(request, &askers[1]);
    ck_assert(!requests_full(&requests));
    ck_assert_int_eq(request_activate(request), STDIO_BUS_OK);
    ck_assert(requests_full(&requests));
    request_remove(request);
    ck_assert(!requests_full(&requests));
}
END_TEST

START_TEST(abandoned_request_keeps_its_id)
{
    struct request *first = add(&askers[0], &answerers[0], number_id("1"));
    struct request *second = add(&askers[0], &answerers[1], number_id("2"));

    request_abandon(first);
    request_abandon(second);
    ck_assert_int_eq(first->state, REQUEST_ABANDONED);
    ck_assert_ptr_null(first->asker);
    ck_assert_ptr_eq(at_answerer(&answerers[0], number_id("1")), first);
    ck_assert_ptr_null(at_asker(&askers[0], number_id("1")));
    ck_assert_uint_eq(length(&askers[0].asked), 0);
    ck_assert_uint_eq(length(&answerers[0].answering), 1);
    ck_assert_uint_eq(requests.abandoned_count, 2);
    /* The oldest one comes first. */
    ck_assert_ptr_eq(requests.abandoned.head.next, &first->in_asker);
    request_remove(first);
    ck_assert_uint_eq(requests.abandoned_count, 1);
    ck_assert_ptr_eq(requests.abandoned.head.next, &second->in_asker);
    ck_assert_ptr_null(at_answerer(&answerers[0], number_id("1")));
    request_remove(second);
    ck_assert_uint_eq(requests.abandoned_count, 0);
}
END_TEST

START_TEST(reserved_request_is_kept_for_the_next)
{
    struct request *request = add(&askers[0], &answerers[0], number_id("1"));

    request_reserve(request, &askers[1]);
    ck_assert_int_eq(request->state, REQUEST_RESERVED);
    ck_assert_ptr_eq(askers[1].reserved, request);
    ck_assert_ptr_eq(at_answerer(&answerers[0], number_id("1")), request);
    ck_assert_ptr_null(at_asker(&askers[0], number_id("1")));
    ck_assert_ptr_null(at_asker(&askers[1], number_id("1")));
    ck_assert_uint_eq(length(&askers[0].asked), 0);
    ck_assert_uint_eq(length(&askers[1].asked), 0);
    ck_assert_uint_eq(length(&answerers[0].answering), 1);
    /* The next one may be passed over for yet another. */
    request_reserve(request, &askers[2]);
    ck_assert_ptr_null(askers[1].reserved);
    ck_assert_ptr_eq(askers[2].reserved, request);
    askers[2].reserved = NULL; /* as the router does when the message has come */
    ck_assert_int_eq(request_activate(request), STDIO_BUS_OK);
    ck_assert_int_eq(request->state, REQUEST_ACTIVE);
    ck_assert_ptr_eq(at_asker(&askers[2], number_id("1")), request);
    ck_assert_ptr_eq(at_answerer(&answerers[0], number_id("1")), request);
    ck_assert_uint_eq(length(&askers[2].asked), 1);
    request_remove(request);
    ck_assert_ptr_null(at_answerer(&answerers[0], number_id("1")));
}
END_TEST

START_TEST(removed_while_reserved)
{
    struct request *request = add(&askers[0], &answerers[0], number_id("1"));

    request_reserve(request, &askers[1]);
    request_remove(request);
    ck_assert_ptr_null(askers[1].reserved);
    ck_assert_ptr_null(at_answerer(&answerers[0], number_id("1")));
    ck_assert_uint_eq(length(&answerers[0].answering), 0);
    ck_assert_uint_eq(requests.active_count + requests.abandoned_count, 0);
}
END_TEST

/* A restarted worker gets a new number while old entries name it still. */
START_TEST(peer_with_a_new_number_can_be_left)
{
    struct request *request = add(&askers[0], &answerers[0], number_id("1"));
    struct request *other = add(&askers[1], &answerers[0], number_id("2"));

    answerers[0].number = 1000;
    request_remove(request);
    request_abandon(other);
    request_remove(other);
    ck_assert_uint_eq(requests.by_answerer.count, 0);
    ck_assert_uint_eq(requests.by_asker.count, 0);
}
END_TEST

START_TEST(steady_traffic_allocates_nothing)
{
    struct request *request;
    char text[16];
    int i;

    for (i = 0; i < 3; i++) {
        snprintf(text, sizeof text, "%d", i);
        ck_assert_ptr_nonnull(add(&askers[0], &answerers[0], number_id(text)));
    }
    allocations_left = 0;
    for (i = 3; i < 1000; i++) {
        snprintf(text, sizeof text, "%d", i);
        request = add(&askers[0], &answerers[0], number_id(text));
        ck_assert_ptr_nonnull(request);
        request_remove(request);
    }
}
END_TEST

/* The long id makes requests_add allocate its text too; the tables and blocks grow on the way. */
START_TEST(failed_add_changes_nothing)
{
    char text[64];
    int i;

    for (i = 0; i < 120; i++) {
        struct message_id id;
        long limit;
        struct request *request;

        snprintf(text, sizeof text, "%050d", i);
        id = string_id(text);
        for (limit = 0;; limit++) {
            allocations_left = limit;
            request = add(&askers[0], &answerers[0], id);
            allocations_left = -1;
            if (request != NULL)
                break;
            ck_assert_ptr_null(at_answerer(&answerers[0], id));
            ck_assert_ptr_null(at_asker(&askers[0], id));
            ck_assert_uint_eq(requests.active_count, (size_t)i);
            ck_assert_uint_eq(length(&askers[0].asked), (size_t)i);
            ck_assert_uint_eq(length(&answerers[0].answering), (size_t)i);
        }
        ck_assert_int_ge(limit, 1); /* it did fail once at least: for the text */
        ck_assert_ptr_eq(at_asker(&askers[0], id), request);
    }
}
END_TEST

START_TEST(failed_activation_leaves_it_reserved)
{
    struct request *request = add(&askers[0], &answerers[0], number_id("1"));
    char text[16];
    int i;

    request_reserve(request, &askers[1]);
    for (i = 0; requests.by_asker.count < 48; i++) { /* until the table must grow for the next */
        snprintf(text, sizeof text, "s%d", i);
        ck_assert_ptr_nonnull(add(&askers[0], &answerers[0], string_id(text)));
    }
    allocations_left = 0;
    ck_assert_int_eq(request_activate(request), STDIO_BUS_ERR);
    ck_assert_int_eq(request->state, REQUEST_RESERVED);
    ck_assert_ptr_eq(request->asker, &askers[1]);
    ck_assert_ptr_null(at_asker(&askers[1], number_id("1")));
    ck_assert_uint_eq(length(&askers[1].asked), 0);
    allocations_left = -1;
    ck_assert_int_eq(request_activate(request), STDIO_BUS_OK);
    ck_assert_ptr_eq(at_asker(&askers[1], number_id("1")), request);
}
END_TEST

/* --- against a naive model: one place per (answerer, id) --- */

#define IDS 60

struct place {
    struct request *request;
    int state; /* -1: none */
    int asker;
};

static struct place model[PEERS][IDS];
static uint64_t random_state;

static unsigned next_random(unsigned below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)(random_state % below);
}

static const char *id_text(unsigned id)
{
    static char text[80];

    /* Every third one is long. */
    snprintf(text, sizeof text, id % 3 == 0 ? "%060u" : "%u", id);
    return text;
}

static struct message_id id_of(unsigned id)
{
    return id % 2 == 0 ? number_id(id_text(id)) : string_id(id_text(id));
}

static bool asked_by(int asker, unsigned id)
{
    int answerer;

    for (answerer = 0; answerer < PEERS; answerer++) {
        if (model[answerer][id].state == REQUEST_ACTIVE && model[answerer][id].asker == asker)
            return true;
    }
    return false;
}

static void step_free_place(struct place *place, struct peer *answerer, unsigned id, int asker)
{
    if (asked_by(asker, id) || requests_full(&requests))
        return;
    place->request = add(&askers[asker], answerer, id_of(id));
    ck_assert_ptr_nonnull(place->request);
    place->state = REQUEST_ACTIVE;
    place->asker = asker;
}

static void step_taken_place(struct place *place, unsigned id, int asker)
{
    switch (next_random(4)) {
    case 0:
        request_remove(place->request);
        place->state = -1;
        break;
    case 1:
        if (place->state != REQUEST_ACTIVE)
            return;
        request_abandon(place->request);
        place->state = REQUEST_ABANDONED;
        break;
    case 2:
        if (askers[asker].reserved != NULL)
            return;
        request_reserve(place->request, &askers[asker]);
        place->state = REQUEST_RESERVED;
        place->asker = asker;
        break;
    default:
        if (place->state != REQUEST_RESERVED || asked_by(place->asker, id))
            return;
        askers[place->asker].reserved = NULL;
        ck_assert_int_eq(request_activate(place->request), STDIO_BUS_OK);
        place->state = REQUEST_ACTIVE;
        break;
    }
}

static void check_place(int answerer, unsigned id, size_t counts[3])
{
    const struct place *place = &model[answerer][id];
    struct request *found = at_answerer(&answerers[answerer], id_of(id));

    if (place->state < 0) {
        QUICK_ASSERT(found == NULL);
        return;
    }
    counts[place->state]++;
    QUICK_ASSERT(found == place->request);
    QUICK_ASSERT((int)found->state == place->state);
    QUICK_ASSERT(place->state != REQUEST_ACTIVE ||
                 at_asker(&askers[place->asker], id_of(id)) == found);
    QUICK_ASSERT(place->state != REQUEST_RESERVED || askers[place->asker].reserved == found);
}

static void check_model(void)
{
    size_t counts[3] = {0, 0, 0};
    size_t asked = 0, answering = 0;
    int i;
    unsigned id;

    for (i = 0; i < PEERS; i++) {
        for (id = 0; id < IDS; id++) {
            check_place(i, id, counts);
            QUICK_ASSERT(asked_by(i, id) || at_asker(&askers[i], id_of(id)) == NULL);
        }
        asked += length(&askers[i].asked);
        answering += length(&answerers[i].answering);
    }
    ck_assert_uint_eq(requests.active_count, counts[REQUEST_ACTIVE]);
    ck_assert_uint_eq(requests.abandoned_count, counts[REQUEST_ABANDONED]);
    ck_assert_uint_eq(length(&requests.abandoned), counts[REQUEST_ABANDONED]);
    ck_assert_uint_eq(asked, counts[REQUEST_ACTIVE]);
    ck_assert_uint_eq(answering, counts[0] + counts[1] + counts[2]);
}

START_TEST(same_as_a_naive_model)
{
    unsigned i, id;
    int answerer;

    random_state = 0x9e3779b97f4a7c15u + (unsigned)_i;
    for (answerer = 0; answerer < PEERS; answerer++) {
        for (id = 0; id < IDS; id++)
            model[answerer][id].state = -1;
    }
    for (i = 0; i < STEPS; i++) {
        struct place *place;
        int asker = (int)next_random(PEERS);

        answerer = (int)next_random(PEERS);
        id = next_random(IDS);
        place = &model[answerer][id];
        if (place->state < 0)
            step_free_place(place, &answerers[answerer], id, asker);
        else
            step_taken_place(place, id, asker);
        if (i % 50 == 0)
            check_model();
    }
    check_model();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("requests");
    TCase *tcase = tcase_create("requests");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, found_from_both_sides);
    tcase_add_test(tcase, number_and_string_are_two_ids);
    tcase_add_test(tcase, same_id_at_other_peers_is_another_request);
    tcase_add_loop_test(tcase, text_of_the_id_is_copied, 0, ID_LENGTHS);
    tcase_add_test(tcase, full_counts_those_that_are_waited_for);
    tcase_add_test(tcase, abandoned_request_keeps_its_id);
    tcase_add_test(tcase, reserved_request_is_kept_for_the_next);
    tcase_add_test(tcase, removed_while_reserved);
    tcase_add_test(tcase, peer_with_a_new_number_can_be_left);
    tcase_add_test(tcase, steady_traffic_allocates_nothing);
    tcase_add_test(tcase, failed_add_changes_nothing);
    tcase_add_test(tcase, failed_activation_leaves_it_reserved);
    tcase_add_loop_test(tcase, same_as_a_naive_model, 0, 4);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
