#include "build_config.h"

#include "config/command_line.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/slice.h"

#define VALUES_MAX 12 /* beside the arguments */

/* Adds a child in front of the others. */
static struct json_value *add(struct json_value **unused, struct json_value *parent,
                              const char *key, enum json_type type, const char *text)
{
    struct json_value *value = (*unused)++;

    *value = (struct json_value){
        .type = type,
        .text = slice_of_text(text),
        .parent = parent,
        .key = slice_of_text(key),
        .next = parent->first,
    };
    parent->first = value;
    parent->count++;
    return value;
}

/* Where one client is all that there will be, no process is kept for another one. Without a
 * protocol nothing tells which messages of a shared process are for the client. */
static void add_mode(struct json_value **unused, struct json_value *pool,
                     const struct command_line *line)
{
    bool plain = line->protocol == NULL && line->clients == NULL && line->instances == NULL;
    struct pool_mode mode;

    if (line->protocol != NULL)
        add(unused, pool, "protocol", JSON_STRING, line->protocol);
    if (line->framing != NULL)
        add(unused, pool, "framing", JSON_STRING, line->framing);
    if (line->clients != NULL)
        add(unused, pool, "clients", JSON_STRING, line->clients);
    else if (plain && line->one_client)
        add(unused, pool, "clients", JSON_STRING, "exclusive");
    if (line->instances != NULL)
        add(unused, pool, "instances", JSON_NUMBER, line->instances);
    if (line->idle_stop != NULL)
        add(unused, pool, "idle_stop_sec", JSON_NUMBER, line->idle_stop);
    pool_config_mode(&mode, pool);
    if (line->one_client && mode.spare > 0)
        add(unused, pool, "spare", JSON_NUMBER, "0");
}

struct json_value *command_line_document(const struct command_line *line)
{
    struct json_value *root, *pools, *pool, *args, *unused;
    size_t count = 0;
    char *id;

    do
        count++;
    while (line->words[count] != NULL);
    root = calloc(1, (VALUES_MAX + count) * sizeof *root + POOL_ID_MAX + 1);
    if (root == NULL)
        return NULL;
    id = (char *)(root + VALUES_MAX + count);
    pool_name(id, line->words);
    root->type = JSON_OBJECT;
    unused = root + 1;
    pools = add(&unused, root, "pools", JSON_ARRAY, "");
    pool = add(&unused, pools, "", JSON_OBJECT, "");
    add(&unused, pool, "id", JSON_STRING, id);
    add(&unused, pool, "command", JSON_STRING, line->words[0]);
    args = add(&unused, pool, "args", JSON_ARRAY, "");
    while (--count > 0)
        add(&unused, args, "", JSON_STRING, line->words[count])->index = count - 1;
    add_mode(&unused, pool, line);
    return root;
}

/* --- pool name --- */

#define ITEMS(array) (sizeof(array) / sizeof(array)[0])
#define OPTIONS_MAX 16
#define VERBS_MAX 3

/* What the word after the options of a launcher is. */
enum kind {
    NAMES_PACKAGE, /* @scope/name@version, name[extra]==1.0, a URL of git */
    NAMES_SCRIPT,  /* a path of a file, or of a directory */
    NAMES_IMAGE    /* host/name:tag */
};

/* A program that starts another one. */
struct launcher {
    const char *name;
    const char *verbs[VERBS_MAX]; /* one of them is the first argument; none: it is missing */
    enum kind kind;
    const char *named;                /* an option whose value is the program */
    const char *options[OPTIONS_MAX]; /* those with a value in the next word */
};

#define OF_NODE                                                                                    \
    {                                                                                              \
        "-r", "--require", "--import", "--loader", "--experimental-loader", "-C", "--conditions",  \
            "--env-file"                                                                           \
    }
#define OF_NPM                                                                                     \
    {                                                                                              \
        "-p", "--package", "-c", "--call", "-w", "--workspace", "--registry", "--prefix"           \
    }
