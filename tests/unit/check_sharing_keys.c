/* The keys of a pool that say how its workers are shared (stdio_bus.conf(5)). */
#include "build_config.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "config/config.h"

static struct config config;
static char told[4096];

static void note(void *user_data, bool is_error, const char *text)
{
    size_t used = strlen(told);

    (void)user_data;
    (void)is_error;
    snprintf(told + used, sizeof told - used, "%s\n", text);
}

static void end(void)
{
    config_free(&config);
}

/* Reads one pool with these members more; ' stands for ". */
static int read_pool(const char *members)
{
    char text[1024];
    size_t i;

    snprintf(text, sizeof text,
             "{'pools': [{'id': 'a', 'command': '/bin/cat', 'instances': 3\n%s%s}]}",
             members[0] != '\0' ? "," : "", members);
    for (i = 0; text[i] != '\0'; i++)
        text[i] = text[i] == '\'' ? '"' : text[i];
    told[0] = '\0';
    config_free(&config);
    return config_read_text(&config, text, strlen(text), "c", note, NULL);
}

static const struct sharing *sharing(const char *members)
{
    ck_assert_int_eq(read_pool(members), STDIO_BUS_OK);
    ck_assert_str_eq(told, "");
    return &config.pools[0].sharing;
}

static void refused(const char *members, const char *problem)
{
    ck_assert_int_eq(read_pool(members), STDIO_BUS_EINVAL);
    ck_assert_str_eq(told, problem);
}

START_TEST(without_them_a_pool_is_plain)
{
    ck_assert(sharing_is_plain(sharing("")));
    ck_assert_uint_eq(config.pools[0].sharing.busy_timeout_sec, 10);
    ck_assert(sharing_is_plain(sharing("'clients': 'shared', 'session': 'sessionId', "
                                       "'ids': 'preserve', 'request_timeout_sec': 0, 'spare': 1")));
}
END_TEST

START_TEST(each_of_them_makes_a_difference)
{
    ck_assert(!sharing_is_plain(sharing("'clients': 'sticky'")));
    ck_assert(!sharing_is_plain(sharing("'clients': 'exclusive'")));
    ck_assert(!sharing_is_plain(sharing("'session': 'params.sessionId'")));
    ck_assert(!sharing_is_plain(sharing("'ids': 'rewrite'")));
    ck_assert(!sharing_is_plain(sharing("'request_timeout_sec': 1")));
    ck_assert(!sharing_is_plain(sharing("'protocol': 'lsp', 'clients': 'shared'")));
}
END_TEST

START_TEST(values_are_read)
{
    const struct sharing *s = sharing("'clients': 'exclusive', 'session': 'params.sessionId', "
                                      "'ids': 'rewrite', 'spare': 2, 'busy_timeout_sec': 3, "
                                      "'request_timeout_sec': 4");

    ck_assert_int_eq(s->clients, CLIENTS_EXCLUSIVE);
    ck_assert_int_eq(s->protocol, PROTOCOL_UNKNOWN);
    ck_assert(s->session_in_params);
    ck_assert(s->rewrite_ids);
    ck_assert_uint_eq(s->spare, 2);
    ck_assert_uint_eq(s->busy_timeout_sec, 3);
    ck_assert_uint_eq(s->request_timeout_sec, 4);
}
END_TEST

START_TEST(a_protocol_stands_for_others)
{
    const struct sharing *s = sharing("'protocol': 'mcp'");

    ck_assert_int_eq(s->protocol, PROTOCOL_MCP);
    ck_assert_int_eq(s->clients, CLIENTS_EXCLUSIVE);
    ck_assert_uint_eq(s->spare, 1);
    ck_assert(!s->session_in_params);
    ck_assert(!s->rewrite_ids);
    s = sharing("'protocol': 'acp'");
    ck_assert_int_eq(s->protocol, PROTOCOL_ACP);
    ck_assert_int_eq(s->clients, CLIENTS_STICKY);
    ck_assert(s->session_in_params);
    ck_assert(s->rewrite_ids);
    s = sharing("'protocol': 'lsp'");
    ck_assert_int_eq(s->protocol, PROTOCOL_LSP);
    ck_assert_int_eq(s->clients, CLIENTS_EXCLUSIVE);
}
END_TEST

START_TEST(keys_beside_it_override_it)
{
    const struct sharing *s = sharing("'clients': 'sticky', 'ids': 'rewrite', 'protocol': 'mcp'");

    ck_assert_int_eq(s->clients, CLIENTS_STICKY);
    ck_assert(s->rewrite_ids);
    s = sharing("'protocol': 'acp', 'ids': 'preserve', 'session': 'sessionId', "
                "'clients': 'shared'");
    ck_assert(!s->rewrite_ids);
    ck_assert(!s->session_in_params);
    ck_assert_int_eq(s->clients, CLIENTS_SHARED);
    ck_assert_uint_eq(sharing("'protocol': 'mcp', 'spare': 0")->spare, 0);
}
END_TEST

START_TEST(wrong_values_are_errors)
{
    refused("'clients': 'many'",
            "c:2:13: pools[0].clients: must be \"shared\", \"sticky\" or \"exclusive\"\n");
    refused("'clients': 1", "c:2:13: pools[0].clients: must be a string, not a number\n");
    refused("'session': 'params'",
            "c:2:13: pools[0].session: must be \"sessionId\" or \"params.sessionId\"\n");
    refused("'ids': 'Rewrite'", "c:2:9: pools[0].ids: must be \"preserve\" or \"rewrite\"\n");
    refused("'protocol': ''", "c:2:14: pools[0].protocol: must be \"mcp\", \"acp\" or \"lsp\"\n");
    refused("'spare': -1", "c:2:11: pools[0].spare: must be an integer >= 0\n");
    refused("'spare': 1025", "c:2:11: pools[0].spare: must be an integer <= 1024\n");
    refused("'busy_timeout_sec': 86401",
            "c:2:22: pools[0].busy_timeout_sec: must be an integer <= 86400\n");
    refused("'request_timeout_sec': 0.5",
            "c:2:25: pools[0].request_timeout_sec: must be an integer >= 0\n");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sharing keys");
    TCase *tcase = tcase_create("sharing keys");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tcase, NULL, end);
    tcase_add_test(tcase, without_them_a_pool_is_plain);
    tcase_add_test(tcase, each_of_them_makes_a_difference);
    tcase_add_test(tcase, values_are_read);
    tcase_add_test(tcase, a_protocol_stands_for_others);
    tcase_add_test(tcase, keys_beside_it_override_it);
    tcase_add_test(tcase, wrong_values_are_errors);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
