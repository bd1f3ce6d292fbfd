/* The archive of an upgrade in place: numbers and texts, and the tables of the router. */
#include "build_config.h"

#include <fcntl.h>

#include "base/archive.h"
#include "pool_mode_fixture.h"
#include "router/record.h"
#include "router/router_archive.h"
#include "json/scanner.h"

/* --- values --- */

struct values {
    uint8_t small;
    int32_t negative;
    uint64_t large;
    bool flag;
    enum peer_availability choice;
    char text[8];
    struct slice slice, none;
    size_t count;
};

static void archive_values(struct archive *archive, struct values *values)
{
    archive_mark(archive, "values");
    ARCHIVE_INTEGER(archive, values->small);
    ARCHIVE_INTEGER(archive, values->negative);
    ARCHIVE_INTEGER(archive, values->large);
    archive_flag(archive, &values->flag);
    ARCHIVE_ENUM(archive, values->choice, PEER_READY);
    archive_text(archive, values->text, sizeof values->text);
    values->slice = archive_slice(archive, values->slice);
    values->none = archive_slice(archive, values->none);
    values->count = archive_count(archive, values->count);
    for (size_t i = 0; i < values->count; i++)
        (void)archive_number(archive, i, 9);
    archive_mark(archive, "end");
}

static const struct values sample = {255,       -7,          UINT64_MAX, true, PEER_READY,
                                     "seven77", {"a\0b", 3}, {NULL, 0},  3};

static void save_sample(struct archive *archive)
{
    struct values values = sample;

    archive_begin_saving(archive);
    archive_values(archive, &values);
    ck_assert(archive_ok(archive));
}

TEST(archive_loads_what_it_saved)
{
    struct values values = {.small = 1};
    struct archive saved, loaded;

    save_sample(&saved);
    archive_begin_loading(&loaded, slice_of(saved.data, saved.len), -1);
    archive_values(&loaded, &values);
    ck_assert(archive_ok(&loaded));
    ck_assert_uint_eq(loaded.at, loaded.len);
    ck_assert_uint_eq(values.small, 255);
    ck_assert_int_eq(values.negative, -7);
    ck_assert_uint_eq(values.large, UINT64_MAX);
    ck_assert(values.flag && values.choice == PEER_READY);
    ck_assert_str_eq(values.text, "seven77");
    ck_assert(slice_equal(values.slice, sample.slice));
    ck_assert_ptr_null(values.none.data);
    ck_assert_uint_eq(values.count, 3);
    archive_free(&loaded);
    archive_free(&saved);
}

/* The bytes end where their memory ends. */
TEST(archive_that_is_cut_is_refused)
{
    struct archive saved, loaded;

    save_sample(&saved);
    for (size_t len = 0; len < saved.len; len++) {
        struct values values = {.small = 1};
        char *cut = malloc(len + 1);

        ck_assert_ptr_nonnull(cut);
        memcpy(cut + 1, saved.data, len);
        archive_begin_loading(&loaded, slice_of(cut + 1, len), -1);
        archive_values(&loaded, &values);
        ck_assert(!archive_ok(&loaded));
        archive_free(&loaded);
        free(cut);
    }
    archive_free(&saved);
}

/* As when there was no memory for them. */
TEST(archive_without_bytes_is_refused)
{
    struct values values = {.small = 1};
    struct archive loaded;

    archive_begin_loading(&loaded, slice_of(NULL, 0), -1);
    archive_values(&loaded, &values);
    ck_assert(!archive_ok(&loaded));
    archive_free(&loaded);
}

/* A flag of 2, an enum beyond its last value, a text too long, a count without its elements. */
TEST(archive_with_a_wrong_number_is_refused)
{
    static const size_t places[] = {8, 32, 40, 48, 56};
    struct archive saved, loaded;

    save_sample(&saved);
    for (size_t i = 0; i < COUNT(places); i++) {
        struct values values = {.small = 1};
        char before = saved.data[places[i] + 1];

        saved.data[places[i] + 1] = 9; /* on any machine, it is no small number */
        archive_begin_loading(&loaded, slice_of(saved.data, saved.len), -1);
        archive_values(&loaded, &values);
        ck_assert_msg(!archive_ok(&loaded), "the number at %zu", places[i]);
        archive_free(&loaded);
        saved.data[places[i] + 1] = before;
    }
    archive_free(&saved);
}

