/* Eight buses, each of one thread: a program for ThreadSanitizer, so without libcheck, whose marks
 * are shared. In a build with CFLAGS='-O1 -g -fsanitize=thread' it finds races between them. */
#include "build_config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embed/stdio_bus_embed.h"

#define THREADS 8
#define REQUESTS 200

struct run {
    char config[1024];
    stdio_bus_t *bus;
    int answers, restarts;
    const char *problem;
};

static void on_message(stdio_bus_t *bus, const char *msg, size_t len, void *user_data)
{
    struct run *run = user_data;

    (void)bus;
    run->answers++;
    if (len != strlen(msg))
        run->problem = "a message is not terminated";
}

static void on_worker(stdio_bus_t *bus, int worker_id, const char *event, void *user_data)
{
    struct run *run = user_data;

    (void)bus;
    (void)worker_id;
    run->restarts += strcmp(event, "restarting") == 0;
}

static void on_log(stdio_bus_t *bus, int level, const char *message, void *user_data)
{
    (void)bus;
    (void)level;
    (void)message;
    (void)user_data;
}

static int send(struct run *run, const char *method, int id)
{
    char text[128];
    int len = snprintf(text, sizeof text, "{\"id\":%d,\"sessionId\":\"s%d\",\"method\":\"%s\"}", id,
                       id % 7, method);

    return stdio_bus_ingest(run->bus, text, (size_t)len);
}

/* A worker dies at the end, and is restarted. */
static void exchange(struct run *run)
{
    for (int i = 0; i < REQUESTS && run->problem == NULL; i++) {
        if (send(run, "echo", i) != STDIO_BUS_OK)
            run->problem = "a request was refused";
        while (run->answers <= i && run->problem == NULL) {
            if (stdio_bus_step(run->bus, 10000) < 0)
                run->problem = "a step has failed";
        }
    }
    if (send(run, "die", REQUESTS) != STDIO_BUS_OK)
        run->problem = "the last request was refused";
    while (run->problem == NULL && run->restarts == 0) {
        if (stdio_bus_step(run->bus, 10000) < 0)
            run->problem = "a step has failed";
    }
}

static void *serve(void *user_data)
{
    struct run *run = user_data;
    const stdio_bus_options_t options = {.config_json = run->config,
                                         .on_message = on_message,
                                         .on_worker = on_worker,
                                         .on_log = on_log,
                                         .user_data = run};

    for (int round = 0; round < 3 && run->problem == NULL; round++) {
        run->answers = run->restarts = 0;
        run->bus = stdio_bus_create(&options);
        if (run->bus == NULL || stdio_bus_start(run->bus) != STDIO_BUS_OK)
            run->problem = "the bus cannot be started";
        else
            exchange(run);
        if (round == 1 && run->problem == NULL) {
            stdio_bus_stop(run->bus, 10);
            while (stdio_bus_get_state(run->bus) != STDIO_BUS_STATE_STOPPED)
                (void)stdio_bus_step(run->bus, -1);
        }
        stdio_bus_destroy(run->bus);
    }
    return NULL;
}

int main(void)
{
    static struct run runs[THREADS];
    const char *worker = getenv("TEST_WORKER");
    pthread_t threads[THREADS];
    int status = 0;

    for (int i = 0; i < THREADS; i++) {
        snprintf(runs[i].config, sizeof runs[i].config,
                 "{\"pools\":[{\"id\":\"p\",\"command\":\"%s\",\"instances\":2}]}",
                 worker != NULL ? worker : "./test_worker");
        if (pthread_create(&threads[i], NULL, serve, &runs[i]) != 0)
            return 99;
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        if (runs[i].problem == NULL)
            continue;
        printf("thread %d: %s\n", i, runs[i].problem);
        status = 1;
    }
    return status;
}
