#include "build_config.h"

#include "base/datagram.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"

/* Without it a lost reader raises SIGPIPE, which the daemon ignores. */
#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

static bool set_address(struct datagram *datagram, const char *path)
{
    struct sockaddr_un *address = &datagram->address;
    size_t len = strlen(path);

    if ((path[0] != '/' && path[0] != '@') || len < 2 || len >= sizeof address->sun_path)
        return false;
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path, path, len);
    if (path[0] == '@')
        address->sun_path[0] = '\0'; /* the name's length is that of the address */
    datagram->address_len = offsetof(struct sockaddr_un, sun_path) + len;
    return true;
}

static int connect_again(struct datagram *datagram)
{
    int status;

    do
        status = connect(datagram->fd, (const struct sockaddr *)&datagram->address,
                         (socklen_t)datagram->address_len);
    while (status < 0 && errno == EINTR);
    return status;
}

int datagram_open(struct datagram *datagram, const char *path)
{
    datagram->fd = -1;
    if (!set_address(datagram, path))
        return STDIO_BUS_EINVAL;
    datagram->fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    if (datagram->fd >= 0 && fcntl(datagram->fd, F_SETFD, FD_CLOEXEC) == 0 &&
        connect_again(datagram) == 0)
        return STDIO_BUS_OK;
    datagram_close(datagram);
    return STDIO_BUS_ERR;
}

static ssize_t send_once(const struct datagram *datagram, const char *bytes, size_t len)
{
    ssize_t sent;

    do
        sent = send(datagram->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent;
}

static bool is_full(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS;
}

int datagram_send(struct datagram *datagram, const char *bytes, size_t len)
{
    if (send_once(datagram, bytes, len) >= 0)
        return STDIO_BUS_OK;
    if (!is_full(errno) && connect_again(datagram) == 0 && send_once(datagram, bytes, len) >= 0)
        return STDIO_BUS_OK;
    return is_full(errno) ? STDIO_BUS_EAGAIN : STDIO_BUS_ERR;
}

void datagram_close(struct datagram *datagram)
{
    if (datagram->fd >= 0)
        descriptor_close(datagram->fd);
    datagram->fd = -1;
}

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
