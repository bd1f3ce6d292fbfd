#include "build_config.h"

#include "pool_run.h"

const struct pool_mode *pool_run_mode_of(const struct run *run, const struct actor *from,
                                         const struct actor *to)
{
    return &run->mode[from->is_worker ? from->pool : to->pool];
}

/* --- requests in flight --- */

/* One spelling for each value. */
static const char *canonical(const char *id)
{
    if (strcmp(id, "1.0") == 0)
        return "1";
    if (strcmp(id, "5e0") == 0)
        return "5";
    if (strcmp(id, "\"\\u0061\"") == 0)
        return "\"a\"";
    return strcmp(id, "\"\\u0074\"") == 0 ? "\"t\"" : id;
}

bool pool_run_same_id(const char *a, const char *b)
{
    return strcmp(canonical(a), canonical(b)) == 0;
}

/* The request with this id, as its answerer sees it, or NULL. */
struct asked *pool_run_find_asked(struct run *run, const struct actor *answerer, const char *id)
{
    for (unsigned i = 0; i < run->asked_count; i++) {
        struct asked *asked = &run->asked[i];

        if (asked->answerer == answerer && pool_run_same_id(asked->seen_id, id))
            return asked;
    }
    return NULL;
}

void pool_run_forget(struct run *run, struct asked *asked)
{
    *asked = run->asked[--run->asked_count];
}

/* The asker does not wait any more. */
void pool_run_abandon(struct run *run, struct asked *asked)
{
    size_t count[2] = {0, 0};

    asked->asker = NULL;
    for (unsigned i = 0; i < run->asked_count; i++)
        count[run->asked[i].answerer->is_worker] += run->asked[i].asker == NULL;
    run->forgetful |= count[0] > run->limits.max_pending_requests ||
                      count[1] > run->limits.max_pending_requests;
}

/* Copies the value after `key` in the text, up to one of the characters that end it. */
void pool_run_value_of(char to[40], const char *text, const char *key)
{
    const char *p = strstr(text, key);
    size_t len = 0;

    to[0] = '\0';
    if (p == NULL)
        return;
    p += strlen(key);
    while (p[len] != ',' && p[len] != '}')
        len++;
    EXPECT(len < 40, "a long value in %s", text);
    memcpy(to, p, len);
    to[len] = '\0';
}

/* The text with the value of `key` replaced. */
void pool_run_with_value(char to[TEXT_MAX], const char *text, const char *key, const char *value)
{
    const char *p = strstr(text, key);
    char old[40];

    if (p == NULL) {
        snprintf(to, TEXT_MAX, "%s", text);
        return;
    }
    pool_run_value_of(old, text, key);
    p += strlen(key);
    snprintf(to, TEXT_MAX, "%.*s%s%s", (int)(p - text), text, value, p + strlen(old));
}

bool pool_run_same_but(const char *a, const char *b, const char *key, const char *other)
{
    char x[TEXT_MAX], y[TEXT_MAX], z[TEXT_MAX];

    pool_run_with_value(y, a, WORK, "0");
    pool_run_with_value(z, y, key, "0");
    pool_run_with_value(x, z, other, "0");
    pool_run_with_value(y, b, WORK, "0");
    pool_run_with_value(z, y, key, "0");
    pool_run_with_value(y, z, other, "0");
    return strcmp(x, y) == 0;
}

/* --- sessions --- */

static bool learns(const struct run *run, const struct actor *worker)
{
    const struct pool_mode *mode = &run->mode[worker->pool];

    return mode->session_in_params && mode->clients != CLIENTS_EXCLUSIVE;
}

/* In a shared pool there is one session of an id. */
static struct known_session *find_session(struct run *run, const struct actor *worker,
                                          const char *id)
{
    bool shared = run->mode[worker->pool].clients == CLIENTS_SHARED;

    for (unsigned i = 0; i < run->session_count; i++) {
        struct known_session *session = &run->sessions[i];

        if (strcmp(session->id, id) == 0 &&
            (session->worker == worker ||
             (shared && run->mode[session->worker->pool].clients == CLIENTS_SHARED)))
            return session;
    }
    return NULL;
}

/* An answer of a worker is delivered, or its asker gets an error. */
void pool_run_answer_session(struct run *run, const struct actor *worker, bool failed)
{
    struct known_session *session;
    struct asked *asked;
    char id[40], name[40];

    pool_run_value_of(id, worker->text, ID);
    pool_run_value_of(name, worker->text, NAMED);
    asked = pool_run_find_asked(run, worker, id);
    if (asked == NULL || !learns(run, worker) || (!asked->names_session && asked->loads[0] == 0)) {
        EXPECT(!failed, "no session begins: %s", worker->text);
        return;
    }
    if (asked->loads[0] != 0)
        snprintf(name, sizeof name, "%s", asked->loads);
    session = find_session(run, worker, name);
    if (session != NULL && asked->loads[0] != 0 && session->worker == worker)
        session->owner = asked->asker;
    /* A full table has room for a client that holds less than its share. */
    EXPECT(session != NULL ? failed == (session->owner != asked->asker || session->worker != worker)
                           : !failed || run->session_count >= SESSIONS_MAX,
           "an answer failed or did not: %s", worker->text);
    if (session != NULL || failed)
        return;
    session = &run->sessions[run->session_count++];
    session->worker = worker;
    session->owner = asked->asker;
    snprintf(session->id, sizeof session->id, "%s", name);
}

void pool_run_end_sessions(struct run *run, const struct actor *of)
{
    for (unsigned i = run->session_count; i > 0; i--) {
        if (run->sessions[i - 1].owner == of || run->sessions[i - 1].worker == of)
            run->sessions[i - 1] = run->sessions[--run->session_count];
    }
}

static bool is_sole_client(const struct run *run, const struct actor *worker,
                           const struct actor *client)
{
    for (unsigned i = 0; i < CLIENTS; i++) {
        if (&run->clients[i] != client && run->clients[i].bound[worker->pool] == worker)
            return false;
    }
    return client->bound[worker->pool] == worker;
}

/* What the worker says reaches the client that it is for. */
void pool_run_check_addressee(struct run *run, const struct actor *worker, const struct actor *to)
{
    bool asks = strstr(worker->text, ID) != NULL, given_up = false;
    const struct known_session *session;
    char id[40], token[40];

    id[0] = '\0';
    if (learns(run, worker))
        pool_run_value_of(id, worker->text, SESSION);
    pool_run_value_of(token, worker->text, META);
    for (unsigned i = 0; i < run->asked_count; i++) {
        const struct asked *asked = &run->asked[i];

        if (asked->answerer != worker)
            continue;
        given_up |= asked->asker == NULL;
        if (asked->asker != to)
            continue;
        if (id[0] != 0 ? !asks && strcmp(asked->loads, id) == 0
                       : token[0] != 0 && (pool_run_same_id(asked->seen_token, token) ||
                                           pool_run_same_id(asked->seen_work, token)))
            return;
    }
    if (id[0] != 0) {
        session = find_session(run, worker, id);
        EXPECT(session == NULL || session->owner == to, "for another's session: %s", worker->text);
        EXPECT(session != NULL || !asks || is_sole_client(run, worker, to), "a guess: %s",
               worker->text);
    } else if (run->mode[worker->pool].clients == CLIENTS_STICKY && asks) {
        EXPECT(!given_up || (!worker->left && is_sole_client(run, worker, to)),
               "of a request that was given up: %s", worker->text);
    }
}
