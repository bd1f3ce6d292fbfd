#include "build_config.h"

#include "scenes.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connect_scene.h"
#include "control_scene.h"
#include "deadline.h"
#include "http_scene.h"
#include "list_scene.h"
#include "nats_links_scene.h"
#include "nats_scene.h"
#include "reload_scene.h"
#include "rmp_scene.h"
#include "share_scene.h"
#include "upgrade_scene.h"

#define PAD_SIZE 100000
#define STALL_MS 60
#define WAITING 56 /* of the 64 places in the first table */

/* Limits: PAD_SIZE exceeds a buffer, a pipe and max_output_queue. */
#define LIMITS(more)                                                                               \
    "'limits':{'drain_timeout_sec':20,'max_output_queue':65536,'max_restarts':20" more "}"

#define BRIDGED                                                                                    \
    "{'rmp':{'socket_path':'@DIR@/bus/rmp.sock','metrics_interval_ms':0,"                          \
    "'validate':false,'history_runs':2,'history':'@DIR@/bus/runs','history_sync':true},'pools':["  \
    "{'id':'a','command':'@WORKER@','instances':1,'rmp':{'agent':'writer'}},"                      \
    "{'id':'b','command':'@WORKER@','instances':1,'rmp':{'runner':true}}]," LIMITS("") "}"

#define FRAMED "'framing':'content-length','args':['--framing','content-length']"

#ifdef HAVE_NO_NEW_PRIVS
#define NO_NEW_PRIVS ",'no_new_privs':true"
#else
#define NO_NEW_PRIVS
#endif

#define POOL(id, instances, command)                                                               \
    "{'id':'" id "','command':'" command "','args':['--name','" id "'],'instances':" #instances "}"

/* Ends the holds of clients whose connection was lost. */
static void release_workers(struct peer *peer)
{
    for (int i = 0; i < 4; i++) {
        peer_send(peer, "{'jsonrpc':'2.0','method':'release'}");
        peer_send(peer, "{'jsonrpc':'2.0','method':'release','pool':'b'}");
    }
}

/* Releases the workers and checks that they serve. A connection may be lost, and a worker may still
 * die of an earlier fault: there are three tries. */
static bool is_served(struct run *run)
{
    struct peer zoe;
    bool served = false;

    for (int i = 0; i < 3 && !served && run_alive(run); i++) {
        peer_connect(&zoe, run, "Zoe");
        release_workers(&zoe);
        peer_ask(&zoe, 100, "", "");
        peer_call(&zoe, 101, "", ",'pool':'b'");
        served = !peer_gone(&zoe) && zoe.errors == 0;
        peer_close(&zoe);
    }
    return served;
}

