#include "build_config.h"

#include "base/hash_table.h"

#include "base/error.h"
#include "base/siphash.h"
#include "quick_assert.h"
#include "suite.h"

/* The table with an allocator that fails on demand: this object's functions take the place of the
 * library's. */
static bool out_of_memory;

static void *failing_calloc(size_t count, size_t size)
{
    return out_of_memory ? NULL : calloc(count, size);
}

#define calloc failing_calloc
#include "base/hash_table.c"
#undef calloc

#define ITEMS 400
#define STEPS 20000

/* --- SipHash-1-3 --- */

struct vector {
    size_t len;       /* of the bytes 0, 1, 2 ... 255, 0, 1 ... */
    uint64_t of_zero; /* with the key of sixteen zeros */
    uint64_t of_ramp; /* with the key 00 01 02 ... 0f */
};

/* Made by an implementation of its own in another language, which was compared with the vectors of
 * the SipHash paper and with CPython's hash of bytes. */
static const struct vector vectors[] = {
    {0, UINT64_C(0xd1fba762150c532c), UINT64_C(0xabac0158050fc4dc)},
    {1, UINT64_C(0x68a914128e01e473), UINT64_C(0xc9f49bf37d57ca93)},
    {2, UINT64_C(0x10bac45c41e3669), UINT64_C(0x82cb9b024dc7d44d)},
    {3, UINT64_C(0x4d4c9a4a8ef6e0ad), UINT64_C(0x8bf80ab8e7ddf7fb)},
    {4, UINT64_C(0x7cc43f98813e4dbd), UINT64_C(0xcf75576088d38328)},
    {5, UINT64_C(0x5abe2169dff36275), UINT64_C(0xdef9d52f49533b67)},
    {6, UINT64_C(0xe3c25f87624f1cdb), UINT64_C(0xc50d2b50c59f22a7)},
    {7, UINT64_C(0x2f098ab0c751325a), UINT64_C(0xd3927d989bb11140)},
    {8, UINT64_C(0xead411e67ebe2eea), UINT64_C(0x369095118d299a8e)},
    {9, UINT64_C(0x75927f9d95124362), UINT64_C(0x25a48eb36c063de4)},
    {15, UINT64_C(0xf30eb725bb91c9ea), UINT64_C(0xd320d86d2a519956)},
    {16, UINT64_C(0x8972188433a5c5b7), UINT64_C(0xcc4fdd1a7d908b66)},
    {17, UINT64_C(0x4883c49a2c009c1d), UINT64_C(0x9cf2689063dbd80c)},
    {63, UINT64_C(0x385d3e39e5f37359), UINT64_C(0x9d199062b7bbb3a8)},
    {64, UINT64_C(0x75e05fd5bbc870c6), UINT64_C(0xf17997ec4b4a6065)},
    {65, UINT64_C(0x9551550c825974c6), UINT64_C(0x5e1e6109660f720e)},
    {255, UINT64_C(0x5dc1f93ea135eb43), UINT64_C(0xf76214e3153c4a15)},
    {256, UINT64_C(0x31ae646afba70308), UINT64_C(0x75b3e64e167de370)},
    {300, UINT64_C(0x4a3ee92cf03a1ab4), UINT64_C(0x4016a23bda5a2224)},
};

TEST_ROWS(siphash_is_siphash_1_3, COUNT(vectors))
{
    const struct vector *vector = &vectors[row];
    const struct siphash_key zero = {0, 0};
    const struct siphash_key ramp = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)};
    unsigned char bytes[308];

    for (size_t shift = 0; shift < 8; shift++) { /* however the bytes are aligned */
        for (size_t i = 0; i < vector->len; i++)
            bytes[shift + i] = (unsigned char)i;
        ck_assert_uint_eq(siphash(&zero, bytes + shift, vector->len), vector->of_zero);
        ck_assert_uint_eq(siphash(&ramp, bytes + shift, vector->len), vector->of_ramp);
    }
}

