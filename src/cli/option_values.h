/* The table of the options: what each of them does. */
#ifndef STDIO_BUS_CLI_OPTION_VALUES_H
#define STDIO_BUS_CLI_OPTION_VALUES_H

#include "cli/options.h"

#define SEE_HELP "; see stdio_bus --help"

struct parser;

enum option_kind {
    OPTION_OTHER,   /* `apply`, if there is one */
    OPTION_FLAG,    /* no value: a bool becomes true */
    OPTION_PATH,    /* of a file: not empty */
    OPTION_SOCKET,  /* the path of a Unix socket */
    OPTION_SECONDS, /* at most `max`; a long */
    OPTION_WORD     /* one of `words`; stored as its text */
};

struct option_spec {
    const char *name;           /* without the dashes */
    char letter;                /* -h; or '\0' */
    const char *value_name;     /* NULL: takes no value */
    bool may_lack_value;        /* which then follows a '=', */
    bool may_follow;            /* or is the next word, if that is no option */
    bool is_mode;               /* at most one mode is given, */
    bool is_listener;           /* or any number of listeners */
    bool may_repeat;            /* it may be given again */
    bool of_client;             /* for --connect */
    bool of_command;            /* describes the pool of a command */
    bool of_share;              /* says what is shared */
    enum options_action action; /* of an option without a value; ACTION_RUN: unchanged */
    enum option_kind kind;
    size_t at; /* of the member of struct options that has the value */
    long max;
    const char *const *words; /* ends with NULL */
    bool (*apply)(struct parser *parser, const char *option, const char *value);
};

struct parser {
    struct options *options;
    const char *const
        *sockets;              /* options of services without an entry in the table, up to a NULL */
    struct option_spec socket; /* the entry of the last one of them */
    char *problem;
    size_t problem_size;
    uint64_t seen;                        /* one bit per entry of parser_options */
    const struct option_spec *of_client;  /* one for --connect, or NULL */
    const struct option_spec *mode;       /* the option that chose the mode, or NULL */
    const struct option_spec *of_share;   /* one that says what is shared, or NULL */
    const struct option_spec *of_command; /* one that describes the pool of a command, or NULL */
};

/* Ends with an entry without a name. */
extern const struct option_spec parser_options[];

/* The option names a socket that a service brings. */
bool parser_apply_socket(struct parser *parser, const char *option, const char *value);

/* Checks the value, which is NULL where there is none, and stores it. False after parser_fail. */
bool option_take(struct parser *parser, const struct option_spec *spec, const char *value);

/* Writes the problem and returns false. */
bool parser_fail(struct parser *parser, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
