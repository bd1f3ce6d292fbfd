#include "build_config.h"

#include "reload_scene.h"

#include <signal.h>
#include <string.h>

#include "deadline.h"

#define POOL(id, name)                                                                             \
    "{'id':'" id "','command':'@WORKER@','args':['--name','" name "'],'instances':1}"
#define LIMITS "'limits':{'drain_timeout_sec':20,'max_output_queue':65536,'max_restarts':20}"
#define STALL_MS 300 /* without a line of the log: the fault was that of the line */

/* The last socket to be bound is that of the next client: each file has it. */
#define MORE "{'unix':'@DIR@/more','mode':'0660'}"

static const char *const configs[] = {
    ("{'pools':[" POOL("a", "new") "," POOL("b", "b") "," POOL(
        "c", "c") "],"
                  "'listen':[{'http':'127.0.0.1:0','token_file':'@DIR@/token'}," MORE "]," LIMITS
                  "}"),
    ("{'pools':[" POOL("b", "b") "],'listen':[{'unix':'@DIR@/more'}]," LIMITS "}"),
    ("{'pools':[{'id':'a'}]," LIMITS "}"),
    ("{'pools':[" POOL("a", "a") "," POOL("b", "other") "],'listen':[" MORE "]," LIMITS "}"),
};

static size_t count_reloads(struct run *run)
{
    size_t count = 0;
    const char *at = run_log(run);

    while (at != NULL && (at = strstr(at, "reloaded")) != NULL) {
        at++;
        count++;
    }
    return count;
}

/* The file must not change before the daemon has read it. */
static void reload(struct run *run, const char *config)
{
    size_t before = count_reloads(run);
    int64_t began_ms = now_ms();

    run_write_config(run, config);
    run->hung_up = true;
    if (run_alive(run))
        kill(run->daemon, SIGHUP);
    while (run_alive(run) && count_reloads(run) == before &&
           !run_is_stalled(run, began_ms, STALL_MS))
        nap();
}

/* Whatever becomes of the first reloads, the last one puts things in order. */
void play_reload(struct run *run)
{
    struct peer ann;
    unsigned id = 1;

    peer_connect(&ann, run, "Ann");
    peer_call(&ann, id++, "", ",'pool':'b','sessionId':'Ann'");
    run_arm(run);
    for (size_t i = 0; i < sizeof configs / sizeof configs[0]; i++) {
        reload(run, configs[i]);
        peer_call(&ann, id++, "", ",'pool':'b'");
        peer_call(&ann, id++, "", ",'pool':'b','sessionId':'Ann'");
    }
    run_lift(run);
    peer_close(&ann);
    reload(run, configs[3]);
}
