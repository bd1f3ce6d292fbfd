#include "build_config.h"

#include "config/command_line.h"

#include <stdlib.h>
#include <string.h>

#include "config/pool_mode.h"
#include "config/pool_name.h"

#define VALUES_MAX 11 /* beside the arguments */

/* Adds a child in front of the others. */
static struct json_value *add(struct json_value **unused, struct json_value *parent,
                              const char *key, enum json_type type, const char *text)
{
    struct json_value *value = (*unused)++;

    *value = (struct json_value){
        .type = type,
        .text = slice_of(text, strlen(text)),
        .parent = parent,
        .key = slice_of(key, strlen(key)),
        .next = parent->first,
    };
    parent->first = value;
    parent->count++;
    return value;
}

/* Where one client is all that there will be, no process is kept for another one. Without a
 * protocol nothing tells which messages of a shared process are for the client. */
static void add_mode(struct json_value **unused, struct json_value *pool,
                     const struct command_line *line)
{
    bool plain = line->protocol == NULL && line->clients == NULL && line->instances == NULL;
    struct pool_mode mode;

    if (line->protocol != NULL)
        add(unused, pool, "protocol", JSON_STRING, line->protocol);
    if (line->framing != NULL)
        add(unused, pool, "framing", JSON_STRING, line->framing);
    if (line->clients != NULL)
        add(unused, pool, "clients", JSON_STRING, line->clients);
    else if (plain && line->one_client)
        add(unused, pool, "clients", JSON_STRING, "exclusive");
    if (line->instances != NULL)
        add(unused, pool, "instances", JSON_NUMBER, line->instances);
    pool_mode_read(&mode, pool);
    if (line->one_client && mode.spare > 0)
        add(unused, pool, "spare", JSON_NUMBER, "0");
}

struct json_value *command_line_document(const struct command_line *line)
{
    struct json_value *root, *pools, *pool, *args, *unused;
    size_t count = 0;
    char *id;

    do
        count++;
    while (line->words[count] != NULL);
    root = calloc(1, (VALUES_MAX + count) * sizeof *root + POOL_ID_MAX + 1);
    if (root == NULL)
        return NULL;
    id = (char *)(root + VALUES_MAX + count);
    pool_name(id, line->words);
    root->type = JSON_OBJECT;
    unused = root + 1;
    pools = add(&unused, root, "pools", JSON_ARRAY, "");
    pool = add(&unused, pools, "", JSON_OBJECT, "");
    add(&unused, pool, "id", JSON_STRING, id);
    add(&unused, pool, "command", JSON_STRING, line->words[0]);
    args = add(&unused, pool, "args", JSON_ARRAY, "");
    while (--count > 0)
        add(&unused, args, "", JSON_STRING, line->words[count])->index = count - 1;
    add_mode(&unused, pool, line);
    return root;
}
