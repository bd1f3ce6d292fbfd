#include "build_config.h"

#include "router/kept_message.h"

#include <stdlib.h>

#include "base/error.h"

void kept_message_free(struct kept_message *kept)
{
    free((char *)kept->line.data);
    memset(kept, 0, sizeof *kept);
}

/* In a body, line feeds stand between tokens alone. */
static size_t write_line(char *to, struct slice bytes)
{
    size_t len = bytes.len;

    if (bytes.data[len - 1] == '\n')
        len--;
    memcpy(to, bytes.data, len);
    splice_blank(to, len, '\n');
    to[len] = '\n';
    return len + 1;
}

int kept_message_copy(struct kept_message *kept, const struct message *message)
{
    const struct scan_field *id = &message->fields->id;
    size_t quote = id->type == SCAN_STRING ? 1 : 0;
    struct slice bytes = message->bytes, text = message->id.text;
    char *line = malloc(bytes.len + 1 + text.len);

    kept_message_free(kept);
    if (line == NULL)
        return STDIO_BUS_ERR;
    kept->line = slice_of(line, write_line(line, bytes));
    kept->id.type = message->id.type;
    if (text.len > 0)
        memcpy(line + kept->line.len, text.data, text.len);
    kept->id.text = slice_of(line + kept->line.len, text.len);
    if (message->id.type != ID_NONE)
        kept->at = (struct splice_edit){.offset = id->offset - quote, .len = id->len + 2 * quote};
    return STDIO_BUS_OK;
}

/* The bytes of the id are after those of the line. */
static int set(struct kept_message *kept, struct slice line, struct slice id)
{
    char *copy = malloc(line.len + id.len + 1);

    if (copy == NULL)
        return STDIO_BUS_ERR;
    memcpy(copy, line.data, line.len);
    if (id.len > 0)
        memcpy(copy + line.len, id.data, id.len);
    kept->line = slice_of(copy, line.len);
    kept->id.text = slice_of(copy + line.len, id.len);
    return STDIO_BUS_OK;
}

int kept_message_repeat(struct kept_message *kept, const struct kept_message *other)
{
    kept_message_free(kept);
    kept->id.type = other->id.type;
    kept->at = other->at;
    return set(kept, other->line, other->id.text);
}

void kept_message_archive(struct kept_message *kept, struct archive *archive)
{
    struct slice line = archive_slice(archive, kept->line), id;

    if (line.data == NULL || !archive_ok(archive))
        return;
    ARCHIVE_ENUM(archive, kept->id.type, ID_NUMBER);
    id = archive_slice(archive, kept->id.text);
    ARCHIVE_INTEGER(archive, kept->at.offset);
    ARCHIVE_INTEGER(archive, kept->at.len);
    archive_expect(archive,
                   kept->at.offset <= line.len && kept->at.len <= line.len - kept->at.offset,
                   "the id of a message is beyond its end");
    if (!archive->saves && archive_ok(archive))
        (void)archive_done(archive, set(kept, line, id));
}
