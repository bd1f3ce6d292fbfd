/* A chaos run on the topic bus: a daemon with --rmp, peers that misbehave at random in both
 * dialects, and a checker of all that they are told. */
#ifndef TESTS_CHAOS_RMP_CHAOS_H
#define TESTS_CHAOS_RMP_CHAOS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "rmp/frame.h"
#include "run.h"
#include "text.h"

#define PEERS 36
#define SUBSCRIPTIONS 6 /* of each peer */
#define TOPICS 10
#define BODY_MAX (24 << 10)
#define TTL_MAX_MS 60000          /* rmp.max_ttl_ms */
#define FRAME_BODY_MAX (96 << 10) /* rmp.max_body */
#define OUTPUT_QUEUE (64 << 10)   /* max_output_queue */
#define BACKPRESSURE_SEC 3        /* backpressure_timeout_sec */
#define KEPT ((uint64_t)1 << 16)  /* publications that are known */
#define SLOTS 1024                /* subscriptions that are told apart */
#define MUSTS 4096
#define ASKED 256

/* --- what was published --- */

enum told { TOLD_NOTHING, TOLD_OK, TOLD_ERROR, TOLD_MAYBE };

/* Times of what peers do are counted in events: what has the lower number was before. */
struct publication {
    uint64_t number;         /* also in its body; its place in the ledger is number % KEPT */
    uint64_t previous;       /* number of the one before with the same key; 0: none */
    uint64_t last;           /* of the first one of a key: the number of the last one */
    uint64_t first;          /* number of the first one of this key */
    uint64_t sent, answered; /* events; answered is 0 while it is not */
    uint64_t connection;     /* of the publisher */
    uint64_t body_hash;
    struct rmp_header header;
    unsigned publisher, topic;
    enum told told;
    uint64_t got[SLOTS / 64]; /* by slot of the subscription */
};

/* --- peers --- */

struct subscription {
    bool live, frames, tested; /* tested: it has got something */
    unsigned topic, slot;
    uint64_t sub_id;
    uint64_t asked, answered; /* events */
    uint64_t ended;           /* the event of Unsubscribe, or of its replacement; 0: none */
    uint64_t last_of[PEERS];  /* number of the last message of each publisher */
    uint64_t musts[MUSTS];    /* numbers of what it has to get, in the order of the answers */
    unsigned first_must, must_count;
};

enum ask { ASK_HELLO, ASK_SUBSCRIBE, ASK_UNSUBSCRIBE, ASK_PUBLISH, ASK_BAD };

/* What a peer has sent and waits for. */
struct asked {
    enum ask ask;
    bool frames, optional; /* optional: it is answered only after an error */
    uint64_t id;           /* id of the command, or the low half of the frame's trace_id */
    uint64_t number;       /* of the publication */
    uint64_t event;
    const char *error; /* must be in the answer; NULL: Ok, or what may always come */
    struct subscription *subscription;
};

enum manners { READS, READS_SLOWLY, READS_NOTHING };

struct peer {
    int fd; /* -1: not connected */
    unsigned index;
    uint64_t connection;
    bool frames; /* the dialect that it prefers */
    enum manners manners;
    int64_t until_ms;         /* then it reads again */
    int64_t next_ms;          /* the next act */
    int64_t read_ms, head_ms; /* the last read; since when the first of `asked` is the first */
    bool half_closed, doomed; /* doomed: the daemon has to close it */
    bool stalled;             /* it may have been closed for not reading */
    struct text output, input;
    size_t written, output_hold;              /* output_hold: bytes that are written later */
    uint64_t received;                        /* bytes */
    uint64_t sample_at, sample_ms, handed_ms; /* what begins at byte sample_at was sent later */
    struct subscription subscriptions[SUBSCRIPTIONS];
    struct asked asked[ASKED];
    unsigned first_asked, asked_count;
};

struct counters {
    uint64_t ttl, duplicate, backpressure;
};

struct request { /* to an agent, or to the runner; by trace */
    uint64_t trace;
    bool sure, answered;
    int64_t until_ms;
};

