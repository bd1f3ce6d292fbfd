#include "build_config.h"

#include "joined.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "setup.h"

struct joined joined_with(const char *address, const char *const *words)
{
    struct joined joined;
    struct command command;
    int in[2], out[2], log;
    ck_assert_int_eq(pipe(in), 0);
    ck_assert_int_eq(pipe(out), 0);
    joined.log = test_format("%s/log", test_dir());
    log = open(joined.log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ck_assert_int_ge(log, 0);
    connect_command(address, words, &command);
    joined.pid = fork();
    ck_assert_int_ge(joined.pid, 0);
    if (joined.pid == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        dup2(log, STDERR_FILENO);
        close(in[0]);
        close(in[1]);
        close(out[0]);
        close(out[1]);
        execvp(command.words[0], command.words);
        _exit(127);
    }
    command_free(&command);
    close(in[0]);
    close(out[1]);
    close(log);
    joined.client = client_adopt(out[0], in[1]);
    return joined;
}

struct joined joined_to(const struct web_server *server)
{
    return JOINED(web_url(server, "/mcp"), NULL);
}

void joined_expect_status(const struct joined *joined, int expected)
{
    int status = 0;
    pid_t reaped;
    WAIT_UNTIL((reaped = waitpid(joined->pid, &status, WNOHANG)) != 0, "--connect does not exit");
    ck_assert_int_eq(reaped, joined->pid);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), expected);
}

void web_expect_field(const struct web_request *request, const char *name, const char *value)
{
    const char *found = web_field(request, name);
    if (value == NULL)
        ck_assert_msg(found == NULL, "%s: %s", name, found);
    else
        ck_assert_msg(found != NULL && strcmp(found, value) == 0, "%s: %s, not %s", name,
                      found != NULL ? found : "(none)", value);
}

void joined_ask(const struct joined *joined, int id)
{
    client_send(joined->client, "{'jsonrpc':'2.0','id':%d,'method':'tools/list'}", id);
}

struct web_request *joined_asked(struct web_server *server, int id)
{
    return web_next(server, "POST /mcp", test_format("'id':%d,", id));
}

void joined_answer(const struct web_request *request, int id)
{
    web_answer(request, "200 OK", "", ANSWER, id);
}
