#include "build_config.h"

#include "config/tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/utf8.h"
#include "json/string.h"

#define YOUNG_SEC 2 /* within which a file may be written twice and look the same */

static int refuse(char reason[TOKEN_REASON_MAX], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static int refuse(char reason[TOKEN_REASON_MAX], const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(reason, TOKEN_REASON_MAX, format, args);
    va_end(args);
    return STDIO_BUS_EINVAL;
}

/* --- the lines --- */

/* `new`, with the serial number that `old` has for the same name and token. */
struct reading {
    struct tokens new;
    const struct tokens *old;
    size_t line;
};

static bool is_same(const struct named_token *token, struct slice name, struct slice text)
{
    return slice_is(name, token->name) && token_is(slice_of(token->text, token->len), text);
}

static unsigned serial_of(struct reading *reading, struct slice name, struct slice text)
{
    for (size_t i = 0; i < reading->old->count; i++) {
        if (is_same(&reading->old->list[i], name, text))
            return reading->old->list[i].serial;
    }
    return ++reading->new.last_serial;
}

static int add_token(struct reading *reading, struct slice name, struct slice text,
                     char reason[TOKEN_REASON_MAX])
{
    struct tokens *new = &reading->new;
    struct named_token *list = realloc(new->list, (new->count + 1) * sizeof *list), *token;

    if (list == NULL)
        return refuse(reason, "out of memory");
    new->list = list;
    token = &list[new->count];
    *token = (struct named_token){.text = malloc(text.len), .len = text.len};
    if (token->text == NULL)
        return refuse(reason, "out of memory");
    memcpy(token->text, text.data, text.len);
    memcpy(token->name, name.data, name.len);
    token->serial = serial_of(reading, name, text);
    new->count++;
    return STDIO_BUS_OK;
}

static bool is_name(struct slice name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "._@+-";

    for (size_t i = 0; i < name.len; i++) {
        if (memchr(letters, name.data[i], sizeof letters - 1) == NULL)
            return false;
    }
    return name.len > 0 && name.len <= TOKEN_NAME_MAX;
}

/* The reason never has a part of the line: that may be a token. */
static int read_named(struct reading *reading, struct slice line, char reason[TOKEN_REASON_MAX])
{
    const char *colon = memchr(line.data, ':', line.len);
    struct slice name = slice_of(line.data, colon != NULL ? (size_t)(colon - line.data) : 0), text;

    if (colon == NULL)
        return refuse(reason, "line %zu is not NAME:TOKEN", reading->line);
    text = slice_of(colon + 1, line.len - name.len - 1);
    if (!is_name(name))
        return refuse(reason, "line %zu: a name has 1 to %d letters, digits and . _ @ + -",
                      reading->line, TOKEN_NAME_MAX);
    if (text.len == 0 || text.len > TOKEN_MAX)
        return refuse(reason, "line %zu: a token has 1 to %d bytes", reading->line, TOKEN_MAX);
    if (!token_is_text(text))
        return refuse(reason, "line %zu is not text in UTF-8", reading->line);
    if (tokens_find(&reading->new, text) != NULL)
        return refuse(reason, "line %zu has the token of an earlier one", reading->line);
    return add_token(reading, name, text, reason);
}

static int read_lines(struct reading *reading, struct slice rest, char reason[TOKEN_REASON_MAX])
{
    int status = STDIO_BUS_OK;

    while (rest.len > 0 && status == STDIO_BUS_OK) {
        const char *end = memchr(rest.data, '\n', rest.len);
        struct slice line = slice_of(rest.data, end != NULL ? (size_t)(end - rest.data) : rest.len);
        size_t used = line.len + (end != NULL);

        reading->line++;
        if (line.len > 0 && line.data[0] != '#')
            status = read_named(reading, line, reason);
        rest = slice_of(rest.data + used, rest.len - used);
    }
    if (status == STDIO_BUS_OK && reading->new.count == 0)
        return refuse(reason, "it has no token");
    return status;
}

static int read_text(struct reading *reading, struct slice text, char reason[TOKEN_REASON_MAX])
{
    if (text.len > 0 && text.data[text.len - 1] == '\n')
        text.len--;
    if (text.len == 0)
        return refuse(reason, "it is empty");
    if (memchr(text.data, '\n', text.len) != NULL)
        return read_lines(reading, text, reason);
    if (text.len > TOKEN_MAX)
        return refuse(reason, "it is longer than %d bytes", TOKEN_MAX);
    if (!token_is_text(text))
        return refuse(reason, "it is not one line of text in UTF-8");
    return add_token(reading, slice_of("", 0), text, reason);
}

/* --- the file --- */

static int read_all(int fd, char *to, size_t *len, char reason[TOKEN_REASON_MAX])
{
    ssize_t got;

    *len = 0;
    do {
        got = read(fd, to + *len, TOKENS_FILE_MAX + 1 - *len);
        if (got < 0 && errno != EINTR && errno != EAGAIN)
            return refuse(reason, "%s", strerror(errno));
        if (got > 0)
            *len += (size_t)got;
    } while (got != 0 && *len <= TOKENS_FILE_MAX);
    return *len <= TOKENS_FILE_MAX ? STDIO_BUS_OK
                                   : refuse(reason, "it is longer than %d bytes", TOKENS_FILE_MAX);
}

static int read_file(struct reading *reading, int fd, char reason[TOKEN_REASON_MAX])
{
    char *text = malloc(TOKENS_FILE_MAX + 1);
    size_t len;
    int status;

    if (text == NULL)
        return refuse(reason, "out of memory");
    status = read_all(fd, text, &len, reason);
    if (status == STDIO_BUS_OK)
        status = read_text(reading, slice_of(text, len), reason);
    free(text);
    return status;
}

int tokens_read(struct tokens *tokens, const char *path, char reason[TOKEN_REASON_MAX])
{
    struct reading reading = {.old = tokens, .new = {.last_serial = tokens->last_serial}};
    int fd = token_open(path, &reading.new.seen, reason), status;

    if (fd < 0)
        return STDIO_BUS_EINVAL;
    reading.new.seen_young = time(NULL) - reading.new.seen.st_ctime <= YOUNG_SEC;
    status = read_file(&reading, fd, reason);
    close(fd);
    if (status != STDIO_BUS_OK) {
        tokens_free(&reading.new);
        return status;
    }
    tokens_free(tokens);
    *tokens = reading.new;
    return STDIO_BUS_OK;
}

bool tokens_changed(const struct tokens *tokens, const char *path)
{
    const struct stat *seen = &tokens->seen;
    struct stat now;

    return tokens->seen_young || stat(path, &now) < 0 || now.st_dev != seen->st_dev ||
           now.st_ino != seen->st_ino || now.st_size != seen->st_size ||
           now.st_mode != seen->st_mode || now.st_uid != seen->st_uid ||
           now.st_mtime != seen->st_mtime || now.st_ctime != seen->st_ctime;
}

/* --- the comparison --- */

/* Looks at all of them, whichever it is. */
const struct named_token *tokens_find(const struct tokens *tokens, struct slice given)
{
    const struct named_token *found = NULL;

    for (size_t i = 0; i < tokens->count; i++) {
        const struct named_token *token = &tokens->list[i];

        if (token_is(slice_of(token->text, token->len), given))
            found = token;
    }
    return found;
}

const struct named_token *tokens_find_escaped(const struct tokens *tokens, struct slice raw)
{
    char text[TOKEN_MAX];
    size_t len = json_string_decode(text, sizeof text, raw);

    return len <= sizeof text ? tokens_find(tokens, slice_of(text, len)) : NULL;
}

bool tokens_has(const struct tokens *tokens, unsigned serial)
{
    for (size_t i = 0; i < tokens->count; i++) {
        if (tokens->list[i].serial == serial)
            return true;
    }
    return false;
}

void tokens_free(struct tokens *tokens)
{
    for (size_t i = 0; i < tokens->count; i++)
        free(tokens->list[i].text);
    free(tokens->list);
    *tokens = (struct tokens){.list = NULL};
}

/* --- the archive --- */

static void load_token(struct archive *archive, struct tokens *tokens, struct named_token *token,
                       struct slice text)
{
    token->text = malloc(text.len + 1);
    if (!archive_made(archive, token->text != NULL))
        return;
    if (text.len > 0)
        memcpy(token->text, text.data, text.len);
    token->len = text.len;
    tokens->count++;
}

static void archive_token(struct archive *archive, struct tokens *tokens, struct named_token *token)
{
    struct slice text;

    archive_text(archive, token->name, sizeof token->name);
    ARCHIVE_INTEGER(archive, token->serial);
    text = archive_slice(archive, slice_of(token->text, token->len));
    if (archive_loads(archive))
        load_token(archive, tokens, token, text);
}

/* The file is taken for another one: so it is read when it is looked at next. */
void tokens_archive(struct archive *archive, struct tokens *tokens)
{
    size_t count = archive_count(archive, tokens->count);

    archive_mark(archive, "tokens");
    ARCHIVE_INTEGER(archive, tokens->last_serial);
    if (archive_loads(archive) && count > 0) {
        tokens->list = calloc(count, sizeof *tokens->list);
        tokens->seen_young = true;
        archive_made(archive, tokens->list != NULL);
    }
    for (size_t i = 0; i < count && archive_ok(archive); i++) {
        ASSERT(tokens->list != NULL);
        archive_token(archive, tokens, &tokens->list[i]);
    }
}

/* --- one token --- */

#define GROUP_OR_OTHERS 077
#define OTHERS 07

/* As sshd has it for keys: a file of another owner (root) may be meant for the group. */
static int check_file(int fd, struct stat *status, char reason[TOKEN_REASON_MAX])
{
    if (fstat(fd, status) < 0)
        return refuse(reason, "%s", strerror(errno));
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
        refuse(reason, "%s", strerror(errno));
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
            return refuse(reason, "%s", strerror(errno));
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
