/* stdio_bus(1), "Servers with a URL": --connect https://, by a program that speaks TLS. */
#include "build_config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "joined.h"
#include "proc.h"
#include "setup.h"

static const char *log_of(const struct joined *joined)
{
    struct text *text = test_text();
    ck_assert(read_file(text, joined->log));
    return text->data;
}

/* --- a program that is no openssl --- */

/* The program openssl is the test worker, which speaks no TLS. */
static void remove_file(void *path)
{
    unlink(path);
}

static void plant_openssl(void)
{
    const char *dir = test_dir(), *path = test_format("%s/openssl", dir);
    struct text *worker = test_text();
    daemon_expand(NULL, worker, "@WORKER@");
    ck_assert_int_eq(symlink(worker->data, path), 0);
    setenv("PATH", test_format("%s:%s", dir, getenv("PATH")), 1);
    harness_at_end(remove_file, (void *)(uintptr_t)path);
}

static const char *https_url(const struct web_server *server)
{
    return test_format("https://127.0.0.1:%u/mcp", server->port);
}

static struct joined joined_by_openssl(const struct web_server *server)
{
    plant_openssl();
    return JOINED(https_url(server), NULL);
}

/* This many openssl run, below the process, without the one that is tried at the start. */
static size_t tunnels_of(pid_t pid)
{
    FILE *list =
        popen(test_format("ps -o args= --ppid %ld | grep s_client | grep -vc -e -help", (long)pid),
              "r");
    unsigned count = 0;
    ck_assert_ptr_nonnull(list);
    ck_assert_int_eq(fscanf(list, "%u", &count), 1);
    pclose(list);
    return count;
}

static void exchange(struct web_server *server, const struct joined *joined, int id, size_t peer)
{
    struct web_request *request;
    joined_ask(joined, id);
    request = joined_asked(server, id);
    ck_assert_uint_eq(request->peer, peer);
    web_expect_field(request, "Host", test_format("127.0.0.1:%u", server->port));
    joined_answer(request, id);
    client_expect(joined->client, ANSWER, id);
}

TEST(connect_https_keeps_its_connection)
{
    struct web_server *server = web_start();
    struct joined joined = joined_by_openssl(server);
    exchange(server, &joined, 1, 0);
    exchange(server, &joined, 2, 0);
    ck_assert_uint_eq(tunnels_of(joined.pid), 1);
    client_half_close(joined.client);
    client_expect_eof(joined.client);
    joined_expect_status(&joined, 0);
}

/* A closed connection is replaced, and its program is gone. */
TEST(connect_https_connects_again)
{
    struct web_server *server = web_start();
    struct joined joined = joined_by_openssl(server);
    struct web_request *request;
    joined_ask(&joined, 1);
    request = joined_asked(server, 1);
    joined_answer(request, 1);
    client_expect(joined.client, ANSWER, 1);
    web_cut(request);
    WAIT_UNTIL(tunnels_of(joined.pid) == 0, "the program remains");
    exchange(server, &joined, 2, 1);
}

TEST(connect_https_by_another_program)
{
    struct web_server *server = web_start();
    struct text *command = test_text();
    daemon_expand(NULL, command, "  @WORKER@  --tunnel %p %h %% ");
    struct joined joined = JOINED(https_url(server), "--tls-command", command->data);
    exchange(server, &joined, 1, 0);
    exchange(server, &joined, 2, 0);
}

/* row: openssl, another program */
TEST_ROWS(connect_https_replaces_the_names, 2)
{
    struct text *command = test_text();
    daemon_expand(NULL, command, "@WORKER@ --tunnel a%%h=%h:%p,x %x");
    setenv("TUNNEL_MODE", "words", 1);
    plant_openssl();
    struct joined joined = row == 0
                               ? JOINED("https://[::1]:444/mcp", NULL)
                               : JOINED("https://mcp.example/mcp", "--tls-command", command->data);
    joined_ask(&joined, 1);
    client_error(joined.client, "1", -32000,
                 row == 0 ? "s_client -connect [::1]:444 -verify_ip ::1 -noservername "
                            "-verify_return_error -brief -ign_eof -alpn http/1.1"
                          : "--tunnel a%h=mcp.example:443,x %x");
}

/* row: without a login, with one */
TEST_ROWS(connect_https_by_a_proxy, 2)
{
    setenv("TUNNEL_MODE", "words", 1);
    setenv(row == 0 ? "HTTPS_PROXY" : "https_proxy",
           row == 0 ? "http://[::1]:8080" : "http://user:secret@proxy.example", 1);
    plant_openssl();
    struct joined joined = JOINED("https://mcp.example/mcp", NULL);
    joined_ask(&joined, 1);
    client_error(joined.client, "1", -32000,
                 row == 0
                     ? "http/1.1 -proxy [::1]:8080"
                     : "http/1.1 -proxy proxy.example:80 -proxy_user user -proxy_pass env:STDIO");
}

/* --- what the program says --- */

