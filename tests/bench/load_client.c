#include "build_config.h"

#include "load_client.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "load_websocket.h"
#include "messages.h"

#define TEXT_START "{\"text\":\""
#define TEXT_END "\"}}\n"
#define REQUEST_MAX_START 64 /* MESSAGE_START and the longest id */
#define HEAD "Content-Length: "
#define HEAD_END "\r\n\r\n"
#define HEAD_MAX 32
#define OUT_MIN ((size_t)65536)

uint64_t clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void fail(const struct client *client, const char *what)
{
    fprintf(stderr, "load: client %u: %s\n", client->number, what);
    exit(1);
}

static void *allocate(const struct client *client, size_t size)
{
    void *memory = malloc(size);

    if (memory == NULL)
        fail(client, "out of memory");
    return memory;
}

/* Words, different for each client; every eleventh ends a line. */
static void write_text(char *to, size_t len, unsigned number, bool plain)
{
    static const char *const words[] = {"the ", "message ", "of ", "a ",       "worker ",  "and ",
                                        "its ", "answer ",  "is ", "between ", "pipes.\\n"};
    uint32_t state = number * 2654435761u + 1;

    while (len > 0) {
        const char *word;
        size_t word_len;

        state = state * 1664525u + 1013904223u;
        word = words[(state >> 16) % (sizeof words / sizeof words[0])];
        word_len = strlen(word) - (plain && strchr(word, '\\') != NULL ? 2 : 0);
        if (word_len > len) {
            memset(to, '.', len);
            return;
        }
        memcpy(to, word, word_len);
        to += word_len;
        len -= word_len;
    }
}

/* The text after the id in a request, or in its answer: they differ in `kind`. */
static char *message_end(const struct client *client, const char *kind, size_t *len)
{
    size_t size = client->options.payload + 256;
    char *text = allocate(client, size);
    bool has_head = client->options.framed || client->options.websocket;
    size_t end_len = LENGTH(TEXT_END) - has_head; /* without its newline */
    int at = 0;

    if (client->options.session)
        at = snprintf(text, size, "%ssess_%016x\"", MESSAGE_SESSION, client->number);
    at += snprintf(text + at, size - (size_t)at, "%s%s", kind, TEXT_START);
    write_text(text + at, client->options.payload, client->number, client->options.plain);
    memcpy(text + at + client->options.payload, TEXT_END, end_len);
    *len = (size_t)at + client->options.payload + end_len;
    return text;
}

static void make_texts(struct client *client)
{
    bool push = client->options.push;
    size_t size = 128;

    client->request_end = message_end(client, push ? MESSAGE_PUSH : MESSAGE_ECHO,
                                      &client->request_end_len);
    client->answer_end = message_end(client, push ? MESSAGE_PUSHED : MESSAGE_ECHOED,
                                     &client->answer_end_len);
    client->note_start = allocate(client, size);
    client->note_start_len = (size_t)snprintf(client->note_start, size, "%ssess_%016x%s",
                                              NOTE_START, client->number, NOTE_MIDDLE);
}

/* Room for four windows: answers of several workers may come out of order. */
static void make_window(struct client *client)
{
    size_t slots = 4;

    while (slots < (size_t)client->options.window * 4)
        slots *= 2;
    client->slot_mask = slots - 1;
    client->sent_ns = calloc(slots, sizeof *client->sent_ns);
    if (client->sent_ns == NULL)
        fail(client, "out of memory");
}

static void make_buffers(struct client *client)
{
    size_t line = HEAD_MAX + REQUEST_MAX_START + client->request_end_len;

    client->out_capacity = line * client->options.window;
    if (client->out_capacity < OUT_MIN)
        client->out_capacity = OUT_MIN;
    if (client->out_capacity > 16 * line && client->out_capacity > 4 * OUT_MIN)
        client->out_capacity = 16 * line > 4 * OUT_MIN ? 16 * line : 4 * OUT_MIN;
    client->in_capacity = line + 2 * CLIENT_READ_SIZE;
    client->out = allocate(client, client->out_capacity);
    client->in = allocate(client, client->in_capacity);
}

