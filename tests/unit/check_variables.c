/* The environments in which hosts start a server of MCP. Those of Claude Code, gemini-cli, opencode
 * and codex were recorded with a server that writes its own down (`claude mcp list` and the like);
 * the others are as their programs and systems set them. The values are neutral. */
#include "build_config.h"

#include "share/variables.h"

#include "share/identity.h"
#include "suite.h"

#define VARIABLES_MAX 40

/* Of one user, whatever starts the server. */
#define USER_HAS                                                                                   \
    "HOME=/home/user", "LOGNAME=user", "PATH=/usr/local/bin:/usr/bin:/bin", "SHELL=/bin/bash",     \
        "USER=user"

/* What a shell in a terminal of GNOME has. */
#define TERMINAL_HAS                                                                               \
    USER_HAS, "COLORTERM=truecolor", "DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1000/bus",      \
        "DISPLAY=:0", "EDITOR=vim", "LANG=en_US.UTF-8", "LS_COLORS=di=01;34",                      \
        "NODE_EXTRA_CA_CERTS=/etc/ssl/ca.pem", "OLDPWD=/", "PWD=/home/user/project", "SHLVL=1",    \
        "SSH_AUTH_SOCK=/run/user/1000/keyring/ssh", "SSL_CERT_FILE=/etc/ssl/ca.pem",               \
        "TERM=xterm-256color", "VTE_VERSION=7402", "XDG_RUNTIME_DIR=/run/user/1000",               \
        "_=/usr/bin/x"

struct host {
    const char *name;
    const char *variables[VARIABLES_MAX];
};

