/* What Prometheus reads: two scrapes, of `stdio_bus ctl metrics` and of /metrics, add up. */
#include "build_config.h"

#include "control.h"
#include "harness.h"

#define SERIES_MAX 400

struct series {
    char name[200]; /* with its labels */
    bool rises;     /* of a counter or a histogram */
    double value;
};

struct scrape {
    struct series series[SERIES_MAX];
    size_t count;
};

/* --- the text --- */

static void add_series(struct scrape *to, const char *line, size_t len, bool rises)
{
    struct series *series = &to->series[to->count++];
    char *blank, *end;

    ck_assert_uint_lt(to->count, SERIES_MAX);
    ck_assert_uint_lt(len, sizeof series->name);
    memcpy(series->name, line, len);
    series->name[len] = '\0';
    blank = strrchr(series->name, ' ');
    ck_assert_msg(blank != NULL, "%s", series->name);
    series->value = strtod(blank + 1, &end);
    ck_assert_msg(end > blank + 1 && *end == '\0', "no number: %s", series->name);
    *blank = '\0';
    series->rises = rises;
}

static void read_scrape(struct scrape *to, struct span text)
{
    const char *line = text.data, *end, *last = text.data + text.len;
    bool rises = false;

    to->count = 0;
    for (; line < last; line = end + 1) {
        end = memchr(line, '\n', (size_t)(last - line));
        ck_assert_msg(end != NULL, "the last line has no end");
        if (line[0] != '#')
            add_series(to, line, (size_t)(end - line), rises);
        else if (strncmp(line, "# TYPE ", 7) == 0)
            rises = strncmp(end - 8, " counter", 8) == 0 ||
                    strncmp(end - 10, " histogram", 10) == 0;
    }
    ck_assert_uint_gt(to->count, 50);
}

/* Prometheus' own checker, where it is installed (Debian's package prometheus). */
static void check_with_promtool(struct span text)
{
    FILE *promtool;

    if (system("command -v promtool >/dev/null 2>&1") != 0)
        return;
    promtool = popen("promtool check metrics >&2", "w");
    ck_assert_ptr_nonnull(promtool);
    ck_assert_uint_eq(fwrite(text.data, 1, text.len, promtool), text.len);
    ck_assert_int_eq(pclose(promtool), 0);
}

/* --- both ways to it --- */

static struct http *connect_to_metrics(struct daemon *daemon)
{
    const char *line = daemon_wait_log(daemon, "listening on 127.0.0.1:[0-9]+");
    struct daemon there = *daemon;

    there.port = (unsigned)strtoul(strrchr(line, ':') + 1, NULL, 10);
    snprintf(there.host, sizeof there.host, "127.0.0.1");
    there.socket_path[0] = '\0';
    return http_connect(&there);
}

static void scrape_http(struct scrape *to, struct http *http)
{
    struct span text;

    http_send(http, "GET", "/metrics", NULL, NULL);
    text = http_expect(http, 200);
    check_with_promtool(text);
    read_scrape(to, text);
}

static void scrape_ctl(struct scrape *to, const struct daemon *daemon)
{
    const char *bus = getenv("STDIO_BUS");
    struct text text = {0};
    size_t len;
    FILE *ctl = popen(test_format("%s ctl %s metrics", bus != NULL ? bus : "./stdio_bus",
                                  control_path(daemon)),
                      "r");

    ck_assert_ptr_nonnull(ctl);
    do {
        char piece[4096];

        len = fread(piece, 1, sizeof piece, ctl);
        text_add(&text, piece, len);
    } while (len > 0);
    ck_assert_int_eq(pclose(ctl), 0);
    check_with_promtool((struct span){text.data, text.len});
    read_scrape(to, (struct span){text.data, text.len});
    text_free(&text);
}

static void scrape(struct scrape *to, const struct daemon *daemon, struct http *http)
{
    if (http != NULL)
        scrape_http(to, http);
    else
        scrape_ctl(to, daemon);
}

/* --- what they say --- */

