/* The control plane (RMP 9): requests on rlp/ctrl that were seen, and their answers. A request
 * that comes again gets the answer that the first one got; a rejection is not remembered. The
 * number of requests is bounded. Where there is no room, the user who has most forgets the oldest
 * one that was answered; and with m users, one who has less than 1/(2m) of the requests gets one
 * more, although all of those wait for their answers. */
#ifndef STDIO_BUS_RMP_CONTROL_H
#define STDIO_BUS_RMP_CONTROL_H

#include "base/archive.h"
#include "base/hash_table.h"
#include "base/list.h"
#include "base/siphash.h"
#include "rmp/frame.h"
#include "rmp/history.h"

/* The messages of the control plane (RMP 9) on rlp/ctrl: reads requests, and writes the payloads of
 * answers. */

#define RMP_TOPIC_CONTROL "rlp/ctrl"
#define RMP_CONTROL_TTL_MS 30000
#define RMP_CONTROL_WAIT_MS 2000 /* how long a client waits for RunAccepted */

enum rmp_control_kind { RMP_CONTROL_SUBMIT, RMP_CONTROL_CANCEL };

struct rmp_control_request {
    enum rmp_control_kind kind;
    struct rmp_id request_id; /* the trace_id of its frame */
    struct rmp_id run_id;     /* the trace_id of the run */
    struct slice members;     /* MsgPack: of RunSubmit or RunCancel */
    uint32_t user;            /* of its client (rmp/peer.h) */
};

/* Reads the body of a frame of schema 2001. False, with *problem (static): it is no request;
 * request->request_id is set all the same. The user is the caller's to set. */
bool rmp_control_read(struct rmp_control_request *request, const struct rmp_header *header,
                      const struct rmp_envelope *envelope, const char **problem);

/* --- payloads of answers --- */

void rmp_control_put_accepted(struct msgpack_writer *writer, struct rmp_id request_id,
                              struct slice opening_id, struct slice opening_name); /* MsgPack */
void rmp_control_put_rejected(struct msgpack_writer *writer, struct rmp_id request_id,
                              struct slice reason); /* a text */
void rmp_control_put_cancelled(struct msgpack_writer *writer, struct rmp_id request_id,
                               struct rmp_id run_id);

/* The same for any id of 16 bytes. */
void rmp_put_id(struct msgpack_writer *writer, struct rmp_id id);

#define RMP_CONTROL_REMEMBERED 4096 /* requests */

struct rmp_control {
    struct hash_table table;
    struct list by_age; /* oldest first */
    struct rmp_owners owners;
    struct siphash_key key;
    size_t max;
    size_t early_bytes; /* of all events that are kept */
};

void rmp_control_init(struct rmp_control *control, const struct siphash_key *key, size_t max);
void rmp_control_free(struct rmp_control *control);

enum rmp_control_verdict {
    RMP_CONTROL_NEW,      /* to be carried out; settle or forget it then */
    RMP_CONTROL_PENDING,  /* the same request is being carried out */
    RMP_CONTROL_ANSWERED, /* *answer is the payload of its answer */
    RMP_CONTROL_FULL,     /* too many are being carried out, and the user has its share */
    RMP_CONTROL_NO_MEMORY
};

/* The answer lives until the next call. */
enum rmp_control_verdict rmp_control_take(struct rmp_control *control,
                                          const struct rmp_control_request *request,
                                          struct slice *answer);

/* The request was answered with this payload, which is copied: when it comes again, it gets the
 * same. False: out of memory, and it is forgotten. */
bool rmp_control_settle(struct rmp_control *control, enum rmp_control_kind kind,
                        struct rmp_id request_id, struct slice answer);

/* The request was rejected. */
void rmp_control_forget(struct rmp_control *control, enum rmp_control_kind kind,
                        struct rmp_id request_id);

/* --- events that precede RunAccepted --- */

#define RMP_CONTROL_EARLY_BYTES ((size_t)16 << 20) /* of all that are kept */

struct rmp_early_event {
    struct list_node link;
    size_t len;
    char payload[];
};

enum rmp_event_turn {
    RMP_EVENT_NOW,     /* no RunSubmit of this run waits for its answer */
    RMP_EVENT_KEPT,    /* a copy is kept until the answer; a rejection drops it */
    RMP_EVENT_NO_ROOM, /* too many are kept */
    RMP_EVENT_NO_MEMORY
};

/* An event of the run is to be published. */
enum rmp_event_turn rmp_control_keep_event(struct rmp_control *control, struct rmp_id run,
                                           struct slice payload);

/* Moves the run's events that are kept to the end of `to`, oldest first. Each is to be freed. */
void rmp_control_take_events(struct rmp_control *control, struct rmp_id run, struct list *to);

/* --- the end of a run --- */

/* An event of kind status with the message completed, failed or cancelled is the last one. */
enum rmp_run_end { RMP_RUN_OPEN, RMP_RUN_COMPLETED, RMP_RUN_FAILED, RMP_RUN_CANCELLED };

/* The end that an event of a run reports, or RMP_RUN_OPEN. */
enum rmp_run_end rmp_run_end_of(struct slice event);

/* "completed" and so on, and back; of any other text: RMP_RUN_OPEN. */
const char *rmp_run_end_name(enum rmp_run_end end);
enum rmp_run_end rmp_run_end_named(struct slice name);

/* The run of an accepted RunSubmit has ended so, if it is known. */
void rmp_control_end(struct rmp_control *control, struct rmp_id run, enum rmp_run_end end);

/* What is known of the run: how it has ended, and the payload of its RunAccepted, which lives until
 * the next call and is empty if there is none. */
enum rmp_run_end rmp_control_run(const struct rmp_control *control, struct rmp_id run,
                                 struct slice *accepted);

/* The user who has submitted the run; RMP_USER_BUS if that is not known (any more). */
uint32_t rmp_control_user(const struct rmp_control *control, struct rmp_id run);

/* A RunSubmit of this user that was accepted before this daemon was started. False: out of memory,
 * or it was seen. */
bool rmp_control_restore(struct rmp_control *control, struct rmp_id run, uint32_t user,
                         struct slice accepted);

/* Saves the requests that were seen, or loads them into one that has seen none. */
void rmp_control_archive(struct archive *archive, struct rmp_control *control);

#endif
