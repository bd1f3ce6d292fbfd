/* The framing of the RMP socket: a length of four bytes, and a payload of either dialect, which its
 * first byte tells: R begins an RMP frame, { and " a JSON command. */
#ifndef STDIO_BUS_RMP_FRAMING_H
#define STDIO_BUS_RMP_FRAMING_H

#include "base/archive.h"
#include "framing/frame.h"
#include "rmp/frame.h"

/* The framing's check_state: what is known of the current frame. The owner sets `rules` before the
 * first byte comes, and reads the rest when a frame is whole, refused or malformed. It stays as it
 * is until the framing is asked for the next frame, also while the connection is paused. */
struct rmp_reader {
    const struct rmp_rules *rules;
    bool is_command;          /* the payload is a JSON command */
    bool has_header;          /* `header` is set */
    enum rmp_error error;     /* of a frame that was refused, or that was malformed unless it is a
                               * command; RMP_OK: it was late or cut */
    struct rmp_header header; /* of an RMP frame */
};

/* FRAME_WHOLE is prefix and payload together: the bytes of a message as they are on the wire. Of an
 * RMP frame, the head was judged good (rmp_frame_judge_head), the body was not looked at; a JSON
 * command was not looked at.
 *
 * FRAME_REFUSED (fault TYPE, `problem` the name of the error): the head is bad, the rest is skipped
 * without being kept, and the stream continues. FRAME_MALFORMED (fault SYNTAX): the stream cannot
 * continue (rmp_frame_goes_on); or the payload is neither dialect's, or a command is too long:
 * then reader->error is RMP_INVALID_MAGIC, or is_command is set.
 *
 * state->check is not used. state->max_body, the connection's limit, is to be rmp_framing_max. */
extern const struct framing framing_rmp;

/* The longest frame that is kept, of either dialect, with its prefix. */
size_t rmp_framing_max(const struct rmp_rules *rules);

/* Saves the reader, or loads it. Its rules are set, and `state`, of its framing, is loaded already.
 * `at_hand`: the length of the whole frame that waits for its owner, or 0. */
void rmp_reader_archive(struct archive *archive, struct rmp_reader *reader,
                        const struct framing_state *state, size_t at_hand);

#endif
