#include "build_config.h"

#include "upgrade_scene.h"

#include <signal.h>
#include <string.h>

#include "deadline.h"

#define STALL_MS 600 /* without a line of the log: the fault was that of the line */
#define TRIES 3      /* on a busy machine the check takes longer than the daemon's clock allows */

static size_t count_of(struct run *run, const char *text)
{
    const char *at = run_log(run);
    size_t count = 0;

    for (; at != NULL && (at = strstr(at, text)) != NULL; at++)
        count++;
    return count;
}

/* The control socket is bound last. Further clients come to the other one. */
static void connect_control(struct peer *peer, struct run *run)
{
    int64_t began_ms = now_ms();

    while (run_alive(run) && count_of(run, "/control") == 0 &&
           !run_is_stalled(run, began_ms, STALL_MS))
        nap();
    peer_connect(peer, run, "Control");
    memcpy(&run->board->address, &run->address, sizeof run->address);
    run->board->address_len = sizeof run->address;
}

void upgrade_once(struct run *run)
{
    for (int i = 0; i < TRIES; i++) {
        size_t done = count_of(run, "upgraded from"), refused = count_of(run, "not upgraded");
        int64_t began_ms = now_ms();

        if (run_alive(run))
            kill(run->daemon, SIGUSR2);
        while (run_alive(run) && count_of(run, "upgraded from") == done &&
               count_of(run, "not upgraded") == refused && !run_is_stalled(run, began_ms, STALL_MS))
            nap();
        if (count_of(run, "upgraded from") > done)
            return;
    }
}

/* What the state has: requests under way, with a token of progress; a handshake, a session. */
static void prepare(struct peer *ann)
{
    peer_call(ann, 1, ",'protocolVersion':'1'", ",'method':'initialize','pool':'b'");
    peer_send(ann, "{'method':'notifications/initialized','pool':'b'}");
    peer_call(ann, 2, "", ",'sessionId':'Ann'");
    peer_call(ann, 3, "", ",'method':'hold','pool':'b'");
    peer_ask(ann, 4, ",'_meta':{'progressToken':'Ann'}", ",'pool':'b'");
    peer_ask(ann, 5, "", ",'pool':'b'");
}

void play_upgrade(struct run *run)
{
    struct peer ann, control;

    connect_control(&control, run);
    peer_connect(&ann, run, "Ann");
    prepare(&ann);
    run_arm(run);
    upgrade_once(run);
    peer_send(&ann, "{'method':'release','pool':'b'}");
    peer_call(&ann, 6, "", ",'pool':'b'");
    peer_call(&ann, 7, "", ",'sessionId':'Ann'");
    run_lift(run);
    upgrade_once(run);
    if (!peer_gone(&ann))
        peer_call(&ann, 8, "", ",'pool':'b'");
    peer_close(&ann);
    peer_close(&control);
}
