/* Ids and tokens that are rewritten: everybody sees what is meant for it, and every other byte is
 * as it was. */
#include "build_config.h"

#include "sharing_fixture.h"
#include "turns.h"

#define NUMBER_LAST_TEXT "2147483646"

/* --- what refers to what --- */

START_TEST(answers_get_the_id_as_it_was_spelled)
{
    static const char *const ids[] = {
        "1.0", "1e3", "-7", "1.5e2", "0.5", "'a'", "''", "'\\u0061\\n'", "'\\/'", "'\xc3\xa9'",
        "123456789012345678901234567890", "-0.0"};
    struct peer *a = add_client();
    char request[200], seen[200], answer[200], expected[200];
    size_t i;

    POOL("p", 1, REWRITE);
    for (i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        snprintf(request, sizeof request, "{ 'id' : %s , 'method' : 'm' }", ids[i]);
        snprintf(seen, sizeof seen, "{ 'id' : %zu , 'method' : 'm' }", 2 * i + 2);
        expect(give(a, request), &workers[0], seen);
    }
    for (i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        snprintf(answer, sizeof answer, "{'result':{'id':1},'id':%zu.0 }", 2 * i + 2);
        snprintf(expected, sizeof expected, "{'result':{'id':1},'id':%s }", ids[i]);
        expect(give(&workers[0], answer), a, expected);
        expect_action(give(&workers[0], answer), ROUTE_DISCARD);
    }
}
END_TEST

START_TEST(any_number_of_clients_uses_one_id)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client();

    POOL("p", 1, REWRITE);
    expect(give(a, "{'id':2,'method':'m'}"), &workers[0], "{'id':2,'method':'m'}");
    expect(give(b, "{'id':2,'method':'m'}"), &workers[0], "{'id':4,'method':'m'}");
    expect(give(c, "{'id':'2','method':'m'}"), &workers[0], "{'id':6,'method':'m'}");
    expect_refused(give(a, "{'id':2.0,'method':'m'}"), "still in flight");
    expect(give(&workers[0], "{'id':4,'result':1}"), b, "{'id':2,'result':1}");
    expect(give(&workers[0], "{'id':6,'error':1}"), c, "{'id':'2','error':1}");
    expect_action(give(&workers[0], "{'id':'2','result':1}"), ROUTE_DISCARD);
    expect_action(give(&workers[0], "{'id':3,'result':1}"), ROUTE_DISCARD);
    expect(give(&workers[0], "{'id':2,'result':1}"), a, "{'id':2,'result':1}");
}
END_TEST

START_TEST(answers_to_nobody_are_dropped)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, STICKY, REWRITE);
    give(a, "{'id':1,'method':'m'}");
    give(b, "{'id':1,'method':'m'}");
    leave(a);
    expect_action(give(&workers[0], "{'id':2,'result':1}"), ROUTE_DROP);
    expect_action(give(&workers[0], "{'id':2,'result':1}"), ROUTE_DISCARD);
    expect(give(&workers[0], "{'id':4,'result':1}"), b, "{'id':1,'result':1}");
}
END_TEST

START_TEST(progress_goes_to_who_asked)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, STICKY, REWRITE);
    expect(give(a, "{'id':1,'method':'m','params':{'_meta':{'progressToken':'t'},'x':1}}"),
           &workers[0], "{'id':2,'method':'m','params':{'_meta':{'progressToken':2},'x':1}}");
    expect(give(b, "{'params':{'_meta':{'progressToken':'\\u0074'}},'method':'m','id':1}"),
           &workers[0], "{'params':{'_meta':{'progressToken':4}},'method':'m','id':4}");
    expect(give(&workers[0],
                "{'method':'notifications/progress','params':{'progressToken':2,'progress':1}}"),
           a, "{'method':'notifications/progress','params':{'progressToken':'t','progress':1}}");
    expect(give(&workers[0], "{'method':'notifications\\/progress','params':{'progressToken':4}}"),
           b, "{'method':'notifications\\/progress','params':{'progressToken':'\\u0074'}}");
    /* No token was given with this number. */
    expect_action(give(&workers[0],
                       "{'method':'notifications/progress','params':{'progressToken':3}}"),
                  ROUTE_DROP);
    give(&workers[0], "{'id':2,'result':1}");
    expect_action(give(&workers[0],
                       "{'method':'notifications/progress','params':{'progressToken':2}}"),
                  ROUTE_DROP);
    /* The worker's own. */
    expect_action(give(&workers[0],
                       "{'method':'notifications/progress','params':{'progressToken':'w'}}"),
                  ROUTE_BROADCAST);
    expect_action(give(&workers[0],
                       "{'method':'notifications/progress','params':{'progressToken':6}}"),
                  ROUTE_BROADCAST);
}
END_TEST

