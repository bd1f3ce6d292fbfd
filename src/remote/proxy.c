#include "build_config.h"

#include "remote/proxy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *variable(const char *small, const char *capital)
{
    const char *value = getenv(small);

    return value != NULL && *value != '\0' ? value : getenv(capital);
}

static bool is_loopback(const char *host)
{
    return strcasecmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
           strcmp(host, "::1") == 0;
}

/* "example.org" and ".example.org" are for all names below it; a port is left out. */
static bool covers(const char *entry, size_t len, const char *host)
{
    size_t host_len = strlen(host), colon = 0;

    while (colon < len && entry[colon] != ':')
        colon++;
    if (colon < len && memchr(entry + colon + 1, ':', len - colon - 1) == NULL)
        len = colon;
    if (len > 0 && *entry == '.') {
        entry++;
        len--;
    }
    return len > 0 && len <= host_len && strncasecmp(host + host_len - len, entry, len) == 0 &&
           (len == host_len || host[host_len - len - 1] == '.');
}

static bool is_exempt(const char *host)
{
    const char *list = variable("no_proxy", "NO_PROXY");

    if (is_loopback(host))
        return true;
    while (list != NULL && *(list += strspn(list, ", \t")) != '\0') {
        size_t len = strcspn(list, ", \t");

        if ((len == 1 && *list == '*') || covers(list, len, host))
            return true;
        list += len;
    }
    return false;
}

static int digit_of(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c != '\0' ? strchr(digits, c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c) : NULL;

    return at != NULL ? (int)(at - digits) : -1;
}

/* Decodes %XX. False: there is no room. */
static bool decode(char to[PROXY_LOGIN_MAX], const char *text, size_t len)
{
    size_t count = 0;

    for (size_t i = 0; i < len; i++) {
        int high = text[i] == '%' && i + 2 < len ? digit_of(text[i + 1]) : -1;
        int low = high >= 0 ? digit_of(text[i + 2]) : -1;

        if (count + 1 == PROXY_LOGIN_MAX)
            return false;
        to[count++] = text[i];
        if (low < 0)
            continue;
        to[count - 1] = (char)(high * 16 + low);
        i += 2;
    }
    to[count] = '\0';
    return true;
}

static const char *read_login(struct remote_proxy *proxy, const char *text, size_t len)
{
    const char *colon = memchr(text, ':', len);
    size_t user_len = colon != NULL ? (size_t)(colon - text) : len;

    if (!decode(proxy->user, text, user_len) ||
        (colon != NULL && !decode(proxy->password, colon + 1, len - user_len - 1)))
        return "the name or password of the proxy is too long";
    return NULL;
}

const char *proxy_choose(struct remote_proxy *proxy, const struct remote_url *server)
{
    const char *text = server->is_tls ? variable("https_proxy", "HTTPS_PROXY")
                                      : variable("http_proxy", "HTTP_PROXY");
    char url[sizeof proxy->url.authority + 8];
    const char *rest, *at, *problem = NULL;

    *proxy = (struct remote_proxy){.is_used = false};
    if (text == NULL || *text == '\0' || is_exempt(server->host))
        return NULL;
    rest = strstr(text, "://");
    if (rest != NULL && strncmp(text, "http://", 7) != 0)
        return "the proxy must be http://HOST:PORT";
    rest = rest != NULL ? rest + 3 : text;
    at = strrchr(rest, '@');
    if (at != NULL)
        problem = read_login(proxy, rest, (size_t)(at - rest));
    if (problem == NULL &&
        snprintf(url, sizeof url, "http://%s", at != NULL ? at + 1 : rest) >= (int)sizeof url)
        return "the proxy must be http://HOST:PORT";
    proxy->is_used = true;
    return problem != NULL ? problem : url_read(&proxy->url, url);
}
