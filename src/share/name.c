#include "build_config.h"

#include "share/name.h"

#include <string.h>

const char *share_name_problem(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "._-";

    if (strlen(name) > SHARE_NAME_MAX)
        return "the name is longer than 64 bytes";
    if (*name == '\0' || *name == '.' || *name == '-' || name[strspn(name, allowed)] != '\0')
        return "a name has letters, digits, dots, dashes and underscores, and begins with none of "
               "the marks but the last";
    return NULL;
}
