/* doc/protocol.md, When a sender is held: clients that do not read while others wait. */
#include "build_config.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>

#include "harness.h"

#define NOTES 24000
#define NOTE_SIZE 1024

static void ask_for_notes(struct client *client, const char *session, long count)
{
    client_request(client, "'n'", session, "notify",
                   test_format("{'n':%ld,'size':%d}", count, NOTE_SIZE));
}

static void expect_notes(struct client *client, long from, long to)
{
    for (long n = from; n < to; n++)
        ck_assert_int_eq(json_number(client_line(client), "params.n"), n);
}

static void nap_for(int64_t ms)
{
    for (int64_t until = now_ms() + ms; now_ms() < until;)
        nap();
}

static const enum setup_mode socket_modes[] = {SETUP_UNIX, SETUP_TCP};

/* client=1 does not read, and is disconnected for the request with this id of another client. */
static void expect_disconnected_for(struct daemon *daemon, const char *id)
{
    struct client *stalled = client_connect_small(daemon), *other = client_connect(daemon);
    long pid = client_pid(other, "1", NULL);
    ask_for_notes(stalled, "s", NOTES);
    ck_assert(wait_fd(stalled->in, POLLIN, deadline_usual()));
    ck_assert_int_eq(client_pid(other, id, NULL), pid);
    ck_assert(daemon_logged(daemon, " WARN .*client=1.*slow_client_timeout_sec.* [0-9]+ bytes"));
}

/* A client that does not read is disconnected once another client has waited behind it. */
TEST_ROWS(design_client_in_the_way_is_disconnected, COUNT(socket_modes))
{
    expect_disconnected_for(START(.mode = socket_modes[row], .instances = 1,
                                  .limits = "'slow_client_timeout_sec':1"),
                            "2");
}

/* So is one whose request has the id that another client waits for. */
TEST(design_client_in_the_way_of_an_id_is_disconnected)
{
    expect_disconnected_for(START(.instances = 1, .limits = "'slow_client_timeout_sec':1"), "'n'");
}

/* A client that is in nobody's way keeps its worker waiting: for longer than that time. */
TEST(design_stalled_client_alone_is_not_disconnected)
{
    struct daemon *daemon = START(.pools = POOL("flood", 1, "") "," POOL("other", 1, ""),
                                  .limits = "'slow_client_timeout_sec':1");
    struct client *stalled = client_connect_small(daemon), *other = client_connect(daemon);
    client_send(other, "{'id':1,'pool':'other','method':'no_answer'}");
    client_send(stalled,
                "{'id':'n','pool':'flood','sessionId':'s','method':'notify',"
                "'params':{'n':%d,'size':%d}}",
                NOTES, NOTE_SIZE);
    ck_assert(wait_fd(stalled->in, POLLIN, deadline_usual()));
    nap_for(1800);
    expect_notes(stalled, 0, NOTES);
    client_result(stalled, "'n'");
}

/* A client that reads slowly is not disconnected, however long others wait behind it. */
TEST(design_slow_client_in_the_way_is_not_disconnected)
{
    struct daemon *daemon = START(.instances = 1,
                                  .limits = "'slow_client_timeout_sec':1,'max_output_queue':50000");
    struct client *slow = client_connect_small(daemon), *other = client_connect(daemon);
    client_pid(other, "1", NULL);
    ask_for_notes(slow, "s", 1500);
    ck_assert(wait_fd(slow->in, POLLIN, deadline_usual()));
    client_request(other, "2", NULL, "echo", NULL);
    int64_t until = now_ms() + 2000;
    long n = 0;
    for (; now_ms() < until && n < 1400; n += 15) {
        expect_notes(slow, n, n + 15);
        nap_for(40);
    }
    expect_notes(slow, n, 1500);
    client_result(slow, "'n'");
    client_result(other, "2");
}

