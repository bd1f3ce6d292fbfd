#include "build_config.h"

#include "cli/help.h"

#include <stddef.h>

static const char usage[] = "usage: stdio_bus --share[=NAME] -- COMMAND ARG...\n"
                            "       stdio_bus [LISTENER...] -- COMMAND ARG...\n"
                            "       stdio_bus [LISTENER...] --config PATH\n"
                            "       stdio_bus --rmp [PATH]\n"
                            "       stdio_bus --connect PATH|HOST:PORT|URL\n"
                            "       stdio_bus ctl [PATH] COMMAND\n"
                            "       stdio_bus doctor [--json] [--path PATH]\n"
                            "\n";

static const char purpose[] =
    "Starts pools of programs that talk JSON over stdin and stdout, keeps them\n"
    "running, and routes messages between them and many clients.\n"
    "\n";

static const char shared[] =
    "a server that all of this user's programs share; to be written in their\n"
    "configurations in place of the server:\n"
    "  --share[=NAME]     join the daemon of this command, directory and\n"
    "                     environment, or start it; a NAME keeps others out\n"
    "  --any-cwd          the directory does not count; the server runs in HOME\n"
    "  --env NAME,...     only these variables count, and few others are passed\n"
    "  --eager            remember no answers of the server for the next clients\n"
    "  --idle-exit SECS   end so long after the last client; default 300, 0: never\n"
    "  --list             show what is shared; NAME is one of it in the next four\n"
    "  --stop NAME        end its processes; the next message starts it again\n"
    "  --restart NAME     restart its processes; its clients stay connected\n"
    "  --forget NAME      forget what it has answered\n"
    "  --log NAME         show its log, and that of its daemon\n"
    "  --watch PATH       with --share: restart it when this file, or one in this\n"
    "                     directory, changes; may be given again\n"
    "  --json             with --list or --check-config: as JSON\n"
    "  --page             with --list: in a browser; prints the address\n"
    "\n";

static const char one_pool[] =
    "one pool, without a configuration:\n"
    "  -- COMMAND ARG...  the program to run, after all options\n"
    "  --protocol NAME    what it speaks: mcp, acp or lsp; without it messages are\n"
    "                     routed by the field sessionId alone\n"
    "  --clients KIND     how clients share its processes: shared, sticky or\n"
    "                     exclusive (each has its own); default: by the protocol;\n"
    "                     auto: --share decides by the tools of the server\n"
    "  --worker-framing NAME\n"
    "                     how it marks where messages begin and end: ndjson,\n"
    "                     content-length or length; default: ndjson, of lsp\n"
    "                     content-length\n"
    "  --instances N      processes, at most; default: 16 where they are started as\n"
    "                     clients come, otherwise 1\n"
    "  --idle-stop SECS   an MCP server that is not called for so long ends until\n"
    "                     it is, and its clients stay; default 0: never\n"
    "\n";

static const char configuration[] =
    "configuration:\n"
    "  --config PATH      read the configuration from a file; stdio_bus.conf(5);\n"
    "                     default: /etc/stdio_bus/stdio_bus.json, else\n"
    "                     ~/.config/stdio_bus/stdio_bus.json\n"
    "  --config-fd N      read it from the open descriptor N\n"
    "  --check-config     only check the configuration; exit 0, or 78 with the\n"
    "                     reasons\n"
    "  --strict           with --check-config: warnings are errors\n"
    "\n";

static const char mode[] =
    "clients:\n"
    "  --stdio            one client, on stdin and stdout (default)\n"
    "or any number of listeners, for many clients:\n"
    "  --unix PATH        messages on a Unix domain socket\n"
    "  --tcp HOST:PORT    messages on TCP; [IPV6]:PORT; :PORT for loopback; port 0\n"
    "                     lets the system choose. Other machines need the token, or\n"
    "                     \"listen\": {\"open\": true}, or --open\n"
    "  --http HOST:PORT|unix:PATH\n"
    "                     HTTP and WebSocket: an MCP server at /mcp or /mcp/POOL,\n"
    "                     JSON-RPC by POST at /rpc or /rpc/POOL\n"
    "  --open             without a token, other machines are served on these\n"
    "beside them, or alone:\n"
    "  --rmp [PATH]       the topic bus of RMP v0, on a Unix domain socket; its\n"
    "                     client is stdio_bus_rmp\n"
    "\n";

