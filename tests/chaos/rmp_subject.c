/* The daemon under test, with the topic bus. */
#include "build_config.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "proc.h"
#include "rmp_chaos.h"

uint64_t epoch_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void write_config(const struct chaos *chaos, struct text *config)
{
    text_printf(
        config,
        "{\"rmp\":{\"max_body\":%d,\"max_ttl_ms\":%d,\"metrics_interval_ms\":200,"
        "\"validate\":false},\n"
        "\"limits\":{\"max_output_queue\":%d,\"backpressure_timeout_sec\":%d,"
        "\"drain_timeout_sec\":%d,\"max_restarts\":1000,\"restart_window_sec\":1},\n"
        "\"pools\":[{\"id\":\"writer\",\"command\":\"%s\",\"instances\":3,"
        "\"rmp\":{\"agent\":\"writer\"}},\n"
        "{\"id\":\"runner\",\"command\":\"%s\",\"instances\":1,\"rmp\":{\"runner\":true}}]}\n",
        FRAME_BODY_MAX, TTL_MAX_MS, OUTPUT_QUEUE, BACKPRESSURE_SEC, DRAIN_SEC, chaos->run.worker,
        chaos->run.worker);
}

static bool listens(void *object)
{
    const struct chaos *chaos = object;
    int fd = run_connect(&chaos->run, 0);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

bool subject_start(struct chaos *chaos)
{
    struct text config = {0};
    bool started;

    if (!run_make_dir(&chaos->run))
        return false;
    write_config(chaos, &config);
    started = run_start(&chaos->run, config.data,
                        (const char *const[]){"--rmp", chaos->run.socket_path, NULL}, listens,
                        chaos);
    text_free(&config);
    return started;
}

void subject_kill_worker(struct chaos *chaos)
{
    pid_t workers[16];
    size_t count = proc_children(chaos->run.pid, workers, 16);

    if (count == 0)
        return;
    kill(workers[dice_below(&chaos->run.dice, (uint32_t)count)], SIGKILL);
    chaos->run.kills++;
}

void subject_stop(struct chaos *chaos)
{
    run_stop(&chaos->run, "cannot wait", "cannot wait");
}
