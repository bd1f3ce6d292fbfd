#include "build_config.h"

#include "remote/program.h"

#include <stdio.h>

#include "base/error.h"

#define TEXT_MAX 300 /* as message_write_error has room for */

static void send_edited(struct remote *remote, struct slice bytes, const struct splice_edit *edits,
                        unsigned count)
{
    if (connection_send_body(&remote->program, NULL, bytes, edits, count) != STDIO_BUS_OK)
        log_error(remote->log, "", "out of memory: a message of the server was lost");
}

void program_send(struct remote *remote, struct slice bytes)
{
    send_edited(remote, bytes, NULL, 0);
}

void program_send_error(struct remote *remote, struct message_id id, int code, const char *text)
{
    char reply[MESSAGE_ERROR_MAX], cut[TEXT_MAX + 1];
    size_t len;

    snprintf(cut, sizeof cut, "%s", text);
    len = message_write_error(reply, sizeof reply, id, code, cut);
    send_edited(remote, slice_of(reply, len - 1), NULL, 0); /* without its newline */
}

void program_send_refusal(struct remote *remote, const struct message *error, struct message_id id)
{
    const struct scan_field *field = &error->fields->id;
    bool is_absent = field->type == SCAN_ABSENT;
    const char *brace = memchr(error->bytes.data, '{', error->bytes.len);
    char text[MESSAGE_ERROR_MAX];
    struct splice_edit edit = {.offset = field->offset, .len = field->len};

    if (is_absent) {
        edit.offset = (size_t)(brace - error->bytes.data) + 1;
        edit.len = 0;
    }
    edit.text.data = text;
    edit.text.len = message_write_around(text, sizeof text, is_absent ? "\"id\":" : "", id,
                                         is_absent ? "," : "");
    send_edited(remote, error->bytes, &edit, 1);
}
