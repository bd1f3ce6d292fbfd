#include "build_config.h"

#include "share/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/archive.h"
#include "base/clock.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/file_time.h"
#include "base/siphash.h"
#include "bus/state.h"
#include "config/command.h"
#include "process/pool.h"
#include "router/eras.h"
#include "router/from_memory.h"

/* Another one whenever remembered_archive or fresh_archive_stale saves anything else. */
#define FORM "stdio_bus memory 3\n"
#define PAUSE_MS 50   /* after a change: there may be others */
#define APART_MS 1000 /* two writes */

/* --- the name --- */

/* Not secret, as those of the names of sockets (share/identity.c): two hashes are unlikely to be
 * the same for two servers by chance. */
struct fingerprint {
    uint64_t hashes[2];
};

static void add(struct fingerprint *print, const void *bytes, size_t len)
{
    for (int i = 0; i < 2; i++) {
        const struct siphash_key of = {UINT64_C(0x7374646962757332) + (uint64_t)i,
                                       print->hashes[i]};

        print->hashes[i] = siphash(&of, bytes, len);
    }
}

/* Nothing, if it is no file. */
static void add_file(struct fingerprint *print, const char *file)
{
    struct timespec time;
    struct stat status;
    char text[160];
    int len;

    if (stat(file, &status) < 0 || !S_ISREG(status.st_mode))
        return;
    time = file_time(&status);
    len = snprintf(text, sizeof text, "%lld %lld.%ld %llu %llu", (long long)status.st_size,
                   (long long)time.tv_sec, (long)time.tv_nsec, (unsigned long long)status.st_ino,
                   (unsigned long long)status.st_dev);
    add(print, text, (size_t)len);
}

void memory_key(char key[CACHE_KEY_LEN + 1], const char *identity, const struct pool_config *config)
{
    const char *path = getenv("PATH");
    const struct command_place place = {
        .path = path != NULL ? path : COMMAND_SERVICE_PATH,
        .cwd = config->cwd,
    };
    char file[COMMAND_FILE_MAX];
    struct fingerprint print = {{0, 0}};

    add(&print, identity, strlen(identity));
    for (size_t i = 0; config->argv[i] != NULL; i++) {
        const char *word = config->argv[i];
        bool is_moved = i > 0 && word[0] != '/' && config->cwd != NULL;
        int len = snprintf(file, sizeof file, "%s%s%s", is_moved ? config->cwd : "",
                           is_moved ? "/" : "", word);

        add(&print, &i, sizeof i);
        if (i == 0 ? command_find(word, &place, file) == 0 : (size_t)len < sizeof file)
            add_file(&print, file);
    }
    snprintf(key, CACHE_KEY_LEN + 1, "%016llx%016llx", (unsigned long long)print.hashes[0],
             (unsigned long long)print.hashes[1]);
}

static void set_name(struct memory *memory)
{
    char key[CACHE_KEY_LEN + 1];

    memory_key(key, memory->identity, memory->config);
    cache_name(memory->name, memory->base, key);
}

/* --- the bytes --- */

/* Of a file of another name the sum is wrong, too. */
static uint64_t sum_of(const char *name, struct slice bytes)
{
    const struct siphash_key plain = {UINT64_C(0x7374646962757333), 0};
    const struct siphash_key key = {plain.k0, siphash(&plain, name, strlen(name))};

    return siphash(&key, bytes.data, bytes.len);
}

void memory_write_head(char head[MEMORY_HEAD], const char *name, struct slice bytes)
{
    uint64_t sum = sum_of(name, bytes);

    memset(head, 0, MEMORY_HEAD);
    memcpy(head, FORM, sizeof FORM - 1);
    memcpy(head + MEMORY_HEAD - sizeof sum, &sum, sizeof sum);
}

const char *memory_load(struct remembered *to, struct fresh *fresh, const char *name,
                        struct slice bytes)
{
    char head[MEMORY_HEAD];
    struct archive archive;
    struct slice rest;

    if (bytes.len < MEMORY_HEAD)
        return "it is cut";
    if (memcmp(bytes.data, FORM, sizeof FORM - 1) != 0)
        return "it has another form";
    rest = slice_of(bytes.data + MEMORY_HEAD, bytes.len - MEMORY_HEAD);
    memory_write_head(head, name, rest);
    if (memcmp(head, bytes.data, MEMORY_HEAD) != 0)
        return "it is cut or was changed";
    archive_begin_loading(&archive, rest, -1);
    remembered_archive(to, &archive);
    fresh_archive_stale(fresh, &archive);
    archive_expect(&archive, archive.at == archive.len, "it is too long");
    archive_expect(&archive, !to->unfit, "nothing is to be remembered");
    if (!archive_ok(&archive)) {
        remembered_clear(to);
        fresh_clear(fresh);
        to->unfit = false;
    }
    return archive.problem;
}

/* --- reading --- */

static bool is_empty(const struct remembered *remembered, const struct fresh *fresh)
{
    return remembered_is_empty(remembered) && (fresh == NULL || fresh->count == 0);
}