TEST(siphash_of_nothing_may_be_null)
{
    const struct siphash_key key = {1, 2};

    ck_assert_uint_eq(siphash(&key, NULL, 0), siphash(&key, "x", 0));
}

TEST(siphash_depends_on_every_byte_and_key_bit)
{
    struct siphash_key key = {3, 4};
    unsigned char bytes[40] = {0};
    uint64_t plain = siphash(&key, bytes, sizeof bytes);

    for (unsigned i = 0; i < sizeof bytes; i++) {
        bytes[i] = 1;
        ck_assert_uint_ne(siphash(&key, bytes, sizeof bytes), plain);
        bytes[i] = 0;
    }
    for (unsigned i = 0; i < 128; i++) {
        struct siphash_key other = key;

        if (i < 64)
            other.k0 ^= UINT64_C(1) << i;
        else
            other.k1 ^= UINT64_C(1) << (i - 64);
        ck_assert_uint_ne(siphash(&other, bytes, sizeof bytes), plain);
    }
    /* The length counts too. */
    ck_assert_uint_ne(siphash(&key, bytes, sizeof bytes - 1), plain);
}

TEST(random_keys_differ)
{
    struct siphash_key a = siphash_random_key(), b = siphash_random_key();

    ck_assert_uint_ne(a.k0, b.k0);
    ck_assert_uint_ne(a.k1, b.k1);
    ck_assert(a.k0 != 0 && a.k1 != 0);
}

/* --- the table against a naive model: an array --- */

struct item {
    unsigned number;
    uint64_t hash;
    bool present;
};

static struct {
    struct hash_table table;
    struct item items[ITEMS];
    size_t count;
    uint64_t random;
} model;

static uint64_t next_random(void)
{
    model.random ^= model.random << 13;
    model.random ^= model.random >> 7;
    model.random ^= model.random << 17;
    return model.random;
}

static bool item_equal(const void *item, const void *key)
{
    return ((const struct item *)item)->number == *(const unsigned *)key;
}

/* The kinds of hashes, one per run of the test. */
#define KINDS_OF_HASH 6

static uint64_t make_hash(int kind)
{
    uint64_t random = next_random();

    switch (kind) {
    case 0:
        return random;
    case 1:
        return 7; /* all the same */
    case 2:
        return random % 5; /* few homes next to each other */
    case 3:
        return UINT64_MAX - random % 5; /* runs that continue at the table's start */
    case 4:
        return (random << 40) | 61; /* one home, different hashes */
    default:
        return ((random % 3) << 6) - 2 + random % 4; /* apart only in the larger tables */
    }
}

static struct item *find(const struct item *item)
{
    return hash_table_find(&model.table, item->hash, item_equal, &item->number);
}

static void check_all(void)
{
    size_t capacity = model.table.capacity;
    size_t i, used = 0;

    ck_assert_uint_eq(model.table.count, model.count);
    for (i = 0; i < ITEMS; i++) {
        const struct item *item = &model.items[i];

        QUICK_ASSERT(find(item) == (item->present ? item : NULL));
    }
    ck_assert_uint_eq(capacity & (capacity - 1), 0);
    for (i = 0; i < capacity; i++)
        used += model.table.slots[i].item != NULL;
    ck_assert_uint_eq(used, model.count);
    ck_assert(capacity == 0 || used < capacity); /* a probe always ends */
}

static int insert(struct item *item)
{
    int status = hash_table_insert(&model.table, item->hash, item);

    if (status == STDIO_BUS_OK) {
        item->present = true;
        model.count++;
    }
    return status;
}

static int take_out(struct item *item)
{
    int status = hash_table_remove(&model.table, item->hash, item);

    QUICK_ASSERT(status == (item->present ? STDIO_BUS_OK : STDIO_BUS_ENOTFOUND));
    model.count -= item->present;
    item->present = false;
    return status;
}

