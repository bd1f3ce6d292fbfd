#include "build_config.h"

#include "router/sessions.h"

#include "base/limits.h"
#include "suite.h"
#include "table_fixture.h"

/* The table is compiled into the test with an allocator that fails on demand. */
#define calloc failing_calloc
#include "base/hash_table.c"
#include "router/sessions.c"
#undef calloc

#define PEERS 5
#define MAX_SESSIONS 100
#define STEPS 20000

static struct sessions sessions;
static struct peer clients[PEERS], workers[PEERS];

static void set_up(void)
{
    const struct siphash_key key = {3, 4};

    sessions_init(&sessions, &key, MAX_SESSIONS);
    for (int i = 0; i < PEERS; i++) {
        list_init(&clients[i].sessions);
        list_init(&workers[i].sessions);
    }
}

static void tear_down(void)
{
    allocations_left = -1;
    sessions_free(&sessions);
}

static struct slice text(const char *string)
{
    return slice_of(string, strlen(string));
}

TEST(session_has_one_worker_and_one_owner)
{
    struct session *session = sessions_add(&sessions, text("s"), &workers[1], &clients[2]);

    ck_assert_ptr_nonnull(session);
    ck_assert_ptr_eq(session->worker, &workers[1]);
    ck_assert_ptr_eq(session->owner, &clients[2]);
    ck_assert_ptr_eq(sessions_find(&sessions, text("s")), session);
    ck_assert_uint_eq(length(&workers[1].sessions), 1);
    ck_assert_uint_eq(length(&clients[2].sessions), 1);
    ck_assert_ptr_null(sessions_find(&sessions, text("t")));
    ck_assert_ptr_null(sessions_find(&sessions, text("ss")));
    ck_assert_ptr_null(sessions_find(&sessions, text("")));
    session_remove(&sessions, session);
    ck_assert_ptr_null(sessions_find(&sessions, text("s")));
    ck_assert_uint_eq(length(&workers[1].sessions), 0);
    ck_assert_uint_eq(length(&clients[2].sessions), 0);
}

static const size_t id_lengths[] = {0, 1, 7, 8, 9, STDIO_BUS_MAX_SESSION_ID_LEN};

TEST_ROWS(id_is_copied_and_may_hold_any_byte, COUNT(id_lengths))
{
    char bytes[STDIO_BUS_MAX_SESSION_ID_LEN], same[STDIO_BUS_MAX_SESSION_ID_LEN];
    size_t len = id_lengths[row], i;
    struct session *session;

    for (i = 0; i < len; i++)
        bytes[i] = same[i] = (char)(i * 3); /* NUL bytes too */
    session = sessions_add(&sessions, slice_of(bytes, len), &workers[0], &clients[0]);
    memset(bytes, '#', sizeof bytes);
    ck_assert_ptr_eq(sessions_find(&sessions, slice_of(same, len)), session);
    for (i = 0; i < len; i++) { /* each byte counts */
        same[i]++;
        ck_assert_ptr_null(sessions_find(&sessions, slice_of(same, len)));
        same[i]--;
        ck_assert_ptr_null(sessions_find(&sessions, slice_of(same, i)));
    }
}

TEST(table_is_full_at_max)
{
    struct session *session = NULL;
    char id[16];

    for (int i = 0; i < MAX_SESSIONS; i++) {
        ck_assert(!sessions_full(&sessions));
        snprintf(id, sizeof id, "s%d", i);
        session = sessions_add(&sessions, text(id), &workers[0], &clients[0]);
    }
    ck_assert(sessions_full(&sessions));
    session_remove(&sessions, session);
    ck_assert(!sessions_full(&sessions));
}

TEST(failed_add_changes_nothing)
{
    char id[16];
    size_t i;

    for (i = 0; i < 60; i++) { /* the table grows on the way */
        struct session *session;
        long limit;

        snprintf(id, sizeof id, "s%zu", i);
        for (limit = 0;; limit++) {
            allocations_left = limit;
            session = sessions_add(&sessions, text(id), &workers[0], &clients[0]);
            allocations_left = -1;
            if (session != NULL)
                break;
            ck_assert_ptr_null(sessions_find(&sessions, text(id)));
            ck_assert_uint_eq(length(&workers[0].sessions), i);
            ck_assert_uint_eq(length(&clients[0].sessions), i);
        }
        ck_assert_int_ge(limit, 1); /* an allocation failed */
        ck_assert_ptr_eq(sessions_find(&sessions, text(id)), session);
    }
}

/* --- against a naive model: an array --- */

#define IDS 80

static struct {
    struct session *session; /* NULL: none */
    int worker, client;
} model[IDS];

static void check_model(void)
{
    size_t of_worker[PEERS] = {0}, of_client[PEERS] = {0}, count = 0;
    char id[16];

    for (unsigned i = 0; i < IDS; i++) {
        struct session *found;

        snprintf(id, sizeof id, "%u", i);
        found = sessions_find(&sessions, text(id));
        ck_assert_ptr_eq(found, model[i].session);
        if (found == NULL)
            continue;
        ck_assert_ptr_eq(found->worker, &workers[model[i].worker]);
        ck_assert_ptr_eq(found->owner, &clients[model[i].client]);
        of_worker[model[i].worker]++;
        of_client[model[i].client]++;
        count++;
    }
    for (unsigned i = 0; i < PEERS; i++) {
        ck_assert_uint_eq(length(&workers[i].sessions), of_worker[i]);
        ck_assert_uint_eq(length(&clients[i].sessions), of_client[i]);
    }
    ck_assert_int_eq(sessions_full(&sessions), count >= MAX_SESSIONS);
}

TEST_ROWS(table_agrees_with_a_naive_model, 4)
{
    char id[16];

    random_state = 0x9e3779b97f4a7c15u + (unsigned)row;
    for (unsigned i = 0; i < STEPS; i++) {
        unsigned which = next_random(IDS);

        snprintf(id, sizeof id, "%u", which);
        if (model[which].session != NULL) {
            session_remove(&sessions, model[which].session);
            model[which].session = NULL;
        } else {
            model[which].worker = (int)next_random(PEERS);
            model[which].client = (int)next_random(PEERS);
            model[which].session = sessions_add(&sessions, text(id), &workers[model[which].worker],
                                                &clients[model[which].client]);
            ck_assert_ptr_nonnull(model[which].session);
        }
        if (i % 50 == 0)
            check_model();
    }
    check_model();
}

FIXTURE(set_up, tear_down)