#define OF_UV                                                                                      \
    {                                                                                              \
        "--from", "--with", "--with-editable", "--with-requirements", "-p", "--python", "--index", \
            "--index-url", "--default-index", "--directory", "--project", "--env-file",            \
            "--extra-index-url", "--refresh-package", "--cache-dir"                                \
    }
#define OF_DOCKER                                                                                  \
    {                                                                                              \
        "-e", "--env", "--env-file", "-v", "--volume", "--mount", "-p", "--publish", "--name",     \
            "--network", "-u", "--user", "-w", "--workdir", "--entrypoint", "--platform"           \
    }

static const struct launcher launchers[] = {
    {.name = "npx", .kind = NAMES_PACKAGE, .options = OF_NPM},
    {.name = "npm", .verbs = {"exec", "x"}, .kind = NAMES_PACKAGE, .options = OF_NPM},
    {.name = "pnpm", .verbs = {"dlx", "exec"}, .kind = NAMES_PACKAGE, .options = OF_NPM},
    {.name = "pnpx", .kind = NAMES_PACKAGE, .options = OF_NPM},
    {.name = "yarn", .verbs = {"dlx"}, .kind = NAMES_PACKAGE, .options = OF_NPM},
    {.name = "bunx", .kind = NAMES_PACKAGE, .options = OF_NPM},
    {.name = "bun", .verbs = {"x"}, .kind = NAMES_PACKAGE, .options = OF_NPM},
    {.name = "bun", .verbs = {"run"}, .kind = NAMES_SCRIPT, .options = OF_NODE},
    {.name = "bun", .kind = NAMES_SCRIPT, .options = OF_NODE},
    {.name = "node", .kind = NAMES_SCRIPT, .options = OF_NODE},
    {.name = "nodejs", .kind = NAMES_SCRIPT, .options = OF_NODE},
    {.name = "tsx", .kind = NAMES_SCRIPT, .options = OF_NODE},
    {.name = "deno", .verbs = {"run"}, .kind = NAMES_SCRIPT, .options = {"-c", "--config"}},
    {.name = "uvx", .kind = NAMES_PACKAGE, .options = OF_UV},
    {.name = "uv", .verbs = {"run"}, .kind = NAMES_SCRIPT, .named = "-m", .options = OF_UV},
    {.name = "pipx", .verbs = {"run"}, .kind = NAMES_PACKAGE, .options = {"--spec", "--python"}},
    {.name = "python", .kind = NAMES_SCRIPT, .named = "-m", .options = {"-W", "-X"}},
    {.name = "python3", .kind = NAMES_SCRIPT, .named = "-m", .options = {"-W", "-X"}},
    {.name = "docker", .verbs = {"run"}, .kind = NAMES_IMAGE, .options = OF_DOCKER},
    {.name = "podman", .verbs = {"run"}, .kind = NAMES_IMAGE, .options = OF_DOCKER},
};

static bool is_one_of(const char *word, const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count && texts[i] != NULL; i++) {
        if (strcmp(word, texts[i]) == 0)
            return true;
    }
    return false;
}

/* --- names --- */

/* Cuts the path before its last part, and returns that; empty: there is none left. */
static struct slice take_base(struct slice *path)
{
    struct slice base;

    while (path->len > 0 && path->data[path->len - 1] == '/')
        path->len--;
    base = slice_of(path->data + path->len, 0);
    while (path->len > 0 && path->data[path->len - 1] != '/') {
        path->len--;
        base = slice_of(base.data - 1, base.len + 1);
    }
    return base;
}

static struct slice base_of(struct slice path)
{
    return take_base(&path);
}

/* The slice up to the first of these characters that is not its first. */
static struct slice up_to(struct slice slice, const char *characters)
{
    for (size_t i = 1; i < slice.len; i++) {
        if (strchr(characters, slice.data[i]) != NULL)
            return slice_of(slice.data, i);
    }
    return slice;
}

static struct slice without_end(struct slice slice, const char *end)
{
    size_t len = strlen(end);

    if (slice.len > len && memcmp(slice.data + slice.len - len, end, len) == 0)
        slice.len -= len;
    return slice;
}