static const struct {
    const char *said, *word;
} reasons[] = {
    {"depth=0 CN = x\nverify error:num=20:unable to get local issuer certificate\n",
     "of an unknown authority (unable to get local issuer certificate); SSL_CERT_FILE names"},
    {"verify error:num=18:self-signed certificate\n", "of an unknown authority"},
    {"verify error:num=10:certificate has expired\nnotAfter=Nov\n", "server has expired"},
    {"verify error:num=9:x\n", "not valid yet"},
    {"verify error:num=62:hostname mismatch\n", "is for another name"},
    {"verify error:num=64:x\n", "is for another address"},
    {"verify error:num=79:invalid CA certificate\n", "is not valid (invalid CA certificate)"},
    {"verify error:num=7\n", "is not valid"},
    {"4027:error:80:system library:BIO_connect:Connection refused:x.c:117:y\nconnect:errno=111\n",
     "cannot connect: "},
    {"4067:error:1:BIO routines:BIO_lookup_ex:system lib:x.c:7:Name or service not known\n"
     "connect:errno=0\n",
     "cannot connect: Name or service not known"},
    {"s_client: HTTP CONNECT failed, reason= 403 Forbidden\n", "the proxy refuses: 403 Forbidden"},
    {"4097:error:0A00010B:SSL routines:ssl3_get_record:wrong version number:x.c:350:\n",
     "TLS failed: wrong version number"},
    {"x:error:1\n", "TLS failed: 1"},
    {"first\n\x1b[2Jlast\n\n", "mcp.example: \\\\x1b[2Jlast"},
    {"", "openssl has ended without a reason"},
};

TEST_ROWS(connect_https_says_why_not, COUNT(reasons))
{
    setenv("TUNNEL_SAYS", reasons[row].said, 1);
    plant_openssl();
    struct joined joined = JOINED("https://mcp.example/mcp", NULL);
    joined_ask(&joined, 1);
    client_error(joined.client, "1", -32000, reasons[row].word);
    client_half_close(joined.client);
    client_expect_eof(joined.client);
    joined_expect_status(&joined, 0);
}

TEST(connect_https_waits_for_a_server)
{
    struct web_server *server = web_start_later();
    plant_openssl();
    struct joined joined = JOINED(https_url(server), "--wait", "60");
    joined_ask(&joined, 1);
    for (int64_t until = now_ms() + 200; now_ms() < until;)
        nap();
    web_listen(server);
    joined_answer(joined_asked(server, 1), 1);
    client_expect(joined.client, ANSWER, 1);
}

/* row: no openssl; one that knows none of the options; another program that is not there; one
 * whose words have no room */
TEST_ROWS(connect_https_needs_a_program, 4)
{
    static const char *const words[] = {"cannot run openssl: No such file", "too old",
                                        "cannot run /no-such-program: No such file",
                                        "cannot run --tls-command: Argument list too long"};
    const char *command = row == 3 ? test_fill('x', 10000) : "/no-such-program %h";
    struct joined joined;
    plant_openssl();
    if (row == 0)
        setenv("PATH", "/nowhere", 1);
    else if (row == 1)
        setenv("TUNNEL_MODE", "old", 1);
    joined = row < 2 ? JOINED("https://mcp.example/mcp", NULL)
                     : JOINED("https://mcp.example/mcp", "--tls-command", command);
    client_expect_eof(joined.client);
    joined_expect_status(&joined, 78);
    expect_word(log_of(&joined), words[row]);
}

/* --- programs that misbehave --- */

TEST_ROWS(connect_https_survives_garbage, 2)
{
    struct web_server *server = web_start();
    setenv("TUNNEL_MODE", row == 0 ? "garbage" : "flood", 1);
    struct joined joined = joined_by_openssl(server);
    joined_ask(&joined, 1);
    if (row == 0) {
        client_error(joined.client, "1", -32000, "does not speak HTTP");
        return;
    }
    client_send(joined.client, "{'method':'notifications/cancelled','params':{'requestId':1}}");
    client_half_close(joined.client);
    client_expect_eof(joined.client);
    joined_expect_status(&joined, 0);
}

/* It would never end, and takes no SIGTERM; it ends with the process. */
TEST(connect_https_leaves_no_program)
{
    struct web_server *server = web_start();
    const char *mark = test_format("%s/mark", test_dir());
    setenv("TUNNEL_MODE", "silent", 1);
    setenv("TUNNEL_MARK", mark, 1);
    harness_adopt_orphans();
    struct joined joined = joined_by_openssl(server);
    joined_ask(&joined, 1);
    WAIT_UNTIL(access(mark, F_OK) == 0, "no program");
    kill(joined.pid, SIGTERM);
    client_expect_eof(joined.client);
    joined_expect_status(&joined, 0);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1); /* no orphan */
    unlink(mark);
}

/* --- the command line --- */

static const struct {
    const char *words[3], *problem;
} refused[] = {
    {{"http://h/", "--tls-command", "x"}, "--tls-command is for --connect https://"},
    {{"https://h/", "--tls-command", " "}, "--tls-command: must not be empty"},
    {{"https://-h/", NULL}, "a character that no host's name has"},
    {{"https://h,verify=0/", NULL}, "a character that no host's name has"},
    {{"wss://h/", NULL}, "must begin with https:// or http://"},
};

