#include "build_config.h"

#include "log.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "deadline.h"

void log_refresh(struct daemon *daemon)
{
    int fd = open(daemon->log_path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t n;
    do {
        n = pread(fd, text_room(&daemon->log, 65536), 65536, (off_t)daemon->log.len);
        if (n > 0)
            daemon->log.len += (size_t)n;
    } while (n > 0);
    *text_room(&daemon->log, 1) = '\0';
    close(fd);
}

/* Counts matching lines; the last one is put into daemon->line. */
static size_t count_matches(struct daemon *daemon, const char *pattern, bool first_only)
{
    regex_t regex;
    size_t count = 0;
    log_refresh(daemon);
    ck_assert_int_eq(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
    const char *at = daemon->log.len > 0 ? daemon->log.data + daemon->log_mark : "", *newline;
    while ((newline = strchr(at, '\n')) != NULL) {
        daemon->line.len = 0;
        text_add(&daemon->line, at, (size_t)(newline - at));
        at = newline + 1;
        if (regexec(&regex, daemon->line.data, 0, NULL, 0) == 0) {
            count++;
            if (first_only)
                break;
        }
    }
    regfree(&regex);
    return count;
}

const char *daemon_wait_log(struct daemon *daemon, const char *pattern)
{
    int64_t deadline = deadline_usual();
    while (count_matches(daemon, pattern, true) == 0) {
        bool ended = daemon_has_ended(daemon);
        if (ended && count_matches(daemon, pattern, true) > 0)
            break;
        ck_assert_msg(!ended, "the daemon ended before it logged: %s", pattern);
        ck_assert_msg(!deadline_over(deadline), "not logged: %s", pattern);
        nap();
    }
    return daemon->line.data;
}

bool daemon_logged(struct daemon *daemon, const char *pattern)
{
    return count_matches(daemon, pattern, true) > 0;
}

size_t daemon_count_log(struct daemon *daemon, const char *pattern)
{
    return count_matches(daemon, pattern, false);
}

void daemon_mark_log(struct daemon *daemon)
{
    log_refresh(daemon);
    daemon->log_mark = daemon->log.len;
}