START_TEST(progress_without_rewriting)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, STICKY);
    give(a, "{'id':1,'method':'m','params':{'_meta':{'progressToken':'t'}}}");
    give(b, "{'id':2,'method':'m','params':{'_meta':{'progressToken':5}}}");
    expect(give(&workers[0], "{'method':'notifications/progress','params':{'progressToken':5.0}}"),
           b, "{'method':'notifications/progress','params':{'progressToken':5.0}}");
    expect(give(&workers[0], "{'method':'$/progress','params':{'token':'t'}}"), a,
           "{'method':'$/progress','params':{'token':'t'}}");
    expect_action(give(&workers[0], "{'method':'$/progress','params':{'token':'u'}}"),
                  ROUTE_BROADCAST);
}
END_TEST

START_TEST(both_tokens_of_lsp)
{
    struct peer *a = add_client();

    POOL("p", 1, STICKY, REWRITE);
    expect(give(a, "{'id':'x','method':'m',"
                   "'params':{'workDoneToken':'w','partialResultToken':'p'}}"),
           &workers[0],
           "{'id':2,'method':'m','params':{'workDoneToken':2,'partialResultToken':3}}");
    expect(give(a, "{'id':'y','method':'m','params':{'partialResultToken':'q'}}"), &workers[0],
           "{'id':4,'method':'m','params':{'partialResultToken':5}}");
    expect(give(&workers[0], "{'method':'$/progress','params':{'token':3}}"), a,
           "{'method':'$/progress','params':{'token':'p'}}");
    expect(give(&workers[0], "{'method':'$/progress','params':{'token':2}}"), a,
           "{'method':'$/progress','params':{'token':'w'}}");
    expect(give(&workers[0], "{'method':'$/progress','params':{'token':5}}"), a,
           "{'method':'$/progress','params':{'token':'q'}}");
    expect(give(a, "{'method':'window/workDoneProgress/cancel','params':{'token':'w'}}"),
           &workers[0], "{'method':'window/workDoneProgress/cancel','params':{'token':2}}");
    expect(give(a, "{'method':'window/workDoneProgress/cancel','params':{'token':'servers'}}"),
           &workers[0], "{'method':'window/workDoneProgress/cancel','params':{'token':'servers'}}");
}
END_TEST

START_TEST(cancelling_names_the_right_request)
{
    static const char form[] = "{'method':'%s','params':{'%s':%s}}";
    static const char *const forms[][2] = {
        {"notifications/cancelled", "requestId"},
        {"$/cancelRequest", "id"},
        {"$/cancel_request", "requestId"},
    };
    const char *method = forms[_i][0], *key = forms[_i][1];
    struct peer *a = add_client(), *b = add_client();
    char text[200], expected[200];

    POOL("p", 2, REWRITE);
    give(a, "{'id':'x','method':'m'}");
    give(b, "{'id':'x','method':'m'}");
    give(a, "{'id':'y','method':'m'}");
    snprintf(text, sizeof text, form, method, key, "'x'");
    snprintf(expected, sizeof expected, form, method, key, "2");
    expect(give(b, text), &workers[1], expected);
    expect(give(a, text), &workers[0], expected);
    snprintf(text, sizeof text, form, method, key, "'z'");
    expect_action(give(a, text), ROUTE_DROP);
    /* MCP's are not answered any more, and nobody waits. */
    ck_assert_uint_eq(router.from_clients.active_count, _i == 0 ? 1 : 3);
    expect_action(give(&workers[0], "{'id':2,'result':1}"),
                  _i == 0 ? ROUTE_DROP : ROUTE_FORWARD_EDITED);
}
END_TEST

