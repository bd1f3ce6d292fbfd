/* One routing decision: a peer offers a message, and the router says what becomes of it. The caller
 * carries the action out, then calls decision_delivered or decision_failed if it was to forward. */
#ifndef STDIO_BUS_ROUTER_DECISION_H
#define STDIO_BUS_ROUTER_DECISION_H

#include "base/slice.h"
#include "router/router.h"
#include "router/subscriptions.h"
#include "json/message.h"
#include "json/param_fields.h"

enum action {
    ACTION_FORWARD,   /* to decision->to, with its edits */
    ACTION_BROADCAST, /* to all clients that are bound to the sender */
    ACTION_HOLD,      /* the sender is held: offer the message again when it is released */
    ACTION_REFUSE,    /* not delivered: a request gets an error with code and text */
    ACTION_FAIL,      /* an answer is not delivered: its asker, decision->to, gets an error */
    ACTION_ANSWER,    /* a request gets decision->stored, with its edits, as its answer */
    ACTION_DISCARD,   /* not delivered: log the text as a warning */
    ACTION_DROP,      /* not delivered, as is to be expected now and then */
    ACTION_NO_MEMORY  /* nothing has changed: offer the message again later */
};

/* What a notification is about, by its method. A request may have such a method too; it is about
 * nothing then, unless it is about a task or a cause. */
enum subject {
    ABOUT_NOTHING,      /* another method, or one without its request or token */
    ABOUT_CANCELLED,    /* MCP: gives up a request of its sender, which will not be answered */
    ABOUT_REQUEST,      /* LSP, ACP: the same, and it will be answered */
    ABOUT_PROGRESS,     /* of a request that its sender has to answer */
    ABOUT_OWN_TOKEN,    /* LSP: of a token that the sender made up */
    ABOUT_SUBSCRIPTION, /* MCP, stateless: of a client's request that subscribes */
    ABOUT_LOGS,         /* MCP, stateless: of some request that asked for logs */
    ABOUT_TASK,         /* MCP, handshake era; with _meta, whatever the method */
    ABOUT_RESOURCE,     /* MCP, where clients share a handshake: a resource has changed */
    ABOUT_LEVEL,        /* the same: a log message */
    ABOUT_CAUSE         /* ACP, a worker's request: of the client's request that it serves */
};

/* What a request is, by its method, as far as it concerns its way. */
enum request_kind {
    REQUEST_ORDINARY,
    REQUEST_LOADS,       /* ACP session/load, session/resume: its client owns the session after the
                          * answer */
    REQUEST_COPIES,      /* ACP session/fork: the answer names a session that begins */
    REQUEST_PROMPTS,     /* ACP session/prompt: a turn of the session */
    REQUEST_PROBES,      /* MCP server/discover: its client may be of either era */
    REQUEST_SUBSCRIBES,  /* MCP subscriptions/listen */
    REQUEST_MAKES_TASK,  /* MCP params.task */
    REQUEST_FETCHES,     /* MCP tasks/result */
    REQUEST_INITIALIZES, /* MCP: its client is of the handshake era */
    REQUEST_SETS_LEVEL,  /* MCP logging/setLevel */
    REQUEST_WATCHES,     /* MCP resources/subscribe */
    REQUEST_UNWATCHES,   /* MCP resources/unsubscribe */
    REQUEST_CONFIRMS,    /* no request: MCP notifications/initialized */
    REQUEST_TELLS_ROOTS, /* no request: MCP notifications/roots/list_changed */
    REQUEST_EXITS        /* no request, and never noted: LSP exit */
};

#define DECISION_EDITS_MAX (2 + EXTRAS_TOKENS) /* an id, a subject, and tokens */

struct decision {
    enum action action;
    struct peer *to;
    struct request *recorded;  /* FORWARD of a request: its entry in the pending table */
    struct request *answered;  /* FORWARD of an answer, FAIL: the request that it answers */
    struct request *cancelled; /* FORWARD: the message gives this request up for good */
    struct peer *former_owner; /* FORWARD of an answer: the client that had the session so far */
    struct slice stored;       /* ANSWER: a line; it lives as long as the decision */
    int64_t hold_ms;           /* HOLD: call waiting_expire after so long; 0: no limit of time */
    int code;
    unsigned edit_count;
    struct splice_edit edits[DECISION_EDITS_MAX]; /* live as long as the decision and `answered` */
    char numbers[DECISION_EDITS_MAX][PENDING_DIGITS + 3]; /* texts of edits: N or "N#" */
    char text[160];
    const struct start_failure *failure; /* REFUSE with an empty text: it is this one */

