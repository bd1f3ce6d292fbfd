#include "build_config.h"

#include "router/abilities.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/slice.h"
#include "json/param_fields.h"
#include "json/string.h"

#define CLIENT_NAME_MAX 1024 /* bytes */

static bool is_object(struct slice value)
{
    return value.data[0] == '{';
}

/* The member, if it is an object. */
static bool object_in(struct slice object, const char *name, struct slice *value)
{
    return param_fields_member(object, name, value) && is_object(*value);
}

/* --- what a client has --- */

static bool has(struct slice object, const char *name)
{
    struct slice value;

    return object_in(object, name, &value);
}

/* Without members elicitation means forms, as in revisions that know no others. */
static unsigned read_capabilities(struct slice capabilities)
{
    struct slice value;
    unsigned abilities = 0;

    if (object_in(capabilities, "sampling", &value))
        abilities |= 1u << ABILITY_SAMPLING | (unsigned)has(value, "tools") << ABILITY_TOOLS;
    if (object_in(capabilities, "elicitation", &value)) {
        bool url = has(value, "url");

        abilities |= (unsigned)url << ABILITY_URL | (unsigned)(!url || has(value, "form"))
                                                        << ABILITY_FORM;
    }
    return abilities | (unsigned)has(capabilities, "roots") << ABILITY_ROOTS;
}

unsigned abilities_read(const struct message *initialize)
{
    struct slice params, capabilities;
    unsigned known = 1u << ABILITY_KNOWN;

    if (!object_in(initialize->bytes, "params", &params) ||
        !object_in(params, "capabilities", &capabilities))
        return known;
    return known | read_capabilities(capabilities);
}

/* Returns the length without the end of a character that is cut. */
static size_t whole_len(const char *text, size_t len)
{
    while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
        len--;
    return len;
}

void client_program_read(char *to, size_t size, const struct message *initialize)
{
    struct slice params, info, name = {NULL, 0};
    char decoded[CLIENT_NAME_MAX + 1];
    size_t len;

    to[0] = '\0';
    if (!object_in(initialize->bytes, "params", &params) ||
        !object_in(params, "clientInfo", &info) || !param_fields_member(info, "name", &name) ||
        name.data[0] != '"')
        return;
    len = json_string_decode(decoded, CLIENT_NAME_MAX, slice_of(name.data + 1, name.len - 2));
    if (len > CLIENT_NAME_MAX)
        return;
    decoded[len] = '\0';
    if (len > size - 1)
        len = whole_len(decoded, size - 1);
    memcpy(to, decoded, len);
    to[len] = '\0';
}

/* --- the offer --- */

/* What is offered, in the objects of an initialize. The last of a list has no name. */
struct member {
    const char *name, *value; /* if it is missing, or is neither this nor an object like it */
    const struct member *members;
};

#define SAMPLING "{\"tools\":{}}"
#define ELICITATION "{\"form\":{},\"url\":{}}"
#define ROOTS "{\"listChanged\":true}"
#define EVERYTHING "{\"sampling\":" SAMPLING ",\"elicitation\":" ELICITATION ",\"roots\":" ROOTS "}"

static const struct member no_members[] = {{NULL, NULL, NULL}};
static const struct member of_sampling[] = {{"tools", "{}", no_members}, {NULL, NULL, NULL}};
static const struct member of_elicitation[] = {
    {"form", "{}", no_members}, {"url", "{}", no_members}, {NULL, NULL, NULL}};
static const struct member of_roots[] = {{"listChanged", "true", NULL}, {NULL, NULL, NULL}};
static const struct member of_capabilities[] = {{"sampling", SAMPLING, of_sampling},
                                                {"elicitation", ELICITATION, of_elicitation},
                                                {"roots", ROOTS, of_roots},
                                                {NULL, NULL, NULL}};
static const struct member of_params[] = {{"capabilities", EVERYTHING, of_capabilities},
                                          {NULL, NULL, NULL}};

#define EDITS_MAX 8 /* of these members each is put in, or replaced, at most once */

/* In the order of their places. */
struct edits {
    const char *start;
    struct splice_edit at[EDITS_MAX];
    char texts[EDITS_MAX][OFFER_BYTES_MAX];
    unsigned count;
};

/* The text takes the place of `value`, or comes before it if that has no length. */
static void add_edit(struct edits *edits, struct slice value, const char *text, size_t len)
{
    char *copy = edits->texts[edits->count];
    size_t offset = (size_t)(value.data - edits->start);
    struct splice_edit *at = &edits->at[edits->count];

    ASSERT(edits->count < EDITS_MAX && len < OFFER_BYTES_MAX);
    edits->count++;
    memcpy(copy, text, len);
    for (; at > edits->at && at[-1].offset > offset; at--)
        *at = at[-1];
    *at = (struct splice_edit){offset, value.len, slice_of(copy, len)};
}

static bool is_empty(struct slice object)
{
    const char *p = object.data + 1;

    while (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n')
        p++;
    return *p == '}';
}

/* Puts the members into an object that lacks them. */
static void complete(struct edits *edits, struct slice object, const struct member *members)
{
    char missing[OFFER_BYTES_MAX + 1];
    size_t len = 0;
    struct slice found;

    for (; members->name != NULL; members++) {
        const char *value = members->value;

        if (!param_fields_member(object, members->name, &found))
            len += (size_t)snprintf(missing + len, sizeof missing - len, "\"%s\":%s,",
                                    members->name, value);
        else if (is_object(found) && value[0] == '{')
            complete(edits, found, members->members);
        else if (!slice_is(found, value))
            add_edit(edits, found, value, strlen(value));
    }
    ASSERT(len < sizeof missing);
    if (len > 0 && is_empty(object))
        len--; /* no comma before the end */
    if (len > 0)
        add_edit(edits, slice_of(object.data + 1, 0), missing, len);
}

int offer_make(struct offer *offer, const struct message *initialize)
{
    const struct slice bytes = initialize->bytes;
    struct edits edits = {.start = bytes.data};
    struct slice params;
    size_t len, id = initialize->fields->id.offset;
    char *line;

    if (object_in(bytes, "params", &params))
        complete(&edits, params, of_params);
    len = splice_len(bytes.len, edits.at, edits.count);
    line = malloc(len);
    if (line == NULL)
        return STDIO_BUS_ERR;
    splice_write(line, bytes.data, 0, bytes.len, edits.at, edits.count);
    offer->message = *initialize;
    offer->message.bytes = slice_of(line, len);
    offer->fields = *initialize->fields;
    offer->message.fields = &offer->fields;
    for (unsigned i = 0; i < edits.count && edits.at[i].offset < id; i++)
        offer->fields.id.offset += edits.at[i].text.len - edits.at[i].len;
    return STDIO_BUS_OK;
}

void offer_free(struct offer *offer)
{
    free((char *)offer->message.bytes.data);
}
