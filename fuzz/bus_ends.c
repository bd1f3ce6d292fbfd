#include "build_config.h"

#include "bus_ends.h"

#include <errno.h>
#include <sys/socket.h>

#define PADDING_MAX 70000

/* In groups of equal value; all texts differ. */
static const char *const ids[] = {
    "1",           "1.0",
    "100e-2",      "\"1\"",
    "\"\\u0031\"", "0",
    "-0.0",        "1000",
    "1e3",         "\"a\\\"b\"",
    "1.5",         "\"an id that does not fit into what a pending request keeps inside of itself\"",
};

static const char *const sessions[ENDS_SESSIONS] = {"a", "b", "\\u0063", "\\n"};
static const char *const pools[] = {"p", "q", "none"};

/* --- the error lines of doc/protocol.md --- */

#define WORKER_EXITED "worker exited before answering"

static const struct error_line {
    bool to_client, has_id;
    bool farewell; /* the connection is closed; but not one framed by length for its messages */
    int code;
    const char *text; /* %zu: one of the limits, or of q's keys */
} error_lines[] = {
    {true, false, true, -32700, "not valid JSON"},
    {true, false, true, -32700, "not a JSON object"},
    {true, false, true, -32700, "the line ends inside the JSON object"},
    {true, false, true, -32700, "more text behind the JSON object"},
    {true, false, true, -32700, "invalid UTF-8"},
    {true, false, true, -32700, "a control character inside a string"},
    {true, false, true, -32700, "an invalid escape sequence"},
    {true, false, true, -32700, "an invalid number"},
    {true, false, true, -32600, "message exceeds max_input_buffer"},
    {true, false, true, -32600, "id must be a string or a number"},
    {true, false, true, -32600, "id is a number that is too large"},
    {true, false, true, -32600, "sessionId must be a string"},
    {true, false, true, -32000, "too many connections (max_connections %zu)"},
    {true, false, false, -32700, "no Content-Length"},
    {true, false, false, -32700, "not a header"},
    {true, false, false, -32700, "Content-Length is not a number"},
    {true, false, false, -32700, "more than one Content-Length"},
    {true, false, false, -32700, "the input ends in the middle of a frame"},
    {true, false, false, -32600, "Content-Type is not application/vscode-jsonrpc in UTF-8"},
    {true, true, false, -32602, "no such pool"},
    {true, true, false, -32000, WORKER_EXITED},
    {true, true, false, -32000,
     "no worker left to serve this request: each has failed (see the daemon's log)"},
    {true, true, false, -32000, "the daemon is shutting down"},
    {true, true, false, -32000, "too many sessions (max_sessions %zu)"},
    {true, true, false, -32000, "too many pending requests (max_pending_requests %zu)"},
    {true, true, false, -32000, "id is still in use by another request that is in flight"},
    {true, true, false, -32600,
     "id is already in use by a request of yours that is still in flight"},
    {false, true, false, -32600,
     "id is already in use by a request of yours that is still in flight"},
    {false, true, false, -32000, "unroutable: no sessionId to tell which client"},
    {false, true, false, -32000, "unroutable: no such session"},
    {true, true, false, -32000,
     "every worker serves another client: too few instances (busy_timeout_sec %zu)"},
    {false, true, false, -32000, "unroutable: nothing tells which client"},
    {false, true, false, -32000, "client disconnected before answering"},
    {false, true, false, -32000, "the client cannot answer: it has closed its input"},
    {false, true, false, -32000, "too many pending requests (max_pending_requests %zu)"},
    {false, true, false, -32000, "id is still in use by another request that is in flight"},
};

/* --- small things --- */

void ends_init(struct ends *ends, const struct limits *limits)
{
    memset(ends, 0, sizeof *ends);
    ends->limits = limits;
    ends->traces = fuzz_traces();
    for (int i = 0; i < ENDS_MAX; i++)
        ends->ends[i].owed = ends->ends[i].client = NOBODY;
}

