/* The daemons of shared servers that run, as --list shows them. */
#ifndef STDIO_BUS_SHARE_SHARES_H
#define STDIO_BUS_SHARE_SHARES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "share/daemon.h"
#include "share/directory.h"
#include "share/usage.h"
#include "json/document.h"
#include "json/text.h"

/* A daemon that has answered. */
struct share {
    char base[DAEMON_BASE_MAX]; /* of its files */
    char *reply;
    struct document status; /* what the reply says */
};

struct shares {
    struct share *at; /* the oldest first */
    size_t count, capacity;
    bool is_quiet; /* nothing is printed */
};

/* Of zeroed shares, but for is_quiet: shares_find in the directory of the shared servers, whose
 * path is stored and which is the working directory from now on; if it is not there, none is
 * shared. Another status than STDIO_BUS_OK with a line of explanation in `reason`: to be freed all
 * the same. */
int shares_open(struct shares *shares, char directory[DIRECTORY_MAX],
                char reason[DIRECTORY_REASON_MAX]);

/* Asks each daemon whose socket is in the working directory. Why one is left out is printed to
 * stderr, unless it was about to end or the list is quiet. STDIO_BUS_ERR with errno set when the
 * directory cannot be read or this program lacks memory or descriptors: to be freed all the
 * same. */
int shares_find(struct shares *shares);

void shares_free(struct shares *shares);

/* Sends a line (share/greeting.h) to the daemon of this name, in the working directory, and reads
 * the status that it answers. False with errno set; EBADMSG: the reply is no status. To be freed
 * all the same. */
bool share_ask(struct share *share, const char *base, const char *line);

/* Whether this error of share_ask says that the daemon has ended. */
bool share_has_ended(int error);

void share_free(struct share *share);

/* The member of the status; NULL if there is none of this type. */
const struct json_value *share_member(const struct share *share, const char *key,
                                      enum json_type type);

/* The member as a number; 0 if it is none. */
int64_t share_number(const struct share *share, const char *key);

/* Writes the member, if it is a string, and otherwise null. */
void share_write_text(struct json_text *text, const struct share *share, const char *key);

/* Without the values of variables. */
struct slice share_identity(const struct share *share);

/* Resident memory in KiB of the daemon, its workers and their children; their number, without the
 * daemon, is stored. -1 where the system does not say: then the workers are counted. */
long share_usage(const struct share *share, const struct usage *usage, size_t *processes);

/* The first daemon from `from` on with the command of the one at `first`; count: there is none. */
size_t shares_alike(const struct shares *shares, size_t first, size_t from);

/* --- Files that daemons of long ago have left in the directory of the shared servers. --- */

/* Removes the sockets and logs of the working directory that are older than a week and have no
 * daemon. The caller has the lock of the directory: no other client starts a daemon meanwhile. What
 * cannot be removed stays. */
void tidy_directory(void);

#endif