static const struct host hosts[] = {
    {"Claude Code 2.1.197",
     {TERMINAL_HAS, "AI_AGENT=claude-code_2-1-197_cli", "CLAUDECODE=1",
      "CLAUDE_CODE_ENTRYPOINT=cli", "CLAUDE_CODE_SESSION_ID=630f72d1-e18c-4c44-9225-c3a4c981d4dd",
      "CLAUDE_CODE_SSE_PORT=41231", "CLAUDE_PROJECT_DIR=/home/user/project",
      "COREPACK_ENABLE_AUTO_PIN=0", "NoDefaultCurrentDirectoryInExePath=1"}},
    {"Claude Code 2.1.197 in tmux",
     {TERMINAL_HAS, "CLAUDECODE=1", "CLAUDE_CODE_ENTRYPOINT=sdk-cli",
      "CLAUDE_CODE_SESSION_ID=d9428888-122b-11e1-b85c-61cd3cbb3210",
      "TMUX=/tmp/tmux-1000/default,1,0", "TMUX_PANE=%3", "TERM_PROGRAM=tmux",
      "TERM_PROGRAM_VERSION=3.3a"}},
    {"opencode 1.18", {TERMINAL_HAS, "AGENT=1", "OPENCODE=1", "OPENCODE_PID=27865"}},
    {"opencode 1.18, another one", {TERMINAL_HAS, "AGENT=1", "OPENCODE=1", "OPENCODE_PID=27999"}},
    /* It takes away what has CERT or AUTH in its name. */
    {"gemini-cli 0.61",
     {USER_HAS, "COLORTERM=truecolor", "DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1000/bus",
      "DISPLAY=:0", "EDITOR=vim", "GEMINI_CLI=1", "GEMINI_CLI_NO_RELAUNCH=true", "LANG=en_US.UTF-8",
      "PWD=/home/user/project", "TERM=xterm-256color", "XDG_RUNTIME_DIR=/run/user/1000"}},
    {"codex 0.169",
     {"HOME=/home/user", "LANG=en_US.UTF-8", "LOGNAME=user", "NODE_EXTRA_CA_CERTS=/etc/ssl/ca.pem",
      "PATH=/home/user/.codex/tmp/arg0/codex-arg0ab:/usr/lib/node_modules/@openai/codex-linux-x64/"
      "vendor/x86_64-unknown-linux-musl/codex-path:/usr/local/bin:/usr/bin:/bin",
      "SHELL=/bin/bash", "SSL_CERT_FILE=/etc/ssl/ca.pem", "TERM=xterm-256color", "USER=user"}},
    {"VS Code in GNOME",
     {USER_HAS,
      "APPLICATION_INSIGHTS_NO_STATSBEAT=true",
      "CHROME_DESKTOP=code.desktop",
      "DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1000/bus",
      "DESKTOP_SESSION=gnome",
      "DISPLAY=:0",
      "ELECTRON_RUN_AS_NODE=1",
      "GDMSESSION=gnome",
      "GIO_LAUNCHED_DESKTOP_FILE_PID=4711",
      "GNOME_SETUP_DISPLAY=:1",
      "LANG=en_US.UTF-8",
      "ORIGINAL_XDG_CURRENT_DESKTOP=GNOME",
      "QT_IM_MODULE=ibus",
      "SESSION_MANAGER=local/host:@/tmp/.ICE-unix/2311",
      "SSH_AUTH_SOCK=/run/user/1000/keyring/ssh",
      "VSCODE_CWD=/home/user",
      "VSCODE_ESM_ENTRYPOINT=vs/workbench/api/node/extensionHostProcess",
      "VSCODE_IPC_HOOK=/run/user/1000/vscode-1.sock",
      "VSCODE_NLS_CONFIG={}",
      "VSCODE_PID=4711",
      "XDG_CURRENT_DESKTOP=GNOME",
      "XDG_MENU_PREFIX=gnome-",
      "XDG_RUNTIME_DIR=/run/user/1000",
      "XDG_SESSION_CLASS=user",
      "XDG_SESSION_DESKTOP=gnome",
      "XMODIFIERS=@im=ibus"}},
    {"Cursor",
     {USER_HAS, "APPDIR=/tmp/.mount_CursorX", "APPIMAGE=/home/user/Cursor.AppImage", "ARGV0=cursor",
      "CHROME_DESKTOP=cursor.desktop", "CURSOR_AGENT=1", "CURSOR_TRACE_ID=0a1b", "DISPLAY=:0",
      "ELECTRON_RUN_AS_NODE=1", "LANG=en_US.UTF-8", "OWD=/home/user",
      "SSH_AUTH_SOCK=/run/user/1000/keyring/ssh", "VSCODE_PID=4712",
      "XDG_RUNTIME_DIR=/run/user/1000"}},
    {"Zed",
     {TERMINAL_HAS, "ZED_ENVIRONMENT=cli", "ZED_TERM=true", "TERM_PROGRAM=zed",
      "ALACRITTY_WINDOW_ID=1"}},
    /* Hosts with the default environment of MCP's libraries pass no more. */
    {"Claude Desktop", {USER_HAS, "TERM=xterm-256color"}},
    {"a shell by ssh",
     {USER_HAS, "LANG=en_US.UTF-8", "MAIL=/var/mail/user", "MOTD_SHOWN=pam", "SHLVL=1",
      "SSH_CLIENT=10.0.0.2 50022 22", "SSH_CONNECTION=10.0.0.2 50022 10.0.0.1 22",
      "SSH_TTY=/dev/pts/3", "TERM=xterm", "XDG_RUNTIME_DIR=/run/user/1000", "XDG_SESSION_ID=7",
      "XDG_SESSION_TYPE=tty"}},
    {"macOS, Terminal",
     {USER_HAS, "COMMAND_MODE=unix2003", "LANG=en_US.UTF-8", "SHLVL=1",
      "SSH_AUTH_SOCK=/run/user/1000/keyring/ssh", "TERM=xterm-256color",
      "TERM_PROGRAM=Apple_Terminal", "TERM_SESSION_ID=B9A1", "XPC_FLAGS=0x0", "XPC_SERVICE_NAME=0",
      "__CFBundleIdentifier=com.apple.Terminal", "__CF_USER_TEXT_ENCODING=0x1F5:0x0:0x0"}},
    {"npx in a terminal",
     {TERMINAL_HAS, "INIT_CWD=/home/user/project", "NODE=/usr/bin/node", "npm_command=exec",
      "npm_config_user_agent=npm/10 node/v22", "npm_execpath=/usr/lib/npm-cli.js",
      "npm_lifecycle_event=npx", "npm_package_json=/home/user/project/package.json"}},
};

static char *command[] = {(char *)"server", NULL};

static char *identity_of(const char *const variables[], const char *more)
{
    struct identity_parts parts = {.words = command, .directory = "/home/user/project"};
    char *inherited[VARIABLES_MAX + 1], *identity, **selected;
    size_t count = 0;

    for (; variables[count] != NULL; count++)
        inherited[count] = (char *)(uintptr_t)test_format("%s", variables[count]);
    if (more != NULL)
        inherited[count++] = (char *)(uintptr_t)more;
    inherited[count] = NULL;
    variables_clean_path(inherited);
    selected = variables_select(inherited, NULL);
    ck_assert_ptr_nonnull(selected);
    parts.variables = selected;
    identity = identity_write(&parts);
    ck_assert_ptr_nonnull(identity);
    free(selected);
    return identity;
}

