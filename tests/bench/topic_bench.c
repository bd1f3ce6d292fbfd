/* The cost of a delivery on a topic: one publisher, N subscribers, messages with a body of 256
 * bytes, for the daemon's topic bus and for other servers.
 *
 *     topic_bench PROTOCOL SUBSCRIBERS SECONDS SOCKET PID      rmp, redis, nats or mqtt
 *     topic_bench copy SUBSCRIBERS SECONDS                     a process that copies, and no more
 *
 * SOCKET is the path of a Unix socket, or HOST:PORT with a numeric IPv4 host. Prints deliveries per
 * second, and the CPU time of the server (all threads of PID) per delivery in ns.
 *
 * All clients are this process. Each delivery of a protocol has the same length, so that
 * subscribers count bytes. The publisher is at most 512 messages ahead of the slowest. In the end
 * each subscriber must have got all that was published, and nothing twice. */
#include "build_config.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rmp/frame.h"
#include "rmp/schemas.h"

#define BODY_LEN 256
#define TOPIC "bench"
#define WINDOW 512
#define SUBSCRIBERS_MAX 100
#define BATCH_MAX 65536
#define WARM_UP_SECONDS 0.3
#define SURPLUS_SECONDS 0.05

/* How a message looks on its way in and out, and what comes before. */
struct protocol {
    const char *name;
    size_t (*publish)(char *to, uint64_t number); /* one message; returns its length */
    size_t (*greet)(char *to, bool subscribes);   /* what a client sends first */
    size_t delivery_len;
    size_t ping_len; /* what the server may send to a subscriber on its own, once */
};

