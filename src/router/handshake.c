#include "build_config.h"

#include "router/handshake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "json/document.h"

static void forget(struct handshake_message *part)
{
    free((char *)part->bytes.data);
    memset(part, 0, sizeof *part);
}

static void forget_all(struct handshake *handshake)
{
    size_t i;

    for (i = 0; i < HANDSHAKE_PARTS; i++)
        forget(&handshake->parts[i]);
    memset(handshake, 0, sizeof *handshake);
}

int handshake_keep(struct handshake **place, enum handshake_part part,
                   const struct message *message)
{
    struct slice bytes = message->bytes, id = message->id.text;
    struct handshake_message *kept;
    char *copy;

    if (*place == NULL && (*place = calloc(1, sizeof **place)) == NULL)
        return STDIO_BUS_ERR;
    if (part == HANDSHAKE_INITIALIZE)
        forget_all(*place);
    kept = &(*place)->parts[part];
    forget(kept);
    if (bytes.len > HANDSHAKE_PART_MAX) {
        (*place)->lost = true;
        return STDIO_BUS_OK;
    }
    copy = malloc(bytes.len + id.len);
    if (copy == NULL)
        return STDIO_BUS_ERR;
    memcpy(copy, bytes.data, bytes.len);
    kept->bytes = slice_of(copy, bytes.len);
    kept->id.type = message->id.type;
    if (id.len > 0)
        memcpy(copy + bytes.len, id.data, id.len);
    kept->id.text = slice_of(copy + bytes.len, id.len);
    return STDIO_BUS_OK;
}

/* NULL: it is not an object, or has no such member. */
static const struct json_value *member_of(const struct json_value *object, const char *key)
{
    return object != NULL && object->type == JSON_OBJECT ? document_member(object, key) : NULL;
}

static void read_result(struct handshake_answer *to, const struct json_value *result)
{
    static const char *const lists[] = {
        [HANDSHAKE_TOOLS] = "tools",
        [HANDSHAKE_PROMPTS] = "prompts",
        [HANDSHAKE_RESOURCES] = "resources",
    };
    const struct json_value *version = member_of(result, "protocolVersion"), *changes;
    size_t i;

    if (version != NULL && version->type == JSON_STRING)
        snprintf(to->version, sizeof to->version, "%s", version->text.data);
    for (i = 0; i < HANDSHAKE_LISTS; i++) {
        changes = member_of(member_of(member_of(result, "capabilities"), lists[i]), "listChanged");
        to->announces[i] = changes != NULL && changes->type == JSON_BOOLEAN && changes->boolean;
    }
}

int handshake_read_answer(struct handshake_answer *to, const struct message *answer)
{
    struct document_error error;
    struct document document;
    int result;

    memset(to, 0, sizeof *to);
    if (!answer->has_result || answer->has_error || answer->bytes.len > HANDSHAKE_PART_MAX)
        return STDIO_BUS_EINVAL;
    result = document_read(&document, answer->bytes, &error);
    if (result != STDIO_BUS_OK)
        return result;
    read_result(to, member_of(document.root, "result"));
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

void handshake_free(struct handshake *handshake)
{
    if (handshake == NULL)
        return;
    forget_all(handshake);
    free(handshake);
}