TEST_ROWS(connect_https_judges_the_command_line, COUNT(refused))
{
    const char *const *words = refused[row].words;
    struct joined joined = words[1] == NULL ? JOINED(words[0], NULL)
                                            : JOINED(words[0], words[1], words[2]);
    client_expect_eof(joined.client);
    joined_expect_status(&joined, 64);
    expect_word(log_of(&joined), refused[row].problem);
}

/* --- openssl and nginx --- */

static const char script[] =
    "cd '%s' && {\n"
    "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key"
    " -out ca.pem -subj /CN=ca -days 9\n"
    "mk() {\n"
    "openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout $1.key -out $1.csr "
    "-subj /CN=$1\n"
    "echo subjectAltName=$2 >$1.ext\n"
    "openssl x509 -req -in $1.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out $1.pem"
    " -extfile $1.ext -days $3\n"
    "}\n"
    "mk good DNS:localhost,IP:127.0.0.1 9 && mk wrong DNS:elsewhere.example 9 &&\n"
    "mk expired DNS:localhost -1; } >made 2>&1\n";

/* The certificate twice, the port, the port of the server. */
static const char configuration[] =
    "daemon off; pid pid; error_log errors; worker_processes 1; events {}\n"
    "http { access_log off; client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3;\n"
    "uwsgi_temp_path t4; scgi_temp_path t5; client_max_body_size 4m; client_body_buffer_size 4m;\n"
    "ssl_certificate %s.pem; ssl_certificate_key %s.key;\n"
    "server { listen 127.0.0.1:%u ssl; location / { proxy_pass http://127.0.0.1:%u;\n"
    "proxy_http_version 1.1; proxy_set_header Connection \"\"; } } }\n";

static bool lacks(const char *program)
{
    if (system(test_format("command -v %s >/dev/null 2>&1", program)) == 0)
        return false;
    printf("skipped: without %s (apt-get install nginx-light openssl)\n", program);
    return true;
}

static void empty_dir(void *dir)
{
    if (system(test_format("rm -rf '%s'/*", (const char *)dir)) != 0)
        fprintf(stderr, "files remain in %s\n", (const char *)dir);
}

static void end_nginx(void *pid)
{
    kill((pid_t)(intptr_t)pid, SIGQUIT);
    waitpid((pid_t)(intptr_t)pid, NULL, 0);
}

/* With this certificate, in front of the server. Returns the port. */
static unsigned start_nginx(const char *dir, const char *certificate,
                            const struct web_server *server)
{
    struct web_server *place = web_start_later();
    const char *path = test_format("%s/nginx.conf", dir);
    FILE *file = fopen(path, "w");
    pid_t pid;
    ck_assert_ptr_nonnull(file);
    fprintf(file, configuration, certificate, certificate, place->port, server->port);
    fclose(file);
    close(place->listener); /* its port is free */
    place->listener = -1;
    pid = fork();
    if (pid == 0) {
        execlp("nginx", "nginx", "-p", dir, "-c", path, "-e", "/dev/null", (char *)NULL);
        _exit(127);
    }
    harness_at_end(end_nginx, (void *)(intptr_t)pid);
    return place->port;
}

static const struct {
    const char *certificate, *host, *word;
    bool is_trusted;
} certificates[] = {
    {"good", "localhost", NULL, true},
    {"good", "127.0.0.1", NULL, true},
    {"good", "localhost", "of an unknown authority", false},
    {"expired", "localhost", "has expired", true},
    {"wrong", "localhost", "is for another name", true},
    {"wrong", "127.0.0.1", "is for another address", true},
};

/* A body of letters that are commands of s_client at the beginning of a line. */
TEST_ROWS(connect_https_verifies_certificates, COUNT(certificates))
{
    const char *dir, *letters = test_fill(row == 0 ? 'Q' : 'R', 1000000);
    struct web_server *server = web_start();
    struct joined joined;
    struct web_request *request;
    unsigned port;
    if (lacks("nginx") || lacks("openssl"))
        return;
    dir = test_dir();
    harness_at_end(empty_dir, (void *)(uintptr_t)dir);
    ck_assert_int_eq(system(test_format(script, dir)), 0);
    port = start_nginx(dir, certificates[row].certificate, server);
    if (certificates[row].is_trusted)
        setenv("SSL_CERT_FILE", test_format("%s/ca.pem", dir), 1);
    joined = JOINED(test_format("https://%s:%u/mcp", certificates[row].host, port), "--wait", "20");
    client_send(joined.client, "{'jsonrpc':'2.0','id':1,'method':'x','params':'%s'}", letters);
    if (certificates[row].word != NULL) {
        client_error(joined.client, "1", -32000, certificates[row].word);
    } else {
        request = joined_asked(server, 1);
        ck_assert_uint_gt(request->body.len, 1000000);
        joined_answer(request, 1);
        client_expect(joined.client, ANSWER, 1);
    }
}
