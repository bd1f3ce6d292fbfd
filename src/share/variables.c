#include "build_config.h"

#include "share/variables.h"

#include <stdlib.h>
#include <string.h>

/* A pattern is a name, or with a '*' at its end the beginning of names; such a pattern has no name
 * that looks like that of a secret (looks_secret). */

/* What a host, a terminal, a shell, a session or a desktop says about itself. The source of each
 * row is the program that sets the variable. */
/* clang-format off */
static const char *const of_host[] = {
    /* Claude Code */
    "AI_AGENT", "CLAUDECODE", "CLAUDE_AGENT_SDK_VERSION", "CLAUDE_CODE_*", "CLAUDE_PROJECT_DIR",
    "COREPACK_ENABLE_AUTO_PIN", "NoDefaultCurrentDirectoryInExePath",
    /* gemini-cli, and its companions in editors */
    "GEMINI_CLI", "GEMINI_CLI_*", "GEMINI_CLI_IDE_AUTH_TOKEN",
    /* opencode */
    "AGENT", "OPENCODE", "OPENCODE_CALLER", "OPENCODE_CLIENT", "OPENCODE_PID",
    "OPENCODE_PROCESS_ROLE", "OPENCODE_RUN_ID",
    /* codex */
    "CODEX_CI", "CODEX_INTERNAL_ORIGINATOR_OVERRIDE", "CODEX_MANAGED_*", "CODEX_SANDBOX",
    "CODEX_SANDBOX_*", "CODEX_THREAD_ID",
    /* VS Code, its terminal and its forks; Electron, which all of them are */
    "APPLICATION_INSIGHTS_NO_*", "CHROME_CRASHPAD_PIPE_NAME", "CHROME_DESKTOP",
    "ELECTRON_NO_ATTACH_CONSOLE", "ELECTRON_RUN_AS_NODE", "GIT_ASKPASS", "GSETTINGS_SCHEMA_DIR_*",
    "ORIGINAL_XDG_CURRENT_DESKTOP", "USER_ZDOTDIR", "VSCODE_*", "ZDOTDIR",
    /* Cursor, Windsurf, Zed, JetBrains */
    "CURSOR_AGENT", "CURSOR_CLI", "CURSOR_EXTENSION_HOST_ROLE", "CURSOR_LAYOUT",
    "CURSOR_SPAWNED_BY_*", "CURSOR_TRACE_ID", "CURSOR_WORKSPACE_LABEL", "IDEA_INITIAL_DIRECTORY",
    "INTELLIJ_*", "TERMINAL_EMULATOR", "WINDSURF_*", "ZED_*", "__INTELLIJ_*",
    /* Emacs, Vim */
    "EMACS", "INSIDE_EMACS", "MYVIMRC", "NVIM", "NVIM_*", "VIM", "VIMRUNTIME",
    /* node, npm, npx, pnpm and uv, when they run a host */
    "COREPACK_ROOT", "INIT_CWD", "NODE", "NODE_CHANNEL_FD", "NODE_CHANNEL_SERIALIZATION_MODE",
    "NODE_UNIQUE_ID", "PNPM_SCRIPT_SRC_DIR", "UV", "UV_RUN_RECURSION_DEPTH", "npm_command",
    "npm_config_global_prefix", "npm_config_init_module", "npm_config_local_prefix",
    "npm_config_node_gyp", "npm_config_noproxy", "npm_config_npm_version",
    "npm_config_user_agent", "npm_execpath", "npm_lifecycle_*", "npm_node_execpath",
    "npm_package_*",
    /* terminals */
    "ALACRITTY_*", "COLORFGBG", "COLORTERM", "COLUMNS", "GHOSTTY_*", "GNOME_TERMINAL_*",
    "ITERM_*", "KITTY_*", "KITTY_PUBLIC_KEY", "KONSOLE_*", "LC_TERMINAL", "LC_TERMINAL_VERSION",
    "LINES", "PTYXIS_*", "SHELL_SESSION_*", "TERM", "TERMINATOR_*", "TERM_FEATURES",
    "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "TERM_SESSION_ID", "TILIX_ID", "VTE_VERSION",
    "WARP_*", "WEZTERM_*", "WINDOWID",
    /* tmux, screen, zellij, byobu */
    "BYOBU_*", "STY", "TMUX", "TMUX_*", "WINDOW", "ZELLIJ", "ZELLIJ_*",
    /* shells, their prompts and helpers */
    "ATUIN_*", "DIRENV_*", "FNM_MULTISHELL_PATH", "HISTCONTROL", "HISTFILE", "HISTFILESIZE",
    "HISTIGNORE", "HISTSIZE", "HISTTIMEFORMAT", "MAIL", "MCFLY_SESSION_ID", "MISE_SHELL",
    "MOTD_SHOWN", "OLDPWD", "POSH_*", "POWERLINE_*", "PROMPT", "PROMPT_COMMAND", "PS1", "PS2",
    "PS3", "PS4", "PWD", "PYENV_SHELL", "RPROMPT", "SAVEHIST", "SHLVL", "STARSHIP_*", "_",
    "_P9K_*", "__MISE_*",
    /* colours, pagers and editors: for a person at a terminal */
    "CLICOLOR", "CLICOLOR_FORCE", "EDITOR", "FORCE_COLOR", "GCC_COLORS", "GIT_EDITOR",
    "GIT_PAGER", "GREP_COLOR", "GREP_COLORS", "INFOPATH", "LESS", "LESSCLOSE", "LESSOPEN",
    "LSCOLORS", "LS_COLORS", "MANPAGER", "MANPATH", "NO_COLOR", "PAGER", "VISUAL",
    /* ssh, sudo, gpg */
    "GPG_TTY", "SSH_AGENT_PID", "SSH_CLIENT", "SSH_CONNECTION", "SSH_ORIGINAL_COMMAND", "SSH_TTY",
    "SUDO_COMMAND", "SUDO_GID", "SUDO_HOME", "SUDO_UID", "SUDO_USER",
    /* systemd, logind */
    "INVOCATION_ID", "JOURNAL_STREAM", "LISTEN_*", "MANAGERPID", "MANAGERPIDFDID",
    "MEMORY_PRESSURE_*", "NOTIFY_SOCKET", "SYSTEMD_EXEC_PID", "WATCHDOG_*", "XDG_SEAT",
    "XDG_SEAT_PATH", "XDG_SESSION_*", "XDG_VTNR",
    /* GNOME, KDE and other desktops */
    "BAMF_DESKTOP_FILE_HINT", "CLUTTER_*", "DESKTOP_*", "GDMSESSION", "GDM_LANG",
    "GIO_LAUNCHED_*", "GJS_*", "GNOME_DESKTOP_SESSION_ID", "GNOME_SETUP_DISPLAY",
    "GNOME_SHELL_SESSION_MODE", "GTK2_RC_FILES", "GTK_IM_MODULE", "GTK_MODULES", "GTK_RC_FILES",
    "HYPRLAND_*", "I3SOCK", "IM_CONFIG_*", "KDE_*", "KONSOLE_DBUS_*", "NIRI_SOCKET", "NO_AT_BRIDGE",
    "PAM_KWALLET5_LOGIN", "QT_ACCESSIBILITY", "QT_AUTO_SCREEN_SCALE_FACTOR", "QT_IM_MODULE",
    "QT_IM_MODULES", "QT_WAYLAND_*", "SESSION_MANAGER", "SWAYSOCK", "UBUNTU_MENUPROXY",
    "WINDOWPATH", "XCURSOR_*", "XDG_ACTIVATION_TOKEN", "XDG_CURRENT_DESKTOP", "XDG_GREETER_*",
    "XDG_MENU_PREFIX", "XMODIFIERS",
    /* AppImage, flatpak and snap, when the host is such a package */
    "APPDIR", "APPIMAGE", "ARGV0", "FLATPAK_ID", "OWD", "SNAP", "SNAP_*",
    /* macOS */
    "Apple_PubSub_Socket_Render", "COMMAND_MODE", "LaunchInstanceID", "MallocNanoZone",
    "MallocSpaceEfficient", "OSLogRateLimit", "SECURITYSESSIONID", "XPC_*",
    "__CFBundleIdentifier", "__CF_USER_TEXT_ENCODING",
    /* Windows Subsystem for Linux */
    "WSL2_GUI_APPS_ENABLED", "WSLENV", "WSL_INTEROP",
    /* stdio_bus */
    "STDIO_BUS_*",
};

