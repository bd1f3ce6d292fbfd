/* Ids and tokens in pools that rewrite them. Every other byte of a message is unchanged. */
#include "build_config.h"

#include "pool_mode_fixture.h"
#include "table_fixture.h"
#include "turns.h"

#define NUMBER_LAST_TEXT "2147483644"
#define NO_NUMBER "2147483646"
#define LONG_NUMBER "123456789012345678901234567890"

/* 2, spelled so that it is too long for an id. */
#define LONG_TWO                                                                                   \
    "2.0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"   \
    "0000000000000000000000000000000000000000000000000000"

/* --- ids, tokens, and messages that name them --- */

TEST(answers_get_the_id_as_it_was_spelled)
{
    static const char *const ids[] = {"1.0",   "1e3",        "-7",        "1.5e2",
                                      "0.5",   "'a'",        "''",        "'\\u0061\\n'",
                                      "'\\/'", "'\xc3\xa9'", LONG_NUMBER, "-0.0"};
    struct peer *a = add_client();
    char request[200], seen[200], answer[200], expected[200];

    POOL("p", 1, REWRITE);
    for (size_t i = 0; i < COUNT(ids); i++) {
        snprintf(request, sizeof request, "{ 'id' : %s , 'method' : 'm' }", ids[i]);
        snprintf(seen, sizeof seen, "{ 'id' : %zu , 'method' : 'm' }", 2 * i + 2);
        expect(give(a, request), &workers[0], seen);
    }
    for (size_t i = 0; i < COUNT(ids); i++) {
        snprintf(answer, sizeof answer, "{'result':{'id':1},'id':%zu.0 }", 2 * i + 2);
        snprintf(expected, sizeof expected, "{'result':{'id':1},'id':%s }", ids[i]);
        expect(give(&workers[0], answer), a, expected);
        expect_action(give(&workers[0], answer), ACTION_DISCARD);
    }
}

TEST(any_number_of_clients_uses_one_id)
{
    struct peer *a = add_client(), *b = add_client(), *c = add_client();

    POOL("p", 1, REWRITE);
    expect_unchanged(a, "{'id':2,'method':'m'}", &workers[0]);
    expect(give(b, "{'id':2,'method':'m'}"), &workers[0], "{'id':4,'method':'m'}");
    expect(give(c, "{'id':'2','method':'m'}"), &workers[0], "{'id':6,'method':'m'}");
    expect_refused(give(a, "{'id':2.0,'method':'m'}"), "still in flight");
    expect(give(&workers[0], "{'id':4,'result':1}"), b, "{'id':2,'result':1}");
    expect(give(&workers[0], "{'id':6,'error':1}"), c, "{'id':'2','error':1}");
    expect_action(give(&workers[0], "{'id':'2','result':1}"), ACTION_DISCARD);
    expect_action(give(&workers[0], "{'id':3,'result':1}"), ACTION_DISCARD);
    expect_unchanged(&workers[0], "{'id':2,'result':1}", a);
}

TEST(answers_to_abandoned_requests_are_dropped)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, STICKY, REWRITE);
    give(a, "{'id':1,'method':'m'}");
    give(b, "{'id':1,'method':'m'}");
    leave(a);
    expect_action(give(&workers[0], "{'id':2,'result':1}"), ACTION_DROP);
    expect_action(give(&workers[0], "{'id':2,'result':1}"), ACTION_DISCARD);
    expect(give(&workers[0], "{'id':4,'result':1}"), b, "{'id':1,'result':1}");
}

TEST(progress_goes_to_the_asker)
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
                  ACTION_DROP);
    give(&workers[0], "{'id':2,'result':1}");
    expect_action(give(&workers[0],
                       "{'method':'notifications/progress','params':{'progressToken':2}}"),
                  ACTION_DROP);
    /* Tokens of the worker's. */
    expect_action(give(&workers[0],
                       "{'method':'notifications/progress','params':{'progressToken':'w'}}"),
                  ACTION_BROADCAST);
    expect_action(give(&workers[0],
                       "{'method':'notifications/progress','params':{'progressToken':6}}"),
                  ACTION_BROADCAST);
}