START_TEST(requests_of_workers)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, STICKY, REWRITE);
    POOL("q", 1, STICKY, REWRITE);
    POOL("r", 1, STICKY);
    give(a, "{'method':'m','pool':'p'}");
    give(a, "{'method':'m','pool':'q'}");
    give(a, "{'method':'m','pool':'r'}");
    /* What passes unchanged may have one of our numbers. */
    expect(give(&workers[2], "{'id':2,'method':'q'}"), a, "{'id':2,'method':'q'}");
    expect(give(&workers[0], "{'id':'q','method':'q','params':{'_meta':{'progressToken':9}}}"), a,
           "{'id':4,'method':'q','params':{'_meta':{'progressToken':4}}}");
    expect(give(&workers[1], "{'id':'q','method':'q'}"), a, "{'id':6,'method':'q'}");
    /* Progress of the client's, and the worker gives one up. */
    expect(give(a, "{'method':'notifications/progress','params':{'progressToken':4},'pool':'p'}"),
           &workers[0],
           "{'method':'notifications/progress','params':{'progressToken':9},'pool':'p'}");
    expect(give(&workers[1], "{'method':'$/cancelRequest','params':{'id':'q'}}"), a,
           "{'method':'$/cancelRequest','params':{'id':6}}");
    expect(give(a, "{'id':6,'error':{}}"), &workers[1], "{'id':'q','error':{}}");
    expect(give(a, "{'id':4,'result':{}}"), &workers[0], "{'id':'q','result':{}}");
    expect(give(a, "{'id':2,'result':{}}"), &workers[2], "{'id':2,'result':{}}");
    /* A second reply must not pass for one to another's question. */
    expect_action(give(a, "{'id':4,'result':{},'pool':'p'}"), ROUTE_DISCARD);
    (void)b;
}
END_TEST

START_TEST(progress_of_what_a_client_was_not_asked_goes_nowhere)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, STICKY, REWRITE);
    give(a, "{'id':1,'method':'m'}");
    give(b, "{'method':'m'}");
    give(&workers[0], "{'id':'q','method':'m','params':{'_meta':{'progressToken':'t'}}}");
    expect_action(give(b, "{'method':'notifications/progress','params':{'progressToken':'t'}}"),
                  ROUTE_DROP);
}
END_TEST

/* 2, spelled so that it is too long for an id. */
#define LONG_TWO                                                                                   \
    "2.0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"   \
    "0000000000000000000000000000000000000000000000000000"

START_TEST(numbers_of_others_cannot_be_named)
{
    static const char *const notifications[] = {
        "{'method':'notifications/cancelled','params':{'requestId':2}}",
        "{'method':'notifications\\/cancelled','params':{'requestId':2}}",
        "{'method':'\\u006eotifications/cancelled','params':{'requestId':2}}",
        "{'method':'\\u0024\\/cancelRequest','params':{'id':2}}",
        "{'method':'\\u0077indow/workDoneProgress/cancel','params':{'token':2}}",
        "{'method':'notifications/cancelled','params':{'requestId':" LONG_TWO "}}",
        "{'method':'notifications/cancelled','params':{'requestId':2.00000000000000000001}}",
        "{'method':'$/cancelRequest','params':{'id':" LONG_TWO "}}",
        "{'method':'$/cancel_request','params':{'requestId':" LONG_TWO "}}",
        "{'method':'notifications/progress','params':{'progressToken':" LONG_TWO "}}",
        "{'method':'$/progress','params':{'token':" LONG_TWO "}}",
        "{'method':'window/workDoneProgress/cancel','params':{'token':2}}",
        "{'method':'window/workDoneProgress/cancel','params':{'token':3}}",
        "{'method':'window/workDoneProgress/cancel','params':{'token':" LONG_TWO "}}",
    };
    static const char theirs[] =
        "{'method':'window/workDoneProgress/cancel','params':{'token':99}}";
    struct peer *a = add_client(), *b = add_client();
    size_t i;

    POOL("p", 1, STICKY, REWRITE);
    give(a, "{'id':1,'method':'m','params':{'workDoneToken':1,'partialResultToken':2}}");
    give(b, "{'method':'m'}");
    for (i = 0; i < sizeof notifications / sizeof notifications[0]; i++)
        expect_action(give(b, notifications[i]), ROUTE_DROP);
    expect(give(b, theirs), &workers[0], theirs);
    expect_refused(give(b, "{'id':1,'method':'$/cancelRequest','params':{'id':2}}"),
                   "notification");
    expect_refused(give(b, "{'id':1,'method':'$/cancelRequest','params':{'id':1}}"),
                   "notification");
    expect(give(b, "{'id':1,'method':'m','params':{'workDoneToken':" LONG_TWO "}}"), &workers[0],
           "{'id':4,'method':'m','params':{'workDoneToken':4}}");
    expect_action(give(&workers[0], "{'method':'$/progress','params':{'token':4}}"), ROUTE_DROP);
    expect(give(&workers[0], "{'method':'$/progress','params':{'token':3}}"), a,
           "{'method':'$/progress','params':{'token':2}}");
}
END_TEST

