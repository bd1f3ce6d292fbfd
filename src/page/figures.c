#include "build_config.h"

#include "page/figures.h"

#include "base/clock.h"
#include "monitor/lists.h"
#include "monitor/metrics.h"
#include "monitor/status.h"
#include "process/pool.h"

/* Of the requests of clients. */
static struct request_counts count_requests(const struct stdio_bus *bus)
{
    struct request_counts counts = {.total_ms = 0};
    struct list_node *node, *following;

    list_each(&bus->pools, node, following) {
        const struct pool *pool = list_entry(node, struct pool, link);

        request_counts_add(&counts, &pool->group.asked);
        request_counts_add(&counts, &pool->stateless.asked);
    }
    return counts;
}

/* A pool that has gone takes its counts with it. */
static uint64_t grown(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

static struct request_counts counts_since(const struct request_counts *now,
                                          const struct request_counts *before)
{
    struct request_counts since = {.total_ms = 0};

    for (size_t i = 0; i < OUTCOMES; i++)
        since.outcomes[i] = grown(now->outcomes[i], before->outcomes[i]);
    for (size_t i = 0; i < OUTCOME_BUCKETS; i++)
        since.buckets[i] = grown(now->buckets[i], before->buckets[i]);
    return since;
}

static uint64_t all_outcomes(const struct request_counts *counts)
{
    uint64_t all = 0;

    for (size_t i = 0; i < OUTCOMES; i++)
        all += counts->outcomes[i];
    return all;
}

int64_t figures_quantile_us(const struct request_counts *counts, unsigned percent)
{
    uint64_t all = 0, below = 0, wanted;

    for (size_t i = 0; i < OUTCOME_BUCKETS; i++)
        all += counts->buckets[i];
    wanted = (all * percent + 99) / 100;
    for (size_t i = 0; i < OUTCOME_BUCKETS && wanted > 0; i++) {
        int64_t from_us = i > 0 ? outcome_bucket_ms[i - 1] * 1000 : 0;
        uint64_t count = counts->buckets[i];

        if (below + count >= wanted)
            return from_us + (outcome_bucket_ms[i] * 1000 - from_us) * (int64_t)(wanted - below) /
                                 (int64_t)count;
        below += count;
    }
    return -1;
}

static void write_time(struct json_text *to, const char *key, int64_t us)
{
    if (us >= 0)
        row_number(to, key, us);
    else
        row_string(to, key, NULL);
}

/* The figures that have curves. */
static void write_now(struct figures *figures, int64_t since_ms, struct json_text *to)
{
    const struct stdio_bus *bus = figures->bus;
    struct request_counts now = count_requests(bus), since = counts_since(&now, &figures->counts);

    row_begin(to, "now", '{');
    row_number(to, "tenths", (int64_t)(all_outcomes(&since) * 10000 / (uint64_t)since_ms));
    write_time(to, "p50_us", figures_quantile_us(&since, 50));
    write_time(to, "p99_us", figures_quantile_us(&since, 99));
    row_number(to, "resident", (int64_t)metrics_resident());
    row_number(to, "waiting", (int64_t)bus->router.from_clients.active_count);
    row_end(to, '}');
    figures->counts = now;
}

/* Each list is an object, and a member of this one. */
static void write_lists(struct stdio_bus *bus, struct json_text *to)
{
    static const struct {
        const char *key;
        void (*write)(struct stdio_bus *bus, struct json_text *to, size_t limit);
    } lists[] = {
        {",\"pools\":", lists_pools},       {",\"workers\":", lists_workers},
        {",\"clients\":", lists_clients},   {",\"sessions\":", lists_sessions},
        {",\"requests\":", lists_requests},
    };

    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        json_text_literal(to, lists[i].key);
        lists[i].write(bus, to, FIGURES_ROWS_MAX);
    }
}

/* Those of the bus, which has them `since_ms` after the last ones. */
static void compute(struct figures *figures, int64_t since_ms)
{
    struct json_text *to = &figures->text;

    metrics_start(figures->bus);
    row_begin(to, NULL, '{');
    row_number(to, "time_ms", (int64_t)clock_epoch_ms());
    write_now(figures, since_ms > 0 ? since_ms : 1, to);
    json_text_literal(to, ",\"status\":");
    status_write(figures->bus, to);
    write_lists(figures->bus, to);
    page_errors_write(&figures->errors, to);
    row_end(to, '}');
}

static void renew(struct figures *figures, int64_t now_ms)
{
    int64_t since_ms = now_ms -
                       (figures->text.len > 0 ? figures->computed_ms : figures->bus->started_ms);

    json_text_free(&figures->text);
    if (figures->source != NULL)
        figures->source->write(figures->source->user_data, &figures->text);
    else
        compute(figures, since_ms);
    figures->computed_ms = now_ms;
}

struct slice figures_read(struct figures *figures)
{
    int64_t now_ms = stdio_bus_event_loop_now_ms(figures->bus->loop);

    if (figures->text.len == 0 || now_ms - figures->computed_ms >= FIGURES_LIFE_MS)
        renew(figures, now_ms);
    if (figures->text.failed)
        json_text_free(&figures->text);
    return json_text_slice(&figures->text);
}

void figures_free(struct figures *figures)
{
    json_text_free(&figures->text);
}
