/* The URL of a server: http://HOST[:PORT][/PATH]. */
#ifndef STDIO_BUS_REMOTE_URL_H
#define STDIO_BUS_REMOTE_URL_H

#include <stdbool.h>
#include <stdint.h>

#define URL_PORT_DEFAULT 80
#define URL_HOST_MAX 255
#define URL_PATH_MAX 2048

struct remote_url {
    char host[URL_HOST_MAX + 1];           /* without the brackets of an IPv6 address */
    char authority[URL_HOST_MAX + 1 + 16]; /* the value of the field Host */
    uint16_t port;
    char path[URL_PATH_MAX + 1]; /* with the query; begins with a slash */
};

/* Whether the text is meant to be a URL: it has "://". */
bool url_is(const char *text);

/* Returns NULL, or what is wrong: static text. */
const char *url_read(struct remote_url *url, const char *text);

#endif
