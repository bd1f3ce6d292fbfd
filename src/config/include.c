#include "build_config.h"

#include "config/include.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "config/keys.h"
#include "config/sources.h"

#define PATH_SIZE 4096

struct included_file {
    struct included_file *next;
    char *text;
    size_t len;
    struct document document;
    char path[];
};

/* --- the key --- */

void include_check(struct diagnostics *diagnostics, const struct json_value *include)
{
    if (include->type == JSON_STRING) {
        key_check_filled(diagnostics, include);
        return;
    }
    if (!diagnostics_check_type(diagnostics, include, JSON_ARRAY,
                                "a string or an array of strings"))
        return;
    for (const struct json_value *path = include->first; path != NULL; path = path->next)
        key_check_filled(diagnostics, path);
}

static bool is_path(const struct json_value *value)
{
    return value->type == JSON_STRING && value->text.len > 0 &&
           memchr(value->text.data, '\0', value->text.len) == NULL;
}

/* --- one file --- */

static struct json_value *member(struct json_value *object, const char *key)
{
    struct json_value *value = object->first;

    while (value != NULL && !slice_is(value->key, key))
        value = value->next;
    return value;
}

/* The pools of the document that includes, made if it has none. NULL: out of memory. */
static struct json_value *pools_of(struct json_value *root)
{
    struct json_value *pools = member(root, "pools"), **end = &root->first;

    if (pools != NULL)
        return pools;
    pools = calloc(1, sizeof *pools);
    if (pools == NULL)
        return NULL;
    *pools = (struct json_value){.type = JSON_ARRAY,
                                 .at = root->at,
                                 .key_at = root->at,
                                 .parent = root,
                                 .key = slice_of("pools", sizeof "pools" - 1),
                                 .index = root->count++};
    while (*end != NULL)
        end = &(*end)->next;
    *end = pools;
    return pools;
}

/* Moves the pools. Their parent stays the same: it has their place in their own file. */
static void append_pools(struct json_value *to, struct json_value *pools)
{
    struct json_value **end = &to->first;

    while (*end != NULL)
        end = &(*end)->next;
    *end = pools->first;
    to->count += pools->count;
    pools->first = NULL;
}

static void use_file(struct json_value *root, struct diagnostics *diagnostics,
                     struct json_value *file)
{
    struct json_value *pools = NULL, *value, *to;

    if (!diagnostics_check_type(diagnostics, file, JSON_OBJECT, "an object"))
        return;
    for (value = file->first; value != NULL; value = value->next) {
        if (slice_equal(value->key, slice_of("pools", sizeof "pools" - 1)))
            pools = value;
        else if (!diagnostics_is_comment(value))
            diagnostics_value(diagnostics, value, "an included file has \"pools\" alone");
    }
    if (pools == NULL || !diagnostics_check_type(diagnostics, pools, JSON_ARRAY, "an array"))
        return;
    to = pools_of(root);
    if (to == NULL)
        diagnostics_file(diagnostics, "out of memory");
    else if (to->type == JSON_ARRAY)
        append_pools(to, pools);
}

/* Takes the file into the list. NULL: out of memory. */
static struct included_file *add_file(struct includes *includes, const char *path)
{
    size_t size = strlen(path) + 1;
    struct included_file *file = calloc(1, sizeof *file + size);

    if (file == NULL)
        return NULL;
    memcpy(file->path, path, size);
    if (includes->last != NULL)
        includes->last->next = file;
    else
        includes->first = file;
    includes->last = file;
    return file;
}

static void read_file(struct includes *includes, struct json_value *root,
                      struct diagnostics *diagnostics, const char *path)
{
    struct included_file *file = add_file(includes, path);
    struct diagnostics own = *diagnostics;
    struct document_error error;
    int status = STDIO_BUS_ERR;

    if (file == NULL) {
        diagnostics_file(diagnostics, "out of memory");
        return;
    }
    own.name = file->path;
    if (file_read(&file->text, &file->len, path, &own)) {
        status = document_read(&file->document, slice_of(file->text, file->len), &error);
        if (status == STDIO_BUS_EINVAL)
            diagnostics_syntax(&own, &error);
        else if (status != STDIO_BUS_OK)
            diagnostics_file(&own, "out of memory");
    }
    diagnostics->errors = own.errors;
    if (status != STDIO_BUS_OK)
        return;
    file->document.root->key = slice_of(file->path, strlen(file->path));
    use_file(root, diagnostics, file->document.root);
}

/* --- the files of a pattern --- */

struct names {
    char **at;
    size_t count, room;
};

