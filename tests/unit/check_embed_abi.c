/* The interface that existing programs are compiled for: sizes, offsets, values and types. */
#include "build_config.h"

#include "embed/stdio_bus_embed.h"
#include "suite.h"

/* The same once more, in other words. */
struct listener {
    int mode;
    const char *tcp_host;
    uint16_t tcp_port;
    const char *unix_path;
};

struct options {
    const char *config_path, *config_json;
    struct listener listener;
    void (*on_message)(stdio_bus_t *, const char *, size_t, void *);
    void (*on_error)(stdio_bus_t *, int, const char *, void *);
    void (*on_log)(stdio_bus_t *, int, const char *, void *);
    void (*on_worker)(stdio_bus_t *, int, const char *, void *);
    void (*on_client_connect)(stdio_bus_t *, int, const char *, void *);
    void (*on_client_disconnect)(stdio_bus_t *, int, const char *, void *);
    void *user_data;
    int log_level;
};

struct stats {
    uint64_t messages_in, messages_out, bytes_in, bytes_out;
    uint64_t worker_restarts, routing_errors, client_connects, client_disconnects;
};

#define SAME_PLACE(ours, known, member)                                                            \
    ck_assert_uint_eq(offsetof(ours, member), offsetof(known, member));                            \
    ck_assert_uint_eq(sizeof(((ours *)0)->member), sizeof(((known *)0)->member))

TEST(structs_have_their_layout)
{
    ck_assert_uint_eq(sizeof(stdio_bus_listener_config_t), sizeof(struct listener));
    SAME_PLACE(struct stdio_bus_listener_config, struct listener, mode);
    SAME_PLACE(struct stdio_bus_listener_config, struct listener, tcp_host);
    SAME_PLACE(struct stdio_bus_listener_config, struct listener, tcp_port);
    SAME_PLACE(struct stdio_bus_listener_config, struct listener, unix_path);
    ck_assert_uint_eq(sizeof(stdio_bus_options_t), sizeof(struct options));
    SAME_PLACE(struct stdio_bus_options, struct options, config_path);
    SAME_PLACE(struct stdio_bus_options, struct options, config_json);
    SAME_PLACE(struct stdio_bus_options, struct options, listener);
    SAME_PLACE(struct stdio_bus_options, struct options, on_message);
    SAME_PLACE(struct stdio_bus_options, struct options, on_error);
    SAME_PLACE(struct stdio_bus_options, struct options, on_log);
    SAME_PLACE(struct stdio_bus_options, struct options, on_worker);
    SAME_PLACE(struct stdio_bus_options, struct options, on_client_connect);
    SAME_PLACE(struct stdio_bus_options, struct options, on_client_disconnect);
    SAME_PLACE(struct stdio_bus_options, struct options, user_data);
    SAME_PLACE(struct stdio_bus_options, struct options, log_level);
    ck_assert_uint_eq(sizeof(stdio_bus_stats_t), sizeof(struct stats));
    SAME_PLACE(struct stdio_bus_stats, struct stats, messages_in);
    SAME_PLACE(struct stdio_bus_stats, struct stats, messages_out);
    SAME_PLACE(struct stdio_bus_stats, struct stats, bytes_in);
    SAME_PLACE(struct stdio_bus_stats, struct stats, bytes_out);
    SAME_PLACE(struct stdio_bus_stats, struct stats, worker_restarts);
    SAME_PLACE(struct stdio_bus_stats, struct stats, routing_errors);
    SAME_PLACE(struct stdio_bus_stats, struct stats, client_connects);
    SAME_PLACE(struct stdio_bus_stats, struct stats, client_disconnects);
}

TEST(values_are_fixed)
{
    static const int values[][2] = {
        {STDIO_BUS_EMBED_API_VERSION, 2},
        {STDIO_BUS_OK, 0},
        {STDIO_BUS_ERR, -1},
        {STDIO_BUS_EAGAIN, -2},
        {STDIO_BUS_EOF, -3},
        {STDIO_BUS_EFULL, -4},
        {STDIO_BUS_ENOTFOUND, -5},
        {STDIO_BUS_EINVAL, -6},
        {STDIO_BUS_ERR_CONFIG, -10},
        {STDIO_BUS_ERR_WORKER, -11},
        {STDIO_BUS_ERR_ROUTING, -12},
        {STDIO_BUS_ERR_BUFFER, -13},
        {STDIO_BUS_ERR_INVALID, -14},
        {STDIO_BUS_ERR_STATE, -15},
        {STDIO_BUS_LISTEN_NONE, 0},
        {STDIO_BUS_LISTEN_TCP, 1},
        {STDIO_BUS_LISTEN_UNIX, 2},
        {STDIO_BUS_STATE_CREATED, 0},
        {STDIO_BUS_STATE_STARTING, 1},
        {STDIO_BUS_STATE_RUNNING, 2},
        {STDIO_BUS_STATE_STOPPING, 3},
        {STDIO_BUS_STATE_STOPPED, 4},
    };

    for (size_t i = 0; i < COUNT(values); i++)
        ck_assert_int_eq(values[i][0], values[i][1]);
    ck_assert_uint_eq(sizeof(stdio_bus_state_t), sizeof(int));
}

/* An assignment without a warning: the type is the known one. */
TEST(functions_have_their_types)
{
    stdio_bus_t *(*create)(const stdio_bus_options_t *) = stdio_bus_create;
    int (*start)(stdio_bus_t *) = stdio_bus_start;
    int (*step)(stdio_bus_t *, int) = stdio_bus_step;
    int (*stop)(stdio_bus_t *, int) = stdio_bus_stop;
    void (*destroy)(stdio_bus_t *) = stdio_bus_destroy;
    int (*ingest)(stdio_bus_t *, const char *, size_t) = stdio_bus_ingest;
    stdio_bus_state_t (*state)(const stdio_bus_t *) = stdio_bus_get_state;
    int (*counts[])(const stdio_bus_t *) = {stdio_bus_worker_count, stdio_bus_session_count,
                                            stdio_bus_pending_count, stdio_bus_client_count};
    int (*poll_fd)(const stdio_bus_t *) = stdio_bus_get_poll_fd;
    int (*add)(stdio_bus_t *, int, int, const char *) = stdio_bus_register_embedded_worker;
    int (*drop)(stdio_bus_t *, int) = stdio_bus_unregister_embedded_worker;
    void (*get_stats)(const stdio_bus_t *, stdio_bus_stats_t *) = stdio_bus_get_stats;
    stdio_bus_stats_t stats = {.messages_in = 1};

    ck_assert_ptr_null(create(NULL));
    ck_assert_int_lt(start(NULL), 0);
    ck_assert_int_lt(step(NULL, 0), 0);
    ck_assert_int_lt(stop(NULL, 0), 0);
    destroy(NULL);
    ck_assert_int_lt(ingest(NULL, "{}", 2), 0);
    ck_assert_int_eq(state(NULL), STDIO_BUS_STATE_STOPPED);
    for (size_t i = 0; i < COUNT(counts); i++)
        ck_assert_int_eq(counts[i](NULL), 0);
    ck_assert_int_eq(poll_fd(NULL), -1);
    ck_assert_int_lt(add(NULL, 0, 0, "p"), 0);
    ck_assert_int_lt(drop(NULL, 1), 0);
    get_stats(NULL, &stats);
    ck_assert_uint_eq(stats.messages_in, 0);
}
