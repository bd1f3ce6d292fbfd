#include "build_config.h"

#include "load_options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: load [OPTION]... -- PROGRAM [ARGUMENT]...\n"
    "\n"
    "Runs a program that serves echo_worker, puts it under load, checks each answer and prints\n"
    "what was measured as NAME=VALUE. The load goes over its stdin and stdout, or:\n"
    "  --unix PATH      over Unix domain sockets\n"
    "  --tcp HOST:PORT  over TCP\n"
    "  --workers N      begins when it has so many workers           (1)\n"
    "  --one-cpu        all processes share one processor: less realistic, much less noise\n"
    "What each client does:\n"
    "  --clients N      how many there are                            (1)\n"
    "  --window N       requests in flight                            (1)\n"
    "  --payload BYTES  text in a request and in its answer           (64)\n"
    "  --plain          a text that is one line: no escapes in it\n"
    "  --framed         frames messages by Content-Length, instead of lines\n"
    "  --websocket      messages are frames of WebSocket, at the path /mcp\n"
    "  --sessions       each has a session\n"
    "  --each           writes each request by itself, not all that can be made at once\n"
    "  --lockstep       makes its next requests when all are answered\n"
    "  --dribble BYTES  sends so many at a time, each when the last have been read\n"
    "  --greedy N       client 0 has so many in flight, and is not measured\n"
    "  --greedy-payload BYTES  its requests have so much text (as the others' have)\n"
    "How long:\n"
    "  --requests N     so many are measured, after a tenth as many to warm up\n"
    "  --seconds S      or for so long                                (1)\n"
    "  --warmup S       after so long                                 (0.2)\n"
    "  --rate N         requests a second, all clients together       (no limit)\n"
    "Instead:\n"
    "  --push           each client asks its worker for notifications without end\n"
    "  --slow BYTES     client 0 reads so many a second; with 0 it asks for none\n"
    "  --idle           connects the clients, one request each, and measures memory\n";

static void fail(void)
{
    fputs(usage, stderr);
    exit(64);
}

static double number(const char *text, double min)
{
    char *end;
    double value = strtod(text, &end);

    if (*text == '\0' || *end != '\0' || !(value >= min && value <= 1e12)) {
        fprintf(stderr, "load: not a number, or too small or large: %s\n", text);
        exit(64);
    }
    return value;
}

/* clang-format off */
enum { CLIENTS, WINDOW, PAYLOAD, PLAIN, FRAMED, SESSIONS, EACH, LOCKSTEP, DRIBBLE, GREEDY,
       GREEDY_PAYLOAD, REQUESTS, SECONDS, WARMUP, RATE, PUSH, SLOW, IDLE, WORKERS, ONE_CPU, UNIX,
       TCP, WEBSOCKET };

static const struct option long_options[] = {
    {"clients", required_argument, NULL, CLIENTS},   {"window", required_argument, NULL, WINDOW},
    {"payload", required_argument, NULL, PAYLOAD},   {"sessions", no_argument, NULL, SESSIONS},
    {"each", no_argument, NULL, EACH},               {"dribble", required_argument, NULL, DRIBBLE},
    {"requests", required_argument, NULL, REQUESTS}, {"seconds", required_argument, NULL, SECONDS},
    {"warmup", required_argument, NULL, WARMUP},     {"rate", required_argument, NULL, RATE},
    {"push", no_argument, NULL, PUSH},               {"slow", required_argument, NULL, SLOW},
    {"idle", no_argument, NULL, IDLE},               {"unix", required_argument, NULL, UNIX},
    {"tcp", required_argument, NULL, TCP},           {"lockstep", no_argument, NULL, LOCKSTEP},
    {"workers", required_argument, NULL, WORKERS},   {"one-cpu", no_argument, NULL, ONE_CPU},
    {"greedy", required_argument, NULL, GREEDY},     {"plain", no_argument, NULL, PLAIN},
    {"framed", no_argument, NULL, FRAMED},           {"websocket", no_argument, NULL, WEBSOCKET},
    {"greedy-payload", required_argument, NULL, GREEDY_PAYLOAD},
    {NULL, 0, NULL, 0},
};

static void take(struct load_options *options, int option)
{
    switch (option) {
    case CLIENTS: options->clients = (unsigned)number(optarg, 1); break;
    case WINDOW: options->client.window = (unsigned)number(optarg, 1); break;
    case PAYLOAD: options->client.payload = (size_t)number(optarg, 16); break;
    case PLAIN: options->client.plain = true; break;
    case FRAMED: options->client.framed = true; break;
    case WEBSOCKET: options->client.websocket = true; break;
    case SESSIONS: options->client.session = true; break;
    case EACH: options->each = true; break;
    case GREEDY: options->greedy = (unsigned)number(optarg, 1); break;
    case GREEDY_PAYLOAD: options->greedy_payload = (size_t)number(optarg, 16); break;
    case LOCKSTEP: options->lockstep = true; break;
    case DRIBBLE: options->client.dribble = (size_t)number(optarg, 1); break;
    case REQUESTS: options->requests = (uint64_t)number(optarg, 1); break;
    case SECONDS: options->seconds = number(optarg, 0.001); break;
    case WARMUP: options->warmup = number(optarg, 0); break;
    case RATE: options->rate = number(optarg, 0.001); break;
    case PUSH: options->client.push = options->client.session = true; break;
    case SLOW: options->slow = number(optarg, 0); break;
    case IDLE: options->idle = true; break;
    case WORKERS: options->workers = (unsigned)number(optarg, 1); break;
    case ONE_CPU: options->one_cpu = true; break;
    case UNIX: options->unix_path = optarg; break;
    case TCP: options->tcp = optarg; break;
    default: fail();
    }
}
/* clang-format on */

void load_options_read(struct load_options *options, int argc, char **argv)
{
    int option;

    memset(options, 0, sizeof *options);
    options->clients = options->workers = 1;
    options->client.window = 1;
    options->client.payload = 64;
    options->seconds = 1;
    options->warmup = 0.2;
    while ((option = getopt_long(argc, argv, "+", long_options, NULL)) >= 0)
        take(options, option);
    options->argv = argv + optind;
    if (optind == argc)
        fail();
    if (options->idle && options->clients < 2)
        fail();
    if (options->clients > 1 && options->unix_path == NULL && options->tcp == NULL) {
        fprintf(stderr, "load: there can be but one client over stdin and stdout\n");
        exit(64);
    }
}