/* The first host is one that leaves nothing out: all others share its server. */
TEST_ROWS(host_shares_in_one_directory, COUNT(hosts))
{
    char *own = identity_of(hosts[0].variables, NULL);
    char *wanted = identity_of(hosts[row].variables, NULL);
    char text[512], names[2][IDENTITY_NAME_MAX];

    identity_difference(text, sizeof text, slice_of_text(own), slice_of_text(wanted));
    ck_assert_msg(text[0] == '\0', "%s: %s", hosts[row].name, text);
    ck_assert(identity_fits(slice_of_text(wanted), slice_of_text(own)));
    identity_name(names[0], own);
    identity_name(names[1], wanted);
    ck_assert_str_eq(names[0], names[1]);
    free(own);
    free(wanted);
}

static const char *const settings[] = {
    "GITHUB_TOKEN=1",
    "API_KEY=1",
    "DATABASE_URL=1",
    "NOTES_DIR=/n",
    "DEBUG=1",
    "HTTPS_PROXY=p",
    "CLAUDE_CODE_OAUTH_TOKEN=1",
    "OPENCODE_API_KEY=1",
    "GEMINI_API_KEY=1",
    "CODEX_HOME=/c",
    "VSCODE_SECRET=1",
    "NODE_OPTIONS=--x",
    "XDG_CONFIG_HOME=c",
    "AGENT_URL=x",
    "CURSOR_API_KEY=1",
    "LD_PRELOAD=x",
    "WARP_PASSWORD=1",
    "npm_config_registry=r",
};

/* Whatever the host, and also where one of the two is without it. */
TEST_ROWS(setting_or_secret_is_not_shared, COUNT(settings))
{
    for (size_t i = 0; i < COUNT(hosts); i++) {
        const char *other = test_format("%s2", settings[row]);
        char *with = identity_of(hosts[i].variables, settings[row]);
        char *without = identity_of(hosts[i].variables, NULL);
        char *changed = identity_of(hosts[i].variables, other);

        ck_assert(!identity_fits(slice_of_text(without), slice_of_text(with)));
        ck_assert(!identity_fits(slice_of_text(with), slice_of_text(without)));
        ck_assert(!identity_fits(slice_of_text(changed), slice_of_text(with)));
        free(with);
        free(without);
        free(changed);
    }
}

/* Another agent, display or certificate is another server. */
TEST(variable_of_the_machine_with_another_value_counts)
{
    static const char *const one[] = {USER_HAS, "SSH_AUTH_SOCK=/a", "SSL_CERT_FILE=/a", NULL};
    static const char *const other[] = {USER_HAS, "SSH_AUTH_SOCK=/b", "SSL_CERT_FILE=/b", NULL};
    char *own = identity_of(one, NULL), *wanted = identity_of(other, NULL), text[128];

    identity_difference(text, sizeof text, slice_of_text(own), slice_of_text(wanted));
    ck_assert_str_eq(text, "SSH_AUTH_SOCK, SSL_CERT_FILE");
    ck_assert(!identity_fits(slice_of_text(wanted), slice_of_text(own)));
    free(own);
    free(wanted);
}

static const struct {
    const char *path, *cleaned;
} paths[] = {
    {"/usr/bin:/bin", "/usr/bin:/bin"},
    {"/h/.codex/tmp/arg0/x:/bin", "/bin"},
    {"/bin:/n/codex-path", "/bin"},
    {"/a:/x/debugCommand:/b:/y/bin/remote-cli:/c", "/a:/b:/c"},
    {":/bin", ":/bin"},
    {"/x/codex-path", ""},
    {"", ""},
    {"/bin::", "/bin::"},
};

TEST_ROWS(path_is_without_directories_of_hosts, COUNT(paths))
{
    char path[128], other[] = "XPATH=/n/codex-path", *variables[] = {other, path, NULL};

    snprintf(path, sizeof path, "PATH=%s", paths[row].path);
    variables_clean_path(variables);
    ck_assert_str_eq(path + 5, paths[row].cleaned);
    ck_assert_str_eq(other, "XPATH=/n/codex-path");
}