TEST(progress_without_rewriting)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, STICKY);
    give(a, "{'id':1,'method':'m','params':{'_meta':{'progressToken':'t'}}}");
    give(b, "{'id':2,'method':'m','params':{'_meta':{'progressToken':5}}}");
    expect_unchanged(&workers[0],
                     "{'method':'notifications/progress','params':{'progressToken':5.0}}", b);
    expect_unchanged(&workers[0], "{'method':'$/progress','params':{'token':'t'}}", a);
    expect_action(give(&workers[0], "{'method':'$/progress','params':{'token':'u'}}"),
                  ACTION_BROADCAST);
}

TEST(both_tokens_of_lsp)
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
    expect_unchanged(a, "{'method':'window/workDoneProgress/cancel','params':{'token':'servers'}}",
                     &workers[0]);
}

/* In all places at once. A request has two numbers; the third token is a text. */
TEST(tokens_in_all_three_places)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, STICKY, REWRITE);
    give(b, "{'id':1,'method':'m','params':{'_meta':{'progressToken':'of b'}}}");
    expect(give(a, "{'id':1,'method':'m','params':{'_meta':{'progressToken':2},"
                   "'workDoneToken':'w','partialResultToken':null}}"),
           &workers[0],
           "{'id':4,'method':'m','params':{'_meta':{'progressToken':4},"
           "'workDoneToken':'4#','partialResultToken':null}}");
    expect(give(a, "{'id':2,'method':'m','params':{'workDoneToken':2,"
                   "'partialResultToken':2,'_meta':{'progressToken':2}}}"),
           &workers[0],
           "{'id':6,'method':'m','params':{'workDoneToken':'6#',"
           "'partialResultToken':7,'_meta':{'progressToken':6}}}");
    expect(give(&workers[0], "{'method':'$/progress','params':{'token':'4\\u0023'}}"), a,
           "{'method':'$/progress','params':{'token':'w'}}");
    expect(give(&workers[0], "{'method':'$/progress','params':{'token':'6#'}}"), a,
           "{'method':'$/progress','params':{'token':2}}");
    expect(give(a, "{'method':'window/workDoneProgress/cancel','params':{'token':'w'}}"),
           &workers[0], "{'method':'window/workDoneProgress/cancel','params':{'token':'4#'}}");
    give(&workers[0], "{'id':4,'result':0}");
    expect_action(give(&workers[0], "{'method':'$/progress','params':{'token':'4#'}}"),
                  ACTION_DROP);
    expect_action(give(&workers[0], "{'method':'$/progress','params':{'token':'own#'}}"),
                  ACTION_BROADCAST);
    expect_action(give(&workers[0], "{'method':'$/progress','params':{'token':'8#'}}"),
                  ACTION_BROADCAST);
}

/* A notification, also one with the id null, may have the number of another client's request for a
 * token. Progress for a notification reaches no client. */
/* They take no number from the requests, so that no number comes again soon. */
TEST(tokens_of_notifications_are_for_no_request)
{
    static const char cancel[] =
        "{'method':'$/cancelRequest','params':{'workDoneToken':2,'id':'x'}}";
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, STICKY, REWRITE);
    give(a, "{'id':1,'method':'m','params':{'_meta':{'progressToken':'of a'}}}");
    expect(give(b, "{'id':null,'method':'m','params':{'_meta':{'progressToken':2}}}"), &workers[0],
           "{'id':null,'method':'m','params':{'_meta':{'progressToken':" NO_NUMBER "}}}");
    expect(give(b, "{'method':'m','params':{'workDoneToken':2,'partialResultToken':2,"
                   "'_meta':{'progressToken':2}}}"),
           &workers[0],
           "{'method':'m','params':{'workDoneToken':'" NO_NUMBER
           "#','partialResultToken':2147483647,"
           "'_meta':{'progressToken':" NO_NUMBER "}}}");
    expect_action(give(&workers[0], "{'method':'$/progress','params':{'token':" NO_NUMBER "}}"),
                  ACTION_DROP);
    expect_action(give(&workers[0], "{'method':'$/progress','params':{'token':2147483647}}"),
                  ACTION_DROP);
    expect_action(give(&workers[0], "{'method':'$/progress','params':{'token':'" NO_NUMBER "#'}}"),
                  ACTION_DROP);
    expect_action(give(b, "{'method':'window/workDoneProgress/cancel',"
                          "'params':{'token':" NO_NUMBER "}}"),
                  ACTION_DROP);
    expect(give(b, "{'id':'x','method':'m'}"), &workers[0], "{'id':4,'method':'m'}");
    expect(give(b, cancel), &workers[0],
           "{'method':'$/cancelRequest','params':{'workDoneToken':" NO_NUMBER ",'id':4}}");
    expect(give(&workers[0], "{'method':'$/progress','params':{'token':2}}"), a,
           "{'method':'$/progress','params':{'token':'of a'}}");
}

