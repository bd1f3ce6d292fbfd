/* glib_host TEST_WORKER ROUND_TRIPS: a bus in the main loop of GLib, by its poll_fd alone.
 *
 * Requests go one at a time first, then WINDOW at a time: a wakeup that is lost would leave the
 * loop asleep, and the deadline fails. Each wakeup must find something to do. Then one request is
 * held by its worker until a timer of the host releases it: while nothing happens the poll_fd is
 * silent, and the program uses no processor time. */
#include <glib-unix.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <stdio_bus_embed.h>

#define WINDOW 16
#define IDLE_MS 1000
#define IDLE_CPU_US_MAX 50000
#define DEADLINE_SECONDS 200
#define SESSIONS 8

static struct {
    stdio_bus_t *bus;
    GMainLoop *loop;
    unsigned long wanted, sent, answered;
    unsigned long wakeups, idle_wakeups, empty_wakeups;
    gboolean is_idle, was_idle; /* for IDLE_MS */
    double idle_us;
} host;

static void fail(const char *text)
{
    fprintf(stderr, "glib_host: %s (sent %lu, answered %lu, wakeups %lu)\n", text, host.sent,
            host.answered, host.wakeups);
    exit(1);
}

static double used_us(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void send_text(const char *text)
{
    if (stdio_bus_ingest(host.bus, text, strlen(text)) != STDIO_BUS_OK)
        fail("a message was refused");
}

static void send_next(void)
{
    char text[160];

    host.sent++;
    snprintf(text, sizeof text,
             "{\"id\":%lu,\"sessionId\":\"s%lu\",\"method\":\"echo\",\"params\":{\"n\":%lu}}",
             host.sent, host.sent % SESSIONS, host.sent);
    send_text(text);
}

static gboolean release(gpointer user_data)
{
    (void)user_data;
    host.idle_us = used_us() - host.idle_us;
    host.is_idle = FALSE;
    host.was_idle = TRUE;
    send_text("{\"method\":\"release\",\"sessionId\":\"s0\"}");
    return G_SOURCE_REMOVE;
}

/* The loop has nothing to do: whatever the last answer has left is done. */
static gboolean idle_begins(gpointer user_data)
{
    (void)user_data;
    host.idle_us = used_us();
    host.is_idle = TRUE;
    g_timeout_add(IDLE_MS, release, NULL);
    return G_SOURCE_REMOVE;
}

static void on_message(stdio_bus_t *bus, const char *msg, size_t len, void *user_data)
{
    unsigned long window = host.answered < host.wanted / 4 ? 1 : WINDOW;
    unsigned long id;

    (void)len;
    (void)user_data;
    if (strstr(msg, "\"id\":\"hold\"") != NULL) { /* from here on it keeps its answers back */
        send_text("{\"id\":\"held\",\"sessionId\":\"s0\",\"method\":\"echo\"}");
        g_idle_add_full(G_PRIORITY_LOW, idle_begins, NULL, NULL);
        return;
    }
    if (strstr(msg, "\"id\":\"held\"") != NULL) {
        stdio_bus_stop(bus, -1);
        return;
    }
    if (sscanf(msg, "{\"jsonrpc\":\"2.0\",\"id\":%lu,", &id) != 1 || id == 0 || id > host.sent)
        fail(msg);
    host.answered++;
    while (host.sent < host.wanted && host.sent - host.answered < window)
        send_next();
    if (host.answered == host.wanted)
        send_text("{\"id\":\"hold\",\"sessionId\":\"s0\",\"method\":\"hold\"}");
}

static gboolean readable(gint fd, GIOCondition condition, gpointer user_data)
{
    (void)fd;
    (void)condition;
    (void)user_data;
    host.wakeups++;
    host.idle_wakeups += host.is_idle ? 1 : 0;
    host.empty_wakeups += stdio_bus_step(host.bus, 0) == 0 ? 1 : 0;
    if (stdio_bus_get_state(host.bus) == STDIO_BUS_STATE_STOPPED)
        g_main_loop_quit(host.loop);
    return G_SOURCE_CONTINUE;
}

static gboolean too_late(gpointer user_data)
{
    (void)user_data;
    fail("the loop is asleep: a wakeup is lost");
    return G_SOURCE_REMOVE;
}

int main(int argc, char *argv[])
{
    stdio_bus_options_t options = {0};
    gchar *config =
        g_strdup_printf("{\"pools\":[{\"id\":\"echo\",\"command\":\"%s\",\"instances\":2}]}",
                        argv[1]);

    if (argc != 3)
        return 64;
    host.wanted = strtoul(argv[2], NULL, 10);
    host.loop = g_main_loop_new(NULL, FALSE);
    options.config_json = config;
    options.on_message = on_message;
    options.log_level = 2;
    host.bus = stdio_bus_create(&options);
    if (host.bus == NULL || stdio_bus_start(host.bus) != STDIO_BUS_OK)
        fail("the bus cannot be started");
    g_unix_fd_add(stdio_bus_get_poll_fd(host.bus), G_IO_IN, readable, NULL);
    g_timeout_add_seconds(DEADLINE_SECONDS, too_late, NULL);
    send_next();
    g_main_loop_run(host.loop);
    printf(
        "%lu round trips, %lu wakeups, %lu of them with nothing to do; idle: %lu wakeups, %.0f us "
        "of processor time\n",
        host.answered, host.wakeups, host.empty_wakeups, host.idle_wakeups, host.idle_us);
    if (host.empty_wakeups > host.wakeups / 10)
        fail("busy: wakeups with nothing to do");
    if (!host.was_idle || host.idle_wakeups > 0 || host.idle_us > IDLE_CPU_US_MAX)
        fail("the program is not idle when nothing happens");
    stdio_bus_destroy(host.bus);
    g_free(config);
    return 0;
}