/* What a server may use where it is, and that is the same for one user and machine; hosts that pass
 * few variables leave it out. The source of each row is the reader. */
static const char *const of_machine[] = {
    /* libc */
    "LANG", "LANGUAGE", "LC_*", "LOGNAME", "SHELL", "TMPDIR", "TZ", "USER", "USERNAME",
    /* X11, Wayland, D-Bus: windows and notifications */
    "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_CONFIG_DIRS",
    "XDG_DATA_DIRS", "XDG_RUNTIME_DIR",
    /* ssh, also for git: the agent of this user */
    "SSH_AUTH_SOCK",
    /* certificates: OpenSSL, node, curl, git, Python, AWS, gRPC, Google Cloud, Nix, Deno */
    "AWS_CA_BUNDLE", "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", "CURL_CA_BUNDLE", "DENO_CERT",
    "GIT_SSL_CAINFO", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "HTTPLIB2_CA_CERTS",
    "NIX_SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    /* where tools were installed: Bun, Cargo, Deno, Go, Homebrew, Java, nvm, pnpm, pyenv, Volta */
    "BUN_INSTALL", "CARGO_HOME", "DENO_INSTALL", "GOBIN", "GOPATH", "GOROOT", "HOMEBREW_CELLAR",
    "HOMEBREW_PREFIX", "HOMEBREW_REPOSITORY", "JAVA_HOME", "NVM_BIN", "NVM_CD_FLAGS", "NVM_DIR",
    "NVM_INC", "PNPM_HOME", "PYENV_ROOT", "RUSTUP_HOME", "SDKMAN_DIR", "VOLTA_HOME",
};
/* clang-format on */

