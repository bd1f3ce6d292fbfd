#include "build_config.h"

#include "cli/import_file.h"

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "base/terminal.h"
#include "cli/client_file.h"

static void report(void *user_data, bool is_error, const char *text)
{
    (void)user_data;
    (void)is_error;
    terminal_line(stderr, "stdio_bus: %s", text);
}

static int read_servers(struct import *import, const struct json_value *root, bool is_toml,
                        struct diagnostics *diagnostics)
{
    int code = import_read(import, root, is_toml);

    if (code == STDIO_BUS_EINVAL)
        diagnostics_file(diagnostics, is_toml ? "there is no table [mcp_servers.NAME] in it"
                                              : "there is no object \"mcpServers\", \"servers\", "
                                                "\"mcp\" or \"context_servers\" in it");
    else if (code != STDIO_BUS_OK)
        diagnostics_file(diagnostics, "out of memory");
    else if (import->servers == 0)
        diagnostics_file(diagnostics, "there is no server to share");
    return diagnostics->errors == 0 ? STDIO_BUS_OK : STDIO_BUS_EINVAL;
}

int import_file(struct import *import, const char *path)
{
    struct diagnostics diagnostics = {.name = path, .report = report};
    struct document_error error;
    struct client_file file;
    int code = client_file_read(&file, path, &diagnostics, &error);

    *import = (struct import){.config = NULL};
    if (code == STDIO_BUS_OK)
        code = read_servers(import, file.root, file.is_toml, &diagnostics);
    else if (code == STDIO_BUS_EINVAL)
        diagnostics_syntax(&diagnostics, &error);
    client_file_free(&file);
    return code == STDIO_BUS_OK ? STDIO_BUS_OK : STDIO_BUS_EINVAL;
}
