/* drive DAEMON NAME [crash]: starts the instrumented daemon with the config.json of the current
 * directory, one client and one worker. Five requests are answered; then the worker is killed, if
 * so wanted. Prints the daemon's trace:
 *
 *     > ADDRESS        entry of a function
 *     < ADDRESS        exit
 *     road NAME        from here ...
 *     end              ... to here; the daemon waits for events at both
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
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "roads/trace.h"

#define EXCHANGES 5 /* by the last one caches and buffers are warm */
#define DEADLINE_MS 20000
#define QUIET_MS 300
#define LINE_SIZE 256
#define ID_KEY "\"id\":"

static struct trace *trace;
static uint64_t printed;
static uint64_t waiting; /* the last event before the daemon waits: entry of the backend's wait */
static int requests, answers, client;

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

static pid_t start(const char *program)
{
    int fd = open(TRACE_FILE, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void *shared = MAP_FAILED;
    pid_t daemon;

    if (fd >= 0 && ftruncate(fd, sizeof *trace) == 0)
        shared = mmap(NULL, sizeof *trace, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED)
        fail(TRACE_FILE);
    trace = shared;
    daemon = fork();
    if (daemon == 0) {
        execl(program, program, "--config", "config.json", "--unix", "./socket", "--log-level",
              "error", (char *)NULL);
        _exit(127);
    }
    return daemon;
}

static void connect_client(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "./socket"};

    client = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(client, (struct sockaddr *)(void *)&address, sizeof address) != 0)
        fail("connect");
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

/* A request and its answer. */
static void exchange(int number, const char *pool)
{
    char line[LINE_SIZE];
    const char *id;

    begin_road("request, ", pool);
    dprintf(client, "{\"jsonrpc\":\"2.0\"," ID_KEY "%d,\"method\":\"echo\"}\n", number);
    if (!read_line(requests, line) || (id = strstr(line, ID_KEY)) == NULL)
        fail("no request");
    await_waiting();
    end_road();

    begin_road("answer, ", pool);
    dprintf(answers, "{\"jsonrpc\":\"2.0\"," ID_KEY "%ld,\"result\":{}}\n",
            strtol(id + strlen(ID_KEY), NULL, 10));
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

int main(int argc, char **argv)
{
    pid_t daemon, worker;
    int status;

    if (argc < 3)
        return be_worker();
    open_fifos();
    daemon = start(argv[1]);
    worker = await_worker();
    await_quiet();
    connect_client();
    await_quiet();
    for (int i = 1; i <= EXCHANGES; i++)
        exchange(i, argv[2]);
    if (argc > 3)
        crash(worker);
    kill(daemon, SIGTERM);
    return waitpid(daemon, &status, 0) == daemon && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
