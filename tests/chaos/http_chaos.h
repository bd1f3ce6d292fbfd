/* A chaos run over HTTP: a daemon with HTTP listeners, clients of every kind that leave, stall and
 * resume, and a checker of all that they are sent. */
#ifndef TESTS_CHAOS_HTTP_CHAOS_H
#define TESTS_CHAOS_HTTP_CHAOS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "http/event_reader.h"
#include "http/response_reader.h"
#include "json.h"
#include "run.h"
#include "text.h"

#define ACTORS 44
#define CALLS 8 /* of an actor, at once */
#define LINKS 6
#define PIPELINED 4
#define QUESTIONS 16
#define IDLE_SEC 2           /* session_idle_sec */
#define MAX_RESUME (4 << 20) /* in one run of four it is little */
#define LITTLE_RESUME 2048
#define STATELESS "2026-07-28"

/* --- requests --- */

enum call_kind {
    CALL_NONE,
    CALL_FIRST,     /* initialize */
    CALL_TELL,      /* a notification or reply */
    CALL_WORK,      /* of a session */
    CALL_GET,       /* the general stream of a session */
    CALL_DELETE,    /* the end of a session */
    CALL_STATELESS, /* of the stateless era */
    CALL_RPC,       /* a request, or an array of them */
    CALL_WEB        /* over WebSocket */
};

struct call {
    enum call_kind kind;
    unsigned id, parts; /* of an array: ids from `id` on */
    unsigned answered;  /* bits: parts of it */
    char mark[40];      /* ACTOR.LIFE.ID */
    long notes, last_note, loose;
    bool takes_json_only, cancelled, forever, asked;
    bool resumes;                      /* the request on its link is the GET that continues it */
    unsigned status;                   /* of the current response */
    char event[HTTP_EVENT_ID_MAX + 1]; /* id of the last event; "": there was none */
    struct link *link;                 /* NULL: the stream was cut */
    unsigned over_before;              /* actor->over when it was cut */
    unsigned unseen;                   /* GETs that were cut before the head of their response */
    int64_t sent_ms, next_ms;
};

/* --- connections --- */

enum web { WEB_NOT, WEB_ASKED, WEB_OPEN, WEB_CLOSING };

struct link {
    int fd; /* -1: none */
    struct actor *actor;
    struct text output, body;
    size_t written;
    bool drips;   /* writes few bytes at a time */
    bool doomed;  /* the daemon may close it */
    bool refused; /* what was sent on it is bad: the status must be an error */
    bool in_response;
    int64_t until_ms; /* does not read until then */
    int64_t used_ms;
    int64_t cut_after;             /* bytes; then it is closed. Below 0: not */
    struct call *calls[PIPELINED]; /* in the order of their responses; NULL: not checked */
    unsigned count;
    enum web web;
    struct http_response_reader reader;
    struct http_event_reader events;
};

/* --- clients --- */

enum actor_kind { SESSION, CALLER, WEB, VANDAL };
enum phase { NEW, BEGINNING, LIVE, IDLING, DRAINING, ENDING };

struct question {
    char id[160], mark[40];
};

struct actor {
    enum actor_kind kind;
    enum phase phase;
    unsigned index, life, last_id;
    const char *pool;
    bool tcp;    /* a session belongs to its listener */
    bool resets; /* closes in the way that a daemon notices at once, over TCP too */
    char session[64], tag[16];
    bool deleted, greeted, leaky; /* leaky: not all that was sent can have come */
    long expected, got;           /* notes on no stream of their own */
    unsigned over;                /* streams that have ended */
    int64_t next_ms, used_ms, deadline_ms;
    struct call calls[CALLS];
    struct link links[LINKS];
    struct question questions[QUESTIONS];
    unsigned question_count, pings, pongs;
};

struct chaos {
    struct run run;
    unsigned port;
    bool calm;      /* no more harm */
    bool forgetful; /* max_resume is little */
    int64_t last_kill_ms, stopped_until_ms;
    pid_t stopped;
    struct actor *actors;
    unsigned long long connections, sessions, lives, requests, answers, errors, events, resumed,
        cuts, lost, cancels, timeouts, refusals, ended_idle, ended_killed, busy, web_messages,
        batches;
    int64_t slowest_ms;
};

#define violation(chaos, ...) run_violation(&(chaos)->run, __VA_ARGS__)

/* --- http_subject.c: the daemon --- */

bool subject_start(struct chaos *chaos);
int subject_connect(const struct chaos *chaos, bool tcp);
void subject_harm(struct chaos *chaos);
void subject_spare(struct chaos *chaos);
void subject_stop(struct chaos *chaos);

/* --- http_link.c: connections --- */

/* A connection that serves nothing (pipelined: little), opened if need be. NULL: there is none. */
struct link *link_free(struct chaos *chaos, struct actor *actor, bool pipelined);
/* Sends a request; its response belongs to the call. */
void link_send(struct link *link, const struct text *request, struct call *call);
void link_close(struct chaos *chaos, struct link *link);
/* Responses that are on their way are for this call no more. */
void link_forget(struct actor *actor, const struct call *call);
void link_write(struct chaos *chaos, struct link *link);
void link_read(struct chaos *chaos, struct link *link);

/* --- http_talk.c: what clients do --- */

void talk_act(struct chaos *chaos, struct actor *actor);
/* Ends what the client does, without a word. */
void talk_end_life(struct chaos *chaos, struct actor *actor);
bool talk_busy(const struct actor *actor);
/* POST with this body, in chunks or whole; fields are whole lines. */
void talk_post(struct chaos *chaos, struct text *to, const char *target, const char *fields,
               const struct text *body);
struct call *talk_new_call(struct chaos *chaos, struct actor *actor, enum call_kind kind);
void talk_put_work(struct chaos *chaos, struct text *body, struct call *call, unsigned id,
                   bool stateless);

/* --- http_others.c: clients without a session --- */

void others_act(struct chaos *chaos, struct actor *actor);
/* Bytes of a connection that asked for an upgrade are in link->body. */
void others_web(struct chaos *chaos, struct link *link);

/* --- http_check.c: what clients are sent --- */

/* The response of the first call of the link: its head; an event; its end. */
void check_head(struct chaos *chaos, struct link *link);
void check_event(struct chaos *chaos, struct link *link);
void check_end(struct chaos *chaos, struct link *link);
/* The connection was cut with the call on it. */
void check_cut(struct chaos *chaos, struct actor *actor, struct call *call);
/* Checks a message in the response of the call. */
void check_message(struct chaos *chaos, struct actor *actor, struct call *call,
                   struct span message);
void check_done(struct chaos *chaos, struct actor *actor, struct call *call);

#endif
