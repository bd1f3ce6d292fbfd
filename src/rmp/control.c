#include "build_config.h"

#include "rmp/control.h"

#include <stdlib.h>

#include "base/error.h"
#include "rmp/frame.h"
#include "rmp/peer.h"

/* --- reading --- */

static bool read_id(struct slice map, const char *key, struct rmp_id *id)
{
    struct msgpack_value value;

    return msgpack_find(map, key, &value, NULL) && rmp_id_of_value(&value, id);
}

static bool read_submit(struct rmp_control_request *request, const char **problem)
{
    struct msgpack_value yaml;
    struct rmp_id id;

    request->kind = RMP_CONTROL_SUBMIT;
    request->run_id = request->request_id;
    if (!read_id(request->members, "request_id", &id))
        *problem = "RunSubmit has no request_id";
    else if (!rmp_id_equal(id, request->request_id))
        *problem = "request_id is not the trace_id of the frame";
    else if (!msgpack_find(request->members, "opening_yaml", &yaml, NULL) ||
             yaml.type != MSGPACK_STR)
        *problem = "RunSubmit has no opening_yaml";
    else
        return true;
    return false;
}

static bool read_cancel(struct rmp_control_request *request, const char **problem)
{
    request->kind = RMP_CONTROL_CANCEL;
    if (read_id(request->members, "trace_id", &request->run_id))
        return true;
    *problem = "RunCancel has no trace_id";
    return false;
}

bool rmp_control_read(struct rmp_control_request *request, const struct rmp_header *header,
                      const struct rmp_envelope *envelope, const char **problem)
{
    struct msgpack_value value;

    request->request_id = header->trace_id;
    if (msgpack_find(envelope->payload, "RunSubmit", &value, &request->members))
        return read_submit(request, problem);
    if (msgpack_find(envelope->payload, "RunCancel", &value, &request->members))
        return read_cancel(request, problem);
    *problem = "neither RunSubmit nor RunCancel";
    return false;
}

/* --- payloads of answers --- */

void rmp_put_id(struct msgpack_writer *writer, struct rmp_id id)
{
    char bytes[RMP_ID_LEN];

    rmp_id_write(bytes, id);
    msgpack_put_bin(writer, slice_of(bytes, sizeof bytes));
}

static void put_head(struct msgpack_writer *writer, const char *variant, uint32_t members,
                     struct rmp_id request_id)
{
    msgpack_put_map(writer, 1);
    msgpack_put_text(writer, variant);
    msgpack_put_map(writer, members);
    msgpack_put_text(writer, "request_id");
    rmp_put_id(writer, request_id);
}

void rmp_control_put_accepted(struct msgpack_writer *writer, struct rmp_id request_id,
                              struct slice opening_id, struct slice opening_name)
{
    put_head(writer, "RunAccepted", 4, request_id);
    msgpack_put_text(writer, "trace_id");
    rmp_put_id(writer, request_id);
    msgpack_put_text(writer, "opening_id");
    msgpack_put_raw(writer, opening_id);
    msgpack_put_text(writer, "opening_name");
    msgpack_put_raw(writer, opening_name);
}

void rmp_control_put_rejected(struct msgpack_writer *writer, struct rmp_id request_id,
                              struct slice reason)
{
    put_head(writer, "RunRejected", 2, request_id);
    msgpack_put_text(writer, "reason");
    msgpack_put_str(writer, reason);
}

void rmp_control_put_cancelled(struct msgpack_writer *writer, struct rmp_id request_id,
                               struct rmp_id run_id)
{
    put_head(writer, "RunCancelled", 2, request_id);
    msgpack_put_text(writer, "trace_id");
    rmp_put_id(writer, run_id);
}

struct seen {
    struct list_node in_age;
    struct list_node in_owner; /* owner->entries, once it was answered */
    struct rmp_owner *owner;   /* the user who has sent it */
    enum rmp_control_kind kind;
    struct rmp_id id;
    char *answer; /* NULL: none yet */
    size_t answer_len;
    enum rmp_run_end end; /* of the run that was submitted */
    struct list events;   /* struct rmp_early_event, until the answer */
};

