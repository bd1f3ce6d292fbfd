#include "build_config.h"

#include "load.h"

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "deadline.h"

#define MAX_CLIENTS 64
#define STALL_MS 300

static bool has_session(const struct load *load, unsigned id)
{
    return load->in_sessions && id % 2 == 1;
}

static unsigned session_of(unsigned id)
{
    return id / 2 % LOAD_SESSIONS;
}

/* The params of a request: different for each client and id, with multi-byte characters and
 * escapes, of 20 to 160 bytes or load->size. */
static void add_params(struct text *to, const struct load_client *member, unsigned id)
{
    size_t size = member->load->size > 0 ? member->load->size : (id * 7 + member->number) % 128;
    text_printf(to, "{\"client\":%u,\"n\":%u,\"text\":\"\xc3\xa9\\u00e9\\n", member->number, id);
    text_fill(to, (char)('a' + (id + member->number) % 26), size);
    text_add(to, "\"}", 2);
}

static void add_session(struct text *to, const struct load_client *member, unsigned id)
{
    if (has_session(member->load, id))
        text_printf(to, "\"sessionId\":\"c%u-s%u\",", member->number, session_of(id));
}

static void add_request(struct load_client *member)
{
    unsigned id = member->asked++;
    text_printf(&member->output, "{\"jsonrpc\":\"2.0\",\"id\":%u,", id);
    add_session(&member->output, member, id);
    if (member->load->pool != NULL)
        text_printf(&member->output, "\"pool\":\"%s\",", member->load->pool);
    text_printf(&member->output, "\"method\":\"plain\",\"params\":");
    add_params(&member->output, member, id);
    text_printf(&member->output, "}\n");
}

static void check_answer(struct load_client *member, struct span line)
{
    long id = json_long(json_get(line, "id"), -1);
    ck_assert_msg(id >= 0 && (unsigned long)id < member->asked, "client %u never asked: %.*s",
                  member->number, SHOWN(line));
    ck_assert_msg(!member->seen[id], "client %u has the answer to %ld twice", member->number, id);
    member->seen[id] = 1;
    member->answered++;
    struct text *expected = &member->expected;
    expected->len = 0;
    text_printf(expected, "{\"jsonrpc\":\"2.0\",\"id\":%ld,", id);
    add_session(expected, member, (unsigned)id);
    text_printf(expected, "\"result\":");
    add_params(expected, member, (unsigned)id);
    text_add(expected, "}", 1);
    ck_assert_msg(line.len == expected->len && memcmp(line.data, expected->data, line.len) == 0,
                  "client %u, instead of %.300s: %.*s", member->number, expected->data,
                  SHOWN(line));
    if (!has_session(member->load, (unsigned)id))
        return;
    unsigned *next = &member->next_in_session[session_of((unsigned)id)];
    ck_assert_msg(*next == (unsigned)id, "client %u, out of order: %ld before %u", member->number,
                  id, *next);
    *next += 2 * LOAD_SESSIONS;
}

static bool finished(const struct load_client *member)
{
    return member->answered == member->load->requests;
}

static void fill_output(struct load_client *member)
{
    const struct load *load = member->load;
    if (member->written == member->output.len)
        member->written = member->output.len = 0;
    while (member->asked < load->requests && member->asked - member->answered < load->in_flight)
        add_request(member);
}

/* Returns true when the daemon took some of it. */
static bool write_output(struct load_client *member)
{
    size_t rest = member->output.len - member->written;
    size_t n =
        rest == 0 ? 0 : client_offer(member->client, member->output.data + member->written, rest);
    member->written += n;
    return n > 0;
}

static void read_answers(struct load_client *member)
{
    struct span line;
    while (client_line_before(member->client, 0, &line))
        check_answer(member, line);
    ck_assert_msg(!member->client->eof, "client %u: the end, with %u of %u answers", member->number,
                  member->answered, member->load->requests);
}

void load_begin(struct load *load, const struct daemon *daemon)
{
    ck_assert_uint_le(load->clients, MAX_CLIENTS);
    load->members = calloc(load->clients, sizeof *load->members);
    ck_assert_ptr_nonnull(load->members);
    for (unsigned number = 0; number < load->clients; number++) {
        struct load_client *member = &load->members[number];
        member->client = client_connect(daemon);
        member->load = load;
        member->number = number;
        member->seen = calloc(load->requests, 1);
        ck_assert_ptr_nonnull(member->seen);
        for (unsigned i = 0; i < LOAD_SESSIONS; i++)
            member->next_in_session[i] = 2 * i + 1;
    }
}

static unsigned prepare_poll(struct load *load, struct pollfd *polled)
{
    unsigned open = 0;
    for (unsigned i = 0; i < load->clients; i++) {
        struct load_client *member = &load->members[i];
        fill_output(member);
        polled[i].fd = finished(member) ? -1 : member->client->in;
        polled[i].events = POLLIN;
        if (member->client->in == member->client->out && member->written < member->output.len)
            polled[i].events |= POLLOUT;
        if (!finished(member))
            open++;
    }
    return open;
}

void load_finish(struct load *load)
{
    struct pollfd polled[MAX_CLIENTS];
    for (;;) {
        for (unsigned i = 0; i < load->clients; i++) {
            fill_output(&load->members[i]);
            write_output(&load->members[i]);
        }
        if (prepare_poll(load, polled) == 0)
            return;
        int n = poll(polled, load->clients, deadline_left_ms(deadline_usual()));
        ck_assert_msg(n > 0 || (n < 0 && errno == EINTR),
                      "no answer comes: client 0 has "
                      "%u of %u answers",
                      load->members[0].answered, load->requests);
        for (unsigned i = 0; i < load->clients; i++) {
            if (polled[i].fd >= 0 && polled[i].revents != 0)
                read_answers(&load->members[i]);
        }
    }
}

void load_push(struct load *load)
{
    int64_t last = now_ms();
    while (now_ms() - last < STALL_MS) {
        bool taken = false;
        for (unsigned i = 0; i < load->clients; i++) {
            fill_output(&load->members[i]);
            taken = write_output(&load->members[i]) || taken;
        }
        if (taken)
            last = now_ms();
        else
            nap();
    }
}

void load_end(struct load *load)
{
    for (unsigned i = 0; i < load->clients; i++) {
        struct load_client *member = &load->members[i];
        client_close(member->client);
        free(member->seen);
        text_free(&member->output);
        text_free(&member->expected);
    }
    free(load->members);
    load->members = NULL;
}

void load_run(struct load *load, const struct daemon *daemon)
{
    load_begin(load, daemon);
    load_finish(load);
    load_end(load);
}
