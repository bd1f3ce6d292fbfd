/* stdio_bus --stop, --restart, --forget and --log: what a user does with a shared server. */
#ifndef STDIO_BUS_SHARE_CARE_H
#define STDIO_BUS_SHARE_CARE_H

#include "share/shares.h"

#define CARE_TEXT_MAX 1024
#define CARE_LOG_MAX ((size_t)1 << 20) /* bytes of a log that are shown: its end */

enum care_act { CARE_STOP, CARE_RESTART };

/* The server that the word names, as --list shows it: by its name, by that of --share=NAME, or by
 * the process ID of its daemon. NULL with a line in `text`: which names there are. */
const struct share *care_find(const struct shares *shares, const char *word,
                              char text[CARE_TEXT_MAX]);

/* Stops the server or restarts it, and waits for that. Writes a line: what was done, or why not.
 * Returns EXIT_DONE, or EXIT_NO_SERVER. */
int care_act(const struct share *share, enum care_act act, char text[CARE_TEXT_MAX]);
#define EXIT_NO_SERVER 69 /* there is none of that name, it does not answer, or does not start */

/* Reads the end of the log of the server that the word names; it may have ended. The text is
 * NUL-terminated, begins with a whole line, and is to be freed. NULL with a line in `text`. */
char *care_read_log(const struct shares *shares, const char *word, char text[CARE_TEXT_MAX]);

/* Forgets what the server that the word names has answered: its daemon does, if it runs, and its
 * files are removed (share/cache.h). Returns as care_act does. */
int care_forget(const struct shares *shares, const char *word, char text[CARE_TEXT_MAX]);

/* The options. Each prints what it did, and returns the exit status. */
int care_run(enum care_act act, const char *word);
int care_run_forget(const char *word);
int care_run_log(const char *word);

#endif
