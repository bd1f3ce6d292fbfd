#include "build_config.h"

#include "router/pending.h"

#include <inttypes.h>
#include <stdio.h>

#include "quick_assert.h"
#include "suite.h"
#include "table_fixture.h"

/* The table is compiled into the test with an allocator that fails on demand. */
#define malloc failing_malloc
#define calloc failing_calloc
#include "base/hash_table.c"
#include "router/pending.c"
#undef malloc
#undef calloc

#define PEERS 6
#define MAX_ACTIVE 200
#define STEPS 20000

static struct pending requests;
static struct peer askers[PEERS], answerers[PEERS];

static void set_up(void)
{
    const struct siphash_key key = {1, 2};
    uint64_t number = 0;

    pending_init(&requests, &key, MAX_ACTIVE);
    for (int i = 0; i < PEERS; i++) {
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
    pending_free(&requests);
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
    const struct new_request new_request = {
        .id = id, .id_hash = pending_hash(&requests, id), .raw = id.text};

    return pending_add(&requests, asker, answerer, &new_request);
}

static struct request *at_answerer(struct peer *answerer, struct message_id id)
{
    return pending_by_answerer(&requests, answerer, id, pending_hash(&requests, id));
}

static struct request *at_asker(struct peer *asker, struct message_id id)
{
    return pending_by_asker(&requests, asker, id, pending_hash(&requests, id));
}

static bool is_full(void)
{
    return requests.active_count >= requests.max;
}

TEST(request_is_found_from_both_sides)
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
    /* Not at another peer, from the other side, or by another id. */
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

TEST(number_and_string_are_two_ids)
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

static const uint32_t numbers[] = {0,     1,     2,      9,         10,         11,
                                   90,    99,    100,    101,       998,        1000,
                                   10000, 99999, 100000, 1000001,   9999,       7306,
                                   54321, 65536, 999999, 999999999, 1000000000, UINT32_MAX};

TEST_ROWS(number_is_written_as_by_printf, COUNT(numbers))
{
    char text[PENDING_DIGITS], expected[PENDING_DIGITS + 1];
    struct message_id id = pending_number_id(text, numbers[row]);

    (void)snprintf(expected, sizeof expected, "%" PRIu32, numbers[row]);
    ck_assert_int_eq(id.type, ID_NUMBER);
    ck_assert(slice_is(id.text, expected));
    ck_assert_ptr_eq(id.text.data + id.text.len, text + PENDING_DIGITS);
}

TEST(same_id_at_other_peers_is_another_request)
{
    struct request *mine = add(&askers[0], &answerers[0], number_id("1"));
    struct request *yours = add(&askers[1], &answerers[1], number_id("1"));

    ck_assert_ptr_eq(at_answerer(&answerers[0], number_id("1")), mine);
    ck_assert_ptr_eq(at_answerer(&answerers[1], number_id("1")), yours);
    ck_assert_ptr_eq(at_asker(&askers[0], number_id("1")), mine);
    ck_assert_ptr_eq(at_asker(&askers[1], number_id("1")), yours);
}

/* Lengths around what is stored inline, and the longest. */
static const size_t id_lengths[] = {0,  1,  REQUEST_TEXT_INLINE - 1,     REQUEST_TEXT_INLINE,
                                    41, 64, STDIO_BUS_MAX_REQUEST_ID_LEN};

TEST_ROWS(text_of_the_id_is_copied, COUNT(id_lengths))
{
    char text[STDIO_BUS_MAX_REQUEST_ID_LEN], same[STDIO_BUS_MAX_REQUEST_ID_LEN];
    size_t len = id_lengths[row];
    struct message_id id = {ID_STRING, {text, len}}, again = {ID_STRING, {same, len}};
    struct request *request;

    for (size_t i = 0; i < len; i++)
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

TEST(full_table_counts_active_requests)
{
    struct request *request = NULL;
    char text[16];

    for (int i = 0; i < MAX_ACTIVE; i++) {
        ck_assert(!is_full());
        snprintf(text, sizeof text, "%d", i);
        request = add(&askers[0], &answerers[0], number_id(text));
        ck_assert_ptr_nonnull(request);
    }
    ck_assert(is_full());
    request_abandon(request);
    ck_assert(!is_full());
    request_reserve(request, &askers[1]);
    ck_assert(!is_full());
    ck_assert_int_eq(request_activate(request), STDIO_BUS_OK);
    ck_assert(is_full());
    request_remove(request);
    ck_assert(!is_full());
}

TEST(abandoned_request_keeps_its_id)
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

TEST(reserved_request_is_kept_for_the_next)
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
    /* The id may pass to another peer. */
    request_reserve(request, &askers[2]);
    ck_assert_ptr_null(askers[1].reserved);
    ck_assert_ptr_eq(askers[2].reserved, request);
    askers[2].reserved = NULL; /* as the router does when it decides about the message */
    ck_assert_int_eq(request_activate(request), STDIO_BUS_OK);
    ck_assert_int_eq(request->state, REQUEST_ACTIVE);
    ck_assert_ptr_eq(at_asker(&askers[2], number_id("1")), request);
    ck_assert_ptr_eq(at_answerer(&answerers[0], number_id("1")), request);
    ck_assert_uint_eq(length(&askers[2].asked), 1);
    request_remove(request);
    ck_assert_ptr_null(at_answerer(&answerers[0], number_id("1")));
}

TEST(reserved_request_can_be_removed)
{
    struct request *request = add(&askers[0], &answerers[0], number_id("1"));

    request_reserve(request, &askers[1]);
    request_remove(request);
    ck_assert_ptr_null(askers[1].reserved);
    ck_assert_ptr_null(at_answerer(&answerers[0], number_id("1")));
    ck_assert_uint_eq(length(&answerers[0].answering), 0);
    ck_assert_uint_eq(requests.active_count + requests.abandoned_count, 0);
}

/* A restarted worker gets a new number while old entries name it still. */
TEST(request_of_a_peer_with_a_new_number_can_be_removed)
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

TEST(steady_traffic_allocates_nothing)
{
    struct request *request = NULL;
    char text[16];

    for (int i = 0; i < 4; i++) {
        snprintf(text, sizeof text, "%d", i);
        request = add(&askers[0], &answerers[0], number_id(text));
        ck_assert_ptr_nonnull(request);
    }
    request_remove(request);
    allocations_left = 0;
    for (int i = 4; i < 1000; i++) {
        snprintf(text, sizeof text, "%d", i);
        request = add(&askers[0], &answerers[0], number_id(text));
        ck_assert_ptr_nonnull(request);
        request_remove(request);
    }
}

/* The long id makes pending_add allocate its text too; the tables grow on the way. */
TEST(failed_add_changes_nothing)
{
    char text[64];

    for (int i = 0; i < 120; i++) {
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
        ck_assert_int_ge(limit, 1); /* the text's allocation failed */
        ck_assert_ptr_eq(at_asker(&askers[0], id), request);
    }
}

TEST(failed_activation_leaves_the_request_reserved)
{
    struct request *request = add(&askers[0], &answerers[0], number_id("1"));
    char text[16];

    request_reserve(request, &askers[1]);
    for (int i = 0; requests.by_asker.count < 48;
         i++) { /* until the table must grow for the next */
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

/* --- against a naive model: one place per (answerer, id) --- */

#define IDS 60

struct place {
    struct request *request;
    int state; /* -1: none */
    int asker;
};

static struct place model[PEERS][IDS];
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
    for (int answerer = 0; answerer < PEERS; answerer++) {
        if (model[answerer][id].state == REQUEST_ACTIVE && model[answerer][id].asker == asker)
            return true;
    }
    return false;
}

static void step_free_place(struct place *place, struct peer *answerer, unsigned id, int asker)
{
    if (asked_by(asker, id) || is_full())
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

    for (int i = 0; i < PEERS; i++) {
        for (unsigned id = 0; id < IDS; id++) {
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

TEST_ROWS(table_agrees_with_a_naive_model, 4)
{
    unsigned id;
    int answerer;

    random_state = 0x9e3779b97f4a7c15u + (unsigned)row;
    for (answerer = 0; answerer < PEERS; answerer++) {
        for (id = 0; id < IDS; id++)
            model[answerer][id].state = -1;
    }
    for (unsigned i = 0; i < STEPS; i++) {
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

FIXTURE(set_up, tear_down)
