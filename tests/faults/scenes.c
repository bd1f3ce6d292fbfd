#include "build_config.h"

#include "scenes.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "deadline.h"

#define PAD_SIZE 100000
#define WAITING 56 /* of 64 places in the first table */

/* Padding that is longer than a buffer, a pipe and max_output_queue. */
#define LIMITS(more)                                                                               \
    "'limits':{'drain_timeout_sec':20,'max_output_queue':65536,'max_restarts':20" more "}"

#define FRAMED "'framing':'content-length','args':['--framing','content-length']"

#define POOL(id, instances, command)                                                               \
    "{'id':'" id "','command':'" command "','args':['--name','" id "'],'instances':" #instances "}"

/* A client that was lost may have left a hold behind. */
static void release_workers(struct peer *peer)
{
    for (int i = 0; i < 4; i++) {
        peer_send(peer, "{'jsonrpc':'2.0','method':'release'}");
        peer_send(peer, "{'jsonrpc':'2.0','method':'release','pool':'b'}");
    }
}

/* Lets the workers go on, and sees that they serve. A connection may be lost, and a worker may yet
 * die of what happened to it, so there is a second and a third try. */
static bool is_served(struct run *run)
{
    struct peer zoe;
    bool served = false;

    for (int i = 0; i < 3 && !served && run_alive(run); i++) {
        peer_connect(&zoe, run, "Zoe");
        release_workers(&zoe);
        peer_ask(&zoe, 100, "", "");
        peer_ask(&zoe, 101, "", ",'pool':'b'");
        peer_await(&zoe);
        served = !peer_gone(&zoe) && zoe.errors == 0;
        peer_close(&zoe);
    }
    return served;
}

/* Whatever happened before: who comes now is served, unless the daemon has ended. */
static void check_recovery(struct run *run)
{
    run_lift(run);
    if (!is_served(run) && run_alive(run))
        run_fail(run, "the daemon lives, but does not serve any more");
}

static void talk(struct peer *ann)
{
    peer_ask(ann, 1, "", "");
    peer_ask(ann, 2, "", ",'sessionId':'Ann'");
    peer_send(ann, "{'jsonrpc':'2.0','method':'note','sessionId':'Ann'}");
    peer_await(ann);
    run_arm(ann->run);
    for (unsigned id = 10; id < 30; id++)
        peer_ask(ann, id, "", id % 2 ? ",'pool':'b'" : "");
    peer_await(ann);
    peer_ask(ann, 3, ",'n':3", ",'method':'notify','sessionId':'Ann'");
    peer_ask(ann, 4, ",'id':77,'params':{}", ",'method':'ask','sessionId':'Ann'");
    peer_await(ann);
}

/* A member of a message that makes it longer than PAD_SIZE. */
static void add_pad(struct text *to)
{
    text_printf(to, ",'pad':'");
    text_fill(to, 'x', PAD_SIZE);
    text_printf(to, "'");
}

static void send_much(struct peer *peer)
{
    struct text pad = {0};

    add_pad(&pad);
    for (unsigned id = 1; id <= 3; id++)
        peer_ask(peer, id, pad.data, ",'pool':'b'");
    peer_await(peer);
    text_free(&pad);
}

/* Ben's requests wait with the worker, so many that a table grows, and Ann wants the same id.
 * Whoever of them is held cannot say that the worker is to go on. */
static void same_ids(struct peer *ann, struct peer *ben)
{
    peer_ask(ben, 40, "", ",'method':'hold','pool':'b'");
    peer_await(ben);
    for (unsigned id = 44; id < 44 + WAITING; id++)
        peer_ask(ben, id, "", ",'pool':'b'");
    peer_ask(ben, 41, "", ",'pool':'b'");
    peer_ask(ann, 41, "", ",'pool':'b'");
    peer_ask(ann, 42, "", ",'pool':'b'");
    is_served(ann->run);
    peer_await(ben);
    peer_await(ann);
}

static void crash(struct peer *peer)
{
    peer_ask(peer, 50, "", ",'method':'no_answer','pool':'b'");
    peer_ask(peer, 51, "", ",'method':'die','pool':'b'");
    peer_await(peer);
    peer_ask(peer, 52, "", ",'pool':'b'");
    peer_await(peer);
}

