/* Pools for MCP, ACP and LSP (protocol.md): many clients send random requests with the same ids and
 * tokens to few processes, while processes die and clients disconnect. Each client gets its own
 * messages and no other, and every request gets an answer or an error. */
#include "build_config.h"

#include "harness.h"

enum { CLIENTS = 24, STEPS = 6000, IDS = 4 };

static const char *const ids[IDS] = {"1", "2", "'a'", "4.0"};

struct user {
    struct client *client;
    const char *pool;
    unsigned tag;        /* of this connection alone */
    unsigned waits[IDS]; /* by id: the number in the request in flight, or 0 */
    bool reports[IDS];   /* its progress or update has to come before its answer */
};

static struct user users[CLIENTS];
static unsigned last_number, last_tag;
static unsigned long answers, errors, reports, questions;
static unsigned random_state;

static unsigned pick(unsigned below)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % below;
}

static void join(struct user *user, const struct daemon *daemon, const char *pool)
{
    memset(user, 0, sizeof *user);
    user->client = client_connect(daemon);
    user->pool = pool;
    user->tag = ++last_tag;
}

static unsigned waiting(const struct user *user)
{
    unsigned count = 0;
    for (int i = 0; i < IDS; i++)
        count += user->waits[i] != 0;
    return count;
}

/* --- received messages --- */

static void take_answer(struct user *user, struct span line)
{
    struct span id = json_get(line, "id");
    char text[16];
    int i = 0;
    for (; i < IDS; i++) {
        snprintf(text, sizeof text, "%s", ids[i]);
        for (char *p = text; *p != '\0'; p++)
            *p = *p == '\'' ? '"' : *p;
        if (span_is(id, text) || (i == IDS - 1 && span_is(id, "4")))
            break; /* the daemon's own errors spell it 4 */
    }
    ck_assert_msg(i < IDS && user->waits[i] != 0, "an answer to no request: %.*s", SHOWN(line));
    if (json_get(line, "error").data != NULL) {
        expect_member(line, "error.code", "-32000");
        errors++;
    } else {
        long n = json_long(json_get(line, "result.params.n"), 0);
        ck_assert_msg(n == (long)user->waits[i] && span_is(id, text),
                      "a message of another client: %.*s", SHOWN(line));
        ck_assert(!user->reports[i]);
        answers++;
    }
    user->waits[i] = 0;
    user->reports[i] = false;
}

/* A progress report or an update, which has the number of its request. */
static void take_report(struct user *user, struct span line, struct span method)
{
    long n = json_long(json_get(line, "params.n"), 0);
    int i = 0;
    while (i < IDS && (user->waits[i] != (unsigned)n || !user->reports[i]))
        i++;
    ck_assert_msg(i < IDS, "a message of another client: %.*s", SHOWN(line));
    if (span_is(method, "\"session/update\""))
        expect_member(line, "params.sessionId", test_format("'s%u'", user->tag));
    else
        expect_member(line, "params.progressToken", "'t'");
    user->reports[i] = false;
    reports++;
}

static void take_question(struct user *user, struct span line)
{
    struct span id = json_get(line, "id");
    ck_assert_msg(json_long(json_get(line, "params.tag"), 0) == (long)user->tag,
                  "a message of another client: %.*s", SHOWN(line));
    client_send(user->client, "{'id':%.*s,'pool':'%s','result':%u}", (int)id.len, id.data,
                user->pool, user->tag);
    questions++;
}

static void take(struct user *user, struct span line)
{
    struct span method = json_get(line, "method");
    if (method.data == NULL)
        take_answer(user, line);
    else if (json_get(line, "id").data != NULL)
        take_question(user, line);
    else
        take_report(user, line, method);
}

static bool take_one(struct user *user, int64_t deadline)
{
    struct span line;
    if (!client_line_before(user->client, deadline, &line))
        return false;
    take(user, line);
    return true;
}

/* --- sent messages --- */

static void act(struct user *user)
{
    unsigned i = pick(IDS), draw = pick(500);
    const char *method = draw < 150 ? "echo" : draw < 450 ? "progress" : draw < 451 ? "die" : "ask";
    if (user->waits[i] != 0)
        return;
    if (strcmp(method, "ask") == 0) {
        if (strcmp(user->pool, "acp") == 0) /* a worker's request to the session */
            client_send(user->client,
                        "{'pool':'acp','method':'say_only','params':{'sessionId':'s%u','message':"
                        "{'id':'q','method':'m','params':{'sessionId':'s%u','tag':%u}}}}",
                        user->tag, user->tag, user->tag);
        return;
    }
    user->waits[i] = ++last_number;
    user->reports[i] = method[0] == 'p';
    client_send(user->client,
                "{'id':%s,'method':'%s','params':{'n':%u%s,'_meta':{'progressToken':'t'}},"
                "'pool':'%s'}",
                ids[i], method, last_number, strcmp(user->pool, "acp") == 0 ? "" : ",'x':'\\u0041'",
                user->pool);
}

/* Loads the session, which begins with the answer; the update comes before that. */
static void act_in_session(struct user *user)
{
    unsigned i = pick(IDS);
    if (user->waits[i] != 0)
        return;
    user->waits[i] = ++last_number;
    user->reports[i] = true;
    client_send(user->client,
                "{'params':{'sessionId':'s%u','n':%u},'method':'session/load','id':%s,"
                "'pool':'acp'}",
                user->tag, last_number, ids[i]);
}

static void step(struct user *user, const struct daemon *daemon)
{
    if (pick(300) == 0) {
        client_abort(user->client);
        join(user, daemon, user->pool);
    } else if (strcmp(user->pool, "acp") == 0 && pick(2) == 0) {
        act_in_session(user);
    } else if (pick(3) > 0) {
        act(user);
    }
    for (int i = 0; i < CLIENTS; i++) {
        while (take_one(&users[i], now_ms()))
            continue;
    }
    while (waiting(user) > 2)
        ck_assert_msg(take_one(user, deadline_usual()), "no answer");
}

TEST_ROWS(stress_each_client_gets_its_own_messages, 3)
{
    struct daemon *daemon =
        START(.pools = "{'id':'mcp','command':'@WORKER@','instances':1,'protocol':'mcp',"
                       "'clients':'sticky','ids':'rewrite'},"
                       "{'id':'acp','command':'@WORKER@','instances':2,'protocol':'acp'},"
                       "{'id':'own','command':'@WORKER@','instances':8,'protocol':'mcp'}",
              .limits = "'max_restarts':1000,'restart_window_sec':1");
    random_state = 7 + (unsigned)row; /* no process dies so often that it is delayed for long */
    for (int i = 0; i < CLIENTS; i++)
        join(&users[i], daemon, i % 3 == 0 ? "mcp" : i % 3 == 1 ? "acp" : "own");
    for (int i = 0; i < STEPS; i++)
        step(&users[pick(CLIENTS)], daemon);
    for (int i = 0; i < CLIENTS; i++) {
        while (waiting(&users[i]) > 0)
            ck_assert_msg(take_one(&users[i], deadline_usual()), "no answer");
    }
    ck_assert_uint_gt(answers, STEPS / 4);
    ck_assert_uint_gt(reports, STEPS / 8);
    ck_assert_uint_gt(questions, 10);
    ck_assert_uint_gt(errors, 0);
    ck_assert_uint_lt(errors, STEPS / 10);
}
