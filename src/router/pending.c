#include "build_config.h"

#include "router/pending.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"

struct key {
    const struct peer *peer;
    struct message_id id;
};

void pending_init(struct pending *pending, const struct siphash_key *key, size_t max)
{
    memset(pending, 0, sizeof *pending);
    pending->key = *key;
    pending->max = max;
    list_init(&pending->abandoned);
    list_init(&pending->awaited);
    list_init(&pending->free);
    list_init(&pending->free_extras);
}

static void free_request(struct request *request)
{
    free(request->long_text);
    extras_free(request->extras);
    free(request);
}

void pending_free(struct pending *pending)
{
    struct list_node *node;
    size_t i;

    for (i = 0; i < pending->by_answerer.capacity; i++) {
        if (pending->by_answerer.slots[i].item != NULL)
            free_request(pending->by_answerer.slots[i].item);
    }
    while ((node = list_take_first(&pending->free)) != NULL)
        free_request(list_entry(node, struct request, in_asker));
    while ((node = list_take_first(&pending->free_extras)) != NULL)
        extras_free(list_entry(node, struct request_extras, timed));
    hash_table_free(&pending->by_answerer);
    hash_table_free(&pending->by_asker);
    hash_table_free(&pending->by_token);
}

uint64_t pending_hash(const struct pending *pending, struct message_id id)
{
    return siphash(&pending->key, id.text.data, id.text.len) ^ (uint64_t)id.type;
}

static bool answerer_equal(const void *item, const void *key)
{
    const struct request *request = item;
    const struct key *wanted = key;

    return request->answerer == wanted->peer && message_id_equal(request->answerer_id, wanted->id);
}

static bool asker_equal(const void *item, const void *key)
{
    const struct request *request = item;
    const struct key *wanted = key;

    return request->asker == wanted->peer && message_id_equal(request->asker_id, wanted->id);
}

struct request *pending_by_answerer(const struct pending *pending, const struct peer *answerer,
                                    struct message_id id, uint64_t id_hash)
{
    struct key key = {answerer, id};

    return hash_table_find(&pending->by_answerer, id_hash ^ answerer->number, answerer_equal, &key);
}

struct request *pending_by_asker(const struct pending *pending, const struct peer *asker,
                                 struct message_id id, uint64_t id_hash)
{
    struct key key = {asker, id};

    return hash_table_find(&pending->by_asker, id_hash ^ asker->number, asker_equal, &key);
}

static bool has_answerer(const void *item, const void *answerer)
{
    return ((const struct request *)item)->answerer == answerer;
}

bool pending_has_hash(const struct pending *pending, const struct peer *answerer, uint64_t id_hash)
{
    return hash_table_find(&pending->by_answerer, id_hash ^ answerer->number, has_answerer,
                           answerer) != NULL;
}

/* A recycled request or a new one. NULL if out of memory. */
static inline struct request *new_or_recycled(struct pending *pending)
{
    struct list_node *node = list_take_first(&pending->free);
    struct request *request;

    if (node != NULL)
        return list_entry(node, struct request, in_asker);
    request = calloc(1, sizeof *request);
    if (request != NULL) {
        request->table = pending;
        turns_init(&request->waiters, TURNS_OF_REQUEST);
    }
    return request;
}

/* Copies the id and its spelling, of which the id's text is mostly a part. */
static inline int set_id(struct request *request, struct message_id id, struct slice raw)
{
    size_t offset = (size_t)((uintptr_t)id.text.data - (uintptr_t)raw.data);
    bool inside = offset <= raw.len && id.text.len <= raw.len - offset;
    size_t len = inside ? raw.len : raw.len + id.text.len;
    char *text = request->text;

    if (len > sizeof request->text) {
        text = request->long_text = malloc(len);
        if (text == NULL)
            return STDIO_BUS_ERR;
    }
    if (raw.len > 0)
        memcpy(text, raw.data, raw.len);
    if (!inside) {
        offset = raw.len;
        memcpy(text + offset, id.text.data, id.text.len);
    }
    request->raw_id = (struct slice){text, raw.len};
    request->asker_id = (struct message_id){id.type, {text + offset, id.text.len}};
    return STDIO_BUS_OK;
}

static inline void give_back(struct request *request)
{
    if (request->long_text != NULL)
        free(request->long_text);
    request->long_text = NULL;
    if (request->extras != NULL)
        extras_recycle(&request->table->free_extras, request->extras);
    request->extras = NULL;
    list_prepend(&request->table->free, &request->in_asker); /* the warmest is used next */
}

#define TEN(d) d "0" d "1" d "2" d "3" d "4" d "5" d "6" d "7" d "8" d "9"

/* Two digits at a time: it is done for each request whose ids are rewritten. */
static const char digit_pairs[] = TEN("0") TEN("1") TEN("2") TEN("3") TEN("4") TEN("5") TEN("6")
    TEN("7") TEN("8") TEN("9");

static inline struct message_id write_number(char text[PENDING_DIGITS], uint32_t number)
{
    size_t at = PENDING_DIGITS;

    for (; number >= 10; number /= 100) {
        at -= 2;
        memcpy(text + at, digit_pairs + 2 * (size_t)(number % 100), 2);
    }
    if (number > 0 || at == PENDING_DIGITS)
        text[--at] = (char)('0' + number);
    return (struct message_id){ID_NUMBER, {text + at, PENDING_DIGITS - at}};
}

struct message_id pending_number_id(char text[PENDING_DIGITS], uint32_t number)
{
    return write_number(text, number);
}

