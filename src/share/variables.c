#include "build_config.h"

#include "share/variables.h"

#include <stdlib.h>
#include <string.h>

/* A name, or with a '*' at its end the beginning of names. */

/* Variables that say in which window, terminal, shell, session or editor a program was started. */
static const char *const of_session[] = {
    "ALACRITTY_*",
    "BAMF_DESKTOP_FILE_HINT",
    "CHROME_DESKTOP",
    "CLAUDECODE",
    "CLAUDE_CODE_*",
    "COLORFGBG",
    "COLORTERM",
    "COLUMNS",
    "CURSOR_TRACE_ID",
    "DESKTOP_STARTUP_ID",
    "EMACS",
    "GHOSTTY_*",
    "GIO_LAUNCHED_*",
    "GNOME_TERMINAL_*",
    "GPG_TTY",
    "INSIDE_EMACS",
    "INVOCATION_ID",
    "ITERM_*",
    "JOURNAL_STREAM",
    "KITTY_*",
    "KONSOLE_*",
    "LC_TERMINAL",
    "LC_TERMINAL_VERSION",
    "LINES",
    "LISTEN_*",
    "LS_COLORS",
    "MANAGERPID",
    "MEMORY_PRESSURE_*",
    "MallocNanoZone",
    "NOTIFY_SOCKET",
    "NVIM",
    "NVIM_LISTEN_ADDRESS",
    "OLDPWD",
    "PS1",
    "PS2",
    "PWD",
    "SHELL_SESSION_ID",
    "SHLVL",
    "SSH_CLIENT",
    "SSH_CONNECTION",
    "SSH_TTY",
    "STARSHIP_*",
    "STDIO_BUS_*",
    "STY",
    "SYSTEMD_EXEC_PID",
    "TERM",
    "TERMINAL_EMULATOR",
    "TERMINATOR_*",
    "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION",
    "TERM_SESSION_ID",
    "TILIX_ID",
    "TMUX",
    "TMUX_*",
    "VIM",
    "VIMRUNTIME",
    "VSCODE_*",
    "VTE_VERSION",
    "WATCHDOG_*",
    "WEZTERM_*",
    "WINDOW",
    "WINDOWID",
    "XDG_ACTIVATION_TOKEN",
    "XDG_SEAT",
    "XDG_SEAT_PATH",
    "XDG_SESSION_*",
    "XDG_VTNR",
    "XPC_*",
    "ZED_TERM",
    "_",
    "__CFBundleIdentifier",
    "__CF_USER_TEXT_ENCODING",
};

/* Passed beside the names of --env. */
static const char *const basic[] = {
    "HOME",  "LANG",   "LANGUAGE", "LC_*", "LD_LIBRARY_PATH", "LOGNAME", "PATH",
    "SHELL", "TMPDIR", "TZ",       "USER", "XDG_*",
};

static bool fits(const char *entry, size_t len, const char *pattern)
{
    size_t wanted = strlen(pattern);

    if (wanted > 0 && pattern[wanted - 1] == '*')
        return len >= wanted - 1 && memcmp(entry, pattern, wanted - 1) == 0;
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

static bool is_of_session(const char *entry)
{
    return is_in(entry, of_session, sizeof of_session / sizeof of_session[0]);
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

static bool is_passed(const char *entry, const char *names)
{
    if (strchr(entry, '=') == NULL)
        return false;
    if (names == NULL)
        return !is_of_session(entry);
    return is_named(entry, names) ||
           (is_in(entry, basic, sizeof basic / sizeof basic[0]) && !is_of_session(entry));
}

bool variables_count(const char *entry, const char *names)
{
    return names == NULL || is_named(entry, names) || strncmp(entry, "HOME=", 5) == 0;
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
        if (is_passed(inherited[i], names))
            selected[kept++] = inherited[i];
    }
    selected[kept] = NULL;
    qsort(selected, kept, sizeof *selected, compare);
    return selected;
}