static uint64_t hash_of(const struct rmp_control *control, struct rmp_id id)
{
    char bytes[RMP_ID_LEN];

    rmp_id_write(bytes, id);
    return siphash(&control->key, bytes, sizeof bytes);
}

static bool is_same(const void *item, const void *key)
{
    const struct seen *a = item, *b = key;

    return a->kind == b->kind && rmp_id_equal(a->id, b->id);
}

static struct seen *find_seen(const struct rmp_control *control, enum rmp_control_kind kind,
                              struct rmp_id id)
{
    const struct seen key = {.kind = kind, .id = id};

    return hash_table_find(&control->table, hash_of(control, id), is_same, &key);
}

static void drop(struct rmp_control *control, struct seen *seen)
{
    struct list_node *node;

    while ((node = list_take_first(&seen->events)) != NULL) {
        struct rmp_early_event *event = list_entry(node, struct rmp_early_event, link);

        control->early_bytes -= event->len;
        free(event);
    }
    hash_table_remove(&control->table, hash_of(control, seen->id), seen);
    list_remove(&seen->in_age);
    list_remove(&seen->in_owner);
    rmp_owners_count(&control->owners, seen->owner, (size_t)-1, 0);
    free(seen->answer);
    free(seen);
}

void rmp_control_init(struct rmp_control *control, const struct siphash_key *key, size_t max)
{
    *control = (struct rmp_control){.key = *key, .max = max};
    list_init(&control->by_age);
    rmp_owners_init(&control->owners, key);
}

void rmp_control_free(struct rmp_control *control)
{
    struct list_node *node, *following;

    list_each(&control->by_age, node, following)
        drop(control, list_entry(node, struct seen, in_age));
    hash_table_free(&control->table);
    rmp_owners_free(&control->owners);
}

/* The oldest request of the owner that was answered is forgotten. False: there is none. */
static bool forget_one(struct rmp_control *control, const struct rmp_owner *owner)
{
    if (list_empty(&owner->entries))
        return false;
    drop(control, list_entry(owner->entries.head.next, struct seen, in_owner));
    return true;
}

/* Makes room for a request of the owner's, among which it counts already. */
static bool make_room(struct rmp_control *control, const struct rmp_owner *owner)
{
    return control->table.count < control->max ||
           forget_one(control, rmp_owners_most_entries(&control->owners)) ||
           2 * (owner->count - 1) * control->owners.table.count < control->max ||
           forget_one(control, owner);
}

static enum rmp_control_verdict add_seen(struct rmp_control *control, struct rmp_owner *owner,
                                         enum rmp_control_kind kind, struct rmp_id id)
{
    struct seen *seen;

    if (!make_room(control, owner))
        return RMP_CONTROL_FULL;
    seen = calloc(1, sizeof *seen);
    if (seen == NULL)
        return RMP_CONTROL_NO_MEMORY;
    seen->kind = kind;
    seen->id = id;
    seen->owner = owner;
    list_init(&seen->events);
    if (hash_table_insert(&control->table, hash_of(control, id), seen) != STDIO_BUS_OK) {
        free(seen);
        return RMP_CONTROL_NO_MEMORY;
    }
    list_append(&control->by_age, &seen->in_age);
    return RMP_CONTROL_NEW;
}

/* Nothing of it is known. */
static enum rmp_control_verdict remember(struct rmp_control *control, enum rmp_control_kind kind,
                                         struct rmp_id id, uint32_t user)
{
    struct rmp_owner *owner = rmp_owners_get(&control->owners, user);
    enum rmp_control_verdict verdict;

    if (owner == NULL)
        return RMP_CONTROL_NO_MEMORY;
    rmp_owners_count(&control->owners, owner, 1, 0);
    verdict = add_seen(control, owner, kind, id);
    if (verdict != RMP_CONTROL_NEW)
        rmp_owners_count(&control->owners, owner, (size_t)-1, 0);
    return verdict;
}

enum rmp_control_verdict rmp_control_take(struct rmp_control *control,
                                          const struct rmp_control_request *request,
                                          struct slice *answer)
{
    const struct seen *seen = find_seen(control, request->kind, request->request_id);

