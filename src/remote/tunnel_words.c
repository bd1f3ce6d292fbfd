#include "build_config.h"

#include "remote/tunnel_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/terminal.h"

#define LINE_SHOWN 200
#define ERRNO "connect:errno="

/* From `at` to the end of the line. */
static struct slice rest_of_line(const char *at)
{
    return slice_of(at, strcspn(at, "\r\n"));
}

/* What follows the word; NULL: the text does not have it. */
static const char *after(const char *said, const char *word)
{
    const char *at = strstr(said, word);

    return at != NULL ? at + strlen(word) : NULL;
}

/* The same within the line. */
static const char *after_in_line(const char *line, const char *word)
{
    const char *at = after(line, word);

    return at != NULL && at <= line + rest_of_line(line).len ? at : NULL;
}

bool tunnel_words_ready(const char *said)
{
    return strstr(said, "CONNECTION ESTABLISHED\n") != NULL;
}

bool tunnel_words_absent(const char *said)
{
    return strstr(said, ERRNO) != NULL;
}

/* --- certificates --- */

static const char unknown_authority[] = "the certificate of the server is of an unknown authority";

static const char *certificate_words(int code)
{
    static const struct {
        int code; /* X509_V_ERR_... */
        const char *words;
    } known[] = {
        {9, "the certificate of the server is not valid yet"},
        {10, "the certificate of the server has expired"},
        {18, unknown_authority},
        {19, unknown_authority},
        {20, unknown_authority},
        {21, unknown_authority},
        {23, "the certificate of the server was revoked"},
        {62, "the certificate of the server is for another name"},
        {64, "the certificate of the server is for another address"},
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].code == code)
            return known[i].words;
    }
    return NULL;
}

/* "20:unable to get local issuer certificate" */
static void write_certificate(char *to, size_t size, const char *number)
{
    char *end, text[LINE_SHOWN];
    const char *words = certificate_words((int)strtol(number, &end, 10));

    terminal_text(text, sizeof text, rest_of_line(*end == ':' ? end + 1 : end));
    if (words == NULL)
        snprintf(to, size, "the certificate of the server is not valid (%s)", text);
    else if (words == unknown_authority)
        snprintf(to, size, "%s (%s); SSL_CERT_FILE names another file of authorities", words, text);
    else
        snprintf(to, size, "%s", words);
}

/* --- other failures --- */

/* Of "0A00010B:SSL routines:ssl3_get_record:wrong version number:../ssl/x.c:350:" the reason; of
 * any other text, all. */
static struct slice reason_of(const char *error)
{
    const char *at = error;
    struct slice reason = rest_of_line(error);

    for (int skipped = 0; at != NULL && skipped < 3; skipped++)
        at = after_in_line(at, ":");
    if (at != NULL)
        reason = slice_of(at, strcspn(at, ":\r\n"));
    return reason;
}

/* The number of the error of the system is 0 where the name has no address: then the line before it
 * ends with the reason. */
static void write_absent(char *to, size_t size, const char *said, const char *number)
{
    int error = (int)strtol(number, NULL, 10);
    struct slice line = rest_of_line(said);
    char text[LINE_SHOWN];

    for (size_t i = 0; i < line.len; i++) {
        if (line.data[i] == ':') {
            line = slice_of(line.data + i + 1, line.len - i - 1);
            i = (size_t)-1;
        }
    }
    snprintf(to, size, "cannot connect: %s",
             error != 0 ? strerror(error) : terminal_text(text, sizeof text, line));
}

static const char *last_line(const char *said)
{
    const char *found = NULL;

    while (*said != '\0') {
        size_t len = strcspn(said, "\r\n");

        if (len > 0)
            found = said;
        said += len;
        said += strspn(said, "\r\n");
    }
    return found;
}

bool tunnel_words_reason(const char *said, char *to, size_t size)
{
    const char *certificate = after(said, "verify error:num=");
    const char *proxy = after(said, "HTTP CONNECT failed, reason="), *absent = after(said, ERRNO);
    const char *error = after(said, ":error:"), *line = last_line(said);
    char text[LINE_SHOWN];

    if (certificate != NULL)
        write_certificate(to, size, certificate);
    else if (proxy != NULL)
        snprintf(to, size, "the proxy refuses: %s",
                 terminal_text(text, sizeof text, rest_of_line(proxy + strspn(proxy, " "))));
    else if (absent != NULL)
        write_absent(to, size, said, absent);
    else if (error != NULL)
        snprintf(to, size, "TLS failed: %s", terminal_text(text, sizeof text, reason_of(error)));
    else if (line != NULL)
        terminal_text(to, size, rest_of_line(line));
    return line != NULL;
}
