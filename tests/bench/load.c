/* load: puts a program under load, checks every answer, and measures. See load_options.c for the
 * command line. Linux only.
 *
 * Each measurement begins and ends with no request in flight and the program under test asleep, so
 * that its processor time belongs to exactly the requests counted. */
#include "build_config.h"

#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "load_client.h"
#include "load_options.h"
#include "subject.h"

#define PATIENCE_MS 20000 /* for an answer, or for the socket */
#define EVENTS_MAX 256
#define SLOW_READS 100 /* of the slow client, a second */

struct load {
    struct load_options options;
    struct subject subject;
    struct client *clients;
    unsigned client_count; /* open ones */
    int epoll, timer;
    uint64_t in_flight;
    uint64_t started_ns;
    /* The current phase: */
    uint64_t phase_start_ns, phase_end_ns;
    uint64_t quota; /* requests left to make */
    uint64_t made;
    unsigned turn; /* with a rate: the next client */
    struct histogram latencies;
};

static void fail(const char *what)
{
    fprintf(stderr, "load: ");
    perror(what);
    exit(1);
}

/* --- connections --- */

static int connect_unix(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || strlen(path) >= sizeof address.sun_path)
        fail("--unix");
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

static int connect_tcp(const char *where)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    const char *colon = strrchr(where, ':');
    char host[256];
    int fd, on = 1;

    if (colon == NULL || (size_t)(colon - where) >= sizeof host)
        fail("--tcp");
    memcpy(host, where, (size_t)(colon - where));
    host[colon - where] = '\0';
    if (getaddrinfo(host[0] != '\0' ? host : NULL, colon + 1, &hints, &found) != 0)
        fail("--tcp");
    fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) < 0) {
        close(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    if (fd >= 0)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

/* Waits until the program listens. */
static int connect_patiently(const struct load_options *options)
{
    const struct timespec nap = {0, 1000000};

    for (int tries = 0; tries < PATIENCE_MS; tries++) {
        int fd = options->unix_path != NULL ? connect_unix(options->unix_path)
                                            : connect_tcp(options->tcp);
        if (fd >= 0)
            return fd;
        nanosleep(&nap, NULL);
    }
    fail("cannot connect");
    return -1;
}

static void watch(struct load *load, struct client *client, int operation)
{
    bool pair = client->fd_in != client->fd_out;
    uint32_t out = client->wants_write ? EPOLLOUT : 0;
    struct epoll_event read = {.events = pair ? EPOLLIN : EPOLLIN | out, .data.ptr = client};
    struct epoll_event write = {.events = out, .data.ptr = client};

    if (epoll_ctl(load->epoll, operation, client->fd_in, &read) < 0 ||
        (pair && epoll_ctl(load->epoll, operation, client->fd_out, &write) < 0))
        fail("epoll_ctl");
}

static void add_client(struct load *load)
{
    struct client *client = &load->clients[load->client_count];
    const struct load_options *options = &load->options;
    struct client_options its = options->client;
    int in = load->subject.out, out = load->subject.in;

    if (options->greedy > 0 && load->client_count == 0) {
        its.window = options->greedy;
        its.payload = options->greedy_payload > 0 ? options->greedy_payload : its.payload;
    }
    if (options->unix_path != NULL || options->tcp != NULL)
        in = out = connect_patiently(options);
    client_open(client, load->client_count, &its, in, out);
    watch(load, client, EPOLL_CTL_ADD);
    load->client_count++;
}

/* --- requests --- */

static void flush(struct load *load, struct client *client)
{
    bool wanted = client->wants_write;

    client_write(client);
    if (client->wants_write != wanted)
        watch(load, client, EPOLL_CTL_MOD);
}

static bool request(struct load *load, struct client *client, uint64_t sent_ns)
{
    if (load->quota == 0 || !client_request(client, sent_ns))
        return false;
    load->quota--;
    load->made++;
    load->in_flight++;
    return true;
}

static void fill_window(struct load *load, struct client *client)
{
    uint64_t now_ns = clock_ns();

    if (load->options.rate > 0 || (load->options.lockstep && client->in_flight > 0))
        return;
    if (now_ns >= load->phase_end_ns)
        load->quota = 0;
    while (request(load, client, now_ns)) {
        if (load->options.each)
            flush(load, client);
    }
    flush(load, client);
}

/* Makes all requests due by now. A request that finds all windows full is late, not omitted: its
 * latency begins when it was due. Returns the time of the next. */
static uint64_t make_due(struct load *load)
{
    uint64_t now_ns = clock_ns(), due_ns = 0;
    unsigned full = 0;

    while (full < load->client_count) {
        due_ns = load->phase_start_ns + (uint64_t)((double)load->made * 1e9 / load->options.rate);
        if (due_ns >= load->phase_end_ns || now_ns >= load->phase_end_ns)
            load->quota = 0;
        if (due_ns > now_ns || load->quota == 0)
            break;
        if (request(load, &load->clients[load->turn], due_ns)) {
            flush(load, &load->clients[load->turn]);
            full = 0;
        } else {
            full++;
        }
        load->turn = (load->turn + 1) % load->client_count;
    }
    return due_ns;
}

static void set_timer(struct load *load, uint64_t when_ns)
{
    struct itimerspec spec = {{0, 0}, {0, 0}};
    uint64_t expirations;

    while (read(load->timer, &expirations, sizeof expirations) > 0)
        ;
    spec.it_value.tv_sec = (time_t)(when_ns / 1000000000u);
    spec.it_value.tv_nsec = (long)(when_ns % 1000000000u);
    timerfd_settime(load->timer, TFD_TIMER_ABSTIME, &spec, NULL);
}

static void serve(struct load *load, const struct epoll_event *event)
{
    struct client *client = event->data.ptr;

    if (client == NULL) /* the timer */
        return;
    if (event->events & (EPOLLOUT | EPOLLERR))
        flush(load, client);
    if (event->events & (EPOLLIN | EPOLLHUP)) {
        load->in_flight -= client_read(client, CLIENT_READ_SIZE);
        fill_window(load, client);
    }
}

static void step(struct load *load)
{
    struct epoll_event events[EVENTS_MAX];
    bool dribble = load->options.client.dribble > 0;
    int count;

    if (load->options.rate > 0 && load->quota > 0)
        set_timer(load, make_due(load));
    count = epoll_wait(load->epoll, events, EVENTS_MAX, dribble ? 0 : PATIENCE_MS);
    if (count < 0 && errno != EINTR)
        fail("epoll_wait");
    if (count == 0 && !dribble) {
        fprintf(stderr, "load: %" PRIu64 " answers are missing\n", load->in_flight);
        exit(1);
    }
    for (int i = 0; i < count; i++)
        serve(load, &events[i]);
    for (unsigned i = 0; dribble && i < load->client_count; i++)
        client_write(&load->clients[i]);
    if (dribble && count == 0)
        sched_yield();
}

/* Makes that many requests, or as many as fit into the time, and waits for all answers. */
static void run_phase(struct load *load, uint64_t requests, double seconds)
{
    load->phase_start_ns = clock_ns();
    load->phase_end_ns = requests > 0 ? UINT64_MAX
                                      : load->phase_start_ns + (uint64_t)(seconds * 1e9);
    load->quota = requests > 0 ? requests : UINT64_MAX;
    load->made = 0;
    for (unsigned i = 0; i < load->client_count; i++)
        fill_window(load, &load->clients[i]);
    while (load->in_flight > 0 || load->quota > 0)
        step(load);
}

/* --- measurements --- */

/* Fails if the answers came from another program at the same address. */
static uint64_t cpu_since(const struct load *load, uint64_t before_ns)
{
    uint64_t now_ns = subject_cpu_ns(&load->subject);

    if (now_ns <= before_ns) {
        fprintf(stderr, "load: it was not the program under test that answered\n");
        exit(1);
    }
    return now_ns - before_ns;
}

static void print_memory(const struct load *load)
{
    uint64_t resident, anonymous;

    subject_memory(&load->subject, &resident, &anonymous);
    printf(" peak_kib=%" PRIu64 " resident_kib=%" PRIu64, subject_peak_kib(&load->subject),
           resident / 1024);
}

static void measure_requests(struct load *load)
{
    const struct load_options *options = &load->options;
    uint64_t cpu_ns, sleeps, start_ns, took_ns;
    const struct histogram *latencies = &load->latencies;

    if (options->requests >= 10)
        run_phase(load, options->requests / 10, 0);
    else if (options->requests == 0 && options->warmup > 0)
        run_phase(load, 0, options->warmup);
    for (unsigned i = options->greedy > 0; i < load->client_count; i++)
        load->clients[i].latencies = &load->latencies;
    subject_settle(&load->subject);
    cpu_ns = subject_cpu_ns(&load->subject);
    sleeps = subject_sleeps(&load->subject);
    start_ns = clock_ns();
    run_phase(load, options->requests, options->seconds);
    took_ns = clock_ns() - start_ns;
    subject_settle(&load->subject);
    cpu_ns = cpu_since(load, cpu_ns);
    sleeps = subject_sleeps(&load->subject) - sleeps;
    printf("requests=%" PRIu64 " rate=%.0f cpu_ns=%.1f per_sleep=%.1f", latencies->count,
           (double)latencies->count * 1e9 / (double)took_ns,
           (double)cpu_ns / (double)latencies->count,
           (double)latencies->count / (double)(sleeps > 0 ? sleeps : 1));
    printf(" p50_us=%.2f p99_us=%.2f p999_us=%.2f max_us=%.2f",
           (double)histogram_quantile(latencies, 0.5) / 1e3,
           (double)histogram_quantile(latencies, 0.99) / 1e3,
           (double)histogram_quantile(latencies, 0.999) / 1e3, (double)latencies->max / 1e3);
    print_memory(load);
}

/* One request of this client. */
static void ask_once(struct load *load, struct client *client)
{
    load->quota = 1;
    request(load, client, clock_ns());
    flush(load, client);
    while (load->in_flight > 0)
        step(load);
}

static double growth(struct load *load, uint64_t before)
{
    uint64_t resident, anonymous;

    subject_settle(&load->subject);
    subject_memory(&load->subject, &resident, &anonymous);
    return ((double)anonymous - (double)before) / (double)(load->options.clients - 1);
}

/* The memory of connected, quiet clients: before their first request, and after its answer. The
 * first client connects before, so that one-time allocations are not counted. */
static void measure_idle(struct load *load)
{
    uint64_t resident, before;

    ask_once(load, &load->clients[0]);
    subject_settle(&load->subject);
    subject_memory(&load->subject, &resident, &before);
    printf("resident_kib=%" PRIu64, resident / 1024);
    while (load->client_count < load->options.clients)
        add_client(load);
    ask_once(load, &load->clients[load->client_count - 1]); /* accepted last */
    printf(" silent_client_bytes=%.0f", growth(load, before));
    for (unsigned i = 0; i < load->client_count; i++)
        ask_once(load, &load->clients[i]);
    printf(" idle_client_bytes=%.0f", growth(load, before));
}

/* Lets the clients read notifications for this long. */
static void read_notes(struct load *load, double seconds)
{
    uint64_t start_ns = clock_ns(), slow_ns = start_ns, now_ns;
    struct client *slow = &load->clients[0];

    while ((now_ns = clock_ns()) < start_ns + (uint64_t)(seconds * 1e9)) {
        struct epoll_event events[EVENTS_MAX];
        int count = epoll_wait(load->epoll, events, EVENTS_MAX, 1000 / SLOW_READS);

        for (int i = 0; i < count; i++)
            client_read(events[i].data.ptr, CLIENT_READ_SIZE);
        if (load->options.slow > 0 && now_ns - slow_ns >= 1000000000u / SLOW_READS) {
            client_read(slow, (size_t)(load->options.slow / SLOW_READS));
            slow_ns = now_ns;
        }
    }
}

/* The notifications of all clients but the first; *fewest: of one client. */
static uint64_t fast_notes(const struct load *load, uint64_t *fewest)
{
    uint64_t notes = 0;

    *fewest = UINT64_MAX;
    for (unsigned i = 1; i < load->client_count; i++) {
        notes += load->clients[i].notes;
        if (load->clients[i].notes < *fewest)
            *fewest = load->clients[i].notes;
    }
    return notes;
}

/* The rate of all clients but the first, which is slow. */
static void measure_notes(struct load *load)
{
    uint64_t notes, fewest, slow_notes, start_ns, took_ns, cpu_ns;

    /* The slow client asks first, so that it is always at the same worker. */
    for (unsigned i = 0; i < load->client_count; i++) {
        struct client *client = &load->clients[i];

        if (i == 0) {
            epoll_ctl(load->epoll, EPOLL_CTL_DEL, client->fd_in, NULL);
            client->options.push = load->options.slow > 0;
        }
        load->quota = i > 0 || load->options.slow > 0;
        request(load, client, clock_ns());
        flush(load, client);
    }
    read_notes(load, load->options.warmup);
    notes = fast_notes(load, &fewest);
    slow_notes = load->clients[0].notes;
    cpu_ns = subject_cpu_ns(&load->subject);
    start_ns = clock_ns();
    read_notes(load, load->options.seconds);
    took_ns = clock_ns() - start_ns;
    notes = fast_notes(load, &fewest) - notes;
    slow_notes = load->clients[0].notes - slow_notes;
    cpu_ns = cpu_since(load, cpu_ns);
    printf("notes=%" PRIu64 " fewest=%" PRIu64 " rate=%.0f slow_rate=%.0f cpu_ns=%.1f", notes,
           fewest, (double)notes * 1e9 / (double)took_ns,
           (double)slow_notes * 1e9 / (double)took_ns,
           (double)cpu_ns / (double)(notes + slow_notes));
    print_memory(load);
}

/* --- main --- */

static void allow_descriptors(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static void start(struct load *load)
{
    const struct load_options *options = &load->options;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};

    load->epoll = epoll_create1(EPOLL_CLOEXEC);
    load->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    load->clients = calloc(options->clients, sizeof *load->clients);
    if (load->epoll < 0 || load->timer < 0 || load->clients == NULL ||
        epoll_ctl(load->epoll, EPOLL_CTL_ADD, load->timer, &event) < 0)
        fail("cannot start");
    load->started_ns = clock_ns();
    subject_start(&load->subject, options->argv, options->unix_path == NULL && options->tcp == NULL,
                  options->one_cpu);
    signal(SIGPIPE, SIG_IGN);
    allow_descriptors();
    if (options->workers > 1)
        subject_wait_workers(&load->subject, options->workers);
    add_client(load);
}

/* Closes sockets only: the program ends at the end of its stdin, or by a signal. */
static void close_clients(struct load *load)
{
    for (unsigned i = 0; i < load->client_count; i++) {
        if (load->clients[i].fd_in == load->clients[i].fd_out)
            close(load->clients[i].fd_in);
    }
}

int main(int argc, char **argv)
{
    static struct load load;
    double first_ms;
    bool stopped;

    load_options_read(&load.options, argc, argv);
    start(&load);
    if (load.options.idle) {
        measure_idle(&load);
    } else if (load.options.client.push) {
        while (load.client_count < load.options.clients)
            add_client(&load);
        measure_notes(&load);
    } else {
        ask_once(&load, &load.clients[0]);
        first_ms = (double)(clock_ns() - load.started_ns) / 1e6;
        while (load.client_count < load.options.clients)
            add_client(&load);
        measure_requests(&load);
        printf(" first_ms=%.2f", first_ms);
    }
    close_clients(&load);
    stopped = subject_stop(&load.subject);
    printf(" stopped=%s\n", stopped ? "yes" : "no");
    return 0;
}
