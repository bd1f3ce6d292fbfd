#include "build_config.h"

#include "router/from_memory.h"

#include "base/error.h"
#include "router/abilities.h"
#include "router/affinity.h"
#include "router/eras.h"

static bool is_usable(const struct group *pool)
{
    return pool->remembered != NULL && !pool->remembered->unfit;
}

/* NULL also for a process of the program that a reload has replaced: what that says is not what the
 * next one will say. */
static struct remembered *memory_of(const struct handshake *handshake)
{
    return handshake->worker->outdated ? NULL : handshake->worker->pool->remembered;
}

static bool may_learn(const struct handshake *handshake)
{
    return !handshake->worker->outdated && is_usable(handshake->worker->pool);
}

/* The owner of the router logs it. */
static void report(const struct handshake *handshake)
{
    struct remembered *remembered = handshake->worker->pool->remembered;

    if (remembered == NULL || !remembered->failed)
        return;
    remembered->failed = false;
    handshake->shared->forgot = handshake->shared->noted = true;
}

/* --- initialize --- */

static bool read_version(struct decision *decision)
{
    decision->named = slice_of("", 0);
    return !param_fields_has(&decision->fields, PARAM_PROTOCOL) ||
           decision_read_named(decision, PARAM_PROTOCOL, VERSION_NAME_MAX);
}

/* Clients join those that are there already; no other worker is woken while their process comes. */
static struct peer *find_sleeper(const struct group *pool)
{
    struct peer *found = NULL;

    for (size_t i = 0; i < pool->count; i++) {
        struct peer *worker = pool->workers[i];
        bool is_fresh = peer_is_fresh(worker);

        if (!eras_may_serve(pool, worker) || worker->alone)
            continue;
        if (worker->availability == PEER_READY || (!is_fresh && worker->rest == PEER_AWAKE))
            return NULL;
        if (worker->rest != PEER_AWAKE && (found == NULL || !is_fresh))
            found = worker;
    }
    return found;
}

struct peer *from_memory_worker(struct decision *decision, const struct group *pool)
{
    if (!is_usable(pool) || decision->kind != REQUEST_INITIALIZES || !decision->asks ||
        decision->from->alone || decision->message->bytes.len > HANDSHAKE_PART_MAX ||
        !read_version(decision) || remembered_version(pool->remembered, decision->named) == NULL)
        return NULL;
    return find_sleeper(pool);
}