TEST(archive_marks_tell_parts_apart)
{
    struct archive saved, loaded;

    archive_begin_saving(&saved);
    archive_mark(&saved, "one");
    archive_begin_loading(&loaded, slice_of(saved.data, saved.len), -1);
    archive_mark(&loaded, "other");
    ck_assert_str_eq(loaded.problem, "the state is of another form");
    ck_assert_str_eq(loaded.part, "other");
    archive_free(&loaded);
    archive_free(&saved);
}

TEST(archive_keeps_descriptors_open)
{
    int ends[2], found = -1, none = -1, closed = 4095;
    struct archive saved, loaded;

    ck_assert_int_eq(pipe(ends), 0);
    archive_begin_saving(&saved);
    archive_fd(&saved, &ends[0]);
    archive_fd(&saved, &none);
    archive_set_cloexec(&saved, true);
    ck_assert_int_eq(fcntl(ends[0], F_GETFD), FD_CLOEXEC);
    archive_set_cloexec(&saved, false);
    ck_assert_int_eq(fcntl(ends[0], F_GETFD), 0);
    archive_fd(&saved, &closed);
    archive_begin_loading(&loaded, slice_of(saved.data, saved.len), -1);
    archive_fd(&loaded, &found);
    archive_fd(&loaded, &none);
    ck_assert_int_eq(found, ends[0]);
    ck_assert_int_eq(none, -1);
    ck_assert(archive_ok(&loaded));
    archive_fd(&loaded, &found);
    ck_assert(!archive_ok(&loaded));
    archive_free(&loaded);
    archive_begin_loading(&loaded, slice_of(saved.data, saved.len), ends[1]); /* a look */
    archive_fd(&loaded, &found);
    ck_assert_int_ne(found, ends[0]);
    ck_assert_uint_eq(loaded.fd_count, 0);
    close(found);
    archive_free(&loaded);
    archive_free(&saved);
}

/* --- a scanner --- */

/* Stopped at each byte, saved, and gone on elsewhere, it finds the same. */
TEST(archive_of_a_scanner_at_each_byte)
{
    static const char line[] = "{\"\\u0069d\":\"\\u00e9\\\"x\",\"method\":\"\xc3\xa9\","
                               "\"params\":[{\"a\":-1.5e+2},true,null],\"sessionId\":\"s\"}\n";
    const size_t len = sizeof line - 1;

    for (size_t cut = 0; cut < len; cut++) {
        struct scanner scanner, next;
        struct archive saved, loaded;

        memset(&next, 0, sizeof next);
        memset(&scanner, 0, sizeof scanner);
        scanner_reset(&scanner);
        ck_assert_int_eq(scanner_run(&scanner, line, cut), SCAN_MORE);
        archive_begin_saving(&saved);
        scanner_archive(&saved, &scanner);
        archive_begin_loading(&loaded, slice_of(saved.data, saved.len), -1);
        scanner_archive(&loaded, &next);
        ck_assert(archive_ok(&loaded));
        ck_assert_int_eq(scanner_run(&scanner, line, len), SCAN_MESSAGE);
        ck_assert_int_eq(scanner_run(&next, line, len), SCAN_MESSAGE);
        ck_assert_uint_eq(next.position, scanner.position);
        ck_assert_uint_eq(next.fields.id.offset, scanner.fields.id.offset);
        ck_assert_uint_eq(next.fields.session_id.len, scanner.fields.session_id.len);
        archive_free(&loaded);
        archive_free(&saved);
    }
}

/* --- the router --- */

static void add_pools(void)
{
    set_up();
    POOL("plain", 2, .clients = CLIENTS_SHARED);
    POOL("turns", 2, STICKY, REWRITE, NESTED, .protocol = PROTOCOL_ACP, .request_timeout_sec = 5);
    POOL("alone", 2, EXCLUSIVE, .protocol = PROTOCOL_MCP, .on_exit = EXIT_REPLAYS);
}

static void archive_router(struct archive *archive)
{
    struct router_archive state;

    router_archive_begin(&state, archive, &router);
    for (int i = 0; i < client_count; i++)
        router_archive_peer(&state, &clients[i]);
    for (int i = 0; i < worker_count; i++)
        router_archive_peer(&state, &workers[i]);
    router_archive_groups(&state);
    router_archive_tables(&state);
    archive_mark(archive, "end");
    router_archive_end(&state);
}

