/* DESIGN 2, "Fair shares": of which one client takes what it can get, the others get theirs. */
#include "build_config.h"

#include "harness.h"

#define HONEST "127.0.0.2"

/* A daemon on TCP: clients of two addresses are of two origins. */
#define START_TCP(...) START(.mode = SETUP_TCP, .instances = 1, __VA_ARGS__)

#define EXCLUSIVE_ARGS(instances, args)                                                            \
    "{'id':'p','command':'@WORKER@','args':[" args "],'instances':" #instances                     \
    ",'clients':'exclusive','busy_timeout_sec':600}"
#define EXCLUSIVE(instances) EXCLUSIVE_ARGS(instances, "")

/* False: the machine has no second address. */
static bool has_second_address(void)
{
    struct daemon *daemon = START_TCP(.limits = NULL);
    struct client *client = client_try_connect_from(daemon, HONEST);
    bool has = client != NULL;
    ck_assert_msg(has || errno == EADDRNOTAVAIL, "%s: %s", HONEST, strerror(errno));
    if (has)
        client_close(client);
    daemon_stop(daemon);
    return has;
}

/* Requests until one is refused; their number. The ids begin with the prefix. */
static int fill(struct client *client, const char *prefix, const char *session, const char *limit)
{
    char id[32];
    for (int i = 0;; i++) {
        snprintf(id, sizeof id, "\"%s%d\"", prefix, i);
        client_send(client, "{'id':%s,'method':'no_answer'%s}", id,
                    session == NULL ? "" : test_format(",'sessionId':'%s%d'", session, i));
        client_send(client, "{'id':'probe','pool':'none','method':'m'}");
        struct span line = client_line(client);
        if (!span_is(json_get(line, "id"), id)) {
            expect_member(line, "id", "'probe'");
            continue;
        }
        expect_member(line, "error.code", "-32000");
        ck_assert_ptr_nonnull(strstr(line.data, limit));
        expect_member(client_line(client), "id", "'probe'");
        return i;
    }
}

TEST(design_client_gets_its_share_of_pending_requests)
{
    struct daemon *daemon = START(.instances = 1, .limits = "'max_pending_requests':8");
    struct client *hog = client_connect(daemon), *honest = client_connect(daemon);
    ck_assert_int_eq(fill(hog, "h", NULL, "max_pending_requests"), 8);
    ck_assert_int_eq(fill(honest, "a", NULL, "max_pending_requests"), 2);
    client_close(hog);
    daemon_wait_log(daemon, "client=1.*disconnected");
    ck_assert_int_eq(fill(honest, "b", NULL, "max_pending_requests"), 6);
}

TEST(design_client_gets_its_share_of_sessions)
{
    struct daemon *daemon = START(.instances = 1, .limits = "'max_sessions':8");
    struct client *hog = client_connect(daemon), *honest = client_connect(daemon);
    ck_assert_int_eq(fill(hog, "h", "h", "max_sessions"), 8);
    ck_assert_int_eq(fill(honest, "a", "a", "max_sessions"), 2);
}

/* Ten clients of one address; with eleven clients a client's share is less than one. */
TEST_ROWS(design_origin_gets_its_share_of_tables, 2)
{
    const char *limit = row == 0 ? "max_pending_requests" : "max_sessions";
    if (!has_second_address())
        return;
    struct daemon *daemon = START_TCP(.limits = test_format("'%s':16", limit));
    for (int i = 0; i < 10; i++)
        fill(client_connect(daemon), test_format("h%d.", i),
             row == 0 ? NULL : test_format("h%d.", i), limit);
    struct client *honest = client_try_connect_from(daemon, HONEST);
    ck_assert_int_eq(fill(honest, "a", row == 0 ? NULL : "a", limit), 4);
}

TEST(design_origin_gets_its_share_of_connections)
{
    struct client *hogs[4];
    if (!has_second_address())
        return;
    struct daemon *daemon = START_TCP(.limits = "'max_connections':4");
    for (int i = 0; i < 4; i++) {
        hogs[i] = client_connect(daemon);
        client_expect_quiet(hogs[i]);
    }
    /* As many refused connections as are answered at a time, and more. */
    for (int i = 0; i < 70; i++)
        client_connect(daemon);
    struct client *honest = client_try_connect_from(daemon, HONEST);
    client_expect_quiet(honest);
    struct client *extra = client_try_connect_from(daemon, HONEST);
    struct span line;
    /* The answers to others may have ended: it gets one, too. */
    if (client_line_before(extra, deadline_usual(), &line))
        message_error(line, "null", -32000, "too many connections");
    client_expect_eof(extra);
    for (int i = 0; i < 4; i++)
        client_expect_quiet(hogs[i]);
}

