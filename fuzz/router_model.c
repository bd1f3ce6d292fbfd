#include "build_config.h"

#include "router_model.h"

#include <string.h>

void model_init(struct model *model, size_t max_pending, size_t max_sessions)
{
    memset(model, 0, sizeof *model);
    model->max_pending = max_pending;
    model->max_sessions = max_sessions;
    for (int i = 0; i < MODEL_ACTORS; i++)
        model->actors[i].kept_at = NOBODY;
    for (int i = 0; i < MODEL_SESSIONS; i++)
        model->sessions[i].owner = model->sessions[i].worker = NOBODY;
}

int model_find_to_answer(const struct model *model, int answerer, int id)
{
    for (size_t i = 0; i < model->request_count; i++) {
        const struct model_request *request = &model->requests[i];

        if (request->answerer == answerer && (id == NOBODY || request->id == id))
            return (int)i;
    }
    return NOBODY;
}

static bool has_asked(const struct model *model, int asker, int id)
{
    for (size_t i = 0; i < model->request_count; i++) {
        if (model->requests[i].asker == asker && model->requests[i].id == id)
            return true;
    }
    return false;
}

/* Whether this message, which is not what the worker waits for, could be taken for the reply of
 * another client: by its id, or by an id of another type. */
static bool may_pass_for_reply(const struct model *model, int from, int worker,
                               const struct model_message *message)
{
    if (!message->has_result)
        return false;
    if (message->id != NOBODY && has_asked(model, worker, message->id))
        return true;
    for (size_t i = 0; i < model->request_count; i++) {
        const struct model_request *request = &model->requests[i];

        if (request->asker == worker && request->answerer != from &&
            (message->id == NOBODY ||
             (request->id < MODEL_NUMBERS) != (message->id < MODEL_NUMBERS)))
            return true;
    }
    return false;
}

size_t model_count_sessions(const struct model *model)
{
    size_t count = 0;

    for (int i = 0; i < MODEL_SESSIONS; i++)
        count += model->sessions[i].owner != NOBODY;
    return count;
}

size_t model_count_requests(const struct model *model, bool of_clients, bool abandoned)
{
    size_t count = 0, i;

    for (i = 0; i < model->request_count; i++)
        count += model_is_worker(model->requests[i].answerer) == of_clients &&
                 (model->requests[i].asker == NOBODY) == abandoned;
    return count;
}

static bool id_is_free(const struct model *model, int from, int answerer, int id)
{
    for (int i = 0; i < MODEL_ACTORS; i++) {
        const struct model_actor *actor = &model->actors[i];

        if (i != from && actor->kept_at == answerer && actor->kept_id == id)
            return false;
    }
    return model_find_to_answer(model, answerer, id) == NOBODY;
}

static struct prediction outcome(enum action action)
{
    struct prediction prediction = {.action = action,
                                    .to = NOBODY,
                                    .answered = NOBODY,
                                    .took_turn = NOBODY,
                                    .waits_at = NOBODY};

    return prediction;
}

static struct prediction refused(int code)
{
    struct prediction prediction = outcome(ACTION_REFUSE);

    prediction.code = code;
    return prediction;
}

static struct prediction held(int waits_at, bool waits_for_id)
{
    struct prediction prediction = outcome(ACTION_HOLD);

    prediction.waits_at = waits_at;
    prediction.waits_for_id = waits_for_id;
    return prediction;
}

static struct prediction forwarded(int to)
{
    struct prediction prediction = outcome(ACTION_FORWARD);

    prediction.to = to;
    return prediction;
}

/* The decision about an answer to the request at this place. */
static struct prediction predict_answer(const struct model *model, int place)
{
    int asker = model->requests[place].asker;
    struct prediction prediction;

    if (asker != NOBODY && model->actors[asker].full)
        return held(asker, false);
    prediction = asker == NOBODY ? outcome(ACTION_DISCARD) : forwarded(asker);
    prediction.answered = place;
    return prediction;
}

static size_t count_asked(const struct model *model, int asker)
{
    size_t count = 0, i;

    for (i = 0; i < model->request_count; i++)
        count += model->requests[i].asker == asker;
    return count;
}

static size_t count_owned(const struct model *model, int owner)
{
    size_t count = 0;

    for (int i = 0; i < MODEL_SESSIONS; i++)
        count += model->sessions[i].owner == owner;
    return count;
}

