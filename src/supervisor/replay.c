#include "build_config.h"

#include "supervisor/replay.h"

#include <string.h>

#include "base/error.h"
#include "bus/deliver.h"
#include "bus/depart.h"
#include "bus/errands.h"
#include "process/pool.h"
#include "router/affinity.h"
#include "router/from_memory.h"
#include "router/handshake.h"
#include "router/waiting.h"
#include "supervisor/first_answer.h"

#define REPLAY_MS 60000 /* clients wait about as long for the answer to initialize */

#define EXITED "the process of this client has exited"
#define LOST "the shared server or its daemon has ended: connect again"
#define REPLACED EXITED " and was replaced by one "
#define NO_MEMORY REPLACED "that cannot be initialized: out of memory"

static struct stdio_bus *bus_of(const struct worker *worker)
{
    return worker->stream.endpoint.bus;
}

static struct peer *peer_of(struct worker *worker)
{
    return &worker->stream.endpoint.peer;
}

/* The handshake that the next process is to get. NULL: there is none, or no answer to it. */
static struct handshake *handshake_of_clients(const struct worker *worker)
{
    const struct peer *peer = &worker->stream.endpoint.peer;

    if (peer->pool->mode.on_exit != EXIT_REPLAYS || peer->handshake == NULL ||
        !peer->handshake->answered)
        return NULL;
    return peer->handshake;
}

static void stop_timer(struct worker *worker)
{
    stdio_bus_event_loop_stop_timer(bus_of(worker)->loop, &worker->replay);
}

/* --- closing the clients --- */

/* The requests that have waited for the process get an error. */
static void close_client(struct worker *worker, struct peer *client, const char *reason)
{
    struct stdio_bus *bus = bus_of(worker);
    bool is_front = worker_is_front(worker);

    if (is_front && bus->reason == BUS_RUNNING) /* the only client there will be */
        bus->reason = client->said_exit ? BUS_DONE : BUS_NO_WORKER_LEFT;
    log_repeated(bus->log, is_front && !client->said_exit ? LOG_LEVEL_ERROR : LOG_LEVEL_DEBUG,
                 endpoint_of_peer(client)->context, LOG_NO_SOURCE, "closing it: %s", reason);
    client->closing = reason;
    if (peer_held(client)) {
        waiting_leave(&bus->router, client);
        deliver_resume(client);
    }
    if (affinity_binding(client, peer_of(worker)) != NULL) /* it may have left */
        retire_client(client);
}

/* A process that has got half a handshake serves no other client either. */
static void close_clients(struct worker *worker, const char *reason)
{
    struct peer *peer = peer_of(worker);

    stop_timer(worker);
    if (peer->pool->remembered != NULL)
        remembered_clear(peer->pool->remembered);
    while (affinity_sole(peer) != NULL)
        close_client(worker, affinity_sole(peer)->client, reason);
    if (peer->handshake == NULL || !peer->handshake->replays)
        return;
    handshake_forget(peer);
    if (worker->state == WORKER_RUNNING)
        worker_handle(worker, WORKER_MISBEHAVED);
}

/* Clients that are told what the server has written get that. */
static const char *reason_of_end(const struct worker *worker)
{
    const struct start_failure *failure = &pool_of(worker)->group.failure;

    return failure->count > 0 && failure->data != NULL ? failure->text
                                                       : REPLACED "that has exited too";
}

/* What waits for the process gets an error. */
static void refuse_waiting(struct worker *worker, const char *reason)
{
    struct list_node *node, *following;

    list_each(&peer_of(worker)->bindings, node, following) {
        struct peer *client = list_entry(node, struct binding, in_worker)->client;

        if (!peer_held(client))
            continue;
        client->closing = reason;
        waiting_leave(&bus_of(worker)->router, client);
        deliver_resume(client);
        client->closing = NULL;
    }
}

/* The clients stay, and are told why there is no process; their next message starts one. A shared
 * server may just be written: the clients of all programs would be lost by one mistake. */
static void await_call(struct worker *worker, struct handshake *handshake)
{
    struct peer *peer = peer_of(worker);

    handshake->replays = false;
    if (peer->pool->remembered != NULL)
        remembered_clear(peer->pool->remembered);
    worker_handle(worker, WORKER_RETIRE);
    refuse_waiting(worker, reason_of_end(worker));
    peer->rest = PEER_ASLEEP;
}

void replay_process_ended(struct worker *worker)
{
    struct handshake *handshake = handshake_of_clients(worker);

    stop_timer(worker);
    if (bus_of(worker)->phase >= BUS_PHASE_DRAINING)
        return;
    if (peer_of(worker)->pool->mode.on_exit == EXIT_CLOSES)
        close_clients(worker, worker_is_front(worker) ? LOST : EXITED ": connect again");
    else if (handshake != NULL && handshake->replays && bus_of(worker)->options.told_log != NULL)
        await_call(worker, handshake);
    else if (handshake != NULL && handshake->replays && !worker_is_front(worker))
        close_clients(worker, reason_of_end(worker));
    else if (handshake != NULL && handshake->lost)
        close_clients(worker, EXITED "; its initialize was too long to be repeated");
}

