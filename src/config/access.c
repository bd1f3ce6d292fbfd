#include "build_config.h"

#include "config/access.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"

#define ID_MAX 4294967294 /* the largest 32-bit number stands for no user */
#define ID_RANGE "must be a name, or a number from 0 to 4294967294"

/* Whether this system reports the user at the other end of a Unix socket (transport/origin.c). */
#if defined HAVE_STRUCT_UCRED_UID || defined HAVE_GETPEEREID
#define KNOWS_USERS true
#else
#define KNOWS_USERS false
#endif

/* --- the mode --- */

/* The mode that octal digits make; -1: they are no mode, or keep the daemon out of its own
 * socket. */
static int read_mode(const struct json_value *mode)
{
    int number = 0;

    for (size_t i = 0; i < mode->text.len; i++) {
        char digit = mode->text.data[i];

        if (digit < '0' || digit > '7')
            return -1;
        number = number * 8 + (digit - '0');
        if (number > 0777)
            return -1;
    }
    return number >= 0600 ? number : -1;
}

void access_check_mode(struct diagnostics *diagnostics, const struct json_value *mode)
{
    if (diagnostics_check_type(diagnostics, mode, JSON_STRING,
                               "a string of octal digits, as in \"0660\"") &&
        read_mode(mode) < 0)
        diagnostics_value(diagnostics, mode, "must be octal digits from \"0600\" to \"0777\"");
}

/* --- users and groups --- */

/* The number of a user or group. False: errno has the reason, or is 0 if there is no such name. */
typedef bool lookup_fn(const char *name, int64_t *id);

static bool find_user(const char *name, int64_t *id)
{
    const struct passwd *found;

    errno = 0;
    found = getpwnam(name);
    if (found != NULL)
        *id = (int64_t)found->pw_uid;
    return found != NULL;
}

static bool find_group(const char *name, int64_t *id)
{
    const struct group *found;

    errno = 0;
    found = getgrnam(name);
    if (found != NULL)
        *id = (int64_t)found->gr_gid;
    return found != NULL;
}

/* Reads a number, or the number that a name has. */
static bool read_id(const struct json_value *value, lookup_fn *find, int64_t *id)
{
    if (value->type == JSON_STRING)
        return find(value->text.data, id);
    return document_integer(value, id) && *id >= 0 && *id <= ID_MAX;
}

static void check_id(struct diagnostics *diagnostics, const struct json_value *value,
                     const char *kind, lookup_fn *find)
{
    char shown[64];
    int64_t id;

    if (value->type != JSON_STRING && value->type != JSON_NUMBER)
        diagnostics_value(diagnostics, value, ID_RANGE ", not %s", document_type_name(value->type));
    else if ((value->type == JSON_STRING && !diagnostics_check_string(diagnostics, value)) ||
             read_id(value, find, &id))
        return;
    else if (value->type == JSON_STRING)
        diagnostics_value(diagnostics, value, "there is no %s \"%s\"%s%s", kind,
                          log_escape(shown, sizeof shown, value->text), errno != 0 ? ": " : "",
                          errno != 0 ? strerror(errno) : "");
    else
        diagnostics_value(diagnostics, value, ID_RANGE);
}

void access_check_group(struct diagnostics *diagnostics, const struct json_value *group)
{
    check_id(diagnostics, group, "group", find_group);
}

void access_check_uids(struct diagnostics *diagnostics, const struct json_value *uids)
{
    if (!diagnostics_check_type(diagnostics, uids, JSON_ARRAY, "an array of user ids"))
        return;
    if (!KNOWS_USERS)
        diagnostics_value(diagnostics, uids, "this system does not report which user connects");
    if (uids->first == NULL)
        diagnostics_value(diagnostics, uids, "must contain at least one user");
    for (const struct json_value *uid = uids->first; uid != NULL; uid = uid->next)
        check_id(diagnostics, uid, "user", find_user);
}

/* --- reading --- */

int access_read_uids(struct access *access, const struct json_value *uids)
{
    int64_t id;

    access->uids = calloc(uids->count, sizeof *access->uids);
    if (access->uids == NULL)
        return STDIO_BUS_ERR;
    for (const struct json_value *uid = uids->first; uid != NULL; uid = uid->next) {
        if (!read_id(uid, find_user, &id))
            return STDIO_BUS_ERR;
        access->uids[access->uid_count++] = (uid_t)id;
    }
    return STDIO_BUS_OK;
}

int access_read(struct access *access, const struct json_value *listen)
{
    const struct json_value *mode, *group, *uids;
    int64_t id;

    *access = (struct access){.mode = ACCESS_MODE_DEFAULT};
    if (listen == NULL)
        return STDIO_BUS_OK;
    mode = document_member(listen, "mode");
    group = document_member(listen, "group");
    uids = document_member(listen, "allow_uids");
    access->has_mode = mode != NULL;
    if (mode != NULL)
        access->mode = (mode_t)read_mode(mode);
    access->has_group = group != NULL;
    if (group != NULL) {
        if (!read_id(group, find_group, &id))
            return STDIO_BUS_ERR;
        access->group = (gid_t)id;
    }
    return uids != NULL ? access_read_uids(access, uids) : STDIO_BUS_OK;
}

void access_free(struct access *access)
{
    free(access->uids);
    *access = (struct access){.uids = NULL};
}

bool access_allows(const struct access *access, uid_t uid)
{
    size_t i;

    for (i = 0; i < access->uid_count; i++) {
        if (access->uids[i] == uid)
            return true;
    }
    return access->uid_count == 0;
}

bool access_differs(const struct access *before, const struct access *after)
{
    return before->mode != after->mode || before->has_group != after->has_group ||
           (after->has_group && before->group != after->group);
}
