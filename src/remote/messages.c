#include "build_config.h"

#include "remote/messages.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/splice.h"
#include "json/document.h"

/* The object without what surrounds it. Its fields are moved along. */
static struct slice object_of(struct slice line, struct scan_fields *fields)
{
    struct scan_field *all[] = {&fields->id, &fields->session_id, &fields->method, &fields->pool};
    const char *brace = memchr(line.data, '{', line.len);
    size_t before = (size_t)(brace - line.data), len = line.len - before;

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i]->type != SCAN_ABSENT)
            all[i]->offset -= before;
    }
    while (brace[len - 1] != '}')
        len--;
    return slice_of(brace, len);
}

const char *messages_make(struct message *message, struct slice text, struct scan_fields *fields,
                          struct message_scratch *scratch)
{
    enum message_problem problem = message_from_scan(message, object_of(text, fields), fields,
                                                     scratch);

    /* The daemon's own fields mean nothing here: a session or a pool of any type is good. */
    return problem == MESSAGE_ID_TYPE || problem == MESSAGE_ID_LENGTH || problem == MESSAGE_ID_RANGE
               ? message_problem_text(problem)
               : NULL;
}

bool messages_is_error(const struct message *message)
{
    const struct json_value *version, *error;
    struct document_error problem;
    struct document document;
    bool is_error;

    if (!message->has_error || document_read(&document, message->bytes, &problem) != STDIO_BUS_OK)
        return false;
    version = document_member(document.root, "jsonrpc");
    error = document_member(document.root, "error");
    is_error = version != NULL && version->type == JSON_STRING &&
               slice_equal(version->text, slice_of("2.0", 3)) && error != NULL &&
               error->type == JSON_OBJECT;
    document_free(&document);
    return is_error;
}

static const char *report(struct slice line, struct scanner *scanner,
                          void (*fn)(void *user, const struct message *message), void *user)
{
    struct message_scratch scratch;
    struct message message;
    const char *problem = messages_make(&message, line, &scanner->fields, &scratch);

    if (problem == NULL)
        fn(user, &message);
    return problem;
}

/* Reads a line that is an object or an array of objects. */
static const char *read_line(struct slice line,
                             void (*fn)(void *user, const struct message *message), void *user)
{
    struct scanner scanner = {.position = 0};
    const char *problem = NULL;

    scanner_reset(&scanner);
    scanner.form = SCAN_LINE_OR_ARRAY;
    while (line.len > 0 && problem == NULL) {
        switch (scanner_run(&scanner, line.data, line.len)) {
        case SCAN_MESSAGE: {
            size_t len = scanner.position;

            problem = report(slice_of(line.data, len), &scanner, fn, user);
            line = slice_of(line.data + len, line.len - len);
            scanner_next(&scanner);
            break;
        }
        case SCAN_BLANK:
            line = slice_of(line.data + scanner.position, line.len - scanner.position);
            scanner_next(&scanner);
            break;
        case SCAN_MORE:
            return "the JSON is not complete";
        case SCAN_INVALID:
            return scan_error_text(scanner.error);
        }
    }
    return problem;
}

const char *messages_read(struct slice text, void (*fn)(void *user, const struct message *message),
                          void *user)
{
    char *line = malloc(text.len + 1);
    const char *problem;

    if (line == NULL)
        return "out of memory";
    if (text.len > 0)
        memcpy(line, text.data, text.len);
    splice_blank(line, text.len, '\n');
    line[text.len] = '\n';
    problem = read_line(slice_of(line, text.len + 1), fn, user);
    free(line);
    return problem;
}
