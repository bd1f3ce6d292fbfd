#include "build_config.h"

#include "topics/runs.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "config/environment.h"
#include "rmp/bridge.h"
#include "rmp/run_file.h"
#include "topics/run_reader.h"

#define RETRY_MS 10000
#define PAYLOAD_MAX 256 /* of the event with which a run fails */

/* --- time --- */

static void start_expiry(struct rmp_runs *runs)
{
    uint64_t due_ms = rmp_history_due(&runs->history), now_ms = clock_epoch_ms();
    uint64_t delay_ms = due_ms > now_ms ? due_ms - now_ms : 0;

    if (due_ms != UINT64_MAX && !timer_started(&runs->expiry))
        stdio_bus_event_loop_start_timer(runs->bus->loop, &runs->expiry,
                                         delay_ms < INT32_MAX ? (int64_t)delay_ms : INT32_MAX);
}

static void expired(void *user_data)
{
    struct rmp_runs *runs = user_data;

    rmp_history_expire(&runs->history, clock_epoch_ms());
    start_expiry(runs);
}

/* The round that this timer ends in calls rmp_runs_save. */
static void retried(void *user_data)
{
    struct rmp_runs *runs = user_data;

    list_move_all(&runs->unsaved, &runs->failed);
}

/* --- from its begin to its end --- */