    /* The message and its state. Whoever carries the action out reads `from`, `message` and
     * `is_reply`; the rest is the router's own. */
    struct router *router;
    struct peer *from;
    const struct message *message;
    uint64_t id_hash;
    bool is_reply;           /* a result or error, and no method: what a client answers */
    bool asks;               /* it will be recorded as a pending request */
    struct group *pool;      /* that it is for, or comes from; its mode counts */
    struct slice session_id; /* where the mode has it; data NULL: none */
    struct slice nested_id;  /* params.sessionId, where sessions are learned */
    enum request_kind kind;
    enum subject subject;
    const struct scan_field *subject_field;
    struct message_id subject_id;
    const struct request *related; /* a worker's message that answers nothing, in a pool with a
                                    * mode: the client's active request that it belongs to; NULL:
                                    * none is known */
    struct slice named; /* a protocol version, level or URI; data NULL: none that counts */
    char named_text[SUBSCRIPTION_URI_MAX]; /* for one with escapes */
    struct param_fields fields;
    struct message_scratch scratch;
};

/* Begins: nothing is decided, which is ACTION_NO_MEMORY. The message and its bytes live as long as
 * the decision. Then call to_worker or to_client. */
void decision_begin(struct decision *decision, struct router *router, struct peer *from,
                    const struct message *message);

/* After each decision about a peer that was held: an id that was kept free and then not used goes
 * to the next in line. */
void decision_end_hold(struct decision *decision);

/* In a router that measures, before decision_delivered: counts the outcome of the request that is
 * answered, if one is (router/outcomes.h). */
void decision_note_answer(const struct decision *decision);

/* The forwarded message, or the error instead of an answer, is in the destination's queue: an
 * answered request is done, a cancelled one abandoned. */
void decision_delivered(struct decision *decision);

/* It could not be queued (memory): as if it had never been offered. */
void decision_failed(struct decision *decision);

/* Replaces the value of a field in the message that is forwarded. The text lives as long as the
 * decision, or as the request that it is about. */
void decision_replace(struct decision *decision, const struct scan_field *field, struct slice text);

/* --- the ways to decide --- */

static inline void decision_forward(struct decision *decision, struct peer *to)
{
    decision->action = ACTION_FORWARD;
    decision->to = to;
}

void decision_refuse(struct decision *decision, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The asker of the request gets an error in place of this answer. */
void decision_fail(struct decision *decision, struct request *request, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for an answer that was cut; any other message that was cut is refused. */
void decision_fail_cut(struct decision *decision, struct request *request);
void decision_refuse_cut(struct decision *decision);

/* Refuses the message, since no worker of the group will ever take it. */
void decision_refuse_unserved(struct decision *decision, const struct group *group);

/* The same, of a process that has exited; `group` is the pool's era with a handshake. */
void decision_refuse_exited(struct decision *decision, const struct group *group);
/* ACTION_DISCARD or ACTION_DROP. */
void decision_discard(struct decision *decision, enum action action, const char *text);

/* Holds the sender until `list` is released, or until it is its turn. In a router that is closing,
 * or if it is to be closed itself, a client is refused instead. */
void decision_hold(struct decision *decision, struct list *list, enum peer_hold held_for);
void decision_hold_turns(struct decision *decision, struct turns *turns, enum peer_hold held_for);

/* Holds the sender until the id is free at the request's answerer, or at any worker of the group
 * unless that is NULL. In a router that is closing it is refused instead, also a worker: no client
 * answers any more. */
void decision_hold_for_id(struct decision *decision, struct request *busy, struct group *group);

/* Holds the sender until the worker has answered another client's request, for a minute at most. */
void decision_hold_for_answer(struct decision *decision, struct list *waiting);

/* ACTION_ANSWER: the sender's request gets this line, with its own id in place of the one there. */
void decision_answer(struct decision *decision, struct slice line, struct splice_edit id);

/* Reads a string of at most `max` bytes into decision->named. False: it is none. */
bool decision_read_named(struct decision *decision, enum param_field field, size_t max);

/* --- what a request needs in both directions --- */

/* Refuses what cannot be recorded, at whichever answerer. */
bool decision_refused_request(struct decision *decision, const struct pending *pending);

/* True when the answerer could take the id from this sender now; *busy is then NULL or the entry
 * that was reserved for it, otherwise the request that has the id. */
bool decision_id_free(const struct decision *decision, const struct pending *pending,
                      const struct peer *answerer, struct request **busy);

#endif