/* The same series in the same order, and no counter falls. */
static void compare(const struct scrape *first, const struct scrape *second)
{
    ck_assert_uint_eq(first->count, second->count);
    for (size_t i = 0; i < first->count; i++) {
        const struct series *a = &first->series[i], *b = &second->series[i];

        ck_assert_str_eq(a->name, b->name);
        ck_assert_msg(!b->rises || b->value >= a->value, "%s fell from %g to %g", a->name, a->value,
                      b->value);
    }
}

static double value_of(const struct scrape *scrape, const char *name)
{
    for (size_t i = 0; i < scrape->count; i++) {
        if (strcmp(scrape->series[i].name, name) == 0)
            return scrape->series[i].value;
    }
    ck_abort_msg("no series %s", name);
    return -1;
}

static void expect_rise(const struct scrape *first, const struct scrape *second, const char *name,
                        double expected)
{
    struct text full = {0};
    double rise;

    text_printf(&full, "%s", name);
    text_quote(&full, 0);
    rise = value_of(second, full.data) - value_of(first, full.data);
    ck_assert_msg(rise == expected, "%s rose by %g, not by %g", name, rise, expected);
    text_free(&full);
}

/* The buckets of a pool are cumulative, and the last one is the count. */
static void check_histogram(const struct scrape *scrape, const char *pool)
{
    const char *prefix = test_format("stdio_bus_request_duration_seconds_bucket{pool=\"%s\",",
                                     pool);
    double last = 0;
    int buckets = 0;

    for (size_t i = 0; i < scrape->count; i++) {
        if (strncmp(scrape->series[i].name, prefix, strlen(prefix)) != 0)
            continue;
        ck_assert_msg(scrape->series[i].value >= last, "%s", scrape->series[i].name);
        last = scrape->series[i].value;
        buckets++;
    }
    ck_assert_int_gt(buckets, 5);
    ck_assert(last == value_of(scrape, test_format("stdio_bus_request_duration_seconds_count"
                                                   "{pool=\"%s\"}",
                                                   pool)));
}

/* 20 results of pool a, 3 errors of pool b: row 0 over HTTP, row 1 by ctl. */
TEST_ROWS(control_two_scrapes_add_up, 2)
{
    static struct scrape first, second;
    struct daemon *daemon =
        CONTROL_DAEMON(.pools = POOL("a", 1, "'--name','a'") "," POOL("b", 1, "'--name','b'"),
                       .members = "'metrics':'127.0.0.1:0'");
    struct client *client = client_connect(daemon);
    struct http *http = row == 0 ? connect_to_metrics(daemon) : NULL;
    const int messages = http != NULL ? 24 : 23; /* the first scrape over HTTP is a message, too */

    steps_without_upgrades("each program counts the rounds of its loop");
    client_send(client, "{'id':'w','pool':'a','method':'echo'}");
    client_result(client, "\"w\"");
    scrape(&first, daemon, http);
    for (int i = 0; i < 20; i++) {
        client_send(client, "{'id':%d,'pool':'a','method':'echo'}", i);
        client_result(client, test_format("%d", i));
    }
    for (int i = 0; i < 3; i++) {
        client_send(client, "{'id':%d,'pool':'b','method':'fail'}", i);
        client_line(client);
    }
    scrape(&second, daemon, http);
    compare(&first, &second);
    expect_rise(&first, &second, "stdio_bus_client_messages_total{direction='received'}", messages);
    expect_rise(&first, &second, "stdio_bus_client_messages_total{direction='sent'}", messages);
    expect_rise(&first, &second, "stdio_bus_pool_messages_total{pool='a',direction='sent'}", 20);
    expect_rise(&first, &second, "stdio_bus_pool_messages_total{pool='b',direction='received'}", 3);
    expect_rise(&first, &second, "stdio_bus_requests_total{pool='a',outcome='result'}", 20);
    expect_rise(&first, &second, "stdio_bus_requests_total{pool='a',outcome='error'}", 0);
    expect_rise(&first, &second, "stdio_bus_requests_total{pool='b',outcome='error'}", 3);
    expect_rise(&first, &second, "stdio_bus_request_duration_seconds_count{pool='a'}", 20);
    check_histogram(&second, "a");
    check_histogram(&second, "b");
}