static void forgotten(void *user_data, struct rmp_run *run)
{
    struct rmp_runs *runs = user_data;

    run_files_remove(&runs->files, run->id);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void set_up_history(struct rmp_runs *runs, const struct config *config)
{
    size_t bytes = least(config->rmp.history_bytes, config->limits.max_memory / 2);
    const struct rmp_history_limits limits = {
        .events = config->rmp.history_events,
        .run_bytes = least(config->rmp.history_run_bytes, bytes),
        .runs = config->rmp.history_runs,
        .bytes = bytes,
        .ms = (uint64_t)config->rmp.history_sec * 1000,
    };
    struct siphash_key key = siphash_random_key();

    rmp_history_init(&runs->history, &key, &limits, &runs->bus->transport.pool.used);
    runs->history.forgets = forgotten;
    runs->history.user_data = runs;
}

/* The path is known to fit (config/rmp_keys.c), unless a variable has changed since. */
static void set_up_files(struct rmp_runs *runs, const struct rmp_config *config)
{
    struct run_files *files = &runs->files;
    char problem[VARIABLE_PROBLEM_MAX] = "its path is too long";
    int len;

    files->log = runs->bus->log;
    files->sync = config->history_sync;
    if (config->history == NULL || config->history_events == 0)
        return;
    len = variable_expand_path(files->directory, sizeof files->directory, config->history, problem);
    if (len >= 0 && (size_t)len < sizeof files->directory)
        return;
    files->directory[0] = '\0';
    log_warn(files->log, "rmp", "the history is not written to files: %s", problem);
}

struct rmp_runs *rmp_runs_create(struct stdio_bus *bus, struct rmp_control *control)
{
    struct rmp_runs *runs = calloc(1, sizeof *runs);

    if (runs == NULL)
        return NULL;
    runs->bus = bus;
    runs->control = control;
    list_init(&runs->unsaved);
    list_init(&runs->failed);
    timer_init(&runs->expiry, expired, runs);
    timer_init(&runs->retry, retried, runs);
    set_up_history(runs, bus->options.config);
    set_up_files(runs, &bus->options.config->rmp);
    return runs;
}

void rmp_runs_destroy(struct rmp_runs *runs)
{
    if (runs == NULL)
        return;
    stdio_bus_event_loop_stop_timer(runs->bus->loop, &runs->expiry);
    stdio_bus_event_loop_stop_timer(runs->bus->loop, &runs->retry);
    rmp_history_free(&runs->history);
    free(runs);
}

/* --- what is kept --- */

static bool has_files(const struct rmp_runs *runs)
{
    return runs->files.directory[0] != '\0';
}

static void note_unsaved(struct rmp_runs *runs, struct rmp_run *run)
{
    if (has_files(runs) && !list_linked(&run->in_unsaved))
        list_append(&runs->unsaved, &run->in_unsaved);
}

static struct rmp_run *open_run(struct rmp_runs *runs, struct rmp_id id, uint64_t at_ms)
{
    struct rmp_run *run = rmp_history_open(&runs->history, id, rmp_control_user(runs->control, id),
                                           at_ms);

    if (run != NULL)
        start_expiry(runs);
    else if (runs->history.limits.events > 0)
        log_warn(runs->bus->log, "rmp", "out of memory: the events of a run are not kept");
    return run;
}

void rmp_runs_accepted(struct rmp_runs *runs, struct rmp_id id)
{
    struct rmp_run *run = open_run(runs, id, clock_epoch_ms());

    if (run != NULL)
        note_unsaved(runs, run);
}

/* False, after a warning: the event is not kept. */
static bool keep_event(struct rmp_runs *runs, struct rmp_run *run, uint64_t msg_id, uint64_t at_ms,
                       struct slice payload)
{
    bool kept = rmp_history_add(&runs->history, run, msg_id, at_ms, payload) != NULL;

    if (!kept)
        log_warn(runs->bus->log, "rmp",
                 "an event of a run is not kept: out of memory, or over history_run_bytes");
    return kept;
}

void rmp_runs_event(struct rmp_runs *runs, struct rmp_id id, uint64_t msg_id, uint64_t at_ms,
                    struct slice payload)
{
    struct rmp_run *run = open_run(runs, id, at_ms);

    rmp_control_end(runs->control, id, rmp_run_end_of(payload));
    if (run == NULL || !keep_event(runs, run, msg_id, at_ms, payload))
        return;
    if (run->unsaved < run->count) /* where one was forgotten for it, all are unsaved already */
        run->unsaved++;
    note_unsaved(runs, run);
}

/* --- for subscribers --- */

static bool replay_event(const struct rmp_replay *to, const struct rmp_run *run,
                         const struct rmp_kept_event *event)
{
    struct rmp_publication publication = {.topic = to->topic};
    char *frame = run_file_replay(run->id, event, to->time.epoch_ms, &publication.header,
                                  &publication.frame.len);

    if (frame == NULL)
        return false;
    publication.frame.data = frame;
    publication.header.body_len = (uint32_t)(publication.frame.len - RMP_BODY_OFFSET);
    rmp_broker_replay(to->broker, to->peer, to->name, &publication, to->time);
    free(frame);
    return true;
}

void rmp_runs_replay(struct rmp_runs *runs, const struct rmp_replay *to)
{
    const struct rmp_run *run = NULL;
    struct list_node *node, *following;
    struct rmp_id id;

    if (bridge_run_of_topic(to->topic, &id))
        run = rmp_history_find(&runs->history, id);
    if (run == NULL)
        return;
    list_each(&run->events, node, following) {
        if (replay_event(to, run, list_entry(node, struct rmp_kept_event, link)))
            continue;
        log_warn(runs->bus->log, "rmp", "out of memory: events of a run are not replayed");
        break;
    }
}

/* --- to the files --- */

static void write_failed(struct rmp_runs *runs, struct rmp_run *run)
{
    runs->failures++;
    list_append(&runs->failed, &run->in_unsaved);
    if (!timer_started(&runs->retry))
        stdio_bus_event_loop_start_timer(runs->bus->loop, &runs->retry, RETRY_MS);
}

void rmp_runs_save(struct rmp_runs *runs)
{
    struct list_node *node;

    while ((node = list_take_first(&runs->unsaved)) != NULL) {
        struct rmp_run *run = list_entry(node, struct rmp_run, in_unsaved);
        struct slice accepted;

        (void)rmp_control_run(runs->control, run->id, &accepted);
        if (!run_files_write(&runs->files, run, accepted))
            write_failed(runs, run);
    }
}

/* --- from the files --- */

/* The file of one run. */
struct loading {
    struct rmp_runs *runs;
    struct rmp_id id;
    struct rmp_run *run; /* NULL: nothing was read of it */
    uint64_t now_ms;
};

static bool take_record(void *user_data, enum run_file_found found,
                        const struct run_file_record *record)
{
    struct loading *loading = user_data;
    struct rmp_runs *runs = loading->runs;
    uint64_t at_ms = record->at_ms < loading->now_ms ? record->at_ms : loading->now_ms;

    if (found == RUN_FILE_ACCEPTED &&
        !rmp_control_restore(runs->control, loading->id, record->user, record->payload))
        log_warn(runs->bus->log, "rmp", "a run is not known any more: out of memory");
    loading->run = open_run(runs, loading->id, at_ms);
    if (loading->run == NULL || found == RUN_FILE_ACCEPTED)
        return loading->run != NULL;
    rmp_control_end(runs->control, loading->id, rmp_run_end_of(record->payload));
    loading->run->file_count++;
    (void)keep_event(runs, loading->run, record->msg_id, at_ms, record->payload);
    return true;
}

/* {"kind":"status","level":"error","message":"failed","meta":{...}} */
static struct slice write_failure(char to[PAYLOAD_MAX], struct rmp_id run, uint64_t now_ms)
{
    struct msgpack_writer writer = {.to = to, .size = PAYLOAD_MAX};

    msgpack_put_map(&writer, 4);
    msgpack_put_text(&writer, "kind");
    msgpack_put_text(&writer, "status");
    msgpack_put_text(&writer, "level");
    msgpack_put_text(&writer, "error");
    msgpack_put_text(&writer, "message");
    msgpack_put_text(&writer, rmp_run_end_name(RMP_RUN_FAILED));
    msgpack_put_text(&writer, "meta");
    msgpack_put_map(&writer, 3);
    msgpack_put_text(&writer, "ts_ms");
    msgpack_put_uint(&writer, now_ms);
    msgpack_put_text(&writer, "run_id");
    rmp_put_id(&writer, run);
    msgpack_put_text(&writer, "reason");
    msgpack_put_text(&writer, "the daemon has ended before the run");
    return slice_of(to, writer.len);
}

/* A run without an end has failed: its runner ended with the former daemon. */
static void end_unfinished(struct loading *loading, uint64_t *last_msg_id)
{
    struct rmp_runs *runs = loading->runs;
    char payload[PAYLOAD_MAX];
    struct slice accepted;

    if (rmp_control_run(runs->control, loading->id, &accepted) == RMP_RUN_OPEN && accepted.len > 0)
        rmp_runs_event(runs, loading->id, ++*last_msg_id, loading->now_ms,
                       write_failure(payload, loading->id, loading->now_ms));
}

static void load_file(struct rmp_runs *runs, struct rmp_id id, uint64_t *last_msg_id)
{
    char path[RUN_PATH_MAX];
    struct loading loading = {.runs = runs, .id = id, .now_ms = clock_epoch_ms()};
    struct run_reading reading = {
        .path = run_directory_path(path, runs->files.directory, id, RUN_SUFFIX),
        .run = id,
        .max_body = runs->bus->options.config->rmp.max_body,
        .log = runs->bus->log,
        .take = take_record,
        .user_data = &loading,
    };
    bool good = run_reader_read(&reading);

    if (loading.run == NULL)
        return;
    loading.run->file_len = reading.len;
    if (!good) {
        loading.run->file_len = 0;
        note_unsaved(runs, loading.run);
    }
    end_unfinished(&loading, last_msg_id);
}

void rmp_runs_load(struct rmp_runs *runs, uint64_t *last_msg_id)
{
    struct run_entry *entries;
    size_t count;

    if (!has_files(runs) || !run_files_prepare(&runs->files))
        return;
    (void)run_directory_list(runs->files.directory, runs->bus->log, &entries, &count);
    for (size_t i = 0; i < count; i++)
        load_file(runs, entries[i].run, last_msg_id);
    free(entries);
    rmp_history_expire(&runs->history, clock_epoch_ms());
    log_info(runs->bus->log, "rmp", "history: %zu runs with %zu events were read from %s",
             runs->history.runs.count, runs->history.events, runs->files.directory);
}

/* --- its state as bytes --- */

static bool is_unsaved(const struct rmp_run *run)
{
    return run->unsaved > 0 || run->file_len == 0;
}

void rmp_runs_archive(struct archive *archive, struct rmp_runs *runs)
{
    struct list_node *node, *following;

    archive_mark(archive, "runs");
    rmp_history_archive(archive, &runs->history);
    ARCHIVE_INTEGER(archive, runs->failures);
    timer_archive(archive, runs->bus->loop, &runs->expiry);
    timer_archive(archive, runs->bus->loop, &runs->retry);
    if (archive->saves)
        return;
    list_each(&runs->history.by_age, node, following) {
        struct rmp_run *run = list_entry(node, struct rmp_run, in_age);

        if (is_unsaved(run))
            note_unsaved(runs, run);
    }
}
