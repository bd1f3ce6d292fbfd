/* Tokens of requests: found by the peers that may name them. */
#include "build_config.h"

#include "router/extras.h"

#include "base/error.h"
#include "quick_assert.h"
#include "router/peer.h"
#include "suite.h"
#include "table_fixture.h"

/* The table is compiled into the test with an allocator that fails on demand. */
#define malloc failing_malloc
#define calloc failing_calloc
#include "base/hash_table.c"
#include "router/extras.c"
#undef malloc
#undef calloc

#define PEERS 3
#define TOKENS 4
#define REQUESTS 40
#define STEPS 20000

static struct hash_table by_token;
static struct list recycled;
static struct peer askers[PEERS], answerers[PEERS];
static struct entry {
    struct request_extras *extras; /* NULL: no request */
    const struct peer *asker, *answerer;
    unsigned tokens[EXTRAS_TOKENS]; /* 0: none */
    bool abandoned;
} entries[REQUESTS];

static void set_up(void)
{
    list_init(&recycled);
    for (unsigned i = 0; i < PEERS; i++) {
        askers[i].number = 2 * i + 1;
        answerers[i].number = 2 * i + 2;
    }
}

static void tear_down(void)
{
    struct list_node *node;

    allocations_left = -1;
    for (int i = 0; i < REQUESTS; i++) {
        if (entries[i].extras != NULL)
            extras_recycle(&recycled, entries[i].extras);
        entries[i].extras = NULL;
    }
    ck_assert_uint_eq(by_token.count, 0);
    while ((node = list_take_first(&recycled)) != NULL)
        extras_free(list_entry(node, struct request_extras, timed));
    hash_table_free(&by_token);
}

static struct message_id token_id(unsigned token)
{
    static const char *const texts[TOKENS + 1] = {"", "1", "2", "three", "4"};

    return (struct message_id){ID_STRING, slice_of(texts[token], strlen(texts[token]))};
}

/* Two tokens have one hash. */
static uint64_t token_hash(unsigned token)
{
    return token / 2 * 64;
}

/* False: out of memory, and nothing has changed. */
static bool add(struct entry *entry, const unsigned tokens[EXTRAS_TOKENS], const struct peer *asker,
                const struct peer *answerer)
{
    struct extras_token given[EXTRAS_TOKENS];
    size_t count = by_token.count;

    for (int i = 0; i < EXTRAS_TOKENS; i++) {
        given[i] = (struct extras_token){.value = token_id(tokens[i]),
                                         .hash = token_hash(tokens[i])};
        if (tokens[i] > 0)
            given[i].raw = given[i].value.text;
        entry->tokens[i] = tokens[i];
    }
    entry->extras = extras_new(&recycled, given, slice_of(NULL, 0));
    if (entry->extras == NULL)
        return false;
    if (extras_link(entry->extras, &by_token, asker, answerer) != STDIO_BUS_OK) {
        extras_recycle(&recycled, entry->extras);
        entry->extras = NULL;
        ck_assert_uint_eq(by_token.count, count);
        return false;
    }
    entry->asker = asker;
    entry->answerer = answerer;
    entry->abandoned = false;
    return true;
}

static void drop(struct entry *entry)
{
    extras_recycle(&recycled, entry->extras);
    entry->extras = NULL;
}

static struct request_extras *find(const struct peer *peer, unsigned token, uint32_t *which)
{
    return extras_find(&by_token, peer, token_id(token), token_hash(token), which);
}

static bool knows(const struct entry *entry, const struct peer *peer)
{
    return entry->extras != NULL &&
           (peer == entry->answerer || (peer == entry->asker && !entry->abandoned));
}

/* An active request is found before an abandoned one, and with the right token. */
static void check_peer(const struct peer *peer, unsigned token)
{
    uint32_t which = EXTRAS_TOKENS;
    const struct request_extras *found = find(peer, token, &which);
    bool any = false, active = false;

    for (int i = 0; i < REQUESTS; i++) {
        for (uint32_t k = 0; k < EXTRAS_TOKENS; k++) {
            if (!knows(&entries[i], peer) || entries[i].tokens[k] != token)
                continue;
            any = true;
            active |= !entries[i].abandoned;
        }
    }
    QUICK_ASSERT((found != NULL) == any);
    if (found == NULL)
        return;
    for (int i = 0; i < REQUESTS; i++) {
        if (entries[i].extras == found) {
            QUICK_ASSERT(knows(&entries[i], peer) && entries[i].abandoned != active);
            QUICK_ASSERT(which < EXTRAS_TOKENS && entries[i].tokens[which] == token);
        }
    }
}

TEST_ROWS(tokens_agree_with_a_naive_model, 4)
{
    random_state = 0x9e3779b97f4a7c15u + (unsigned)row;
    for (int step = 0; step < STEPS; step++) {
        struct entry *entry = &entries[next_random(REQUESTS)];
        unsigned tokens[EXTRAS_TOKENS];

        for (int i = 0; i < EXTRAS_TOKENS; i++)
            tokens[i] = next_random(TOKENS + 1);
        if (entry->extras == NULL) {
            allocations_left = next_random(10) == 0 ? (long)next_random(2) : -1;
            add(entry, tokens, &askers[next_random(PEERS)],
                next_random(4) == 0 ? NULL : &answerers[next_random(PEERS)]);
            allocations_left = -1;
        } else if (!entry->abandoned && next_random(2) == 0) {
            entry->abandoned = true;
            extras_abandon(entry->extras);
        } else {
            drop(entry);
        }
        for (unsigned i = 0; i < PEERS && step % 10 == 0; i++) {
            for (unsigned token = 1; token <= TOKENS; token++) {
                check_peer(&askers[i], token);
                check_peer(&answerers[i], token);
            }
        }
    }
}

/* One table entry for a token, however many requests have it: looking it up costs the same. */
TEST(equal_tokens_have_one_entry)
{
    static const unsigned tokens[EXTRAS_TOKENS] = {3};
    uint32_t which;

    for (int i = 0; i < REQUESTS; i++)
        ck_assert(add(&entries[i], tokens, &askers[0], &answerers[0]));
    ck_assert_uint_eq(by_token.count, 2);
    for (int i = 0; i < REQUESTS; i++) {
        ck_assert_ptr_nonnull(find(&answerers[0], 3, &which));
        drop(&entries[i]);
    }
    ck_assert_ptr_null(find(&answerers[0], 3, &which));
}

FIXTURE(set_up, tear_down)