void client_open(struct client *client, unsigned number, const struct client_options *options,
                 int fd_in, int fd_out)
{
    memset(client, 0, sizeof *client);
    client->number = number;
    client->options = *options;
    client->fd_in = fd_in;
    client->fd_out = fd_out;
    make_texts(client);
    make_window(client);
    make_buffers(client);
    if (options->websocket && !websocket_upgrade(fd_in))
        fail(client, "the connection was not upgraded");
    if (fcntl(fd_in, F_SETFL, fcntl(fd_in, F_GETFL) | O_NONBLOCK) < 0 ||
        fcntl(fd_out, F_SETFL, fcntl(fd_out, F_GETFL) | O_NONBLOCK) < 0)
        fail(client, "cannot make its descriptors non-blocking");
}

static size_t put_id(char *to, uint64_t id)
{
    char digits[20];
    size_t len = 0, at = sizeof digits;

    do
        digits[--at] = (char)('0' + id % 10);
    while ((id /= 10) > 0);
    len = sizeof digits - at;
    memcpy(to, digits + at, len);
    return len;
}

static size_t put_head(char *to, size_t len)
{
    size_t at = LENGTH(HEAD);

    memcpy(to, HEAD, at);
    at += put_id(to + at, len);
    memcpy(to + at, HEAD_END, LENGTH(HEAD_END));
    return at + LENGTH(HEAD_END);
}

bool client_request(struct client *client, uint64_t now_ns)
{
    uint64_t *sent = &client->sent_ns[client->next_id & client->slot_mask];
    size_t need = HEAD_MAX + REQUEST_MAX_START + client->request_end_len, id_len;
    char *to, *start, id[20];

    if (client->in_flight >= client->options.window || *sent != 0)
        return false;
    if (client->out_capacity - client->out_end < need) {
        memmove(client->out, client->out + client->out_start, client->out_end - client->out_start);
        client->out_end -= client->out_start;
        client->out_start = 0;
        if (client->out_capacity - client->out_end < need)
            return false;
    }
    to = client->out + client->out_end;
    id_len = put_id(id, client->next_id);
    if (client->options.framed)
        to += put_head(to, LENGTH(MESSAGE_START) + id_len + client->request_end_len);
    else if (client->options.websocket)
        to += websocket_put_head(to, LENGTH(MESSAGE_START) + id_len + client->request_end_len);
    start = to;
    memcpy(to, MESSAGE_START, LENGTH(MESSAGE_START));
    to += LENGTH(MESSAGE_START);
    memcpy(to, id, id_len);
    to += id_len;
    memcpy(to, client->request_end, client->request_end_len);
    to += client->request_end_len;
    if (client->options.websocket)
        websocket_mask(start, (size_t)(to - start));
    client->out_end = (size_t)(to - client->out);
    *sent = now_ns;
    client->next_id++;
    client->in_flight++;
    return true;
}

/* The other side has read all written bytes. */
static bool was_read(const struct client *client)
{
    int waiting = 0;

    if (client->fd_in == client->fd_out)
        ioctl(client->fd_out, SIOCOUTQ, &waiting);
    else
        ioctl(client->fd_out, FIONREAD, &waiting);
    return waiting == 0;
}

void client_write(struct client *client)
{
    size_t len = client->out_end - client->out_start;
    ssize_t n;

    if (client->options.dribble > 0 && len > client->options.dribble)
        len = client->options.dribble;
    if (len == 0 || (client->options.dribble > 0 && !was_read(client)))
        return;
    n = write(client->fd_out, client->out + client->out_start, len);
    if (n < 0 && errno != EAGAIN && errno != EINTR)
        fail(client, strerror(errno));
    if (n > 0)
        client->out_start += (size_t)n;
    if (client->out_start == client->out_end)
        client->out_start = client->out_end = 0;
    client->wants_write = client->out_end > 0 && client->options.dribble == 0;
}

static void fail_at(const struct client *client, const char *at, const char *what)
{
    size_t len = (size_t)(client->in + client->in_end - at);

    fprintf(stderr, "load: client %u: %s: %.*s\n", client->number, what,
            (int)(len < 300 ? len : 300), at);
    exit(1);
}