/* A session of a worker that sees numbers, in a message for a pool that does not rewrite. */
START_TEST(sessions_are_of_the_pool_of_their_worker)
{
    static const char cancel[] = "{'pool':'plain','sessionId':'a','method':'$/cancelRequest',"
                                 "'params':{'id':2}}";
    struct peer *a = add_client(), *b = add_client();

    POOL("plain", 1, .clients = CLIENTS_SHARED);
    POOL("nested", 1, REWRITE, NESTED);
    give(a, "{'pool':'nested','id':1,'method':'m','params':{'sessionId':'a'}}");
    give(b, "{'pool':'nested','id':1,'method':'m','params':{'sessionId':'b'}}");
    expect(give(a, "{'pool':'plain','sessionId':'a','id':4,'method':'m'}"), &workers[1],
           "{'pool':'plain','sessionId':'a','id':6,'method':'m'}");
    expect_action(give(a, cancel), ROUTE_DROP);
    expect_action(give(a, "{'pool':'plain','sessionId':'a','id':7,'result':1}"), ROUTE_DISCARD);
    expect(give(&workers[1], "{'id':4,'result':1}"), b, "{'id':1,'result':1}");
    expect(give(&workers[1], "{'id':6,'result':1}"), a, "{'id':4,'result':1}");
    /* Others are not known there. */
    expect(give(a, "{'pool':'plain','sessionId':'c','id':4,'method':'m'}"), &workers[0],
           "{'pool':'plain','sessionId':'c','id':4,'method':'m'}");
    expect(give(a, "{'pool':'plain','sessionId':'c','id':7,'result':1}"), &workers[0],
           "{'pool':'plain','sessionId':'c','id':7,'result':1}");
}
END_TEST

START_TEST(requests_do_not_pass_for_replies)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, STICKY);
    give(a, "{'method':'m'}");
    give(b, "{'method':'m'}");
    expect_refused(give(b, "{'id':7,'method':'m','result':1}"), "result");
    expect_refused(give(b, "{'id':7,'method':'m','error':1}"), "error");
    expect(give(b, "{'method':'m','error':1}"), &workers[0], "{'method':'m','error':1}");
}
END_TEST

/* It is content where nothing is translated. */
START_TEST(unreadable_references_pass_without_rewriting)
{
    static const char cancel[] = "{'method':'$/cancelRequest','params':{'id':" LONG_TWO "}}";
    static const char request[] = "{'id':2,'method':'$/cancelRequest','params':{'id':1}}";
    struct peer *a = add_client();

    POOL("p", 1, STICKY);
    expect(give(a, cancel), &workers[0], cancel);
    expect(give(a, request), &workers[0], request);
}
END_TEST

/* Who waits for a number as an id of its own gets it, and its reply comes back under it. */
START_TEST(number_that_is_free_is_an_id_again)
{
    struct peer *a = add_client();

    POOL("p", 1, STICKY, REWRITE);
    POOL("q", 1, STICKY);
    give(a, "{'method':'m','pool':'p'}");
    give(a, "{'method':'m','pool':'q'}");
    expect(give(&workers[0], "{'id':'x','method':'q'}"), a, "{'id':2,'method':'q'}");
    expect_action(give(&workers[1], "{'id':2,'method':'q'}"), ROUTE_HOLD);
    expect(give(a, "{'id':2,'result':1}"), &workers[0], "{'id':'x','result':1}");
    expect_released(&workers[1]);
    expect(give(&workers[1], "{'id':2,'method':'q'}"), a, "{'id':2,'method':'q'}");
    expect_refused(give(&workers[1], "{'id':2,'method':'q'}"), "still in flight");
    expect(give(a, "{'id':2,'result':1}"), &workers[1], "{'id':2,'result':1}");
}
END_TEST

