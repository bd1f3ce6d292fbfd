#include "build_config.h"

#include "remote/remote.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "remote/messages.h"
#include "remote/program.h"
#include "remote/request.h"
#include "remote/session.h"
#include "json/message.h"

#define STARVED_MS 100
#define PARTING_MS 2000  /* for the server's answer to DELETE */
#define FLUSHING_MS 5000 /* for a program that does not read */
#define FOREVER_SEC 31536000

static struct remote *remote_of(struct connection *connection)
{
    return list_entry(connection, struct remote, program);
}

/* --- the end --- */

/* Nothing more is taken from the program or for it. */
static void part(struct remote *remote, enum remote_outcome outcome)
{
    struct list_node *node, *following;

    if (remote->phase >= REMOTE_PHASE_PARTING)
        return;
    remote->outcome = outcome;
    connection_stop_input(&remote->program);
    list_each(&remote->calls, node, following)
        call_end(list_entry(node, struct call, node));
    session_part(remote);
    stdio_bus_event_loop_start_timer(remote->loop, &remote->parting, PARTING_MS);
}

static void parting_is_over(void *user_data)
{
    struct remote *remote = user_data;

    remote->phase = remote->phase == REMOTE_PHASE_PARTING ? REMOTE_PHASE_FLUSHING
                                                          : REMOTE_PHASE_STOPPED;
}

/* Requests in flight after the end of stdin are answered first. */
static bool go_on(struct remote *remote)
{
    if (remote->is_lost)
        part(remote, REMOTE_LOST);
    if (remote->phase == REMOTE_PHASE_ENDING && remote->request_count == 0 && remote->holds == 0)
        part(remote, remote->outcome);
    if (remote->phase != REMOTE_PHASE_FLUSHING)
        return false;
    if (!connection_is_open(&remote->program)) {
        remote->phase = REMOTE_PHASE_STOPPED;
        return true;
    }
    if (remote->program.output_state != OUTPUT_OPEN)
        return false;
    connection_linger(&remote->program);
    stdio_bus_event_loop_start_timer(remote->loop, &remote->parting, FLUSHING_MS);
    return true;
}

static bool after_round(void *user_data)
{
    struct remote *remote = user_data;
    bool more = go_on(remote);

    connection_flush_all(&remote->transport);
    calls_trim(remote);
    return more || !list_empty(&remote->transport.dirty);
}

static void signalled(void *user_data, int signo)
{
    struct remote *remote = user_data;

    if (signo == SIGUSR1 || signo == SIGUSR2 || signo == SIGCHLD)
        return;
    if (remote->phase >= REMOTE_PHASE_PARTING)
        remote->phase = REMOTE_PHASE_STOPPED;
    else
        part(remote, REMOTE_DONE);
}

/* --- the program --- */

static void read_program(struct connection *connection, struct slice body)
{
    struct remote *remote = remote_of(connection);
    struct scan_fields fields = remote->scanner.fields; /* they may be read again after a pause */
    struct message_scratch scratch;
    struct message message;
    const char *problem;

    if (remote->holds > 0) {
        connection_pause(connection);
        return;
    }
    problem = messages_make(&message, body, &fields, &scratch);
    if (problem != NULL)
        program_send_error(remote, message.id, JSONRPC_INVALID_REQUEST, problem);
    else
        request_take(remote, &message);
}

static void malformed(struct connection *connection, enum frame_fault fault, const char *problem)
{
    struct remote *remote = remote_of(connection);
    static const struct message_id no_id;

    program_send_error(remote, no_id,
                       fault == FRAME_FAULT_SYNTAX ? JSONRPC_PARSE_ERROR : JSONRPC_INVALID_REQUEST,
                       problem);
    log_error(remote->log, "", "stdin has something that is no message: %s", problem);
    part(remote, REMOTE_MALFORMED);
}

static void refused(struct connection *connection, enum frame_fault fault, const char *problem)
{
    static const struct message_id no_id;

    program_send_error(remote_of(connection), no_id,
                       fault == FRAME_FAULT_SYNTAX ? JSONRPC_PARSE_ERROR : JSONRPC_INVALID_REQUEST,
                       problem);
}

static void ended(struct connection *connection, size_t cut)
{
    struct remote *remote = remote_of(connection);

    if (cut > 0)
        log_warn(remote->log, "", "stdin ended within a line: %zu bytes are dropped", cut);
    if (remote->phase == REMOTE_PHASE_SERVING)
        remote->phase = REMOTE_PHASE_ENDING;
    requests_stop_open(remote);
}

static void report_full(struct connection *connection, bool full)
{
    if (!full)
        links_resume(remote_of(connection));
}

static void failed(struct connection *connection, enum connection_failure failure, int error)
{
    struct remote *remote = remote_of(connection);

    if (failure == CONNECTION_STALLED) { /* the program may take its time */
        connection_renew_stall(connection);
        return;
    }
    connection_close(connection);
    if (failure == CONNECTION_LINGERED) {
        remote->phase = REMOTE_PHASE_STOPPED;
        return;
    }
    log_error(remote->log, "", "stdout is closed%s%s", error != 0 ? ": " : "",
              error != 0 ? strerror(error) : "");
    part(remote, REMOTE_OUTPUT_CLOSED);
}