/* A new client is served, unless the daemon has ended. */
static void check_recovery(struct run *run)
{
    run_lift(run);
    if (!is_served(run) && run_alive(run))
        run_fail(run, "the daemon is alive but does not serve");
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
    peer_call(ann, 4, ",'id':77,'params':{}", ",'method':'ask','sessionId':'Ann'");
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

/* Ben's requests wait at the worker, so many that a table grows, and Ann uses an id of Ben. A held
 * client cannot release the worker. */
static void same_ids(struct peer *ann, struct peer *ben)
{
    peer_call(ben, 40, "", ",'method':'hold','pool':'b'");
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
    peer_call(peer, 51, "", ",'method':'die','pool':'b'");
    peer_call(peer, 52, "", ",'pool':'b'");
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

/* One connection too many, unless an earlier one failed. */
static void be_refused(struct run *run)
{
    bool client_lost = run->client_lost;
    struct peer tim;

    peer_connect(&tim, run, "Tim");
    peer_call(&tim, 1, "", "");
    peer_close(&tim);
    run->client_lost = client_lost;
}

/* Workers that misbehave, and more connections than there may be. */
static void play_tcp(struct run *run)
{
    struct peer ann, ben, idle[2];
    const char *config = "{'pools':[" POOL("a", 1, "@WORKER@") "," POOL(
        "b", 2, "@WORKER@") "]," LIMITS(",'max_connections':4") "}";

    run_await_wait(run);
    run_write_stdin(run, config);
    peer_connect(&ann, run, "Ann");
    peer_call(&ann, 1, "", "");
    run_arm(run);
    peer_connect(&ben, run, "Ben");
    peer_call(&ben, 1, "", ",'sessionId':'Ben'");
    peer_connect(&idle[0], run, "Mia");
    peer_connect(&idle[1], run, "Eve");
    be_refused(run);
    peer_close(&idle[0]);
    peer_close(&idle[1]);
    peer_call(&ann, 2, "", ",'method':'close_stdin','pool':'b'"); /* the end of its input */
    peer_ask(&ann, 3, ",'hex':'0a7b7d7d0a'", ",'method':'garbage','pool':'b'");
    peer_call(&ann, 4, "", ",'method':'close_stdout','pool':'a'");
    peer_ask(&ann, 5, "", ",'pool':'b'");
    peer_ask(&ann, 6, "", ",'pool':'b'");
    peer_call(&ann, 7, "", ",'pool':'a'");
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
    peer_call(&ann, 1, "", "");
    peer_close(&ann);
    check_recovery(run);
    run_terminate(run);
}

/* Until the end of the input. */
static void play_stdio(struct run *run)
{
    struct peer ann;

    peer_stdio(&ann, run, "Ann");
    talk(&ann);
    send_much(&ann);
    peer_ask(&ann, 60, "", "");
    run_lift(run);
    end_stdin(&ann);
}

/* The log is a file, which the daemon reopens. */
static void play_log(struct run *run)
{
    struct peer ann;

    peer_stdio(&ann, run, "Ann");
    peer_call(&ann, 1, "", "");
    run_arm(run);
    if (run_alive(run))
        kill(run->daemon, SIGUSR1);
    peer_call(&ann, 2, "", "");
    end_stdin(&ann);
}

static void play_reloads(struct run *run)
{
    play_reload(run);
    check_recovery(run);
    run_terminate(run);
}

static void play_upgrades(struct run *run)
{
    play_upgrade(run);
    check_recovery(run);
    run_terminate(run);
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

/* The run needs no client. */
static void play_nothing(struct run *run)
{
    (void)run;
}

/* The daemon ends: a command cannot be executed. If the child cannot report that, the daemon
 * restarts the worker, and the other one continues. */
static void play_broken(struct run *run)
{
    int64_t deadline = deadline_usual();

    while (run_alive(run) && !run_logged(run, "restarting in") && !deadline_over(deadline))
        nap();
    if (!deadline_over(deadline))
        run_terminate(run);
}

/* ---- pools with a mode ----------------------------------------------------------------------- */

/* The worker of `peer` sends a notification, then the answer. */
static void have_sent(struct peer *peer, unsigned id, const char *message)
{
    struct text params = {0};

    text_printf(&params, ",'message':{'method':'note','params':{%s}}", message);
    peer_call(peer, id, params.data, ",'method':'say'");
    text_free(&params);
}

static void notify(struct peer *ann, struct peer *ben)
{
    size_t errors = ann->errors, notes = ann->notes;
    struct text message = {0};

    text_printf(&message, "'who':'all'");
    add_pad(&message); /* each client needs a buffer of its own */
    have_sent(ann, 4, message.data);
    text_free(&message);
    if (!peer_gone(ann) && ann->errors == errors) {
        peer_await_notes(ben, ben->notes + 1);
        if (ann->notes != notes + 1)
            run_fail(ann->run, "a notification for all came %zu times", ann->notes - notes);
    }
    notes = ann->notes;
    have_sent(ann, 5, "'sessionId':'Ann'");
    if (!peer_gone(ann) && ann->errors == errors && ann->notes != notes + 1 &&
        !run_logged(ann->run, "unroutable"))
        run_fail(ann->run, "a notification for a session is lost");
}

/* Sessions that answers name; short and long tokens. */
static void share(struct peer *ann, struct peer *ben)
{
    peer_call(ann, 60, ",'result':{'protocolVersion':2,'who':'Ann, Ben'}",
              ",'method':'initialize'");
    peer_call(ben, 60, "", ",'method':'initialize'");
    peer_ask(ann, 1, ",'result':{'sessionId':'Ann'}", ",'method':'plain'");
    peer_ask(ben, 1, ",'result':{'sessionId':'Ben'}", ",'method':'plain'");
    peer_await(ann);
    peer_await(ben);
    for (unsigned id = 2; id < 22; id++)
        peer_ask(ben, id, ",'sessionId':'Ben','_meta':{'progressToken':'Ben'}",
                 ",'method':'progress'");
    peer_await(ben);
    peer_ask(ann, 3,
             ",'_meta':{'progressToken':'an Ann whose name is longer than what there is"
             " room for in a request that is like most of them'}",
             "");
    notify(ann, ben);
    peer_ask(ann, 6, ",'sessionId':'Ann','id':77,'params':{'sessionId':'Ann'}", ",'method':'ask'");
    peer_ask(ben, 6, ",'sessionId':'Ben','id':78,'params':{'sessionId':'Ben'}", ",'method':'ask'");
    peer_await(ann);
    peer_await(ben);
}

/* Tasks that answers name. */
static void begin_tasks(struct peer *ann, struct peer *ben)
{
    peer_ask(ann, 7, ",'task':{'taskId':'of Ann'},'_meta':{'progressToken':'Ann'}",
             ",'method':'plain','pool':'c'");
    peer_ask(ben, 7, ",'task':{'taskId':'of Ben'},'_meta':{'progressToken':'Ben'}",
             ",'method':'plain','pool':'c'");
    peer_await(ann);
    peer_await(ben);
    peer_ask(ben, 8, ",'taskId':'of Ben'", ",'method':'tasks/result','pool':'c'");
    peer_await(ben);
}

/* The id before the padding, and after it. */
static void share_much(struct peer *peer)
{
    struct text pad = {0};

    add_pad(&pad);
    peer_call(peer, 30, pad.data, "");
    if (!peer_gone(peer)) {
        peer->asked[peer->asked_count++] = 31;
        peer_send(peer, "{'params':{'who':'%s'%s},'id':31}", peer->name, pad.data);
        peer_await(peer);
    }
    text_free(&pad);
}

/* Requests that are cancelled, time out, or lose their client. */
static void give_up(struct peer *ann)
{
    struct peer mia;

    peer_call(ann, 40, "", ",'method':'hold'");
    ann->cancelled = 41;
    peer_send(ann, "{'id':41,'params':{'who':'Ann'}}");
    peer_send(ann, "{'method':'notifications/cancelled','params':{'requestId':41}}");
    peer_send(ann, "{'method':'release'}");
    peer_ask(ann, 42, "", "");
    peer_call(ann, 43, "", ",'method':'no_answer','pool':'c'");
    peer_connect(&mia, ann->run, "Mia");
    peer_send(&mia, "{'method':'release'}"); /* in case Ann is lost */
    peer_call(&mia, 1, "", "");
    peer_send(&mia, "{'id':'%0100d','params':{'who':'Mia'},'method':'no_answer'}", 2);
    peer_close(&mia);
    for (unsigned id = 50; id < 53; id++) /* time to see the end of Mia */
        peer_call(ann, id, "", "");
    peer_call(ann, 44, "", ",'method':'die'");
    peer_call(ann, 45, "", "");
}

/* A process of a client that is initialized is replaced by one that is, too. */
static void survive(struct peer *peer)
{
    peer_call(peer, 2, "", ",'method':'initialize','pool':'b'");
    peer_send(peer, "{'method':'notifications/initialized','pool':'b'}");
    peer_call(peer, 3, "", ",'method':'logging/setLevel','pool':'b'");
    peer_call(peer, 4, "", ",'method':'die','pool':'b'");
    if (!peer_gone(peer))
        peer_call(peer, 5, "", ",'pool':'b'");
}

/* A process that clients share gets one handshake, and hears of a subscription once. */
static void shake_hands(struct peer *peer)
{
    peer_call(peer, 60,
              ",'protocolVersion':'1','result':{'protocolVersion':'1','who':'Ann','capabilities':{'"
              "tools':{}}}",
              ",'method':'initialize','pool':'c'");
    peer_send(peer, "{'method':'notifications/initialized','pool':'c'}");
    peer_call(peer, 61, ",'uri':'u'", ",'method':'resources/subscribe','pool':'c'");
    peer_call(peer, 62, ",'uri':'u'", ",'method':'resources/unsubscribe','pool':'c'");
}

/* At most two processes: the third client waits until another one has left. */
static void take_turns(struct run *run)
{
    static const char *const names[] = {"Tim", "Eve", "Kim"};
    struct peer peers[3];

    for (int i = 0; i < 3; i++)
        peer_connect(&peers[i], run, names[i]);
    for (int i = 0; i < 2; i++) {
        peer_call(&peers[i], 1, ",'message':{'method':'note','params':{'who':'all'}}",
                  ",'method':'say','pool':'b'");
    }
    survive(&peers[0]);
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
    begin_tasks(&ann, &ben);
    share_much(&ann);
    give_up(&ann);
    shake_hands(&ann);
    take_turns(run);
    check_recovery(run);
    run_terminate(run);
    peer_await_end(&ann);
    peer_await_end(&ben);
}

/* ---- a shared server ------------------------------------------------------------------------- */

/* A log of a shared server. */
static void prepare_log(struct run *run)
{
    make_file(run, "stdio_bus/a.log", "a line\n");
}

/* A home without a file. */
static void prepare_nothing(struct run *run)
{
    setenv("HOME", run->dir, 1);
}

/* A home with the file of a client. */
static void prepare_doctor(struct run *run)
{
    setenv("HOME", run->dir, 1);
    make_file(run, ".claude.json",
              "{\"projects\": {\"/\": {\"mcpServers\": {\"a\": {\"command\": \"sh\", "
              "\"env\": {\"A_KEY\": \"x\"}}}}}}");
}

/* clang-format off */
#define WORDS(...) (const char *const[]) {__VA_ARGS__, NULL}
#define CONFIG_AND(...) WORDS("--config", "@DIR@/config", __VA_ARGS__)
#define DEBUG "--log-level", "debug"
#define ONE_POOL "{'pools':[" POOL("a", 1, "@WORKER@") "]}"

const struct scene scenes[SCENES] = {
    {.name = "unix",
     .arguments = CONFIG_AND("--unix", "@DIR@/socket", DEBUG),
     .config = "{'pools':[" POOL("a", 2, "@WORKER@") "," POOL("b", 1, "@WORKER@") "]," LIMITS("")
               "}",
     .play = play_unix,
     .socket = true,
     .log = STDERR_PIPE},
    {.name = "tcp",
     .arguments = WORDS("--config-fd", "0", "--tcp", "127.0.0.1:0", DEBUG),
     .play = play_tcp,
     .stdin_nonblocking = true,
     .repeats = true},
    {.name = "IPv6",
     .arguments = CONFIG_AND("--tcp", "[::1]:0", "--token-file", "@DIR@/token", DEBUG),
     .token = true,
     .config = "{'pools':[{'id':'b','command':'@WORKER@','args':['--name','b'],'instances':1,"
               "'env':{'A':'${FAULTS_DIR}'},'cwd':'@DIR@','core':false" NO_NEW_PRIVS "}]}",
     .play = play_listening,
     .descriptors = 64},
    {.name = "stdio",
     .arguments = CONFIG_AND(DEBUG),
     .config = "{'pools':[" POOL("a", 1, "@WORKER@")
               ",{'id':'b','command':'@WORKER@','instances':1," FRAMED "}]," LIMITS("") "}",
     .play = play_stdio,
     .forgets = true,
     .log = STDERR_SOCKET},
    {.name = "file",
     .arguments = CONFIG_AND(DEBUG),
     .config = ONE_POOL,
     .input = "{'id':1,'params':{'who':'Ann'}}\n{'id':2,'params':{'who':'Ann'}}\n",
     .play = play_file},
    {.name = "log file",
     .arguments = CONFIG_AND("--log-file", "@DIR@/log", DEBUG),
     .config = ONE_POOL,
     .play = play_log},
    {.name = "log on stdout",
     .arguments = CONFIG_AND("--log-file", "/dev/stdout"),
     .config = ONE_POOL,
     .play = play_nothing,
     .exit_status = 78},
    {.name = "null",
     .arguments = WORDS("--instances", "1", DEBUG, "--", "@WORKER@"),
     .input = "",
     .play = play_nothing},
    {.name = "broken",
     .arguments = WORDS("--config", "@DIR@/config"),
     .config = "{'pools':[" POOL("a", 1, "@WORKER@") "," POOL("b", 1, "@DIR@/broken") "]}",
     .play = play_broken,
     .exit_status = 78},
    {.name = "check",
     .arguments = CONFIG_AND("--check-config"),
     .config = "{'pools':[{'id':'a','command':'sh','instances':1},"
               "{'id':'b','command':'./broken','cwd':'@DIR@','instances':1},"
               "{'id':'c','url':'http://h','protocol':'mcp','headers':{'X':'y'}}],"
               "'listen':{'group':'root','allow_uids':['root']}}",
     .play = play_nothing,
     .forgets = true,
     .no_path = true},
    {.name = "check as JSON",
     .arguments = CONFIG_AND("--check-config", "--json"),
     .config = ONE_POOL,
     .play = play_nothing},
    {.name = "http",
     .arguments = CONFIG_AND(DEBUG),
     .config = "{'pools':[{'id':'a','command':'@WORKER@','protocol':'mcp','instances':2},"
               POOL("b", 1, "@WORKER@") "]," LIMITS("")
               ",'metrics':'127.0.0.1:0','listen':[{'http':'unix:@DIR@/http','token_file':"
               "'@DIR@/token','health':true,'metrics':true,"
               "'origins':['https://app.example'],'hosts':['localhost'],"
               "'oauth':{'resource':'https://mcp.example','authorization_servers':['https://a'],"
               "'scopes':['a']}},{'http':'127.0.0.1:0','routes':{'/b':{'pool':'b','as':'rpc'}}}]}",
     .play = play_http,
     .token = true},
    {.name = "http streams",
     .arguments = CONFIG_AND(DEBUG),
     .config = "{'pools':[{'id':'a','command':'@WORKER@','protocol':'mcp','instances':2},"
               POOL("b", 1, "@WORKER@") "]," LIMITS(",'max_resume':1000")
               ",'listen':[{'http':'unix:@DIR@/http','token_file':'@DIR@/token','health':true}]}",
     .play = play_streams,
     .token = true},
    {.name = "include",
     .arguments = CONFIG_AND("--check-config"),
     .config = "{'include':'pool-*.json'}",
     .included = "{'pools':[{'id':'a','command':'sh','instances':1}]}",
     .play = play_nothing},
    {.name = "manager",
     .arguments = CONFIG_AND("--unix", "@DIR@/socket", DEBUG),
     .config = "{'pools':[" POOL("a", 1, "@WORKER@") "," POOL("b", 1, "@WORKER@") "]," LIMITS("")
               "}",
     .play = play_listening,
     .listener = UNIX_LISTENER,
     .manager = true},
    {.name = "system log",
     .arguments = CONFIG_AND("--log-syslog=@DIR@/syslog"),
     .config = ONE_POOL,
     .input = "",
     .play = play_nothing,
     .log = SYSTEM_LOG},
    {.name = "no system log",
     .arguments = CONFIG_AND("--log-syslog=@DIR@/nothing"),
     .config = ONE_POOL,
     .play = play_nothing,
     .exit_status = 78},
    {.name = "no configuration",
     .arguments = WORDS("--check-config"),
     .play = play_nothing,
     .exit_status = 64},
    {.name = "reload",
     .arguments = CONFIG_AND("--unix", "@DIR@/socket", DEBUG),
     .config = "{'pools':[" POOL("a", 1, "@WORKER@") "," POOL("b", 1, "@WORKER@") "]," LIMITS("")
               "}",
     .play = play_reloads,
     .socket = true,
     .token = true,
     .manager = true},
    {.name = "upgrade",
     .arguments = CONFIG_AND(DEBUG),
     .config = "{'pools':[" POOL("a", 1, "@WORKER@") ",{'id':'b','command':'@WORKER@',"
               "'protocol':'mcp','clients':'sticky','instances':1,'request_timeout_sec':3000}],"
               "'listen':[{'http':'127.0.0.1:0','token_file':'@DIR@/token'},"
               "{'unix':'@DIR@/socket'}],'control':'@DIR@/control'," LIMITS("") "}",
     .play = play_upgrades,
     .single = true,
     .socket = true,
     .token = true},
    {.name = "upgrade with HTTP",
     .arguments = CONFIG_AND(DEBUG),
     .config = "{'pools':[{'id':'a','command':'@WORKER@','protocol':'mcp','clients':'sticky',"
               "'instances':1}," POOL("b", 1, "@WORKER@") "]," LIMITS(
                   "") ",'listen':[{'http':'unix:@DIR@/http'}]}",
     .play = play_upgraded,
     .single = true},
    {.name = "rmp",
     .arguments = CONFIG_AND(DEBUG),
     .config = "{'rmp':{'socket_path':'@DIR@/bus/rmp.sock','metrics_interval_ms':0,"
               "'validate':false,'schemas':[{'id':5000,'type':'intent.a.v1'}]}," LIMITS("") "}",
     .play = play_rmp},
    {.name = "bridge",
     .arguments = CONFIG_AND(DEBUG),
     .config = BRIDGED,
     .play = play_bridge},
    {.name = "history",
     .arguments = CONFIG_AND(DEBUG),
     .config = BRIDGED,
     .prepare = prepare_history,
     .play = play_history},
    {.name = "upgrade with RMP",
     .arguments = CONFIG_AND(DEBUG),
     .config = BRIDGED,
     .play = play_upgraded_bus,
     .single = true},
    {.name = "nats",
     .arguments = CONFIG_AND("--unix", "@DIR@/nats", DEBUG),
     .config = "{'pools':[{'id':'b','command':'@WORKER@','instances':1,'export':true}],"
               "'nats':{'servers':['127.0.0.1:@PORT@'],'node':'n','prefix':'stdio_bus',"
               "'token_file':'@DIR@/token'}}",
     .play = play_nats,
     .listener = TCP_LISTENER,
     .token = true},
    {.name = "topics over nats",
     .arguments = CONFIG_AND(DEBUG),
     .config = "{'rmp':{'socket_path':'@DIR@/bus/rmp.sock','metrics_interval_ms':0,"
               "'validate':false},"
               "'nats':{'servers':['127.0.0.1:@PORT@'],'topics':true}}",
     .play = play_nats_topics,
     .listener = TCP_LISTENER},
    {.name = "nats links",
     .arguments = CONFIG_AND("--unix", "@DIR@/socket", DEBUG),
     .config = "{'pools':[{'id':'b','command':'@WORKER@','instances':1,'export':true},"
               "{'id':'far','remote':true},"
               "{'id':'full','command':'@WORKER@','clients':'exclusive','instances':1,"
               "'busy_timeout_sec':1,'overflow':true}],'limits':{'drain_timeout_sec':3},"
               "'nats':{'servers':['127.0.0.1:@PORT@'],'node':'n'}}",
     .play = play_nats_links,
     .listener = TCP_LISTENER,
     .socket = true},
    {.name = "connect",
     .arguments = WORDS("--connect", "@DIR@/socket"),
     .play = play_connect,
     .listener = UNIX_LISTENER},
    {.name = "connect to TCP",
     .arguments = WORDS("--connect", "127.0.0.1:@PORT@", "--token-file", "@DIR@/token"),
     .token = true,
     .play = play_connect,
     .listener = TCP_LISTENER,
     .log = STDERR_PIPE},
    {.name = "url",
     .arguments = WORDS("--connect", "http://127.0.0.1:@PORT@/mcp", "--token-file", "@DIR@/token"),
     .token = true,
     .play = play_url,
     .listener = TCP_LISTENER,
     .log = STDERR_PIPE},
    {.name = "url of HTTP+SSE",
     .arguments = WORDS("--connect", "http://127.0.0.1:@PORT@/mcp"),
     .play = play_older_url,
     .listener = TCP_LISTENER,
     .log = STDERR_PIPE},
    {.name = "url with TLS",
     .arguments = WORDS("--connect", "https://127.0.0.1:@PORT@/mcp"),
     .prepare = plant_openssl,
     .play = play_url,
     .listener = TCP_LISTENER,
     .log = STDERR_PIPE},
    {.name = "url with another program for TLS",
     .arguments = WORDS("--connect", "https://127.0.0.1:@PORT@/mcp", "--header", "X: y",
                        "--tls-command", "@WORKER@ --tunnel %p"),
     .play = play_url,
     .listener = TCP_LISTENER,
     .log = STDERR_PIPE},
    {.name = "connect to nothing",
     .arguments = WORDS("--connect", "@DIR@/nothing", "--pool", "a", "--wait", "1"),
     .play = play_nothing,
     .exit_status = 69},
    {.name = "import",
     .arguments = WORDS("--import", "@DIR@/config"),
     .config = "{'mcpServers':{'a':{'command':'sh','args':['-c','x'],'env':{'A':'$'}}}}",
     .play = play_nothing},
    {.name = "import TOML",
     .arguments = WORDS("--import", "@DIR@/config.toml"),
     .toml = "[mcp_servers.'a']\ncommand = 'sh'\nargs = ['-c', 'x']\nenv = {A = '$'}\n",
     .play = play_nothing},
    {.name = "sharing",
     .arguments = CONFIG_AND("--unix", "@DIR@/socket", DEBUG),
     .config = "{'pools':["
               "{'id':'a','command':'@WORKER@','instances':1,'protocol':'acp'},"
               "{'id':'b','command':'@WORKER@','instances':2,'protocol':'mcp'},"
               "{'id':'c','command':'@WORKER@','instances':1,'protocol':'mcp','clients':'sticky',"
               "'lazy':true,'request_timeout_sec':1," FRAMED "}],"
               "'listen':{'mode':'0660','group':@GID@,'allow_uids':[@UID@]},"
               LIMITS("") "}",
     .play = play_sharing,
     .socket = true,
     .forgets = true},
    {.name = "share",
     .arguments = WORDS("--share=a", "--any-cwd", "--watch", "@DIR@/watched",
                        "--clients", "auto", DEBUG, "--", "@WORKER@"),
     .prepare = prepare_watched,
     .play = play_share,
     .shares = true},
    {.name = "share what is remembered",
     .arguments = WORDS("--share=a", "--any-cwd", "--watch", "@DIR@/watched/a", DEBUG, "--",
                        "@WORKER@"),
     .prepare = prepare_watched,
     .play = play_remembered,
     .shares = true},
    {.name = "share nothing",
     .arguments = WORDS("--share", "--", "@DIR@/nothing"),
     .play = play_refused,
     .stdin_nonblocking = true,
     .shares = true,
     .exit_status = 78},
    {.name = "list",
     .arguments = WORDS("--list"),
     .play = play_list,
     .listener = SHARED_LISTENER,
     .shares = true},
    {.name = "list as JSON",
     .arguments = WORDS("--list", "--json"),
     .play = play_list,
     .listener = SHARED_LISTENER,
     .shares = true},
    {.name = "list as a page",
     .arguments = WORDS("--list", "--page"),
     .play = play_list_page,
     .listener = SHARED_LISTENER,
     .shares = true},
    {.name = "restart",
     .arguments = WORDS("--restart", "a"),
     .play = play_list,
     .listener = SHARED_LISTENER,
     .shares = true,
     .is_verdict = true},
    {.name = "stop",
     .arguments = WORDS("--stop", "a"),
     .play = play_list,
     .listener = SHARED_LISTENER,
     .shares = true,
     .is_verdict = true},
    {.name = "forget",
     .arguments = WORDS("--forget", "a"),
     .prepare = prepare_memory,
     .play = play_list,
     .listener = SHARED_LISTENER,
     .shares = true,
     .is_verdict = true},
    {.name = "log",
     .arguments = WORDS("--log", "a"),
     .prepare = prepare_log,
     .play = play_list,
     .listener = SHARED_LISTENER,
     .shares = true,
     .is_verdict = true},
    {.name = "ctl as a server",
     .arguments = WORDS("ctl", "--mcp"),
     .prepare = prepare_log,
     .play = play_agent,
     .listener = SHARED_LISTENER,
     .shares = true},
    {.name = "doctor",
     .arguments = WORDS("doctor", "--json"),
     .prepare = prepare_doctor,
     .play = play_list,
     .listener = SHARED_LISTENER,
     .shares = true,
     .exit_status = 1,
     .is_verdict = true},
    {.name = "doctor of a new user",
     .arguments = WORDS("doctor"),
     .prepare = prepare_nothing,
     .play = take_stdout,
     .is_verdict = true},
    {.name = "doctor help", .arguments = WORDS("doctor", "--help"), .play = play_nothing},
    {.name = "list nothing", .arguments = WORDS("--list"), .play = play_nothing, .shares = true},
    {.name = "control",
     .arguments = CONFIG_AND("--unix", "@DIR@/socket", "--control", "@DIR@/control", DEBUG),
     .config = ONE_POOL,
     .play = play_control,
     .socket = true},
    {.name = "ctl workers",
     .arguments = WORDS("ctl", "@DIR@/socket", "workers", "--table"),
     .play = play_ctl,
     .listener = UNIX_LISTENER},
    {.name = "ctl nodes",
     .arguments = WORDS("ctl", "@DIR@/socket", "nodes"),
     .play = play_ctl,
     .listener = UNIX_LISTENER},
    {.name = "ctl top",
     .arguments = WORDS("ctl", "@DIR@/socket", "top"),
     .play = play_ctl,
     .listener = UNIX_LISTENER},
    {.name = "ctl page",
     .arguments = WORDS("ctl", "@DIR@/socket", "page"),
     .play = play_ctl,
     .listener = UNIX_LISTENER},
    {.name = "ctl events",
     .arguments = WORDS("ctl", "@DIR@/socket", "events", "--table"),
     .play = play_ctl,
     .listener = UNIX_LISTENER},
    {.name = "ctl reload",
     .arguments = WORDS("ctl", "@DIR@/socket", "reload"),
     .play = play_ctl,
     .listener = UNIX_LISTENER,
     .exit_status = 1},
    {.name = "ctl nothing", .arguments = WORDS("ctl"), .play = play_nothing, .exit_status = 64},
    {.name = "ctl mistake",
     .arguments = WORDS("ctl", "fly"),
     .play = play_nothing,
     .exit_status = 64},
    {.name = "ctl help", .arguments = WORDS("ctl", "--help"), .play = play_nothing},
    {.name = "schema", .arguments = WORDS("--schema"), .play = play_nothing},
    {.name = "ping",
     .arguments = WORDS("--ping", "@DIR@/socket", "--deep"),
     .play = play_ctl,
     .listener = UNIX_LISTENER},
    {.name = "ping nothing",
     .arguments = WORDS("--ping", "@DIR@/nothing"),
     .play = play_nothing,
     .exit_status = 69},
    {.name = "host",
     .arguments = WORDS("--host", "@DIR@/config", "@DIR@/http"),
     .config = "{'pools':[{'id':'p','command':'@WORKER@','instances':1}],"
               "'limits':{'drain_timeout_sec':20,'max_restarts':20}}",
     .play = play_nothing,
     .repeats = true,
     .forgets = true},
    {.name = "version", .arguments = WORDS("--version"), .play = play_nothing},
    {.name = "usage", .arguments = WORDS("--nonsense"), .play = play_nothing, .exit_status = 64},
};
/* clang-format on */
