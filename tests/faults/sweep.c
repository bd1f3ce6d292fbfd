/* The fault sweep: plays each scene once without a fault, to learn the call sites of the daemon;
 * then many times, with one failing call each; then with two, the second one after the first in the
 * same round of the event loop.
 *
 *     sweep --sites FILE [--all] [--share N] [--pairs COUNT] [--seed NUMBER] [--only TEXT]
 *
 * FILE has a line "NAME OFFSET FUNCTION" for each call instruction of the program. Each must be
 * reached and fail with every error of its function, except those in unreached.txt. --all: not only
 * a few calls of each site; --share: of the cases with one fault only every Nth, which the seed
 * chooses, and no site must be reached; --pairs: that many pairs, which the seed chooses, or `all`;
 * --only: the cases whose names contain TEXT, which may be the whole name of a pair. */
#include "build_config.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "deadline.h"
#include "names.h"
#include "scenes.h"
#include "text.h"

#define JOBS_MAX 16
#define CASES_MAX 262144
#define PAIRS_MAX 524288
#define PAIRS_FEW 200   /* run without --all */
#define PAIRS_MANY 3000 /* the same with --all */
#define STATIC_MAX 1024
#define RUN_SECONDS 120
#define FEW 2   /* calls of a site that fail, without --all */
#define MANY 16 /* the same with --all; later calls get sparser */
#define REPEATS 3

#define ERRORS_MAX 12

static const struct {
    const char *name;
    int errors[ERRORS_MAX]; /* up to a 0 */
} fault_names[FAULT_NAMES] = {
#define NAME(name, ...) {#name, {__VA_ARGS__}},
#include "names.def"
#undef NAME
};

struct known_site { /* a line of the file */
    unsigned name;
    uint64_t offset;
    char function[64];
    uint64_t failed; /* bits: errors of the name */
};

/* Two faults in one round, and its place in the order of choice. */
struct pair {
    const struct scene *scene;
    struct fault faults[2];
    uint64_t rank;
};

struct job {
    pid_t pid;
    size_t test;
    int64_t started_ms;
};

struct sweep {
    struct known_site known[STATIC_MAX];
    size_t known_count;
    struct board explored[SCENES];
    struct test tests[CASES_MAX];
    size_t test_count;
    struct job jobs[JOBS_MAX];
    struct outcome *outcomes; /* of the jobs; shared */
    size_t job_count;
    struct {
        uint64_t key;
        size_t test; /* the first of those that reached it */
    } seen[BOARD_SITES];
    size_t seen_count;
    struct pair pairs[PAIRS_MAX];
    size_t pair_count, pair_limit;
    size_t first_pair; /* test of a pair; 0: none yet */
    unsigned pair_hits;
    uint64_t seed;
    uint64_t share; /* one of so many cases with a single fault is run */
    unsigned runs, hits, failures;
    int64_t slowest_ms;
    size_t slowest;
    bool all;
    const char *only;
};

static void die(const char *what)
{
    perror(what);
    exit(2);
}

/* ---- names ---------------------------------------------------------------------------------- */

static struct known_site *known_site(struct sweep *sweep, uint64_t key)
{
    for (size_t i = 0; i < sweep->known_count; i++) {
        struct known_site *known = &sweep->known[i];

        if (known->offset == site_offset(key) && known->name == site_name(key))
            return known;
    }
    return NULL;
}

static const char *error_text(unsigned name, int error)
{
    if (error == FAULT_SHORT)
        return "short";
    return name == FAULT_getaddrinfo ? gai_strerror(error) : strerror(error);
}

static void describe_fault(struct sweep *sweep, const struct fault *fault, struct text *to)
{
    const struct known_site *known = known_site(sweep, fault->key);
    unsigned name = site_name(fault->key);

    text_printf(to, "%s%s%s", site_role(fault->key) == ROLE_CHILD ? "child " : "",
                fault->lasting ? "every " : "", fault_names[name].name);
    if (!fault->lasting)
        text_printf(to, " in %s+%#llx, call %u", known != NULL ? known->function : "?",
                    (unsigned long long)site_offset(fault->key), fault->number);
    text_printf(to, ": %s", error_text(name, fault->error));
}

