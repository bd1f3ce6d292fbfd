#include "build_config.h"

#include "bus/token_reload.h"

#include "base/error.h"
#include "bus/clients.h"
#include "bus/listeners.h"
#include "bus/origins.h"
#include "bus/service.h"
#include "transport/origin.h"

#define LOOK_MS 1000 /* between two looks at a file */

/* A token that is gone opens nothing any more, and what it has opened is closed. */
static size_t disconnect_revoked(const struct bus_listener *listener, const struct client *but)
{
    struct list_node *node, *following;
    size_t count = 0;

    list_each(&listener->bus->clients.list, node, following) {
        struct client *client = client_at(node);

        if (client != but && client->listener == listener && client->token != 0 &&
            !tokens_has(&listener->tokens, client->token)) {
            clients_remove(client, "its token is no longer valid");
            count++;
        }
    }
    each_service(listener->bus, at, end_revoked)
        at.service->end_revoked(at.state, listener);
    return count;
}

/* With a file that cannot be read, the tokens of before stay valid: an editor may be about to
 * replace it. */
static void look(struct bus_listener *listener, const struct client *showing, bool is_other)
{
    struct log *log = listener->bus->log;
    const char *path = listener->config->token_file;
    char reason[TOKEN_REASON_MAX];
    const unsigned last_serial = listener->tokens.last_serial;
    const size_t count = listener->tokens.count;

    listener->tokens_looked_ms = stdio_bus_event_loop_now_ms(listener->bus->loop);
    if (!is_other && !tokens_changed(&listener->tokens, path))
        return;
    if (tokens_read(&listener->tokens, path, reason) != STDIO_BUS_OK) {
        log_repeated(log, LOG_LEVEL_ERROR, "", slice_of_text(path),
                     "cannot use the token file %s, going on with the tokens of before: %s", path,
                     reason);
        return;
    }
    if (listener->tokens.last_serial == last_serial && listener->tokens.count == count)
        return; /* the same tokens: each other one has a new number */
    log_info(log, "", "read the token file %s again: %zu tokens, %zu connections closed", path,
             listener->tokens.count, disconnect_revoked(listener, showing));
}

static const struct tokens *tokens_for(const struct client *client)
{
    struct bus_listener *listener = client->listener;

    if (stdio_bus_event_loop_now_ms(listener->bus->loop) - listener->tokens_looked_ms >= LOOK_MS)
        look(listener, client, false);
    return &listener->tokens;
}

const struct named_token *token_reload_find(const struct client *client, struct slice token)
{
    return tokens_find(tokens_for(client), token);
}

const struct named_token *token_reload_find_escaped(const struct client *client, struct slice raw)
{
    return tokens_find_escaped(tokens_for(client), raw);
}

/* Fair shares are those of users, who may all come from the address of one proxy. A reservation of
 * memory counts for the origin that it was begun by. */
static void become_user(struct client *client, const char *name)
{
    struct peer *peer = &client->stream.endpoint.peer;
    struct stdio_bus *bus = client->listener->bus;
    struct peer_origin *before = peer->origin, *present;
    struct origin origin = client->visitor.origin;

    origin_of_token(&origin, client->listener->config->token_file, name);
    if (origin_equal(&origin, &client->visitor.origin) || client->stream.connection.reserved > 0)
        return;
    present = origins_get(bus, &origin);
    if (present == NULL)
        return;
    router_move_client(&bus->router, peer, present);
    connection_set_origin(&client->stream.connection, origins_transport(present));
    origins_release(before);
    client->visitor.present = present;
    client->visitor.origin = origin;
}

void token_reload_note(struct client *client, const struct named_token *token)
{
    bool is_known = client->token == token->serial;

    client->token = token->serial;
    if (is_known || token->name[0] == '\0')
        return;
    become_user(client, token->name);
    log_debug(client->listener->bus->log, client->stream.endpoint.context,
              "its token is that of %s", token->name);
}

void token_reload_all(struct stdio_bus *bus)
{
    struct list_node *node, *following;

    list_each(&bus->listeners, node, following) {
        struct bus_listener *listener = list_entry(node, struct bus_listener, link);

        if (listener_asks_token(listener) && !listener->is_gone)
            look(listener, NULL, false);
    }
}

void token_reload_file(struct bus_listener *listener, bool is_other)
{
    look(listener, NULL, is_other);
}