void ends_free(struct ends *ends)
{
    int i;

    for (i = 0; i < ends->sent_count; i++)
        free(ends->sent[i].line);
    for (i = ends_next(ends, ENDS_NONE); i < ENDS_MAX; i = ends_next(ends, i)) {
        struct end *end = &ends->ends[i];

        if (end->there && !ends_is_worker(i) && end->fd_in >= 0)
            ends_vanish(ends, i);
        free(end->outgoing.data);
        free(end->incoming.data);
    }
}

static void trace(int end, const char *what, struct slice line)
{
    fprintf(stderr, "%d %s %.*s (%zu)\n", end, what, line.len < 100 ? (int)line.len - 1 : 100,
            line.data, line.len);
}

static void add_bytes(struct bytes *bytes, const void *data, size_t len)
{
    if (len == 0)
        return;
    if (bytes->end + len > bytes->capacity) {
        bytes->capacity = (bytes->end + len) * 2;
        bytes->data = realloc(bytes->data, bytes->capacity);
        EXPECT(bytes->data != NULL, "memory");
    }
    memcpy(bytes->data + bytes->end, data, len);
    bytes->end += len;
}

/* -1: there is none (any more). */
static int fd_in_of(const struct ends *ends, int end)
{
    if (ends_is_worker(end))
        return end < world.child_count ? world.children[end].fd_stdin : -1;
    return ends->ends[end].there ? ends->ends[end].fd_in : -1;
}

static int fd_out_of(const struct ends *ends, int end)
{
    if (ends_is_worker(end))
        return end < world.child_count ? world.children[end].fd_stdout : -1;
    return ends->ends[end].there ? ends->ends[end].fd_out : -1;
}

bool ends_lives(const struct ends *ends, int end)
{
    if (ends_is_worker(end))
        return end < world.child_count && world.children[end].running;
    return ends->ends[end].there && ends->ends[end].fd_in >= 0 && !ends->ends[end].ended;
}

int ends_connect(struct ends *ends, int fd_in, int fd_out)
{
    int number = WORLD_CHILDREN_MAX + ends->client_count++;
    struct end *end = &ends->ends[number];

    end->there = true;
    end->fd_in = fd_in;
    end->fd_out = fd_out;
    return number;
}

/* --- sending --- */

/* The line that a letter is, read again by the daemon's own means for the value of its id. */
static void write_line(struct sent *sent, const struct letter *letter, int place)
{
    const char *id = ids[letter->id % (sizeof ids / sizeof *ids)];
    size_t size = 600 + letter->padding;
    struct message_scratch scratch;
    struct scanner scanner;
    struct message message;
    int len = 0;

    sent->line = malloc(size);
    EXPECT(sent->line != NULL, "memory");
#define PUT(...) len += snprintf(sent->line + len, size - (size_t)len, __VA_ARGS__)
    PUT("{\"n\":%d", place);
    if (letter->kind != NOTIFICATION)
        PUT(",\"id\":%s", id);
    PUT(letter->kind == ANSWER ? ",\"result\":[]" : ",\"method\":\"m\"");
    if (letter->session != NOBODY)
        PUT(",\"sessionId\":\"%s\"", sessions[letter->session]);
    if (letter->pool != NOBODY)
        PUT(",\"pool\":\"%s\"", pools[letter->pool]);
    if (letter->padding > 0)
        PUT(",\"padding\":\"%0*d\"", (int)letter->padding, 0);
    PUT("}\n");
#undef PUT
    sent->len = (size_t)len;
    scanner_reset(&scanner);
    EXPECT(scanner_run(&scanner, sent->line, sent->len) == SCAN_MESSAGE, "a letter");
    message_from_scan(&message, slice_of(sent->line, sent->len), &scanner.fields, &scratch);
    sent->id = message.id;
    if (message.id.text.len > 0)
        memcpy(sent->id_text, message.id.text.data, message.id.text.len);
    sent->id.text.data = sent->id_text;
}

/* Inside a frame newlines are spaces between tokens. */
static void spread(struct sent *sent)
{
    char *comma = memchr(sent->line, ',', sent->len);

    memmove(comma + 2, comma, sent->len - (size_t)(comma - sent->line));
    memcpy(comma, "\r\n", 2);
    sent->len += 2;
}

