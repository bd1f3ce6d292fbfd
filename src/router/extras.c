#include "build_config.h"

#include "router/extras.h"

#include <stdlib.h>
#include <string.h>

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
                                  const struct extras_token tokens[EXTRAS_TOKENS])
{
    struct list_node *node = list_take_first(recycled);
    struct request_extras *extras = node != NULL ? list_entry(node, struct request_extras, timed)
                                                 : calloc(1, sizeof *extras);
    size_t room = 0, i;
    char *text;

    if (extras == NULL)
        return NULL;
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
    extras->names_session = false;
    for (i = 0; i < EXTRAS_TOKENS; i++)
        copy_token(&extras->tokens[i], &tokens[i], &text);
    return extras;
}

void extras_recycle(struct list *recycled, struct request_extras *extras)
{
    list_remove(&extras->timed);
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
