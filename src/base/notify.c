#include "build_config.h"

#include "base/notify.h"

#include <string.h>
#include <unistd.h>

#include "base/error.h"

#define NUMBER_MAX (INT64_MAX / 1000)

/* The decimal number, or 0 for anything else. */
static int64_t number_of(const char *text)
{
    int64_t number = 0;

    for (; *text >= '0' && *text <= '9' && number < NUMBER_MAX / 10; text++)
        number = number * 10 + (*text - '0');
    return *text == '\0' ? number : 0;
}

static int64_t watchdog_of(const struct notify_variables *variables)
{
    int64_t usec;

    if (variables->watchdog_usec == NULL)
        return 0;
    if (variables->watchdog_pid != NULL && number_of(variables->watchdog_pid) != (int64_t)getpid())
        return 0;
    usec = number_of(variables->watchdog_usec);
    return usec > 0 && usec < 2000 ? 2 : usec / 1000;
}

int notify_open(struct notify *notify, const struct notify_variables *variables)
{
    *notify = (struct notify){.to = {.fd = -1}};
    if (variables->socket == NULL || variables->socket[0] == '\0')
        return STDIO_BUS_ENOTFOUND;
    notify->watchdog_ms = watchdog_of(variables);
    return datagram_open(&notify->to, variables->socket);
}

int notify_send(struct notify *notify, const char *text)
{
    return datagram_send(&notify->to, text, strlen(text));
}

void notify_close(struct notify *notify)
{
    datagram_close(&notify->to);
}