/* The next process gets this client's initialize. STDIO_BUS_ERR: out of memory. */
static int begin(struct decision *decision, struct handshake *handshake,
                 const struct version *remembered)
{
    struct offer offer;
    int status;

    if (offer_make(&offer, decision->message) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    status = handshake_begin(handshake, &offer.message,
                             slice_of(remembered->name, remembered->name_len));
    offer_free(&offer);
    if (status != STDIO_BUS_OK)
        return status;
    status = handshake_read_line(&handshake->answer, remembered->answer.line);
    handshake->answered = status == STDIO_BUS_OK;
    return status;
}

/* The version as the other clients of the worker know it. NULL: out of memory. */
static struct version *copy_version(struct handshake *handshake, const struct version *remembered)
{
    struct slice name = slice_of(remembered->name, remembered->name_len);
    struct version *version = versions_new(&handshake->versions, name);

    if (version == NULL)
        return NULL;
    version->state = VERSION_REFUSED;
    if (kept_message_repeat(&version->answer, &remembered->answer) != STDIO_BUS_OK) {
        versions_forget(&handshake->versions, false);
        return NULL;
    }
    version->state = VERSION_ANSWERED;
    return version;
}

bool from_memory_initialize(struct decision *decision, struct peer *worker)
{
    struct binding *binding = affinity_binding(decision->from, worker);
    const struct version *remembered, *version;
    struct handshake *handshake;

    if (worker->rest == PEER_AWAKE || !is_usable(worker->pool) ||
        (remembered = remembered_version(worker->pool->remembered, decision->named)) == NULL)
        return false;
    handshake = handshake_of(worker, &decision->router->handshakes);
    if (handshake == NULL)
        return true;
    if (!handshake->answered && begin(decision, handshake, remembered) != STDIO_BUS_OK)
        return handshake->answered;
    version = versions_find(&handshake->versions, decision->named);
    if (version == NULL)
        version = copy_version(handshake, remembered);
    if (version == NULL)
        return true;
    binding->abilities = abilities_read(decision->message);
    binding->waits = false;
    decision_answer(decision, version->answer.line, version->answer.at);
    return true;
}

/* --- other messages --- */

bool from_memory_serves(const struct peer *worker)
{
    return worker->rest != PEER_AWAKE && worker->handshake != NULL && worker->handshake->answered;
}

bool from_memory_keep(struct decision *decision, struct peer *worker)
{
    struct handshake *handshake = worker->handshake;

    if (!from_memory_serves(worker))
        return false;
    if (decision->kind == REQUEST_TELLS_ROOTS) {
        handshake->teller = decision->from->number;
    } else if (handshake->parts[HANDSHAKE_INITIALIZED].line.data == NULL) {
        if (handshake_keep(handshake, HANDSHAKE_INITIALIZED, decision->message) != STDIO_BUS_OK)
            return true;
        handshake->confirmer = decision->from->number;
    }
    decision_discard(decision, ACTION_DROP, "no process needs it yet");
    return true;
}

static bool answer_ping(struct decision *decision)
{
    static const char line[] = "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}\n";
    const struct splice_edit id = {.offset = sizeof "{\"jsonrpc\":\"2.0\",\"id\":" - 1, .len = 1};

    if (!slice_is(decision->message->method, "ping"))
        return false;
    decision_answer(decision, slice_of(line, sizeof line - 1), id);
    return true;
}

bool from_memory_takes(struct decision *decision, const struct peer *worker)
{
    const struct kept_message *page;

    if (!from_memory_serves(worker) || !decision->asks || decision->message->method.data == NULL)
        return false;
    if (answer_ping(decision))
        return true;
    if (!is_usable(worker->pool))
        return false;
    page = remembered_page(worker->pool->remembered, decision->message);
    report(worker->handshake);
    if (page == NULL)
        return false;
    decision_answer(decision, page->line, page->at);
    return true;
}

/* --- a process that runs --- */

static void want(struct handshake *handshake, unsigned lists)
{
    for (int list = 0; list < REMEMBERED_LISTS; list++) {
        if ((lists >> list & 1) != 0 &&
            handshake->answer.has[handshake_list_of((enum remembered_list)list)])
            handshake->remembering.wanted |= 1u << list;
    }
    handshake_note_errand(handshake);
}

void from_memory_compare(struct handshake *handshake)
{
    if (may_learn(handshake))
        want(handshake, REMEMBERED_ALL);
}

unsigned from_memory_compared(const struct handshake *handshake)
{
    const struct remembered *remembered = memory_of(handshake);
    unsigned lists = (1u << HANDSHAKE_LISTS) - 1;

    for (int list = 0; list < REMEMBERED_LISTS; list++) {
        if (remembered == NULL || !remembered->lists[list].whole)
            lists &= ~(1u << handshake_list_of((enum remembered_list)list));
    }
    return lists;
}

bool from_memory_renew(struct handshake *handshake, const struct message *answer)
{
    struct group *pool = handshake->worker->pool;
    bool changed;

    if (!may_learn(handshake) || handshake->begun_len == 0)
        return false;
    changed = remembered_set_version(pool->remembered,
                                     slice_of(handshake->begun, handshake->begun_len), answer);
    if (changed)
        eras_forget(pool);
    report(handshake);
    return changed;
}

void from_memory_list_answered(struct handshake *handshake, uint32_t number,
                               const struct message *answer)
{
    struct remembered *remembered = memory_of(handshake);

    if (!handshake->remembering.asks || handshake->remembering.number != number)
        return; /* it was asked for by the program before an upgrade */
    if (remembered != NULL)
        (void)remembering_answer(&handshake->remembering, remembered, answer);
    else
        remembering_clear(&handshake->remembering);
    report(handshake);
    handshake_note_errand(handshake);
}

bool from_memory_is_settled(const struct group *pool)
{
    for (size_t i = 0; i < pool->count; i++) {
        const struct handshake *handshake = pool->workers[i]->handshake;

        if (handshake != NULL && peer_serves(pool->workers[i]) &&
            (handshake->parts[HANDSHAKE_INITIALIZED].line.data == NULL || handshake->replays ||
             handshake->remembering.wanted != 0 || handshake->remembering.asks))
            return false;
    }
    return true;
}

void from_memory_learn(const struct handshake *handshake, const struct version *version,
                       const struct message *answer)
{
    struct remembered *remembered = memory_of(handshake);

    if (remembered == NULL || version->state != VERSION_ANSWERED || handshake->lost)
        return;
    if (remembered_set_version(remembered, slice_of(version->name, version->name_len), answer))
        eras_forget(handshake->worker->pool);
    report(handshake);
}

void from_memory_note(struct decision *decision)
{
    struct handshake *handshake = decision->from->handshake;
    unsigned lists;

    if (handshake == NULL || !may_learn(handshake) || decision->message->method.data == NULL)
        return;
    if (decision->asks && slice_is(decision->message->method, "roots/list"))
        remembered_refuse(handshake->worker->pool->remembered);
    lists = decision->asks ? 0 : remembered_changed_by(decision->message->method);
    handshake->remembering.told |= lists;
    if (lists != 0)
        want(handshake, lists);
}