/* "unix: read in read_some+0x12, call 2: Input/output error" */
static void describe(struct sweep *sweep, const struct test *test, struct text *to)
{
    text_printf(to, "%s: ", test->scene->name);
    if (test->fault_count == 0)
        text_printf(to, "no fault");
    for (unsigned i = 0; i < test->fault_count; i++) {
        if (i > 0)
            text_printf(to, "; then ");
        describe_fault(sweep, &test->faults[i], to);
    }
}

static unsigned name_index(const char *name)
{
    unsigned i;

    for (i = 0; i < FAULT_NAMES && strcmp(fault_names[i].name, name) != 0; i++)
        continue;
    return i;
}

static void read_sites(struct sweep *sweep, const char *path)
{
    FILE *file = fopen(path, "r");
    char name[32], function[64];
    unsigned long long offset;

    if (file == NULL)
        die(path);
    while (fscanf(file, "%31s %llx %63s", name, &offset, function) == 3) {
        struct known_site *known = &sweep->known[sweep->known_count];

        if (strcmp(name, "free") == 0) /* counted, but never failed */
            continue;
        if (++sweep->known_count == STATIC_MAX)
            die("STATIC_MAX");
        known->name = name_index(name);
        known->offset = offset;
        snprintf(known->function, sizeof known->function, "%s", function);
    }
    fclose(file);
}

/* True if a list has a line "NAME FUNCTION: reason", or "NAME FUNCTION (SCENE): reason" for this
 * scene. FUNCTION in the list may be * or -, see silent.txt; `function` NULL matches any. */
static bool is_listed(const char *list, unsigned name, const char *function,
                      const struct scene *scene)
{
    char path[512], line[256], want[128], any[128], only[128], here[128] = "?";
    FILE *file;
    bool found = false;

    snprintf(path, sizeof path, "%s/tests/faults/%s", getenv("SOURCE_DIR"), list);
    file = fopen(path, "r");
    if (file == NULL)
        die(path);
    snprintf(want, sizeof want, "%s %s%s", fault_names[name].name, function != NULL ? function : "",
             function != NULL ? ": " : "");
    snprintf(any, sizeof any, "%s *: ", fault_names[name].name);
    snprintf(only, sizeof only, "%s -: ", fault_names[name].name);
    if (function != NULL && scene != NULL)
        snprintf(here, sizeof here, "%s %s (%s): ", fault_names[name].name, function, scene->name);
    while (!found && fgets(line, sizeof line, file) != NULL)
        found = strncmp(line, want, strlen(want)) == 0 || strncmp(line, any, strlen(any)) == 0 ||
                strncmp(line, only, strlen(only)) == 0 || strncmp(line, here, strlen(here)) == 0;
    fclose(file);
    return found;
}

/* The sweep does not fail this site. */
static bool is_excused(const struct known_site *known)
{
    return is_listed("unreached.txt", known->name, known->function, NULL);
}

/* The log need not name this fault. */
static bool is_silent(struct sweep *sweep, const struct fault *fault, const struct scene *scene)
{
    const struct known_site *known = known_site(sweep, fault->key);

    if (fault->error == EINTR || fault->error == EAGAIN || fault->error == FAULT_SHORT)
        return true; /* the daemon repeats the call */
    return is_listed("silent.txt", site_name(fault->key), known != NULL ? known->function : NULL,
                     scene);
}

/* Writes the log, or what the process that checks an upgrade says: without it no fault is named. */
static bool is_of_log(struct sweep *sweep, uint64_t key)
{
    const struct known_site *known = known_site(sweep, key);

    return known != NULL && (strcmp(known->function, "write_now") == 0 ||
                             strcmp(known->function, "descriptor_poll") == 0 ||
                             strcmp(known->function, "end_check") == 0);
}

/* ---- running -------------------------------------------------------------------------------- */

static void begin(struct sweep *sweep, struct job *job, size_t test)
{
    struct outcome *outcome = &sweep->outcomes[job - sweep->jobs];

    memset(outcome, 0, sizeof *outcome);
    snprintf(outcome->text, sizeof outcome->text, "the run did not come to its end");
    fflush(stdout);
    job->test = test;
    job->started_ms = now_ms();
    job->pid = fork();
    if (job->pid < 0)
        die("fork");
    if (job->pid == 0) {
        alarm(RUN_SECONDS);
        run_test(&sweep->tests[test], sweep->runs, outcome);
    }
    sweep->runs++;
}

