#include "build_config.h"

#include "config/url.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/authority.h"

#define HTTP_PORT 80
#define HTTPS_PORT 443

bool url_is(const char *text)
{
    return strstr(text, "://") != NULL;
}

/* Visible ASCII. */
static bool is_plain(const char *text)
{
    while (*text > ' ' && *text < 0x7F)
        text++;
    return *text == '\0';
}

static const char *read_authority(struct remote_url *url, struct slice text)
{
    static const char port_problem[] = "port must be 1 to 65535";
    struct slice host, port;

    if (memchr(text.data, '@', text.len) != NULL)
        return "a URL with a user name is not supported: use --token-file";
    if (!authority_split(text, &host, &port))
        return memchr(text.data, ']', text.len) == NULL ? "expected ] after the IPv6 address"
                                                        : port_problem;
    if (host.len == 0 || host.len > URL_HOST_MAX)
        return "expected http://HOST:PORT/PATH";
    memcpy(url->host, host.data, host.len);
    url->host[host.len] = '\0';
    url->port = url->is_tls ? HTTPS_PORT : HTTP_PORT;
    if (port.data != NULL && (!authority_read_port(port, &url->port) || url->port == 0))
        return port_problem;
    memcpy(url->authority, text.data, text.len);
    url->authority[text.len] = '\0';
    return NULL;
}

/* The host becomes a word of a command. */
static bool is_name(const char *host)
{
    static const char others[] = ".-_:%";
    bool begins = host[0] != '-' && host[0] != '.';

    for (; *host != '\0'; host++) {
        bool is_letter = (*host >= 'a' && *host <= 'z') || (*host >= 'A' && *host <= 'Z');

        if (!is_letter && (*host < '0' || *host > '9') && strchr(others, *host) == NULL)
            return false;
    }
    return begins;
}

bool url_is_same(const struct remote_url *one, const struct remote_url *other)
{
    return one->is_tls == other->is_tls && one->port == other->port &&
           strcmp(one->host, other->host) == 0;
}

bool url_has_address(const struct remote_url *url)
{
    unsigned char bytes[16];

    return inet_pton(AF_INET, url->host, bytes) == 1 || inet_pton(AF_INET6, url->host, bytes) == 1;
}

/* The text after the scheme; NULL: it has another one. */
static const char *read_scheme(struct remote_url *url, const char *text)
{
    url->is_tls = strncmp(text, "https://", 8) == 0;
    if (url->is_tls)
        return text + 8;
    return strncmp(text, "http://", 7) == 0 ? text + 7 : NULL;
}

const char *url_read(struct remote_url *url, const char *text)
{
    const char *start = read_scheme(url, text), *problem;
    size_t len;

    if (start == NULL)
        return "must begin with https:// or http://";
    if (!is_plain(text))
        return "a URL has no spaces and no characters but those of ASCII: encode them as %XX";
    len = strcspn(start, "/?#");
    if (len >= sizeof url->authority)
        return "expected http://HOST:PORT/PATH";
    problem = read_authority(url, slice_of(start, len));
    if (problem == NULL && url->is_tls && !is_name(url->host))
        return "the name of the host has a character that no host's name has";
    start += len;
    len = strcspn(start, "#");
    if (problem == NULL && len + 1 > URL_PATH_MAX)
        return "the path is too long";
    if (problem == NULL)
        snprintf(url->path, sizeof url->path, "%s%.*s", *start == '/' ? "" : "/", (int)len, start);
    return problem;
}
