#include "build_config.h"

#include "cli/import_file.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/terminal.h"
#include "cli/toml.h"
#include "config/file.h"
#include "json/comments.h"

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

/* The text could not be read. */
static int no_document(struct diagnostics *diagnostics, int code,
                       const struct document_error *error)
{
    if (code == STDIO_BUS_EINVAL)
        diagnostics_syntax(diagnostics, error);
    else
        diagnostics_file(diagnostics, "out of memory");
    return STDIO_BUS_EINVAL;
}

static int read_json(struct import *import, char *text, size_t len, struct diagnostics *diagnostics)
{
    struct document document;
    struct document_error error;
    int code;

    comments_blank(text, len);
    code = document_read(&document, slice_of(text, len), &error);
    if (code != STDIO_BUS_OK)
        return no_document(diagnostics, code, &error);
    code = read_servers(import, document.root, false, diagnostics);
    document_free(&document);
    return code;
}

static int read_toml(struct import *import, char *text, size_t len, struct diagnostics *diagnostics)
{
    struct toml toml;
    struct document_error error;
    int code = toml_read(&toml, slice_of(text, len), &error);

    if (code == STDIO_BUS_OK)
        code = read_servers(import, toml.root, true, diagnostics);
    else
        code = no_document(diagnostics, code, &error);
    toml_free(&toml);
    return code;
}

static bool ends_in_toml(const char *path)
{
    static const char end[] = ".toml";
    size_t len = strlen(path);

    return len >= sizeof end - 1 && strcmp(path + len - (sizeof end - 1), end) == 0;
}

int import_file(struct import *import, const char *path)
{
    struct diagnostics diagnostics = {.name = path, .report = report};
    char *text = NULL;
    size_t len = 0;
    int code = STDIO_BUS_EINVAL;

    *import = (struct import){.config = NULL};
    if (file_read(&text, &len, path, &diagnostics))
        code = (ends_in_toml(path) ? read_toml : read_json)(import, text, len, &diagnostics);
    free(text);
    return code;
}
