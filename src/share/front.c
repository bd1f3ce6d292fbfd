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

/* The client, which is read until it has asked something. */
struct refused {
    const struct framing *framing;
    struct framing_state state;
    struct scanner scanner;
    char *bytes; /* that are no whole frame yet */
    size_t len;
    const char *reason;
};

static void write_frame(const struct framing *framing, struct slice line)
{
    struct slice body = framing->prefix != NULL ? slice_without_newline(line) : line;
    char prefix[FRAME_PREFIX_MAX];
    size_t len = framing->prefix != NULL ? framing->prefix(prefix, body.len) : 0;

    if (descriptor_write_all(STDOUT_FILENO, prefix, len)) /* else it is lost */
        (void)descriptor_write_all(STDOUT_FILENO, body.data, body.len);
}

/* True once a request was answered. */
static bool refuse_message(const struct refused *refused, struct slice body)
{
    struct message_scratch scratch;
    struct message message;
    char reply[MESSAGE_ERROR_MAX];
    size_t len;

    if (message_from_scan(&message, body, &refused->scanner.fields, &scratch) != MESSAGE_OK ||
        message.id.type == ID_NONE || message_is_response(&message))
        return false;
    len = message_write_error(reply, sizeof reply, message.id, JSONRPC_SERVER_ERROR,
                              refused->reason);
    write_frame(refused->framing, slice_of(reply, len));
    return true;
}

/* Takes the frames that are whole, and keeps the rest. True: no more are to be read, since a
 * request was answered, or the client cannot be understood. */
static bool refuse_frames(struct refused *refused)
{
    struct slice left = slice_of(refused->bytes, refused->len);
    struct frame frame = {.consumed = 0};
    enum frame_status status = FRAME_MORE;
    bool answered = false;

    while (!answered) {
        status = refused->framing->next(&refused->state, left, &frame);
        if (status != FRAME_WHOLE && status != FRAME_SKIP && status != FRAME_REFUSED)
            break;
        if (status == FRAME_WHOLE)
            answered = refuse_message(refused, slice_of(left.data, frame.consumed));
        left = slice_of(left.data + frame.consumed, left.len - frame.consumed);
    }
    memmove(refused->bytes, left.data, left.len);
    refused->len = left.len;
    return answered || status == FRAME_MALFORMED;
}

void front_refuse(const char *reason, const struct framing *framing)
{
    struct pollfd ready = {.fd = STDIN_FILENO, .events = POLLIN};
    struct refused refused = {
        .framing = framing != NULL ? framing : &framing_ndjson,
        .state = {.check = &json_body_check, .max_body = REFUSED_MAX},
        .reason = reason,
    };
    ssize_t got = 1;

    if (isatty(STDIN_FILENO)) /* a person reads stderr */
        return;
    refused.state.check_state = &refused.scanner;
    refused.framing->reset(&refused.state);
    refused.bytes = malloc(REFUSED_MAX);

    while (refused.bytes != NULL && got != 0 && refused.len < REFUSED_MAX) {
        got = read(STDIN_FILENO, refused.bytes + refused.len, REFUSED_MAX - refused.len);
        if (got > 0)
            refused.len += (size_t)got;
        else if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            got = descriptor_poll(&ready, 1, -1);
        if (got < 0 && errno != EINTR)
            break;
        if (refuse_frames(&refused))
            break;
    }
    free(refused.bytes);
}
