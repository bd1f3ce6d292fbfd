#include "build_config.h"

#include "topics/client.h"

#include "base/error.h"

void rmp_client_send(struct rmp_client *client, struct slice frame)
{
    struct slice payload = {frame.data + RMP_PREFIX_LEN, frame.len - RMP_PREFIX_LEN};

    if (connection_send_body(&client->connection, NULL, payload, NULL, 0) == STDIO_BUS_OK)
        return;
    log_error(client->hub->bus->log, client->context, "out of memory: an answer was lost");
    client->lacks_answer = true;
    if (!list_linked(&client->ready))
        list_append(&client->hub->ready, &client->ready);
    stdio_bus_event_loop_start_timer(client->hub->bus->loop, &client->hub->retry, 0);
}

/* Two numbers are no user's: (uid_t)-1, and the one before it for the room of the first two. */
uint32_t rmp_client_user(const struct origin *origin)
{
    uint64_t uid = origin->has_credentials ? (uint64_t)origin->uid : UINT32_MAX;

    return uid <= UINT32_MAX - RMP_USERS ? (uint32_t)uid + RMP_USERS : RMP_USER_UNKNOWN;
}

static bool is_ui(const struct rmp_client *client)
{
    const struct access *ui = &client->hub->bus->options.config->rmp.ui;

    return ui->uid_count > 0 && client->visitor.origin.has_credentials &&
           access_allows(ui, client->visitor.origin.uid);
}

enum rmp_kind rmp_client_set_kind(struct rmp_client *client, enum rmp_kind kind)
{
    if (kind != RMP_KIND_AGENT && !is_ui(client)) {
        log_repeated(client->hub->bus->log, LOG_LEVEL_WARN, client->context,
                     origin_name(&client->visitor.origin),
                     "is an agent, whatever it says: %s is not one of rmp.ui_uids",
                     client->visitor.origin.text);
        kind = RMP_KIND_AGENT;
    }
    client->peer.kind = kind;
    return kind;
}

bool rmp_client_publish(struct rmp_client *client, const struct rmp_publication *publication,
                        const struct rmp_asked *asked, struct rmp_result *result)
{
    struct rmp_hub *hub = client->hub;

    if (rmp_broker_publish(hub->broker, &client->peer, publication, rmp_hub_time(hub), 0, result))
        return true;
    client->asked = *asked;
    return false;
}
