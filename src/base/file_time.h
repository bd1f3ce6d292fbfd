/* When a file was changed last: as exact as the system tells, POSIX and macOS by other names. */
#ifndef STDIO_BUS_BASE_FILE_TIME_H
#define STDIO_BUS_BASE_FILE_TIME_H

#include <sys/stat.h>
#include <time.h>

static inline struct timespec file_time(const struct stat *status)
{
#ifdef HAVE_STRUCT_STAT_ST_MTIM_TV_NSEC
    return status->st_mtim;
#elif defined HAVE_STRUCT_STAT_ST_MTIMESPEC_TV_NSEC
    return status->st_mtimespec;
#else
    return (struct timespec){.tv_sec = status->st_mtime};
#endif
}

#endif