static bool add_name(struct names *names, const char *name)
{
    size_t size = strlen(name) + 1;
    char **moved, *copy = malloc(size);

    if (copy != NULL && names->count == names->room) {
        moved = realloc(names->at, (names->room * 2 + 8) * sizeof *moved);
        if (moved == NULL) {
            free(copy);
            return false;
        }
        names->at = moved;
        names->room = names->room * 2 + 8;
    }
    if (copy == NULL)
        return false;
    memcpy(copy, name, size);
    names->at[names->count++] = copy;
    return true;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Collects the names of files that were read from the directory. */
static bool list_sources(struct names *names, const struct sources *sources, const char *directory,
                         const char *pattern)
{
    size_t len = strlen(directory);
    const struct source *source;

    for (source = sources->first; source != NULL; source = source->next) {
        if (strncmp(source->path, directory, len) == 0 && strchr(source->path + len, '/') == NULL &&
            fnmatch(pattern, source->path + len, FNM_PERIOD) == 0 &&
            !add_name(names, source->path + len))
            return false;
    }
    return true;
}

/* Collects the names in the directory that match. False with errno set. */
static bool list_files(struct names *names, const char *directory, const char *pattern)
{
    DIR *dir = opendir(directory[0] != '\0' ? directory : ".");
    struct dirent *entry;
    bool added = true;

    if (dir == NULL)
        return false;
    errno = 0;
    while (added && (entry = readdir(dir)) != NULL) {
        if (fnmatch(pattern, entry->d_name, FNM_PERIOD) == 0)
            added = add_name(names, entry->d_name);
        errno = added ? 0 : ENOMEM;
    }
    added = added && errno == 0;
    closedir(dir);
    return added;
}

/* In the order of their bytes. `directory` ends with a slash or is "". False with errno set. */
static bool list_names(struct names *names, const struct sources *sources, const char *directory,
                       const char *pattern)
{
    bool listed = sources_replace_files(sources) ? list_sources(names, sources, directory, pattern)
                                                 : list_files(names, directory, pattern);

    if (names->count > 1)
        qsort(names->at, names->count, sizeof *names->at, compare_names);
    return listed;
}

/* Writes a path, relative to the directory of the file that includes. False: it is too long. */
static bool write_path(char to[PATH_SIZE], const char *file, struct slice path)
{
    const char *slash = strrchr(file, '/');
    size_t len = path.data[0] == '/' || slash == NULL ? 0 : (size_t)(slash - file) + 1;

    return snprintf(to, PATH_SIZE, "%.*s%.*s", (int)len, file, (int)path.len, path.data) <
           PATH_SIZE;
}

static void read_matching(struct includes *includes, struct json_value *root,
                          struct diagnostics *diagnostics, const struct json_value *value,
                          char path[PATH_SIZE])
{
    char *slash = strrchr(path, '/'), *pattern = slash != NULL ? slash + 1 : path;
    char directory[PATH_SIZE], file[2 * PATH_SIZE];
    struct names names = {.at = NULL};

    (void)snprintf(directory, sizeof directory, "%.*s", (int)(pattern - path), path);
    if (!list_names(&names, diagnostics->sources, directory, pattern))
        diagnostics_value(diagnostics, value, "cannot read the directory %s: %s",
                          slash != NULL ? directory : ".", strerror(errno));
    for (size_t i = 0; i < names.count; i++) {
        (void)snprintf(file, sizeof file, "%s%s", directory, names.at[i]);
        read_file(includes, root, diagnostics, file);
        free(names.at[i]);
    }
    free(names.at);
}

static void read_path(struct includes *includes, struct json_value *root,
                      struct diagnostics *diagnostics, const struct json_value *value)
{
    char path[PATH_SIZE];

    if (!is_path(value))
        return; /* to be reported by include_check */
    if (!diagnostics->is_file && value->text.data[0] != '/')
        diagnostics_value(diagnostics, value, "a relative path needs --config");
    else if (!write_path(path, diagnostics->name, value->text))
        diagnostics_value(diagnostics, value, "the path is too long");
    else if (strpbrk(value->text.data, "*?[") != NULL)
        read_matching(includes, root, diagnostics, value, path);
    else
        read_file(includes, root, diagnostics, path);
}

/* --- all files --- */

void includes_read(struct includes *includes, struct json_value *root,
                   struct diagnostics *diagnostics)
{
    const struct json_value *include, *path;

    if (root->type != JSON_OBJECT)
        return;
    include = document_member(root, "include");
    if (include == NULL)
        return;
    if (include->type != JSON_ARRAY) {
        read_path(includes, root, diagnostics, include);
        return;
    }
    for (path = include->first; path != NULL; path = path->next)
        read_path(includes, root, diagnostics, path);
}

void includes_free(struct includes *includes)
{
    struct included_file *file, *next;

    for (file = includes->first; file != NULL; file = next) {
        next = file->next;
        document_free(&file->document);
        free(file->text);
        free(file);
    }
    *includes = (struct includes){.first = NULL};
}
