#include "build_config.h"

#include "control_scene.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "deadline.h"
#include "list_scene.h"

#define STALL_MS 60    /* without input: a lasting fault has had its effect */
#define CONNECTIONS 18 /* more than are served */
#define LINE_MAX_BYTES 65536

/* ---- the daemon ------------------------------------------------------------------------------ */

/* -1: the daemon has ended. */
static int connect_to(struct run *run, const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int64_t deadline = deadline_usual();
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", run->dir, name);
    while (connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        if (!run_alive(run)) {
            close(fd);
            return -1;
        }
        if (deadline_over(deadline))
            run_fail(run, "a socket cannot be connected to");
        nap();
    }
    return fd;
}

/* Sends a request and reads what comes, to the end of a line. Returns whether it came. */
static bool ask(struct run *run, int fd, const char *method)
{
    static char bytes[LINE_MAX_BYTES];
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    int64_t deadline = deadline_usual();
    struct text line = {0};
    ssize_t n = 1;
    int count;

    text_printf(&line, "{'id':1,'method':'%s','params':{'worker':1}}\n", method);
    text_quote(&line, 0);
    if (send(fd, line.data, line.len, MSG_NOSIGNAL) < 0)
        n = 0;
    text_free(&line);
    while (n > 0) {
        count = poll(&ready, 1, STALL_MS);
        if (count == 0)
            run_lift(run);
        if (count > 0)
            n = read(fd, bytes, sizeof bytes);
        if (count > 0 && n > 0 && bytes[n - 1] == '\n')
            return true;
        if (deadline_over(deadline))
            run_fail(run, "the control socket does not answer");
    }
    run->client_lost = true;
    return false;
}

void play_control(struct run *run)
{
    static const char *const methods[] = {"status", "workers", "clients", "metrics",
                                          "events", "restart", "figures"};
    int fds[CONNECTIONS], fd = connect_to(run, "control"), client = connect_to(run, "socket");
    bool good = fd >= 0;

    if (good)
        ask(run, fd, "status");
    run_arm(run);
    for (size_t i = 0; i < CONNECTIONS; i++)
        fds[i] = good ? connect_to(run, "control") : -1;
    for (size_t i = 0; good && i < sizeof methods / sizeof methods[0]; i++)
        good = ask(run, fd, methods[i]);
    for (size_t i = 0; i < CONNECTIONS; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
    run_lift(run);
    if (fd >= 0)
        close(fd);
    if (client >= 0)
        close(client);
    run_terminate(run);
}

/* ---- its client ------------------------------------------------------------------------------ */

/* What is answered to a line that contains the word; ' stands for ". */
static const struct {
    const char *word, *answer;
} answers[] = {
    {"'status'", "{'jsonrpc':'2.0','id':1,'result':{'version':'1','healthy':true,'runs_ms':1,"
                 "'memory':1,'listen':[{'kind':'unix','path':'@DIR@/socket','token':false,"
                 "'framing':'ndjson'}]}}\n"},
    {"'workers'", "{'jsonrpc':'2.0','id':1,'result':{'workers':[{'worker':1,'pool':'a',"
                  "'state':'running','messages_in':1}],'total':1}}\n"},
    {"'clients'", "{'jsonrpc':'2.0','id':1,'result':{'clients':[{'client':1,'peer':'uid 0'}],"
                  "'total':1}}\n"},
    {"'pools'", "{'jsonrpc':'2.0','id':1,'result':{'pools':[{'pool':'a','protocol':'mcp'}]}}\n"},
    {"'nodes'", "{'jsonrpc':'2.0','id':1,'result':{'nodes':[{'node':'far'}],'total':1}}\n"},
    {"'figures'", "{'jsonrpc':'2.0','id':1,'result':{'status':{'pid':1},'now':{'waiting':0},"
                  "'pools':{'pools':[{'pool':'a'}],'total':1}}}\n"},
    {"'events'", "{'jsonrpc':'2.0','id':1,'result':{}}\n"
                 "{'jsonrpc':'2.0','method':'event','params':{'event':'exited','of':'x'}}\n"},
    {"'reload'", "{'jsonrpc':'2.0','id':1,'error':{'code':-32000,'message':'no'}}\n"},
    {"'initialize'", "{'jsonrpc':'2.0','id':'stdio_bus-ping','result':{}}\n"},
};

/* Returns whether the connection continues. */
static bool answer(struct run *run, int fd)
{
    char bytes[4096];
    ssize_t n = recv(fd, bytes, sizeof bytes - 1, MSG_PEEK);

    if (n < 0 || (n > 0 && memchr(bytes, '\n', (size_t)n) == NULL))
        return true; /* there is no line yet */
    n = recv(fd, bytes, sizeof bytes - 1, 0);
    bytes[n > 0 ? n : 0] = '\0';
    for (size_t i = 0; n > 0 && i < sizeof answers / sizeof answers[0]; i++) {
        struct text word = {0}, text = {0};

        text_printf(&word, "%s", answers[i].word);
        text_quote(&word, 0);
        text_printf(&text, "%s", answers[i].answer);
        text_quote(&text, 0);
        text_replace(&text, "@DIR@", run->dir);
        if (strstr(bytes, word.data) != NULL) {
            (void)send(fd, text.data, text.len, MSG_NOSIGNAL);
            n = strcmp(answers[i].word, "'events'") == 0 ? 0 : n;
        }
        text_free(&word);
        text_free(&text);
    }
    return n > 0;
}

void play_ctl(struct run *run)
{
    int fds[8], fd;
    size_t count = 0;
    struct viewer_look look = {.is_over = false};

    fcntl(run->listener, F_SETFL, O_NONBLOCK);
    fcntl(run->from, F_SETFL, O_NONBLOCK);
    while (run_alive(run)) {
        fd = accept(run->listener, NULL, NULL);
        if (fd >= 0)
            fcntl(fd, F_SETFL, O_NONBLOCK);
        if (fd >= 0 && count < sizeof fds / sizeof fds[0])
            fds[count++] = fd;
        for (size_t i = 0; i < count; i++) {
            if (!answer(run, fds[i])) {
                close(fds[i]);
                fds[i--] = fds[--count];
            }
        }
        viewer_look(&look, run);
        nap();
    }
    while (count > 0)
        close(fds[--count]);
    viewer_look_free(&look);
}
