#include "build_config.h"

#include "base/unix_path.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

bool directories_make_above(char *path)
{
    struct stat status;
    bool made = true;

    for (char *slash = strchr(path + 1, '/'); made && slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        made = stat(path, &status) == 0 || mkdir(path, 0700) == 0 || errno == EEXIST;
        *slash = '/';
    }
    return made;
}