#define HOGS 20
#define HOG_LINES 60

/* How often the text has the word. */
static int count_words(struct span text, const char *word)
{
    size_t len = strlen(word);
    int count = 0;
    for (size_t i = 0; i + len <= text.len; i++)
        count += memcmp(text.data + i, word, len) == 0;
    return count;
}

/* A worker reads nothing, its queue is full, and the clients of one address have much for it. The
 * client of another address has its turn after one of them, not after all: of what the worker has
 * heard before, most was in the pipe and in the queue. */
TEST(design_origin_gets_its_turn_at_a_full_worker)
{
    struct text *lines = test_text();
    struct client *hogs[HOGS];
    if (!has_second_address())
        return;
    struct daemon *daemon = START(.mode = SETUP_TCP, .pools = POOL("a", 1, "") "," POOL("b", 1, ""),
                                  .limits = "'max_output_queue':65536");
    struct client *probe = client_connect(daemon);
    client_send(probe, "{'id':1,'pool':'a','method':'stop_reading'}");
    long pid = json_number(client_result(probe, "1"), "pid");
    for (int i = 0; i < HOG_LINES; i++)
        text_printf(lines, "{\"pool\":\"a\",\"method\":\"logging/setLevel\",\"params\":\"%s\"}\n",
                    test_fill('x', 950));
    for (int i = 0; i < HOGS; i++) {
        hogs[i] = client_connect(daemon);
        client_send_bytes(hogs[i], lines->data, lines->len);
    }
    client_send(probe, "{'id':2,'pool':'b','method':'echo'}");
    client_result(probe, "2");
    struct client *honest = client_try_connect_from(daemon, HONEST);
    client_send(honest, "{'id':3,'pool':'a','method':'heard'}");
    struct client *next = client_try_connect_from(daemon, HONEST);
    client_send(next, "{'id':4,'pool':'b','method':'echo'}");
    client_result(next, "4");
    kill((pid_t)pid, SIGUSR1);
    int before = count_words(client_result(honest, "3"), "logging/setLevel");
    ck_assert_int_gt(before, 0);
    ck_assert_int_lt(before, HOGS * HOG_LINES / 2);
    for (int i = 0; i < HOGS; i++) {
        client_send(hogs[i], "{'id':%d,'pool':'a','method':'echo'}", i);
        client_result(hogs[i], test_format("%d", i));
    }
    client_send(probe, "{'id':5,'pool':'a','method':'heard'}");
    ck_assert_int_eq(count_words(client_result(probe, "5"), "logging/setLevel"), HOGS * HOG_LINES);
}

/* The newest client of the other address is closed, and its process ended. */
TEST(design_origin_gets_its_share_of_processes)
{
    struct client *hogs[4];
    long pids[4];
    if (!has_second_address())
        return;
    struct daemon *daemon = START_TCP(.pools = EXCLUSIVE(4));
    for (int i = 0; i < 4; i++) {
        hogs[i] = client_connect(daemon);
        pids[i] = client_pid(hogs[i], "1", NULL);
    }
    /* It waits longer than the other one. */
    struct client *waiting = client_connect(daemon);
    client_request(waiting, "'w'", NULL, "echo", NULL);
    client_ask(hogs[0], "2", NULL, "echo", NULL);
    struct client *honest = client_try_connect_from(daemon, HONEST);
    long pid = client_pid(honest, "1", NULL);
    client_error(hogs[3], "null", -32000, "its share of the workers");
    client_expect_eof(hogs[3]);
    daemon_wait_log(daemon, " WARN .*client=4.*its share of the workers");
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(client_pid(hogs[i], "3", NULL), pids[i]);
        ck_assert_int_ne(pid, pids[i]);
    }
    /* The second client of that address waits as others do, for one that leaves. */
    struct client *second = client_try_connect_from(daemon, HONEST);
    client_request(second, "'s'", NULL, "echo", NULL);
    ck_assert_int_eq(client_pid(hogs[2], "4", NULL), pids[2]);
    client_close(hogs[1]);
    client_result(waiting, "'w'");
}

/* Clients that ask and close at once; each waits for a process, since a close cannot be told from
 * the end of the input. Their address gets its share, two of eight. */
TEST(design_closing_clients_get_no_more_than_their_share_of_processes)
{
    struct client *others[8];
    long pids[8];
    if (!has_second_address())
        return;
    struct daemon *daemon = START_TCP(.pools = EXCLUSIVE(8));
    for (int i = 0; i < 8; i++) {
        others[i] = client_connect(daemon);
        pids[i] = client_pid(others[i], "1", NULL);
    }
    for (int i = 0; i < 20; i++) {
        struct client *closing = client_try_connect_from(daemon, HONEST);
        client_request(closing, "1", NULL, "echo", NULL);
        client_close(closing);
    }
    /* It is the last one in the line. */
    client_pid(client_try_connect_from(daemon, HONEST), "1", NULL);
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(client_pid(others[i], "2", NULL), pids[i]);
    ck_assert_uint_le(daemon_count_log(daemon, " WARN .*its share of the workers"), 2);
}