static void put_frame(struct ends *ends, int from, struct slice body)
{
    char head[FRAMES_HEAD_MAX];

    add_bytes(&ends->ends[from].outgoing, head,
              frames_head(ends_framing(ends, from), head, body.len));
    add_bytes(&ends->ends[from].outgoing, body.data, body.len);
}

/* The line, or the same without its newline in a frame. */
static void put_message(struct ends *ends, int from, const struct sent *sent)
{
    bool framed = ends_framing(ends, from) != NULL;

    put_frame(ends, from, slice_of(sent->line, sent->len - framed));
}

bool ends_send(struct ends *ends, int from, const struct letter *letter)
{
    int place = ends->sent_count;
    struct sent *sent = &ends->sent[place];
    struct end *end = &ends->ends[from];
    bool framed = ends_framing(ends, from) != NULL;

    if (!ends_lives(ends, from) || end->half_closed || letter->padding > PADDING_MAX)
        return false;
    if (letter->kind != ANSWER && place - ends->answer_count == ENDS_SENT_MAX / 2)
        return false; /* the rest is for the answers */
    if (framed && letter->padding + 600 > ends->limits->max_frame_body)
        return ends_send_wrong(ends, from, ENDS_TOO_LONG);
    ends->answer_count += letter->kind == ANSWER;
    ends->sent_count++;
    sent->from = from;
    sent->kind = letter->kind;
    sent->answers = letter->answers;
    sent->session = letter->session;
    sent->pool = letter->session == NOBODY ? letter->pool : NOBODY;
    sent->delivered_to = NOBODY;
    write_line(sent, letter, place);
    if (framed && letter->id % 2 == 1)
        spread(sent);
    if (letter->session != NOBODY)
        end->sessions |= 1u << letter->session;
    end->named_q |= letter->pool == POOL_Q;
    if (!framed && sent->len > ends->limits->max_input_buffer)
        end->poisoned = true;
    put_message(ends, from, sent);
    end->known = true;
    sent->stream_end = end->written + (end->outgoing.end - end->outgoing.start);
    if (ends->traces)
        trace(from, "sends", slice_of(sent->line, sent->len));
    return true;
}

bool ends_send_raw(struct ends *ends, int from, const void *bytes, size_t len, bool poison)
{
    struct end *end = &ends->ends[from];

    if (!ends_lives(ends, from) || end->half_closed)
        return false;
    end->poisoned |= poison;
    add_bytes(&end->outgoing, bytes, len);
    return true;
}

/* Spaces alone: the content of a body that is too long does not count. */
static void put_too_long(struct ends *ends, int from)
{
    size_t len = ends->limits->max_frame_body + 1;
    char *body = malloc(len);

    EXPECT(body != NULL, "memory");
    memset(body, ' ', len);
    put_frame(ends, from, slice_of(body, len));
    free(body);
}

bool ends_send_wrong(struct ends *ends, int from, unsigned which)
{
    struct end *end = &ends->ends[from];
    struct slice head, body;

    if (!ends_lives(ends, from) || end->half_closed)
        return false;
    /* A client of a socket is closed when its first frame is wrong. */
    if (!ends_is_worker(from) && end->fd_in == end->fd_out && !end->known)
        end->poisoned = true;
    frames_wrong(ends_framing(ends, from), which, &head, &body);
    if (which == ENDS_TOO_LONG)
        put_too_long(ends, from);
    else if (head.len > 0)
        add_bytes(&end->outgoing, head.data, head.len);
    else
        put_frame(ends, from, body);
    end->wrong++;
    if (ends->traces)
        fprintf(stderr, "%d sends wrong frame %u\n", from, which);
    return true;
}

/* An id that is written in another way, where there is one, and has the same value. */
static unsigned write_otherwise(const struct sent *request, unsigned start)
{
    struct letter letter = {ANSWER, NOBODY, start, NOBODY, NOBODY, 0};

    for (;; letter.id++) {
        struct sent written = {0};

        write_line(&written, &letter, 0);
        free(written.line);
        written.id.text.data = written.id_text;
        if (message_id_equal(written.id, request->id))
            return letter.id;
    }
}

