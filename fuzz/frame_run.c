#include "build_config.h"

#include "frame_run.h"

#include <stdarg.h>

#include "http/head.h"
#include "json/message.h"

#define LEFT_MAX (HTTP_HEAD_MAX + 256) /* bytes that are kept beside a body */

/* --- events --- */

void frame_run_add_bytes(struct frame_run *run, struct slice bytes)
{
    char *events = realloc(run->events, run->events_len + bytes.len + 1);

    EXPECT(events != NULL, "memory");
    if (bytes.len > 0)
        memcpy(events + run->events_len, bytes.data, bytes.len);
    run->events = events;
    run->events_len += bytes.len;
    run->events[run->events_len] = '\0';
}

void frame_run_add(struct frame_run *run, const char *format, ...)
{
    char text[400];
    va_list arguments;
    int len;

    va_start(arguments, format);
    len = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    EXPECT(len >= 0 && (size_t)len < sizeof text, "%s", format);
    frame_run_add_bytes(run, slice_of(text, (size_t)len));
}

void frame_run_add_body(struct frame_run *run, struct slice body, bool cut)
{
    const struct scan_fields *fields = &run->scanner.fields;
    struct message_scratch scratch;
    struct message_id id;

    if (!cut) {
        frame_run_add_bytes(run, body);
        frame_run_add(run, " %d %d %d;\n", (int)fields->id.type, (int)fields->method.type,
                      (int)fields->session_id.type);
        return;
    }
    EXPECT(fields->oddities & SCAN_CUT, "not marked");
    frame_run_add(run, "cut %d %d %d %d ", (int)message_read_id(&id, body, &fields->id, &scratch),
                  fields->has_result, fields->has_error, fields->method.type == SCAN_STRING);
    frame_run_add_bytes(run, id.text);
    frame_run_add(run, ";\n");
}

/* --- the stream --- */

/* Exchanges the input for one without its first bytes and with others after it. */
static void set_input(struct frame_run *run, size_t consumed, struct slice more)
{
    size_t kept = run->len - consumed;
    char *input;

    EXPECT(consumed <= run->len, "%zu of %zu bytes", consumed, run->len);
    input = malloc(kept + more.len > 0 ? kept + more.len : 1);
    EXPECT(input != NULL, "memory");
    if (kept > 0)
        memcpy(input, run->input + consumed, kept);
    if (more.len > 0)
        memcpy(input + kept, more.data, more.len);
    free(run->input);
    run->input = input;
    run->len = kept + more.len;
}

static void wait_for_more(struct frame_run *run)
{
    if (run->state.cut) {
        size_t kept = run->framing->cut(&run->state, run->input, run->len);

        EXPECT(kept <= run->len && kept <= SCANNER_KEPT_MAX + 256, "%zu bytes", kept);
        run->len = kept;
    }
}

/* A whole frame that is longer than those that are kept came at once. */
static void take_whole(struct frame_run *run, struct slice frame, bool cut)
{
    if (run->max_long > 0 && frame.len > run->max_long && !cut) {
        run->state.check->mark(run->state.check_state, true);
        cut = true;
    }
    EXPECT(cut || run->max_long > 0 || frame.len <= run->max_body || frame.len <= HTTP_HEAD_MAX,
           "%zu bytes", frame.len);
    run->whole(run, frame, cut);
}

/* False: the stream has to continue first. */
static bool step(struct frame_run *run)
{
    struct frame frame = {.consumed = 0};
    bool cut = run->state.cut;
    size_t before = run->len;
    enum frame_status status = run->framing->next(&run->state, slice_of(run->input, run->len),
                                                  &frame);

    EXPECT(status == FRAME_WAIT || frame.consumed <= run->len || status == FRAME_REWRITE,
           "consumed %zu of %zu", frame.consumed, run->len);
    switch (status) {
    case FRAME_WAIT:
        wait_for_more(run);
        return false;
    case FRAME_WHOLE:
        take_whole(run, slice_of(run->input, frame.consumed), cut);
        break;
    case FRAME_REWRITE:
        run->len = run->framing->rewrite(&run->state, run->input, run->len);
        EXPECT(run->len <= before, "%zu bytes of %zu", run->len, before);
        frame.consumed = 0;
        break;
    case FRAME_NOTED:
        run->noted(run);
        break;
    case FRAME_REFUSED:
    case FRAME_MALFORMED:
        EXPECT(frame.problem != NULL && frame.problem[0] != '\0', "no words for it");
        EXPECT(!run->state.begun || run->state.reported, "it will be reported again");
        run->bad(run, &frame, status == FRAME_MALFORMED);
        run->ended = status == FRAME_MALFORMED;
        break;
    default:
        EXPECT(status == FRAME_SKIP, "status %d", (int)status);
    }
    run->idle = frame.consumed > 0 || run->len < before ? 0 : run->idle + 1;
    EXPECT(run->idle < 10 + 2 * before, "no progress");
    set_input(run, frame.consumed, slice_of(NULL, 0));
    return !run->ended;
}

void frame_run_read(struct frame_run *run, struct slice stream, struct cutter *cutter)
{
    memset(&run->state, 0x5A, sizeof run->state);
    run->state.check = &json_body_check;
    run->state.check_state = &run->scanner;
    run->state.max_body = run->max_body;
    run->state.max_long = run->max_long;
    run->state.wary = false;
    run->state.inner = NULL;
    run->state.reader = run->reader;
    run->framing->reset(&run->state);
    frame_run_add(run, "begin\n");
    while (run->read < stream.len && !run->ended) {
        size_t left = stream.len - run->read;
        size_t piece = cutter != NULL ? cutter_next(cutter, left) : left;

        set_input(run, 0, slice_of(stream.data + run->read, piece));
        run->read += piece;
        run->idle = 0;
        while (step(run))
            ;
    }
    EXPECT(run->ended || run->len <= LEFT_MAX + run->max_body + run->max_long, "%zu bytes are kept",
           run->len);
    if (!run->ended)
        frame_run_add(run, "end %d %d\n", run->state.begun,
                      run->state.begun && run->state.reported);
}

void frame_run_compare(struct frame_run *whole, struct frame_run *cut)
{
    if (fuzz_traces())
        printf("%s", whole->events);
    EXPECT(whole->events_len == cut->events_len &&
               memcmp(whole->events, cut->events, whole->events_len) == 0,
           "other events:\n%s\nin pieces:\n%s", whole->events, cut->events);
    free(whole->events);
    free(cut->events);
    free(whole->input);
    free(cut->input);
}
