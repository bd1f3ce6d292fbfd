/* The daemon under test, with HTTP listeners on TCP and on a Unix socket. */
#include "build_config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "deadline.h"
#include "http_chaos.h"
#include "proc.h"

static void write_config(const struct chaos *chaos, struct text *config)
{
    text_printf(config,
                "{\"limits\":{\"session_idle_sec\":%d,\"max_resume\":%d,\"max_output_queue\":65536,"
                "\"frame_timeout_sec\":5,\"ping_sec\":4,\"drain_timeout_sec\":%d,"
                "\"max_restarts\":1000,\"restart_window_sec\":1},\n"
                "\"pools\":[{\"id\":\"own\",\"protocol\":\"mcp\",\"command\":\"%s\","
                "\"instances\":80},\n"
                "{\"id\":\"all\",\"protocol\":\"mcp\",\"command\":\"%s\",\"instances\":3,"
                "\"clients\":\"sticky\"},\n"
                "{\"id\":\"plain\",\"command\":\"%s\",\"instances\":2}]}\n",
                IDLE_SEC, chaos->forgetful ? LITTLE_RESUME : MAX_RESUME, DRAIN_SEC,
                chaos->run.worker, chaos->run.worker, chaos->run.worker);
}

/* The port is in the log. */
static bool find_port(void *object)
{
    static const char words[] = "HTTP at http://127.0.0.1:";
    struct chaos *chaos = object;
    struct text log = {0};
    const char *at = NULL;

    if (read_file(&log, chaos->run.log_path) && log.len > 0)
        at = strstr(log.data, words);
    chaos->port = at != NULL ? (unsigned)strtoul(at + strlen(words), NULL, 10) : 0;
    text_free(&log);
    return chaos->port != 0;
}

int subject_connect(const struct chaos *chaos, bool tcp)
{
    return run_connect(&chaos->run, tcp ? chaos->port : 0);
}

bool subject_start(struct chaos *chaos)
{
    const char *level = getenv("CHAOS_LOG_LEVEL");
    struct text config = {0};
    char address[112];
    bool started;

    if (!run_make_dir(&chaos->run))
        return false;
    snprintf(address, sizeof address, "unix:%s", chaos->run.socket_path);
    write_config(chaos, &config);
    started = run_start(&chaos->run, config.data,
                        (const char *const[]){"--http", address, "--http", "127.0.0.1:0",
                                              "--log-level", level != NULL ? level : "info", NULL},
                        find_port, chaos);
    text_free(&config);
    return started;
}

/* --- its workers --- */

void subject_spare(struct chaos *chaos)
{
    if (chaos->stopped != 0)
        kill(chaos->stopped, SIGCONT);
    chaos->stopped = 0;
}

/* Kills a worker, or stops one for a while. */
void subject_harm(struct chaos *chaos)
{
    pid_t workers[128], worker;
    size_t count = proc_children(chaos->run.pid, workers, 128);

    subject_spare(chaos);
    if (count == 0)
        return;
    worker = workers[dice_below(&chaos->run.dice, (uint32_t)(count < 128 ? count : 128))];
    if (dice_chance(&chaos->run.dice, 300)) {
        chaos->stopped = worker;
        kill(worker, SIGSTOP);
        return;
    }
    kill(worker, dice_chance(&chaos->run.dice, 500) ? SIGKILL : SIGHUP);
    chaos->last_kill_ms = now_ms();
    chaos->run.kills++;
}

/* --- the end --- */

void subject_stop(struct chaos *chaos)
{
    run_stop(&chaos->run, "WRONG", chaos->forgetful ? "WRONG" : "are kept no more");
}
