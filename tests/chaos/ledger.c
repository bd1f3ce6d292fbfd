#include "build_config.h"

#include "ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t chain_of(uint64_t a, uint64_t b)
{
    uint64_t hash = (a ^ (b * UINT64_C(0x9e3779b97f4a7c15))) * UINT64_C(0xd6e8feb86659fd93);

    return (size_t)(hash >> 32) % LEDGER_CHAINS;
}

static void *allocate(size_t size)
{
    void *memory = calloc(1, size);

    if (memory == NULL)
        abort();
    return memory;
}

void ledger_init(struct ledger *ledger)
{
    size_t i;

    memset(ledger, 0, sizeof *ledger);
    for (i = 0; i < LEDGER_CHAINS; i++) {
        list_init(&ledger->entries[i]);
        list_init(&ledger->pairs[i]);
        list_init(&ledger->sessions[i]);
    }
}

/* --- messages --- */

struct entry *ledger_find(const struct ledger *ledger, struct serial serial)
{
    const struct list *chain = &ledger->entries[chain_of(serial.origin, serial.number)];
    struct list_node *node, *following;

    list_each(chain, node, following) {
        struct entry *entry = list_entry(node, struct entry, link);

        if (entry->serial.origin == serial.origin && entry->serial.number == serial.number)
            return entry;
    }
    return NULL;
}

struct entry *ledger_find_for(const struct ledger *ledger, struct serial serial, uint64_t conn)
{
    struct entry *first = ledger_find(ledger, serial);
    struct list_node *node, *following;

    if (first == NULL || !first->to_all)
        return first;
    list_each(&ledger->entries[chain_of(serial.origin, serial.number)], node, following) {
        struct entry *entry = list_entry(node, struct entry, link);

        if (entry->serial.origin == serial.origin && entry->serial.number == serial.number &&
            entry->conn == conn)
            return entry;
    }
    return first;
}

struct entry *ledger_add(struct ledger *ledger, struct serial serial, char kind, bool calm)
{
    struct entry *entry = allocate(sizeof *entry);

    entry->serial = serial;
    entry->kind = kind;
    entry->calm = calm;
    list_append(&ledger->entries[chain_of(serial.origin, serial.number)], &entry->link);
    ledger->entry_count++;
    ledger->calm_open += calm;
    return entry;
}

void ledger_remove(struct ledger *ledger, struct entry *entry)
{
    list_remove(&entry->in_flight);
    list_remove(&entry->at_worker);
    list_remove(&entry->expected);
    list_remove(&entry->link);
    ledger->entry_count--;
    ledger->calm_open -= entry->calm;
    free(entry);
}

const struct entry *ledger_any_calm(const struct ledger *ledger)
{
    struct list_node *node, *following;
    size_t i;

    for (i = 0; i < LEDGER_CHAINS; i++) {
        list_each(&ledger->entries[i], node, following) {
            if (list_entry(node, struct entry, link)->calm)
                return list_entry(node, struct entry, link);
        }
    }
    return NULL;
}

/* --- pairs --- */

struct pair *ledger_pair(struct ledger *ledger, uint64_t worker, uint64_t conn)
{
    struct list *chain = &ledger->pairs[chain_of(worker, conn)];
    struct list_node *node, *following;
    struct pair *pair;

    list_each(chain, node, following) {
        pair = list_entry(node, struct pair, link);
        if (pair->worker == worker && pair->conn == conn)
            return pair;
    }
    pair = allocate(sizeof *pair);
    pair->worker = worker;
    pair->conn = conn;
    list_init(&pair->expected);
    list_append(chain, &pair->link);
    return pair;
}

static void forget_expected(struct pair *pair)
{
    while (list_take_first(&pair->expected) != NULL)
        continue;
}

const struct entry *ledger_any_expected(struct ledger *ledger, ledger_done_fn *done,
                                        void *user_data)
{
    struct list_node *node, *following;
    size_t i;

    for (i = 0; i < LEDGER_CHAINS; i++) {
        list_each(&ledger->pairs[i], node, following) {
            struct pair *pair = list_entry(node, struct pair, link);

            if (list_empty(&pair->expected))
                continue;
            if (!done(user_data, pair))
                return list_entry(pair->expected.head.next, struct entry, expected);
            forget_expected(pair);
        }
    }
    return NULL;
}

/* --- sessions --- */

struct session *ledger_session(struct ledger *ledger, const char *name)
{
    return ledger_session_in(&ledger->sessions[chain_of(wire_key_hash(name), 0)], name);
}

struct session *ledger_session_in(struct list *chain, const char *name)
{
    struct list_node *node, *following;
    struct session *session;

    list_each(chain, node, following) {
        session = list_entry(node, struct session, link);
        if (strcmp(session->name, name) == 0)
            return session;
    }
    session = allocate(sizeof *session);
    snprintf(session->name, sizeof session->name, "%s", name);
    list_append(chain, &session->link);
    return session;
}

/* --- the end of a round --- */

static void purge_pairs(struct list *chain, ledger_done_fn *done, void *user_data)
{
    struct list_node *node, *following;

    list_each(chain, node, following) {
        struct pair *pair = list_entry(node, struct pair, link);

        forget_expected(pair);
        if (!done(user_data, pair))
            continue;
        list_remove(node);
        free(pair);
    }
}

static void purge_sessions(struct list *chain)
{
    struct list_node *node, *following;

    list_each(chain, node, following) {
        struct session *session = list_entry(node, struct session, link);

        if (session->users > 0)
            continue;
        list_remove(node);
        free(session);
    }
}

void ledger_purge(struct ledger *ledger, ledger_done_fn *done, void *user_data)
{
    struct list_node *node, *following;
    size_t i;

    for (i = 0; i < LEDGER_CHAINS; i++) {
        list_each(&ledger->entries[i], node, following)
            ledger_remove(ledger, list_entry(node, struct entry, link));
    }
    for (i = 0; i < LEDGER_CHAINS; i++) {
        purge_pairs(&ledger->pairs[i], done, user_data);
        purge_sessions(&ledger->sessions[i]);
    }
}

static bool all_done(void *user_data, const struct pair *pair)
{
    (void)user_data;
    (void)pair;
    return true;
}

void ledger_free(struct ledger *ledger)
{
    ledger_purge(ledger, all_done, NULL);
}
