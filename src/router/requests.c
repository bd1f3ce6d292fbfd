#include "build_config.h"

#include "router/requests.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define BLOCK_REQUESTS 32

struct request_block {
    struct request_block *next;
    struct request requests[BLOCK_REQUESTS];
};

struct key {
    const struct peer *peer;
    struct message_id id;
};

void requests_init(struct requests *requests, const struct siphash_key *key, size_t max)
{
    memset(requests, 0, sizeof *requests);
    requests->key = *key;
    requests->max = max;
    list_init(&requests->abandoned);
    list_init(&requests->free);
    list_init(&requests->free_details);
}

void requests_free(struct requests *requests)
{
    struct request_block *block = requests->blocks;

    while (block != NULL) {
        struct request_block *next = block->next;
        size_t i;

        for (i = 0; i < BLOCK_REQUESTS; i++)
            free(block->requests[i].long_text);
        free(block);
        block = next;
    }
    hash_table_free(&requests->by_answerer);
    hash_table_free(&requests->by_asker);
    requests->blocks = NULL;
    details_free_all(requests);
}

uint64_t requests_hash(const struct requests *requests, struct message_id id)
{
    return siphash(&requests->key, id.text.data, id.text.len) ^ (uint64_t)id.type;
}

/* The id's hash is keyed; what is mixed in only has to differ from peer to peer. */
static uint64_t mix(uint64_t id_hash, const struct peer *peer)
{
    return id_hash ^ (peer->number * UINT64_C(0x9e3779b97f4a7c15));
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

struct request *requests_by_answerer(const struct requests *requests, const struct peer *answerer,
                                     struct message_id id, uint64_t id_hash)
{
    struct key key = {answerer, id};

    return hash_table_find(&requests->by_answerer, mix(id_hash, answerer), answerer_equal, &key);
}

struct request *requests_by_asker(const struct requests *requests, const struct peer *asker,
                                  struct message_id id, uint64_t id_hash)
{
    struct key key = {asker, id};

    return hash_table_find(&requests->by_asker, mix(id_hash, asker), asker_equal, &key);
}

static bool has_answerer(const void *item, const void *answerer)
{
    return ((const struct request *)item)->answerer == answerer;
}

bool requests_has_hash(const struct requests *requests, const struct peer *answerer,
                       uint64_t id_hash)
{
    return hash_table_find(&requests->by_answerer, mix(id_hash, answerer), has_answerer,
                           answerer) != NULL;
}

static int add_block(struct requests *requests)
{
    struct request_block *block = calloc(1, sizeof *block);
    size_t i;

    if (block == NULL)
        return STDIO_BUS_ERR;
    block->next = requests->blocks;
    requests->blocks = block;
    for (i = 0; i < BLOCK_REQUESTS; i++) {
        block->requests[i].table = requests;
        list_init(&block->requests[i].waiters);
        list_append(&requests->free, &block->requests[i].in_asker);
    }
    return STDIO_BUS_OK;
}

static inline struct request *take_free(struct requests *requests)
{
    if (list_empty(&requests->free) && add_block(requests) != STDIO_BUS_OK)
        return NULL;
    return list_entry(list_take_first(&requests->free), struct request, in_asker);
}

static int set_id(struct request *request, struct message_id id)
{
    char *text = request->text;

    if (id.text.len > sizeof request->text) {
        text = request->long_text = malloc(id.text.len);
        if (text == NULL)
            return STDIO_BUS_ERR;
    }
    if (id.text.len > 0)
        memcpy(text, id.text.data, id.text.len);
    request->asker_id.type = id.type;
    request->asker_id.text = slice_of(text, id.text.len);
    request->answerer_id = request->asker_id;
    return STDIO_BUS_OK;
}

static inline void give_back(struct request *request)
{
    if (request->long_text != NULL)
        free(request->long_text);
    request->long_text = NULL;
    if (request->details != NULL)
        details_free(request->table, request->details);
    request->details = NULL;
    request->rewritten = false;
    list_prepend(&request->table->free, &request->in_asker); /* the warmest is used next */
}

/* Into both tables, its ids and hashes being known. NULL: memory is out, and it was given back. */
static inline struct request *enter(struct request *request, struct peer *asker,
                                    struct peer *answerer)
{
    struct requests *requests = request->table;

    request->asker = asker;
    request->answerer = answerer;
    if (hash_table_insert(&requests->by_answerer, request->answerer_hash, request) != STDIO_BUS_OK)
        goto fail;
    if (request_activate(request) == STDIO_BUS_OK) {
        list_append(&answerer->answering, &request->in_answerer);
        return request;
    }
    hash_table_remove(&requests->by_answerer, request->answerer_hash, request);
fail:
    give_back(request);
    return NULL;
}

struct request *requests_add(struct requests *requests, struct peer *asker, struct peer *answerer,
                             struct message_id id, uint64_t id_hash)
{
    struct request *request = take_free(requests);

    if (request == NULL)
        return NULL;
    if (set_id(request, id) != STDIO_BUS_OK) {
        give_back(request);
        return NULL;
    }
    request->id_hash = id_hash;
    request->answerer_hash = mix(id_hash, answerer);
    return enter(request, asker, answerer);
}

struct message_id requests_number_id(char text[NUMBER_DIGITS], uint32_t number)
{
    char digits[NUMBER_DIGITS];
    size_t at = sizeof digits;

    do
        digits[--at] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    memcpy(text, digits + at, sizeof digits - at);
    return (struct message_id){ID_NUMBER, slice_of(text, sizeof digits - at)};
}

/* The id's text is mostly a part of its spelling. */
static int set_raw_id(struct request *request, struct message_id id, struct slice raw)
{
    size_t offset = (size_t)((uintptr_t)id.text.data - (uintptr_t)raw.data);
    bool inside = offset < raw.len && id.text.len <= raw.len - offset;
    size_t len = inside ? raw.len : raw.len + id.text.len;
    char *text = request->text;

    if (len > sizeof request->text) {
        text = request->long_text = malloc(len);
        if (text == NULL)
            return STDIO_BUS_ERR;
    }
    memcpy(text, raw.data, raw.len);
    if (!inside) {
        offset = raw.len;
        if (id.text.len > 0)
            memcpy(text + offset, id.text.data, id.text.len);
    }
    request->raw_id = slice_of(text, raw.len);
    request->asker_id.type = id.type;
    request->asker_id.text = slice_of(text + offset, id.text.len);
    return STDIO_BUS_OK;
}

struct request *requests_add_rewritten(struct requests *requests, struct peer *asker,
                                       struct peer *answerer, struct message_id id,
                                       uint64_t id_hash, struct slice raw, uint64_t number_hash)
{
    struct request *request = take_free(requests);

    if (request == NULL)
        return NULL;
    if (set_raw_id(request, id, raw) != STDIO_BUS_OK) {
        give_back(request);
        return NULL;
    }
    request->rewritten = true;
    request->number = answerer->last_id.value;
    memcpy(request->number_text, answerer->last_id.digits, NUMBER_DIGITS);
    request->answerer_id.type = ID_NUMBER;
    request->answerer_id.text = slice_of(request->number_text, answerer->last_id.len);
    request->id_hash = id_hash;
    request->answerer_hash = mix(number_hash, answerer);
    return enter(request, asker, answerer);
}

int request_activate(struct request *request)
{
    struct requests *requests = request->table;

    request->asker_hash = mix(request->id_hash, request->asker);
    if (hash_table_insert(&requests->by_asker, request->asker_hash, request) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    request->state = REQUEST_ACTIVE;
    list_append(&request->asker->asked, &request->in_asker);
    requests->active_count++;
    return STDIO_BUS_OK;
}

/* Off the asker's side, whatever the state. */
static void leave_asker(struct request *request)
{
    struct requests *requests = request->table;

    switch (request->state) {
    case REQUEST_ACTIVE:
        hash_table_remove(&requests->by_asker, request->asker_hash, request);
        requests->active_count--;
        break;
    case REQUEST_ABANDONED:
        requests->abandoned_count--;
        break;
    case REQUEST_RESERVED:
        request->asker->reserved = NULL;
        break;
    }
    list_remove(&request->in_asker);
    request->asker = NULL;
}

/* Whoever waits for the number wants it as its own id. */
static void end_rewriting(struct request *request)
{
    request->rewritten = false;
    request->asker_id = request->answerer_id;
    request->id_hash = requests_hash(request->table, request->answerer_id);
}

void request_reserve(struct request *request, struct peer *next)
{
    if (request->details != NULL)
        details_free(request->table, request->details);
    request->details = NULL;
    leave_asker(request);
    if (request->rewritten)
        end_rewriting(request);
    request->state = REQUEST_RESERVED;
    request->asker = next;
    next->reserved = request;
}

void request_abandon(struct request *request)
{
    struct requests *requests = request->table;

    if (request->details != NULL)
        list_remove(&request->details->timed);
    leave_asker(request);
    request->state = REQUEST_ABANDONED;
    list_append(&requests->abandoned, &request->in_asker);
    requests->abandoned_count++;
}

void request_remove(struct request *request)
{
    leave_asker(request);
    hash_table_remove(&request->table->by_answerer, request->answerer_hash, request);
    list_remove(&request->in_answerer);
    give_back(request);
}
