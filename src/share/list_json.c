#include "build_config.h"

#include "share/list_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "share/directory.h"
#include "share/identity.h"
#include "json/row.h"

#define DIFFERENCE_MAX 4096
#define SEPARATOR ", " /* of the names of what differs */

static void write_command(struct json_text *text, struct slice identity)
{
    struct slice rest = identity;
    char *word = malloc(identity.len + 1);
    size_t len;

    text->failed |= word == NULL;
    row_begin(text, "command", '[');
    while (word != NULL && identity_take_word(word, &len, &rest))
        row_slice(text, NULL, slice_of(word, len));
    row_end(text, ']');
    if (word != NULL && identity_directory(word, &len, identity))
        row_slice(text, "directory", slice_of(word, len));
    else
        row_string(text, "directory", NULL);
    free(word);
}

static void write_log(struct json_text *text, const struct share *share, const char *directory)
{
    char path[DIRECTORY_MAX + DAEMON_FILE_MAX];

    snprintf(path, sizeof path, "%s/%s" DAEMON_LOG, directory, share->base);
    row_string(text, "log", path);
}

static void write_share(struct json_text *text, const struct share *share,
                        const struct usage *usage, const char *directory)
{
    const struct json_value *version = share_member(share, "version", JSON_STRING);
    const struct json_value *failure = share_member(share, "failure", JSON_STRING);
    size_t processes;
    long kib = share_usage(share, usage, &processes);

    row_begin(text, NULL, '{');
    row_string(text, "name", share->base);
    row_slice(text, "version", version != NULL ? version->text : slice_of(NULL, 0));
    row_number(text, "pid", share_number(share, "pid"));
    row_number(text, "runs_ms", share_number(share, "seconds") * 1000);
    row_number(text, "clients", share_number(share, "clients"));
    row_number(text, "processes", (int64_t)processes);
    if (kib >= 0)
        row_number(text, "memory", (int64_t)kib * 1024);
    else
        row_string(text, "memory", NULL);
    write_command(text, share_identity(share));
    row_slice(text, "failure", failure != NULL ? failure->text : slice_of(NULL, 0));
    write_log(text, share, directory);
    row_end(text, '}');
}

static void write_names(struct json_text *text, const char *names)
{
    const char *at = names, *end;

    row_begin(text, "differs", '[');
    while (*at != '\0') {
        end = strstr(at, SEPARATOR);
        row_slice(text, NULL, slice_of(at, end != NULL ? (size_t)(end - at) : strlen(at)));
        at = end != NULL ? end + strlen(SEPARATOR) : at + strlen(at);
    }
    row_end(text, ']');
}

/* The daemons that have the command of the one at `first`, which is the oldest of them: nothing if
 * it is the only one. */
static void write_group(struct json_text *text, const struct shares *shares, size_t first)
{
    char difference[DIFFERENCE_MAX] = "";
    size_t i = shares_alike(shares, first, first + 1);

    if (i == shares->count)
        return;
    row_begin(text, NULL, '{');
    row_begin(text, "names", '[');
    row_string(text, NULL, shares->at[first].base);
    for (; i < shares->count; i = shares_alike(shares, first, i + 1)) {
        row_string(text, NULL, shares->at[i].base);
        identity_add_differences(difference, sizeof difference, share_identity(&shares->at[first]),
                                 share_identity(&shares->at[i]));
    }
    row_end(text, ']');
    write_names(text, difference);
    row_end(text, '}');
}

void list_json_write(struct json_text *text, const struct shares *shares, const struct usage *usage,
                     const char *directory)
{
    size_t i;

    row_begin(text, NULL, '{');
    row_begin(text, "shared", '[');
    for (i = 0; i < shares->count; i++)
        write_share(text, &shares->at[i], usage, directory);
    row_end(text, ']');
    row_number(text, "total", (int64_t)shares->count);
    row_begin(text, "differences", '[');
    for (i = 0; i < shares->count; i++) {
        if (shares_alike(shares, i, 0) == i)
            write_group(text, shares, i);
    }
    row_end(text, ']');
    row_end(text, '}');
}
