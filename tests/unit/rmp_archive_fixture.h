/* For tests of the RMP broker's archive: another broker that continues from it. */
#ifndef CHECK_RMP_ARCHIVE_FIXTURE_H
#define CHECK_RMP_ARCHIVE_FIXTURE_H

#include "rmp/broker_archive.h"
#include "rmp_broker_fixture.h"

static inline void archive_all(struct archive *archive)
{
    struct rmp_archive state;

    rmp_archive_begin(&state, archive, broker);
    for (int i = 0; i < PEERS; i++)
        rmp_archive_peer(&state, &peers[i].peer);
    rmp_archive_topics(&state);
    rmp_archive_queues(&state);
    rmp_archive_end(&state);
    archive_mark(archive, "end");
}

/* The bytes are the archive's. */
static inline struct slice save_broker(struct archive *archive)
{
    archive_begin_saving(archive);
    archive_all(archive);
    ck_assert_ptr_null(archive->problem);
    return slice_of(archive->data, archive->len);
}

/* A broker with another key in place of the one that there was. */
static inline void replace_broker(const struct rmp_broker_options *options)
{
    struct rmp_broker_options other = *options;

    rmp_broker_free(broker);
    other.key.k0++;
    broker = rmp_broker_create(&other);
    ck_assert_ptr_nonnull(broker);
    for (int i = 0; i < PEERS; i++)
        rmp_broker_join(broker, &peers[i].peer, &test_ops, RMP_KIND_AGENT);
}

/* Into a broker that is new. Returns the problem, or NULL. */
static inline const char *load_archive(struct slice archived)
{
    struct archive archive;
    const char *problem;

    archive_begin_loading(&archive, archived, -1);
    archive_all(&archive);
    problem = archive.problem;
    archive_free(&archive);
    return problem;
}

#endif
