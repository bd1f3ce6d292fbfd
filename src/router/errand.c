#include "build_config.h"

#include "router/errand.h"

#include <string.h>

#include "router/handshake.h"
#include "router/one_handshake.h"
#include "router/record.h"
#include "router/shared_settings.h"
#include "router/waiting.h"

static void begin(struct router *router, struct peer *worker, struct errand *errand,
                  enum errand_kind kind)
{
    errand->kind = kind;
    errand->worker = worker;
    errand->initialize = NULL;
    errand->method = NULL;
    errand->lists = 0;
    errand->text = slice_of(NULL, 0);
    errand->request = record_own(router, worker,
                                 kind == ERRAND_INITIALIZE ? EXTRAS_OWN_INITIALIZE
                                 : kind == ERRAND_LIST     ? EXTRAS_OWN_LIST
                                                           : EXTRAS_OWN);
}

static bool find_subscription(struct router *router, struct handshake *handshake,
                              struct errand *errand)
{
    struct subscription *subscription = subscriptions_next(&handshake->subscriptions);

    if (subscription == NULL || handshake->worker->full ||
        list_count(&handshake->own) >= ERRANDS_IN_FLIGHT)
        return false;
    begin(router, handshake->worker, errand,
          subscription->sent ? ERRAND_UNSUBSCRIBE : ERRAND_SUBSCRIBE);
    ASSERT(subscription->uri_len <= sizeof errand->uri);
    memcpy(errand->uri, subscription->uri, subscription->uri_len);
    errand->text = slice_of(errand->uri, subscription->uri_len);
    if (errand->request != NULL)
        subscriptions_sent(subscription);
    return true;
}

/* Lists whose change was not announced in the handshake are looked at at the next one. */
static bool find_announcement(struct handshake *handshake, struct errand *errand)
{
    unsigned changed = handshake->remembering.changed;

    if (changed == 0)
        return false;
    *errand = (struct errand){.kind = ERRAND_ANNOUNCE, .worker = handshake->worker};
    for (int list = 0; list < REMEMBERED_LISTS; list++) {
        if ((changed >> list & 1) != 0)
            errand->lists |= 1u << handshake_list_of((enum remembered_list)list);
    }
    handshake->remembering.changed = 0;
    return true;
}

/* The server answers no list before the end of its handshake. */
static bool find_list(struct router *router, struct handshake *handshake, struct errand *errand)
{
    struct slice cursor;
    const char *method;

    if (handshake->parts[HANDSHAKE_INITIALIZED].line.data == NULL || handshake->replays ||
        handshake->worker->full ||
        (method = remembering_next(&handshake->remembering, &cursor)) == NULL)
        return false;
    begin(router, handshake->worker, errand, ERRAND_LIST);
    handshake->remembering.number = errand->request != NULL ? errand->request->number : 0;
    errand->method = method;
    errand->text = cursor;
    return true;
}

static bool find_errand(struct router *router, struct handshake *handshake, struct errand *errand)
{
    struct peer *worker = handshake->worker;
    struct version *version = versions_open(&handshake->versions);
    enum log_rank wanted = shared_settings_level(worker, NULL, RANK_NONE);

    if (version != NULL && version->state == VERSION_WANTED) {
        begin(router, worker, errand, ERRAND_INITIALIZE);
        errand->initialize = &version->request;
        version->state = VERSION_ASKED;
        return true;
    }
    if (wanted != RANK_NONE && wanted != handshake->rank) {
        begin(router, worker, errand, ERRAND_SET_LEVEL);
        errand->text = slice_of(handshake_level(wanted), strlen(handshake_level(wanted)));
        if (errand->request != NULL)
            handshake->rank = wanted;
        return true;
    }
    return find_announcement(handshake, errand) || find_list(router, handshake, errand) ||
           find_subscription(router, handshake, errand);
}

bool errand_next(struct router *router, struct errand *errand)
{
    while (!list_empty(&router->handshakes.errands)) {
        struct handshake *handshake = list_entry(router->handshakes.errands.head.next,
                                                 struct handshake, errand);

        bool found = peer_serves(handshake->worker) && find_errand(router, handshake, errand);

        if (!found || (errand->request == NULL && errand->kind != ERRAND_ANNOUNCE))
            list_remove(&handshake->errand); /* until the next one is noted */
        if (found)
            return true;
    }
    router->handshakes.noted = false;
    return false;
}

void errand_failed(struct router *router, const struct errand *errand)
{
    struct handshake *handshake = errand->worker->handshake;

    if (errand->kind == ERRAND_INITIALIZE) {
        one_handshake_expire(router, handshake);
        versions_forget(&handshake->versions, false);
    }
    if (errand->kind == ERRAND_LIST)
        remembering_clear(&handshake->remembering);
    if (errand->request != NULL)
        waiting_late_answer(router, errand->request);
}
