#include "build_config.h"

#include "federation/links_archive.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bus/clients.h"
#include "federation/link.h"
#include "federation/link_sessions.h"
#include "federation/links.h"
#include "federation/remotes.h"

static void archive_remote(struct archive *archive, struct nats_link *link)
{
    struct slice id = slice_of(NULL, 0);
    char node[NATS_NODE_ID_LEN + 1] = "";

    if (link->remote != NULL)
        id = slice_of_text(link->remote->id);
    if (archive->saves && link->remote != NULL)
        snprintf(node, sizeof node, "%s", link->remote->node);
    id = archive_slice(archive, id);
    archive_text(archive, node, sizeof node);
    if (!archive_loads(archive) || id.len == 0)
        return;
    link->remote = remotes_get(link->hub, id, node);
    archive_made(archive, link->remote != NULL);
}

static void archive_node(struct archive *archive, struct nats_link *link)
{
    struct node_address address = {.number = 0};

    if (!archive_present(archive, link->node != NULL))
        return;
    if (archive->saves) {
        snprintf(address.id, sizeof address.id, "%s", link->node->id);
        snprintf(address.name, sizeof address.name, "%s", link->node->name);
    }
    archive_text(archive, address.id, sizeof address.id);
    archive_text(archive, address.name, sizeof address.name);
    if (!archive_loads(archive))
        return;
    link->node = nodes_get(link->hub, &address);
    if (archive_made(archive, link->node != NULL))
        list_append(&link->node->links, &link->in_node);
}

static void archive_socket(struct archive *archive, struct nats_link *link)
{
    int fd = link->fd;

    archive_fd(archive, &fd);
    if (archive_loads(archive) && fd >= 0 && link_attach(link, fd) != STDIO_BUS_OK)
        archive_fail(archive, strerror(errno));
}

static void archive_link(struct archive *archive, void *owner, void *item)
{
    static const struct archive_field fields[] = {
        ARCHIVE_INTEGERS(struct nats_link, peer_number, mark, acked_before, since_ms, declined,
                         overflow),
        ARCHIVE_CHOICE(struct nats_link, state, LINK_CUT),
        ARCHIVE_FLAGS(struct nats_link, is_shut),
    };
    struct nats_hub *hub = owner;
    struct nats_link *link = item;
    uint64_t number;

    archive_mark(archive, "natslink");
    number = archive_number(archive, link != NULL ? link->number : 0, hub->links.last_number);
    if (link == NULL && archive_ok(archive))
        link = link_new(hub, number);
    if (!archive_ok(archive) || !archive_made(archive, link != NULL))
        return;
    ARCHIVE_FIELDS(archive, link, fields);
    link_stream_archive(archive, &link->stream);
    archive_remote(archive, link);
    archive_node(archive, link);
    archive_expect(archive, (link->state == LINK_LINKED) == (link->node != NULL),
                   "a link has no node");
    archive_socket(archive, link);
}

/* Those of the links. */
static void set_handlers(struct stdio_bus *bus)
{
    struct list_node *node, *following;

    list_each(&bus->clients.list, node, following) {
        struct stream *stream = &client_at(node)->stream;

        if (stream->endpoint.peer.is_link)
            stream->handler = &link_sessions_handler;
    }
}

void nats_links_archive(struct archive *archive, struct nats_hub *hub)
{
    static const struct archive_field fields[] = {
        ARCHIVE_INTEGERS(struct nats_links, last_number, counters.opened, counters.declined,
                         counters.broken),
        ARCHIVE_TEXTS(struct nats_links, id),
    };
    struct nats_links *links = &hub->links;

    archive_mark(archive, "natlinks");
    ARCHIVE_FIELDS(archive, links, fields);
    archive_expect(archive, strlen(links->id) == NATS_NODE_ID_LEN, "the id of a node is none");
    ARCHIVE_LIST(archive, &links->all, struct nats_link, in_all, archive_link, hub);
    if (!archive_loads(archive))
        return;
    set_handlers(hub->bus);
    nats_links_name(hub);
    links->lost_ms = stdio_bus_event_loop_now_ms(hub->bus->loop);
    if (links->count > 0)
        nodes_start_tick(hub);
}
