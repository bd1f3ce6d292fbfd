#include "build_config.h"

#include "router/handshake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "router/abilities.h"
#include "json/document.h"

struct handshake *handshake_of(struct peer *worker, struct shared_handshakes *shared)
{
    struct handshake *handshake = worker->handshake;

    if (handshake != NULL)
        return handshake;
    handshake = calloc(1, sizeof *handshake);
    if (handshake == NULL)
        return NULL;
    handshake->worker = worker;
    handshake->shared = shared;
    list_init(&handshake->versions);
    list_init(&handshake->waiting);
    list_init(&handshake->own);
    list_init(&handshake->levels);
    remembering_init(&handshake->remembering);
    process_subscriptions_init(&handshake->subscriptions,
                               shared != NULL ? &shared->subscriptions : NULL, worker->number);
    worker->handshake = handshake;
    return handshake;
}

static void forget_parts(struct handshake *handshake)
{
    size_t i;

    for (i = 0; i < HANDSHAKE_PARTS; i++)
        kept_message_free(&handshake->parts[i]);
    memset(&handshake->answer, 0, sizeof handshake->answer);
    handshake->answered = handshake->lost = handshake->replays = false;
}

int handshake_keep(struct handshake *handshake, enum handshake_part part,
                   const struct message *message)
{
    size_t max = HANDSHAKE_PART_MAX;

    if (handshake->shared != NULL)
        max += OFFER_BYTES_MAX;
    if (part == HANDSHAKE_INITIALIZE)
        forget_parts(handshake);
    if (message->bytes.len > max) {
        kept_message_free(&handshake->parts[part]);
        handshake->lost = true;
        return STDIO_BUS_OK;
    }
    return kept_message_copy(&handshake->parts[part], message);
}

int handshake_begin(struct handshake *handshake, const struct message *initialize,
                    struct slice version)
{
    handshake->begun_len = version.len;
    if (version.len > 0)
        memcpy(handshake->begun, version.data, version.len);
    return handshake_keep(handshake, HANDSHAKE_INITIALIZE, initialize);
}

enum handshake_list handshake_list_of(enum remembered_list list)
{
    static const enum handshake_list of[REMEMBERED_LISTS] = {
        [REMEMBERED_TOOLS] = HANDSHAKE_TOOLS,
        [REMEMBERED_PROMPTS] = HANDSHAKE_PROMPTS,
        [REMEMBERED_RESOURCES] = HANDSHAKE_RESOURCES,
        [REMEMBERED_TEMPLATES] = HANDSHAKE_RESOURCES,
    };

    return of[list];
}

static void read_result(struct handshake_answer *to, const struct json_value *result)
{
    static const char *const lists[] = {
        [HANDSHAKE_TOOLS] = "tools",
        [HANDSHAKE_PROMPTS] = "prompts",
        [HANDSHAKE_RESOURCES] = "resources",
    };
    const struct json_value *version = document_member_of(result, "protocolVersion", JSON_STRING),
                            *ability, *changes;
    size_t i;

    if (version != NULL)
        snprintf(to->version, sizeof to->version, "%s", version->text.data);
    for (i = 0; i < HANDSHAKE_LISTS; i++) {
        ability = document_member(document_member(result, "capabilities"), lists[i]);
        changes = document_member_of(ability, "listChanged", JSON_BOOLEAN);
        to->has[i] = ability != NULL;
        to->announces[i] = changes != NULL && changes->boolean;
    }
}

int handshake_read_answer(struct handshake_answer *to, const struct message *answer)
{
    memset(to, 0, sizeof *to);
    if (!answer->has_result || answer->has_error || answer->bytes.len > HANDSHAKE_PART_MAX)
        return STDIO_BUS_EINVAL;
    return handshake_read_line(to, answer->bytes);
}

int handshake_read_line(struct handshake_answer *to, struct slice line)
{
    struct document_error error;
    struct document document;
    int result;

    memset(to, 0, sizeof *to);
    result = document_read(&document, line, &error);
    if (result != STDIO_BUS_OK)
        return result;
    read_result(to, document_member(document.root, "result"));
    document_free(&document);
    return STDIO_BUS_OK;
}

int handshake_note_answer(struct handshake *handshake, const struct message *answer)
{
    int result;

    if (handshake == NULL || !answer->has_result || answer->has_error)
        return STDIO_BUS_OK;
    result = handshake_read_answer(&handshake->answer, answer);
    if (result == STDIO_BUS_ERR)
        return result;
    handshake->answered = true;
    handshake->lost = handshake->lost || result != STDIO_BUS_OK;
    return STDIO_BUS_OK;
}

void handshake_note_errand(struct handshake *handshake)
{
    if (handshake->shared == NULL || list_linked(&handshake->errand))
        return;
    list_append(&handshake->shared->errands, &handshake->errand);
    handshake->shared->noted = true;
}

bool handshake_outlives_clients(const struct handshake *handshake)
{
    return handshake->shared != NULL && (peer_serves(handshake->worker) || handshake->replays);
}

bool handshake_is_busy(const struct handshake *handshake)
{
    return handshake != NULL && (!list_empty(&handshake->waiting) || !list_empty(&handshake->own));
}

static const char *const levels[] = {"debug", "info",     "notice", "warning",
                                     "error", "critical", "alert",  "emergency"};

const char *handshake_level(enum log_rank rank)
{
    return levels[rank - RANK_DEBUG];
}

enum log_rank handshake_rank(struct slice level)
{
    unsigned rank;

    for (rank = RANK_DEBUG; rank <= RANK_EMERGENCY; rank++) {
        const char *name = levels[rank - RANK_DEBUG];

        if (slice_is(level, name))
            return (enum log_rank)rank;
    }
    return RANK_NONE;
}

static void let_go(struct list *extras)
{
    while (list_take_first(extras) != NULL) {
    }
}

void handshake_forget(struct peer *worker)
{
    struct handshake *handshake = worker->handshake;

    worker->handshake = NULL;
    if (handshake == NULL)
        return;
    ASSERT(list_empty(&handshake->waiting));
    list_remove(&handshake->errand);
    forget_parts(handshake);
    versions_forget(&handshake->versions, true);
    let_go(&handshake->own);
    let_go(&handshake->levels);
    subscriptions_clear(&handshake->subscriptions);
    remembering_clear(&handshake->remembering);
    free(handshake);
}
