/* Ids and headers in an archive. */
#ifndef STDIO_BUS_RMP_HEADER_ARCHIVE_H
#define STDIO_BUS_RMP_HEADER_ARCHIVE_H

#include "base/archive.h"
#include "rmp/frame.h"

static inline void rmp_id_archive(struct archive *archive, struct rmp_id *id)
{
    ARCHIVE_INTEGER(archive, id->high);
    ARCHIVE_INTEGER(archive, id->low);
}

static inline void rmp_header_archive(struct archive *archive, struct rmp_header *header)
{
    ARCHIVE_INTEGER(archive, header->schema_id);
    ARCHIVE_INTEGER(archive, header->body_len);
    ARCHIVE_INTEGER(archive, header->created_at_ms);
    ARCHIVE_INTEGER(archive, header->ttl_ms);
    rmp_id_archive(archive, &header->trace_id);
    ARCHIVE_INTEGER(archive, header->msg_id);
}

#endif