/* A client that reads a little at a time makes no room in its socket. */
TEST_ROWS(design_client_that_reads_too_little_is_disconnected, 2)
{
    steps_without("the requests have to be there at once");
    char some[4096];
    struct daemon *daemon = START(.mode = row == 0 ? SETUP_UNIX : SETUP_TCP, .instances = 1,
                                  .limits = "'slow_client_timeout_sec':1");
    struct client *slow = client_connect(daemon), *other = client_connect(daemon);
    int64_t deadline = deadline_usual();
    client_pid(other, "1", NULL);
    for (int i = 0; i < 20; i++)
        client_send(slow, "{'id':%d,'method':'big','params':{'size':1000000}}", i);
    ck_assert(wait_fd(slow->in, POLLIN, deadline_usual()));
    client_request(other, "2", NULL, "echo", NULL);
    while (!daemon_logged(daemon, "client=1\\] disconnected .*slow_client_timeout_sec")) {
        ck_assert(!deadline_over(deadline));
        ck_assert_int_ge(read(slow->in, some, sizeof some), 0);
        nap_for(400);
    }
    client_result(other, "2");
}

/* Clients that do not read and come back as soon as they are disconnected: they have the time in
 * common, so that the requests of another client take little more than that. */
TEST(design_reconnecting_clients_have_one_timeout)
{
    struct client *stalled[10] = {NULL};
    struct daemon *daemon = START(.instances = 2, .limits = "'slow_client_timeout_sec':1");
    struct client *other = client_connect(daemon);
    int64_t deadline = deadline_in(60); /* a time for each of them would be 400 s */
    long pids[2];
    client_meet_workers(other, 2, pids);
    for (int i = 0; i < 40; i++) {
        for (size_t k = 0; k < COUNT(stalled); k++) {
            struct pollfd entry = {.fd = stalled[k] != NULL ? stalled[k]->in : -1};
            if (stalled[k] != NULL && poll(&entry, 1, 0) == 0)
                continue;
            if (stalled[k] != NULL)
                client_close(stalled[k]);
            stalled[k] = client_connect_small(daemon);
            ask_for_notes(stalled[k], test_format("s%zu", k), NOTES);
        }
        client_pid(other, "1", NULL);
        ck_assert_msg(!deadline_over(deadline), "only %d requests were answered", i);
    }
}

/* A client from another loopback address; NULL on systems that have only one. */
static struct client *connect_from_afar(const struct daemon *daemon)
{
    struct sockaddr_in from = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1)};
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)daemon->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), small = 4096;
    ck_assert_int_ge(fd, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    if (bind(fd, (struct sockaddr *)&from, sizeof from) < 0) {
        close(fd);
        return NULL;
    }
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return client_adopt(fd, fd);
}

/* New clients of an origin whose client was disconnected begin one after the other. A client of
 * another origin does not wait for them. */
TEST(design_origin_of_slow_clients_waits_alone)
{
    steps_without("they take the time in which the clients wait");
    struct client *late[10];
    struct daemon *daemon = START(.mode = SETUP_TCP, .instances = 1,
                                  .limits = "'slow_client_timeout_sec':1");
    struct client *stalled = connect_from_afar(daemon), *other;
    if (stalled == NULL)
        return;
    ask_for_notes(stalled, "s", NOTES);
    ck_assert(wait_fd(stalled->in, POLLIN, deadline_usual()));
    client_pid(client_connect(daemon), "1", NULL);
    daemon_wait_log(daemon, "client=1.*slow_client_timeout_sec");
    for (size_t i = 0; i < COUNT(late); i++) {
        late[i] = connect_from_afar(daemon);
        client_request(late[i], "1", NULL, "echo", NULL);
    }
    other = client_connect(daemon);
    client_pid(other, "1", NULL);
    ck_assert(poll(&(struct pollfd){.fd = late[9]->in, .events = POLLIN}, 1, 0) == 0);
    for (size_t i = 0; i < COUNT(late); i++)
        client_result(late[i], "1");
}

static struct client *connect_with_token(const struct daemon *daemon)
{
    struct client *client = connect_from_afar(daemon);
    if (client != NULL)
        client_send(client, "{'token':'word'}");
    return client;
}