bool ends_answer(struct ends *ends, int end, unsigned which, size_t padding)
{
    struct letter letter = {ANSWER, NOBODY, 0, NOBODY, NOBODY, padding};
    int *link = &ends->ends[end].owed;

    if (*link == NOBODY)
        return false;
    while (which-- > 0 && ends->sent[*link].next_owed != NOBODY)
        link = &ends->sent[*link].next_owed;
    letter.answers = *link;
    letter.id = write_otherwise(&ends->sent[*link], (unsigned)letter.answers % 5 * 3);
    if (!ends_send(ends, end, &letter))
        return false;
    ends->sent[letter.answers].answer_sent = true;
    *link = ends->sent[letter.answers].next_owed;
    return true;
}

size_t ends_write(struct ends *ends, int number, size_t max)
{
    struct bytes *bytes = &ends->ends[number].outgoing;
    size_t len = bytes->end - bytes->start;
    int fd = fd_out_of(ends, number);
    ssize_t written;

    if (fd < 0 || len == 0 || !ends_lives(ends, number))
        return 0;
    written = write(fd, bytes->data + bytes->start, len < max ? len : max);
    if (written < 0) {
        EXPECT(errno == EAGAIN || errno == EPIPE || errno == ECONNRESET, "%s", strerror(errno));
        return 0;
    }
    ends->ends[number].written += (size_t)written;
    bytes->start += (size_t)written;
    if (bytes->start == bytes->end)
        bytes->start = bytes->end = 0;
    return (size_t)written;
}

/* --- going --- */

void ends_excuse(struct ends *ends, int end)
{
    for (int i = 0; i < ends->sent_count; i++) {
        struct sent *sent = &ends->sent[i];

        if (sent->from != end || sent->kind != REQUEST || sent->fate == ANSWERED)
            continue;
        if (sent->fate == OPEN)
            sent->fate = EXCUSED;
        if (ends->deserted == 0)
            ends->deserted_ms = world.now_ms;
        ends->deserted++; /* or one whose error was about another with the same id */
    }
}

void ends_excuse_dead(struct ends *ends)
{
    for (int i = 0; i < world.child_count; i++) {
        if (world.children[i].running || ends->ends[i].excused)
            continue;
        ends->ends[i].excused = true;
        ends_excuse(ends, i);
    }
}

void ends_vanish(struct ends *ends, int number)
{
    struct end *end = &ends->ends[number];

    if (end->fd_out != end->fd_in)
        world_close_fd(&end->fd_out);
    world_close_fd(&end->fd_in);
    end->fd_out = -1;
    ends_excuse(ends, number);
}

void ends_half_close(struct ends *ends, int number)
{
    struct end *end = &ends->ends[number];

    if (!ends_lives(ends, number) || end->half_closed)
        return;
    if (end->outgoing.end > end->outgoing.start) { /* unwritten bytes were never sent */
        end->poisoned = true;
        end->outgoing.start = end->outgoing.end = 0;
    }
    end->half_closed = true;
    if (end->fd_in != end->fd_out)
        world_close_fd(&end->fd_out);
    else
        shutdown(end->fd_out, SHUT_WR);
}

/* --- receiving --- */

/* The bus has closed it, or announced that. */
static bool is_leaving(const struct ends *ends, int end)
{
    return !ends_lives(ends, end) || (ends_is_worker(end) && world.children[end].terminated);
}

/* The first open request of this end with this id, or NOBODY. */
static int find_open(const struct ends *ends, int end, struct message_id id)
{
    for (int i = 0; i < ends->sent_count; i++) {
        const struct sent *sent = &ends->sent[i];

        if (sent->from == end && sent->kind == REQUEST && sent->fate == OPEN &&
            message_id_equal(sent->id, id))
            return i;
    }
    return NOBODY;
}

static size_t limit_in(const struct limits *limits, const char *text)
{
    if (strstr(text, "max_connections") != NULL)
        return limits->max_connections;
    if (strstr(text, "busy_timeout_sec") != NULL)
        return ENDS_BUSY_TIMEOUT_SEC;
    return strstr(text, "max_sessions") != NULL ? limits->max_sessions
                                                : limits->max_pending_requests;
}