#define SIXTY_FOUR "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* row: the token. It could be neither replaced nor found again. */
TEST_ROWS(tokens_that_cannot_be_read_are_refused, 4)
{
    static const char *const tokens[] = {"'" SIXTY_FOUR SIXTY_FOUR "+'", LONG_TWO, "{'a':2}",
                                         "true"};
    static const char *const places[] = {"'_meta':{'progressToken':%s}", "'workDoneToken':%s",
                                         "'partialResultToken':%s",
                                         "'workDoneToken':1,'_meta':{'progressToken':%s}"};
    struct peer *a = add_client(), *b = add_client();
    char place[300], text[400];

    POOL("rewriting", 1, STICKY, REWRITE);
    POOL("preserving", 1, STICKY);
    POOL("plain", 1, .clients = CLIENTS_SHARED);
    for (size_t i = 0; i < COUNT(places); i++) {
        static const char *const names[] = {"rewriting", "preserving", "plain"};
        size_t j;

        snprintf(place, sizeof place, places[i], tokens[row]);
        for (j = 0; j < COUNT(names); j++) {
            snprintf(text, sizeof text, "{'id':%zu,'pool':'%s','method':'m','params':{%s}}", i,
                     names[j], place);
            if (j == 2)
                expect_unchanged(a, text, &workers[2]);
            else
                expect_refused(give(a, text), "progress token");
            snprintf(text, sizeof text, "{'id':null,'pool':'%s','method':'m','params':{%s}}",
                     names[j], place);
            expect_action(give(b, text), j == 2 ? ACTION_FORWARD : ACTION_DISCARD);
        }
    }
    ck_assert_uint_eq(router.from_clients.active_count, COUNT(places));
}

/* As the scanner has it: an id of 128 bytes may be a token, too. */
TEST(token_of_128_bytes)
{
    struct peer *a = add_client();

    POOL("p", 1, STICKY, REWRITE);
    expect(give(a, "{'id':1,'method':'m','params':{'workDoneToken':'" SIXTY_FOUR SIXTY_FOUR "'}}"),
           &workers[0], "{'id':2,'method':'m','params':{'workDoneToken':2}}");
    expect(give(&workers[0], "{'method':'$/progress','params':{'token':2}}"), a,
           "{'method':'$/progress','params':{'token':'" SIXTY_FOUR SIXTY_FOUR "'}}");
}

TEST_ROWS(cancelling_names_the_right_request, 3)
{
    static const char form[] = "{'method':'%s','params':{'%s':%s}}";
    static const char *const forms[][2] = {
        {"notifications/cancelled", "requestId"},
        {"$/cancelRequest", "id"},
        {"$/cancel_request", "requestId"},
    };
    const char *method = forms[row][0], *key = forms[row][1];
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
    expect_action(give(a, text), ACTION_DROP);
    /* In MCP a cancelled request is not answered any more. */
    ck_assert_uint_eq(router.from_clients.active_count, row == 0 ? 1 : 3);
    expect_action(give(&workers[0], "{'id':2,'result':1}"),
                  row == 0 ? ACTION_DROP : ACTION_FORWARD);
}

TEST(requests_of_workers)
{
    struct peer *a = add_client();

    POOL("p", 1, STICKY, REWRITE);
    POOL("q", 1, STICKY, REWRITE);
    POOL("r", 1, STICKY);
    give(a, "{'method':'m','pool':'p'}");
    give(a, "{'method':'m','pool':'q'}");
    give(a, "{'method':'m','pool':'r'}");
    /* An id that passes unchanged may be one of the daemon's numbers. */
    expect_unchanged(&workers[2], "{'id':2,'method':'q'}", a);
    expect(give(&workers[0], "{'id':'q','method':'q','params':{'_meta':{'progressToken':9}}}"), a,
           "{'id':4,'method':'q','params':{'_meta':{'progressToken':4}}}");
    expect(give(&workers[1], "{'id':'q','method':'q'}"), a, "{'id':6,'method':'q'}");
    /* Progress from the client, and the worker cancels a request. */
    expect(give(a, "{'method':'notifications/progress','params':{'progressToken':4},'pool':'p'}"),
           &workers[0],
           "{'method':'notifications/progress','params':{'progressToken':9},'pool':'p'}");
    expect(give(&workers[1], "{'method':'$/cancelRequest','params':{'id':'q'}}"), a,
           "{'method':'$/cancelRequest','params':{'id':6}}");
    expect(give(a, "{'id':6,'error':{}}"), &workers[1], "{'id':'q','error':{}}");
    expect(give(a, "{'id':4,'result':{}}"), &workers[0], "{'id':'q','result':{}}");
    expect_unchanged(a, "{'id':2,'result':{}}", &workers[2]);
    /* A second reply must not pass for the reply to another request. */
    expect_action(give(a, "{'id':4,'result':{},'pool':'p'}"), ACTION_DISCARD);
}

