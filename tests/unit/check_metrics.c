/* The text of the metrics: the format of Prometheus, and numbers that add up. */
#include "build_config.h"

#include "bus/service.h"
#include "monitor/metrics.h"

#include "suite.h"

static struct metrics_pool pools[2];

/* --- a service --- */

struct values {
    uint64_t drops[2];
    uint32_t now;
};

static const char *const reasons[] = {"late", "early"};

static const struct metric service_rows[] = {
    {"toy_drops_total", "Drops.", "reason", reasons, METRIC_AT(struct values, drops)},
    {"toy_now", "Now.", .always = true, METRIC_AT(struct values, now)},
    {.name = NULL},
};

static const struct service toy = {.metrics = service_rows};
static const struct service *const services[] = {&toy, NULL};
static struct values values = {{5, 7}, 3};
static struct stdio_bus bus = {.options = {.services = services}, .service_count = 1};

static struct metrics some_metrics(void)
{
    memset(pools, 0, sizeof pools);
    pools[0].id = slice_of("a", 1);
    pools[1].id = slice_of("b\"\\\n", 4);
    bus.services[0] = &values;
    return (struct metrics){.bus = &bus, .services = {&values}, .pools = pools, .pool_count = 2};
}

static const char *write_text(const struct metrics *metrics)
{
    struct json_text text = {.data = NULL};
    const char *copy;

    metrics_write(&text, metrics);
    ck_assert(!text.failed);
    copy = test_format("%.*s", (int)text.len, text.data);
    json_text_free(&text);
    return copy;
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || c == '_';
}

TEST(service_without_a_state_has_the_metrics_that_are_always_there)
{
    struct metrics metrics = some_metrics();
    const char *text = write_text(&metrics);

    expect_word(text, "# HELP toy_drops_total Drops.\n# TYPE toy_drops_total counter\n"
                      "toy_drops_total{reason=\"late\"} 5\n"
                      "toy_drops_total{reason=\"early\"} 7\n");
    expect_word(text, "# HELP toy_now Now.\n# TYPE toy_now gauge\ntoy_now 3\n");
    bus.services[0] = NULL;
    metrics.services[0] = NULL;
    text = write_text(&metrics);
    expect_word(text, "\ntoy_now 0\n");
    ck_assert_ptr_null(strstr(text, "toy_drops_total"));
}

/* Each line is a comment or NAME{LABELS} NUMBER; a name's lines follow its HELP and TYPE. */
TEST(lines_are_of_the_format)
{
    struct metrics metrics = some_metrics();
    const char *line = write_text(&metrics), *family = "", *end;
    size_t family_len = 0;

    for (; *line != '\0'; line = end + 1) {
        end = strchr(line, '\n');
        ck_assert_ptr_nonnull(end);
        if (strncmp(line, "# HELP ", 7) == 0) {
            family = line + 7;
            family_len = strcspn(family, " ");
            ck_assert_msg(strncmp(end + 1, "# TYPE ", 7) == 0 &&
                              strncmp(end + 8, family, family_len + 1) == 0,
                          "%.*s", (int)(end - line), line);
        } else if (line[0] != '#') {
            ck_assert_msg(strncmp(line, family, family_len) == 0, "%.*s", (int)(end - line), line);
            ck_assert(is_name(line[0]));
        }
    }
}

TEST(labels_are_escaped)
{
    struct metrics metrics = some_metrics();

    expect_word(write_text(&metrics), "{pool=\"b\\\"\\\\\\n\",state=\"running\"} 0\n");
}

TEST(histogram_is_cumulative)
{
    struct metrics metrics = some_metrics();
    const char *text;

    pools[0].asked.outcomes[OUTCOME_RESULT] = 7;
    pools[0].asked.outcomes[OUTCOME_ERROR] = 2;
    pools[0].asked.outcomes[OUTCOME_CANCELLED] = 100;
    pools[0].asked.buckets[0] = 3;
    pools[0].asked.buckets[1] = 4;
    pools[0].asked.buckets[OUTCOME_BUCKETS - 1] = 1;
    pools[0].asked.total_ms = 600007;
    text = write_text(&metrics);
    expect_word(text, "duration_seconds_bucket{pool=\"a\",le=\"0.001\"} 3\n");
    expect_word(text, "duration_seconds_bucket{pool=\"a\",le=\"0.002\"} 7\n");
    expect_word(text, "duration_seconds_bucket{pool=\"a\",le=\"60\"} 7\n");
    expect_word(text, "duration_seconds_bucket{pool=\"a\",le=\"300\"} 8\n");
    expect_word(text, "duration_seconds_bucket{pool=\"a\",le=\"+Inf\"} 9\n");
    expect_word(text, "duration_seconds_sum{pool=\"a\"} 600.007\n");
    expect_word(text, "duration_seconds_count{pool=\"a\"} 9\n");
    expect_word(text, "requests_total{pool=\"a\",outcome=\"cancelled\"} 100\n");
}

TEST(times_are_seconds)
{
    struct metrics metrics = some_metrics();
    const char *text;

    metrics.held_ms[1] = 12005;
    metrics.busy_us = 1000002;
    metrics.cpu_us = UINT64_MAX;
    text = write_text(&metrics);
    expect_word(text, "held_seconds_total{peer=\"worker\"} 12.005\n");
    expect_word(text, "loop_busy_seconds_total 1.000002\n");
    expect_word(text, "process_cpu_seconds_total 18446744073709.551615\n");
}

TEST(unknown_memory_is_left_out)
{
    struct metrics metrics = some_metrics();

    ck_assert_ptr_null(strstr(write_text(&metrics), "process_resident_memory_bytes"));
    metrics.resident = 5;
    expect_word(write_text(&metrics), "\nprocess_resident_memory_bytes 5\n");
}