/* Less than 1/(2n) of a table of this size is held, with n clients, or workers, present. */
static bool has_less_than_its_share(const struct model *model, int actor, size_t held, size_t max)
{
    size_t here = 0;

    for (int i = 0; i < MODEL_ACTORS; i++)
        here += model_is_worker(i) == model_is_worker(actor) &&
                (model_is_worker(i) || model->actors[i].here);
    return held * 2 * here < max;
}

static bool is_full(const struct model *model, int asker)
{
    return model_count_requests(model, !model_is_worker(asker), false) >= model->max_pending &&
           !has_less_than_its_share(model, asker, count_asked(model, asker), model->max_pending);
}

/* True when a request is refused wherever it would go; *prediction says how. */
static bool is_refused(const struct model *model, int from, const struct model_message *message,
                       struct prediction *prediction)
{
    if (has_asked(model, from, message->id))
        *prediction = refused(JSONRPC_INVALID_REQUEST);
    else if (is_full(model, from) || model->actors[from].expired)
        *prediction = refused(JSONRPC_SERVER_ERROR);
    else
        return false;
    return true;
}

static bool is_in_group(int worker, int group)
{
    return group == MODEL_POOLS || (worker == MODEL_WORKERS - 1) == (group == 1);
}

static bool takes_messages(const struct model_actor *actor)
{
    return actor->availability == PEER_READY && !actor->full;
}

/* A message for any worker of a group: the first worker that can take it, from the next in turn. */
static struct prediction predict_turn(const struct model *model, int from,
                                      const struct model_message *message, bool asks)
{
    int group = message->pool == NOBODY ? MODEL_POOLS : message->pool;
    int first = group == 1 ? 2 : 0, count = group == 0 ? 2 : group == 1 ? 1 : 3, i;
    int kept_at = model->actors[from].kept_at;
    bool busy = false, may_come = false;

    if (kept_at != NOBODY && is_in_group(kept_at, group) && takes_messages(&model->actors[kept_at]))
        return forwarded(kept_at);
    for (i = 0; i < count; i++) {
        int worker = first + (int)((model->turns[group] + (size_t)i) % (size_t)count);
        const struct model_actor *actor = &model->actors[worker];
        struct prediction prediction = forwarded(worker);

        prediction.took_turn = group;
        may_come = may_come || actor->availability != PEER_FAILED;
        if (!takes_messages(actor))
            continue;
        if (!asks || id_is_free(model, from, worker, message->id))
            return prediction;
        busy = true;
    }
    if (busy)
        return held(NOBODY, true);
    return may_come ? held(NOBODY, false) : refused(JSONRPC_SERVER_ERROR);
}

static struct prediction predict_from_client(const struct model *model, int from,
                                             const struct model_message *message)
{
    bool is_reply = message->has_result && !message->has_method;
    bool asks = message->id != NOBODY && !is_reply;
    int place = is_reply && message->id != NOBODY ? model_find_to_answer(model, from, message->id)
                                                  : NOBODY;
    int bound = message->session != NOBODY ? model->sessions[message->session].worker : NOBODY;
    bool new_session = message->session != NOBODY && bound == NOBODY;
    struct prediction prediction;

    if (place != NOBODY)
        return predict_answer(model, place);
    if (asks && model->actors[from].full)
        return held(from, false);
    if (asks && is_refused(model, from, message, &prediction))
        return prediction;
    if (new_session && model_count_sessions(model) >= model->max_sessions &&
        !has_less_than_its_share(model, from, count_owned(model, from), model->max_sessions))
        return refused(JSONRPC_SERVER_ERROR);
    if (bound == NOBODY && message->pool == MODEL_POOLS)
        return refused(JSONRPC_INVALID_PARAMS);
    if (bound == NOBODY)
        prediction = predict_turn(model, from, message, asks);
    else if (!takes_messages(&model->actors[bound]))
        prediction = held(bound, false);
    else if (asks && !id_is_free(model, from, bound, message->id))
        prediction = held(bound, true);
    else
        prediction = forwarded(bound);
    if (prediction.action == ACTION_FORWARD &&
        may_pass_for_reply(model, from, prediction.to, message)) {
        prediction.action = asks ? ACTION_REFUSE : ACTION_DISCARD;
        prediction.code = JSONRPC_INVALID_REQUEST;
        return prediction;
    }
    prediction.asks = asks;
    prediction.new_session = new_session;
    return prediction;
}