TEST(progress_of_another_clients_request_is_dropped)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, STICKY, REWRITE);
    give(a, "{'id':1,'method':'m'}");
    give(b, "{'method':'m'}");
    give(&workers[0], "{'id':'q','method':'m','params':{'_meta':{'progressToken':'t'}}}");
    expect_action(give(b, "{'method':'notifications/progress','params':{'progressToken':'t'}}"),
                  ACTION_DROP);
}

TEST(numbers_of_other_clients_cannot_be_named)
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
        "{'method':'window/workDoneProgress/cancel','params':{'token':'2#'}}",
        "{'method':'$/progress','params':{'token':'2#'}}",
        "{'method':'window/workDoneProgress/cancel','params':{'token':" LONG_TWO "}}",
    };
    static const char theirs[] =
        "{'method':'window/workDoneProgress/cancel','params':{'token':99}}";
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, STICKY, REWRITE);
    give(a, "{'id':1,'method':'m','params':{'workDoneToken':1,'partialResultToken':2}}");
    give(b, "{'method':'m'}");
    for (size_t i = 0; i < COUNT(notifications); i++)
        expect_action(give(b, notifications[i]), ACTION_DROP);
    expect_unchanged(b, theirs, &workers[0]);
    expect_refused(give(b, "{'id':1,'method':'$/cancelRequest','params':{'id':2}}"),
                   "notification");
    expect_refused(give(b, "{'id':1,'method':'$/cancelRequest','params':{'id':1}}"),
                   "notification");
    expect_refused(give(b, "{'id':1,'method':'m','params':{'workDoneToken':" LONG_TWO "}}"),
                   "progress token");
    expect(give(&workers[0], "{'method':'$/progress','params':{'token':3}}"), a,
           "{'method':'$/progress','params':{'token':2}}");
}

/* A request in the session, what the worker gets, a cancellation and a reply. */
#define NAMING(pool)                                                                               \
    {                                                                                              \
        "{'pool':'" pool "','sessionId':'a','id':4,'method':'m'}",                                 \
            "{'pool':'" pool "','sessionId':'a','id':8,'method':'m'}",                             \
            "{'pool':'" pool "','sessionId':'a','method':'$/cancelRequest','params':{'id':2}}",    \
            "{'pool':'" pool "','sessionId':'a','id':7,'result':1}"                                \
    }

/* Whatever pool a message names, the mode of its session's pool counts. row: the pool it names. */
TEST_ROWS(session_is_of_the_pool_of_its_worker, 2)
{
    static const char *const texts[2][4] = {NAMING("plain"), NAMING("none")};
    const char *const *text = texts[row];
    struct peer *a = add_client(), *b = add_client();

    POOL("plain", 1, .clients = CLIENTS_SHARED);
    POOL("nested", 1, REWRITE, NESTED);
    give(a, "{'pool':'nested','id':1,'method':'m'}");
    give(b, "{'pool':'nested','id':1,'method':'m'}");
    give(&workers[1], "{'id':2,'result':{'sessionId':'a'}}");
    give(&workers[1], "{'id':4,'result':{'sessionId':'b'}}");
    give(b, "{'pool':'nested','id':1,'method':'m','params':{'sessionId':'b'}}");
    expect(give(a, text[0]), &workers[1], text[1]);
    expect_action(give(a, text[2]), ACTION_DROP);
    expect_action(give(a, text[3]), ACTION_DISCARD);
    expect(give(&workers[1], "{'id':6,'result':1}"), b, "{'id':1,'result':1}");
    expect(give(&workers[1], "{'id':8,'result':1}"), a, "{'id':4,'result':1}");
}