static void fail(const char *what)
{
    fprintf(stderr, "topic_bench: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

static double now_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* --- RMP --- */

static size_t write_frame(char *to, uint16_t schema, const char *type, struct slice payload,
                          uint64_t number)
{
    char meta[64];
    struct msgpack_writer writer = {.to = meta, .size = sizeof meta};
    struct rmp_envelope envelope = {.type = slice_of(type, strlen(type)), .payload = payload};
    struct timespec now;
    struct rmp_header header = {
        .schema_id = schema, .ttl_ms = 30000, .trace_id = {1, 1}, .msg_id = number};

    clock_gettime(CLOCK_REALTIME, &now);
    header.created_at_ms = (uint64_t)now.tv_sec * 1000;
    msgpack_put_map(&writer, 1);
    msgpack_put_text(&writer, "topic");
    msgpack_put_text(&writer, TOPIC);
    if (schema != RMP_SCHEMA_CONTROL)
        envelope.meta = slice_of(meta, writer.len);
    return rmp_frame_write(to, BATCH_MAX, &header, &envelope);
}

/* The payload makes the whole body 256 bytes long. */
static size_t rmp_publish(char *to, uint64_t number)
{
    static const char bytes[BODY_LEN];
    const char type[] = "observation.trace.line.v1";
    char payload[BODY_LEN];
    struct msgpack_writer writer = {.to = payload, .size = sizeof payload};

    msgpack_put_bin(&writer, slice_of(bytes, BODY_LEN - 61));
    return write_frame(to, 3003, type, slice_of(payload, writer.len), number);
}

static size_t rmp_greet(char *to, bool subscribes)
{
    char payload[64];
    struct msgpack_writer writer = {.to = payload, .size = sizeof payload};

    if (!subscribes)
        return 0;
    msgpack_put_map(&writer, 2);
    msgpack_put_text(&writer, "op");
    msgpack_put_text(&writer, "subscribe");
    msgpack_put_text(&writer, "topic");
    msgpack_put_text(&writer, TOPIC);
    return write_frame(to, RMP_SCHEMA_CONTROL, "intent.control.v1", slice_of(payload, writer.len),
                       1);
}

/* --- redis, nats, mqtt, copy --- */

static size_t put(char *to, const char *head, const char *tail)
{
    size_t len = strlen(head);

    memcpy(to, head, len);
    memset(to + len, 'b', BODY_LEN);
    memcpy(to + len + BODY_LEN, tail, strlen(tail));
    return len + BODY_LEN + strlen(tail);
}

static size_t put_text(char *to, const char *text)
{
    memcpy(to, text, strlen(text));
    return strlen(text);
}

static size_t redis_publish(char *to, uint64_t number)
{
    (void)number;
    return put(to, "*3\r\n$7\r\nPUBLISH\r\n$5\r\n" TOPIC "\r\n$256\r\n", "\r\n");
}

static size_t redis_greet(char *to, bool subscribes)
{
    return subscribes ? put_text(to, "*2\r\n$9\r\nSUBSCRIBE\r\n$5\r\n" TOPIC "\r\n") : 0;
}

static size_t nats_publish(char *to, uint64_t number)
{
    (void)number;
    return put(to, "PUB " TOPIC " 256\r\n", "\r\n");
}

/* As the libraries of nats do; pedantic, which is the server's default, checks each subject. */
static size_t nats_greet(char *to, bool subscribes)
{
    size_t len = put_text(to, "CONNECT {\"verbose\":false,\"pedantic\":false}\r\n");

    return len + (subscribes ? put_text(to + len, "SUB " TOPIC " 1\r\n") : 0);
}

#define MQTT_PUBLISH "\x30\x87\x02\0\5" TOPIC /* the remaining length is 2 + 5 + 256 */
#define MQTT_PUBLISH_LEN 10

static size_t mqtt_publish(char *to, uint64_t number)
{
    (void)number;
    memcpy(to, MQTT_PUBLISH, MQTT_PUBLISH_LEN);
    memset(to + MQTT_PUBLISH_LEN, 'b', BODY_LEN);
    return MQTT_PUBLISH_LEN + BODY_LEN;
}

static size_t mqtt_greet(char *to, bool subscribes)
{
    static const char connect_packet[] = "\x10\x0c\0\4MQTT\4\2\0\0\0\0";
    static const char subscribe_packet[] = "\x82\x0a\0\1\0\5" TOPIC "\0";
    size_t len = sizeof connect_packet - 1;

    memcpy(to, connect_packet, len);
    if (!subscribes)
        return len;
    memcpy(to + len, subscribe_packet, sizeof subscribe_packet - 1);
    return len + sizeof subscribe_packet - 1;
}

static size_t copy_publish(char *to, uint64_t number)
{
    (void)number;
    return put(to, "", "");
}

static size_t no_greeting(char *to, bool subscribes)
{
    (void)to;
    (void)subscribes;
    return 0;
}

static struct protocol protocols[] = {
    {.name = "rmp", .publish = rmp_publish, .greet = rmp_greet},
    {.name = "redis", .publish = redis_publish, .greet = redis_greet, .delivery_len = 292},
    {.name = "nats",
     .publish = nats_publish,
     .greet = nats_greet,
     .delivery_len = 275,
     .ping_len = 6}, /* PING, two seconds after the greeting */
    {.name = "mqtt", .publish = mqtt_publish, .greet = mqtt_greet, .delivery_len = 266},
    {.name = "copy", .publish = copy_publish, .greet = no_greeting, .delivery_len = BODY_LEN},
};

/* --- the clients --- */

struct bench {
    const struct protocol *protocol;
    int count;
    struct pollfd polls[SUBSCRIBERS_MAX + 1]; /* the last one is the publisher */
    uint64_t bytes[SUBSCRIBERS_MAX];
    uint64_t published;
    char batch[BATCH_MAX];
    size_t batch_at, batch_len;
    bool is_over; /* nothing more is published */
};

static int dial(const char *where)
{
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    struct sockaddr_in inet = {.sin_family = AF_INET};
    const char *colon = strchr(where, ':');
    char host[64];
    int fd = socket(colon != NULL ? AF_INET : AF_UNIX, SOCK_STREAM, 0);
    int code;

    if (colon != NULL) {
        snprintf(host, sizeof host, "%.*s", (int)(colon - where), where);
        inet_pton(AF_INET, host, &inet.sin_addr);
        inet.sin_port = htons((uint16_t)strtol(colon + 1, NULL, 10));
        code = connect(fd, (struct sockaddr *)&inet, sizeof inet);
    } else {
        snprintf(local.sun_path, sizeof local.sun_path, "%s", where);
        code = connect(fd, (struct sockaddr *)&local, sizeof local);
    }
    if (fd < 0 || code != 0)
        fail(where);
    return fd;
}

/* Reads what the server says until it has been silent for a while. */
static void read_greeting(int fd, int wait_ms)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    char bytes[4096];

    while (poll(&poll_fd, 1, wait_ms) > 0) {
        if (read(fd, bytes, sizeof bytes) <= 0)
            fail("greeting");
    }
}

static void open_clients(struct bench *bench, const char *where)
{
    for (int i = 0; i <= bench->count; i++) {
        char greeting[1024];
        size_t len = bench->protocol->greet(greeting, i < bench->count);
        int fd = dial(where);

        if (len > 0 && write(fd, greeting, len) != (ssize_t)len)
            fail("write");
        bench->polls[i] = (struct pollfd){.fd = fd, .events = POLLIN};
    }
    for (int i = 0; i <= bench->count; i++) {
        read_greeting(bench->polls[i].fd, i == 0 ? 300 : 0);
        fcntl(bench->polls[i].fd, F_SETFL, O_NONBLOCK);
    }
}

static uint64_t slowest(const struct bench *bench)
{
    uint64_t least = UINT64_MAX;

    for (int i = 0; i < bench->count; i++)
        least = bench->bytes[i] < least ? bench->bytes[i] : least;
    return least / bench->protocol->delivery_len;
}

static void publish(struct bench *bench)
{
    uint64_t until = bench->is_over ? 0 : slowest(bench) + WINDOW;
    ssize_t written;
    int fd = bench->polls[bench->count].fd;

    if (bench->batch_at == bench->batch_len) {
        bench->batch_at = bench->batch_len = 0;
        while (bench->published < until && bench->batch_len < BATCH_MAX - 1024)
            bench->batch_len += bench->protocol->publish(bench->batch + bench->batch_len,
                                                         ++bench->published);
    }
    if (bench->batch_at == bench->batch_len)
        return;
    written = write(fd, bench->batch + bench->batch_at, bench->batch_len - bench->batch_at);
    if (written > 0)
        bench->batch_at += (size_t)written;
    else if (errno != EAGAIN)
        fail("publish");
}

/* One turn of all clients. */
static void turn(struct bench *bench)
{
    static char bytes[1 << 18];
    struct pollfd *publisher = &bench->polls[bench->count];
    bool wants = bench->batch_at < bench->batch_len ||
                 (!bench->is_over && bench->published < slowest(bench) + WINDOW / 2);

    publisher->events = wants ? POLLIN | POLLOUT : POLLIN;
    if (poll(bench->polls, (nfds_t)bench->count + 1, 5000) <= 0)
        fail("no progress");
    for (int i = 0; i <= bench->count; i++) {
        ssize_t len;

        if ((bench->polls[i].revents & POLLIN) == 0)
            continue;
        len = read(bench->polls[i].fd, bytes, sizeof bytes);
        if (len == 0 || (len < 0 && errno != EAGAIN))
            fail("read");
        if (i < bench->count && len > 0)
            bench->bytes[i] += (uint64_t)len;
    }
    if ((publisher->revents & POLLOUT) != 0)
        publish(bench);
}

/* --- the measurement --- */

/* The CPU time of all threads, in ns. */
static uint64_t cpu_ns(long pid)
{
    char path[64];
    uint64_t sum = 0;
    struct dirent *entry;
    DIR *tasks;

    snprintf(path, sizeof path, "/proc/%ld/task", pid);
    tasks = opendir(path);
    if (tasks == NULL)
        fail(path);
    while ((entry = readdir(tasks)) != NULL) {
        char file[384];
        uint64_t ns = 0;
        FILE *stat;

        snprintf(file, sizeof file, "%s/%s/schedstat", path, entry->d_name);
        stat = entry->d_name[0] != '.' ? fopen(file, "r") : NULL;
        if (stat == NULL)
            continue;
        if (fscanf(stat, "%" SCNu64, &ns) == 1)
            sum += ns;
        fclose(stat);
    }
    closedir(tasks);
    return sum;
}

static uint64_t deliveries(const struct bench *bench)
{
    uint64_t bytes = 0;

    for (int i = 0; i < bench->count; i++)
        bytes += bench->bytes[i];
    return bytes / bench->protocol->delivery_len;
}

/* Fails unless what is under way arrives, and nothing after it. */
static void check_completeness(struct bench *bench)
{
    uint64_t expected;
    double end;

    bench->is_over = true;
    while (bench->batch_at < bench->batch_len || slowest(bench) < bench->published)
        turn(bench);
    for (end = now_seconds() + SURPLUS_SECONDS; now_seconds() < end;) {
        if (poll(bench->polls, (nfds_t)bench->count, 10) > 0)
            turn(bench);
    }
    expected = bench->published * bench->protocol->delivery_len;
    for (int i = 0; i < bench->count; i++) {
        uint64_t surplus = bench->bytes[i] - expected;

        if (surplus == 0 || surplus == bench->protocol->ping_len)
            continue;
        fprintf(stderr, "topic_bench: %s: subscriber %d got %" PRIu64 " bytes, not %" PRIu64 "\n",
                bench->protocol->name, i, bench->bytes[i], expected);
        exit(EXIT_FAILURE);
    }
}

static void measure(struct bench *bench, double seconds, long pid)
{
    double start = now_seconds();
    uint64_t count, cpu;

    while (now_seconds() < start + WARM_UP_SECONDS)
        turn(bench);
    start = now_seconds();
    count = deliveries(bench);
    cpu = cpu_ns(pid);
    while (now_seconds() < start + seconds)
        turn(bench);
    cpu = cpu_ns(pid) - cpu;
    seconds = now_seconds() - start;
    count = deliveries(bench) - count;
    check_completeness(bench);
    printf("%.0f %.1f\n", (double)count / seconds, (double)cpu / (double)count);
}

/* --- the floor --- */

/* Copies what the publisher writes to all subscribers. */
static void copy_bytes(int from, const int *to, int count)
{
    static char bytes[BATCH_MAX];
    ssize_t len;

    while ((len = read(from, bytes, sizeof bytes)) > 0) {
        for (int i = 0; i < count; i++) {
            for (ssize_t at = 0; at < len;) {
                ssize_t written = write(to[i], bytes + at, (size_t)(len - at));

                if (written < 0)
                    _exit(EXIT_FAILURE);
                at += written;
            }
        }
    }
    _exit(EXIT_SUCCESS);
}

static pid_t start_copy(struct bench *bench)
{
    int theirs[SUBSCRIBERS_MAX + 1];
    pid_t pid;

    for (int i = 0; i <= bench->count; i++) {
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
            fail("socketpair");
        fcntl(pair[0], F_SETFL, O_NONBLOCK);
        bench->polls[i] = (struct pollfd){.fd = pair[0], .events = POLLIN};
        theirs[i] = pair[1];
    }
    pid = fork();
    if (pid < 0)
        fail("fork");
    if (pid == 0)
        copy_bytes(theirs[bench->count], theirs, bench->count);
    return pid;
}

int main(int argc, char **argv)
{
    static struct bench bench;
    static char sample[BATCH_MAX];
    size_t which = 0;

    signal(SIGPIPE, SIG_IGN);
    while (argc >= 4 && which < sizeof protocols / sizeof *protocols &&
           strcmp(protocols[which].name, argv[1]) != 0)
        which++;
    if (argc < 4 || which == sizeof protocols / sizeof *protocols ||
        (strcmp(argv[1], "copy") != 0 && argc < 6)) {
        fprintf(stderr, "usage: topic_bench PROTOCOL SUBSCRIBERS SECONDS [SOCKET PID]\n");
        return 64;
    }
    bench.protocol = &protocols[which];
    bench.count = (int)strtol(argv[2], NULL, 10);
    if (bench.count < 1 || bench.count > SUBSCRIBERS_MAX)
        bench.count = 1;
    if (protocols[which].delivery_len == 0)
        protocols[which].delivery_len = bench.protocol->publish(sample, 1);
    if (strcmp(argv[1], "copy") == 0) {
        pid_t pid = start_copy(&bench);

        measure(&bench, strtod(argv[3], NULL), pid);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        return EXIT_SUCCESS;
    }
    open_clients(&bench, argv[4]);
    measure(&bench, strtod(argv[3], NULL), strtol(argv[5], NULL, 10));
    return EXIT_SUCCESS;
}
