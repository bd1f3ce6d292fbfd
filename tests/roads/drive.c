/* drive DAEMON SCENE: starts the instrumented daemon in the current directory. Prints its trace:
 *
 *     > ADDRESS        entry of a function
 *     < ADDRESS        exit
 *     road NAME        from here ...
 *     end              ... to here; the daemon waits for events at both
 *
 * SCENE is one of
 *     plain, rewriting    a client, and a worker of the pool in config.json, which then crashes
 *     post                a client of HTTP in an MCP session, and such a worker
 *     publication         a publisher and a subscriber of a topic, with JSON commands
 *     front               --connect: the daemon is a front, and drive the daemon behind it
 *
 * drive --worker: the worker. Between it and drive are two FIFOs, requests and answers. */
#include "build_config.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "roads/trace.h"

#define EXCHANGES 5 /* by the last one caches and buffers are warm */
#define DEADLINE_MS 20000
#define QUIET_MS 300
#define SCENE_SECONDS 60 /* an answer that does not come */
#define LINE_SIZE 512
#define OPTIONS_MAX 8
#define ID_KEY "\"id\":"

static struct trace *trace;
static uint64_t printed;
static uint64_t waiting; /* the last event before the daemon waits: entry of the backend's wait */
static int requests, answers, client;
static int to_front, from_front; /* stdin and stdout of the daemon, where it is a front */

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

/* One line with its newline; false at the end of input. */
static bool read_line(int fd, char line[LINE_SIZE])
{
    size_t len = 0;

    while (len + 1 < LINE_SIZE && read(fd, line + len, 1) == 1) {
        line[len + 1] = '\0';
        if (line[len++] == '\n')
            return true;
    }
    return false;
}

static void open_fifos(void)
{
    requests = open("requests", O_RDWR | O_CLOEXEC);
    answers = open("answers", O_RDWR | O_CLOEXEC);
    if (requests < 0 || answers < 0)
        fail("FIFOs");
}

static int be_worker(void)
{
    char line[LINE_SIZE];

    open_fifos();
    dprintf(requests, "%ld\n", (long)getpid());
    while (read_line(STDIN_FILENO, line) && dprintf(requests, "%s", line) > 0 &&
           read_line(answers, line) && dprintf(STDOUT_FILENO, "%s", line) > 0)
        continue;
    return 0;
}

static pid_t await_worker(void)
{
    char line[LINE_SIZE];

    return read_line(requests, line) ? (pid_t)strtol(line, NULL, 10) : 0;
}

/* Waits until the daemon has done nothing for a while, to learn where it waits. */
static void await_quiet(void)
{
    uint64_t count;

    do {
        count = trace->count;
        poll(NULL, 0, QUIET_MS);
    } while (count == 0 || count != trace->count);
    waiting = trace->events[count - 1];
}

/* Waits until the daemon has done something and waits again. */
static void await_waiting(void)
{
    for (int ms = 0; ms < DEADLINE_MS; ms++) {
        uint64_t count = trace->count;
        if (count > printed && trace->events[count - 1] == waiting)
            return;
        poll(NULL, 0, 1);
    }
    fail("the daemon does not come to rest");
}