/* The daemon chooses the numbers: a peer cannot make them collide. */
static inline uint64_t hash_of_number(const struct pending *pending, uint32_t number,
                                      struct message_id id)
{
    return pending->own_numbers ? (number >> 1) * UINT64_C(0xd6e8feb86659fd93)
                                : pending_hash(pending, id);
}

struct request *pending_by_number(const struct pending *pending, const struct peer *answerer,
                                  struct message_id id, uint32_t number)
{
    return pending_by_answerer(pending, answerer, id, hash_of_number(pending, number, id));
}

struct message_id pending_numbered(const struct pending *pending, char text[PENDING_DIGITS],
                                   uint32_t number, uint64_t *hash)
{
    struct message_id id = write_number(text, number);

    *hash = hash_of_number(pending, number, id);
    return id;
}

struct request *pending_add(struct pending *pending, struct peer *asker, struct peer *answerer,
                            const struct new_request *new_request)
{
    struct request *request = asker->reserved;

    if (request != NULL && request->answerer == answerer && new_request->number == 0 &&
        message_id_equal(request->answerer_id, new_request->id)) {
        if (request_activate(request) != STDIO_BUS_OK)
            return NULL;
        asker->reserved = NULL;
        return request;
    }
    request = new_or_recycled(pending);
    if (request == NULL)
        return NULL;
    if (set_id(request, new_request->id, new_request->raw) != STDIO_BUS_OK)
        goto fail;
    request->asker = asker;
    request->answerer = answerer;
    request->id_hash = new_request->id_hash;
    request->number = new_request->number;
    request->rewritten = new_request->number != 0;
    if (request->rewritten) {
        struct slice digits = new_request->number_id.text;
        size_t before = PENDING_DIGITS - digits.len;

        memcpy(request->number_text, digits.data - before, PENDING_DIGITS);
        digits.data = request->number_text + before;
        request->answerer_id = (struct message_id){ID_NUMBER, digits};
        request->answerer_hash = new_request->number_hash ^ answerer->number;
    } else {
        request->answerer_id = request->asker_id;
        request->answerer_hash = new_request->id_hash ^ answerer->number;
    }
    if (hash_table_insert(&pending->by_answerer, request->answerer_hash, request) != STDIO_BUS_OK)
        goto fail;
    if (request_activate(request) == STDIO_BUS_OK) {
        list_append(&answerer->answering, &request->in_answerer);
        return request;
    }
    hash_table_remove(&pending->by_answerer, request->answerer_hash, request);
fail:
    give_back(request);
    return NULL;
}

int request_activate(struct request *request)
{
    struct pending *pending = request->table;

    request->asker_hash = request->id_hash ^ request->asker->number;
    if (hash_table_insert(&pending->by_asker, request->asker_hash, request) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    request->state = REQUEST_ACTIVE;
    list_append(&request->asker->asked, &request->in_asker);
    pending->active_count++;
    request->asker->held[PEER_REQUESTS]++;
    if (request->asker->origin != NULL)
        request->asker->origin->held[PEER_REQUESTS]++;
    return STDIO_BUS_OK;
}

/* Takes the request off its asker's side, in any state. */
static void leave_asker(struct request *request)
{
    struct pending *pending = request->table;

    switch (request->state) {
    case REQUEST_ACTIVE:
        hash_table_remove(&pending->by_asker, request->asker_hash, request);
        pending->active_count--;
        request->asker->held[PEER_REQUESTS]--;
        if (request->asker->origin != NULL)
            request->asker->origin->held[PEER_REQUESTS]--;
        break;
    case REQUEST_ABANDONED:
        pending->abandoned_count--;
        break;
    case REQUEST_RESERVED:
        request->asker->reserved = NULL;
        break;
    case REQUEST_AWAITED:
        break;
    }
    list_remove(&request->in_asker);
    request->asker = NULL;
}

/* Waiters use this number as a client id; undo the rewriting first. */
static void end_rewriting(struct request *request)
{
    request->rewritten = false;
    request->asker_id = request->answerer_id;
    request->id_hash = pending_hash(request->table, request->answerer_id);
}

void request_reserve(struct request *request, struct peer *next)
{
    request->answerer->checked = NULL;
    if (request->extras != NULL)
        extras_recycle(&request->table->free_extras, request->extras);
    request->extras = NULL;
    leave_asker(request);
    if (request->rewritten)
        end_rewriting(request);
    request->state = REQUEST_RESERVED;
    request->asker = next;
    next->reserved = request;
}

void request_abandon(struct request *request)
{
    struct pending *pending = request->table;

    ASSERT(request->state == REQUEST_ACTIVE);
    if (request->extras != NULL)
        extras_abandon(request->extras);
    leave_asker(request);
    request->state = REQUEST_ABANDONED;
    list_append(&pending->abandoned, &request->in_asker);
    pending->abandoned_count++;
}

void request_await(struct request *request)
{
    ASSERT(request->state == REQUEST_ACTIVE);
    leave_asker(request);
    request->state = REQUEST_AWAITED;
    list_append(&request->table->awaited, &request->in_asker);
}

/* What was found out about the requests before this one holds on. */
static void uncheck(struct request *request)
{
    struct peer *answerer = request->answerer;

    if (answerer->checked != &request->in_answerer)
        return;
    answerer->checked = request->in_answerer.prev;
    if (answerer->checked == &answerer->answering.head)
        answerer->checked = NULL;
}

void request_remove(struct request *request)
{
    uncheck(request);
    leave_asker(request);
    hash_table_remove(&request->table->by_answerer, request->answerer_hash, request);
    list_remove(&request->in_answerer);
    give_back(request);
}
