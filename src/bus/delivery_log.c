#include "build_config.h"

#include "bus/delivery_log.h"

#include <stdio.h>

#include "endpoint/endpoint.h"
#include "router/record.h"

/* Where ids are rewritten: the id by which the destination knows the request. Otherwise "". */
static const char *other_id(char to[80], const struct decision *decision)
{
    const struct request *request = decision->recorded;
    struct message_id id;
    char text[64];

    to[0] = '\0';
    if (request == NULL)
        request = decision->answered;
    if (request == NULL || !request->rewritten)
        return to;
    id = decision->recorded != NULL ? request->answerer_id : request->asker_id;
    (void)snprintf(to, 80, " as id %s", log_escape(text, sizeof text, id.text));
    return to;
}

void delivery_log(const struct decision *decision, struct stdio_bus *bus, bool warns,
                  const char *done, const char *between, const char *text)
{
    const struct message *message = decision->message;
    const char *from = endpoint_of_peer(decision->from)->context, *id_text = "none",
               *session_text = "none";
    char id[64], session[64];

    if (message->id.type != ID_NONE)
        id_text = log_escape(id, sizeof id, message->id.text);
    if (message->session_id.data != NULL)
        session_text = log_escape(session, sizeof session, message->session_id);
    if (warns)
        log_warn(bus->log, from, "%s a message (id %s, sessionId %s)%s%s", done, id_text,
                 session_text, between, text);
    else
        log_debug(bus->log, from, "%s a message (id %s, sessionId %s)%s%s", done, id_text,
                  session_text, between, text);
}

void delivery_log_forwarded(const struct decision *decision, struct stdio_bus *bus, const char *to)
{
    char text[192], id[80];

    (void)snprintf(text, sizeof text, "%s%s", to, other_id(id, decision));
    delivery_log(decision, bus, false, "forwarding", " to ", text);
}

void delivery_log_moved_session(const struct decision *decision, struct stdio_bus *bus)
{
    const struct slice id = decision->answered->extras->names;
    char session[64];

    log_repeated(bus->log, LOG_LEVEL_INFO, endpoint_of_peer(decision->former_owner)->context,
                 LOG_NO_SOURCE, "lost the session %s: %s has loaded it",
                 log_escape(session, sizeof session, id), endpoint_of_peer(decision->to)->context);
}
