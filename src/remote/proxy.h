/* The proxy through which the server is reached: HTTPS_PROXY, HTTP_PROXY and NO_PROXY of the
 * environment, in capital or small letters. */
#ifndef STDIO_BUS_REMOTE_PROXY_H
#define STDIO_BUS_REMOTE_PROXY_H

#include "config/url.h"

#define PROXY_LOGIN_MAX 256

struct remote_proxy {
    bool is_used;
    struct remote_url url;
    char user[PROXY_LOGIN_MAX]; /* "": it needs none */
    char password[PROXY_LOGIN_MAX];
};

/* Chooses the proxy for a server, or none: a server on this machine needs none. Returns NULL, or
 * what is wrong with the variable: static text. */
const char *proxy_choose(struct remote_proxy *proxy, const struct remote_url *server);

#endif