static void count_answer(struct client *client, const char *at, uint64_t id, uint64_t now_ns)
{
    uint64_t *sent = &client->sent_ns[id & client->slot_mask];

    if (id >= client->next_id || client->next_id - id > client->slot_mask + 1 || *sent == 0)
        fail_at(client, at, "an answer to no request in flight");
    if (client->latencies != NULL)
        histogram_add(client->latencies, now_ns - *sent);
    *sent = 0;
    client->in_flight--;
}

/* The body after the head of a frame; *len: its length by the head. */
static const char *read_head(const struct client *client, const char *at, size_t *len)
{
    char *end;

    if (memcmp(at, HEAD, LENGTH(HEAD)) != 0)
        fail_at(client, at, "not a head");
    *len = strtoul(at + LENGTH(HEAD), &end, 10);
    if (memcmp(end, HEAD_END, LENGTH(HEAD_END)) != 0)
        fail_at(client, at, "not a head");
    return end + LENGTH(HEAD_END);
}

/* Takes one answer from the input. False: it is incomplete. */
static bool take_answer(struct client *client, uint64_t now_ns)
{
    const char *start = client->in + client->in_start, *end = client->in + client->in_end;
    const char *at;
    uint64_t id = 0;
    size_t len = 0;

    if ((size_t)(end - start) <= REQUEST_MAX_START) /* all messages are longer */
        return false;
    if (client->options.framed)
        start = read_head(client, start, &len);
    else if (client->options.websocket && (start = websocket_read_head(start, &len)) == NULL)
        fail_at(client, client->in + client->in_start, "not a text frame");
    at = start + LENGTH(MESSAGE_START);
    if (memcmp(start, MESSAGE_START, LENGTH(MESSAGE_START)) != 0)
        fail_at(client, start, "not an answer");
    for (; *at >= '0' && *at <= '9'; at++)
        id = id * 10 + (uint64_t)(*at - '0');
    if ((size_t)(end - at) < client->answer_end_len) {
        if (end[-1] == '\n')
            fail_at(client, start, "a wrong answer");
        return false;
    }
    if (memcmp(at, client->answer_end, client->answer_end_len) != 0 ||
        (len > 0 && (size_t)(at - start) + client->answer_end_len != len))
        fail_at(client, start, "a wrong answer");
    count_answer(client, start, id, now_ns);
    client->in_start = (size_t)(at - client->in) + client->answer_end_len;
    return true;
}

/* The same for a notification. Their numbers have no gaps. */
static bool take_note(struct client *client)
{
    const char *at = client->in + client->in_start, *digits = at + client->note_start_len;
    size_t len = client->note_start_len + NOTE_DIGITS + LENGTH(NOTE_END);
    uint64_t number = 0;

    if (client->in_end - client->in_start < len)
        return false;
    for (int i = 0; i < NOTE_DIGITS; i++)
        number = number * 10 + (uint64_t)(digits[i] - '0');
    if (memcmp(at, client->note_start, client->note_start_len) != 0 ||
        memcmp(digits + NOTE_DIGITS, NOTE_END, LENGTH(NOTE_END)) != 0 ||
        number != NOTE_FIRST + client->notes)
        fail_at(client, at, "not the notification that should come next");
    client->notes++;
    client->in_start += len;
    return true;
}

unsigned client_read(struct client *client, size_t max)
{
    size_t room = client->in_capacity - client->in_end;
    bool pushed = client->options.push && client->next_id > 0 && client->in_flight == 0;
    unsigned answers = 0;
    uint64_t now_ns;
    ssize_t n = read(client->fd_in, client->in + client->in_end, room < max ? room : max);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        fail(client, n == 0 ? "the connection was closed" : strerror(errno));
    now_ns = clock_ns();
    client->in_end += (size_t)n;
    while (!pushed && take_answer(client, now_ns)) {
        answers++;
        pushed = client->options.push;
    }
    while (pushed && take_note(client))
        ;
    if (client->in_start > 0)
        memmove(client->in, client->in + client->in_start, client->in_end - client->in_start);
    client->in_end -= client->in_start;
    client->in_start = 0;
    return answers;
}
