#include "build_config.h"

#include "config/url.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

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

static bool read_port(const char *text, size_t len, uint16_t *port)
{
    unsigned value = 0;

    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9' || value > UINT16_MAX)
            return false;
        value = value * 10 + (unsigned)(text[i] - '0');
    }
    *port = (uint16_t)value;
    return len > 0 && value > 0 && value <= UINT16_MAX;
}

/* HOST, HOST:PORT, [IPV6] or [IPV6]:PORT. */
static const char *read_authority(struct remote_url *url, const char *text, size_t len)
{
    const char *host = text, *end = memchr(text, ':', len), *after;
    size_t host_len;

    if (memchr(text, '@', len) != NULL)
        return "a URL with a user name is not supported: use --token-file";
    if (len > 0 && *text == '[') {
        host++;
        end = memchr(text, ']', len);
        if (end == NULL)
            return "expected ] after the IPv6 address";
    }
    after = end != NULL ? end + (*end == ']') : text + len;
    host_len = (size_t)((end != NULL ? end : after) - host);
    if (host_len == 0 || host_len > URL_HOST_MAX)
        return "expected http://HOST:PORT/PATH";
    memcpy(url->host, host, host_len);
    url->host[host_len] = '\0';
    url->port = url->is_tls ? HTTPS_PORT : HTTP_PORT;
    if (after < text + len &&
        (*after != ':' || !read_port(after + 1, (size_t)(text + len - after) - 1, &url->port)))
        return "port must be 1 to 65535";
    memcpy(url->authority, text, len);
    url->authority[len] = '\0';
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
    problem = read_authority(url, start, len);
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