static void retry_program(void *user_data)
{
    struct remote *remote = user_data;

    connection_resume(&remote->program);
}

static void starved(struct connection *connection)
{
    struct remote *remote = remote_of(connection);

    stdio_bus_event_loop_start_timer(remote->loop, &remote->program_retry, STARVED_MS);
}

static const struct connection_handler program_handler = {
    .frame = read_program,
    .malformed = malformed,
    .refused = refused,
    .ended = ended,
    .full = report_full,
    .failed = failed,
    .starved = starved,
};

/* --- the run --- */

static void set_up(struct remote *remote, const struct remote_options *options)
{
    static const struct limits limits = LIMITS_DEFAULT;

    remote->options = options;
    remote->log = options->log;
    remote->tunnel_command = (struct tunnel_command){&options->url, &remote->proxy,
                                                     options->tls_command};
    remote->limits = limits;
    remote->limits.max_input_buffer = remote->limits.max_frame_body = limits.max_message;
    memcpy(remote->path, options->url.path, sizeof remote->path);
    list_init(&remote->links);
    list_init(&remote->calls);
    list_init(&remote->session.waiting);
    timer_init(&remote->program_retry, retry_program, remote);
    timer_init(&remote->parting, parting_is_over, remote);
    remote->program.fd_in = remote->program.fd_out = -1;
    remote->scanner.splits_arrays = true;
}

static int open_program(struct remote *remote)
{
    const struct connection_options options = {
        .handler = &program_handler,
        .framing = remote->options->framing,
        .check = &json_body_check,
        .check_state = &remote->scanner,
        .context = "program",
        .fd_in = STDIN_FILENO,
        .fd_out = STDOUT_FILENO,
        .borrowed = true,
    };

    return connection_open(&remote->program, &remote->transport, &options);
}

static int start(struct remote *remote)
{
    int error;

    remote->loop = stdio_bus_event_loop_create();
    if (remote->loop == NULL)
        return STDIO_BUS_ERR;
    transport_init(&remote->transport, remote->loop, remote->log, &remote->limits);
    stdio_bus_event_loop_set_after(remote->loop, after_round, remote);
    remote->wait_until_ms = stdio_bus_event_loop_now_ms(remote->loop) +
                            (int64_t)remote->options->wait_sec * 1000;
    if (signals_open(&remote->signals, remote->loop, signalled, remote) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    if (open_program(remote) == STDIO_BUS_OK)
        return STDIO_BUS_OK;
    error = errno;
    signals_close(&remote->signals);
    errno = error;
    return STDIO_BUS_ERR;
}

static void stop(struct remote *remote)
{
    struct list_node *node, *following;

    connection_stop_input(&remote->program); /* the end of a call may resume it */
    list_each(&remote->calls, node, following)
        call_end(list_entry(node, struct call, node));
    links_close(remote);
    connection_close(&remote->program);
    stdio_bus_event_loop_stop_timer(remote->loop, &remote->program_retry);
    stdio_bus_event_loop_stop_timer(remote->loop, &remote->parting);
    free(remote->session.initialize);
}

static enum remote_outcome system_error(struct remote *remote)
{
    log_error(remote->log, "", "cannot go on: %s", strerror(errno));
    return REMOTE_SYSTEM_ERROR;
}

/* Finds the way to the server. False: there is none; logged. */
static bool find_way(struct remote *remote)
{
    const struct remote_url *url = &remote->options->url;
    const char *problem = proxy_choose(&remote->proxy, url);
    char reason[TUNNEL_REASON_MAX];

    if (problem != NULL)
        log_error(remote->log, "", "%s: %s", url->is_tls ? "HTTPS_PROXY" : "HTTP_PROXY", problem);
    if (problem == NULL && url->is_tls)
        problem = tunnel_try(&remote->tunnel_command, reason);
    if (problem == reason)
        log_error(remote->log, "", "%s", reason);
    return problem == NULL;
}

static enum remote_outcome serve(struct remote *remote)
{
    if (!find_way(remote))
        return REMOTE_UNUSABLE;
    if (start(remote) != STDIO_BUS_OK)
        return system_error(remote);
    while (remote->phase != REMOTE_PHASE_STOPPED) {
        if (stdio_bus_event_loop_run_once(remote->loop, -1) < 0 && errno != EINTR) {
            remote->outcome = system_error(remote);
            break;
        }
    }
    stop(remote);
    signals_close(&remote->signals);
    return remote->outcome;
}

enum remote_outcome remote_run(const struct remote_options *options)
{
    struct remote *remote = calloc(1, sizeof *remote);
    enum remote_outcome outcome;

    if (remote == NULL) {
        log_error(options->log, "", "cannot start: out of memory");
        return REMOTE_SYSTEM_ERROR;
    }
    set_up(remote, options);
    outcome = serve(remote);
    if (remote->loop != NULL) {
        stdio_bus_event_loop_destroy(remote->loop);
        transport_free(&remote->transport);
    }
    free(remote);
    return outcome;
}
