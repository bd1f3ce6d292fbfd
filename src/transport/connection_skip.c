#include "build_config.h"

#include "transport/connection_io.h"

#define SHOWN_MAX 160 /* bytes of a line in the log */

void connection_tell_skipped(struct connection *connection, struct slice line,
                             const char *problem)
{
    char shown[SHOWN_MAX];

    while (line.len > 0 && (line.data[line.len - 1] == '\n' || line.data[line.len - 1] == '\r'))
        line.len--;
    connection->skipped++;
    log_warn(connection->transport->log, connection->context,
             "skipped output that is no message (%lu so far): %s: \"%s\"", connection->skipped,
             problem, log_escape(shown, sizeof shown, line));
}

bool connection_skip_line(struct connection *connection, const char *problem)
{
    const struct buffer *input = connection->input;
    struct slice line = slice_of(input->data + input->start, buffer_len(input));
    const char *newline = memchr(line.data, '\n', line.len);

    connection->offered.consumed = 0;
    if (newline != NULL) {
        line.len = (size_t)(newline - line.data);
    } else if (line.len < SHOWN_MAX) { /* more of it is worth showing: looked at anew then */
        connection->framing->reset(&connection->framing_state);
        return false;
    }
    connection_tell_skipped(connection, line, problem);
    connection->framing = &framing_rest_of_line;
    return true;
}

void connection_skipped_to(struct connection *connection, const char *end)
{
    if (end[-1] != '\n')
        return;
    connection->framing = &framing_ndjson;
    connection->framing->reset(&connection->framing_state);
}
