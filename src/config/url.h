/* The URL of a server: http://HOST[:PORT][/PATH], or https://. */
#ifndef STDIO_BUS_CONFIG_URL_H
#define STDIO_BUS_CONFIG_URL_H

#include <stdbool.h>
#include <stdint.h>

#define URL_HOST_MAX 255
#define URL_PATH_MAX 2048

struct remote_url {
    bool is_tls;                           /* https */
    char host[URL_HOST_MAX + 1];           /* without the brackets of an IPv6 address */
    char authority[URL_HOST_MAX + 1 + 16]; /* the value of the field Host */
    uint16_t port;
    char path[URL_PATH_MAX + 1]; /* with the query; begins with a slash */
};

/* Whether the text is meant to be a URL: it has "://". */
bool url_is(const char *text);

/* The text before the host. */
static inline const char *url_scheme(const struct remote_url *url)
{
    return url->is_tls ? "https://" : "http://";
}

/* Whether scheme, host and port are the same. */
bool url_is_same(const struct remote_url *one, const struct remote_url *other);

/* Whether the host is an address, not a name. */
bool url_has_address(const struct remote_url *url);

/* Returns NULL, or what is wrong: static text. */
const char *url_read(struct remote_url *url, const char *text);

#endif
