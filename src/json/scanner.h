/* The scanner: validates one line of JSON and finds its routing fields, in one pass, in constant
 * memory, resumable at any byte (spec 4.2.2). It accepts exactly the objects of RFC 8259 in valid
 * UTF-8 without a byte order mark, each on a line of its own, nested up to STDIO_BUS_MAX_DEPTH
 * levels with the object itself counted.
 *
 * The caller keeps the bytes of the message together. The scanner remembers its position, so that a
 * message takes the same time and has the same result however it is cut into pieces. */
#ifndef STDIO_BUS_JSON_SCANNER_H
#define STDIO_BUS_JSON_SCANNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "json/string.h"

/* --- the routing fields: the values of some top-level keys (spec 4.2.2) --- */

enum scan_type { SCAN_ABSENT, SCAN_NULL, SCAN_STRING, SCAN_NUMBER, SCAN_OTHER };

/* The place of a value, relative to the first byte of the message; of a string without its quotes.
 * Of duplicate keys the last one counts. Escapes in keys are decoded: "\u0069d" is "id". */
struct scan_field {
    size_t offset, len;
    enum scan_type type;
    bool escaped; /* the string contains a backslash */
};

enum {
    SCAN_UNTIDY = 1, /* otherwise the message is an object and perhaps spaces, tabs and a newline */
    SCAN_LONG = 2,   /* set by the owner */
    SCAN_CUT = 4     /* the same: most bytes are gone. Of the places that of the id is right, and of
                      * the types those of id and method */
};

struct scan_fields {
    struct scan_field id, session_id, method, pool;
    bool has_result, has_error; /* the key is there, whatever its value */
    unsigned char oddities;     /* SCAN_UNTIDY and so on */
};

/* The decoded text of a string: in `message`, or in `to` where it has escapes. False if it is
 * longer than `max` bytes, which is the room at `to`. */
static inline bool scan_field_string(const struct scan_field *field, struct slice message, char *to,
                                     size_t max, struct slice *text)
{
    *text = slice_of(message.data + field->offset, field->len);
    if (field->escaped)
        *text = slice_of(to, json_string_decode(to, max, *text));
    return text->len <= max;
}

/* --- the scanner --- */

enum scan_status {
    SCAN_MORE,    /* all bytes were read; more are needed */
    SCAN_MESSAGE, /* a whole message: scanner->position bytes, its newline included, or what else
                   * ends it */
    SCAN_BLANK,   /* a line of white space only: scanner->position bytes, its newline included */
    SCAN_INVALID  /* malformed: scanner->error is the reason, scanner->position the wrong byte */
};

/* A newline before the end of the object is always CUT. Any other control character is CONTROL
 * inside a string (UTF8 inside a character) and SYNTAX outside. */
enum scan_error {
    SCAN_ERROR_NONE,
    SCAN_ERROR_SYNTAX,      /* not JSON */
    SCAN_ERROR_NOT_OBJECT,  /* the top level is no object */
    SCAN_ERROR_CUT,         /* the line ends inside the object */
    SCAN_ERROR_TRAILING,    /* text after the object */
    SCAN_ERROR_AFTER_ARRAY, /* text after the array of which the line consists */
    SCAN_ERROR_UTF8,        /* not UTF-8, inside a string */
    SCAN_ERROR_CONTROL,     /* a raw control character inside a string */
    SCAN_ERROR_ESCAPE,      /* a bad escape sequence */
    SCAN_ERROR_NUMBER,      /* a number not in JSON's grammar */
    SCAN_ERROR_DEPTH        /* nested deeper than STDIO_BUS_MAX_DEPTH */
};

/* What ends a message. */
enum scan_form {
    SCAN_LINE,          /* a newline */
    SCAN_LINE_OR_ARRAY, /* the same; but a line may be an array of objects, each a message */
    SCAN_AFTER_ARRAY,   /* after such an array: the newline, and there is no message any more */
    SCAN_IN_ARRAY,      /* in such an array: the comma or bracket after the object */
    SCAN_SIZED          /* the caller (scanner_end): newlines are white space */
};

/* At most 300 bytes: every connection has one. */
struct scanner {
    size_t position;           /* of the next byte, from the first byte of the message */
    struct scan_fields fields; /* valid after SCAN_MESSAGE */
    enum scan_error error;
    /* the rest belongs to scanner.c and scanner_quick.c */
    unsigned char state;
    unsigned char key;                 /* enum key: of the value being read */
    unsigned char partial;             /* progress inside a literal, \u escape or UTF-8 sequence */
    unsigned char literal;             /* the literal being read */
    unsigned char utf8_low, utf8_high; /* bounds of the next byte of a UTF-8 sequence */
    bool in_key;                       /* the string being read is a key */
    bool token_escaped;                /* the string being read contains a backslash */
    unsigned char form; /* enum scan_form: to be set after a reset, and changed by arrays */
    bool splits_arrays; /* the owner's: lines are SCAN_LINE_OR_ARRAY; not read here */
    unsigned depth;     /* open levels */
    size_t token_start; /* of the key or value being read at the top level */
    uint64_t levels;    /* the innermost 64 levels, lowest bit first; 1 = object, 0 = array */
    uint64_t outer_levels[STDIO_BUS_MAX_DEPTH / 64 - 1]; /* the others */
};

/* Prepares for a new message, a line. `fields` stay as they are until the next scanner_run. */
void scanner_reset(struct scanner *scanner);

/* The same for the message that follows in the same form. */
void scanner_next(struct scanner *scanner);

/* Continues with a message of which `len` bytes are there. `message` is its first byte: the bytes
 * of earlier calls come again (same content, perhaps elsewhere in memory), followed by new bytes,
 * which may belong to later messages. Reads nothing after them. The first wrong byte is reported as
 * soon as it is there. After MESSAGE or BLANK, scanner_reset or scanner_next comes before the next
 * call; INVALID stays until then. */
enum scan_status scanner_run(struct scanner *scanner, const char *message, size_t len);

/* Ends a message of the form SCAN_SIZED whose bytes were all given to scanner_run, which returned
 * SCAN_MORE. Returns SCAN_MESSAGE, or SCAN_INVALID if the object is not complete. */
enum scan_status scanner_end(struct scanner *scanner);

/* The reason of SCAN_INVALID in words ("invalid UTF-8"). Static. */
const char *scan_error_text(enum scan_error error);

/* Saves a scanner that has stopped at any byte of a message, or loads it. The bytes before that one
 * may be gone: those of a message that is cut are. */
struct archive;
void scanner_archive(struct archive *archive, struct scanner *scanner);

#endif
