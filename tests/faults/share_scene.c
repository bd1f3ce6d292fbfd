#include "build_config.h"

#include "share_scene.h"

#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "deadline.h"
#include "proc.h"

#define STALL_MS 60

void end_stdin(struct peer *peer)
{
    close(peer->out);
    peer->out = peer->in;
    peer_await(peer);
    peer_await_end(peer);
}

static const char status_line[] = "{\"stdio_bus\":\"status\"}\n";

/* Sends the daemon a line of another program, and takes what it answers. A lasting fault ends when
 * it has had its effect. */
static void ask_daemon(struct run *run, const char *line)
{
    int64_t deadline = deadline_usual();
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    char bytes[4096];
    int count;

    snprintf(address.sun_path, sizeof address.sun_path, "%s/stdio_bus/a@%s.sock", run->dir,
             PACKAGE_VERSION);
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
        send(fd, line, strlen(line), MSG_NOSIGNAL) > 0) {
        while ((count = poll(&ready, 1, STALL_MS)) == 0 || read(fd, bytes, sizeof bytes) > 0) {
            if (count == 0)
                run_lift(run);
            if (deadline_over(deadline))
                run_fail(run, "the daemon does not answer");
        }
    }
    close(fd);
}

void make_file(const struct run *run, const char *name, const char *text)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", run->dir, name);
    file = fopen(path, "w");
    if (file == NULL || fputs(text, file) == EOF || fclose(file) != 0)
        abort();
}

void prepare_watched(struct run *run)
{
    run_make_dir(run, "watched");
    make_file(run, "watched/a", "");
}

static void shake_hands_alone(struct peer *peer)
{
    peer_call(peer, 1,
              ",'protocolVersion':'1','result':{'protocolVersion':'1','who':'Ann','capabilities':{'"
              "tools':{}}}",
              ",'method':'initialize'");
    peer_send(peer, "{'method':'notifications/initialized'}");
}

/* A file that is skipped does not end the server. */
void play_share(struct run *run)
{
    struct peer ann;

    peer_stdio(&ann, run, "Ann");
    peer_call(&ann, 1, "", "");
    run_arm(run);
    make_file(run, "watched/.b", "");
    if (!peer_gone(&ann)) {
        ask_daemon(run, status_line);
        ask_daemon(run, "{\"stdio_bus\":\"join\",\"identity\":\"\"}\n");
        peer_ask(&ann, 2, "", "");
        run_lift(run);
        end_stdin(&ann);
    }
}

/* Of the daemon, which is no child of the client. */
static void end_daemon(const struct run *run)
{
    pid_t children[64];
    size_t count = proc_children(getpid(), children, 64);

    for (size_t i = 0; i < count && i < 64; i++) {
        if (children[i] != run->daemon)
            kill(children[i], SIGTERM);
    }
}

/* What its server has answered is written to a file, as far as that can be done. */
static void await_memory(const struct run *run)
{
    int64_t until_ms = now_ms() + 1500;
    char pattern[160];
    glob_t found;
    bool is_there = false;

    snprintf(pattern, sizeof pattern, "%s/stdio_bus/*.memory", run->dir);
    while (!is_there && now_ms() < until_ms) {
        nap();
        is_there = glob(pattern, 0, NULL, &found) == 0;
        if (is_there)
            globfree(&found);
    }
}

/* Two daemons, one after the other: the second one knows the answers of the server of the first. */
void play_remembered(struct run *run)
{
    struct peer ann;

    peer_stdio(&ann, run, "Ann");
    run_arm(run);
    shake_hands_alone(&ann);
    await_memory(run);
    end_daemon(run);
    if (!peer_gone(&ann)) {
        peer_call(&ann, 3, "", ",'method':'tools/list'");
        peer_call(&ann, 4, "", "");
        run_lift(run);
        end_stdin(&ann);
    }
}

/* There is no server. The request comes when it is waited for. */
void play_refused(struct run *run)
{
    struct peer ann;

    peer_stdio(&ann, run, "Ann");
    run_arm(run);
    run_await_wait(run);
    peer_ask(&ann, 1, "", "");
    if (!peer_gone(&ann))
        end_stdin(&ann);
    run->client_lost = false; /* as it must be */
}

/* What a shared server has answered. */
void prepare_memory(struct run *run)
{
    char path[160];
    int fd;

    snprintf(path, sizeof path, "%s/stdio_bus/a-00112233445566778899aabbccddeeff.memory", run->dir);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        run_fail(run, "cannot make %s", path);
    close(fd);
}