    if (seen == NULL)
        return remember(control, request->kind, request->request_id, request->user);
    if (seen->answer == NULL)
        return RMP_CONTROL_PENDING;
    *answer = slice_of(seen->answer, seen->answer_len);
    return RMP_CONTROL_ANSWERED;
}

bool rmp_control_settle(struct rmp_control *control, enum rmp_control_kind kind,
                        struct rmp_id request_id, struct slice answer)
{
    struct seen *seen = find_seen(control, kind, request_id);

    if (seen == NULL)
        return true;
    seen->answer = malloc(answer.len);
    if (seen->answer == NULL) {
        drop(control, seen);
        return false;
    }
    memcpy(seen->answer, answer.data, answer.len);
    seen->answer_len = answer.len;
    list_append(&seen->owner->entries, &seen->in_owner);
    return true;
}

void rmp_control_forget(struct rmp_control *control, enum rmp_control_kind kind,
                        struct rmp_id request_id)
{
    struct seen *seen = find_seen(control, kind, request_id);

    if (seen != NULL)
        drop(control, seen);
}

/* --- events that precede RunAccepted --- */

/* The RunSubmit of the run that waits for its answer, or NULL. */
static struct seen *find_open(const struct rmp_control *control, struct rmp_id run)
{
    struct seen *seen = find_seen(control, RMP_CONTROL_SUBMIT, run);

    return seen != NULL && seen->answer == NULL ? seen : NULL;
}

enum rmp_event_turn rmp_control_keep_event(struct rmp_control *control, struct rmp_id run,
                                           struct slice payload)
{
    struct seen *seen = find_open(control, run);
    struct rmp_early_event *event;

    if (seen == NULL)
        return RMP_EVENT_NOW;
    if (payload.len > RMP_CONTROL_EARLY_BYTES - control->early_bytes)
        return RMP_EVENT_NO_ROOM;
    event = malloc(sizeof *event + payload.len);
    if (event == NULL)
        return RMP_EVENT_NO_MEMORY;
    event->link = (struct list_node){NULL, NULL};
    event->len = payload.len;
    memcpy(event->payload, payload.data, payload.len);
    list_append(&seen->events, &event->link);
    control->early_bytes += event->len;
    return RMP_EVENT_KEPT;
}

void rmp_control_take_events(struct rmp_control *control, struct rmp_id run, struct list *to)
{
    struct seen *seen = find_open(control, run);
    struct list_node *node;

    while (seen != NULL && (node = list_take_first(&seen->events)) != NULL) {
        control->early_bytes -= list_entry(node, struct rmp_early_event, link)->len;
        list_append(to, node);
    }
}

/* --- the end of a run --- */

static const char *const ends[] = {[RMP_RUN_OPEN] = "",
                                   [RMP_RUN_COMPLETED] = "completed",
                                   [RMP_RUN_FAILED] = "failed",
                                   [RMP_RUN_CANCELLED] = "cancelled"};

const char *rmp_run_end_name(enum rmp_run_end end)
{
    return ends[end];
}

enum rmp_run_end rmp_run_end_named(struct slice name)
{
    enum rmp_run_end end = RMP_RUN_CANCELLED;

    while (end > RMP_RUN_OPEN && !slice_is(name, ends[end]))
        end--;
    return end;
}

enum rmp_run_end rmp_run_end_of(struct slice event)
{
    struct msgpack_value kind, message;

    if (!msgpack_find(event, "kind", &kind, NULL) || !msgpack_is(&kind, "status") ||
        !msgpack_find(event, "message", &message, NULL) || message.type != MSGPACK_STR)
        return RMP_RUN_OPEN;
    return rmp_run_end_named(message.bytes);
}

void rmp_control_end(struct rmp_control *control, struct rmp_id run, enum rmp_run_end end)
{
    struct seen *seen = find_seen(control, RMP_CONTROL_SUBMIT, run);

    if (seen != NULL && end != RMP_RUN_OPEN)
        seen->end = end;
}