static void step(bool filling)
{
    struct item *item = &model.items[next_random() % ITEMS];
    bool adds = next_random() % 8 < (filling ? 6u : 2u);

    if (!adds)
        take_out(item);
    else if (!item->present)
        QUICK_ASSERT(insert(item) == STDIO_BUS_OK);
    QUICK_ASSERT(find(item) == (item->present ? item : NULL));
}

static void make_items(uint64_t seed, int kind)
{
    model.random = seed;
    for (unsigned i = 0; i < ITEMS; i++)
        model.items[i] = (struct item){.number = i, .hash = make_hash(kind)};
}

TEST_ROWS(same_as_a_naive_model, KINDS_OF_HASH)
{
    make_items(0x9e3779b97f4a7c15u + (unsigned)row, (int)row);
    for (int i = 0; i < STEPS; i++) {
        step(i / 2000 % 2 == 0); /* fills and empties by turns */
        if (i % 97 == 0)
            check_all();
    }
    check_all();
    for (int i = 0; i < ITEMS; i++)
        take_out(&model.items[i]);
    check_all();
}

/* --- the contract --- */

TEST(zeroed_and_freed_tables_are_empty_and_usable)
{
    struct item *item = &model.items[0];

    *item = (struct item){.number = 1, .hash = 1};
    for (int i = 0; i < 2; i++) {
        ck_assert_ptr_null(find(item));
        ck_assert_int_eq(take_out(item), STDIO_BUS_ENOTFOUND);
        ck_assert_int_eq(insert(item), STDIO_BUS_OK);
        ck_assert_ptr_eq(find(item), item);
        hash_table_free(&model.table);
        item->present = false;
    }
}

TEST(equal_items_differ_by_address)
{
    struct item *a = &model.items[0], *b = &model.items[1];

    *a = *b = (struct item){.number = 1, .hash = 9};
    ck_assert_int_eq(insert(a), STDIO_BUS_OK);
    ck_assert_int_eq(take_out(b), STDIO_BUS_ENOTFOUND);
    ck_assert_int_eq(insert(b), STDIO_BUS_OK);
    ck_assert_int_eq(take_out(a), STDIO_BUS_OK);
    ck_assert_ptr_eq(find(a), b);
}

static bool never_asked(const void *item, const void *key)
{
    (void)item;
    (void)key;
    ck_abort_msg("asked about an item with another hash");
    return false;
}

TEST(other_hashes_are_not_compared)
{
    model.items[0] = (struct item){.number = 1, .hash = 5};
    model.items[1] = (struct item){.number = 2, .hash = 5 + 64};
    ck_assert_int_eq(insert(&model.items[0]), STDIO_BUS_OK);
    ck_assert_int_eq(insert(&model.items[1]), STDIO_BUS_OK);
    ck_assert_ptr_null(hash_table_find(&model.table, 5 + 128, never_asked, NULL));
}

TEST(failed_insert_changes_nothing)
{
    size_t capacity;
    unsigned i = 1;

    make_items(88172645463325252u, 0);
    out_of_memory = true;
    ck_assert_int_eq(insert(&model.items[0]), STDIO_BUS_ERR);
    check_all();
    out_of_memory = false;
    ck_assert_int_eq(insert(&model.items[0]), STDIO_BUS_OK);
    capacity = model.table.capacity;
    out_of_memory = true;
    while (insert(&model.items[i]) == STDIO_BUS_OK) /* until it would have to grow */
        ck_assert_uint_lt(++i, ITEMS);
    ck_assert_uint_eq(model.table.capacity, capacity);
    check_all();
    out_of_memory = false;
    ck_assert_int_eq(insert(&model.items[i]), STDIO_BUS_OK);
    ck_assert_uint_eq(model.table.capacity, 2 * capacity);
    check_all();
}

static void set_up(void)
{
    memset(&model, 0, sizeof model);
}

static void tear_down(void)
{
    hash_table_free(&model.table);
}

FIXTURE(set_up, tear_down)
