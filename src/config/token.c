#include "build_config.h"

#include "config/token.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/utf8.h"

#define GROUP_OR_OTHERS 077
#define OTHERS 07

static int refuse(char reason[TOKEN_REASON_MAX], const char *text)
{
    snprintf(reason, TOKEN_REASON_MAX, "%s", text);
    return STDIO_BUS_EINVAL;
}

/* --- the file --- */

/* As sshd has it for keys: a file of another owner (root) may be meant for the group. */
static int check_file(int fd, struct stat *status, char reason[TOKEN_REASON_MAX])
{
    if (fstat(fd, status) < 0)
        return refuse(reason, strerror(errno));
    if (!S_ISREG(status->st_mode))
        return refuse(reason, "it is not a regular file");
    if ((status->st_mode & (status->st_uid == geteuid() ? GROUP_OR_OTHERS : OTHERS)) != 0)
        return refuse(reason, "other users can open it: its mode should be 0600");
    return STDIO_BUS_OK;
}

int token_open(const char *path, struct stat *status, char reason[TOKEN_REASON_MAX])
{
    int fd;

    do
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO is refused, not waited for */
    while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        refuse(reason, strerror(errno));
        return -1;
    }
    if (check_file(fd, status, reason) == STDIO_BUS_OK)
        return fd;
    close(fd);
    return -1;
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

bool token_is_text(struct slice text)
{
    const unsigned char *p = (const unsigned char *)text.data, *end = p + text.len;
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
    if (token->len > 0 && token->text[token->len - 1] == '\n')
        token->len--;
    if (token->len == 0)
        return refuse(reason, "it is empty");
    if (token->len > TOKEN_MAX)
        return refuse(reason, "it is longer than 1024 bytes");
    if (!token_is_text(slice_of(token->text, token->len)))
        return refuse(reason, "it is not one line of text in UTF-8");
    return STDIO_BUS_OK;
}

int token_read_file(struct token *token, const char *path, char reason[TOKEN_REASON_MAX])
{
    struct stat file;
    int fd = token_open(path, &file, reason), status;

    if (fd < 0)
        return STDIO_BUS_EINVAL;
    status = read_content(token, fd, reason);
    if (status == STDIO_BUS_OK)
        status = check_text(token, reason);
    close(fd);
    return status;
}

/* --- the comparison --- */

/* Looks at each byte of `given`, whatever is found. */
bool token_is(struct slice token, struct slice given)
{
    size_t i, at = 0;
    volatile unsigned difference = token.len != given.len;

    for (i = 0; i < given.len; i++) {
        difference |= (unsigned char)(given.data[i] ^ token.data[at]);
        at = at + 1 < token.len ? at + 1 : 0;
    }
    return difference == 0;
}