/* The line of an origin has only clients that have shown the token. */
TEST(design_connections_without_token_take_no_turns)
{
    steps_without("they take the time in which the clients wait");
    struct client *strangers[10], *late[10];
    const char *path = test_format("%s/token", test_dir());
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fchmod(fileno(file), 0600), 0);
    fputs("word", file);
    fclose(file);
    struct daemon *daemon = START(.mode = SETUP_TCP, .instances = 1,
                                  .limits = "'slow_client_timeout_sec':1",
                                  .arguments = {"--token-file", path});
    struct client *stalled = connect_with_token(daemon), *other = client_connect(daemon);
    if (stalled == NULL)
        return;
    ask_for_notes(stalled, "s", NOTES);
    ck_assert(wait_fd(stalled->in, POLLIN, deadline_usual()));
    client_send(other, "{'token':'word'}");
    client_pid(other, "1", NULL);
    daemon_wait_log(daemon, "client=1.*slow_client_timeout_sec");
    for (size_t i = 0; i < COUNT(strangers); i++)
        strangers[i] = connect_from_afar(daemon);
    for (size_t i = 0; i < COUNT(late); i++) {
        late[i] = connect_with_token(daemon);
        client_request(late[i], "1", NULL, "echo", NULL);
    }
    for (size_t i = 0; i < COUNT(late); i++) {
        client_result(late[i], "1");
        for (size_t k = 0; i == COUNT(late) / 2 && k < COUNT(strangers); k++) {
            client_send(strangers[k], "{'token':'word'}");
            client_request(strangers[k], "1", NULL, "echo", NULL);
        }
    }
    ck_assert(poll(&(struct pollfd){.fd = strangers[9]->in, .events = POLLIN}, 1, 0) == 0);
    for (size_t i = 0; i < COUNT(strangers); i++)
        client_result(strangers[i], "1");
}

/* A client whose origin has not starved others may pause for a moment, also after the time was used
 * up by others. */
TEST(design_first_of_its_origin_may_pause)
{
    struct daemon *daemon = START(.mode = SETUP_TCP, .instances = 1,
                                  .limits = "'slow_client_timeout_sec':1");
    struct client *stalled = connect_from_afar(daemon), *other;
    if (stalled == NULL)
        return;
    ask_for_notes(stalled, "s", NOTES);
    ck_assert(wait_fd(stalled->in, POLLIN, deadline_usual()));
    other = client_connect(daemon);
    client_pid(other, "1", NULL);
    daemon_wait_log(daemon, "client=1.*slow_client_timeout_sec");
    int64_t start = now_ms();
    stalled = client_connect_small(daemon);
    ask_for_notes(stalled, "t", NOTES);
    ck_assert(wait_fd(stalled->in, POLLIN, deadline_usual()));
    client_pid(other, "2", NULL);
    ck_assert_int_ge(now_ms() - start, 450);
}

/* A request of a client whose queue is full waits until the client has read. */
TEST(design_full_client_gets_no_new_answers)
{
    struct daemon *daemon = START(.pools = POOL("flood", 1, "") "," POOL("idle", 1, ""),
                                  .arguments = {"--log-level", "debug"},
                                  .limits = "'max_output_queue':50000");
    struct client *stalled = client_connect_small(daemon);
    client_send(stalled,
                "{'id':'n','pool':'flood','sessionId':'s','method':'notify',"
                "'params':{'n':1500,'size':%d}}",
                NOTE_SIZE);
    size_t full = 0, released = 0; /* until the system's buffers are full, too */
    for (size_t before = 1; full != released + 1 || full != before; nap_for(200)) {
        before = full;
        full = daemon_count_log(daemon, "client=1.*its queue is full");
        released = daemon_count_log(daemon, "client=1.*backpressure released");
    }
    client_send(stalled, "{'id':'later','pool':'idle','method':'plain'}");
    nap_for(200);
    ck_assert(!daemon_logged(daemon, "forwarding a message \\(id later"));
    int answers = 0, notes = 0;
    while (answers < 2) {
        if (json_get(client_line(stalled), "id").data != NULL)
            answers++;
        else
            notes++;
    }
    ck_assert_int_eq(notes, 1500);
    ck_assert(daemon_logged(daemon, "forwarding a message \\(id later"));
}