/* The error of a process that has answered nothing yet ends with how it exited. */
static bool has_exit_status(const char *written, size_t len, struct slice line)
{
    size_t common = len - strlen("\"}}\n");

    return line.len > common && memcmp(line.data, written, common) == 0 &&
           memcmp(line.data + common, ": it ", 5) == 0;
}

static bool is_error_line(const struct error_line *known, const struct limits *limits,
                          struct message_id id, struct slice line)
{
    const char *percent = strchr(known->text, '%');
    char text[200], written[MESSAGE_ERROR_MAX];
    size_t len;

    snprintf(text, sizeof text, "%s", known->text);
    if (percent != NULL)
        snprintf(text + (percent - known->text), 40, "%zu)", limit_in(limits, known->text));
    len = message_write_error(written, sizeof written, id, known->code, text);
    return slice_equal(slice_of(written, len), line) ||
           (strcmp(known->text, WORKER_EXITED) == 0 && has_exit_status(written, len, line));
}

/* What a worker had written when it exited is read first. */
static void check_last_words(const struct ends *ends, int request)
{
    for (int i = request; i < ends->sent_count && !ends->patience_lost; i++) {
        const struct sent *sent = &ends->sent[i];

        EXPECT(sent->kind != ANSWER || sent->answers != request ||
                   sent->stream_end > ends->ends[sent->from].written ||
                   ends->ends[sent->from].poisoned,
               "request %d was answered by %d", request, i);
    }
}

/* More requests of those who are gone than are remembered, or for longer: the late answer to one of
 * them may be taken for that to another with the same id, and that one's for a third's. */
static bool too_many_deserted(const struct ends *ends)
{
    return ends->deserted > ends->limits->max_pending_requests ||
           (ends->deserted > 0 &&
            world.now_ms - ends->deserted_ms >= (int64_t)ends->limits->abandoned_id_sec * 1000);
}

/* About a message without a readable id. */
static void read_complaint(struct ends *ends, int number, const struct error_line *known)
{
    struct end *end = &ends->ends[number];

    if (ends_framing(ends, number) == NULL || known->code == -32000) {
        EXPECT(known->farewell, "%d reads an error about frames: %s", number, known->text);
        end->farewell = true;
        return;
    }
    end->complaints++;
    EXPECT(end->complaints <= end->wrong || end->poisoned, "%d sent no such frame: %s", number,
           known->text);
}

/* A line of the daemon's own. */
static void read_error_line(struct ends *ends, int number, struct slice line)
{
    size_t count = sizeof error_lines / sizeof *error_lines, i;
    struct message_scratch scratch;
    struct scanner scanner;
    struct message message;
    int about;

    scanner_reset(&scanner);
    EXPECT(scanner_run(&scanner, line.data, line.len) == SCAN_MESSAGE, "%.*s", (int)line.len,
           line.data);
    message_from_scan(&message, line, &scanner.fields, &scratch);
    for (i = 0; i < count; i++) {
        if (error_lines[i].to_client != ends_is_worker(number) &&
            error_lines[i].has_id == (message.id.type != ID_NONE) &&
            is_error_line(&error_lines[i], ends->limits, message.id, line))
            break;
    }
    EXPECT(i < count && !ends->strict, "%d reads an unknown line: %.*s", number, (int)line.len,
           line.data);
    if (!error_lines[i].has_id) {
        read_complaint(ends, number, &error_lines[i]);
        return;
    }
    about = find_open(ends, number, message.id);
    EXPECT(about != NOBODY || ends->ends[number].poisoned || too_many_deserted(ends),
           "%d did not ask: %.*s", number, (int)line.len, line.data);
    if (about == NOBODY)
        return;
    ends->sent[about].fate = FAILED;
    if (strcmp(error_lines[i].text, WORKER_EXITED) == 0)
        check_last_words(ends, about);
}

/* The request is answered, though it was taken to be the one that an error line was about: that was
 * about another one with the same id then; or that one got the answer to a forgotten request. */
static void tell_another(struct ends *ends, int place)
{
    int other = find_open(ends, ends->sent[place].from, ends->sent[place].id);

    EXPECT(other != NOBODY || too_many_deserted(ends), "request %d ends twice", place);
    if (other != NOBODY)
        ends->sent[other].fate = FAILED;
}