static void misbehave(struct run *run)
{
    struct peer peer;

    peer_connect(&peer, run, "Mia"); /* vanishes */
    peer_ask(&peer, 1, "", ",'sessionId':'Mia'");
    peer_ask(&peer, 2, "", ",'method':'no_answer'");
    peer_send(&peer, "{'id':'%064d','method':'no_answer'}", 3);
    peer_close(&peer);
    peer_connect(&peer, run, "Tim");
    peer_send(&peer, "{nonsense");
    peer_await_end(&peer);
    peer_connect(&peer, run, "Eve"); /* half-closes */
    peer_ask(&peer, 1, "", "");
    if (!peer_gone(&peer))
        shutdown(peer.out, SHUT_WR);
    peer_await(&peer);
    peer_await_end(&peer);
}

static void play_unix(struct run *run)
{
    struct peer ann, ben;

    peer_connect(&ann, run, "Ann");
    talk(&ann);
    peer_connect(&ben, run, "Ben");
    send_much(&ben);
    same_ids(&ann, &ben);
    crash(&ben);
    misbehave(run);
    check_recovery(run);
    run_terminate(run);
    peer_await_end(&ann);
    peer_await_end(&ben);
}

/* Unless one of those before did not get in. */
static void be_refused(struct run *run)
{
    bool client_lost = run->client_lost;
    struct peer tim;

    peer_connect(&tim, run, "Tim");
    peer_ask(&tim, 1, "", "");
    peer_await(&tim);
    peer_close(&tim);
    run->client_lost = client_lost;
}

/* Workers that misbehave, and more connections than there may be. */
static void play_tcp(struct run *run)
{
    struct peer ann, ben, idle[2];
    const char *config = "{'pools':[" POOL("a", 1, "@WORKER@") "," POOL("b", 2, "@WORKER@") "],"
                         LIMITS(",'max_connections':4") "}";

    run_await_wait(run);
    run_write_stdin(run, config);
    peer_connect(&ann, run, "Ann");
    peer_ask(&ann, 1, "", "");
    peer_await(&ann);
    run_arm(run);
    peer_connect(&ben, run, "Ben");
    peer_ask(&ben, 1, "", ",'sessionId':'Ben'");
    peer_await(&ben);
    peer_connect(&idle[0], run, "Mia");
    peer_connect(&idle[1], run, "Eve");
    be_refused(run);
    peer_close(&idle[0]);
    peer_close(&idle[1]);
    peer_ask(&ann, 2, "", ",'method':'close_stdin','pool':'b'");
    peer_await(&ann); /* what comes behind it to the same worker is never read */
    peer_ask(&ann, 3, ",'hex':'0a7b7d7d0a'", ",'method':'garbage','pool':'b'");
    peer_ask(&ann, 4, "", ",'method':'close_stdout','pool':'a'");
    peer_await(&ann);
    peer_ask(&ann, 5, "", ",'pool':'b'");
    peer_ask(&ann, 6, "", ",'pool':'b'");
    peer_ask(&ann, 7, "", ",'pool':'a'");
    peer_await(&ann);
    peer_close(&ben);
    peer_close(&ann);
    check_recovery(run);
    run_terminate(run);
}

static void play_listening(struct run *run)
{
    struct peer ann;

    peer_connect(&ann, run, "Ann");
    run_arm(run);
    peer_ask(&ann, 1, "", "");
    peer_await(&ann);
    peer_close(&ann);
    check_recovery(run);
    run_terminate(run);
}

/* To the end of the input. */
static void play_stdio(struct run *run)
{
    struct peer ann;

    peer_stdio(&ann, run, "Ann");
    talk(&ann);
    send_much(&ann);
    peer_ask(&ann, 60, "", "");
    close(ann.out);
    ann.out = ann.in;
    run_lift(run);
    peer_await(&ann);
    peer_await_end(&ann);
}

/* The log is in a file, which is opened anew. */
static void play_log(struct run *run)
{
    struct peer ann;

    peer_stdio(&ann, run, "Ann");
    peer_ask(&ann, 1, "", "");
    peer_await(&ann);
    run_arm(run);
    if (run_alive(run))
        kill(run->daemon, SIGUSR1);
    peer_ask(&ann, 2, "", "");
    peer_await(&ann);
    close(ann.out);
    ann.out = ann.in;
    peer_await_end(&ann);
}

static void play_file(struct run *run)
{
    struct peer ann;

    peer_stdio(&ann, run, "Ann");
    ann.asked[ann.asked_count++] = 1;
    ann.asked[ann.asked_count++] = 2;
    run_arm(run);
    peer_await(&ann);
    peer_await_end(&ann);
}