static const char framing[] =
    "  --framing NAME     how clients mark where messages begin and end: ndjson\n"
    "                     (default), content-length or length\n"
    "\n";

static const char client[] =
    "client of a running daemon, without a configuration:\n"
    "  --connect PATH|HOST:PORT|URL\n"
    "                     copies stdin and stdout to and from its socket; ~/ and\n"
    "                     $NAME in PATH are replaced; or is the client of any MCP\n"
    "                     server at an http:// or https:// URL\n"
    "  --protocol mcp     join the daemon again when it was restarted\n"
    "  --pool NAME        the pool of the daemon that the messages are for\n"
    "  --header FIELD     NAME: VALUE, sent with each request to a URL; repeatable\n"
    "  --header-env NAME=VARIABLE\n"
    "                     the same with the value of a variable of the environment\n"
    "  --tls-command COMMAND\n"
    "                     speaks TLS for https:// in place of openssl; %h, %p: host,\n"
    "                     port\n"
    "  --wait SECONDS     for a daemon that is not there yet; default: 0\n"
    "  --token-file FILE  the tokens that clients on TCP and HTTP show, or the one\n"
    "                     that --connect shows\n"
    "\n";

static const char control[] =
    "looking into a running daemon:\n"
    "  --control PATH     it has a control socket there, for its user alone\n"
    "  ctl [PATH] COMMAND asks it: status, workers, clients, top, metrics and more;\n"
    "                     stdio_bus ctl lists them\n"
    "  --ping SOCKET      exit 0 if the daemon of this control socket serves\n"
    "  --deep             with --ping: asks a worker of each pool of MCP or LSP, too\n"
    "\n";

static const char logging[] =
    "log:\n"
    "  --log-level LEVEL  debug, info (default), warn or error\n"
    "  --log-file PATH    append it to this file, not to stderr; SIGUSR1 reopens it\n"
    "  --log-format NAME  text (default), logfmt, json, or journald, the default\n"
    "                     where systemd connects stderr to its journal\n"
    "  --log-syslog[=PATH]\n"
    "                     to the system log, at /dev/log or this socket\n"
    "\n";

static const char other[] =
    "other:\n"
    "  doctor [--json]    look at what goes wrong most (PATH, npx, sockets, files of\n"
    "                     MCP clients), and name the cures\n"
    "  --import FILE      print a configuration for the servers in a file of an\n"
    "                     MCP client: Claude, Cursor, VS Code, Zed and most others\n"
    "  --schema           print the JSON Schema of the configuration\n"
    "  -h, --help         print this text\n"
    "  -V, --version      print the version\n"
    "\n";

static const char example[] =
    "example:\n"
    "  $ stdio_bus --unix /tmp/bus.sock --protocol mcp -- my-mcp-server\n"
    "  $ stdio_bus --http 127.0.0.1:8080 --protocol mcp -- my-mcp-server\n"
    "\n";

static const char same[] = "the same with a configuration:\n"
                           "  $ cat bus.json\n"
                           "  {\"pools\": [{\"id\": \"tools\", \"command\": \"my-mcp-server\",\n"
                           "              \"protocol\": \"mcp\"}]}\n"
                           "  $ stdio_bus --config bus.json --unix /tmp/bus.sock\n"
                           "\n";

static const char status[] =
    "exit status: 0 done, 64 usage, 65 malformed input in stdio mode, 69 no worker\n"
    "left, 71 system error, 78 configuration; of --connect: 69 cannot connect, 74\n"
    "stdout is closed, 75 the daemon went first, 76 the connection broke\n";

const char *const *help_sections(void)
{
    static const char *const sections[] = {usage, purpose, shared, one_pool, configuration,
                                           mode,  framing, client, control,  logging,
                                           other, example, same,   status,   NULL};

    return sections;
}
