#include "build_config.h"

#include "embed_fixture.h"

#include <poll.h>

static void on_message(stdio_bus_t *bus, const char *msg, size_t len, void *user_data)
{
    struct embed *embed = user_data;

    ck_assert_ptr_eq(bus, embed->bus);
    ck_assert_uint_eq(strlen(msg), len);
    embed->count++;
    embed->bytes += len;
    if (!embed->quiet) {
        text_add(&embed->messages, msg, len);
        text_add(&embed->messages, "\n", 1);
    }
    if (embed->hook != NULL)
        embed->hook(embed, msg, len);
}

static void on_error(stdio_bus_t *bus, int code, const char *message, void *user_data)
{
    struct embed *embed = user_data;

    ck_assert(bus == NULL || bus == embed->bus);
    text_printf(&embed->events, "error %d %s\n", code, message);
}

static void on_log(stdio_bus_t *bus, int level, const char *message, void *user_data)
{
    struct embed *embed = user_data;

    (void)bus;
    text_printf(&embed->log, "%d %s\n", level, message);
}

static void on_worker(stdio_bus_t *bus, int worker_id, const char *event, void *user_data)
{
    struct embed *embed = user_data;

    ck_assert_ptr_eq(bus, embed->bus);
    text_printf(&embed->events, "worker %d %s\n", worker_id, event);
}

static void on_connect(stdio_bus_t *bus, int client_id, const char *peer_info, void *user_data)
{
    struct embed *embed = user_data;

    ck_assert_ptr_eq(bus, embed->bus);
    text_printf(&embed->events, "connected %d %s\n", client_id, peer_info);
}

static void on_disconnect(stdio_bus_t *bus, int client_id, const char *reason, void *user_data)
{
    struct embed *embed = user_data;

    ck_assert_ptr_eq(bus, embed->bus);
    text_printf(&embed->events, "disconnected %d %s\n", client_id, reason);
}

void embed_init_config(struct embed *embed, const char *config)
{
    const char *worker = getenv("TEST_WORKER");

    *embed = (struct embed){.bus = NULL};
    text_printf(&embed->config, "%s", config);
    text_quote(&embed->config, 0);
    text_replace(&embed->config, "@WORKER@", worker != NULL ? worker : "./test_worker");
    text_printf(&embed->events, "%s", "");
    text_printf(&embed->log, "%s", "");
    embed->options.config_json = embed->config.data;
    embed->options.on_message = on_message;
    embed->options.on_error = on_error;
    embed->options.on_log = on_log;
    embed->options.on_worker = on_worker;
    embed->options.on_client_connect = on_connect;
    embed->options.on_client_disconnect = on_disconnect;
    embed->options.user_data = embed;
}

void embed_init(struct embed *embed, unsigned instances, const char *args, const char *members)
{
    struct text config = {.len = 0};

    text_printf(&config,
                "{'pools':[{'id':'pool','command':'@WORKER@','args':[%s],'instances':%u}]%s%s}",
                args, instances, members[0] != '\0' ? "," : "", members);
    embed_init_config(embed, config.data);
    text_free(&config);
}

void embed_start(struct embed *embed)
{
    embed->bus = stdio_bus_create(&embed->options);
    ck_assert_msg(embed->bus != NULL, "%s", embed->events.data);
    ck_assert_int_eq(stdio_bus_get_state(embed->bus), STDIO_BUS_STATE_CREATED);
    ck_assert_msg(stdio_bus_start(embed->bus) == STDIO_BUS_OK, "%s", embed->log.data);
    ck_assert_int_eq(stdio_bus_get_state(embed->bus), STDIO_BUS_STATE_RUNNING);
}

void embed_step(struct embed *embed, int64_t deadline)
{
    int fd = stdio_bus_get_poll_fd(embed->bus);

    embed->steps++;
    if (fd < 0)
        ck_assert_int_ge(stdio_bus_step(embed->bus, 100), 0);
    else if (wait_fd(fd, POLLIN, deadline))
        ck_assert_int_ge(stdio_bus_step(embed->bus, 0), 0);
}

int embed_ingest(struct embed *embed, const char *format, ...)
{
    struct text text = {.len = 0};
    va_list arguments;
    int status;

    va_start(arguments, format);
    text_vprintf(&text, format, arguments);
    va_end(arguments);
    text_quote(&text, 0);
    status = stdio_bus_ingest(embed->bus, text.data, text.len);
    text_free(&text);
    return status;
}

struct span embed_message(struct embed *embed)
{
    struct span message;
    const char *end;

    EMBED_UNTIL(embed, embed->messages.len > embed->taken);
    message.data = embed->messages.data + embed->taken;
    end = strchr(message.data, '\n');
    message.len = (size_t)(end - message.data);
    embed->taken += message.len + 1;
    return message;
}

bool embed_has(const struct embed *embed, const char *event)
{
    size_t len = strlen(event);
    const char *at = embed->events.data;

    while ((at = strstr(at, event)) != NULL) {
        if ((at == embed->events.data || at[-1] == '\n') && (at[len] == '\n' || at[len] == ' '))
            return true;
        at++;
    }
    return false;
}

void embed_await(struct embed *embed, const char *event)
{
    EMBED_UNTIL(embed, embed_has(embed, event));
}

stdio_bus_stats_t embed_stats(const struct embed *embed)
{
    stdio_bus_stats_t stats;

    stdio_bus_get_stats(embed->bus, &stats);
    return stats;
}

void embed_stop(struct embed *embed)
{
    ck_assert_int_eq(stdio_bus_stop(embed->bus, -1), STDIO_BUS_OK);
    EMBED_UNTIL(embed, stdio_bus_get_state(embed->bus) == STDIO_BUS_STATE_STOPPED);
}

void embed_end(struct embed *embed)
{
    stdio_bus_destroy(embed->bus);
    text_free(&embed->config);
    text_free(&embed->messages);
    text_free(&embed->events);
    text_free(&embed->log);
}