static bool read_file(struct memory *memory)
{
    size_t len;
    char *bytes = cache_read(memory->directory, memory->name, &len);
    const char *problem;

    if (bytes == NULL && errno == ENOENT)
        return false;
    problem = bytes == NULL
                  ? strerror(errno)
                  : memory_load(&memory->read, &memory->fresh, memory->name, slice_of(bytes, len));
    free(bytes);
    if (problem != NULL)
        log_warn(memory->log, "", "%s in %s is not used: %s", memory->name, memory->path, problem);
    return problem == NULL && !is_empty(&memory->read, &memory->fresh);
}

bool memory_open(struct memory *memory)
{
    const struct pool_mode *mode = &memory->config->mode;
    char reason[DIRECTORY_REASON_MAX];

    remembered_init(&memory->read);
    fresh_init(&memory->fresh);
    memory->directory = -1;
    if (memory->path == NULL || !mode->remembers || !pool_mode_shares_handshake(mode))
        return false;
    if (directory_open(&memory->directory, memory->path, true, reason) != STDIO_BUS_OK) {
        memory->directory = -1;
        log_warn(memory->log, "", "nothing is remembered on disk: %s", reason);
        return false;
    }
    set_name(memory);
    return read_file(memory);
}

/* Of both eras. */
static uint64_t edition_of(const struct pool *pool)
{
    return pool->group.remembered->edition +
           (pool->stateless.fresh != NULL ? pool->stateless.fresh->edition : 0);
}

void memory_attach(struct memory *memory, struct stdio_bus *bus)
{
    struct pool *pool = list_entry(bus->pools.head.next, struct pool, link);

    if (memory->directory < 0 || pool->group.remembered == NULL)
        return;
    memory->pool = pool;
    if (is_empty(&memory->read, &memory->fresh))
        return;
    remembered_move(pool->group.remembered, &memory->read);
    if (pool->stateless.fresh != NULL)
        fresh_move(pool->stateless.fresh, &memory->fresh);
    eras_recall(&pool->group);
    memory->edition = edition_of(pool);
    log_info(memory->log, "",
             "what the server has answered is remembered: a message that needs a "
             "process starts it");
}

/* --- writing --- */

static uint64_t count_starts(const struct pool *pool)
{
    const struct list_node *node;
    uint64_t count = pool->past.starts;

    for (node = pool->workers.head.next; node != &pool->workers.head; node = node->next)
        count += list_entry(node, const struct worker, link)->starts;
    return count;
}

/* A process was started. If its files are others now, what is remembered is compared with what it
 * says, and belongs to a file of another name. */
static void look_at_files(struct memory *memory)
{
    char before[CACHE_NAME_MAX];

    memory->starts = count_starts(memory->pool);
    memcpy(before, memory->name, sizeof before);
    set_name(memory);
    if (strcmp(before, memory->name) != 0)
        memory->edition = edition_of(memory->pool) - 1;
}

static void write_file(struct memory *memory)
{
    struct remembered *remembered = memory->pool->group.remembered;
    char head[MEMORY_HEAD];
    struct archive archive;
    struct slice bytes;
    int status = STDIO_BUS_ERR;

    archive_begin_saving(&archive);
    remembered_archive(remembered, &archive);
    fresh_archive_stale(memory->pool->stateless.fresh, &archive);
    bytes = slice_of(archive.data, archive.len);
    memory_write_head(head, memory->name, bytes);
    if (archive_ok(&archive))
        status = cache_write(memory->directory, memory->name, slice_of(head, sizeof head), bytes);
    else
        cache_remove(memory->directory, memory->name);
    if (status != STDIO_BUS_OK)
        log_warn(memory->log, "", "what the server has answered is not remembered on disk: %s",
                 archive_ok(&archive) ? strerror(errno) : archive.problem);
    archive_free(&archive);
}

int memory_keep(struct memory *memory)
{
    const struct remembered *remembered;
    int64_t now_ms;

    if (memory->pool == NULL)
        return -1;
    remembered = memory->pool->group.remembered;
    if (count_starts(memory->pool) != memory->starts)
        look_at_files(memory);
    if (edition_of(memory->pool) == memory->edition)
        return -1;
    if (remembered->unfit || is_empty(remembered, memory->pool->stateless.fresh)) {
        cache_remove(memory->directory, memory->name);
        memory->edition = edition_of(memory->pool);
        return -1;
    }
    if (!from_memory_is_settled(&memory->pool->group)) {
        memory->due_ms = 0;
        return -1;
    }
    now_ms = clock_now_ms();
    if (memory->due_ms == 0)
        memory->due_ms = now_ms + PAUSE_MS < memory->written_ms + APART_MS
                             ? memory->written_ms + APART_MS
                             : now_ms + PAUSE_MS;
    if (now_ms < memory->due_ms)
        return (int)(memory->due_ms - now_ms);
    write_file(memory);
    memory->edition = edition_of(memory->pool);
    memory->due_ms = 0;
    memory->written_ms = now_ms;
    return -1;
}

void memory_close(struct memory *memory)
{
    remembered_clear(&memory->read);
    fresh_clear(&memory->fresh);
    if (memory->directory >= 0)
        descriptor_close(memory->directory);
    memory->directory = -1;
}