/* A session that no worker of that pool has. */
TEST(unknown_session_is_of_the_pool_that_the_message_names)
{
    struct peer *a = add_client();

    POOL("plain", 1, .clients = CLIENTS_SHARED);
    POOL("nested", 1, REWRITE, NESTED);
    expect_unchanged(a, "{'pool':'plain','sessionId':'c','id':4,'method':'m'}", &workers[0]);
    expect_unchanged(a, "{'pool':'plain','sessionId':'c','id':7,'result':1}", &workers[0]);
    expect_refused(give(a, "{'pool':'none','sessionId':'d','id':5,'method':'m'}"), "no such pool");
}

TEST(requests_do_not_pass_for_replies)
{
    struct peer *a = add_client(), *b = add_client();

    POOL("p", 1, STICKY);
    give(a, "{'method':'m'}");
    give(b, "{'method':'m'}");
    expect_refused(give(b, "{'id':7,'method':'m','result':1}"), "result");
    expect_refused(give(b, "{'id':7,'method':'m','error':1}"), "error");
    expect_action(give(b, "{'method':'m','error':1}"), ACTION_DISCARD);
}

/* Without rewriting they are content. */
TEST(unreadable_references_pass_without_rewriting)
{
    static const char cancel[] = "{'method':'$/cancelRequest','params':{'id':" LONG_TWO "}}";
    static const char request[] = "{'id':2,'method':'$/cancelRequest','params':{'id':1}}";
    struct peer *a = add_client();

    POOL("p", 1, STICKY);
    expect_unchanged(a, cancel, &workers[0]);
    expect_unchanged(a, request, &workers[0]);
}

/* A worker that waits for one of the daemon's numbers as its own id gets it when it is free. */
TEST(number_that_is_free_is_an_id_again)
{
    struct peer *a = add_client();

    POOL("p", 1, STICKY, REWRITE);
    POOL("q", 1, STICKY);
    give(a, "{'method':'m','pool':'p'}");
    give(a, "{'method':'m','pool':'q'}");
    expect(give(&workers[0], "{'id':'x','method':'q'}"), a, "{'id':2,'method':'q'}");
    expect_action(give(&workers[1], "{'id':2,'method':'q'}"), ACTION_HOLD);
    expect(give(a, "{'id':2,'result':1}"), &workers[0], "{'id':'x','result':1}");
    expect_released(&workers[1]);
    expect_unchanged(&workers[1], "{'id':2,'method':'q'}", a);
    expect_refused(give(&workers[1], "{'id':2,'method':'q'}"), "still in flight");
    expect_unchanged(a, "{'id':2,'result':1}", &workers[1]);
}

TEST(numbers_begin_again)
{
    struct peer *a = add_client();

    POOL("p", 1, REWRITE);
    give(a, "{'id':'a','method':'m'}");
    give(a, "{'id':'b','method':'m'}");
    workers[0].last_number = 2147483640u;
    expect(give(a, "{'id':'c','method':'m'}"), &workers[0], "{'id':2147483642,'method':'m'}");
    expect(give(a, "{'id':'d','method':'m'}"), &workers[0],
           "{'id':" NUMBER_LAST_TEXT ",'method':'m'}");
    expect(give(a, "{'id':'e','method':'m'}"), &workers[0], "{'id':6,'method':'m'}");
    expect(give(&workers[0], "{'id':2,'result':1}"), a, "{'id':'a','result':1}");
}

TEST(numbers_are_written_in_decimal)
{
    char text[PENDING_DIGITS], expected[16];

    for (uint32_t i = 2; i < 300000; i += 2) {
        struct message_id id = pending_number_id(text, i);

        snprintf(expected, sizeof expected, "%u", i);
        QUICK_ASSERT(slice_equal(id.text, slice_of(expected, strlen(expected))));
    }
}

/* --- random messages, made of parts: the result is known byte for byte --- */

#define ROUNDS 20000

struct parts { /* raw JSON; "" for a token that is not there */
    char before[400], id[400], between[400], token[400], after[400];
};

static void add_random(char *to, size_t size, const char *const *from, unsigned count)
{
    size_t used = strlen(to);

    snprintf(to + used, size - used, "%s", from[next_random(count)]);
}

#define ADD(to, from) add_random((to), sizeof(to), (from), sizeof(from) / sizeof((from)[0]))

#define LONG_TEXT                                                                                  \
    "\"a rather long text, {with braces}, [brackets], \\\"quotes\\\" and still more of it\""
