/* chaos [OPTION VALUE]...: see USAGE. Runs a daemon (default: $STDIO_BUS or ./stdio_bus) with small
 * limits, random clients and random workers (chaos_worker beside this program, or $CHAOS_WORKER),
 * and checks all messages at both ends. --protocol, --clients, --session and --ids are keys of all
 * pools, as in the configuration; --hostile adds hostile clients. All randomness comes from one
 * seed, which is printed. Exits 1 after a violation, and keeps the daemon's log.
 * TEST_TIMEOUT_FACTOR stretches deadlines, TEST_NO_RSS leaves memory unmeasured, CHAOS_LOG_LEVEL is
 * the daemon's log level. */
#include "build_config.h"

#include "chaos.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "config/pool_config.h"
#include "deadline.h"
#include "phases.h"
#include "proc.h"
#include "json/document.h"

#define USAGE                                                                                      \
    "usage: chaos [--seconds N] [--seed S] [--daemon PATH] [--mode unix|tcp]\n"                    \
    "             [--workers N] [--pools N] [--protocol mcp|acp|lsp]\n"                            \
    "             [--reload MILLISECONDS] [--upgrade MILLISECONDS]\n"                              \
    "             [--framing ndjson|content-length|length] [--worker-framing likewise]\n"          \
    "             [--clients shared|sticky|exclusive] [--ids preserve|rewrite]\n"                  \
    "             [--session sessionId|params.sessionId] [--era stateless] [--lazy SECONDS]\n"     \
    "             [--hostile all|KIND[,KIND]...]\n"                                                \
    "kinds: close, stall, hoard, poison, odd-id, big\n"

#define EXCLUSIVE_WORKERS 12 /* enough for the clients of a calm phase */
#define BESIEGED_WORKERS 30  /* and for those of a siege */

static bool read_number(const char *text, unsigned long long min, unsigned long long max,
                        unsigned long long *number)
{
    char *end;

    errno = 0;
    *number = strtoull(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *number >= min && *number <= max;
}

/* The index of the value in the words, or -1. */
static int find_word(const char *const *words, const char *value)
{
    for (int i = 0; words[i] != NULL; i++) {
        if (strcmp(value, words[i]) == 0)
            return i;
    }
    return -1;
}

/* One of the keys of a pool's mode. */
static bool read_key(struct options *options, const char *key, const char *value)
{
    static const char *const keys[] = {"protocol", "clients", "session", "ids", NULL};
    const char *const *const words[] = {pool_mode_protocol_words, pool_mode_clients_words,
                                        pool_mode_session_words, pool_mode_ids_words};
    size_t len = strlen(options->keys);
    int i = find_word(keys, key);

    if (i < 0 || find_word(words[i], value) < 0)
        return false;
    snprintf(options->keys + len, sizeof options->keys - len, ",\"%s\":\"%s\"", key, value);
    return true;
}

/* A pool for MCP whose processes sleep. */
static bool read_lazy(struct options *options, const char *value)
{
    size_t len = strlen(options->keys);
    unsigned long long seconds;

    if (!read_number(value, 1, 60, &seconds))
        return false;
    options->lazy = true;
    snprintf(options->keys + len, sizeof options->keys - len,
             ",\"lazy\":true,\"idle_stop_sec\":%llu", seconds);
    return true;
}

/* The keys together make the mode. */
static void read_mode(struct options *options)
{
    char text[sizeof options->keys + 16];
    struct document document = {0};
    struct document_error error;

    snprintf(text, sizeof text, "{\"id\":\"\"%s}", options->keys);
    if (document_read(&document, slice_of(text, strlen(text)), &error) != 0) {
        fprintf(stderr, "chaos: %s: %s\n", text, error.text);
        exit(64);
    }
    pool_config_mode(&options->mode, document.root);
    document_free(&document);
    if (wire_stateless && options->mode.stateless == CLIENTS_SHARED) {
        fputs("chaos: --era needs --protocol mcp\n", stderr);
        exit(64);
    }
    if (wire_stateless)
        options->mode = pool_mode_of_stateless(&options->mode);
    if (options->mode.clients == CLIENTS_EXCLUSIVE) {
        options->mode.spare = LIMIT_SPARE;
        options->mode.busy_timeout_sec = LIMIT_BUSY_SEC;
    }
}

static bool read_framing(enum wire_framing *framing, const char *value)
{
    int i = find_word(wire_framing_words, value);

    if (i < 0)
        return false;
    *framing = (enum wire_framing)i;
    wire_bridged |= *framing != WIRE_LINES;
    return true;
}

/* Words of hostile_words with commas between them, or "all". */
static bool read_kinds(struct options *options, const char *value)
{
    char word[16];
    size_t len;
    int kind;

    if (strcmp(value, "all") == 0) {
        options->hostile = (1u << HOSTILE_KINDS) - 1;
        return true;
    }
    do {
        len = strcspn(value, ",");
        snprintf(word, sizeof word, "%.*s", (int)len, value);
        kind = find_word(hostile_words, word);
        if (kind < 0)
            return false;
        options->hostile |= 1u << kind;
        value += len;
    } while (*value++ == ',');
    return true;
}

static bool read_option(struct options *options, const char *name, const char *value)
{
    const struct {
        const char *name;
        unsigned min, max, *number;
    } numbers[] = {
        {"--seconds", 5, 1000000, &options->seconds}, {"--workers", 1, 30, &options->workers},
        {"--pools", 1, 6, &options->pools},           {"--reload", 2, 100000, &options->reload},
        {"--upgrade", 2, 100000, &options->upgrade},
    };
    unsigned long long number;

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (strcmp(name, numbers[i].name) != 0)
            continue;
        if (!read_number(value, numbers[i].min, numbers[i].max, &number))
            return false;
        *numbers[i].number = (unsigned)number;
        return true;
    }
    if (strcmp(name, "--hostile") == 0)
        return read_kinds(options, value);
    if (strcmp(name, "--seed") == 0)
        return read_number(value, 0, ULLONG_MAX, &options->seed);
    if (strcmp(name, "--framing") == 0)
        return read_framing(&wire_framing, value);
    if (strcmp(name, "--worker-framing") == 0)
        return read_framing(&options->worker_framing, value);
    if (strcmp(name, "--mode") == 0) {
        options->tcp = strcmp(value, "tcp") == 0;
        return options->tcp || strcmp(value, "unix") == 0;
    }
    if (strcmp(name, "--lazy") == 0)
        return read_lazy(options, value);
    if (strcmp(name, "--era") == 0)
        return wire_stateless = strcmp(value, "stateless") == 0;
    if (strcmp(name, "--daemon") == 0)
        options->daemon = value;
    else
        return strncmp(name, "--", 2) == 0 && read_key(options, name + 2, value);
    return true;
}

