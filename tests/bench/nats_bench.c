/* nats_bench: requests over NATS, one after the other, by the C client of NATS (libnats), and a
 * responder of the same client. Compiled by nats.sh, since nothing else needs that library.
 *
 *     nats_bench serve URL SUBJECT                 answers each request with its own text
 *     nats_bench ask URL SUBJECT SECONDS [PID]...  prints the median and the 99th percentile of the
 *                                                  time of a request, and the CPU time of each
 *                                                  process for it, in microseconds
 *     nats_bench serve-many URL SUBJECT            the same as serve, with as few writes as libnats
 *                                                  can do
 *     nats_bench flood URL SUBJECT SECONDS WINDOW [PID]...
 *                                                  with that number of requests in flight, and as
 *                                                  few writes: prints requests a second, and the
 *                                                  CPU time of each process for one */
#include "build_config.h"

#include <dirent.h>
#include <inttypes.h>
#include <nats/nats.h>
#include <stdbool.h>
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

/* --- many in flight --- */

struct flood {
    const char *subject, *inbox;
    uint64_t count; /* of answers */
    uint64_t end_ns;
    bool is_over;
};

static void request(natsConnection *connection, const struct flood *flood)
{
    check(natsConnection_PublishRequestString(connection, flood->subject, flood->inbox, REQUEST),
          "publish");
}

/* By the thread of the subscription. */
static void answered(natsConnection *connection, natsSubscription *subscription, natsMsg *message,
                     void *user_data)
{
    struct flood *flood = user_data;

    (void)subscription;
    if (strncmp(natsMsg_GetData(message), ANSWER, sizeof ANSWER - 1) != 0)
        check(NATS_ERR, "another answer");
    natsMsg_Destroy(message);
    __atomic_add_fetch(&flood->count, 1, __ATOMIC_RELAXED);
    if (!__atomic_load_n(&flood->is_over, __ATOMIC_RELAXED))
        request(connection, flood);
}

static uint64_t answers(const struct flood *flood)
{
    return __atomic_load_n(&flood->count, __ATOMIC_RELAXED);
}

static void rest(double seconds)
{
    const struct timespec time = {(time_t)seconds,
                                  (long)((seconds - (double)(time_t)seconds) * 1e9)};

    nanosleep(&time, NULL);
}

static void flood(natsConnection *connection, const char *subject, double seconds, int window,
                  char **pids, int pid_count)
{
    struct flood flood = {.subject = subject};
    natsSubscription *subscription = NULL;
    uint64_t before[PIDS_MAX], began, first, count;
    natsInbox *inbox = NULL;
    double took;

    check(natsInbox_Create(&inbox), "inbox");
    flood.inbox = inbox;
    check(natsConnection_Subscribe(&subscription, connection, inbox, answered, &flood),
          "subscribe");
    for (int i = 0; i < window; i++)
        request(connection, &flood);
    rest(0.2);
    for (int i = 0; i < pid_count; i++)
        before[i] = cpu_ns(pids[i]);
    first = answers(&flood);
    began = now_ns();
    rest(seconds);
    count = answers(&flood) - first;
    took = (double)(now_ns() - began);
    if (count == 0)
        check(NATS_TIMEOUT, "answers");
    printf("%.0f", (double)count * 1e9 / took);
    for (int i = 0; i < pid_count; i++)
        printf(" %.1f", (double)(cpu_ns(pids[i]) - before[i]) / 1000 / (double)count);
    printf("\n");
    __atomic_store_n(&flood.is_over, true, __ATOMIC_RELAXED);
    rest(0.1); /* what is on its way comes to no freed connection */
    natsSubscription_Destroy(subscription);
    natsInbox_Destroy(inbox);
}

int main(int argc, char **argv)
{
    natsConnection *connection = NULL;
    natsOptions *options = NULL;

    bool is_many;

    if (argc < 4 || argc > 5 + PIDS_MAX) {
        fputs("usage: nats_bench serve|serve-many URL SUBJECT\n"
              "       nats_bench ask URL SUBJECT SECONDS [PID]...\n"
              "       nats_bench flood URL SUBJECT SECONDS WINDOW [PID]...\n",
              stderr);
        return 64;
    }
    is_many = strcmp(argv[1], "serve-many") == 0 || strcmp(argv[1], "flood") == 0;
    check(natsOptions_Create(&options), "options");
    check(natsOptions_SetURL(options, argv[2]), "URL");
    check(natsOptions_SetSendAsap(options, !is_many), "options"); /* not later, by another thread */
    check(natsConnection_Connect(&connection, options), "connect");
    natsOptions_Destroy(options);
    if (strncmp(argv[1], "serve", 5) == 0)
        serve(connection, argv[3]);
    if (is_many && argc > 5)
        flood(connection, argv[3], strtod(argv[4], NULL), (int)strtol(argv[5], NULL, 10), argv + 6,
              argc - 6);
    else if (argc > 4)
        ask(connection, argv[3], strtod(argv[4], NULL), argv + 5, argc - 5);
    natsConnection_Destroy(connection);
    return 0;
}
