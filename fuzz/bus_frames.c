#include "build_config.h"

#include "bus_frames.h"

#include "common.h"

#define HEADER "Content-Length: "

size_t frames_head(const struct framing *framing, char to[FRAMES_HEAD_MAX], size_t len)
{
    if (framing == NULL)
        return 0;
    if (framing == &framing_content_length)
        return (size_t)snprintf(to, FRAMES_HEAD_MAX,
                                len % 2 ? HEADER "%zu\r\n\r\n"
                                        : "content-type: application/json\r\ncontent-length:%zu "
                                          "\r\n\r\n",
                                len);
    for (int i = 3; i >= 0; i--, len /= 256)
        to[i] = (char)(len % 256);
    return 4;
}

static bool find_line(struct slice data, size_t *head, size_t *body)
{
    const char *newline = data.len > 0 ? memchr(data.data, '\n', data.len) : NULL;

    *head = 0;
    *body = newline != NULL ? (size_t)(newline + 1 - data.data) : 0;
    return newline != NULL;
}

static bool find_headed(struct slice data, size_t *head, size_t *body)
{
    size_t at = sizeof HEADER - 1, digits = 0;

    EXPECT(memcmp(data.data, HEADER, data.len < at ? data.len : at) == 0, "%.*s", (int)data.len,
           data.data);
    *body = 0;
    for (; at < data.len && data.data[at] >= '0' && data.data[at] <= '9'; at++, digits++)
        *body = *body * 10 + (size_t)(data.data[at] - '0');
    if (data.len < at + 4)
        return false;
    EXPECT(digits > 0 && memcmp(data.data + at, "\r\n\r\n", 4) == 0, "%.*s", (int)data.len,
           data.data);
    *head = at + 4;
    return data.len - *head >= *body;
}

static bool find_counted(struct slice data, size_t *head, size_t *body)
{
    *body = 0;
    for (*head = 0; *head < 4; ++*head) {
        if (*head == data.len)
            return false;
        *body = *body * 256 + (unsigned char)data.data[*head];
    }
    return data.len - *head >= *body;
}

bool frames_find(const struct framing *framing, struct slice data, size_t *head, size_t *body)
{
    if (framing == NULL)
        return find_line(data, head, body);
    return framing == &framing_content_length ? find_headed(data, head, body)
                                              : find_counted(data, head, body);
}

void frames_wrong(const struct framing *framing, unsigned which, struct slice *head,
                  struct slice *body)
{
    static const char *const bodies[] = {"!",
                                         "{\"id\":[]}",
                                         "{\"sessionId\":1}",
                                         "[1]",
                                         "{} {}",
                                         "{\"a\":\"\xff\"}",
                                         "{\"a\":\"\x01\"}",
                                         "{\"a\":01}",
                                         "{\"a\":\"\n\"}",
                                         "{\"a\"\n]",
                                         "{\"a\":\"\\x\"}"};
    static const char *const heads[] = {/* each has the name after another one */
                                        "Content-Length:\r\n\r\n{}", "Content-Length: -1\r\n\r\n{}",
                                        "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
                                        "Content-Length: 2\n\n{}",
                                        "Content-Length: 2\r\nContent-Type: text/plain\r\n\r\n{}"};
    size_t count = sizeof bodies / sizeof *bodies;

    *head = *body = slice_of("", 0);
    if (which % 16 >= count && framing == &framing_content_length)
        *head = slice_of(heads[which % 16 - count], strlen(heads[which % 16 - count]));
    else
        *body = slice_of(bodies[which % count], strlen(bodies[which % count]));
}
