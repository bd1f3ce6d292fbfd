/* The entries of a block mapping in YAML, found in its text: as much of YAML as it takes to tell
 * where an entry ends. Values are not read. */
#ifndef STDIO_BUS_CLI_YAML_BLOCK_H
#define STDIO_BUS_CLI_YAML_BLOCK_H

#include "base/slice.h"

struct yaml_entry {
    struct slice key; /* without quotes; escapes as they are */
    size_t start;     /* of the line of the key */
    size_t value;     /* after the colon */
    size_t end;       /* of the last line of the value: where the next line begins */
};

enum yaml_found {
    YAML_ENTRY,
    YAML_END,  /* of the text or of the document, or a line further to the left */
    YAML_OTHER /* a line that is no entry of this mapping */
};

/* Finds the entry whose key is in this column, in the first line from `at` on that is neither empty
 * nor a comment. `at` is the beginning of a line. */
enum yaml_found yaml_block_next(struct slice text, size_t at, size_t column,
                                struct yaml_entry *entry);

/* The beginning of the first line from `at` on that is neither empty nor a comment, and its
 * indentation; text.len: there is none. */
size_t yaml_block_line(struct slice text, size_t at, size_t *column);

/* The end of a quoted string or of a flow collection ([] or {}) that begins at `at`; text.len: it
 * has none. */
size_t yaml_block_flow(struct slice text, size_t at);

#endif
