/* chaos [--seconds N] [--seed S] [--daemon PATH] [--mode unix|tcp] [--workers N] [--pools N]
 *       [--framing NAME] [--worker-framing NAME]
 *       [--protocol NAME] [--clients HOW] [--session WHERE] [--ids HOW]
 *
 * Runs a daemon (default: $STDIO_BUS, or ./stdio_bus) with small limits, random clients and random
 * workers (chaos_worker beside this program, or $CHAOS_WORKER), and checks all that both ends see.
 * The last four options are keys of all pools, as in the configuration.
 * All is thrown by one seed, which is printed. Exits with 1 when a rule was broken; the daemon's
 * log is kept then. TEST_TIMEOUT_FACTOR stretches deadlines, TEST_NO_RSS leaves memory unmeasured,
 * CHAOS_LOG_LEVEL is the daemon's log level.
 */
#include "build_config.h"

#include "chaos.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "deadline.h"
#include "phases.h"
#include "format/json.h"
#include "proc.h"

#define USAGE                                                                                      \
    "usage: chaos [--seconds N] [--seed S] [--daemon PATH] [--mode unix|tcp]\n"                    \
    "             [--workers N] [--pools N] [--protocol mcp|acp|lsp]\n"                           \
    "             [--framing ndjson|content-length|length] [--worker-framing likewise]\n"         \
    "             [--clients shared|sticky|exclusive] [--ids preserve|rewrite]\n"                 \
    "             [--session sessionId|params.sessionId]\n"

#define EXCLUSIVE_WORKERS 12 /* for all clients of a calm phase */

