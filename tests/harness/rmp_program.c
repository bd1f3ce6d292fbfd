#include "build_config.h"

#include "rmp_program.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

#define WORDS_MAX 24

struct daemon *rmp_program_daemon(const char *pools)
{
    struct daemon *daemon = START(.pools = pools, .arguments = {"--rmp", "@DIR@/rmp.sock"});

    daemon_wait_log(daemon, "listening on .*/rmp\\.sock");
    return daemon;
}

struct client *rmp_program_connect(const struct daemon *daemon)
{
    struct daemon topics = *daemon;

    snprintf(topics.socket_path, sizeof topics.socket_path, "%s/rmp.sock", daemon->dir);
    return client_connect(&topics);
}

static void run(const struct daemon *daemon, const char *const *words, int in, int out)
{
    const char *dir = getenv("BUILD_DIR"), *argv[WORDS_MAX + 4];
    char program[512], socket[512];
    size_t count = 0;

    snprintf(program, sizeof program, "%s/stdio_bus_rmp", dir != NULL ? dir : ".");
    argv[count++] = program;
    if (daemon != NULL) {
        snprintf(socket, sizeof socket, "%s/rmp.sock", daemon->dir);
        argv[count++] = "--socket";
        argv[count++] = socket;
    }
    for (; *words != NULL && count < WORDS_MAX; words++)
        argv[count++] = *words;
    argv[count] = NULL;
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    execv(program, (char *const *)(uintptr_t)argv);
    _exit(127);
}

struct rmp_program rmp_program_start(const struct daemon *daemon, const char *input,
                                     size_t input_len, const char *const *words)
{
    struct rmp_program program;
    int in[2], out[2];

    ck_assert_int_eq(pipe(in), 0);
    ck_assert_int_eq(pipe(out), 0);
    program.pid = fork();
    ck_assert_int_ge(program.pid, 0);
    if (program.pid == 0) {
        close(in[1]);
        close(out[0]);
        run(daemon, words, in[0], out[1]);
    }
    close(in[0]);
    close(out[1]);
    if (input_len > 0)
        ck_assert_int_eq(write(in[1], input, input_len), (ssize_t)input_len);
    close(in[1]);
    program.client = client_adopt(out[0], -1);
    return program;
}

struct span rmp_program_expect(struct rmp_program *program, const char *format, ...)
{
    struct span line = client_line(program->client);
    struct text word = {0}, whole = {0};
    va_list arguments;

    va_start(arguments, format);
    text_vprintf(&word, format, arguments);
    va_end(arguments);
    text_quote(&word, 0);
    text_add(&whole, line.data, line.len);
    ck_assert_msg(strstr(whole.data, word.data) != NULL, "\"%s\" is not in: %s", word.data,
                  whole.data);
    text_free(&word);
    text_free(&whole);
    return line;
}

void rmp_program_expect_lines(struct rmp_program *program, const char *const *words)
{
    for (; *words != NULL; words++)
        rmp_program_expect(program, "%s", *words);
}

void rmp_program_end(struct rmp_program *program, int expected)
{
    int status = 0;

    client_expect_eof(program->client);
    client_close(program->client);
    ck_assert_int_eq(waitpid(program->pid, &status, 0), program->pid);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), expected);
}

void rmp_program_says(struct rmp_program program, int status, const char *format, ...)
{
    struct text *word = test_text();
    va_list arguments;

    va_start(arguments, format);
    text_vprintf(word, format, arguments);
    va_end(arguments);
    rmp_program_expect(&program, "%s", word->data);
    rmp_program_end(&program, status);
}

void rmp_program_stop(struct rmp_program *program)
{
    kill(program->pid, SIGTERM);
    ck_assert_int_eq(waitpid(program->pid, NULL, 0), program->pid);
    client_close(program->client);
}

/* --- talks with pools --- */

struct rmp_program rmp_program_subscriber(const struct daemon *daemon, const char *topic)
{
    struct rmp_program program = RMP_PROGRAM(daemon, "sub", "--json", topic);

    rmp_program_expect(&program, "subscribed");
    return program;
}

void rmp_program_publish(const struct daemon *daemon, const char *topic, const char *type,
                         const char *trace, const char *ttl, const char *json)
{
    struct rmp_program program;
    struct text text = {0};

    text_printf(&text, "%s", json);
    text_quote(&text, 0);
    program = RMP_PROGRAM(daemon, "pub", topic, text.data, "--type", type, "--trace", trace,
                          "--ttl", ttl);
    rmp_program_expect(&program, "%s", trace);
    rmp_program_end(&program, 0);
    text_free(&text);
}

void rmp_program_execute_until(const struct daemon *daemon, const char *trace, const char *ttl,
                               const char *method, const char *inputs)
{
    rmp_program_publish(
        daemon, "agent/writer", "intent.executor.agent.request.v1", trace, ttl,
        test_format("{'node':{'method':'%s'},'inputs':%s,'attempt':1,'reply_topic':'reply'}",
                    method, inputs));
}

void rmp_program_execute(const struct daemon *daemon, const char *method, const char *inputs)
{
    rmp_program_execute_until(daemon, RMP_TRACE, "30000", method, inputs);
}

void rmp_program_submit(const struct daemon *daemon, const char *trace, const char *members)
{
    rmp_program_publish(daemon, "rlp/ctrl", "intent.ctrl.request.v1", trace, "30000",
                        test_format("{'RunSubmit':{'request_id':'%s',%s}}", trace, members));
}
