#include "build_config.h"

#include "router/details.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "router/requests.h"

#define BLOCK_DETAILS 16

struct details_block {
    struct details_block *next;
    struct request_details details[BLOCK_DETAILS];
};

static int add_block(struct requests *requests)
{
    struct details_block *block = calloc(1, sizeof *block);
    size_t i;

    if (block == NULL)
        return STDIO_BUS_ERR;
    block->next = requests->details_blocks;
    requests->details_blocks = block;
    for (i = 0; i < BLOCK_DETAILS; i++)
        list_append(&requests->free_details, &block->details[i].timed);
    return STDIO_BUS_OK;
}

static size_t room_for(const struct details_token *token)
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

static void copy_token(struct details_token *to, const struct details_token *from, char **text)
{
    *to = *from;
    if (from->raw.data == NULL)
        return;
    *text = copy(*text, &to->raw);
    *text = copy(*text, &to->value.text);
}

struct request_details *details_new(struct requests *requests,
                                    const struct details_token tokens[DETAILS_TOKENS])
{
    struct request_details *details;
    size_t room = 0, i;
    char *text;

    if (list_empty(&requests->free_details) && add_block(requests) != STDIO_BUS_OK)
        return NULL;
    details = list_entry(requests->free_details.head.next, struct request_details, timed);
    text = details->text;
    for (i = 0; i < DETAILS_TOKENS; i++)
        room += room_for(&tokens[i]);
    if (room > sizeof details->text) {
        text = details->long_text = malloc(room);
        if (text == NULL)
            return NULL;
    }
    list_remove(&details->timed);
    details->request = NULL;
    details->learns = false;
    for (i = 0; i < DETAILS_TOKENS; i++)
        copy_token(&details->tokens[i], &tokens[i], &text);
    return details;
}

void details_free(struct requests *requests, struct request_details *details)
{
    list_remove(&details->timed);
    free(details->long_text);
    details->long_text = NULL;
    list_prepend(&requests->free_details, &details->timed);
}

void details_free_all(struct requests *requests)
{
    struct details_block *block = requests->details_blocks;

    while (block != NULL) {
        struct details_block *next = block->next;
        size_t i;

        for (i = 0; i < BLOCK_DETAILS; i++)
            free(block->details[i].long_text);
        free(block);
        block = next;
    }
    requests->details_blocks = NULL;
}
