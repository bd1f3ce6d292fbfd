/* The readers of HTTP and WebSocket, stopped at any byte, in an archive. */
#ifndef STDIO_BUS_HTTP_READER_ARCHIVE_H
#define STDIO_BUS_HTTP_READER_ARCHIVE_H

#include "base/archive.h"
#include "http/reader.h"
#include "http/websocket.h"

/* Saves the reader, or loads it. `head`: the bytes of the current head; len 0: there is none. */
void http_reader_archive(struct archive *archive, struct http_reader *reader, struct slice head);

void websocket_reader_archive(struct archive *archive, struct websocket_reader *reader);

#endif
