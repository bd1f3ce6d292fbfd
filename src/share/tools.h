/* The tools of stdio_bus ctl --mcp: what an agent may see of the shared servers of this user, and
 * do with one. Neither variables nor messages are shown, and of a command no word that may be a
 * secret. */
#ifndef STDIO_BUS_SHARE_TOOLS_H
#define STDIO_BUS_SHARE_TOOLS_H

#include "json/document.h"
#include "json/text.h"

enum tools_outcome {
    TOOLS_DONE_JSON, /* the text is an object of JSON */
    TOOLS_DONE,      /* it is plain */
    TOOLS_FAILED,    /* the same: why */
    TOOLS_UNKNOWN    /* there is no such tool: nothing is added */
};

/* Adds the definitions of the tools, elements of an array. */
void tools_define(struct json_text *to);

/* Calls a tool; `arguments` may be NULL. Adds the text of its result. If out of memory,
 * text->failed. */
enum tools_outcome tools_call(struct json_text *text, struct slice name,
                              const struct json_value *arguments);

#endif