static void share_trace(void)
{
    int fd = open(TRACE_FILE, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *shared = MAP_FAILED;

    if (fd >= 0 && ftruncate(fd, sizeof *trace) == 0)
        shared = mmap(NULL, sizeof *trace, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED)
        fail(TRACE_FILE);
    trace = shared;
}

/* The daemon, with these options. Its stdin and stdout are pipes. */
static pid_t start(const char *program, const char *const options[])
{
    const char *argv[OPTIONS_MAX + 4] = {program};
    int in[2], out[2], count = 1;
    pid_t daemon;

    for (; options[count - 1] != NULL; count++)
        argv[count] = options[count - 1];
    argv[count++] = "--log-level";
    argv[count] = "error";
    share_trace();
    if (pipe(in) != 0 || pipe(out) != 0)
        fail("pipe");
    daemon = fork();
    if (daemon == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        close(in[0]);
        close(in[1]);
        close(out[0]);
        close(out[1]);
        execv(program, (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    to_front = in[1];
    from_front = out[0];
    return daemon;
}

static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (connect(fd, (struct sockaddr *)(void *)&address, sizeof address) != 0)
        fail(path);
    return fd;
}

static void print_trace(void)
{
    for (; printed < trace->count; printed++)
        printf("%c %" PRIx64 "\n", trace->events[printed] & 1 ? '>' : '<',
               trace->events[printed] >> 1);
}

static void begin_road(const char *what, const char *pool)
{
    print_trace();
    printf("road %s%s\n", what, pool);
}

static void end_road(void)
{
    print_trace();
    puts("end");
}

/* The id of the request that comes there. */
static long requested_id(int fd)
{
    char line[LINE_SIZE];
    const char *id;

    if (!read_line(fd, line) || (id = strstr(line, ID_KEY)) == NULL)
        fail("no request");
    return strtol(id + strlen(ID_KEY), NULL, 10);
}

static void answer(long id, const char *result)
{
    dprintf(answers, "{\"jsonrpc\":\"2.0\"," ID_KEY "%ld,\"result\":%s}\n", id, result);
}

/* --- a pool --- */

/* A request and its answer. */
static void exchange(int number, const char *pool)
{
    char line[LINE_SIZE];
    long id;

    begin_road("request, ", pool);
    dprintf(client, "{\"jsonrpc\":\"2.0\"," ID_KEY "%d,\"method\":\"echo\"}\n", number);
    id = requested_id(requests);
    await_waiting();
    end_road();

    begin_road("answer, ", pool);
    answer(id, "{}");
    if (!read_line(client, line))
        fail("no answer");
    await_waiting();
    end_road();
}

static void crash(pid_t worker)
{
    begin_road("worker crash", "");
    if (worker <= 0 || kill(worker, SIGKILL) != 0 || await_worker() <= 0)
        fail("worker");
    await_quiet();
    end_road();
}

static void play_pool(const char *pool)
{
    pid_t worker = await_worker();

    await_quiet();
    client = connect_to("./socket");
    await_quiet();
    for (int i = 1; i <= EXCHANGES; i++)
        exchange(i, pool);
    crash(worker);
}

/* --- HTTP --- */

static char session[LINE_SIZE]; /* a field of the head */

static void post(const char *body)
{
    dprintf(client,
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            "Accept: application/json, text/event-stream\r\n%sContent-Length: %zu\r\n\r\n%s",
            session, strlen(body), body);
}

/* Reads an answer; its field of the session is kept. */
static void read_response(int status)
{
    char line[LINE_SIZE];
    size_t len = 0;

    if (!read_line(client, line) || strtol(line + strcspn(line, " "), NULL, 10) != status)
        fail(line);
    while (read_line(client, line) && strcmp(line, "\r\n") != 0) {
        if (strncasecmp(line, "mcp-session-id:", strlen("mcp-session-id:")) == 0)
            memcpy(session, line, sizeof session);
        if (strncasecmp(line, "content-length:", strlen("content-length:")) == 0)
            len = strtoul(line + strlen("content-length:"), NULL, 10);
    }
    while (len > 0 && read(client, line, 1) == 1)
        len--;
}

static void play_post(const char *scene)
{
    char line[LINE_SIZE];
    long id;

    (void)scene;
    (void)await_worker();
    await_quiet();
    client = connect_to("./http");
    post("{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":"
         "\"2025-06-18\",\"capabilities\":{},\"clientInfo\":{\"name\":\"a\",\"version\":\"1\"}}}");
    answer(requested_id(requests), "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},"
                                   "\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}");
    read_response(200);
    post("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
    read_response(202);
    if (!read_line(requests, line))
        fail("no notification");
    dprintf(answers, "\n"); /* the worker waits for a line after each that it has read */
    for (int i = 1; i <= EXCHANGES; i++) {
        await_quiet();
        begin_road("request, POST", "");
        snprintf(line, sizeof line, "{\"jsonrpc\":\"2.0\"," ID_KEY "%d,\"method\":\"tools/list\"}",
                 i);
        post(line);
        id = requested_id(requests);
        await_waiting();
        end_road();

        begin_road("answer, POST", "");
        answer(id, "{\"tools\":[]}");
        read_response(200);
        await_waiting();
        end_road();
    }
}

/* --- the topic bus --- */

/* In one write: the daemon would read two in one round or in two. */
static void send_command(int fd, const char *command)
{
    size_t len = strlen(command);
    const unsigned char prefix[] = {0, 0, (unsigned char)(len >> 8), (unsigned char)len};
    char bytes[sizeof prefix + 2 * LINE_SIZE];

    memcpy(bytes, prefix, sizeof prefix);
    memcpy(bytes + sizeof prefix, command, len);
    if (write(fd, bytes, sizeof prefix + len) != (ssize_t)(sizeof prefix + len))
        fail("write");
}

static void read_command(int fd)
{
    unsigned char prefix[4], byte;

    if (recv(fd, prefix, sizeof prefix, MSG_WAITALL) != sizeof prefix)
        fail("no command");
    for (size_t len = (size_t)prefix[2] << 8 | prefix[3]; len > 0; len--) {
        if (read(fd, &byte, 1) != 1)
            fail("a command is cut");
    }
}

/* A command that publishes {"type": "observation.trace.line.v1", "payload": {}}, as MessagePack. */
static void publish(int fd, int number)
{
    char command[2 * LINE_SIZE];

    snprintf(
        command, sizeof command,
        "{\"Publish\":{\"id\":%d,\"topic\":\"t\",\"message\":{\"header\":{\"header_version\":0,"
        "\"header_len\":64,\"flags\":0,\"schema_id\":3003,\"body_len\":41,\"created_at_ms\":%lld,"
        "\"ttl_ms\":30000,\"trace_id\":22774453838368,\"msg_id\":%d},\"body\":["
        "130,164,116,121,112,101,185,111,98,115,101,114,118,97,116,10"
        "5,111,110,46,116,114,97,99,101,46,108,105,110,101,46,118,49,"
        "167,112,97,121,108,111,97,100,128"
        "]}}}",
        number, (long long)time(NULL) * 1000, number);
    send_command(fd, command);
}

static void play_publication(const char *scene)
{
    int publisher, subscriber;

    (void)scene;
    await_quiet();
    subscriber = connect_to("./rmp");
    publisher = connect_to("./rmp");
    send_command(subscriber, "{\"Subscribe\":{\"id\":1,\"topic\":\"t\",\"sub_id\":1}}");
    read_command(subscriber);
    for (int i = 1; i <= EXCHANGES; i++) {
        await_quiet();
        begin_road("publication and its message", "");
        publish(publisher, i);
        read_command(publisher);
        read_command(subscriber);
        await_waiting();
        end_road();
    }
}

/* --- a front --- */

static void listen_as_daemon(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "./daemon"};

    client = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(client, (struct sockaddr *)(void *)&address, sizeof address) != 0 ||
        listen(client, 1) != 0)
        fail("listen");
}

static void play_front(const char *scene)
{
    char line[LINE_SIZE];
    long id;
    int daemon = accept(client, NULL, NULL);

    (void)scene;
    for (int i = 1; i <= EXCHANGES; i++) {
        await_quiet();
        begin_road("request, front", "");
        dprintf(to_front, "{\"jsonrpc\":\"2.0\"," ID_KEY "%d,\"method\":\"echo\"}\n", i);
        id = requested_id(daemon);
        await_waiting();
        end_road();

        begin_road("answer, front", "");
        dprintf(daemon, "{\"jsonrpc\":\"2.0\"," ID_KEY "%ld,\"result\":{}}\n", id);
        if (!read_line(from_front, line))
            fail("no answer");
        await_waiting();
        end_road();
    }
    close(to_front);
    close(daemon);
}

/* --- */

static const struct scene {
    const char *name;
    void (*prepare)(void); /* NULL: the worker's FIFOs */
    void (*play)(const char *scene);
    const char *options[OPTIONS_MAX];
} scenes[] = {
    {"plain", NULL, play_pool, {"--config", "config.json", "--unix", "./socket"}},
    {"rewriting", NULL, play_pool, {"--config", "config.json", "--unix", "./socket"}},
    {"post", NULL, play_post, {"--config", "config.json", "--http", "unix:./http"}},
    {"publication", NULL, play_publication, {"--config", "config.json", "--rmp", "./rmp"}},
    {"front", listen_as_daemon, play_front, {"--connect", "./daemon", "--protocol", "mcp"}},
};

static const struct scene *scene_named(const char *name)
{
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++) {
        if (strcmp(scenes[i].name, name) == 0)
            return &scenes[i];
    }
    fail(name);
    return NULL;
}

int main(int argc, char **argv)
{
    const struct scene *scene;
    pid_t daemon;
    int status;

    if (argc < 3)
        return be_worker();
    alarm(SCENE_SECONDS);
    scene = scene_named(argv[2]);
    if (scene->prepare != NULL)
        scene->prepare();
    else
        open_fifos();
    daemon = start(argv[1], scene->options);
    scene->play(scene->name);
    if (scene->play != play_front) /* that has ended by itself */
        kill(daemon, SIGTERM);
    return waitpid(daemon, &status, 0) == daemon && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
