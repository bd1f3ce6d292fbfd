#include "build_config.h"

#include "config/difference.h"

#include <string.h>

bool difference_of_texts(const char *before, const char *after)
{
    if (before == NULL || after == NULL)
        return before != after;
    return strcmp(before, after) != 0;
}

/* Two lists that end with NULL. */
static bool lists_differ(char *const *before, char *const *after)
{
    size_t i = 0;

    while (before[i] != NULL && after[i] != NULL && strcmp(before[i], after[i]) == 0)
        i++;
    return before[i] != after[i];
}

static bool programs_differ(const struct pool_config *before, const struct pool_config *after)
{
    return lists_differ(before->argv, after->argv) || lists_differ(before->envp, after->envp) ||
           difference_of_texts(before->cwd, after->cwd) ||
           before->no_new_privs != after->no_new_privs || before->no_core != after->no_core ||
           before->logs_stderr != after->logs_stderr;
}

/* All of it but the numbers that may change while requests are in flight. Whether there is a time
 * limit at all decides what is noted of a request. */
static bool modes_differ(const struct pool_mode *before, const struct pool_mode *after)
{
    return before->clients != after->clients || before->protocol != after->protocol ||
           before->stateless != after->stateless || before->on_exit != after->on_exit ||
           before->session_in_params != after->session_in_params ||
           before->by_name != after->by_name || before->rewrite_ids != after->rewrite_ids ||
           before->frugal != after->frugal || before->is_front != after->is_front ||
           (before->request_timeout_sec > 0) != (after->request_timeout_sec > 0);
}

static bool sharing_differs(const struct pool_config *before, const struct pool_config *after)
{
    return modes_differ(&before->mode, &after->mode) || before->framing != after->framing ||
           before->skip_bad_output != after->skip_bad_output;
}

enum pool_change difference_of_pools(const struct pool_config *before,
                                     const struct pool_config *after)
{
    if (sharing_differs(before, after))
        return POOL_SHARING;
    return programs_differ(before, after) ? POOL_PROGRAM : POOL_SAME;
}

bool difference_same_place(const struct listen_address *one, const struct listen_address *other)
{
    if (one->kind != other->kind || one->is_unix != other->is_unix ||
        strcmp(one->fd_name, other->fd_name) != 0)
        return false;
    if (one->is_unix)
        return strcmp(one->path, other->path) == 0;
    return one->port == other->port && strcmp(one->host, other->host) == 0;
}

bool difference_of_access(const struct access *before, const struct access *after)
{
    return before->mode != after->mode || before->has_group != after->has_group ||
           (after->has_group && before->group != after->group);
}

static bool histories_differ(const struct rmp_config *before, const struct rmp_config *after)
{
    return difference_of_texts(before->history, after->history) ||
           before->history_sync != after->history_sync ||
           before->history_events != after->history_events ||
           before->history_run_bytes != after->history_run_bytes ||
           before->history_runs != after->history_runs ||
           before->history_bytes != after->history_bytes ||
           before->history_sec != after->history_sec;
}

bool difference_of_rmp(const struct rmp_config *before, const struct rmp_config *after)
{
    return histories_differ(before, after) || before->enabled != after->enabled ||
           difference_of_texts(before->socket_path, after->socket_path) ||
           difference_of_texts(before->sockets_dir, after->sockets_dir) ||
           before->max_body != after->max_body || before->max_ttl_ms != after->max_ttl_ms ||
           before->metrics_interval_ms != after->metrics_interval_ms ||
           before->validate != after->validate || before->ui.uid_count != after->ui.uid_count;
}