/* Everything comes by itself. */
static void play_nothing(struct run *run)
{
    (void)run;
}

/* The daemon ends by itself: a command cannot be executed. Had the child no way to say so, that
 * worker is started again and the other one goes on. */
static void play_broken(struct run *run)
{
    int64_t deadline = deadline_usual();

    while (run_alive(run) && !run_logged(run, "restarting in") && !deadline_over(deadline))
        nap();
    if (!deadline_over(deadline))
        run_terminate(run);
}

/* What the daemon, a client here, is joined to. */
struct server {
    int fd;            /* -1: closed */
    bool heard_all;    /* the end of what it sends */
    size_t left, size; /* of the answer, to be sent */
    char answer[PAD_SIZE];
};

static void serve(struct server *server)
{
    char bytes[1000];
    ssize_t n = read(server->fd, bytes, sizeof bytes);

    server->heard_all = server->heard_all || n == 0 || (n < 0 && errno != EAGAIN);
    n = send(server->fd, server->answer + server->size - server->left, server->left,
             MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0)
        server->left -= (size_t)n;
    if (server->heard_all && (server->left == 0 || (n < 0 && errno != EAGAIN))) {
        close(server->fd);
        server->fd = -1;
    }
}

static void meet(struct run *run, struct server *server)
{
    server->fd = accept(run->listener, NULL, NULL);
    if (server->fd >= 0)
        fcntl(server->fd, F_SETFL, O_NONBLOCK);
}

/* It says something and has no more to say; what comes back has to come out of it. */
static void play_connect(struct run *run)
{
    static struct server server;
    static char bytes[65536];
    int64_t deadline = deadline_usual();
    size_t got = 0;
    ssize_t n = -1;

    server = (struct server){.fd = -1, .left = PAD_SIZE, .size = PAD_SIZE};
    memset(server.answer, '\n', PAD_SIZE);
    fcntl(run->listener, F_SETFL, O_NONBLOCK);
    fcntl(run->from, F_SETFL, O_NONBLOCK);
    run_write_stdin(run, "question\n");
    while (n != 0) {
        if (deadline_over(deadline))
            run_fail(run, "its stdout does not end");
        if (server.fd >= 0)
            serve(&server);
        else if (server.left == PAD_SIZE)
            meet(run, &server);
        n = read(run->from, bytes, sizeof bytes);
        got += n > 0 ? (size_t)n : 0;
        if (n < 0)
            nap();
    }
    if (server.fd >= 0)
        close(server.fd);
    run->client_lost = got < PAD_SIZE;
}

/* ---- pools for programs that know nothing of the bus ---------------------------------------- */

/* Its worker says something; the answer comes behind that. */
static void have_said(struct peer *peer, unsigned id, const char *message)
{
    struct text params = {0};

    text_printf(&params, ",'message':{'method':'note','params':{%s}}", message);
    peer_ask(peer, id, params.data, ",'method':'say'");
    peer_await(peer);
    text_free(&params);
}

static void tell(struct peer *ann, struct peer *ben)
{
    size_t errors = ann->errors, notes = ann->notes;
    struct text message = {0};

    text_printf(&message, "'who':'all'");
    add_pad(&message); /* each of them needs a buffer of its own */
    have_said(ann, 4, message.data);
    text_free(&message);
    if (!peer_gone(ann) && ann->errors == errors) {
        peer_await_notes(ben, ben->notes + 1);
        if (ann->notes != notes + 1)
            run_fail(ann->run, "what was for all came %zu times", ann->notes - notes);
    }
    notes = ann->notes;
    have_said(ann, 5, "'sessionId':'Ann'");
    if (!peer_gone(ann) && ann->errors == errors && ann->notes != notes + 1 &&
        !run_logged(ann->run, "unroutable"))
        run_fail(ann->run, "what was for a session is lost");
}

