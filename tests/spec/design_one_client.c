/* stdio_bus(1), --share: a server that keeps a state for one client is seen. */
#include "build_config.h"

#include "harness.h"
#include "share.h"

#define INITIALIZE(capabilities)                                                                   \
    "{'protocolVersion':'2025-11-25','capabilities':{},'result':{'protocolVersion':'2025-11-25',"  \
    "'capabilities':{'tools':{}" capabilities "}}}"
#define ADVICE "--clients exclusive before the -- gives each client a process of its own"

static const char *list(const char *option)
{
    const char *const words[] = {"--list", option, NULL};
    return share_run(words, 0);
}

static struct sharer *share_as(const char *clients)
{
    return SHARE(.share = "--share=tools", .arguments = {"--clients", clients});
}

static void greet(const struct sharer *sharer, const char *initialize)
{
    client_request(sharer->client, "'i'", NULL, "initialize", initialize);
    client_result(sharer->client, "\"i\"");
    client_send(sharer->client, "{'jsonrpc':'2.0','method':'notifications/initialized'}");
}

static struct sharer *share_saying(const char *initialize)
{
    struct sharer *sharer = share_as("sticky");
    greet(sharer, initialize);
    client_ask(sharer->client, "1", NULL, "echo", NULL);
    return sharer;
}

TEST(design_server_for_one_client_is_seen)
{
    struct sharer *sharer = share_saying(INITIALIZE(",'x-mux':{'sharing':'isolated'}"));
    WAIT_UNTIL(share_logged(ADVICE) == 1, "%zu lines of advice", share_logged(ADVICE));
    expect_word(list(NULL), " keeps a state (its own word) for one client: " ADVICE);
    expect_word(list("--json"), "\"one_client\":\"a state (its own word)\"");
    share_finish(sharer);
}

TEST(design_server_for_all_clients_is_not)
{
    struct sharer *sharer = share_saying(INITIALIZE(""));
    ck_assert_ptr_null(strstr(list(NULL), ADVICE));
    expect_word(list("--json"), "\"one_client\":null");
    ck_assert_uint_eq(share_logged(ADVICE), 0);
    share_finish(sharer);
}

/* --- --clients auto --- */

#define ISOLATED INITIALIZE(",'x-mux':{'sharing':'isolated'}")
#define PLAIN INITIALIZE("")

static long greeted_pid(const struct sharer *sharer, const char *initialize)
{
    greet(sharer, initialize);
    return client_pid(sharer->client, "1", NULL);
}

TEST(design_clients_auto_keeps_clients_apart)
{
    struct sharer *sharers[3];
    long pids[3];
    for (int i = 0; i < 3; i++) {
        sharers[i] = share_as("auto");
        pids[i] = greeted_pid(sharers[i], ISOLATED);
        for (int j = 0; j < i; j++)
            ck_assert_int_ne(pids[j], pids[i]);
    }
    ck_assert_int_gt(share_daemon(), 0); /* the only one */
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(client_pid(sharers[i]->client, "2", NULL), pids[i]);
        share_finish(sharers[i]);
    }
}

/* They share from when it is known on, which the list of tools shows. */
/* The first client uses the process that may be shared, whoever has looked at the daemon. */
TEST(design_clients_auto_counts_no_connection_that_has_looked)
{
    struct sharer *starter = share_as("auto");
    client_ask(starter->client, "1", NULL, "echo", NULL);
    share_finish(starter);
    struct client *looker = share_connect("tools");
    client_send(looker, "{'stdio_bus':'status'}");
    client_line(looker);
    struct sharer *first = share_as("auto");
    client_ask(first->client, "1", NULL, "echo", NULL);
    ck_assert_uint_eq(share_logged("-alone"), 0);
    share_finish(first);
}

TEST(design_clients_auto_shares)
{
    struct sharer *first = share_as("auto"), *second;
    long pid = greeted_pid(first, PLAIN);
    client_ask(first->client, "2", NULL, "tools/list", NULL);
    second = share_as("auto");
    ck_assert_int_eq(greeted_pid(second, PLAIN), pid);
    share_finish(first);
    share_finish(second);
}

/* It is not known yet when the second client comes. */
TEST(design_clients_auto_is_careful)
{
    struct sharer *first = share_as("auto"), *second = share_as("auto");
    long pid;
    WAIT_UNTIL(share_logged("\\] connected: ") == 2, "not both have joined");
    pid = greeted_pid(second, PLAIN);
    ck_assert_int_ne(greeted_pid(first, PLAIN), pid);
    share_finish(first);
    share_finish(second);
}

static const char *const misuses[][8] = {
    {"--clients", "auto", "--", "cat", NULL},
    {"--share", "--clients", "auto", "--eager", "--", "cat", NULL},
    {"--share", "--clients", "auto", "--protocol", "acp", "--", "cat", NULL},
};

TEST_ROWS(design_clients_auto_misused, COUNT(misuses))
{
    share_run(misuses[row], 64);
}
