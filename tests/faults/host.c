/* host: the program around the faulty library: `faulty_bus --host CONFIG SOCKET`. With any other
 * arguments faulty_bus is the daemon. Its own calls do not fail: they are not renamed. */
#include "build_config.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "embed/stdio_bus_embed.h"

#define HANG_SECONDS 60
#define EXIT_FAULT 71 /* a call was refused; the reason is in the log */

int daemon_main(int argc, char *argv[]); /* main of src/main.c */

static struct {
    stdio_bus_t *bus;
    int messages, status;
} host;

static void note_code(const char *what, int code)
{
    if (code >= 0)
        return;
    fprintf(stderr, "%s: %d%s\n", what, code, code == STDIO_BUS_ERR ? ": out of memory" : "");
    host.status = EXIT_FAULT;
}

/* Two messages that fit into no one buffer; their write is one, by writev. */
static void send_long(stdio_bus_t *bus)
{
    static const char start[] = "{\"method\":\"no_answer\",\"params\":[\"", end[] = "\"]}";
    static char text[200000];

    memset(text, 'x', sizeof text);
    memcpy(text, start, sizeof start - 1);
    memcpy(text + sizeof text - (sizeof end - 1), end, sizeof end - 1);
    for (int i = 0; i < 2; i++)
        note_code("a long message", stdio_bus_ingest(bus, text, sizeof text));
}

static void on_message(stdio_bus_t *bus, const char *msg, size_t len, void *user_data)
{
    (void)user_data;
    if (strlen(msg) != len)
        abort();
    if (++host.messages == 1)
        send_long(bus);
}

static void on_error(stdio_bus_t *bus, int code, const char *message, void *user_data)
{
    (void)bus;
    (void)user_data;
    fprintf(stderr, "ERROR %d: %s\n", code, message);
}

static void on_worker(stdio_bus_t *bus, int worker_id, const char *event, void *user_data)
{
    (void)bus;
    (void)worker_id;
    (void)event;
    (void)user_data;
}

static void on_client(stdio_bus_t *bus, int client_id, const char *text, void *user_data)
{
    (void)bus;
    (void)client_id;
    (void)text;
    (void)user_data;
}

static bool step(void)
{
    int count = stdio_bus_step(host.bus, -1);

    note_code("step", count);
    return count >= 0 && stdio_bus_get_state(host.bus) == STDIO_BUS_STATE_RUNNING;
}

/* Sends until the message is taken or refused for good, and waits for the answer. */
static void exchange(const char *text)
{
    int status, before = host.messages;

    do
        status = stdio_bus_ingest(host.bus, text, strlen(text));
    while ((status == STDIO_BUS_EFULL || status == STDIO_BUS_EAGAIN) && step());
    note_code(text, status);
    while (status == STDIO_BUS_OK && host.messages == before && step())
        continue;
}

/* On one descriptor or two; it ends, or is taken out. */
static void use_embedded_worker(bool two)
{
    int ends[2], from, id;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        abort();
    from = two ? dup(ends[0]) : ends[0];
    id = stdio_bus_register_embedded_worker(host.bus, ends[0], from, "inside");
    note_code("an embedded worker", id);
    if (id < 0 && two)
        close(from);
    if (id < 0)
        close(ends[0]);
    else
        (void)step();
    close(ends[1]);
    if (id >= 0 && stdio_bus_get_state(host.bus) == STDIO_BUS_STATE_RUNNING)
        note_code("no embedded worker", stdio_bus_unregister_embedded_worker(host.bus, id));
}

/* A client of the listener comes and goes. */
static void visit(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) != 0)
        abort();
    (void)step();
    close(fd);
    (void)stdio_bus_step(host.bus, 0);
}

static void run(const char *path)
{
    exchange("{\"id\":1,\"sessionId\":\"s\",\"method\":\"echo\"}");
    if (path != NULL)
        visit(path);
    use_embedded_worker(path != NULL);
    exchange("{\"id\":2,\"method\":\"die\",\"params\":{\"code\":1}}");
    exchange("{\"id\":3,\"method\":\"big\",\"params\":{\"size\":100000}}");
}

/* From the creation to the end of a bus. */
static void live(const stdio_bus_options_t *options)
{
    host.messages = 0;
    host.bus = stdio_bus_create(options);
    if (host.bus == NULL) {
        host.status = EXIT_FAULT;
        return;
    }
    (void)stdio_bus_get_poll_fd(host.bus); /* its timer is of another clock, and wakes too late */
    if (stdio_bus_start(host.bus) == STDIO_BUS_OK) {
        run(options->listener.unix_path);
        (void)stdio_bus_stop(host.bus, 5);
        while (stdio_bus_get_state(host.bus) != STDIO_BUS_STATE_STOPPED)
            note_code("the end", stdio_bus_step(host.bus, -1));
    } else {
        host.status = EXIT_FAULT;
    }
    stdio_bus_destroy(host.bus);
}

/* With the configuration as a file, alone; then as a text, with a listener. */
static int be_host(const char *config, const char *path)
{
    stdio_bus_options_t options = {.config_path = config,
                                   .on_message = on_message,
                                   .on_error = on_error,
                                   .on_worker = on_worker,
                                   .on_client_connect = on_client,
                                   .on_client_disconnect = on_client};
    static char text[4096];
    FILE *file = fopen(config, "r");

    if (file == NULL)
        abort();
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    (void)alarm(HANG_SECONDS);
    live(&options);
    options.config_path = NULL;
    options.config_json = text;
    options.listener.mode = STDIO_BUS_LISTEN_UNIX;
    options.listener.unix_path = path;
    live(&options);
    return host.status;
}

int main(int argc, char *argv[])
{
    if (argc == 4 && strcmp(argv[1], "--host") == 0)
        return be_host(argv[2], argv[3]);
    return daemon_main(argc, argv);
}