static unsigned long long new_seed(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return ((unsigned long long)now.tv_nsec ^ (unsigned long long)now.tv_sec * 1000003 ^
            (unsigned long long)getpid()) %
           1000000;
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

    options->daemon = daemon != NULL && daemon[0] != '\0' ? daemon : "./stdio_bus";
    options->seconds = 30;
    options->seed = new_seed();
    options->pools = 2;
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc || !read_option(options, argv[i], argv[i + 1])) {
            fputs(USAGE, stderr);
            exit(64);
        }
    }
    find_worker(options, argv[0]);
    read_mode(options);
    if (options->workers == 0 && options->mode.clients != CLIENTS_EXCLUSIVE)
        options->workers = 3;
    else if (options->workers == 0)
        options->workers = options->hostile != 0 ? BESIEGED_WORKERS : EXCLUSIVE_WORKERS;
    wire_bridged |= (options->hostile >> HOSTILE_UNFETCHED & 1) != 0;
    wire_ids_rewritten = options->mode.rewrite_ids;
    wire_session_in_params = options->mode.session_in_params;
    wire_renumbers = wire_mode_renumbers(&options->mode);
    wire_cancels_for_good = options->mode.protocol == PROTOCOL_MCP;
}

static void print_summary(const struct chaos *chaos)
{
    const struct stats *stats = &chaos->stats;

    printf("clients %llu (%llu turned away, %llu rejected, %llu closed for not reading)\n",
           stats->clients, stats->turned_away, stats->rejected, stats->stalled);
    printf("messages %llu from clients (%llu MiB), %llu to clients (%llu MiB), %llu received and "
           "%llu sent by workers\n",
           stats->sent, stats->sent_bytes >> 20, stats->received, stats->received_bytes >> 20,
           stats->got, stats->said);
    printf("requests %llu: %llu answered, %llu refused, %llu cut off with their client; "
           "questions %llu\n",
           stats->requests, stats->answered, stats->refused, stats->cut_off, stats->questions);
    printf("workers: %llu processes, %llu kills, %llu stops, %llu harmful orders, "
           "%llu grandchildren\n",
           stats->processes, stats->kills, stats->stops, stats->harms, chaos->subject.orphans);
    if (chaos->options.lazy)
        printf("fallen asleep %llu times\n", stats->sleeps);
    if (stats->reloads + chaos->upgrades.count > 0)
        printf("reloads %llu, upgrades %llu\n", stats->reloads, chaos->upgrades.count);
    if (chaos->options.hostile != 0)
        siege_print(chaos);
    printf("rounds %llu, violations %llu\n", stats->rounds, chaos->verdict.violations);
}

static void print_kinds(unsigned kinds)
{
    if (kinds != 0)
        printf("hostile:");
    for (unsigned kind = 0; kind < HOSTILE_KINDS; kind++) {
        if ((kinds >> kind & 1) != 0)
            printf(" %s", hostile_words[kind]);
    }
    if (kinds != 0)
        puts("");
}

static void set_up(struct chaos *chaos)
{
    static struct client clients[CLIENTS_MAX];

    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    dice_seed(&chaos->dice, chaos->options.seed);
    chaos->upgrades.apart_ms = chaos->options.upgrade;
    ledger_init(&chaos->ledger);
    fleet_init(&chaos->fleet);
    chaos->clients = clients;
    each_client(client, chaos)
        client_init(client);
    chaos->journal = chaos->subject.log = -1;
    chaos->now_ms = chaos->verdict.start_ms = now_ms();
}

int main(int argc, char *argv[])
{
    static struct chaos chaos; /* zeroed, and too large for a stack */

    read_options(&chaos.options, argc, argv);
    if (!proc_available()) {
        puts("chaos: there is no /proc");
        return 77;
    }
    printf("chaos: seed %llu, %u s, %s, %u pools of %u workers%s, %s\n"
           "framing: %s, workers %s\n",
           chaos.options.seed, chaos.options.seconds, chaos.options.tcp ? "tcp" : "unix",
           chaos.options.pools, chaos.options.workers, chaos.options.keys, chaos.options.daemon,
           wire_framing_words[wire_framing], wire_framing_words[chaos.options.worker_framing]);
    print_kinds(chaos.options.hostile);
    fflush(stdout);
    chaos.origins = chaos.options.hostile != 0 && (chaos.options.tcp || geteuid() == 0);
    set_up(&chaos);
    if (!subject_start(&chaos))
        return 71;
    phases_run(&chaos);
    print_summary(&chaos);
    subject_clean_up(&chaos);
    return chaos.verdict.violations > 0;
}
