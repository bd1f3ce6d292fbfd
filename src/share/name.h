/* The name of --share=NAME, which is part of the names of files. */
#ifndef STDIO_BUS_SHARE_NAME_H
#define STDIO_BUS_SHARE_NAME_H

#define SHARE_NAME_MAX 64

/* NULL if the name can name files, or else what is wrong with it. */
const char *share_name_problem(const char *name);

#endif