/* The bit of the fault's error in known_site.failed. */
static uint64_t error_bit(const struct fault *fault)
{
    const int *errors = fault_names[site_name(fault->key)].errors;

    for (unsigned i = 0; i < ERRORS_MAX && errors[i] != 0; i++) {
        if (errors[i] == fault->error)
            return UINT64_C(1) << i;
    }
    return 0;
}

static void note_failed(struct sweep *sweep, const struct fault *fault)
{
    struct known_site *known = known_site(sweep, fault->key);

    if (known != NULL)
        known->failed |= error_bit(fault);
}

static bool has_failed(struct sweep *sweep, const struct fault *fault)
{
    const struct known_site *known = known_site(sweep, fault->key);
    uint64_t bit = error_bit(fault);

    return known == NULL || bit == 0 || (known->failed & bit) != 0;
}

/* Notes sites reached only in the handling of a fault. */
static void note_new_sites(struct sweep *sweep, const struct outcome *outcome, size_t test)
{
    for (size_t i = 0; i < BOARD_SITES; i++) {
        uint64_t key = outcome->board.sites[i].key;
        size_t at;

        if (key == 0)
            continue;
        for (at = 0; at < sweep->seen_count && sweep->seen[at].key != key; at++)
            continue;
        if (at < sweep->seen_count && test < sweep->seen[at].test)
            sweep->seen[at].test = test;
        if (at < sweep->seen_count || at == BOARD_SITES)
            continue;
        sweep->seen[at].key = key;
        sweep->seen[at].test = test;
        sweep->seen_count++;
    }
}

static int last_error(unsigned name)
{
    const int *errors = fault_names[name].errors;
    int last = 0;

    for (unsigned i = 0; i < ERRORS_MAX && errors[i] != 0; i++)
        last = errors[i];
    return last;
}