/* A process that ends neither with its input nor by SIGTERM does not keep the place that another
 * address has a claim to, whether its client was closed for that or has left before. */
TEST_ROWS(design_process_that_does_not_end_gives_way, 2)
{
    struct client *others[4];
    if (!has_second_address())
        return;
    struct daemon *daemon = START_TCP(.pools = EXCLUSIVE_ARGS(4, "'--stay'"),
                                      .limits = "'drain_timeout_sec':600");
    for (int i = 0; i < 4; i++) {
        others[i] = client_connect(daemon);
        client_pid(others[i], "1", NULL);
    }
    client_ask(others[3], "2", NULL, "on_sigterm", "{'do':'ignore'}");
    if (row == 1) {
        client_close(others[3]);
        daemon_wait_log(daemon, "client=4.*disconnected");
    }
    client_pid(client_try_connect_from(daemon, HONEST), "1", NULL);
    if (row == 0)
        client_error(others[3], "null", -32000, "its share of the workers");
    for (int i = 0; i < 3; i++)
        client_expect_quiet(others[i]);
}

/* The same for a client that comes back while the process that it had still ends. */
TEST(design_process_that_does_not_end_gives_way_to_its_own_origin)
{
    struct daemon *daemon = START(.pools = EXCLUSIVE_ARGS(1, "'--stay','--on-sigterm','ignore'"),
                                  .limits = "'drain_timeout_sec':600");
    struct client *client = client_connect(daemon);
    long pid = client_pid(client, "1", NULL);
    client_close(client);
    daemon_wait_log(daemon, "client=1.*disconnected");
    ck_assert_int_ne(client_pid(client_connect(daemon), "1", NULL), pid);
    daemon_kill(daemon);
}

/* How many processes have been started. */
static int count_started(const struct daemon *daemon)
{
    struct text record = {0};
    int count = 0;
    ck_assert(read_file(&record, test_format("%s/test-record", daemon->dir)));
    for (size_t i = 0; i < record.len; i++)
        count += record.data[i] == '\n';
    text_free(&record);
    return count;
}

/* However many clients of another address ask, close and wait before it: a client gets the first
 * process that is started after the ones that end. */
TEST(design_closing_clients_do_not_take_the_next_process)
{
    struct client *others[4];
    if (!has_second_address())
        return;
    struct daemon *daemon =
        START_TCP(.pools = EXCLUSIVE_ARGS(4, "'--stay','--on-sigterm','ignore','--record',"
                                             "'@DIR@/test-record'"),
                  .limits = "'drain_timeout_sec':600");
    for (int i = 0; i < 4; i++) {
        others[i] = client_connect(daemon);
        client_pid(others[i], "1", NULL);
    }
    for (int i = 0; i < 40; i++) {
        struct client *closing = client_connect(daemon);
        client_request(closing, "1", NULL, "echo", NULL);
        client_close(closing);
    }
    for (int i = 0; i < 4; i++)
        client_close(others[i]);
    daemon_wait_log(daemon, "client=4[^0-9].*disconnected");
    client_pid(client_try_connect_from(daemon, HONEST), "1", NULL);
    ck_assert_int_le(count_started(daemon), 8);
    daemon_kill(daemon);
}

/* A client crashes its process and leaves, four times: each time it waits longer for the next one,
 * 2.1 seconds in all. A client of another address waits for none of that. */
TEST(design_crashing_clients_wait_for_their_next_process)
{
    steps_without("they take the time in which the client waits");
    if (!has_second_address())
        return;
    struct daemon *daemon = START_TCP(.pools = EXCLUSIVE(4));
    int64_t start = now_ms();
    for (int i = 0; i < 3; i++) {
        struct client *crashing = client_connect(daemon);
        client_pid(crashing, "1", NULL);
        client_crash(crashing, "2", NULL, NULL);
        client_close(crashing);
    }
    struct client *last = client_connect(daemon);
    struct span line;
    client_request(last, "1", NULL, "echo", NULL);
    client_pid(client_try_connect_from(daemon, HONEST), "1", NULL);
    if (now_ms() - start < 2000)
        ck_assert(!client_line_before(last, now_ms(), &line));
    client_result(last, "1");
    ck_assert_int_ge(now_ms() - start, 2100);
}
