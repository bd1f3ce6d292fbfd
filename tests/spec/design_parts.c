/* What the program was built without is an error, whether an option or a key asks for it, and never
 * ignored. */
#include "build_config.h"

#include "harness.h"

static const struct {
    const char *part, *option, *value, *message;
} options[] = {
    {"http", "--http", "127.0.0.1:0", "--http: built without http"},
    {"rmp", "--rmp", NULL, "--rmp: built without rmp"},
    {"control", "--control", "/nowhere/control", "--control: built without control"},
    {"control", "--ping", "/nowhere/control", "--ping: built without control"},
    {"remote", "--connect", "http://127.0.0.1:1/", "--connect: built without remote"},
    {"share", "--list", NULL, "--list: built without share"},
    {"page", "--page", NULL, "--page: built without page"},
    {"doctor", "--import", "/nowhere/file", "--import: built without doctor"},
};

TEST_ROWS(design_option_of_a_part_that_is_not_there, COUNT(options))
{
    const struct setup setup = {.mode = SETUP_STDIO,
                                .default_mode = true,
                                .arguments = {options[row].option, options[row].value}};
    if (daemon_has(options[row].part))
        return;
    expect_word(daemon_run(&setup, 64, NULL), options[row].message);
}

static const struct {
    const char *part, *config, *message;
} keys[] = {
    {"http",
     "{'listen':[{'http':'127.0.0.1:0'}],'pools':[{'id':'p','command':'cat','instances':1}]}",
     "a listener of HTTP: built without http"},
    {"rmp", "{'rmp':{'enabled':true},'pools':[{'id':'p','command':'cat','instances':1}]}",
     "rmp.enabled: built without rmp"},
    {"nats", "{'nats':{'servers':['h']},'pools':[{'id':'p','command':'cat','instances':1}]}",
     "nats: built without nats"},
    {"control", "{'control':'/nowhere/control','pools':[{'id':'p','command':'cat','instances':1}]}",
     "control: built without control"},
};

TEST_ROWS(design_key_of_a_part_that_is_not_there, COUNT(keys))
{
    const struct setup setup = {.mode = SETUP_STDIO, .config = keys[row].config};
    if (daemon_has(keys[row].part))
        return;
    expect_word(daemon_run(&setup, 78, NULL), keys[row].message);
}

/* A signal whose part is not there changes nothing. */
TEST_ROWS(design_signal_of_a_part_that_is_not_there, 2)
{
    static const int signals[] = {SIGHUP, SIGUSR2};
    static const char *const parts[] = {"reload", "upgrade"};
    if (daemon_has(parts[row]))
        return;
    struct daemon *daemon = START(.instances = 1);
    struct client *client = client_connect(daemon);
    kill(daemon->pid, signals[row]);
    daemon_wait_log(daemon, "nothing acts on SIG");
    client_ask(client, "1", NULL, "echo", NULL);
}
