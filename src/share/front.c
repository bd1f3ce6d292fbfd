#include "build_config.h"

#include "share/front.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "json/message.h"

#define DRAIN_SEC 1 /* after SIGTERM; programs send SIGKILL two seconds later */
#define REFUSED_MAX ((size_t)1 << 20)

/* Nothing is learned about the server that the daemon does not know: neither its era nor what it is
 * busy with. Its questions get numbers of this process, since those of the next daemon may be the
 * same as those of the last. */
static struct pool_mode mode_of(enum pool_protocol protocol)
{
    return (struct pool_mode){
        .clients = CLIENTS_EXCLUSIVE,
        .stateless = CLIENTS_SHARED,
        .protocol = protocol,
        .on_exit = protocol == PROTOCOL_MCP       ? EXIT_REPLAYS
                   : protocol == PROTOCOL_UNKNOWN ? EXIT_REPLACES
                                                  : EXIT_CLOSES,
        .rewrite_ids = true,
        .is_front = true,
        .spare = 1,
    };
}

enum pool_protocol front_protocol(const char *name)
{
    int i;

    for (i = 0; name != NULL && pool_mode_protocol_words[i] != NULL; i++) {
        if (strcmp(name, pool_mode_protocol_words[i]) == 0)
            return (enum pool_protocol)(i + 1);
    }
    return PROTOCOL_UNKNOWN;
}

enum bus_outcome front_run(const struct front *front)
{
    char name[] = "shared";
    char *words[] = {name, NULL};
    struct pool_config pool = {
        .id = name,
        .command = name,
        .argv = words,
        .instances = 1,
        .skip_bad_output = true,
        .mode = mode_of(front->protocol),
    };
    struct config config = {
        .pools = &pool,
        .pool_count = 1,
        .has_protocol = true,
        .limits = LIMITS_DEFAULT,
        .splits_arrays = true,
    };
    struct bus_options options = {
        .config = &config,
        .log = front->log,
        .stdio = true,
        .framing = front->framing,
        .dialer = front->dialer,
        .ends_on_hangup = true,
        .handle_signals = true,
    };
    enum bus_outcome outcome = BUS_SYSTEM_ERROR;
    struct stdio_bus *bus;

    config.limits.drain_timeout_sec = DRAIN_SEC;
    bus = bus_create(&options);
    if (bus != NULL && bus_start(bus) == STDIO_BUS_OK) {
        do
            outcome = bus_step(bus, -1);
        while (outcome == BUS_RUNNING);
    }
    bus_destroy(bus);
    return outcome;
}

/* --- no server --- */

/* True once a request was answered. */
static bool refuse_line(struct slice line, const char *reason)
{
    struct scanner scanner = {.position = 0};
    struct message_scratch scratch;
    struct message message;
    char reply[MESSAGE_ERROR_MAX];
    size_t len;

    scanner_reset(&scanner);
    if (scanner_run(&scanner, line.data, line.len) != SCAN_MESSAGE ||
        message_from_scan(&message, line, &scanner.fields, &scratch) != MESSAGE_OK ||
        message.id.type == ID_NONE || message_is_response(&message))
        return false;
    len = message_write_error(reply, sizeof reply, message.id, JSONRPC_SERVER_ERROR, reason);
    (void)descriptor_write_all(STDOUT_FILENO, reply, len); /* else it is lost */
    return true;
}

/* Answers the lines that are whole, and keeps the rest. */
static bool refuse_lines(char *bytes, size_t *len, const char *reason)
{
    char *line = bytes, *newline;
    bool answered = false;

    while (!answered && (newline = memchr(line, '\n', *len)) != NULL) {
        size_t line_len = (size_t)(newline - line) + 1;

        answered = refuse_line(slice_of(line, line_len), reason);
        line += line_len;
        *len -= line_len;
    }
    memmove(bytes, line, *len);
    return answered;
}

void front_refuse(const char *reason)
{
    struct pollfd ready = {.fd = STDIN_FILENO, .events = POLLIN};
    char *bytes;
    size_t len = 0;
    ssize_t got = 1;

    if (isatty(STDIN_FILENO)) /* a person reads stderr */
        return;
    bytes = malloc(REFUSED_MAX);

    while (bytes != NULL && got != 0 && len < REFUSED_MAX) {
        got = read(STDIN_FILENO, bytes + len, REFUSED_MAX - len);
        if (got > 0)
            len += (size_t)got;
        else if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            got = descriptor_poll(&ready, 1, -1);
        if (got < 0 && errno != EINTR)
            break;
        if (refuse_lines(bytes, &len, reason))
            break;
    }
    free(bytes);
}
