/* An idle daemon sleeps, and is small. The test watches it for ten seconds. */
#include "build_config.h"

#include "harness.h"

#define IDLE_MS 10000
#define MAX_ANON_KIB 448 /* the rest are pages of files, of which more or less are mapped */

TEST(design_idle_daemon_makes_no_wakeup)
{
    struct client *clients[10];
    struct span line;
    long pids[2];
    if (!proc_available())
        return;
    struct daemon *daemon = START(.instances = 2);
    for (int i = 0; i < 10; i++) {
        clients[i] = client_connect(daemon);
        client_pid(clients[i], "1", i % 2 ? "s" : NULL);
    }
    client_meet_workers(clients[0], 2, pids);
    steps_without("they are wakeups");
    long before = -1, now = proc_status(daemon->pid, "voluntary_ctxt_switches");
    while (now != before) { /* until it sleeps after the last answer */
        before = now;
        nap();
        now = proc_status(daemon->pid, "voluntary_ctxt_switches");
    }
    ck_assert(!client_line_before(clients[0], now_ms() + IDLE_MS, &line));
    ck_assert_int_eq(proc_status(daemon->pid, "voluntary_ctxt_switches"), before);
    if (!harness_skips_memory())
        ck_assert_int_le(proc_status(daemon->pid, "RssAnon"), MAX_ANON_KIB);
}
