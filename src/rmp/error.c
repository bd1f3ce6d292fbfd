#include "build_config.h"

#include "rmp/error.h"

#include "base/assert.h"

static const struct {
    const char *name, *text;
} errors[RMP_ERROR_COUNT] = {
    [RMP_OK] = {"Ok", "no error"},
    [RMP_TRUNCATED_HEADER] = {"TruncatedHeader", "the frame is shorter than its header"},
    [RMP_INVALID_MAGIC] = {"InvalidMagic", "the header does not begin with RMP0"},
    [RMP_UNSUPPORTED_VERSION] = {"UnsupportedVersion",
                                 "header_version is not 0, or header_len is not 64"},
    [RMP_INVALID_HEADER_FLAGS] = {"InvalidHeaderFlags",
                                  "flags, reserved2 or reserved4 is not zero"},
    [RMP_LENGTH_MISMATCH] = {"LengthMismatch", "frame_len is not header_len plus body_len"},
    [RMP_BODY_TOO_LARGE] = {"BodyTooLarge", "body_len exceeds max_body"},
    [RMP_UNKNOWN_SCHEMA] = {"UnknownSchema", "schema_id is not in the registry"},
    [RMP_INVALID_TTL] = {"InvalidTtl", "ttl_ms is 0"},
    [RMP_INVALID_EXPIRY] = {"InvalidExpiry", "created_at_ms plus ttl_ms exceeds 64 bits"},
    [RMP_EXPIRED] = {"Expired", "the message has expired"},
    [RMP_BODY_DECODE_ERROR] = {"BodyDecodeError", "the body is not a valid MsgPack envelope"},
    [RMP_BODY_TYPE_MISMATCH] = {"BodyTypeMismatch",
                                "the body's type is not of the family of schema_id"},
    [RMP_DUPLICATE] = {"Duplicate", "trace_id and msg_id were seen before"},
};

const char *rmp_error_name(enum rmp_error error)
{
    ASSERT(error < RMP_ERROR_COUNT);
    return errors[error].name;
}

const char *rmp_error_text(enum rmp_error error)
{
    ASSERT(error < RMP_ERROR_COUNT);
    return errors[error].text;
}
