/* The broker (RMP 4, 5, 10, 11): topics, their subscriptions, and what is published on them. It
 * does no I/O, reads no clock and knows no connection: a peer has two operations (rmp/peer.h).
 *
 * Road of a publication: topic, schema and kind of the publisher (RMP_RESULT_FORBIDDEN); its TTL
 * (RMP_RESULT_INVALID_TTL, _INVALID_EXPIRY); its expiry (RMP_RESULT_MESSAGE_EXPIRED, and one drop
 * notice). Then, for each subscription: a duplicate is dropped with a notice; all else goes to
 * ops->deliver at once, without an allocation, unless the peer is busy. For a busy peer the message
 * waits in the broker: one copy, shared by all that wait for it.
 *
 * At most queue_max messages wait for a subscription, and queue_bytes of them for its peer. A
 * message beyond that waits for room, and its publisher with it, for 50 ms at most; then it is
 * dropped for that subscription: counter, notice, RMP_RESULT_BACKPRESSURE_TIMEOUT. No other
 * subscription and no other publisher waits. While its publication waits, a connection should not
 * be read from; a publisher that continues all the same may have many waiting. For a peer that has
 * let a wait run out, no publication waits again before it has taken a message: a peer that has
 * stopped reading costs its publishers 50 ms once.
 *
 * A message whose TTL has ended while it waited is dropped as expired when it is handed over.
 *
 * Time: `time` is that of the round; it need not be exact, but now_ms must not go back. */
#ifndef STDIO_BUS_RMP_BROKER_H
#define STDIO_BUS_RMP_BROKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "rmp/memory.h"
#include "rmp/observer.h"
#include "rmp/peer.h"

#define RMP_NO_DEADLINE UINT64_MAX

struct rmp_broker;

/* NULL if out of memory. */
struct rmp_broker *rmp_broker_create(const struct rmp_broker_options *options);

/* From now on there are other limits of that name (rmp/memory.h). What is there stays. */
void rmp_broker_bound(struct rmp_broker *broker, size_t subscription_bytes, size_t key_bytes);

/* Frees all that waits and all subscriptions. Peers that have not left may be freed afterwards
 * without leaving. NULL is allowed. */
void rmp_broker_free(struct rmp_broker *broker);

/* From now on the observer hears of topics and publications; of the topics that are there, it hears
 * at once. NULL: none does. Before rmp_broker_free there must be none. */
void rmp_broker_observe(struct rmp_broker *broker, struct rmp_observer *observer);

/* --- peers --- */

/* The peer, zeroed, takes part from now on, until it leaves. */
void rmp_broker_join(struct rmp_broker *broker, struct rmp_peer *peer,
                     const struct rmp_peer_ops *ops, enum rmp_kind kind);

/* Its subscriptions end, and what waits for them is forgotten. What it has published and still
 * waits continues, without a report. */
void rmp_broker_leave(struct rmp_broker *broker, struct rmp_peer *peer);

/* The peer was busy and takes messages again: what waits for it is delivered, in order, until it is
 * busy once more. */
void rmp_broker_resume(struct rmp_broker *broker, struct rmp_peer *peer, struct rmp_time time);

/* --- subscriptions --- */

/* The peer gets what is published on the topic from now on, its own messages too. A name in use:
 * that subscription is replaced, unless it is of the same topic; then nothing changes, and
 * result.is_new is false. The outcome is RMP_RESULT_OK; RMP_RESULT_FORBIDDEN with a text (static)
 * that is why: no topic (1 to 512 bytes of UTF-8 without control characters), the
 * memory of subscriptions is used up and peer and user have their shares, or there is none;
 * RMP_RESULT_CLOSED after rmp_broker_close. */
struct rmp_result rmp_broker_subscribe(struct rmp_broker *broker, struct rmp_peer *peer,
                                       struct rmp_sub_name name, struct slice topic,
                                       struct rmp_time time);

/* Delivers a publication to this subscription alone, which must be there: an older message, that
 * comes before all that are published from now on. For a busy peer it waits in the broker, without
 * regard to queue_max and queue_bytes, as long as copies_bytes allow; else it is dropped with a
 * notice. It is neither judged nor noted as a message that duplicates are known by. */
void rmp_broker_replay(struct rmp_broker *broker, struct rmp_peer *peer, struct rmp_sub_name name,
                       const struct rmp_publication *publication, struct rmp_time time);

/* Ends the subscription; what waits for it is forgotten. `topic` is read in the dialect of frames
 * alone. Whether there was one. */
bool rmp_broker_unsubscribe(struct rmp_broker *broker, struct rmp_peer *peer,
                            struct rmp_sub_name name, struct slice topic);

/* --- publications --- */

/* Publishes. The header and the body were judged before (rmp/frame.h), but for TTL and expiry,
 * which are judged here. True: it has ended, with *result. False: it waits, and ops->published will
 * be called with `token`, 50 ms later at most, unless the peer leaves before. A text in *result is
 * static or publication->topic. */
bool rmp_broker_publish(struct rmp_broker *broker, struct rmp_peer *publisher,
                        const struct rmp_publication *publication, struct rmp_time time,
                        uint64_t token, struct rmp_result *result);

/* --- time --- */

/* The now_ms at which rmp_broker_run has to be called next; 0: as soon as this round ends;
 * RMP_NO_DEADLINE. Changes with each call of a function above. */
uint64_t rmp_broker_deadline(const struct rmp_broker *broker);

/* Ends waits whose time is over, reports those that have ended, publishes metrics, forgets what is
 * older than the horizon of duplicates. May be called at any time. */
void rmp_broker_run(struct rmp_broker *broker, struct rmp_time time);

/* Nothing is published or subscribed from now on: RMP_RESULT_CLOSED. Publications that wait end so,
 * too, at the next rmp_broker_run. What has its place in a queue is still handed over. */
void rmp_broker_close(struct rmp_broker *broker, struct rmp_time time);

/* --- for metrics, the log and tests --- */

const struct rmp_counters *rmp_broker_counters(const struct rmp_broker *broker);
struct rmp_gauges rmp_broker_gauges(const struct rmp_broker *broker);

#endif