enum rmp_run_end rmp_control_run(const struct rmp_control *control, struct rmp_id run,
                                 struct slice *accepted)
{
    const struct seen *seen = find_seen(control, RMP_CONTROL_SUBMIT, run);

    *accepted = slice_of("", 0);
    if (seen != NULL && seen->answer != NULL)
        *accepted = slice_of(seen->answer, seen->answer_len);
    return seen != NULL ? seen->end : RMP_RUN_OPEN;
}

uint32_t rmp_control_user(const struct rmp_control *control, struct rmp_id run)
{
    const struct seen *seen = find_seen(control, RMP_CONTROL_SUBMIT, run);

    return seen != NULL ? seen->owner->user : RMP_USER_BUS;
}

bool rmp_control_restore(struct rmp_control *control, struct rmp_id run, uint32_t user,
                         struct slice accepted)
{
    return find_seen(control, RMP_CONTROL_SUBMIT, run) == NULL &&
           remember(control, RMP_CONTROL_SUBMIT, run, user) == RMP_CONTROL_NEW &&
           rmp_control_settle(control, RMP_CONTROL_SUBMIT, run, accepted);
}

/* --- its state as bytes --- */

struct control_archive {
    struct rmp_control *control;
    struct rmp_id run; /* whose events are carried */
};

static void archive_event(struct archive *archive, void *owner, void *item)
{
    struct control_archive *state = owner;
    const struct rmp_early_event *event = item;
    struct slice payload = slice_of(NULL, 0);

    if (event != NULL)
        payload = slice_of(event->payload, event->len);
    payload = archive_slice(archive, payload);
    if (archive_loads(archive) &&
        rmp_control_keep_event(state->control, state->run, payload) != RMP_EVENT_KEPT)
        archive_fail(archive, "an event of a run cannot be kept");
}

struct seen_record {
    enum rmp_control_kind kind;
    enum rmp_run_end end;
    struct rmp_id id;
    uint32_t user;
    struct slice answer;
};

static const struct archive_field seen_fields[] = {
    ARCHIVE_CHOICE(struct seen_record, kind, RMP_CONTROL_CANCEL),
    ARCHIVE_CHOICE(struct seen_record, end, RMP_RUN_CANCELLED),
    ARCHIVE_INTEGERS(struct seen_record, id, user),
    ARCHIVE_SLICES(struct seen_record, answer),
};

/* There is room: the program before had it. */
static struct seen *load_seen(struct archive *archive, struct rmp_control *control,
                              const struct seen_record *record)
{
    archive_expect(archive, find_seen(control, record->kind, record->id) == NULL,
                   "a request was seen twice");
    if (!archive_ok(archive))
        return NULL;
    archive_made(archive,
                 remember(control, record->kind, record->id, record->user) == RMP_CONTROL_NEW &&
                     (record->answer.data == NULL ||
                      rmp_control_settle(control, record->kind, record->id, record->answer)));
    if (archive_ok(archive) && record->kind == RMP_CONTROL_SUBMIT)
        rmp_control_end(control, record->id, record->end);
    return find_seen(control, record->kind, record->id);
}

static void archive_seen(struct archive *archive, void *owner, void *item)
{
    struct control_archive *state = owner;
    struct seen *seen = item;
    struct seen_record record = {.user = 0};

    if (seen != NULL)
        record = (struct seen_record){.kind = seen->kind,
                                      .end = seen->end,
                                      .id = seen->id,
                                      .user = seen->owner->user,
                                      .answer = slice_of(seen->answer, seen->answer_len)};
    ARCHIVE_FIELDS(archive, &record, seen_fields);
    if (!archive->saves)
        seen = load_seen(archive, state->control, &record);
    if (!archive_made(archive, seen != NULL))
        return;
    state->run = record.id;
    ARCHIVE_LIST(archive, &seen->events, struct rmp_early_event, link, archive_event, state);
}

void rmp_control_archive(struct archive *archive, struct rmp_control *control)
{
    struct control_archive state = {.control = control};

    ARCHIVE_LIST(archive, &control->by_age, struct seen, in_age, archive_seen, &state);
}
