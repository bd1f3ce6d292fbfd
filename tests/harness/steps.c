#include "build_config.h"

#include "steps.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "deadline.h"
#include "log.h"

#define STEPS_MAX 100

/* What a step has, and the lines of the log by which the daemon ends it. */
struct kind {
    const char *variable;
    int signo;
    const char *done;    /* a part of the line: it was done */
    const char *refused; /* it was not, which fails the test, unless there is also: */
    const char *excuses[4];
    const char *name;
    const char *without; /* the reason why the test has none */
    size_t count;
};

/* Of this test, which has a process of its own. */
static struct kind kinds[] = {
    {.variable = "UPGRADE",
     .signo = SIGUSR2,
     .done = DAEMON_UPGRADED,
     .refused = "not upgraded, going on: ",
     .excuses = {"still starting", "shutting down", "a reload has left"},
     .name = "upgrades"},
    {.variable = "RELOAD",
     .signo = SIGHUP,
     .done = " reloaded: ",
     .refused = "not reloaded",
     .excuses = {"still starting", "shutting down", "there is no configuration file"},
     .name = "reloads"},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

static struct daemon *followed;
static size_t steps;

/* Steps from one to the next; 0: the environment wants none. */
static size_t interval(const struct kind *kind)
{
    const char *value = getenv(kind->variable);

    if (value == NULL || value[0] == '\0')
        return 0;
    return strcmp(value, "each") == 0 ? 1 : strtoul(value, NULL, 10);
}

static bool is_due(const struct kind *kind)
{
    size_t every = interval(kind);

    if (every == 0 || kind->without != NULL || steps % every != 0)
        return false;
    return kind->count < STEPS_MAX || (steps & (steps - 1)) == 0;
}

static bool shuts_down(const struct daemon *daemon)
{
    return daemon->log.len > 0 && strstr(daemon->log.data, " shutting down\n") != NULL;
}

/* A daemon that has logged this handles the signals, and logs what came of them, until it ends. */
static bool serves(struct daemon *daemon)
{
    static const char *const lines[] = {"listening on ", "] connected: stdio"};

    log_refresh(daemon);
    if (shuts_down(daemon))
        return false;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        if (daemon->log.len > 0 && strstr(daemon->log.data, lines[i]) != NULL)
            return true;
    }
    return false;
}

static void check_refusal(const struct kind *kind, const char *line)
{
    for (size_t i = 0; kind->excuses[i] != NULL; i++) {
        if (strstr(line, kind->excuses[i]) != NULL)
            return;
    }
    ck_abort_msg("between two steps: %.*s", (int)strcspn(line, "\n"), line);
}

/* True when the log says from `mark` on how it went. */
static bool is_over(struct kind *kind, struct daemon *daemon, size_t mark)
{
    const char *log, *refused;

    log_refresh(daemon);
    log = daemon->log.data + mark;
    refused = strstr(log, kind->refused);
    if (refused != NULL && strchr(refused, '\n') != NULL) {
        check_refusal(kind, refused);
        return true;
    }
    if (strstr(log, kind->done) == NULL)
        return shuts_down(daemon);
    kind->count++;
    return true;
}

static void have(struct kind *kind, struct daemon *daemon)
{
    size_t mark = daemon->log.len;
    int64_t deadline = deadline_usual();

    ck_assert_int_eq(kill(daemon->pid, kind->signo), 0);
    while (!is_over(kind, daemon, mark)) {
        if (daemon_has_ended(daemon))
            return;
        ck_assert_msg(!deadline_over(deadline), "no end of one of the %s", kind->name);
        nap();
    }
}

void harness_step(void)
{
    steps++;
    for (size_t i = 0; i < KINDS; i++) {
        if (followed != NULL && interval(&kinds[i]) > 0 && daemon_can_upgrade() &&
            is_due(&kinds[i]) && !daemon_has_ended(followed) && serves(followed))
            have(&kinds[i], followed);
    }
}

void steps_without_upgrades(const char *reason)
{
    kinds[0].without = reason;
}

void steps_without_reloads(const char *reason)
{
    kinds[1].without = reason;
}

void steps_without(const char *reason)
{
    steps_without_upgrades(reason);
    steps_without_reloads(reason);
}

void steps_daemon(struct daemon *daemon)
{
    followed = daemon;
}

void steps_end(const char *test)
{
    for (size_t i = 0; i < KINDS; i++) {
        const struct kind *kind = &kinds[i];

        if (interval(kind) == 0)
            continue;
        if (kind->without != NULL)
            printf("%s: no %s: %s\n", test, kind->name, kind->without);
        else
            printf("%s: %zu %s\n", test, kind->count, kind->name);
        fflush(stdout);
    }
}
