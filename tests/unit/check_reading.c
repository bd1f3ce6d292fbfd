/* Turns of reading: of origins first, then of the connections of each. */
#include "build_config.h"

#include "transport/origin.h"

#include "suite.h"

#define CONNECTIONS 5 /* those of the flood; the last one is of another origin */

static struct transport transport;
static struct transport_origin flood, honest;
static struct connection connections[CONNECTIONS]; /* closed: nothing watches them */

static void set_up(void)
{
    static const struct limits limits = LIMITS_DEFAULT;

    transport_init(&transport, NULL, NULL, &limits);
    transport.origin_count = 2;
    transport.round = 1;
    transport_origin_init(&flood);
    transport_origin_init(&honest);
    for (int i = 0; i < CONNECTIONS; i++) {
        connections[i] = (struct connection){.transport = &transport};
        connection_set_origin(&connections[i], i < CONNECTIONS - 1 ? &flood : &honest);
    }
}

static void tear_down(void)
{
    transport_free(&transport);
}

/* The connection is readable, and is read unless it waits. */
static bool is_read(int which, size_t len)
{
    bool has_turns = transport.origin_count > 1;

    if (has_turns && reading_waits(&connections[which]))
        return false;
    if (has_turns)
        reading_note(&connections[which], len);
    return true;
}

/* The connections whose turn it is in a round, each of which is read that many bytes, as digits. */
static const char *run_round(size_t len)
{
    static char found[64];
    struct connection *connection;
    struct list turns;
    size_t count = 0;

    reading_begin(&transport, &turns);
    while ((connection = reading_next(&transport, &turns)) != NULL) {
        reading_note(connection, len);
        found[count++] = (char)('0' + (connection - connections));
    }
    found[count] = '\0';
    transport.round++;
    return found;
}

TEST(origin_alone_never_waits)
{
    transport.origin_count = 1;
    for (int i = 0; i < 100; i++)
        ck_assert(is_read(i % 4, READING_SHARE));
}

TEST(origin_beyond_its_share_waits_for_the_next_round)
{
    ck_assert(is_read(0, READING_SHARE));
    for (int i = 1; i < 4; i++)
        ck_assert(!is_read(i, READING_SHARE));
    ck_assert(is_read(4, READING_SHARE));
    ck_assert_str_eq(run_round(READING_SHARE), "");
    ck_assert_str_eq(run_round(READING_SHARE), "1");
    ck_assert(!is_read(0, READING_SHARE)); /* the others came before */
    ck_assert(is_read(4, READING_SHARE));
    ck_assert_str_eq(run_round(READING_SHARE), "2");
    ck_assert_str_eq(run_round(READING_SHARE), "3");
    ck_assert_str_eq(run_round(READING_SHARE), "0");
    ck_assert(list_empty(&transport.reading));
}

TEST(little_is_read_of_many_connections_in_one_round)
{
    ck_assert(is_read(0, READING_SHARE));
    for (int i = 1; i < 4; i++)
        ck_assert(!is_read(i, 1));
    ck_assert_str_eq(run_round(1), "");
    ck_assert_str_eq(run_round(1), "123");
}

/* A read has a cost beside its bytes. */
TEST(small_reads_use_up_the_share_too)
{
    size_t count = 0;

    while (is_read(0, 1))
        count++;
    ck_assert_uint_le(count, READING_SHARE / READING_COST);
}

TEST(connection_that_leaves_has_no_turn)
{
    ck_assert(is_read(0, READING_SHARE));
    for (int i = 1; i < 3; i++)
        ck_assert(!is_read(i, 1));
    reading_leave(&connections[1]);
    connection_set_origin(&connections[2], &honest);
    ck_assert(list_empty(&transport.reading));
    ck_assert_str_eq(run_round(1), "");
    ck_assert(is_read(2, 1));
}

FIXTURE(set_up, tear_down)
