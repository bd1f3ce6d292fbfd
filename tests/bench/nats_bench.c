/* nats_bench: requests over NATS, one after the other, by the C client of NATS (libnats), and a
 * responder of the same client. Compiled by nats.sh, since nothing else needs that library.
 *
 *     nats_bench serve URL SUBJECT                 answers each request with its own text
 *     nats_bench ask URL SUBJECT SECONDS [PID]...  prints the median and the 99th percentile of the
 *                                                  time of a request, and the CPU time of each
 *                                                  process for it, in microseconds */
#include "build_config.h"

#include <dirent.h>
#include <inttypes.h>
#include <nats/nats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "histogram.h"

#define TIMEOUT_MS 5000
#define WARM_REQUESTS 200
#define PIDS_MAX 4
#define REQUEST                                                                                    \
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"echo\",\"params\":{\"text\":\"0123456789abcdef"    \
    "0123456789abcdef0123456789abcdef0123456789abcdef\"}}"
#define ANSWER "{\"jsonrpc\":\"2.0\",\"id\":1,"

static struct histogram times;

static void check(natsStatus status, const char *what)
{
    if (status == NATS_OK)
        return;
    fprintf(stderr, "nats_bench: %s: %s\n", what, natsStatus_GetText(status));
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Of all threads of the process. */
static uint64_t cpu_ns(const char *pid)
{
    char path[300];
    struct dirent *entry;
    uint64_t sum = 0;
    DIR *tasks;

    snprintf(path, sizeof path, "/proc/%.20s/task", pid);
    tasks = opendir(path);
    while (tasks != NULL && (entry = readdir(tasks)) != NULL) {
        uint64_t ns = 0;
        FILE *file;

        snprintf(path, sizeof path, "/proc/%.20s/task/%.20s/schedstat", pid, entry->d_name);
        file = fopen(path, "r");
        if (file != NULL && fscanf(file, "%" SCNu64, &ns) == 1)
            sum += ns;
        if (file != NULL)
            fclose(file);
    }
    if (tasks != NULL)
        closedir(tasks);
    return sum;
}

static void respond(natsConnection *connection, natsSubscription *subscription, natsMsg *message,
                    void *user_data)
{
    (void)subscription;
    (void)user_data;
    check(natsConnection_Publish(connection, natsMsg_GetReply(message), natsMsg_GetData(message),
                                 natsMsg_GetDataLength(message)),
          "publish");
    natsMsg_Destroy(message);
}

static void serve(natsConnection *connection, const char *subject)
{
    natsSubscription *subscription = NULL;

    check(natsConnection_Subscribe(&subscription, connection, subject, respond, NULL), "subscribe");
    check(natsConnection_Flush(connection), "flush");
    for (;;)
        pause();
}

static void ask_once(natsConnection *connection, const char *subject)
{
    natsMsg *reply = NULL;

    check(natsConnection_RequestString(&reply, connection, subject, REQUEST, TIMEOUT_MS),
          "request");
    if (strncmp(natsMsg_GetData(reply), ANSWER, sizeof ANSWER - 1) != 0) {
        fprintf(stderr, "nats_bench: another answer: %s\n", natsMsg_GetData(reply));
        exit(1);
    }
    natsMsg_Destroy(reply);
}

static void ask(natsConnection *connection, const char *subject, double seconds, char **pids,
                int pid_count)
{
    uint64_t before[PIDS_MAX], began, count = 0;

    for (int i = 0; i < WARM_REQUESTS; i++)
        ask_once(connection, subject);
    for (int i = 0; i < pid_count; i++)
        before[i] = cpu_ns(pids[i]);
    began = now_ns();
    do {
        uint64_t sent = now_ns();

        ask_once(connection, subject);
        histogram_add(&times, now_ns() - sent);
        count++;
    } while ((double)(now_ns() - began) < seconds * 1e9);
    printf("%.1f %.1f", (double)histogram_quantile(&times, 0.5) / 1000,
           (double)histogram_quantile(&times, 0.99) / 1000);
    for (int i = 0; i < pid_count; i++)
        printf(" %.1f", (double)(cpu_ns(pids[i]) - before[i]) / 1000 / (double)count);
    printf("\n");
}

int main(int argc, char **argv)
{
    natsConnection *connection = NULL;
    natsOptions *options = NULL;

    if (argc < 4 || argc > 5 + PIDS_MAX) {
        fputs("usage: nats_bench serve URL SUBJECT\n"
              "       nats_bench ask URL SUBJECT SECONDS [PID]...\n",
              stderr);
        return 64;
    }
    check(natsOptions_Create(&options), "options");
    check(natsOptions_SetURL(options, argv[2]), "URL");
    check(natsOptions_SetSendAsap(options, true),
          "options"); /* not by a thread of its own, later */
    check(natsConnection_Connect(&connection, options), "connect");
    natsOptions_Destroy(options);
    if (strcmp(argv[1], "serve") == 0)
        serve(connection, argv[3]);
    if (argc > 4)
        ask(connection, argv[3], strtod(argv[4], NULL), argv + 5, argc - 5);
    natsConnection_Destroy(connection);
    return 0;
}