static bool read_number(const char *text, uint64_t min, uint64_t max, uint64_t *number)
{
    char *end;

    errno = 0;
    *number = strtoull(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *number >= min && *number <= max;
}

/* One of the pools' keys that say how they are shared. */
static bool read_key(struct options *options, const char *key, const char *value)
{
    static const struct {
        const char *key;
        const char *const *words;
    } keys[] = {
        {"protocol", sharing_protocol_words},
        {"clients", sharing_clients_words},
        {"session", sharing_session_words},
        {"ids", sharing_ids_words},
    };
    size_t len = strlen(options->keys), i, j;

    for (i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        for (j = 0; strcmp(key, keys[i].key) == 0 && keys[i].words[j] != NULL; j++) {
            if (strcmp(value, keys[i].words[j]) != 0)
                continue;
            snprintf(options->keys + len, sizeof options->keys - len, ",\"%s\":\"%s\"", key,
                     value);
            return true;
        }
    }
    return false;
}

/* What the keys mean together: asks those who know. */
static void read_sharing(struct options *options)
{
    char text[sizeof options->keys + 16];
    struct json_document document = {0};
    struct json_error error;

    snprintf(text, sizeof text, "{\"id\":\"\"%s}", options->keys);
    if (json_read(&document, slice_of(text, strlen(text)), &error) != 0) {
        fprintf(stderr, "chaos: %s: %s\n", text, error.text);
        exit(64);
    }
    sharing_read(&options->sharing, document.root);
    json_free(&document);
    if (options->sharing.clients == CLIENTS_EXCLUSIVE) {
        options->sharing.spare = LIMIT_SPARE;
        options->sharing.busy_timeout_sec = LIMIT_BUSY_SEC;
    }
}

static bool read_framing(enum wire_framing *framing, const char *value)
{
    unsigned i;

    for (i = 0; wire_framing_words[i] != NULL; i++) {
        if (strcmp(value, wire_framing_words[i]) != 0)
            continue;
        *framing = (enum wire_framing)i;
        wire_bridged |= *framing != WIRE_LINES;
        return true;
    }
    return false;
}

static bool read_option(struct options *options, const char *name, const char *value)
{
    uint64_t number;

    if (strcmp(name, "--daemon") == 0) {
        options->daemon = value;
        return true;
    }
    if (strcmp(name, "--mode") == 0) {
        options->tcp = strcmp(value, "tcp") == 0;
        return options->tcp || strcmp(value, "unix") == 0;
    }
    if (strcmp(name, "--framing") == 0)
        return read_framing(&wire_framing, value);
    if (strcmp(name, "--worker-framing") == 0)
        return read_framing(&options->worker_framing, value);
    if (strcmp(name, "--seed") == 0)
        return read_number(value, 0, UINT64_MAX, &options->seed);
    if (strcmp(name, "--seconds") == 0 && read_number(value, 5, 1000000, &number))
        options->seconds = (unsigned)number;
    else if (strcmp(name, "--workers") == 0 && read_number(value, 1, 30, &number))
        options->workers = (unsigned)number;
    else if (strcmp(name, "--pools") == 0 && read_number(value, 1, 6, &number))
        options->pools = (unsigned)number;
    else
        return strncmp(name, "--", 2) == 0 && read_key(options, name + 2, value);
    return true;
}

static uint64_t new_seed(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return ((uint64_t)now.tv_nsec ^ (uint64_t)now.tv_sec * 1000003 ^ (uint64_t)getpid()) % 1000000;
}

static void find_worker(struct options *options, const char *self)
{
    const char *path = getenv("CHAOS_WORKER");
    const char *slash = strrchr(self, '/');
    char beside[PATH_MAX];

    snprintf(beside, sizeof beside, "%.*schaos_worker", slash != NULL ? (int)(slash - self) + 1 : 0,
             self);
    if (path == NULL || path[0] == '\0')
        path = beside;
    if (realpath(path, options->worker) == NULL) {
        fprintf(stderr, "chaos: %s: %s\n", path, strerror(errno));
        exit(64);
    }
}

static void read_options(struct options *options, int argc, char *argv[])
{
    const char *daemon = getenv("STDIO_BUS");
    int i;

    options->daemon = daemon != NULL && daemon[0] != '\0' ? daemon : "./stdio_bus";
    options->seconds = 30;
    options->seed = new_seed();
    options->pools = 2;
    for (i = 1; i < argc; i += 2) {
        if (i + 1 == argc || !read_option(options, argv[i], argv[i + 1])) {
            fputs(USAGE, stderr);
            exit(64);
        }
    }
    find_worker(options, argv[0]);
    read_sharing(options);
    if (options->workers == 0)
        options->workers = options->sharing.clients == CLIENTS_EXCLUSIVE ? EXCLUSIVE_WORKERS : 3;
    wire_ids_rewritten = options->sharing.rewrite_ids;
    wire_session_in_params = options->sharing.session_in_params;
    wire_cancels_for_good = options->sharing.protocol == PROTOCOL_MCP;
}

static void print_summary(const struct chaos *chaos)
{
    const struct stats *stats = &chaos->stats;

    printf("clients %" PRIu64 " (%" PRIu64 " turned away, %" PRIu64 " rejected, %" PRIu64
           " closed for not reading)\n",
           stats->clients, stats->turned_away, stats->rejected, stats->stalled);
    printf("messages %" PRIu64 " from clients (%" PRIu64 " MiB), %" PRIu64 " to clients (%" PRIu64
           " MiB), %" PRIu64 " got and %" PRIu64 " said by workers\n",
           stats->sent, stats->sent_bytes >> 20, stats->received, stats->received_bytes >> 20,
           stats->got, stats->said);
    printf("requests %" PRIu64 ": %" PRIu64 " answered, %" PRIu64 " refused, %" PRIu64
           " cut off with their client; questions %" PRIu64 "\n",
           stats->requests, stats->answered, stats->refused, stats->cut_off, stats->questions);
    printf("workers: %" PRIu64 " processes, %" PRIu64 " kills, %" PRIu64 " stops, %" PRIu64
           " harmful orders, %" PRIu64 " grandchildren\n",
           stats->processes, stats->kills, stats->stops, stats->harms, chaos->subject.orphans);
    printf("rounds %" PRIu64 ", violations %" PRIu64 "\n", stats->rounds,
           chaos->verdict.violations);
}

static void set_up(struct chaos *chaos)
{
    size_t i;

    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    dice_seed(&chaos->dice, chaos->options.seed);
    ledger_init(&chaos->ledger);
    fleet_init(&chaos->fleet);
    for (i = 0; i < CLIENTS_MAX; i++)
        client_init(&chaos->clients[i]);
    chaos->journal = chaos->subject.log = -1;
    chaos->now_ms = chaos->verdict.start_ms = now_ms();
}

static void tear_down(struct chaos *chaos)
{
    size_t i;

    subject_clean_up(chaos);
    for (i = 0; i < CLIENTS_MAX; i++)
        client_free(&chaos->clients[i]);
    ledger_free(&chaos->ledger);
    fleet_free(&chaos->fleet);
}

int main(int argc, char *argv[])
{
    static struct chaos chaos; /* zeroed, and too large for a stack */

    read_options(&chaos.options, argc, argv);
    if (!proc_available()) {
        puts("chaos: there is no /proc");
        return 77;
    }
    printf("chaos: seed %" PRIu64 ", %u s, %s, %u pools of %u workers%s, %s\n"
           "framing: %s, workers %s\n",
           chaos.options.seed, chaos.options.seconds, chaos.options.tcp ? "tcp" : "unix",
           chaos.options.pools, chaos.options.workers,
           chaos.options.keys, chaos.options.daemon, wire_framing_words[wire_framing],
           wire_framing_words[chaos.options.worker_framing]);
    fflush(stdout);
    set_up(&chaos);
    if (!subject_start(&chaos))
        return 71;
    phases_run(&chaos);
    print_summary(&chaos);
    tear_down(&chaos);
    return chaos.verdict.violations > 0;
}