/* Sessions, some that the client names and one that the worker does; tokens, short and long. */
static void share(struct peer *ann, struct peer *ben)
{
    peer_ask(ann, 1, ",'result':{'sessionId':'Ann'}", ",'method':'plain'");
    peer_ask(ben, 1, ",'sessionId':'Ben'", "");
    peer_await(ann);
    peer_await(ben);
    for (unsigned id = 2; id < 22; id++)
        peer_ask(ben, id, ",'sessionId':'Ben','_meta':{'progressToken':'Ben'}",
                 ",'method':'progress'");
    peer_await(ben);
    peer_ask(ann, 3, ",'_meta':{'progressToken':'an Ann whose name is longer than what there is"
                     " room for in a request that is like most of them'}", "");
    tell(ann, ben);
    peer_ask(ann, 6, ",'sessionId':'Ann','id':77,'params':{'sessionId':'Ann'}",
             ",'method':'ask'");
    peer_ask(ben, 6, ",'sessionId':'Ben','id':78,'params':{'sessionId':'Ben'}",
             ",'method':'ask'");
    peer_await(ann);
    peer_await(ben);
}

/* The id before the padding, and behind it. */
static void share_much(struct peer *peer)
{
    struct text pad = {0};

    add_pad(&pad);
    peer_ask(peer, 30, pad.data, "");
    peer_await(peer);
    if (!peer_gone(peer)) {
        peer->asked[peer->asked_count++] = 31;
        peer_send(peer, "{'params':{'who':'%s'%s},'id':31}", peer->name, pad.data);
        peer_await(peer);
    }
    text_free(&pad);
}

/* Requests that are cancelled, or whose time is over, or whose client goes. */
static void give_up(struct peer *ann)
{
    struct peer mia;

    peer_ask(ann, 40, "", ",'method':'hold'");
    peer_await(ann);
    ann->cancelled = 41;
    peer_send(ann, "{'id':41,'params':{'who':'Ann'}}");
    peer_send(ann, "{'method':'notifications/cancelled','params':{'requestId':41}}");
    peer_send(ann, "{'method':'release'}");
    peer_ask(ann, 42, "", "");
    peer_ask(ann, 43, "", ",'method':'no_answer','pool':'c'");
    peer_await(ann);
    peer_connect(&mia, ann->run, "Mia");
    peer_send(&mia, "{'method':'release'}"); /* should Ann be lost */
    peer_ask(&mia, 1, "", "");
    peer_await(&mia);
    peer_send(&mia, "{'id':'%0100d','params':{'who':'Mia'},'method':'no_answer'}", 2);
    peer_close(&mia);
    for (unsigned id = 50; id < 53; id++) { /* time to see that she has gone */
        peer_ask(ann, id, "", "");
        peer_await(ann);
    }
    peer_ask(ann, 44, "", ",'method':'die'");
    peer_await(ann);
    peer_ask(ann, 45, "", "");
    peer_await(ann);
}

/* There are two processes at most: the third waits until one of the others has left. */
static void take_turns(struct run *run)
{
    static const char *const names[] = {"Tim", "Eve", "Kim"};
    struct peer peers[3];

    for (int i = 0; i < 3; i++)
        peer_connect(&peers[i], run, names[i]);
    for (int i = 0; i < 2; i++) {
        peer_ask(&peers[i], 1, ",'message':{'method':'note','params':{'who':'all'}}",
                 ",'method':'say','pool':'b'");
        peer_await(&peers[i]);
    }
    peer_ask(&peers[2], 1, "", ",'pool':'b'");
    peer_close(&peers[0]);
    peer_await(&peers[2]);
    peer_close(&peers[1]);
    peer_close(&peers[2]);
}

static void play_sharing(struct run *run)
{
    struct peer ann, ben;

    peer_connect(&ann, run, "Ann");
    peer_connect(&ben, run, "Ben");
    peer_ask(&ann, 1, "", "");
    peer_ask(&ben, 1, "", "");
    peer_await(&ann);
    peer_await(&ben);
    run_arm(run);
    share(&ann, &ben);
    share_much(&ann);
    give_up(&ann);
    take_turns(run);
    check_recovery(run);
    run_terminate(run);
    peer_await_end(&ann);
    peer_await_end(&ben);
}

#define WORDS(...) (const char *const[]) {__VA_ARGS__, NULL}

