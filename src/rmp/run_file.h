/* The bytes of a run's file: whole frames, one after the other, as they were published. The first
 * one is the RunAccepted of the run, if the daemon knew it, with the number of the user who has
 * submitted the run as its msg_id; the others are its events. And an event that is kept as a frame,
 * for a subscriber. */
#ifndef STDIO_BUS_RMP_RUN_FILE_H
#define STDIO_BUS_RMP_RUN_FILE_H

#include "rmp/frame.h"
#include "rmp/history.h"

#define RUN_FILE_REPLAY_MS 3600000 /* for so long a frame that is replayed is good */

/* The event as it was published, or for a subscriber at this time: with its own trace_id, msg_id
 * and created_at_ms, and a ttl_ms by which it expires RUN_FILE_REPLAY_MS later. To be freed;
 * *header is that of the frame, but for body_len. NULL if out of memory. */
char *run_file_event(struct rmp_id run, const struct rmp_kept_event *event, size_t *len);
char *run_file_replay(struct rmp_id run, const struct rmp_kept_event *event, uint64_t epoch_ms,
                      struct rmp_header *header, size_t *len);

/* The frame of RunAccepted with this payload, of a run of this user (rmp/peer.h). To be freed; NULL
 * if out of memory. */
char *run_file_accepted(struct rmp_id run, uint32_t user, struct slice payload, uint64_t at_ms,
                        size_t *len);

enum run_file_found {
    RUN_FILE_EVENT,
    RUN_FILE_ACCEPTED,
    RUN_FILE_CUT,    /* the bytes end within a frame, or there are none */
    RUN_FILE_DAMAGED /* no frame of this run's file */
};

struct run_file_record {
    uint64_t msg_id, at_ms;
    uint32_t user;        /* of RunAccepted */
    struct slice payload; /* MsgPack: of the event, or the answer to RunSubmit */
    size_t len;           /* of the frame */
};

/* Reads the frame that the bytes begin with. The payload points into the bytes. */
enum run_file_found run_file_read(struct run_file_record *record, struct rmp_id run,
                                  struct slice bytes, uint32_t max_body);

#endif