void replay_worker_failed(struct worker *worker)
{
    if (handshake_of_clients(worker) != NULL)
        close_clients(worker, EXITED " too often");
}

void replay_expired(void *user_data)
{
    struct worker *worker = user_data;

    close_clients(worker, REPLACED "that did not answer initialize in time");
}

/* --- the replay --- */

/* The lists that the client has read may be others now. Those that are remembered are compared. */
static void announce_changes(struct endpoint *client, const struct handshake *handshake)
{
    unsigned lists = handshake_announced(&handshake->answer);

    errands_announce(client, lists & ~from_memory_compared(handshake));
}

static void finish(struct worker *worker, struct handshake *handshake)
{
    struct stdio_bus *bus = bus_of(worker);
    struct list_node *node, *following;

    handshake->replays = false;
    stop_timer(worker);
    list_each(&peer_of(worker)->bindings, node, following) {
        struct endpoint *client =
            endpoint_of_peer(list_entry(node, struct binding, in_worker)->client);

        log_repeated(bus->log, LOG_LEVEL_INFO, client->context, LOG_NO_SOURCE,
                     "its new process is initialized as the one that exited");
        announce_changes(client, handshake);
    }
    if (worker->state == WORKER_RUNNING)
        waiting_worker_available(&bus->router, peer_of(worker), PEER_READY);
    from_memory_compare(handshake);
    handshake_note_errand(handshake);
    errands_run(bus);
}

/* Nothing, if no client has sent this part. STDIO_BUS_ERR if out of memory. */
static int send_part(struct worker *worker, struct handshake *handshake, enum handshake_part part)
{
    struct endpoint *endpoint = &worker->stream.endpoint;
    const struct delivery delivery = {.bytes = handshake->parts[part].line, .keep = true};

    handshake->awaited = part;
    return delivery.bytes.data != NULL ? endpoint->ops->deliver(endpoint, &delivery) : STDIO_BUS_OK;
}

/* After the answer to initialize. */
static void send_rest(struct worker *worker, struct handshake *handshake)
{
    if (send_part(worker, handshake, HANDSHAKE_INITIALIZED) != STDIO_BUS_OK ||
        send_part(worker, handshake, HANDSHAKE_SET_LEVEL) != STDIO_BUS_OK)
        close_clients(worker, NO_MEMORY);
    else if (handshake->parts[HANDSHAKE_SET_LEVEL].line.data == NULL)
        finish(worker, handshake);
}

bool replay_begin(struct worker *worker)
{
    struct handshake *handshake = handshake_of_clients(worker);

    if (handshake == NULL)
        return false;
    handshake->replays = true;
    stdio_bus_event_loop_start_timer(bus_of(worker)->loop, &worker->replay, REPLAY_MS);
    if (send_part(worker, handshake, HANDSHAKE_INITIALIZE) != STDIO_BUS_OK)
        close_clients(worker, NO_MEMORY);
    return true;
}

bool replay_can_move(const struct worker *worker)
{
    const struct handshake *handshake = handshake_of_clients(worker);

    return handshake != NULL && !handshake->replays && !handshake->lost;
}

bool replay_runs(const struct worker *worker)
{
    const struct handshake *handshake = handshake_of_clients(worker);

    return handshake != NULL && handshake->replays;
}

static void take_result(struct worker *worker, struct handshake *handshake,
                        const struct message *message, const struct handshake_answer *answer)
{
    memcpy(handshake->answer.has, answer->has, sizeof answer->has);
    if (from_memory_renew(handshake, message))
        log_repeated(bus_of(worker)->log, LOG_LEVEL_INFO, worker->stream.endpoint.context,
                     LOG_NO_SOURCE,
                     "it answers initialize in another way than its clients were told");
    send_rest(worker, handshake);
}

/* A front tells what the daemon says of a server that does not start. */
static void refused(struct worker *worker, const struct message *answer)
{
    if (worker_is_front(worker))
        first_answer_check_failure(worker, answer);
    close_clients(worker, REPLACED "that has refused initialize");
}

bool replay_take_answer(struct worker *worker, const struct message *message)
{
    struct handshake *handshake = handshake_of_clients(worker);
    struct handshake_answer answer;
    int result;

    if (handshake == NULL || !handshake->replays ||
        !message_id_equal(message->id, handshake->parts[handshake->awaited].id))
        return false;
    if (handshake->awaited == HANDSHAKE_SET_LEVEL) {
        finish(worker, handshake);
        return true;
    }
    result = handshake_read_answer(&answer, message);
    if (result == STDIO_BUS_ERR)
        close_clients(worker, NO_MEMORY);
    else if (result != STDIO_BUS_OK)
        refused(worker, message);
    else if (strcmp(answer.version, handshake->answer.version) != 0)
        close_clients(worker, REPLACED "that has another protocolVersion");
    else
        take_result(worker, handshake, message, &answer);
    return true;
}