/* The answer was taken for that to another request with the same id; at a worker it may as well be
 * a message that answers nothing. */
static void answer_another(struct ends *ends, int number, const struct sent *answer)
{
    int asked = find_open(ends, number, ends->sent[answer->answers].id);

    EXPECT(too_many_deserted(ends), "%d reads the answer to %d", number, answer->answers);
    EXPECT(asked != NOBODY || ends_is_worker(number), "%d did not ask", number);
    if (asked != NOBODY)
        ends->sent[asked].fate = ends_is_worker(number) ? EXCUSED : ANSWERED;
}

static void check_answer(struct ends *ends, int number, const struct sent *sent)
{
    struct sent *request = &ends->sent[sent->answers];

    if (request->from != number) {
        EXPECT(is_leaving(ends, request->from) || too_many_deserted(ends),
               "%d reads what answers %d", number, sent->answers);
        if (!ends_is_worker(number) || too_many_deserted(ends))
            answer_another(ends, number, sent);
        return;
    }
    if (request->fate == ANSWERED) {
        answer_another(ends, number, sent);
        return;
    }
    if (request->fate == FAILED)
        tell_another(ends, sent->answers);
    request->fate = ANSWERED;
}

/* The end has one more to answer. It never has two with one id, but when an asker is gone; or more
 * were gone than are remembered. */
static void owe(struct ends *ends, int number, int place)
{
    struct sent *new = &ends->sent[place];
    int *link = &ends->ends[number].owed;

    for (; *link != NOBODY; link = &ends->sent[*link].next_owed) {
        const struct sent *old = &ends->sent[*link];

        EXPECT(is_leaving(ends, old->from) || !message_id_equal(old->id, new->id) ||
                   too_many_deserted(ends),
               "requests %d and %d at %d have one id", *link, place, number);
    }
    *link = place;
    new->next_owed = NOBODY;
}

/* The worker is of pool q, and q has a mode. */
static bool is_keyed(const struct ends *ends, int worker)
{
    return world.children[worker].pool == POOL_Q && ends->q_clients != CLIENTS_SHARED;
}

/* A message between a worker of such a pool and a client. */
static void check_keyed(struct ends *ends, int worker, int client)
{
    struct end *end = &ends->ends[worker];

    EXPECT(ends->ends[client].named_q, "%d never named the pool of %d", client, worker);
    if (ends->q_clients != CLIENTS_EXCLUSIVE)
        return;
    EXPECT(end->client == NOBODY || end->client == client, "%d is for %d alone, not for %d", worker,
           end->client, client);
    end->client = client;
}

/* The message comes in order, and once; but notifications may be for all clients of a worker. */
static void check_order(const struct ends *ends, int number, int place)
{
    const struct sent *sent = &ends->sent[place];
    int last = ends->ends[number].last_from[sent->from];
    bool to_all = ends_is_worker(sent->from) && is_keyed(ends, sent->from) &&
                  ends->q_clients == CLIENTS_STICKY && sent->kind == NOTIFICATION;

    EXPECT(sent->delivered_to == NOBODY || (to_all && sent->delivered_to != number),
           "message %d is delivered twice", place);
    EXPECT(place > last || (place == last && last == 0), "message %d comes after %d", place, last);
}

/* Byte for byte; but on the way from a frame into a line newlines become spaces. */
static bool is_as_sent(const struct ends *ends, int number, struct slice line,
                       const struct sent *sent)
{
    bool spaces = ends_framing(ends, number) == NULL;

    if (line.len != sent->len)
        return false;
    for (size_t i = 0; i + 1 < line.len; i++) {
        char c = sent->line[i];

        if (line.data[i] != (spaces && (c == '\r' || c == '\n') ? ' ' : c))
            return false;
    }
    return true;
}