static uint64_t mixed(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* Notes the calls that followed a single fault in its round: each of them could fail too. Of the
 * errors of a call, one. */
static void note_pairs(struct sweep *sweep, const struct board *board, const struct test *test)
{
    const struct fault *first = &test->faults[0];

    if (test->fault_count != 1 || first->lasting || test->repeated || test->scene->single ||
        first->error != last_error(site_name(first->key)))
        return;
    for (uint32_t i = 0; i < board->follower_count; i++) {
        const struct call *call = &board->followers[i];
        struct pair *pair = &sweep->pairs[sweep->pair_count];

        if (is_of_log(sweep, call->key))
            continue;
        if (++sweep->pair_count == PAIRS_MAX)
            die("PAIRS_MAX");
        *pair = (struct pair){.scene = test->scene, .faults = {*first}};
        pair->faults[1] = (struct fault){
            .key = call->key, .number = call->number, .error = last_error(site_name(call->key))};
        pair->rank = mixed(sweep->seed, (uint64_t)(test->scene - scenes));
        for (int at = 0; at < 2; at++)
            pair->rank = mixed(mixed(pair->rank, pair->faults[at].key), pair->faults[at].number);
    }
}

/* True if the log names each fault that occurred and must be named. */
static bool check_reported(struct sweep *sweep, const struct outcome *outcome,
                           const struct test *test)
{
    bool reported = true;

    for (unsigned i = 0; i < test->fault_count && reported; i++)
        reported = outcome->board.hits[i] == 0 || outcome->reported[i] ||
                   is_silent(sweep, &test->faults[i], test->scene);
    return reported;
}

/* Repeats a test with a slower clock, which a busy machine can follow. */
static void repeat(struct sweep *sweep, const struct test *test)
{
    if (sweep->test_count == CASES_MAX)
        die("CASES_MAX");
    sweep->tests[sweep->test_count] = *test;
    sweep->tests[sweep->test_count++].repeated = true;
}

static void take_outcome(struct sweep *sweep, const struct job *job)
{
    const struct outcome *outcome = &sweep->outcomes[job - sweep->jobs];
    const struct test *test = &sweep->tests[job->test];
    int64_t took_ms = now_ms() - job->started_ms;
    struct text name = {0};
    bool final;

    if (took_ms > sweep->slowest_ms) {
        sweep->slowest_ms = took_ms;
        sweep->slowest = job->test;
    }
    for (unsigned i = 0; i < test->fault_count; i++) {
        sweep->hits += outcome->board.hits[i] > 0;
        if (outcome->board.hits[i] > 0 && !test->faults[i].lasting)
            note_failed(sweep, &test->faults[i]);
    }
    sweep->pair_hits += sweep->first_pair > 0 && job->test >= sweep->first_pair &&
                        outcome->board.hits[0] > 0 && outcome->board.hits[1] > 0;
    if (outcome->passed) {
        note_new_sites(sweep, outcome, job->test);
        note_pairs(sweep, &outcome->board, test);
    }
    if (outcome->passed && check_reported(sweep, outcome, test))
        return;
    final = test->repeated || outcome->crashed;
    describe(sweep, test, &name);
    printf("%s: %s\n%s\n", final ? "FAILED" : "once more", name.data, outcome->text);
    text_free(&name);
    if (final)
        sweep->failures++;
    else
        repeat(sweep, test);
}

static struct job *await_job(struct sweep *sweep)
{
    for (;;) {
        pid_t pid = wait(NULL);

        if (pid < 0)
            die("wait");
        for (size_t i = 0; i < sweep->job_count; i++) {
            if (sweep->jobs[i].pid == pid) {
                sweep->jobs[i].pid = 0;
                return &sweep->jobs[i];
            }
        }
    }
}

/* Runs the tests from `first` on. */
static void run_tests(struct sweep *sweep, size_t first)
{
    size_t next = first, busy = 0, i;

    for (i = 0; i < sweep->job_count && next < sweep->test_count; i++, busy++)
        begin(sweep, &sweep->jobs[i], next++);
    while (busy > 0) {
        struct job *job = await_job(sweep);

        take_outcome(sweep, job);
        if (next < sweep->test_count)
            begin(sweep, job, next++);
        else
            busy--;
    }
}

/* ---- tests ---------------------------------------------------------------------------------- */

static bool is_in_share(const struct sweep *sweep, const struct test *test)
{
    const struct fault *fault = &test->faults[0];
    uint64_t rank = mixed(sweep->seed, (uint64_t)(test->scene - scenes));

    if (test->fault_count != 1 || sweep->share == 1)
        return true;
    rank = mixed(mixed(mixed(rank, fault->key), fault->number), (uint64_t)fault->error);
    return (rank >> 32) % sweep->share == 0;
}

static void add_test(struct sweep *sweep, const struct test *test)
{
    struct text name = {0};

    if (!is_in_share(sweep, test))
        return;
    if (sweep->test_count == CASES_MAX)
        die("CASES_MAX");
    describe(sweep, test, &name);
    if (test->fault_count == 0 || sweep->only == NULL || strstr(name.data, sweep->only) != NULL ||
        (test->fault_count == 1 && strstr(sweep->only, name.data) != NULL))
        sweep->tests[sweep->test_count++] = *test;
    text_free(&name);
}

/* One fault more than in `test`. */
static void add_fault(struct sweep *sweep, const struct test *test, struct fault fault)
{
    const struct known_site *known = known_site(sweep, fault.key);
    struct test more = *test;

    more.repeated = false;
    if (known != NULL && is_excused(known))
        return;
    more.faults[more.fault_count++] = fault;
    add_test(sweep, &more);
}

static bool is_allocation(unsigned name)
{
    return name == FAULT_malloc || name == FAULT_calloc || name == FAULT_realloc;
}

/* The first calls, then ever fewer. */
static uint32_t following(const struct sweep *sweep, unsigned name, uint32_t number)
{
    uint32_t all = is_allocation(name) ? 1000 : sweep->all ? MANY : FEW;

    return number < all ? number + 1 : number + number / 2;
}

static void add_site(struct sweep *sweep, const struct test *test, const struct site *site)
{
    unsigned name = site_name(site->key);
    uint32_t number, max = sweep->all || is_allocation(name) ? site->calls : FEW;

    for (unsigned i = 0; i < ERRORS_MAX && fault_names[name].errors[i] != 0; i++) {
        struct fault fault = {.key = site->key, .error = fault_names[name].errors[i]};

        for (number = 1; number <= site->calls && number <= max;
             number = following(sweep, name, number)) {
            fault.number = number;
            add_fault(sweep, test, fault);
        }
    }
    if (site->calls > max) { /* the last call: at the end of the daemon */
        struct fault fault = {.key = site->key, .number = site->calls, .error = last_error(name)};

        add_fault(sweep, test, fault);
    }
}

/* True for a lasting error: the system has run out of a resource. */
static bool can_last(unsigned name, int error)
{
    switch (error) {
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOSPC:
        return name != FAULT_getaddrinfo;
    case EAGAIN:
        return name == FAULT_fork;
    case EINVAL:
        return name == FAULT_clock_gettime;
    }
    return false;
}

static void add_lasting(struct sweep *sweep, const struct test *test, const struct board *board)
{
    for (unsigned kind = 0; kind < FAULT_NAMES * ROLE_COUNT; kind++) {
        enum board_role role = kind % ROLE_COUNT == 0 ? ROLE_DAEMON : ROLE_CHILD;
        unsigned name = kind / ROLE_COUNT;
        struct fault fault = {.key = site_key(role, name, 0), .lasting = true};
        bool called = false;

        for (size_t i = 0; i < BOARD_SITES; i++)
            called = called || site_kind(board->sites[i].key) == fault.key;
        for (unsigned i = 0; called && i < ERRORS_MAX && fault_names[name].errors[i] != 0; i++) {
            fault.error = fault_names[name].errors[i];
            if (can_last(name, fault.error))
                add_fault(sweep, test, fault);
        }
    }
}

/* Plays each scene without a fault. True if all passed. */
static bool explore(struct sweep *sweep)
{
    for (size_t i = 0; i < SCENES; i++) {
        size_t first = sweep->test_count;

        add_test(sweep, &(struct test){.scene = &scenes[i]});
        run_tests(sweep, first);
        sweep->explored[i] = sweep->outcomes[0].board;
    }
    return sweep->failures == 0;
}

static bool has_site(const struct board *board, uint64_t key)
{
    for (size_t i = 0; i < BOARD_SITES; i++) {
        if (board->sites[i].key == key)
            return true;
    }
    return false;
}

/* Whether no scene before this one has the site. */
static bool is_first_with(const struct sweep *sweep, size_t scene, uint64_t key)
{
    for (size_t before = 0; before < scene; before++) {
        if (has_site(&sweep->explored[before], key))
            return false;
    }
    return true;
}

/* Makes tests of the call sites of a scene; without --all only of sites that no earlier scene has,
 * or of one call of each site. */
static void add_scene(struct sweep *sweep, size_t scene)
{
    struct test test = {.scene = &scenes[scene]};

    for (size_t i = 0; i < BOARD_SITES; i++) {
        const struct site *site = &sweep->explored[scene].sites[i];

        if (site->key == 0)
            continue;
        if (sweep->all || (scenes[scene].forgets && is_allocation(site_name(site->key))) ||
            is_first_with(sweep, scene, site->key))
            add_site(sweep, &test, site);
        else if (scenes[scene].repeats)
            add_fault(sweep, &test,
                      (struct fault){.key = site->key,
                                     .number = 1,
                                     .error = last_error(site_name(site->key))});
    }
    if (sweep->all || scene == 0)
        add_lasting(sweep, &test, &sweep->explored[scene]);
}

/* Makes tests of the sites seen since `first`, each in the test that reached it. */
static void add_seen(struct sweep *sweep, size_t first)
{
    size_t end = sweep->seen_count;

    for (size_t i = first; i < end; i++) {
        const struct test *test = &sweep->tests[sweep->seen[i].test];

        if (test->fault_count < FAULTS_MAX && !test->faults[0].lasting &&
            !is_of_log(sweep, sweep->seen[i].key))
            add_site(sweep, test, &(struct site){sweep->seen[i].key, 1});
    }
}

static int compare_ranks(const void *a, const void *b)
{
    const struct pair *left = a, *right = b;

    return left->rank < right->rank ? -1 : left->rank > right->rank;
}

/* Runs pairs of faults, of all the first ones in the order of their ranks. */
static void run_pairs(struct sweep *sweep)
{
    size_t first = sweep->test_count, limit = sweep->pair_limit;

    qsort(sweep->pairs, sweep->pair_count, sizeof sweep->pairs[0], compare_ranks);
    sweep->first_pair = first;
    for (size_t i = 0; i < sweep->pair_count && sweep->test_count - first < limit; i++) {
        struct test test = {.scene = sweep->pairs[i].scene,
                            .faults = {sweep->pairs[i].faults[0]},
                            .fault_count = 1};

        if (i > 0 && sweep->pairs[i].rank == sweep->pairs[i - 1].rank)
            continue; /* the first one was repeated */
        add_fault(sweep, &test, sweep->pairs[i].faults[1]);
    }
    limit = sweep->test_count - first;
    run_tests(sweep, first);
    printf("%zu pairs of %zu (seed %llu), both calls failed in %u\n", limit, sweep->pair_count,
           (unsigned long long)sweep->seed, sweep->pair_hits);
}

/* Repeats tests whose fault did not occur: some depend on the order of events. */
static void repeat_missed(struct sweep *sweep)
{
    size_t end = sweep->test_count;

    for (size_t i = 0; i < end; i++) {
        const struct test *test = &sweep->tests[i];
        const struct fault *last = &test->faults[test->fault_count > 0 ? test->fault_count - 1 : 0];

        if (test->fault_count > 0 && !last->lasting && !has_failed(sweep, last))
            add_test(sweep, test);
    }
    run_tests(sweep, end);
}

/* ---- the result ----------------------------------------------------------------------------- */

static void check_sites(struct sweep *sweep)
{
    for (size_t i = 0; i < sweep->known_count; i++) {
        const struct known_site *known = &sweep->known[i];
        const int *errors = fault_names[known->name].errors;

        for (unsigned e = 0; e < ERRORS_MAX && errors[e] != 0; e++) {
            if (is_excused(known) || (known->failed >> e & 1) != 0)
                continue;
            printf("FAILED: %s in %s+%#llx was never failed with: %s\n",
                   fault_names[known->name].name, known->function,
                   (unsigned long long)known->offset, error_text(known->name, errors[e]));
            sweep->failures++;
        }
    }
}

static void read_options(struct sweep *sweep, int argc, char *argv[])
{
    const char *jobs = getenv("FAULT_JOBS"), *pairs = NULL;

    sweep->seed = sweep->share = 1;
    sweep->job_count = jobs != NULL ? strtoul(jobs, NULL, 10) : 4;
    if (sweep->job_count < 1 || sweep->job_count > JOBS_MAX)
        sweep->job_count = JOBS_MAX;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--all") == 0)
            sweep->all = true;
        else if (strcmp(argv[i], "--sites") == 0 && i + 1 < argc)
            read_sites(sweep, argv[++i]);
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            sweep->only = argv[++i];
        else if (strcmp(argv[i], "--pairs") == 0 && i + 1 < argc)
            pairs = argv[++i];
        else if (strcmp(argv[i], "--share") == 0 && i + 1 < argc)
            sweep->share = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            sweep->seed = strtoull(argv[++i], NULL, 10);
    }
    if (sweep->share == 0)
        sweep->share = 1;
    if (sweep->only != NULL || (pairs != NULL && strcmp(pairs, "all") == 0))
        sweep->pair_limit = PAIRS_MAX;
    else if (pairs != NULL)
        sweep->pair_limit = strtoul(pairs, NULL, 10);
    else
        sweep->pair_limit = sweep->all ? PAIRS_MANY : PAIRS_FEW;
}

