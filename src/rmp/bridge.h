/* The bridge, without its connections: what the topic bus says in MsgPack, and the JSON-RPC texts
 * that stdio workers get and send.
 *
 *     agent/<name>, schema 4000       agent/execute      result: Completed; error: Failed
 *     rlp/ctrl, RunSubmit             run/submit         result: RunAccepted; error: RunRejected
 *     rlp/ctrl, RunCancel             run/cancel         result: RunCancelled; error: RunRejected
 *     rlp/runs/trace:<uuid>/events    run/event, a notification of the worker */
#ifndef STDIO_BUS_RMP_BRIDGE_H
#define STDIO_BUS_RMP_BRIDGE_H

#include "rmp/frame.h"
#include "json/text.h"

#define RMP_AGENT_PREFIX "agent/" /* of the topic of an agent */
#define RMP_BRIDGE_TTL_MS 30000   /* of what the bridge publishes */

/* --- to workers --- */

/* Adds a request: its id is "rmp:NUMBER", its sessionId the UUID of the session, its params the
 * MsgPack map as JSON (rmp/convert.h). False: the params cannot be converted. */
bool bridge_put_request(struct json_text *text, uint64_t number, const char *method,
                        struct rmp_id session, struct slice params);

/* Adds the reply to a request of a worker, whose id is JSON. */
void bridge_put_refusal(struct json_text *text, struct slice id);

/* --- from workers --- */

enum bridge_kind {
    BRIDGE_RESULT,   /* of the request `number` */
    BRIDGE_ERROR,    /* the same */
    BRIDGE_EVENT,    /* run/event */
    BRIDGE_QUESTION, /* a request of the worker's */
    BRIDGE_OTHER
};

struct bridge_message {
    enum bridge_kind kind;
    uint64_t number;
    struct slice id;     /* QUESTION: JSON */
    struct slice value;  /* RESULT, EVENT: the result, or the params, as JSON */
    struct slice reason; /* ERROR: its message as JSON; empty: it has none */
    long code;           /* ERROR */
    bool retryable;      /* ERROR: error.data.retryable */
};

/* Reads a message that the scanner has accepted. The slices point into it. */
void bridge_read(struct bridge_message *message, struct slice json);

/* --- what is published; each returns MsgPack to be freed, or NULL: out of memory, or, where
 * *problem is set (static), the worker's JSON is not usable --- */

/* {"Completed": result} */
char *bridge_completed(struct slice result, size_t *len, const char **problem);

/* {"Failed": {"retryable": ..., "reason": ...}}; the reason is a text. */
char *bridge_failed(bool retryable, struct slice reason, size_t *len);

/* RunAccepted of a result {"opening_id": ..., "opening_name": ...}. Without an opening_id it is the
 * request's, without an opening_name "". */
char *bridge_accepted(struct rmp_id request_id, struct slice result, size_t *len,
                      const char **problem);

/* The payload of a run event of the params of run/event, of which *run is the trace_id: kind,
 * level, message, meta. meta gets ts_ms and run_id where it has none. */
char *bridge_event(struct slice params, uint64_t now_ms, struct rmp_id *run, size_t *len,
                   const char **problem);

/* Decodes a JSON string. The text is to be freed; NULL if out of memory. */
char *bridge_text(struct slice json, size_t *len);

#define BRIDGE_EVENTS_MAX 64
/* Writes "rlp/runs/trace:<uuid>/events". Returns `to`. */
const char *bridge_events_topic(char to[BRIDGE_EVENTS_MAX], struct rmp_id run);

/* The run whose events are published on the topic: "rlp/runs/trace:<uuid>/events", or the same
 * without "trace:". False: the topic is none of a run's events. */
bool bridge_run_of_topic(struct slice topic, struct rmp_id *run);

#endif
