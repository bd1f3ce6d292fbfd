/* The files of runs as the daemon reads them at its start, and the history that it makes of them:
 * the reader finds the frames that a plain reader finds, however long they are, and no more; the
 * history keeps its limits, counts what it holds, and takes from a user who holds little nothing
 * for the sake of others. */
#include "build_config.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"
#include "rmp/history.h"
#include "rmp/msgpack.h"
#include "topics/run_reader.h"

#include "common.h"

#define MAX_BODY 100000
#define USERS 3
#define RUNS 8
#define REPEATS_MAX 200
#define HEAD_BYTES 2 /* of an input: limits, repetitions; the file follows */

static const struct siphash_key key = {1, 2};

/* --- a file --- */

struct file {
    char *bytes; /* those of the input, some times in a row: longer than one read */
    size_t len;
    char path[64];
};

static void write_file(struct file *file, struct slice bytes, unsigned times)
{
    const char *directory = getenv("TMPDIR");
    int fd;

    file->len = bytes.len * times;
    file->bytes = malloc(file->len > 0 ? file->len : 1);
    EXPECT(file->bytes != NULL, "no memory");
    for (unsigned i = 0; i < times && bytes.len > 0; i++)
        memcpy(file->bytes + i * bytes.len, bytes.data, bytes.len);
    if (directory == NULL || strlen(directory) > 40)
        directory = "/tmp";
    snprintf(file->path, sizeof file->path, "%s/fuzz_runs_XXXXXX", directory);
    fd = mkstemp(file->path);
    EXPECT(fd >= 0, "no file");
    EXPECT(write(fd, file->bytes, file->len) == (ssize_t)file->len, "no room");
    close(fd);
}

static void remove_file(struct file *file)
{
    unlink(file->path);
    free(file->bytes);
}

/* The run whose file it is: that of the first frame. */
static struct rmp_id run_of(const struct file *file)
{
    struct rmp_header header = {.msg_id = 0};

    if (file->len > RMP_PREFIX_LEN)
        (void)rmp_header_read(&header,
                              slice_of(file->bytes + RMP_PREFIX_LEN, file->len - RMP_PREFIX_LEN));
    return header.trace_id;
}

/* --- the history --- */

struct world {
    const struct file *file;
    struct rmp_id run;
    size_t at; /* in the file: what was read up to here */
    struct rmp_history history;
    size_t account;
    struct rmp_run *adding; /* the run that an event is added to */
};

/* Nothing is taken from a user who holds less than an equal share, but for a last event. */
static void note_forgotten(void *user_data, struct rmp_run *run)
{
    const struct world *world = user_data;
    const struct rmp_history *history = &world->history;
    size_t users = history->owners.table.count;

    EXPECT(run != world->adding, "the run of the event is forgotten");
    EXPECT(run->owner->bytes * users > history->limits.bytes ||
               run->owner->count * users > history->limits.runs ||
               (world->adding != NULL && world->adding->count <= 1),
           "user %u holds little", run->owner->user);
}

static void check_sums(const struct world *world)
{
    const struct rmp_history *history = &world->history;
    size_t bytes = 0, events = 0, runs = 0, of_user[USERS] = {0};
    const struct list_node *node;
    uint64_t last_ms = 0;

    for (node = history->by_age.head.next; node != &history->by_age.head; node = node->next) {
        const struct rmp_run *run = list_entry(node, struct rmp_run, in_age);

        EXPECT(run->last_ms >= last_ms, "the runs are not in the order of their last events");
        last_ms = run->last_ms;
        bytes += run->bytes;
        events += run->count;
        of_user[run->owner->user] += run->bytes;
        runs++;
        EXPECT(run->count <= history->limits.events && run->bytes <= history->limits.run_bytes,
               "a run over its limits");
    }
    EXPECT(bytes == history->bytes && bytes == world->account && events == history->events &&
               runs == history->runs.count,
           "the sums differ");
    EXPECT(bytes <= history->limits.bytes && runs <= history->limits.runs, "over the limits");
    for (node = history->by_age.head.next; node != &history->by_age.head; node = node->next) {
        const struct rmp_owner *owner = list_entry(node, struct rmp_run, in_age)->owner;

        EXPECT(owner->bytes == of_user[owner->user] && owner->count == list_count(&owner->entries),
               "what a user holds is counted in another way");
        EXPECT(owner->bytes <= rmp_owners_most_bytes(&history->owners)->bytes &&
                   owner->count <= rmp_owners_most_entries(&history->owners)->count,
               "another user holds most");
    }
}

