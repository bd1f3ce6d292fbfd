#include "build_config.h"

#include "control/service.h"

#include <stdio.h>

#include "base/error.h"
#include "bus/listeners.h"
#include "control/clients.h"
#include "monitor/metrics.h"
#include "router/router_archive.h"
#include "json/text.h"

static void *create(struct stdio_bus *bus)
{
    return control_create(bus, &control_clients_kind,
                          services_socket(&bus->options, &control_service));
}

static void destroy(void *state)
{
    control_destroy(state);
}

static unsigned descriptors(const void *state)
{
    const struct control *control = state;

    return control->socket != NULL ? CONTROL_CLIENTS_MAX + 1 : 0;
}

static void report(void *state, const struct bus_report *event)
{
    control_report(state, event);
}

static void upgraded(void *state, const char *before, const char *problem)
{
    control_upgraded(state, before, problem);
}

static const struct metric metrics[] = {
    {"stdio_bus_control_clients", "Clients of the control socket.", .always = true,
     METRIC_AT(struct control, clients.count)},
    {.name = NULL},
};

static void describe(const void *state, struct json_text *to)
{
    const struct control *control = state;

    row_number(to, "control_clients", (int64_t)control->clients.count);
}

static void limit(void *state, const struct limits *limits)
{
    (void)limits;
    control_reloaded(state);
}

static void archive(void *state, struct router_archive *to)
{
    control_clients_archive(to->archive, state);
}

static int find_socket(char path[UNIX_PATH_SIZE], const char *asked, const struct config *config,
                       struct log *log)
{
    char reason[RMP_SOCKET_REASON_MAX];

    if (asked != NULL)
        snprintf(path, UNIX_PATH_SIZE, "%s", asked);
    else if (config->control != NULL &&
             rmp_socket_expand(path, config->control, "", reason) != STDIO_BUS_OK)
        log_error(log, "", "no control socket: %s", reason); /* the configuration was checked */
    return EXIT_DONE;
}

/* For this user alone, whatever "listen" says. */
static struct access socket_access(const struct bus_options *options)
{
    (void)options;
    return (struct access)ACCESS_OWNER;
}

static const struct listener_kind listener = {.name = "control",
                                              .accepted = visitors_accepted,
                                              .visits = &control_clients_kind,
                                              .option = "control",
                                              .find = find_socket,
                                              .access = socket_access};

const struct service control_service = {
    .create = create,
    .destroy = destroy,
    .listener = &listener,
    .descriptors = descriptors,
    .report = report,
    .upgraded = upgraded,
    .metrics = metrics,
    .describe = describe,
    .limit = limit,
    .archive = ARCHIVE_OP(archive),
};