/* Passed beside the names of --env. */
static const char *const basic[] = {
    "HOME",  "LANG",   "LANGUAGE", "LC_*", "LD_LIBRARY_PATH", "LOGNAME", "PATH",
    "SHELL", "TMPDIR", "TZ",       "USER", "XDG_*",
};

/* In directories of PATH that hosts put before it for programs of their own. */
static const char *const path_marks[] = {
    "/.codex/tmp/",     /* codex */
    "/codex-path",      /* codex from npm */
    "/copilotCli",      /* VS Code */
    "/debugCommand",    /* VS Code */
    "/noConfigScripts", /* VS Code's debuggers */
    "/bin/remote-cli",  /* VS Code's and Cursor's servers */
};

/* Parts of the names of secrets. A host's own secret may be the server's too. */
static const char *const secrets[] = {"CREDENTIAL", "KEY", "PASSWD", "PASSWORD", "SECRET", "TOKEN"};

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

static bool has_part(const char *name, size_t len, const char *part)
{
    size_t part_len = strlen(part), i;

    for (i = 0; i + part_len <= len; i++) {
        if (memcmp(name + i, part, part_len) == 0)
            return true;
    }
    return false;
}

static bool looks_secret(const char *name, size_t len)
{
    size_t i;

    for (i = 0; i < COUNT_OF(secrets); i++) {
        if (has_part(name, len, secrets[i]))
            return true;
    }
    return false;
}

static bool fits(const char *entry, size_t len, const char *pattern)
{
    size_t wanted = strlen(pattern);

    if (wanted > 0 && pattern[wanted - 1] == '*')
        return len >= wanted - 1 && memcmp(entry, pattern, wanted - 1) == 0 &&
               !looks_secret(entry, len);
    return len == wanted && memcmp(entry, pattern, wanted) == 0;
}

static bool is_in(const char *entry, const char *const *patterns, size_t count)
{
    size_t len = strcspn(entry, "="), i;

    for (i = 0; i < count; i++) {
        if (fits(entry, len, patterns[i]))
            return true;
    }
    return false;
}

static bool is_of_host_path(const char *directory, size_t len)
{
    size_t i;

    for (i = 0; i < COUNT_OF(path_marks); i++) {
        if (has_part(directory, len, path_marks[i]))
            return true;
    }
    return false;
}

static bool is_named(const char *entry, const char *names)
{
    size_t len = strcspn(entry, "="), name_len;

    for (; *names != '\0'; names += name_len + (names[name_len] == ',')) {
        name_len = strcspn(names, ",");
        if (len == name_len && memcmp(entry, names, len) == 0)
            return true;
    }
    return false;
}

static enum variable_kind kind_beside_names(const char *entry, const char *names)
{
    if (is_named(entry, names) || strncmp(entry, "HOME=", 5) == 0)
        return VARIABLE_COUNTS;
    if (is_in(entry, basic, COUNT_OF(basic)) && !is_in(entry, of_host, COUNT_OF(of_host)))
        return VARIABLE_PASSED;
    return VARIABLE_OF_HOST;
}

enum variable_kind variable_kind_of(const char *entry, const char *names)
{
    if (names != NULL)
        return kind_beside_names(entry, names);
    if (is_in(entry, of_host, COUNT_OF(of_host)))
        return VARIABLE_OF_HOST;
    if (is_in(entry, of_machine, COUNT_OF(of_machine)))
        return VARIABLE_OF_MACHINE;
    return VARIABLE_COUNTS;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char **variables_select(char *const *inherited, const char *names)
{
    size_t count = 0, kept = 0, i;
    char **selected;

    while (inherited[count] != NULL)
        count++;
    selected = malloc((count + 1) * sizeof *selected);
    if (selected == NULL)
        return NULL;
    for (i = 0; i < count; i++) {
        if (strchr(inherited[i], '=') != NULL &&
            variable_kind_of(inherited[i], names) != VARIABLE_OF_HOST)
            selected[kept++] = inherited[i];
    }
    selected[kept] = NULL;
    qsort(selected, kept, sizeof *selected, compare);
    return selected;
}

static void clean(char *path)
{
    const char *from = path;
    char *to = path;
    bool first = true;
    size_t len;

    for (;; from += len + 1) {
        len = strcspn(from, ":");
        if (!is_of_host_path(from, len)) {
            if (!first)
                *to++ = ':';
            memmove(to, from, len);
            to += len;
            first = false;
        }
        if (from[len] == '\0')
            break;
    }
    *to = '\0';
}

void variables_clean_path(char *const *variables)
{
    for (; *variables != NULL; variables++) {
        if (strncmp(*variables, "PATH=", 5) == 0)
            clean(*variables + 5);
    }
}