#define REQUESTS 4096

struct chaos {
    struct run run;
    bool calm; /* no more harm */
    uint64_t event, last_number, last_id, last_connection, last_slot;
    unsigned long long delivered, published, connections;
    unsigned long long told_ok, told_errors, told_timeouts, agent_answers, closed_slow;
    struct publication *ledger;
    struct peer *peers;
    struct counters seen, known; /* drops that peers noticed; that the daemon counts */
    uint64_t gauges[4]; /* subscriptions, queued messages and bytes, publications waiting */
    uint64_t snapshots;
    struct request *requests; /* by number % REQUESTS */
    uint64_t request_count;
    int64_t slowest_ms;
};

extern const char *const topic_names[TOPICS];

#define violation(chaos, ...) run_violation(&(chaos)->run, __VA_ARGS__)

uint64_t epoch_ms(void);

/* --- rmp_subject.c: the daemon --- */

bool subject_start(struct chaos *chaos);
void subject_kill_worker(struct chaos *chaos);
void subject_stop(struct chaos *chaos);

/* --- rmp_ledger.c: what has to come, and what must not --- */

/* A new publication; `repeated` is the number of the one whose key it takes, or 0. */
struct publication *ledger_publish(struct chaos *chaos, const struct peer *peer, unsigned topic,
                                   uint64_t repeated);
struct publication *ledger_find(const struct chaos *chaos, uint64_t number);
void ledger_answered(struct chaos *chaos, struct publication *publication, enum told told);
uint64_t ledger_hash(const char *bytes, size_t len);

/* A message came: its header and body; sub_id in the dialect of commands. */
struct arrival {
    bool frames;
    uint64_t sub_id, offset; /* offset: its first byte in the stream */
    struct rmp_header header;
    struct slice body;
};
void ledger_arrived(struct chaos *chaos, struct peer *peer, const struct arrival *arrival);

/* Whether a subscription of the peer still has to get something; `number` is that of one. */
bool ledger_lacks(struct chaos *chaos, const struct peer *peer, uint64_t *number);

/* --- rmp_peer.c: connections --- */

bool peer_connect(struct chaos *chaos, struct peer *peer);
void peer_close(struct chaos *chaos, struct peer *peer);
void peer_write(struct chaos *chaos, struct peer *peer);
void peer_read(struct chaos *chaos, struct peer *peer);
void peer_ask(struct chaos *chaos, struct peer *peer, const struct asked *asked);
void peer_check(struct chaos *chaos, struct peer *peer);

/* --- rmp_answers.c: what the daemon says --- */

/* A whole payload, which began at byte `offset` of the stream. */
void answers_take(struct chaos *chaos, struct peer *peer, struct slice payload, uint64_t offset);

/* --- rmp_talk.c: what peers say --- */

void talk_hello(struct chaos *chaos, struct peer *peer, bool frames);
void talk_subscribe(struct chaos *chaos, struct peer *peer, unsigned topic);
void talk_unsubscribe(struct chaos *chaos, struct peer *peer);
void talk_publish(struct chaos *chaos, struct peer *peer);

/* Ids of frames differ from the numbers of publications, which are trace_ids too. */
uint64_t talk_next_id(struct chaos *chaos);
void talk_send_json(struct chaos *chaos, struct peer *peer, const struct text *json);
/* Frees the frame. */
void talk_send_frame(struct chaos *chaos, struct peer *peer, char *frame, size_t len);
/* The command Publish. */
void talk_put_publish(struct text *json, uint64_t id, const char *topic,
                      const struct rmp_header *header, const struct text *body);

/* --- rmp_bad_talk.c: what is refused --- */

void talk_badly(struct chaos *chaos, struct peer *peer);

/* --- rmp_asker.c: the first peer, which behaves, asks agents and watches --- */

void asker_begin(struct chaos *chaos);
void asker_ask(struct chaos *chaos);
void asker_take(struct chaos *chaos, const struct arrival *arrival);
void asker_check(struct chaos *chaos, bool at_end);

#endif