#define OBJECT "{\"id\":3,\"_meta\":{\"progressToken\":5},\"params\":{\"progressToken\":1}}"

static const char *const spaces[] = {"", "", "", " ", "\t ", "   \r "};
static const char *const values[] = {"0",
                                     "-1.5e+7",
                                     "true",
                                     "null",
                                     "\"\"",
                                     "\"id\"",
                                     "\"\\\"id\\\":1\"",
                                     "\"\\\\\"",
                                     "\"\xe2\x82\xac \xf0\x9f\x9a\x8c\"",
                                     "[]",
                                     "{}",
                                     "[[{\"id\":[1]}],\"]\"]",
                                     OBJECT,
                                     LONG_TEXT};
static const char *const id_values[] = {"0",
                                        "1.0",
                                        "1e3",
                                        "-12",
                                        "10.25",
                                        LONG_NUMBER,
                                        "\"\"",
                                        "\"a\"",
                                        "\"\\u0061\"",
                                        "\"\\\"\\\\\\/\"",
                                        "\"\xc3\xa9\xe2\x82\xac\"",
                                        "\"2\"",
                                        "2",
                                        "-0",
                                        "\"\\ud83d\"",
                                        LONG_TEXT};
static const char *const id_keys[] = {"\"id\"", "\"i\\u0064\"", "\"\\u0069\\u0064\""};
static const char *const token_keys[] = {"\"progressToken\"", "\"progress\\u0054oken\""};

static void add_members(char *to, size_t size, unsigned count)
{
    for (; count > 0; count--) {
        size_t used = strlen(to);

        snprintf(to + used, size - used, "%s\"k%u\"%s:%s%s%s,", spaces[next_random(6)], count,
                 spaces[next_random(6)], spaces[next_random(6)], values[next_random(COUNT(values))],
                 spaces[next_random(6)]);
    }
}

/* before ID between TOKEN after */
static void make_request(struct parts *parts)
{
    memset(parts, 0, sizeof *parts);
    snprintf(parts->before, sizeof parts->before, "%s{", spaces[next_random(6)]);
    add_members(parts->before, sizeof parts->before, next_random(3));
    ADD(parts->before, id_keys);
    ADD(parts->before, spaces);
    strncat(parts->before, ":", 2);
    ADD(parts->before, spaces);
    ADD(parts->id, id_values);
    ADD(parts->between, spaces);
    strncat(parts->between, ",", 2);
    add_members(parts->between, sizeof parts->between, next_random(2));
    strncat(parts->between, "\"method\":\"m\",\"params\":{", 32);
    add_members(parts->between, sizeof parts->between, next_random(2));
    if (next_random(3) > 0) {
        strncat(parts->between, "\"_meta\" : {", 16);
        ADD(parts->between, token_keys);
        strncat(parts->between, ":", 2);
        ADD(parts->token, id_values);
        strncat(parts->after, "},", 4);
    }
    add_members(parts->after, sizeof parts->after, next_random(3));
    strncat(parts->after, "\"z\":0}}\n", 16);
}

static void join(char *to, size_t size, const struct parts *parts, const char *id,
                 const char *token)
{
    snprintf(to, size, "%s%s%s%s%s", parts->before, id, parts->between,
             parts->token[0] != '\0' ? token : "", parts->after);
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

static void expect_exactly(const struct delivery *delivery, const struct peer *to, const char *text)
{
    QUICK_ASSERT(delivery->decision.to == to);
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
    snprintf(number, sizeof number, "%u", number_of->last_number);
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
             values[next_random(COUNT(values))], number);
    snprintf(expected, sizeof expected, "%s", text);
    snprintf(strstr(expected, "\"\\u0069d\":") + 10, 500, "%s}\n", parts.id);
    delivery = give_exactly(answerer, text);
    expect_exactly(delivery, asker, expected);
}

TEST_ROWS(every_other_byte_is_unchanged, 3)
{
    struct peer *client = add_client();
    int i, rounds = turns(ROUNDS);

    POOL("p", 1, STICKY, REWRITE);
    give(client, "{'method':'m'}");
    random_state = 1 + (unsigned)row;
    for (i = 0; i < rounds; i++) {
        one_round(client, &workers[0], &workers[0]);
        one_round(&workers[0], client, client);
    }
    ck_assert_uint_eq(router.from_clients.active_count, 0);
    ck_assert_uint_eq(router.from_workers.active_count, 0);
}

FIXTURE(set_up, tear_down)