static struct slice package_name(struct slice word)
{
    return without_end(up_to(base_of(word), "@#[=<>~! "), ".git");
}

static struct slice image_name(struct slice word)
{
    return up_to(base_of(word), ":@");
}

static struct slice without_suffix(struct slice name)
{
    static const char *const suffixes[] = {".js", ".mjs", ".cjs", ".ts", ".mts", ".py"};

    for (size_t i = 0; i < ITEMS(suffixes); i++) {
        struct slice cut = without_end(name, suffixes[i]);

        if (cut.len < name.len)
            return cut;
    }
    return name;
}

/* Parts of a path that servers of any name have. */
static bool says_nothing(struct slice name)
{
    static const char *const usual[] = {"index", "main",  "server", "cli", "app", "__main__",
                                        "start", "dist",  "build",  "src", "lib", "bin",
                                        "out",   "stdio", ".",      "..",  ""};

    for (size_t i = 0; i < ITEMS(usual); i++) {
        if (slice_is(name, usual[i]))
            return true;
    }
    return false;
}

/* The nearest part of the path that says something; else the file. */
static struct slice script_name(struct slice path)
{
    struct slice file = take_base(&path), name = without_suffix(file);

    while (says_nothing(name) && path.len > 0)
        name = take_base(&path);
    return says_nothing(name) ? file : name;
}

/* --- the words --- */

/* The first word that is neither an option of the launcher nor its value; NULL: there is none.
 * *is_named: it is the value of the option that names the program. */
static char *const *skip_options(const struct launcher *launcher, char *const *words,
                                 bool *is_named)
{
    *is_named = false;
    for (; *words != NULL; words++) {
        if (*is_named || words[0][0] != '-')
            return words;
        if (launcher->named != NULL && strcmp(words[0], launcher->named) == 0)
            *is_named = true;
        else if (is_one_of(words[0], launcher->options, OPTIONS_MAX) && words[1] != NULL)
            words++;
    }
    return NULL;
}

/* The word after that of the verb; NULL: the words are not of this launcher. */
static char *const *after_verb(const struct launcher *launcher, char *const *words)
{
    char *const *verb;
    bool is_named;

    if (!slice_is(base_of(slice_of_text(words[0])), launcher->name))
        return NULL;
    if (launcher->verbs[0] == NULL)
        return words + 1;
    verb = skip_options(launcher, words + 1, &is_named);
    return verb != NULL && is_one_of(*verb, launcher->verbs, VERBS_MAX) ? verb + 1 : NULL;
}

/* The launcher that the words begin with; NULL: none. *rest: what follows it. */
static const struct launcher *find_launcher(char *const *words, char *const **rest)
{
    for (size_t i = 0; i < ITEMS(launchers); i++) {
        *rest = after_verb(&launchers[i], words);
        if (*rest != NULL)
            return &launchers[i];
    }
    return NULL;
}

static struct slice name_in(const struct launcher *launcher, char *const *words)
{
    bool is_named;
    char *const *word = skip_options(launcher, words, &is_named);

    if (word == NULL)
        return slice_of(NULL, 0);
    if (is_named)
        return slice_of_text(*word);
    switch (launcher->kind) {
    case NAMES_PACKAGE:
        return package_name(slice_of_text(*word));
    case NAMES_IMAGE:
        return image_name(slice_of_text(*word));
    case NAMES_SCRIPT:
        break;
    }
    return script_name(slice_of_text(*word));
}

void pool_name(char to[POOL_ID_MAX + 1], char *const *words)
{
    struct slice name = {NULL, 0};
    char *const *rest;
    const struct launcher *launcher = find_launcher(words, &rest);

    if (launcher != NULL)
        name = name_in(launcher, rest);
    if (name.len == 0)
        name = base_of(slice_of_text(words[0]));
    if (name.len == 0)
        name = slice_of_text(words[0]);
    if (name.len > POOL_ID_MAX)
        name.len = POOL_ID_MAX;
    memcpy(to, name.data, name.len);
    to[name.len] = '\0';
}
