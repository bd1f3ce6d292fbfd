#include "build_config.h"

#include "nats_server.h"

#include <arpa/inet.h>
#include <check.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "harness.h"
#include "steps.h"

#define INFO "{'server_id':'x','headers':true,'max_payload':100000%s}"

void broker_listen(struct broker *broker)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons((uint16_t)broker->port)};
    socklen_t len = sizeof address;
    int on = 1;

    steps_without_upgrades("each has another connection to NATS");
    broker->listener = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_ge(broker->listener, 0);
    fcntl(broker->listener, F_SETFD, FD_CLOEXEC);
    setsockopt(broker->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    ck_assert_int_eq(bind(broker->listener, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(broker->listener, 8), 0);
    ck_assert_int_eq(getsockname(broker->listener, (struct sockaddr *)&address, &len), 0);
    broker->port = ntohs(address.sin_port);
}

void broker_accept(struct broker *broker)
{
    int fd;

    ck_assert(wait_fd(broker->listener, POLLIN, deadline_usual()));
    fd = accept(broker->listener, NULL, NULL);
    ck_assert_int_ge(fd, 0);
    broker->link = client_adopt(fd, fd);
}

void broker_say(struct broker *broker, const char *line)
{
    client_send_bytes(broker->link, line, strlen(line));
    client_send_bytes(broker->link, "\r\n", 2);
}

void broker_greet(struct broker *broker, const char *more)
{
    struct text *info = test_text();

    text_printf(info, "INFO " INFO, more);
    text_replace(info, "'", "\"");
    text_add(info, "", 1);
    broker_say(broker, info->data);
}

const char *broker_expect(struct broker *broker, const char *words)
{
    struct span line = client_line(broker->link);
    const char *text = test_format("%.*s", (int)(line.len - 1), line.data);

    ck_assert_msg(strncmp(text, words, strlen(words)) == 0, "%s instead of %s", text, words);
    return text;
}

void broker_admit(struct broker *broker)
{
    broker_accept(broker);
    broker_greet(broker, "");
    broker_expect(broker, "CONNECT {");
    broker_expect(broker, "PING");
    broker_say(broker, "PONG");
}

/* --- messages --- */

/* These bytes and the CRLF after them; a copy that lives as long as the test. */
static const char *take_bytes(struct broker *broker, size_t len)
{
    struct client *link = broker->link;
    struct text *copy = test_text();
    int64_t deadline = deadline_usual();

    while (link->input.len - link->consumed < len + 2)
        ck_assert(client_read_before(link, deadline));
    text_add(copy, link->input.data + link->consumed, len);
    text_add(copy, "", 1);
    link->consumed += len + 2;
    return copy->data;
}

struct broker_message broker_expect_message(struct broker *broker, const char *subject)
{
    struct span line = client_line(broker->link);
    const char *text = test_format("%.*s", (int)line.len, line.data);
    const char *words = test_format("HPUB %s ", subject);
    unsigned head_len, len;
    const char *bytes;

    ck_assert_msg(strncmp(text, words, strlen(words)) == 0, "%s instead of %s", text, words);
    ck_assert_int_eq(sscanf(text + strlen(words), "%u %u", &head_len, &len), 2);
    ck_assert_uint_le(head_len, len);
    bytes = take_bytes(broker, len);
    return (struct broker_message){test_format("%.*s", (int)head_len, bytes), bytes + head_len,
                                   len - head_len};
}

void broker_deliver(struct broker *broker, unsigned sid, const char *headers, const void *payload,
                    size_t len)
{
    size_t head_len = strlen(headers);

    if (head_len > 0)
        broker_say(broker, test_format("HMSG s %u %zu %zu", sid, head_len, head_len + len));
    else
        broker_say(broker, test_format("MSG s %u %zu", sid, len));
    client_send_bytes(broker->link, headers, head_len);
    client_send_bytes(broker->link, payload, len);
    client_send_bytes(broker->link, "\r\n", 2);
}