const struct scene scenes[SCENES] = {
    {.name = "unix",
     .arguments = WORDS("--config", "@DIR@/config", "--unix", "@DIR@/socket", "--log-level",
                        "debug"),
     .config = "{'pools':[" POOL("a", 2, "@WORKER@") "," POOL("b", 1, "@WORKER@") "]," LIMITS("")
               "}",
     .play = play_unix,
     .socket = true,
     .log = STDERR_PIPE},
    {.name = "tcp",
     .arguments = WORDS("--config-fd", "0", "--tcp", "127.0.0.1:0", "--log-level", "debug"),
     .play = play_tcp,
     .stdin_nonblocking = true,
     .repeats = true,
     .log = STDERR_FILE},
    {.name = "IPv6",
     .arguments = WORDS("--config", "@DIR@/config", "--tcp", "[::1]:0", "--log-level", "debug"),
     .config = "{'pools':[{'id':'b','command':'@WORKER@','args':['--name','b'],'instances':1,"
               "'env':{'A':'${FAULTS_DIR}'},'cwd':'@DIR@'}]}",
     .play = play_listening,
     .descriptors = 64,
     .log = STDERR_FILE},
    {.name = "stdio",
     .arguments = WORDS("--config", "@DIR@/config", "--log-level", "debug"),
     .config = "{'pools':[" POOL("a", 1, "@WORKER@")
               ",{'id':'b','command':'@WORKER@','instances':1," FRAMED "}]," LIMITS("") "}",
     .play = play_stdio,
     .forgets = true,
     .log = STDERR_SOCKET},
    {.name = "file",
     .arguments = WORDS("--config", "@DIR@/config", "--log-level", "debug"),
     .config = "{'pools':[" POOL("a", 1, "@WORKER@") "]}",
     .input = "{'id':1,'params':{'who':'Ann'}}\n{'id':2,'params':{'who':'Ann'}}\n",
     .play = play_file,
     .log = STDERR_FILE},
    {.name = "log file",
     .arguments = WORDS("--config", "@DIR@/config", "--log-file", "@DIR@/log", "--log-level",
                        "debug"),
     .config = "{'pools':[" POOL("a", 1, "@WORKER@") "]}",
     .play = play_log,
     .log = STDERR_FILE},
    {.name = "log on stdout",
     .arguments = WORDS("--config", "@DIR@/config", "--log-file", "/dev/stdout"),
     .config = "{'pools':[" POOL("a", 1, "@WORKER@") "]}",
     .play = play_nothing,
     .exit_status = 78,
     .log = STDERR_FILE},
    {.name = "null",
     .arguments = WORDS("--config", "@DIR@/config", "--log-level", "debug"),
     .config = "{'pools':[" POOL("a", 1, "@WORKER@") "]}",
     .input = "",
     .play = play_nothing,
     .log = STDERR_FILE},
    {.name = "broken",
     .arguments = WORDS("--config", "@DIR@/config"),
     .config = "{'pools':[" POOL("a", 1, "@WORKER@") "," POOL("b", 1, "@DIR@/broken") "]}",
     .play = play_broken,
     .exit_status = 78,
     .log = STDERR_FILE},
    {.name = "check",
     .arguments = WORDS("--config", "@DIR@/config", "--check-config"),
     .config = "{'pools':[{'id':'a','command':'sh','instances':1},"
               "{'id':'b','command':'./broken','cwd':'@DIR@','instances':1}]}",
     .play = play_nothing,
     .no_path = true,
     .log = STDERR_FILE},
    {.name = "connect",
     .arguments = WORDS("--connect", "@DIR@/socket"),
     .play = play_connect,
     .listener = UNIX_LISTENER,
     .log = STDERR_FILE},
    {.name = "connect to TCP",
     .arguments = WORDS("--connect", "127.0.0.1:@PORT@"),
     .play = play_connect,
     .listener = TCP_LISTENER,
     .log = STDERR_PIPE},
    {.name = "sharing",
     .arguments = WORDS("--config", "@DIR@/config", "--unix", "@DIR@/socket", "--log-level",
                        "debug"),
     .config = "{'pools':["
               "{'id':'a','command':'@WORKER@','instances':1,'protocol':'acp'},"
               "{'id':'b','command':'@WORKER@','instances':2,'protocol':'mcp'},"
               "{'id':'c','command':'@WORKER@','instances':1,'protocol':'lsp','clients':'sticky',"
               "'request_timeout_sec':1," FRAMED "}],"
               LIMITS("") "}",
     .play = play_sharing,
     .socket = true,
     .forgets = true,
     .log = STDERR_FILE},
    {.name = "version", .arguments = WORDS("--version"), .play = play_nothing, .log = STDERR_FILE},
    {.name = "usage",
     .arguments = WORDS("--nonsense"),
     .play = play_nothing,
     .exit_status = 64,
     .log = STDERR_FILE},
};