static void fill_router(void)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client();

    router.now_ms = 1000;
    give(a, "{'id':1,'method':'x','pool':'plain','sessionId':'s'}");
    give(a, "{'id':'long long long long long long long long long long id','method':'x'}");
    give(b, "{'id':1,'method':'x','sessionId':'t'}");
    give(b, "{'id':2,'method':'x','sessionId':'t'}");
    give(c, "{'id':2,'method':'x','sessionId':'u'}");
    give(a, "{'id':'p','method':'session/"
            "new','pool':'turns','params':{'_meta':{'progressToken':'k'}}}");
    give(b, "{'id':9,'method':'session/load','pool':'turns','params':{'sessionId':'old'}}");
    give(c, "{'id':0,'method':'initialize','pool':'alone','params':{}}");
    give(&workers[0], "{'id':77,'method':'ask','sessionId':'s'}");
    ck_assert_ptr_nonnull(record_own(&router, &workers[4], EXTRAS_OWN_INITIALIZE));
    router.now_ms = 2000;
    departure_client_input(&router, b, note_unanswered, NULL);
}

/* An empty router with the pools and the peers, for what was saved. */
static void empty_router(int count)
{
    tear_down();
    add_pools();
    while (client_count < count)
        add_client();
}

TEST(archive_of_a_router_loads_and_saves_the_same)
{
    struct archive saved, loaded, again;

    add_pools();
    fill_router();
    archive_begin_saving(&saved);
    archive_router(&saved);
    ck_assert(archive_ok(&saved));
    empty_router(3);
    archive_begin_loading(&loaded, slice_of(saved.data, saved.len), -1);
    archive_router(&loaded);
    ck_assert_msg(archive_ok(&loaded), "%s: %s", loaded.part, loaded.problem);
    archive_begin_saving(&again);
    archive_router(&again);
    ck_assert_uint_eq(again.len, saved.len);
    ck_assert_mem_eq(again.data, saved.data, saved.len);
    ck_assert_uint_eq(list_count(&router.from_clients.awaited), 1);
    expect(give(&workers[0], "{'id':1,'sessionId':'s','result':0}"), &clients[0],
           "{'id':1,'sessionId':'s','result':0}");
    archive_free(&again);
    archive_free(&loaded);
    archive_free(&saved);
    tear_down();
}

TEST(archive_of_a_router_that_is_cut_is_refused)
{
    struct archive saved, loaded;

    add_pools();
    fill_router();
    archive_begin_saving(&saved);
    archive_router(&saved);
    for (size_t len = 0; len < saved.len; len += 7) {
        char *cut = malloc(len + 1);

        ck_assert_ptr_nonnull(cut);
        memcpy(cut + 1, saved.data, len);
        empty_router(3);
        archive_begin_loading(&loaded, slice_of(cut + 1, len), -1);
        archive_router(&loaded);
        ck_assert(!archive_ok(&loaded));
        archive_free(&loaded);
        free(cut);
    }
    archive_free(&saved);
    tear_down();
}

/* Four clients for two processes: the last one is of another address than the others. */
static void add_claiming_clients(void)
{
    static struct peer_origin origins[2];

    set_up();
    POOL("p", 2, EXCLUSIVE, .busy_timeout_sec = 10);
    for (int i = 0; i < 4; i++) {
        origins[i / 3] = (struct peer_origin){.clients = 0};
        peer_origin_init(&origins[i / 3]);
        clients[i].origin = &origins[i / 3];
        add_client();
    }
}

/* Though another client has waited longer, the next process is for the one with the claim. */
TEST(archive_keeps_claims)
{
    static const char message[] = "{'id':1,'method':'m'}";
    struct archive saved, loaded;

    add_claiming_clients();
    for (int i = 0; i < 4; i++)
        expect_action(give(&clients[i], message), i < 2 ? ACTION_FORWARD : ACTION_HOLD);
    ck_assert(clients[2].claim == NULL && clients[3].claim == &pools[0]);
    departure_client(&router, &clients[1], note_unanswered, NULL);
    departure_worker(&router, &workers[1], note_unanswered, NULL);
    waiting_worker_available(&router, &workers[1], PEER_READY);
    archive_begin_saving(&saved);
    archive_router(&saved);
    ck_assert(archive_ok(&saved));
    tear_down();
    add_claiming_clients();
    archive_begin_loading(&loaded, slice_of(saved.data, saved.len), -1);
    archive_router(&loaded);
    ck_assert_msg(archive_ok(&loaded), "%s: %s", loaded.part, loaded.problem);
    while (waiting_next_released(&router) != NULL)
        continue;
    expect_action(give(&clients[2], message), ACTION_HOLD);
    expect_unchanged(&clients[3], message, &workers[1]);
    archive_free(&loaded);
    archive_free(&saved);
    tear_down();
}
