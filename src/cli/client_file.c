#include "build_config.h"

#include "cli/client_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "config/file.h"
#include "json/comments.h"

static bool ends_in_toml(const char *path)
{
    static const char end[] = ".toml";
    size_t len = strlen(path);

    return len >= sizeof end - 1 && strcmp(path + len - (sizeof end - 1), end) == 0;
}

static int parse(struct client_file *file, size_t len, struct document_error *error)
{
    int code;

    if (file->is_toml) {
        code = toml_read(&file->toml, slice_of(file->text, len), error);
        file->root = file->toml.root;
        return code;
    }
    comments_blank(file->text, len);
    code = document_read(&file->document, slice_of(file->text, len), error);
    file->root = file->document.root;
    return code;
}

int client_file_read(struct client_file *file, const char *path, struct diagnostics *diagnostics,
                     struct document_error *error)
{
    size_t len = 0;
    int code;

    *file = (struct client_file){.is_toml = ends_in_toml(path)};
    if (!file_read(&file->text, &len, path, diagnostics))
        return STDIO_BUS_ERR;
    code = parse(file, len, error);
    if (code != STDIO_BUS_OK && code != STDIO_BUS_EINVAL)
        diagnostics_file(diagnostics, "out of memory");
    return code;
}

void client_file_free(struct client_file *file)
{
    if (file->is_toml)
        toml_free(&file->toml);
    else
        document_free(&file->document);
    free(file->text);
    *file = (struct client_file){.root = NULL};
}