static struct prediction predict_from_worker(const struct model *model, int from,
                                             const struct model_message *message)
{
    int owner = message->session != NOBODY ? model->sessions[message->session].owner : NOBODY;
    bool asks = message->id != NOBODY && message->has_method;
    struct prediction prediction;
    int place;

    if (message->has_result) {
        place = message->id != NOBODY ? model_find_to_answer(model, from, message->id) : NOBODY;
        return place != NOBODY ? predict_answer(model, place) : outcome(ACTION_DISCARD);
    }
    if (owner == NOBODY)
        return refused(JSONRPC_SERVER_ERROR);
    if (model->actors[owner].full)
        return held(owner, false);
    if (!asks)
        return forwarded(owner);
    if (model->actors[owner].input_ended)
        return refused(JSONRPC_SERVER_ERROR);
    if (is_refused(model, from, message, &prediction))
        return prediction;
    if (!id_is_free(model, from, owner, message->id))
        return held(owner, true);
    prediction = forwarded(owner);
    prediction.asks = true;
    return prediction;
}

struct prediction model_predict(const struct model *model, int from,
                                const struct model_message *message)
{
    return model_is_worker(from) ? predict_from_worker(model, from, message)
                                 : predict_from_client(model, from, message);
}

bool model_still_waits(const struct model *model, int from, const struct model_message *message,
                       const struct prediction *hold)
{
    if (hold->waits_at == NOBODY)
        return predict_turn(model, from, message, hold->asks).action != ACTION_FORWARD;
    return !takes_messages(&model->actors[hold->waits_at]) ||
           (hold->waits_for_id && !id_is_free(model, from, hold->waits_at, message->id));
}

void model_end_request(struct model *model, int place)
{
    struct model_request *request = &model->requests[place];

    model->request_count--;
    memmove(request, request + 1, (model->request_count - (size_t)place) * sizeof *request);
}

void model_took_turn(struct model *model, const struct prediction *prediction)
{
    int first = prediction->took_turn == 1 ? 2 : 0;

    if (prediction->took_turn != NOBODY)
        model->turns[prediction->took_turn] = (size_t)(prediction->to - first) + 1;
}

void model_forwarded(struct model *model, int from, const struct model_message *message,
                     const struct prediction *prediction, bool queued)
{
    struct model_request request = {from, prediction->to, message->id, 0};

    model_took_turn(model, prediction);
    if (prediction->new_session)
        model->sessions[message->session] = (struct model_session){from, prediction->to};
    if (prediction->asks && queued)
        model->requests[model->request_count++] = request;
    if (prediction->answered != NOBODY && queued)
        model_end_request(model, prediction->answered);
}

size_t model_stop_answering(struct model *model, int actor, struct model_request *reported)
{
    size_t count = 0;
    int place;

    while ((place = model_find_to_answer(model, actor, NOBODY)) != NOBODY) {
        if (model->requests[place].asker != NOBODY)
            reported[count++] = model->requests[place];
        model_end_request(model, place);
    }
    return count;
}

/* The number of abandoned requests that are remembered is limited. */
static void forget_oldest(struct model *model, bool of_clients)
{
    int oldest = NOBODY;

    if (model_count_requests(model, of_clients, true) <= model->max_pending)
        return;
    for (size_t i = 0; i < model->request_count; i++) {
        const struct model_request *request = &model->requests[i];

        if (request->asker == NOBODY && model_is_worker(request->answerer) == of_clients &&
            (oldest == NOBODY || request->abandoned < model->requests[oldest].abandoned))
            oldest = (int)i;
    }
    model_end_request(model, oldest);
}

void model_stop_asking(struct model *model, int actor)
{
    bool found = true;

    for (size_t i = 0; i < MODEL_SESSIONS; i++) {
        struct model_session *session = &model->sessions[i];

        if (session->owner == actor || session->worker == actor)
            session->owner = session->worker = NOBODY;
    }
    while (found) {
        found = false;
        for (size_t i = 0; i < model->request_count && !found; i++) {
            if (model->requests[i].asker == actor) {
                model->requests[i].asker = NOBODY;
                model->requests[i].abandoned = ++model->abandonments;
                forget_oldest(model, !model_is_worker(actor));
                found = true;
            }
        }
    }
}
