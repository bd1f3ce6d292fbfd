#include "build_config.h"

#include "config/listen_address.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/authority.h"

#define UNIX_PREFIX "unix:"
#define FD_PREFIX "fd:"

static bool refuse_address(char problem[LISTEN_PROBLEM_MAX], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool refuse_address(char problem[LISTEN_PROBLEM_MAX], const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(problem, LISTEN_PROBLEM_MAX, format, args);
    va_end(args);
    return false;
}

bool listen_address_of_path(struct listen_address *to, const char *path,
                            char problem[LISTEN_PROBLEM_MAX])
{
    size_t len = strlen(path);

    *to = (struct listen_address){.kind = LISTEN_UNIX, .is_unix = true};
    if (len > UNIX_PATH_MAX)
        return refuse_address(problem, UNIX_PATH_PROBLEM, len, UNIX_PATH_MAX);
    if (len == 0)
        return refuse_address(problem, "the path must not be empty");
    memcpy(to->path, path, len + 1);
    return true;
}

bool listen_address_of_host(struct listen_address *to, const char *text, long port_min,
                            char problem[LISTEN_PROBLEM_MAX])
{
    struct slice host, port;
    bool whole = authority_split(slice_of_text(text), &host, &port);

    *to = (struct listen_address){.kind = LISTEN_TCP};
    if (!whole || (text[0] == '[' && host.len == 0))
        return refuse_address(problem, "expected an address between [ and ]");
    if (port.data == NULL)
        return refuse_address(problem, "expected HOST:PORT, [IPV6]:PORT or :PORT");
    if (memchr(port.data, ':', port.len) != NULL)
        return refuse_address(problem, "an IPv6 address needs brackets, as in [::1]:8080");
    if (host.len > LISTEN_HOST_MAX)
        return refuse_address(problem, "the host is %zu bytes long, it may have %d", host.len,
                              LISTEN_HOST_MAX);
    memcpy(to->host, host.data, host.len);
    to->host[host.len] = '\0';
    return (authority_read_port(port, &to->port) && to->port >= port_min) ||
           refuse_address(problem, "port must be %ld to 65535", port_min);
}

static bool set_name(struct listen_address *to, const char *name, char problem[LISTEN_PROBLEM_MAX])
{
    *to = (struct listen_address){.kind = LISTEN_FD};
    if (*name == '\0' || strlen(name) > LISTEN_FD_NAME_MAX)
        return refuse_address(problem, "the name of a socket has 1 to %d bytes",
                              LISTEN_FD_NAME_MAX);
    memcpy(to->fd_name, name, strlen(name) + 1);
    return true;
}

bool listen_address_read(struct listen_address *to, enum listen_kind kind, const char *text,
                         char problem[LISTEN_PROBLEM_MAX])
{
    size_t prefix = kind == LISTEN_HTTP ? sizeof UNIX_PREFIX - 1 : 0;
    bool is_unix = kind == LISTEN_UNIX ||
                   (kind == LISTEN_HTTP && strncmp(text, UNIX_PREFIX, prefix) == 0);
    bool is_named = kind == LISTEN_HTTP && strncmp(text, FD_PREFIX, sizeof FD_PREFIX - 1) == 0;
    bool is_read;

    if (is_named || kind == LISTEN_FD)
        is_read = set_name(to, text + (is_named ? sizeof FD_PREFIX - 1 : 0), problem);
    else
        is_read = is_unix ? listen_address_of_path(to, text + prefix, problem)
                          : listen_address_of_host(to, text, 0, problem);

    to->kind = kind;
    return is_read;
}

const char *listen_kind_name(enum listen_kind kind)
{
    static const char *const names[] = {
        [LISTEN_UNIX] = "unix", [LISTEN_TCP] = "tcp", [LISTEN_HTTP] = "http", [LISTEN_FD] = "fd"};

    return names[kind];
}

bool listen_address_same(const struct listen_address *one, const struct listen_address *other)
{
    if (one->kind != other->kind || one->is_unix != other->is_unix ||
        strcmp(one->fd_name, other->fd_name) != 0)
        return false;
    if (one->is_unix)
        return strcmp(one->path, other->path) == 0;
    return one->port == other->port && strcmp(one->host, other->host) == 0;
}
