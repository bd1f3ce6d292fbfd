/* The error taxonomy (RMP 7), in the order in which a frame is judged: the first failure wins. */
#ifndef STDIO_BUS_RMP_ERROR_H
#define STDIO_BUS_RMP_ERROR_H

enum rmp_error {
    RMP_OK,
    RMP_TRUNCATED_HEADER,
    RMP_INVALID_MAGIC,
    RMP_UNSUPPORTED_VERSION,
    RMP_INVALID_HEADER_FLAGS,
    RMP_LENGTH_MISMATCH,
    RMP_BODY_TOO_LARGE,
    RMP_UNKNOWN_SCHEMA,
    RMP_INVALID_TTL,
    RMP_INVALID_EXPIRY,
    RMP_EXPIRED,
    RMP_BODY_DECODE_ERROR,
    RMP_BODY_TYPE_MISMATCH,
    RMP_DUPLICATE,
    RMP_ERROR_COUNT
};

/* The name as the specification spells it: "InvalidMagic". "Ok" for RMP_OK. */
const char *rmp_error_name(enum rmp_error error);

/* One sentence for people, without a period at its end. */
const char *rmp_error_text(enum rmp_error error);

#endif
