#include "build_config.h"

#include "config/token.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "json/string.h"
#include "json/utf8.h"

#define GROUP_OR_OTHERS 077
#define OTHERS 07

static int refuse(char reason[TOKEN_REASON_MAX], const char *text)
{
    snprintf(reason, TOKEN_REASON_MAX, "%s", text);
    return STDIO_BUS_EINVAL;
}

/* --- the file --- */

/* As sshd has it for keys: a file of another owner (root) may be meant for the group. */
static int check_file(int fd, char reason[TOKEN_REASON_MAX])
{
    struct stat status;

    if (fstat(fd, &status) < 0)
        return refuse(reason, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return refuse(reason, "it is not a regular file");
    if ((status.st_mode & (status.st_uid == geteuid() ? GROUP_OR_OTHERS : OTHERS)) != 0)
        return refuse(reason, "other users can open it: its mode should be 0600");
    return STDIO_BUS_OK;
}

/* Fills the buffer as far as the file goes. */
static int read_content(struct token *token, int fd, char reason[TOKEN_REASON_MAX])
{
    ssize_t got;

    token->len = 0;
    do {
        got = read(fd, token->text + token->len, sizeof token->text - token->len);
        if (got < 0 && errno != EINTR && errno != EAGAIN)
            return refuse(reason, strerror(errno));
        if (got > 0)
            token->len += (size_t)got;
    } while (got != 0 && token->len < sizeof token->text);
    return STDIO_BUS_OK;
}

/* Other bytes could not be sent in a line of JSON. */
static bool is_text(const unsigned char *p, const unsigned char *end)
{
    size_t len;

    for (; p < end; p += len) {
        len = *p < 0x80 ? *p >= 0x20 && *p != 0x7F : utf8_sequence(p, end);
        if (len == 0)
            return false;
    }
    return true;
}

static int check_text(struct token *token, char reason[TOKEN_REASON_MAX])
{
    const unsigned char *text = (const unsigned char *)token->text;

    if (token->len > 0 && text[token->len - 1] == '\n')
        token->len--;
    if (token->len == 0)
        return refuse(reason, "it is empty");
    if (token->len > TOKEN_MAX)
        return refuse(reason, "it is longer than 1024 bytes");
    if (!is_text(text, text + token->len))
        return refuse(reason, "it is not one line of text in UTF-8");
    return STDIO_BUS_OK;
}

int token_read_file(struct token *token, const char *path, char reason[TOKEN_REASON_MAX])
{
    int fd, status;

    do
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO is refused, not waited for */
    while (fd < 0 && errno == EINTR);
    if (fd < 0)
        return refuse(reason, strerror(errno));
    status = check_file(fd, reason);
    if (status == STDIO_BUS_OK)
        status = read_content(token, fd, reason);
    if (status == STDIO_BUS_OK)
        status = check_text(token, reason);
    close(fd);
    return status;
}

/* --- the configuration --- */

void token_check_file(struct diagnostics *diagnostics, const struct json_value *file)
{
    struct token token;
    char shown[512], reason[TOKEN_REASON_MAX];

    if (diagnostics_check_string(diagnostics, file) &&
        token_read_file(&token, file->text.data, reason) != STDIO_BUS_OK)
        diagnostics_value(diagnostics, file, "cannot use \"%s\": %s",
                          log_escape(shown, sizeof shown, file->text), reason);
}

void token_check_open(struct diagnostics *diagnostics, const struct json_value *open)
{
    if (diagnostics_check_type(diagnostics, open, JSON_BOOLEAN, "true or false") && open->boolean &&
        document_member(open->parent, "token_file") != NULL)
        diagnostics_value(diagnostics, open, "excludes token_file");
}

/* --- the comparison --- */

/* Looks at each byte of `given`, whatever is found. */
static bool is_same(const struct token *token, struct slice given)
{
    size_t i, at = 0;
    volatile unsigned difference = token->len != given.len;

    for (i = 0; i < given.len; i++) {
        difference |= (unsigned char)(given.data[i] ^ token->text[at]);
        at = at + 1 < token->len ? at + 1 : 0;
    }
    return difference == 0;
}

bool token_matches(const struct token *token, struct slice raw)
{
    char text[TOKEN_MAX];
    size_t len = json_string_decode(text, sizeof text, raw);

    return len <= sizeof text && is_same(token, slice_of(text, len));
}
