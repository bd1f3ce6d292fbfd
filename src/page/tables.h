/* The page's figures as HTML: for browsers without script, and as the frame that the script
 * fills. */
#ifndef STDIO_BUS_PAGE_TABLES_H
#define STDIO_BUS_PAGE_TABLES_H

#include "json/document.h"
#include "json/text.h"

/* Adds the state in a line, the figures that have curves, the errors and what is shared: of these
 * what there is in `figures`, which is the text of page/figures.h, read. */
void tables_add_head(struct json_text *to, const struct json_value *figures);

/* Adds the lists of what runs, and of waiting requests. */
void tables_add_lists(struct json_text *to, const struct json_value *figures);

#endif
