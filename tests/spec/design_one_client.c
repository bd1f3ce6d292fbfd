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

static struct sharer *share_saying(const char *initialize)
{
    struct sharer *sharer = SHARE(.share = "--share=tools");
    client_request(sharer->client, "'i'", NULL, "initialize", initialize);
    client_result(sharer->client, "\"i\"");
    client_send(sharer->client, "{'jsonrpc':'2.0','method':'notifications/initialized'}");
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