START_TEST(numbers_begin_again)
{
    struct peer *a = add_client();

    POOL("p", 1, REWRITE);
    give(a, "{'id':'a','method':'m'}");
    give(a, "{'id':'b','method':'m'}");
    workers[0].last_id.value = 2147483642u;
    memcpy(workers[0].last_id.digits, "2147483642", 10);
    workers[0].last_id.len = 10;
    expect(give(a, "{'id':'c','method':'m'}"), &workers[0], "{'id':2147483644,'method':'m'}");
    expect(give(a, "{'id':'d','method':'m'}"), &workers[0],
           "{'id':" NUMBER_LAST_TEXT ",'method':'m'}");
    expect(give(a, "{'id':'e','method':'m'}"), &workers[0], "{'id':6,'method':'m'}");
    expect(give(&workers[0], "{'id':2,'result':1}"), a, "{'id':'a','result':1}");
}
END_TEST

START_TEST(numbers_count_up)
{
    struct number number = {0};
    char text[16];
    uint32_t i;

    for (i = 2; i < 300000; i += 2) {
        number_next(&number);
        snprintf(text, sizeof text, "%u", i);
        QUICK_ASSERT(number.value == i);
        QUICK_ASSERT(number.len == strlen(text) && memcmp(number.digits, text, number.len) == 0);
    }
}
END_TEST

/* --- random messages: made of parts, so that what must come out is known byte for byte --- */

#define ROUNDS 20000

static uint64_t random_state;

static unsigned pick(unsigned below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)(random_state % below);
}

struct parts { /* raw JSON; "" for a token that is not there */
    char before[400], id[400], between[400], token[400], behind[400];
};

static void add_random(char *to, size_t size, const char *const *from, unsigned count)
{
    size_t used = strlen(to);

    snprintf(to + used, size - used, "%s", from[pick(count)]);
}

#define ADD(to, from) add_random((to), sizeof(to), (from), sizeof(from) / sizeof((from)[0]))

static const char *const spaces[] = {"", "", "", " ", "\t ", "   \r "};
static const char *const values[] = {
    "0", "-1.5e+7", "true", "null", "\"\"", "\"id\"", "\"\\\"id\\\":1\"", "\"\\\\\"",
    "\"\xe2\x82\xac \xf0\x9f\x9a\x8c\"", "[]", "{}", "[[{\"id\":[1]}],\"]\"]",
    "{\"id\":3,\"_meta\":{\"progressToken\":5},\"params\":{\"progressToken\":1}}",
    "\"0123456789012345678901234567890123456789012345678901234567890123456789\"",
};
static const char *const id_values[] = {
    "0",      "1.0",   "1e3", "-12",  "10.25", "123456789012345678901234567890", "\"\"", "\"a\"",
    "\"\\u0061\"", "\"\\\"\\\\\\/\"", "\"\xc3\xa9\xe2\x82\xac\"", "\"2\"", "2", "-0", "\"\\ud83d\"",
    "\"a rather long id, with {braces} and [brackets], and more of it, and still more of it\"",
};
static const char *const id_keys[] = {"\"id\"", "\"i\\u0064\"", "\"\\u0069\\u0064\""};
static const char *const token_keys[] = {"\"progressToken\"", "\"progress\\u0054oken\""};

static void add_members(char *to, size_t size, unsigned count)
{
    for (; count > 0; count--) {
        size_t used = strlen(to);

        snprintf(to + used, size - used, "%s\"k%u\"%s:%s%s%s,", spaces[pick(6)], count,
                 spaces[pick(6)], spaces[pick(6)],
                 values[pick(sizeof values / sizeof values[0])], spaces[pick(6)]);
    }
}

/* before ID between TOKEN behind; or with the params first. */
static void make_request(struct parts *parts)
{
    memset(parts, 0, sizeof *parts);
    snprintf(parts->before, sizeof parts->before, "%s{", spaces[pick(6)]);
    add_members(parts->before, sizeof parts->before, pick(3));
    ADD(parts->before, id_keys);
    ADD(parts->before, spaces);
    strncat(parts->before, ":", 2);
    ADD(parts->before, spaces);
    ADD(parts->id, id_values);
    ADD(parts->between, spaces);
    strncat(parts->between, ",", 2);
    add_members(parts->between, sizeof parts->between, pick(2));
    strncat(parts->between, "\"method\":\"m\",\"params\":{", 32);
    add_members(parts->between, sizeof parts->between, pick(2));
    if (pick(3) > 0) {
        strncat(parts->between, "\"_meta\" : {", 16);
        ADD(parts->between, token_keys);
        strncat(parts->between, ":", 2);
        ADD(parts->token, id_values);
        strncat(parts->behind, "},", 4);
    }
    add_members(parts->behind, sizeof parts->behind, pick(3));
    strncat(parts->behind, "\"z\":0}}\n", 16);
}

