/* A terminal that the program has to itself for some time: another page of the screen, keys that
 * need no Enter. At every end, a signal's too, the terminal is as it was before. */
#ifndef STDIO_BUS_CLI_SCREEN_H
#define STDIO_BUS_CLI_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

#include "json/text.h"

enum screen_style { SCREEN_PLAIN, SCREEN_HEAD, SCREEN_DIM, SCREEN_WARNING, SCREEN_ERROR };

/* A text of lines. The line i has the style styles[i]; those from `count` on are plain. */
#define SCREEN_LINES_MAX 256
struct screen_text {
    struct json_text text;
    unsigned char styles[SCREEN_LINES_MAX];
    size_t count;
};

/* False, and nothing is done: stdout is no terminal, or one that obeys nothing (TERM is "dumb" or
 * not set). Keys come from stdin if it is a terminal. SIGHUP, SIGINT, SIGQUIT and SIGTERM, unless
 * they are ignored, restore the terminal before they end the process; SIGTSTP restores it until
 * SIGCONT. */
bool screen_open(void);

/* Restores the terminal. */
void screen_close(void);

#define SCREEN_NOTHING 0 /* the time is over */
#define SCREEN_REDRAW 1  /* another size, or continued after a stop */
#define SCREEN_END (-1)  /* stdin has ended */

/* Waits at most timeout_ms for a key. Returns it, or one of the above. A key of more than one byte
 * (an arrow) is no key. */
int screen_key(int timeout_ms);

/* Shows the text in place of what was there, in colours unless NO_COLOR is set, the text without
 * what a terminal obeys. STDIO_BUS_ERR with errno set if stdout takes no more. */
int screen_show(const struct screen_text *text);

#endif
