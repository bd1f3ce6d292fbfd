#include "build_config.h"

#include "router/extras.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* --- the table of tokens --- */

struct key {
    const struct peer *peer;
    struct message_id token;
};

static uint32_t which_of(const struct extras_link *link)
{
    return (uint32_t)((size_t)(link - link->extras->links[0]) / 2);
}

static bool link_equal(const void *item, const void *key)
{
    const struct extras_link *link = item;
    const struct key *wanted = key;

    return link->peer == wanted->peer &&
           message_id_equal(link->extras->tokens[which_of(link)].value, wanted->token);
}

static struct extras_link *find_first(const struct hash_table *by_token, const struct peer *peer,
                                      struct message_id token, uint64_t hash)
{
    struct key key = {peer, token};

    return hash_table_find(by_token, hash, link_equal, &key);
}

/* `next`, which is on no list, becomes the first. There is room for it in the table. */
static void take_place(struct extras_link *first, struct extras_link *next)
{
    struct hash_table *by_token = first->extras->by_token;

    list_init(&next->later);
    list_move_all(&next->later, &first->later);
    hash_table_remove(by_token, first->hash, first);
    hash_table_insert(by_token, next->hash, next);
}

static struct extras_link *take_later(struct extras_link *first)
{
    struct list_node *node = list_take_first(&first->later);

    return node != NULL ? list_entry(node, struct extras_link, node) : NULL;
}

static int link_token(struct extras_link *link, const struct extras_token *token,
                      const struct peer *peer)
{
    struct hash_table *by_token = link->extras->by_token;
    struct extras_link *first;

    link->hash = token->hash ^ peer->number;
    first = find_first(by_token, peer, token->value, link->hash);
    list_init(&link->later);
    if (first == NULL) {
        if (hash_table_insert(by_token, link->hash, link) != STDIO_BUS_OK)
            return STDIO_BUS_ERR;
    } else if (first->extras->abandoned) {
        take_place(first, link);
        list_prepend(&link->later, &first->node);
    } else {
        list_prepend(&first->later, &link->node);
    }
    link->peer = peer;
    return STDIO_BUS_OK;
}

static void unlink_token(struct extras_link *link)
{
    struct extras_link *next;

    if (link->peer == NULL)
        return;
    if (list_linked(&link->node))
        list_remove(&link->node);
    else if ((next = take_later(link)) != NULL)
        take_place(link, next);
    else
        hash_table_remove(link->extras->by_token, link->hash, link);
    link->peer = NULL;
}

/* Moves it after all others with the same peer and token. */
static void move_back(struct extras_link *link)
{
    struct message_id token = link->extras->tokens[which_of(link)].value;
    struct extras_link *first;

    if (link->peer == NULL)
        return;
    if (list_linked(&link->node)) {
        first = find_first(link->extras->by_token, link->peer, token, link->hash);
        list_remove(&link->node);
    } else {
        first = take_later(link);
        if (first == NULL)
            return;
        take_place(link, first);
    }
    list_append(&first->later, &link->node);
}

int extras_link(struct request_extras *extras, struct hash_table *by_token,
                const struct peer *asker, const struct peer *answerer)
{
    unsigned i;

    extras->by_token = by_token;
    for (i = 0; i < EXTRAS_TOKENS; i++) {
        const struct extras_token *token = &extras->tokens[i];

        if (token->raw.data == NULL)
            continue;
        if (asker != NULL &&
            link_token(&extras->links[i][EXTRAS_ASKER], token, asker) != STDIO_BUS_OK)
            return STDIO_BUS_ERR;
        if (answerer != NULL &&
            link_token(&extras->links[i][EXTRAS_ANSWERER], token, answerer) != STDIO_BUS_OK)
            return STDIO_BUS_ERR;
    }
    return STDIO_BUS_OK;
}

void extras_abandon(struct request_extras *extras)
{
    unsigned i;

    list_remove(&extras->timed);
    list_remove(&extras->loading);
    list_remove(&extras->shared);
    subscriptions_answered(&extras->watched, SUBSCRIPTION_UNCERTAIN);
    extras->abandoned = true;
    for (i = 0; i < EXTRAS_TOKENS; i++) {
        unlink_token(&extras->links[i][EXTRAS_ASKER]);
        move_back(&extras->links[i][EXTRAS_ANSWERER]);
    }
}

struct request_extras *extras_find(const struct hash_table *by_token, const struct peer *peer,
                                   struct message_id token, uint64_t hash, uint32_t *which)
{
    const struct extras_link *link = find_first(by_token, peer, token, hash ^ peer->number);

    if (link == NULL)
        return NULL;
    *which = which_of(link);
    return link->extras;
}

/* --- from creation to recycling --- */

static size_t room_for(const struct extras_token *token)
{
    return token->raw.data != NULL ? token->raw.len + token->value.text.len : 0;
}

static char *copy(char *to, struct slice *slice)
{
    if (slice->len > 0)
        memcpy(to, slice->data, slice->len);
    slice->data = to;
    return to + slice->len;
}

static void copy_token(struct extras_token *to, const struct extras_token *from, char **text)
{
    *to = *from;
    if (from->raw.data == NULL)
        return;
    *text = copy(*text, &to->raw);
    *text = copy(*text, &to->value.text);
}

struct request_extras *extras_new(struct list *recycled,
                                  const struct extras_token tokens[EXTRAS_TOKENS],
                                  struct slice names)
{
    struct list_node *node = list_take_first(recycled);
    struct request_extras *extras = node != NULL ? list_entry(node, struct request_extras, timed)
                                                 : calloc(1, sizeof *extras);
    size_t room = names.data != NULL ? names.len : 0, i;
    char *text;

    if (extras == NULL)
        return NULL;
    for (i = 0; i < EXTRAS_TOKENS; i++)
        extras->links[i][EXTRAS_ASKER].extras = extras->links[i][EXTRAS_ANSWERER].extras = extras;
    text = extras->text;
    for (i = 0; i < EXTRAS_TOKENS; i++)
        room += room_for(&tokens[i]);
    if (room > sizeof extras->text) {
        text = extras->long_text = malloc(room);
        if (text == NULL) {
            extras_free(extras);
            return NULL;
        }
    }
    extras->request = NULL;
    extras->task = NULL;
    extras->names_session = extras->abandoned = false;
    extras->kind = EXTRAS_ORDINARY;
    for (i = 0; i < EXTRAS_TOKENS; i++)
        copy_token(&extras->tokens[i], &tokens[i], &text);
    extras->names = names;
    if (names.data != NULL)
        copy(text, &extras->names);
    return extras;
}

void extras_recycle(struct list *recycled, struct request_extras *extras)
{
    unsigned i;

    for (i = 0; i < EXTRAS_TOKENS; i++) {
        unlink_token(&extras->links[i][EXTRAS_ASKER]);
        unlink_token(&extras->links[i][EXTRAS_ANSWERER]);
    }
    list_remove(&extras->timed);
    list_remove(&extras->loading);
    list_remove(&extras->logging);
    list_remove(&extras->shared);
    subscriptions_answered(&extras->watched, SUBSCRIPTION_REFUSED);
    free(extras->long_text);
    extras->long_text = NULL;
    list_prepend(recycled, &extras->timed);
}

void extras_free(struct request_extras *extras)
{
    if (extras == NULL)
        return;
    free(extras->long_text);
    free(extras);
}
