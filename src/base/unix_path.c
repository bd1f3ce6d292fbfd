#include "build_config.h"

#include "base/unix_path.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/descriptor.h"

int unix_path_connect(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (strlen(path) > UNIX_PATH_MAX) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    return descriptor_connect((const struct sockaddr *)&address, sizeof address);
}

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