static void join(char *to, size_t size, const struct parts *parts, const char *id,
                 const char *token)
{
    snprintf(to, size, "%s%s%s%s%s", parts->before, id, parts->between,
             parts->token[0] != '\0' ? token : "", parts->behind);
}

static struct delivery *give_exactly(struct peer *from, const char *text)
{
    size_t len = strlen(text);
    char *copy = malloc(len); /* just as much as it needs */
    struct delivery *delivery;

    ck_assert_ptr_nonnull(copy);
    memcpy(copy, text, len);
    delivery = give_bytes(from, copy, len);
    free(copy);
    return delivery;
}

static void expect_exactly(const struct delivery *delivery, const struct peer *to,
                           const char *text)
{
    QUICK_ASSERT(delivery->route.to == to);
    QUICK_ASSERT_MSG(strcmp(delivery->text, text) == 0, "%s instead of %s", delivery->text, text);
}

static void one_round(struct peer *asker, struct peer *answerer, struct peer *number_of)
{
    struct parts parts;
    char text[2400], expected[2400], number[16];
    struct delivery *delivery;

    make_request(&parts);
    join(text, sizeof text, &parts, parts.id, parts.token);
    delivery = give_exactly(asker, text);
    snprintf(number, sizeof number, "%u", number_of->last_id.value);
    join(expected, sizeof expected, &parts, number, number);
    expect_exactly(delivery, answerer, expected);
    if (parts.token[0] != '\0') {
        static const char form[] =
            "{ \"x\":[\"progressToken\"],\"method\":\"notifications/progress\",\"params\":"
            "{\"progressToken\" : %s , \"y\":{\"progressToken\":1}}}\n";

        snprintf(text, sizeof text, form, number);
        snprintf(expected, sizeof expected, form, parts.token);
        delivery = give_exactly(answerer, text);
        expect_exactly(delivery, asker, expected);
    }
    snprintf(text, sizeof text, "{\"result\":%s,\"\\u0069d\":%s}\n",
             values[pick(sizeof values / sizeof values[0])], number);
    snprintf(expected, sizeof expected, "%s", text);
    snprintf(strstr(expected, "\"\\u0069d\":") + 10, 500, "%s}\n", parts.id);
    delivery = give_exactly(answerer, text);
    expect_exactly(delivery, asker, expected);
}

START_TEST(every_other_byte_is_as_it_was)
{
    struct peer *client = add_client();
    int i, rounds = turns(ROUNDS);

    POOL("p", 1, STICKY, REWRITE);
    give(client, "{'method':'m'}");
    random_state = 1 + (unsigned)_i;
    for (i = 0; i < rounds; i++) {
        one_round(client, &workers[0], &workers[0]);
        one_round(&workers[0], client, client);
    }
    ck_assert_uint_eq(router.from_clients.active_count, 0);
    ck_assert_uint_eq(router.from_workers.active_count, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rewriting");
    TCase *tcase = tcase_create("rewriting");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, answers_get_the_id_as_it_was_spelled);
    tcase_add_test(tcase, any_number_of_clients_uses_one_id);
    tcase_add_test(tcase, answers_to_nobody_are_dropped);
    tcase_add_test(tcase, progress_goes_to_who_asked);
    tcase_add_test(tcase, progress_without_rewriting);
    tcase_add_test(tcase, both_tokens_of_lsp);
    tcase_add_loop_test(tcase, cancelling_names_the_right_request, 0, 3);
    tcase_add_test(tcase, requests_of_workers);
    tcase_add_test(tcase, progress_of_what_a_client_was_not_asked_goes_nowhere);
    tcase_add_test(tcase, numbers_of_others_cannot_be_named);
    tcase_add_test(tcase, unreadable_references_pass_without_rewriting);
    tcase_add_test(tcase, sessions_are_of_the_pool_of_their_worker);
    tcase_add_test(tcase, requests_do_not_pass_for_replies);
    tcase_add_test(tcase, number_that_is_free_is_an_id_again);
    tcase_add_test(tcase, numbers_begin_again);
    tcase_add_test(tcase, numbers_count_up);
    tcase_add_loop_test(tcase, every_other_byte_is_as_it_was, 0, 3);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
