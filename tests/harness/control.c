#include "build_config.h"

#include "control.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "deadline.h"
#include "harness.h"

#define WORDS_MAX 12

struct daemon *control_daemon(struct setup setup)
{
    struct daemon *daemon;
    size_t i = 0;

    while (setup.arguments[i] != NULL)
        i++;
    setup.arguments[i] = "--control";
    setup.arguments[i + 1] = "@DIR@/control.sock";
    daemon = daemon_start(&setup);
    daemon_wait_log(daemon, "listening on .*/control\\.sock");
    return daemon;
}

const char *control_path(const struct daemon *daemon)
{
    return test_format("%s/control.sock", daemon->dir);
}

struct client *control_connect(const struct daemon *daemon)
{
    struct daemon there = *daemon;

    there.port = 0;
    snprintf(there.socket_path, sizeof there.socket_path, "%s", control_path(daemon));
    return client_connect(&there);
}

struct span control_ask(struct client *control, const char *method, const char *params)
{
    client_send(control, "{'jsonrpc':'2.0','id':'c','method':'%s','params':%s}", method,
                params != NULL ? params : "{}");
    return client_result(control, "\"c\"");
}

void control_wait(struct client *control, const char *method, const char *path, const char *raw)
{
    int64_t deadline = deadline_usual();
    struct text wanted = {0};
    struct span value;

    text_printf(&wanted, "%s", raw);
    text_quote(&wanted, 0);
    for (;;) {
        value = json_get(control_ask(control, method, NULL), path);
        if (value.data != NULL && span_is(value, wanted.data))
            break;
        ck_assert_msg(!deadline_over(deadline), "%s of %s is %.*s, not %s", path, method,
                      SHOWN(value), wanted.data);
        nap();
    }
    text_free(&wanted);
}

double control_metric(struct client *control, const char *name)
{
    struct span text = control_ask(control, "metrics", NULL);
    struct text line = {0};
    const char *at;
    double value = -1;

    text_add(&line, text.data, text.len);
    text_add(&line, "", 1);
    for (at = line.data; value < 0 && (at = strstr(at, "\\n")) != NULL; at += 2) {
        const char *p = at + 2, *q = name;

        for (; *q != '\0' && *p != '\0'; q++, p++) { /* \" is " */
            p += *p == '\\' && p[1] == '"';
            if (*p != (*q == '\'' ? '"' : *q))
                break;
        }
        if (*q == '\0' && *p == ' ')
            value = strtod(p, NULL);
    }
    text_free(&line);
    return value;
}

static void run(const struct daemon *daemon, const char *const *words, int out)
{
    const char *program = getenv("STDIO_BUS"), *argv[WORDS_MAX + 2];
    size_t count = 0;

    argv[count++] = program != NULL ? program : "./stdio_bus";
    for (; *words != NULL && count <= WORDS_MAX; words++)
        argv[count++] = strcmp(*words, "@CONTROL@") == 0 ? control_path(daemon) : *words;
    argv[count] = NULL;
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    execv(argv[0], (char *const *)(uintptr_t)argv);
    _exit(127);
}

struct rmp_program control_program(const struct daemon *daemon, const char *const *words)
{
    struct rmp_program program;
    int out[2];

    ck_assert_int_eq(pipe(out), 0);
    program.pid = fork();
    ck_assert_int_ge(program.pid, 0);
    if (program.pid == 0) {
        close(out[0]);
        run(daemon, words, out[1]);
    }
    close(out[1]);
    program.client = client_adopt(out[0], -1);
    return program;
}