/* The msg_id decides the run and its user. */
static void keep(struct world *world, const struct run_file_record *record)
{
    struct rmp_history *history = &world->history;
    uint32_t number = (uint32_t)(record->msg_id % RUNS);
    struct rmp_kept_event *event;

    world->adding = NULL;
    world->adding = rmp_history_open(history, (struct rmp_id){0, number}, number % USERS,
                                     record->at_ms % 1000);
    EXPECT(world->adding != NULL, "no memory");
    event = rmp_history_add(history, world->adding, record->msg_id, record->at_ms % 1000,
                            record->payload);
    EXPECT(event == NULL || world->adding->events.head.prev == &event->link,
           "the event is not the last one");
    EXPECT(event == NULL || (event->len == record->payload.len &&
                             memcmp(event->payload, record->payload.data, event->len) == 0),
           "another event is kept");
    check_sums(world);
}

/* --- what the reader finds --- */

static bool take(void *user_data, enum run_file_found found, const struct run_file_record *record)
{
    struct world *world = user_data;
    struct slice rest = {world->file->bytes + world->at, world->file->len - world->at};
    struct run_file_record plain;

    EXPECT(run_file_read(&plain, world->run, rest, MAX_BODY) == found, "another kind of frame");
    EXPECT(plain.len == record->len && plain.msg_id == record->msg_id &&
               plain.at_ms == record->at_ms && plain.user == record->user &&
               slice_equal(plain.payload, record->payload),
           "another frame");
    EXPECT(found == RUN_FILE_ACCEPTED || record->user == 0, "an event has a user");
    world->at += record->len;
    if (found == RUN_FILE_EVENT)
        keep(world, record);
    return true;
}

static void read_file(struct world *world, struct log *log)
{
    struct run_reading reading = {.path = world->file->path,
                                  .run = world->run,
                                  .max_body = MAX_BODY,
                                  .log = log,
                                  .take = take,
                                  .user_data = world};
    struct run_file_record record;
    bool good = run_reader_read(&reading);
    struct slice rest = {world->file->bytes + world->at, world->file->len - world->at};
    enum run_file_found next = run_file_read(&record, world->run, rest, MAX_BODY);

    EXPECT(reading.len == world->at, "another length");
    EXPECT(next == RUN_FILE_CUT || next == RUN_FILE_DAMAGED, "the reader ends before a frame");
    EXPECT(good == (rest.len == 0), "what is lost is not reported");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct file file;
    struct world world = {.file = &file};
    struct rmp_history_limits limits;
    struct log log;

    if (size < HEAD_BYTES)
        return 0;
    limits = (struct rmp_history_limits){.events = 1 + data[0] % 8u,
                                         .run_bytes = 500 + 100 * (data[0] / 8u),
                                         .runs = 1 + data[0] % 5u,
                                         .bytes = 500 + 100 * (data[0] / 8u) * (1 + data[0] % 3u),
                                         .ms = 500};
    write_file(&file, slice_of((const char *)data + HEAD_BYTES, size - HEAD_BYTES),
               1 + data[1] % REPEATS_MAX);
    log_open(&log, STDERR_FILENO, LOG_LEVEL_ERROR);
    world.run = run_of(&file);
    rmp_history_init(&world.history, &key, &limits, &world.account);
    world.history.forgets = note_forgotten;
    world.history.user_data = &world;
    read_file(&world, &log);
    rmp_history_free(&world.history);
    EXPECT(world.account == 0, "bytes are left");
    log_close(&log);
    remove_file(&file);
    return 0;
}