/* Single faults; then second and third ones, at sites reached only after a fault; then pairs. */
static void run_all(struct sweep *sweep)
{
    size_t seen = sweep->seen_count, singles = sweep->test_count;

    for (size_t i = 0; i < SCENES; i++)
        add_scene(sweep, i);
    run_tests(sweep, singles);
    for (int round = 1; round < FAULTS_MAX; round++) {
        size_t first = sweep->test_count, seen_now = sweep->seen_count;

        add_seen(sweep, seen);
        seen = seen_now;
        run_tests(sweep, first);
    }
    for (int round = 0; round < REPEATS; round++)
        repeat_missed(sweep);
    run_pairs(sweep);
    if (sweep->only == NULL && sweep->share == 1)
        check_sites(sweep);
}

int main(int argc, char *argv[])
{
    static struct sweep sweep;
    struct text slowest = {0};

    read_options(&sweep, argc, argv);
    sweep.outcomes = mmap(NULL, sizeof(struct outcome) * JOBS_MAX, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (sweep.outcomes == MAP_FAILED)
        die("mmap");
    if (!explore(&sweep))
        return 1;
    run_all(&sweep);
    describe(&sweep, &sweep.tests[sweep.slowest], &slowest);
    printf("the slowest took %lld ms: %s\n", (long long)sweep.slowest_ms, slowest.data);
    text_free(&slowest);
    printf("%zu call sites; %u runs, %u calls failed on purpose; %u failures\n", sweep.known_count,
           sweep.runs, sweep.hits, sweep.failures);
    return sweep.failures == 0 ? 0 : 1;
}