static void read_line(struct ends *ends, int number, struct slice line)
{
    struct end *end = &ends->ends[number];
    int place = NOBODY, worker;
    struct sent *sent;

    if (ends->traces)
        trace(number, "reads", line);
    if (line.len <= 5 || memcmp(line.data, "{\"n\":", 5) != 0) {
        read_error_line(ends, number, line);
        return;
    }
    place = (int)strtol(line.data + 5, NULL, 10); /* a newline ends the line */
    EXPECT(place >= 0 && place < ends->sent_count, "%d reads message %d", number, place);
    sent = &ends->sent[place];
    EXPECT(is_as_sent(ends, number, line, sent), "message %d is changed", place);
    EXPECT(ends_is_worker(sent->from) != ends_is_worker(number), "%d to %d", sent->from, number);
    check_order(ends, number, place);
    sent->delivered_to = number;
    end->last_from[sent->from] = place;
    worker = ends_is_worker(number) ? number : sent->from;
    if (is_keyed(ends, worker))
        check_keyed(ends, worker, ends_is_worker(number) ? sent->from : number);
    if (sent->kind == ANSWER) {
        check_answer(ends, number, sent);
    } else if (ends_is_worker(number)) {
        EXPECT(sent->pool == NOBODY || sent->pool == world.children[number].pool,
               "message %d is in the wrong pool", place);
    } else if (!is_keyed(ends, worker)) {
        EXPECT(sent->session != NOBODY && (end->sessions & 1u << sent->session) != 0,
               "%d never named the session of message %d", number, place);
    }
    if (sent->kind == REQUEST)
        owe(ends, number, place);
}

/* A body gets the newline that a line has. */
static void read_body(struct ends *ends, int number, struct slice body)
{
    char *line = malloc(body.len + 1);

    EXPECT(line != NULL, "memory");
    memcpy(line, body.data, body.len);
    line[body.len] = '\n';
    read_line(ends, number, slice_of(line, body.len + 1));
    free(line);
}

static void read_messages(struct ends *ends, int number)
{
    const struct framing *framing = ends_framing(ends, number);
    struct bytes *bytes = &ends->ends[number].incoming;
    size_t head, body;

    while (frames_find(framing, slice_of(bytes->data + bytes->start, bytes->end - bytes->start),
                       &head, &body)) {
        struct slice message = slice_of(bytes->data + bytes->start + head, body);

        if (framing == NULL)
            read_line(ends, number, message);
        else
            read_body(ends, number, message);
        bytes->start += head + body;
    }
    if (bytes->start == bytes->end)
        bytes->start = bytes->end = 0;
}

size_t ends_read(struct ends *ends, int number, size_t max)
{
    struct end *end = &ends->ends[number];
    int fd = fd_in_of(ends, number);
    char data[4096];
    ssize_t got;

    if (fd < 0 || end->ended)
        return 0;
    got = read(fd, data, max < sizeof data ? max : sizeof data);
    if (got > 0) {
        add_bytes(&end->incoming, data, (size_t)got);
        read_messages(ends, number);
        return (size_t)got;
    }
    if (got < 0 && errno == EAGAIN)
        return 0;
    EXPECT(got == 0 || errno == ECONNRESET, "%s", strerror(errno));
    end->ended = true;
    return 1;
}

int ends_lingering(const struct ends *ends)
{
    for (int i = WORLD_CHILDREN_MAX; i < WORLD_CHILDREN_MAX + ends->client_count; i++) {
        const struct end *end = &ends->ends[i];

        if (end->fd_in >= 0 && !end->ended && (end->half_closed || end->farewell))
            return i;
    }
    return NOBODY;
}

int ends_uncomplained(const struct ends *ends)
{
    for (int i = WORLD_CHILDREN_MAX; i < WORLD_CHILDREN_MAX + ends->client_count; i++) {
        const struct end *end = &ends->ends[i];

        if (ends_lives(ends, i) && !end->poisoned && !ends->strict && end->complaints < end->wrong)
            return i;
    }
    return NOBODY;
}

int ends_unsettled(const struct ends *ends)
{
    for (int i = 0; i < ends->sent_count; i++) {
        const struct sent *sent = &ends->sent[i];

        if (sent->kind == REQUEST && sent->fate == OPEN && !ends->strict &&
            !ends->ends[sent->from].poisoned)
            return i;
    }
    return NOBODY;
}
