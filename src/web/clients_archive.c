#include "build_config.h"

#include "web/clients_archive.h"

#include "base/error.h"
#include "event/timer_archive.h"
#include "http/reader_archive.h"
#include "web/clients.h"
#include "web/mcp.h"
#include "web/rpc.h"
#include "web/sessions_archive.h"
#include "web/stateless.h"

#define NO_MEMORY "out of memory"

static void archive_kept_fields(struct archive *archive, struct http_exchange *http)
{
    struct slice fields = archive_slice(archive, slice_of(http->fields, http->fields_len));

    if (!archive->saves && archive_ok(archive) &&
        http_exchange_keep_fields(http, fields) != STDIO_BUS_OK)
        archive_fail(archive, NO_MEMORY);
}

static void archive_kind(struct archive *archive, struct http_exchange *http)
{
    static const struct http_kind *const kinds[] = {NULL, &http_mcp_kind, &http_session_kind,
                                                    &http_stateless_kind, &http_rpc_kind};
    const unsigned last = sizeof kinds / sizeof kinds[0] - 1;
    unsigned kind = 0;

    if (archive->saves) {
        while (kinds[kind] != http->kind)
            kind++;
    }
    ARCHIVE_ENUM(archive, kind, last);
    http->kind = kinds[kind];
}

static void archive_kept(struct archive *archive, struct http_exchange *http)
{
    bool has_mcp = http->mcp != NULL, has_rpc = http->rpc != NULL;

    archive_flag(archive, &has_mcp);
    archive_flag(archive, &has_rpc);
    archive_expect(archive, has_rpc == (http->kind == &http_rpc_kind),
                   "a request has another kind");
    if (!archive_ok(archive))
        return;
    if (has_mcp)
        http_mcp_archive(archive, http);
    if (has_rpc)
        http_rpc_archive(archive, http);
}

static void archive_flags(struct archive *archive, struct http_exchange *http)
{
    ARCHIVE_ENUM(archive, http->state, HTTP_STREAMING);
    archive_flag(archive, &http->chunked);
    archive_flag(archive, &http->closes);
    archive_flag(archive, &http->waits);
    archive_flag(archive, &http->is_head);
    archive_flag(archive, &http->spoke);
    archive_flag(archive, &http->takes_json);
    archive_flag(archive, &http->takes_events);
    archive_flag(archive, &http->is_notice);
    ARCHIVE_INTEGER(archive, http->requests);
    ARCHIVE_INTEGER(archive, http->token);
}

/* Its session, and the stream that it serves. */
static void archive_place(struct archive *archive, struct http_exchange *http)
{
    struct http_session *session = http_sessions_archive_one(archive, http->hub, http->session);
    struct http_stream *stream = http->stream;
    bool is_attached = stream != NULL;

    archive_flag(archive, &is_attached);
    archive_expect(archive, (session != NULL) == (http->kind == &http_session_kind),
                   "a request has another kind");
    archive_expect(archive, session != NULL || !is_attached, "a stream has no session");
    if (!archive_ok(archive) || session == NULL)
        return;
    if (is_attached)
        stream = http_sessions_archive_stream(archive, session, stream);
    if (archive->saves || !archive_ok(archive))
        return;
    http->session = session;
    list_append(&session->exchanges, &http->in_session);
    archive_expect(archive, stream == NULL || stream->http == NULL, "a stream has two connections");
    if (stream != NULL && archive_ok(archive))
        http_stream_attach(stream, http);
}

static void archive_reader(struct archive *archive, struct client *client)
{
    const struct connection *connection = &client->stream.connection;
    struct http_reader *reader = &client->http->reader;
    const struct buffer *input = connection->input;
    struct slice head = slice_of(NULL, 0);

    /* A connection that reads nothing more has dropped its input, amid a batch perhaps. */
    if (archive->saves && (input == NULL || buffer_len(input) < reader->clean + reader->gap))
        reader->clean = reader->gap = 0;
    if (connection->at_hand > 0 && client->http->waits)
        head = slice_of(input->data + input->start, connection->at_hand);
    http_reader_archive(archive, reader, head);
    archive_expect(archive,
                   reader->clean <= SIZE_MAX - reader->gap &&
                       reader->clean + reader->gap <= (input != NULL ? buffer_len(input) : 0),
                   "a body is beyond its input");
}

void http_clients_archive(struct router_archive *state, struct http_hub *hub, struct client *client)
{
    struct archive *archive = state->archive;
    struct stream_options options = {.handler = NULL};
    struct http_exchange *http = client->http;

    if (http == NULL && (http = http_clients_prepare(&options)) == NULL) {
        archive_fail(archive, NO_MEMORY);
        return;
    }
    stream_archive(archive, &client->stream, &hub->bus->transport, &options);
    if (!archive->saves)
        http_clients_open(client, http, hub);
    archive_mark(archive, "http");
    archive_flags(archive, http);
    archive_kept_fields(archive, http);
    archive_kind(archive, http);
    archive_kept(archive, http);
    router_archive_group(state, &http->pool);
    archive_place(archive, http);
    if (archive_ok(archive))
        archive_reader(archive, client);
    timer_archive(archive, hub->bus->loop, &http->timer);
}
