/* An endpoint without a descriptor: it records what it is given. */
#ifndef CHECK_RECORDING_ENDPOINT_H
#define CHECK_RECORDING_ENDPOINT_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "bus/deliver.h"

struct recording_endpoint {
    struct endpoint endpoint;
    char *text; /* the messages with their edits applied, NUL-terminated */
    size_t len;
    int deliveries, kept, pauses, resumes, closes;
    struct delivery_subject subject; /* of the last delivery; its `about` is dead, and is in: */
    char about[32];
    int refuse; /* this number of deliveries fails for want of memory */
};

static inline struct recording_endpoint *recording_endpoint_of(struct endpoint *endpoint)
{
    return list_entry(endpoint, struct recording_endpoint, endpoint);
}

static inline int recording_deliver(struct endpoint *to, const struct delivery *delivery)
{
    struct recording_endpoint *recorder = recording_endpoint_of(to);
    size_t len = splice_len(delivery->bytes.len, delivery->edits, delivery->edit_count);

    if (recorder->refuse > 0) {
        recorder->refuse--;
        return STDIO_BUS_ERR;
    }
    recorder->text = realloc(recorder->text, recorder->len + len + 1);
    ck_assert_ptr_nonnull(recorder->text);
    splice_write(recorder->text + recorder->len, delivery->bytes.data, 0, delivery->bytes.len,
                 delivery->edits, delivery->edit_count);
    recorder->len += len;
    recorder->text[recorder->len] = '\0';
    recorder->subject = delivery_subject(delivery);
    snprintf(recorder->about, sizeof recorder->about, "%.*s",
             recorder->subject.about != NULL ? (int)recorder->subject.about->text.len : 0,
             recorder->subject.about != NULL ? recorder->subject.about->text.data : "");
    recorder->deliveries++;
    recorder->kept += delivery->keep;
    return STDIO_BUS_OK;
}

static inline void recording_pause(struct endpoint *endpoint)
{
    recording_endpoint_of(endpoint)->pauses++;
}

static inline void recording_resume(struct endpoint *endpoint)
{
    recording_endpoint_of(endpoint)->resumes++;
}

static inline void recording_close(struct endpoint *endpoint)
{
    recording_endpoint_of(endpoint)->closes++;
}

static inline void recording_too_long(struct endpoint *endpoint, const struct message *message)
{
    (void)endpoint, (void)message;
}

static inline void recording_endpoint_init(struct recording_endpoint *recorder)
{
    static const struct endpoint_ops ops = {
        .deliver = recording_deliver,
        .pause = recording_pause,
        .resume = recording_resume,
        .close = recording_close,
        .watch_hangup = recording_pause,
        .too_long = recording_too_long,
    };

    memset(recorder, 0, sizeof *recorder);
    recorder->endpoint.ops = &ops;
}

static inline void recording_endpoint_free(struct recording_endpoint *recorder)
{
    free(recorder->text);
}

#endif
