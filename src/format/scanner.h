/* The scanner: validates one line of JSON and finds its routing fields, in one pass, in constant
 * memory, resumable at any byte (spec 4.2.2). It accepts exactly the objects of RFC 8259 in valid
 * UTF-8 without a byte order mark, nested up to STDIO_BUS_MAX_DEPTH levels, the object itself
 * counted, and each on a line of its own.
 *
 * The caller keeps the bytes of the message together; the scanner remembers where it stopped, so
 * that a message takes the same time however it is cut, and the result is the same too. */
#ifndef STDIO_BUS_FORMAT_SCANNER_H
#define STDIO_BUS_FORMAT_SCANNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/slice.h"

enum scan_type { SCAN_ABSENT, SCAN_NULL, SCAN_STRING, SCAN_NUMBER, SCAN_OTHER };

/* Where the value of a top-level key stands, relative to the first byte of the message. A string's
 * range is without its quotes. With duplicate keys the last one counts; escapes in keys do not
 * matter: "\u0069d" is "id". */
struct scan_field {
    size_t offset, len;
    enum scan_type type;
    bool escaped; /* the string contains a backslash */
};

struct scan_fields {
    struct scan_field id, session_id, method, pool;
    bool has_result, has_error; /* the key is there, whatever its value */
};

enum scan_status {
    SCAN_MORE,    /* every byte was looked at; more are needed */
    SCAN_MESSAGE, /* a whole message: scanner->position bytes, its newline included */
    SCAN_BLANK,   /* a line of white space only: scanner->position bytes, its newline included */
    SCAN_INVALID  /* malformed: scanner->error says how, at scanner->position is the wrong byte */
};

/* A newline before the end of the object is CUT wherever it stands. Any other control character is
 * CONTROL inside a string (UTF8 inside a character) and SYNTAX outside. */
enum scan_error {
    SCAN_ERROR_NONE,
    SCAN_ERROR_SYNTAX,     /* not JSON */
    SCAN_ERROR_NOT_OBJECT, /* JSON perhaps, but the top level is no object */
    SCAN_ERROR_CUT,        /* the line ends inside the object */
    SCAN_ERROR_TRAILING,   /* something behind the object */
    SCAN_ERROR_UTF8,       /* not UTF-8, inside a string */
    SCAN_ERROR_CONTROL,    /* a raw control character inside a string */
    SCAN_ERROR_ESCAPE,     /* a bad escape sequence */
    SCAN_ERROR_NUMBER,     /* a number not in JSON's grammar */
    SCAN_ERROR_DEPTH       /* nested deeper than STDIO_BUS_MAX_DEPTH */
};

/* At most 300 bytes: every connection has one. */
struct scanner {
    size_t position; /* next byte to look at, from the first byte of the message */
    struct scan_fields fields; /* valid after SCAN_MESSAGE */
    enum scan_error error;
    /* the rest is scanner.c's own */
    unsigned char state;
    unsigned char key;     /* the routing field that the value being read belongs to */
    unsigned char partial; /* inside a literal, \u escape or UTF-8 sequence: how far */
    unsigned char literal; /* the literal being read */
    unsigned char utf8_low, utf8_high; /* bounds of the next byte of a UTF-8 sequence */
    bool in_key;        /* the string being read is a key */
    bool token_escaped; /* the string being read contains a backslash */
    bool multiline;     /* the framing's, after a reset: newlines end nothing */
    unsigned depth;     /* open levels */
    size_t token_start; /* of the key or value being read at the top level */
    uint64_t levels;    /* the innermost 64 of them, the lowest bit first; 1 = object, 0 = array */
    uint64_t outer_levels[STDIO_BUS_MAX_DEPTH / 64 - 1]; /* the others */
};

/* Ready for a new message. `fields` stay as they are until the next scanner_run. */
void scanner_reset(struct scanner *scanner);

/* Goes on with a message of which `len` bytes are there, from its first byte on: the bytes of the
 * earlier calls again (same content, perhaps elsewhere in memory) and new ones behind, which may
 * belong to other messages. Reads nothing behind them. The first wrong byte is reported as soon as
 * it is there. After MESSAGE, BLANK or INVALID call scanner_reset before the next one. */
enum scan_status scanner_run(struct scanner *scanner, const char *message, size_t len);

/* A multiline message ends where the bytes given to scanner_run end, which returned SCAN_MORE:
 * SCAN_MESSAGE, or SCAN_INVALID if it is not whole. */
enum scan_status scanner_end(struct scanner *scanner);

/* The reason of SCAN_INVALID in words ("invalid UTF-8"). Static. */
const char *scan_error_text(enum scan_error error);

#endif
