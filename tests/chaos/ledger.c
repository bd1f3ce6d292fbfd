#include "build_config.h"

#include "ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t chain_of(unsigned long long a, unsigned long long b)
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
    memset(ledger, 0, sizeof *ledger);
    for (size_t i = 0; i < LEDGER_CHAINS; i++) {
        list_init(&ledger->entries[i]);
        list_init(&ledger->pairs[i]);
        list_init(&ledger->sessions[i]);
    }
}

/* --- messages --- */

/* The first entry with this serial, and with this connection unless `conn` is 0. */
static struct entry *find(const struct ledger *ledger, struct serial serial,
                          unsigned long long conn)
{
    const struct list *chain = &ledger->entries[chain_of(serial.origin, serial.number)];

    each_entry(struct entry, entry, chain, link) {
        if (entry->serial.origin == serial.origin && entry->serial.number == serial.number &&
            (conn == 0 || entry->conn == conn))
            return entry;
    }
    return NULL;
}

struct entry *ledger_find(const struct ledger *ledger, struct serial serial)
{
    return find(ledger, serial, 0);
}

struct entry *ledger_find_for(const struct ledger *ledger, struct serial serial,
                              unsigned long long conn)
{
    struct entry *entry = find(ledger, serial, conn);

    return entry != NULL && entry->to_all ? entry : find(ledger, serial, 0);
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

void ledger_excuse(struct ledger *ledger, struct entry *entry)
{
    ledger->calm_open -= entry->calm;
    entry->calm = false;
}

const struct entry *ledger_any_calm(const struct ledger *ledger)
{
    for (size_t i = 0; i < LEDGER_CHAINS; i++) {
        each_entry(struct entry, entry, &ledger->entries[i], link) {
            if (entry->calm)
                return entry;
        }
    }
    return NULL;
}

/* --- pairs --- */

struct pair *ledger_pair(struct ledger *ledger, unsigned long long worker, unsigned long long conn)
{
    struct list *chain = &ledger->pairs[chain_of(worker, conn)];
    struct pair *pair = NULL;

    each_entry(struct pair, found, chain, link) {
        if (found->worker == worker && found->conn == conn)
            return found;
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
    for (size_t i = 0; i < LEDGER_CHAINS; i++) {
        each_entry(struct pair, pair, &ledger->pairs[i], link) {
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
    struct session *session = NULL;

    each_entry(struct session, found, chain, link) {
        if (strcmp(found->name, name) == 0)
            return found;
    }
    session = allocate(sizeof *session);
    snprintf(session->name, sizeof session->name, "%s", name);
    list_append(chain, &session->link);
    return session;
}

/* --- the end of a round --- */

static void purge_pairs(struct list *chain, ledger_done_fn *done, void *user_data)
{
    each_entry(struct pair, pair, chain, link) {
        forget_expected(pair);
        if (!done(user_data, pair))
            continue;
        list_remove(&pair->link);
        free(pair);
    }
}

static void purge_sessions(struct list *chain)
{
    each_entry(struct session, session, chain, link) {
        if (session->users > 0)
            continue;
        list_remove(&session->link);
        free(session);
    }
}

void ledger_purge(struct ledger *ledger, ledger_done_fn *done, void *user_data)
{
    for (size_t i = 0; i < LEDGER_CHAINS; i++) {
        each_entry(struct entry, entry, &ledger->entries[i], link)
            ledger_remove(ledger, entry);
    }
    for (size_t i = 0; i < LEDGER_CHAINS; i++) {
        purge_pairs(&ledger->pairs[i], done, user_data);
        purge_sessions(&ledger->sessions[i]);
    }
}
