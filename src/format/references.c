#include "build_config.h"

#include "format/references.h"

#include <string.h>

#include "format/byte_runs.h"
#include "format/json_string.h"

typedef const unsigned char *position;

/* The objects whose keys are looked at. */
enum place { AT_TOP, IN_PARAMS, IN_META, IN_RESULT };

static const enum place around[] = {
    [IN_PARAMS] = AT_TOP, [IN_META] = IN_PARAMS, [IN_RESULT] = AT_TOP};

/* What a key's value is: a reference, an object to look into, or nothing of interest. */
enum { INTO_PARAMS = REFERENCES_COUNT, INTO_META, INTO_RESULT, NOTHING };

struct walk {
    position start, end;
    struct window marks;
};

#define KEY_MAX sizeof "partialResultToken"

/* Bits are set where a byte is a mark: a quote, a bracket of an object or array, a backslash. But
 * for the quote these are three in a row, where the bit is ignored that tells '{' from '['; so a
 * vertical bar is a mark too. */

#if defined(BYTE_RUNS_SSE2)

static inline uint64_t marks_16(position p)
{
    __m128i bytes = load_block(p), folded = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
    __m128i quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
    /* Moved to where the three are the lowest signed numbers. */
    __m128i moved = _mm_add_epi8(folded, _mm_set1_epi8((char)(0x80 - '{')));
    __m128i others = _mm_cmplt_epi8(moved, _mm_set1_epi8(-128 + 3));

    return (uint64_t)_mm_movemask_epi8(_mm_or_si128(quote, others));
}

#elif defined(BYTE_RUNS_NEON)

static inline uint64_t marks_16(position p)
{
    uint8x16_t bytes = vld1q_u8(p), folded = vorrq_u8(bytes, vdupq_n_u8(0x20));
    uint8x16_t quote = vceqq_u8(bytes, vdupq_n_u8('"'));
    uint8x16_t others = vcleq_u8(vsubq_u8(folded, vdupq_n_u8('{')), vdupq_n_u8(2));

    return lane_bits(vorrq_u8(quote, others));
}

#else

static inline uint64_t marks_16(position p)
{
    uint64_t bits = 0;
    unsigned i;

    for (i = 0; i < 16; i++)
        bits |= (uint64_t)(p[i] == '"' || (unsigned)(p[i] | 0x20) - '{' <= 2) << i;
    return bits;
}

#endif

static inline uint64_t marks_64(position p)
{
    return marks_16(p) | marks_16(p + 16) << 16 | marks_16(p + 32) << 32 | marks_16(p + 48) << 48;
}

/* The next mark, of which there is one. */
static inline position find_mark(struct window *w, position p)
{
    for (;;) {
        uint64_t stops;

        if ((uintptr_t)p >= (uintptr_t)w->behind)
            window_move(w, p, marks_64);
        stops = w->stops >> ((uintptr_t)p - w->base);
        if (stops != 0)
            return p + lowest_bit(stops);
        p = w->behind;
    }
}

/* An even number of backslashes before the quote at p, or none. */
static bool ends_string(position p)
{
    position before = p;

    while (before[-1] == '\\')
        before--;
    return (p - before) % 2 == 0;
}

/* The quote at the end of a string, p being somewhere inside: looking for quotes alone is the
 * fastest. */
static position find_quote(const struct walk *walk, position p)
{
    for (;; p++) {
        p = memchr(p, '"', (size_t)(walk->end - p));
        if (ends_string(p))
            return p;
    }
}

/* The quote at the end of the string whose first character is at p. Most are short and have no
 * mark. */
static inline position string_end(struct walk *walk, position p)
{
    p = find_mark(&walk->marks, p);
    return *p == '"' ? p : find_quote(walk, p);
}

/* Behind the object or array that opens at p. */
static position container_end(struct walk *walk, position p)
{
    unsigned depth = 1;

    for (p++;; p++) {
        p = find_mark(&walk->marks, p);
        if (*p == '"')
            p = string_end(walk, p + 1);
        else if (*p == '{' || *p == '[')
            depth++;
        else if (--depth == 0)
            return p + 1;
    }
}

static position scalar_end(position p)
{
    while (*p > ' ' && *p != ',' && *p != '}' && *p != ']')
        p++;
    return p;
}

/* Between tokens there is nothing else below or at a blank. */
static inline position skip_blanks(position p)
{
    while (*p <= ' ')
        p++;
    return p;
}

/* --- keys --- */

static bool is(struct slice key, const char *name)
{
    return memcmp(key.data, name, key.len) == 0;
}

static unsigned params_key(struct slice key)
{
    switch (key.len) {
    case 2:
        return is(key, "id") ? REFERENCE_ID : NOTHING;
    case 5:
        return is(key, "_meta") ? INTO_META : is(key, "token") ? REFERENCE_TOKEN : NOTHING;
    case 9:
        return is(key, "sessionId")   ? REFERENCE_SESSION
               : is(key, "requestId") ? REFERENCE_REQUEST_ID
                                      : NOTHING;
    case 13:
        return is(key, "progressToken")   ? REFERENCE_PROGRESS_TOKEN
               : is(key, "workDoneToken") ? REFERENCE_WORK_TOKEN
                                          : NOTHING;
    case 18:
        return is(key, "partialResultToken") ? REFERENCE_PARTIAL_TOKEN : NOTHING;
    default:
        return NOTHING;
    }
}

static unsigned key_named(enum place place, struct slice key)
{
    switch (place) {
    case IN_PARAMS:
        return params_key(key);
    case IN_META:
        return key.len == 13 && is(key, "progressToken") ? REFERENCE_META_TOKEN : NOTHING;
    case IN_RESULT:
        return key.len == 9 && is(key, "sessionId") ? REFERENCE_RESULT_SESSION : NOTHING;
    case AT_TOP:
        break;
    }
    if (key.len != 6)
        return NOTHING;
    return is(key, "params") ? INTO_PARAMS : is(key, "result") ? INTO_RESULT : NOTHING;
}

static unsigned escaped_key(enum place place, struct slice key)
{
    char decoded[KEY_MAX]; /* one that is too long is none of ours */

    return key_named(place, slice_of(decoded, json_string_decode(decoded, sizeof decoded, key)));
}

/* What the key means whose quote is at *p, which becomes the first byte of its value. */
static unsigned read_key(struct walk *walk, enum place place, position *p)
{
    position start = *p + 1, mark = find_mark(&walk->marks, start), end = mark;
    struct slice key;

    if (*mark != '"')
        end = find_quote(walk, mark);
    key = slice_of((const char *)start, (size_t)(end - start));
    *p = skip_blanks(end + 1);
    *p = skip_blanks(*p + 1);
    return mark == end ? key_named(place, key) : escaped_key(place, key);
}

/* --- values --- */

static position value_end(struct walk *walk, position p)
{
    if (*p == '"')
        return string_end(walk, p + 1) + 1;
    if (*p == '{' || *p == '[')
        return container_end(walk, p);
    return scalar_end(p);
}

static void note(struct scan_field *field, const struct walk *walk, position p, position end)
{
    field->offset = (size_t)(p - walk->start);
    field->len = (size_t)(end - p);
    field->escaped = false;
    if (*p == '"') {
        field->type = SCAN_STRING;
        field->offset++;
        field->len -= 2;
        field->escaped = memchr(p, '\\', (size_t)(end - p)) != NULL;
    } else if (*p == '-' || is_digit(*p)) {
        field->type = SCAN_NUMBER;
    } else {
        field->type = *p == 'n' ? SCAN_NULL : SCAN_OTHER;
    }
}

/* Bits of what stands in params, in params._meta and in result. */
#define OF_RESULT (1u << REFERENCE_RESULT_SESSION)
#define OF_META (1u << REFERENCE_META_TOKEN)

/* Where a key leads into an object, which takes the place of one before it. */
static enum place enter(struct references *found, unsigned into)
{
    switch (into) {
    case INTO_PARAMS:
        found->present &= OF_RESULT;
        return IN_PARAMS;
    case INTO_META:
        found->present &= ~OF_META;
        return IN_META;
    default:
        found->present &= ~OF_RESULT;
        return IN_RESULT;
    }
}

#define PARAMS_AS_USUAL ",\"params\":{"

/* From p on, which is at the top level and behind a value or the opening brace, to the end of the
 * message. True: there were params. */
static bool walk_from(struct walk *walk, struct references *found, position p)
{
    enum place place = AT_TOP, entered;
    bool params = false;
    position end;
    unsigned what;

    if ((size_t)(walk->end - p) >= sizeof PARAMS_AS_USUAL - 1 &&
        memcmp(p, PARAMS_AS_USUAL, sizeof PARAMS_AS_USUAL - 1) == 0) {
        p += sizeof PARAMS_AS_USUAL - 1;
        place = IN_PARAMS;
        params = true;
    }
    for (;;) {
        p = skip_blanks(p);
        if (*p == ',') {
            p++;
        } else if (*p == '"') {
            what = read_key(walk, place, &p);
            if (what >= INTO_PARAMS && what < NOTHING) {
                params = params || what == INTO_PARAMS;
                entered = enter(found, what);
                if (*p == '{') {
                    place = entered;
                    p++;
                    continue;
                }
            }
            end = value_end(walk, p);
            if (what < REFERENCES_COUNT) {
                note(&found->at[what], walk, p, end);
                found->present |= 1u << what;
            }
            p = end;
        } else if (place == AT_TOP) {
            return params;
        } else {
            place = around[place];
            p++;
        }
    }
}

void references_find(struct references *found, struct slice message, size_t hint)
{
    struct walk walk = {.start = (position)message.data,
                        .end = (position)message.data + message.len};

    found->present = 0;
    window_open(&walk.marks, walk.start, walk.end);
    if (hint > 0 && walk_from(&walk, found, walk.start + hint))
        return;
    found->present = 0;
    window_open(&walk.marks, walk.start, walk.end);
    walk_from(&walk, found, skip_blanks(walk.start) + 1);
}

bool references_may_have_token(struct slice message)
{
    const char *end = message.data + message.len, *p = message.data;

    if (memchr(p, '\\', message.len) != NULL) /* a key could be spelled with it */
        return true;
    while ((p = memchr(p, 'k', (size_t)(end - p))) != NULL) { /* all of them end in "oken" */
        if (p[-1] == 'o' && p[1] == 'e')
            return true;
        p++;
    }
    return false;
}

bool references_string(const struct references *found, enum reference reference,
                       struct slice message, char *to, size_t max, struct slice *text)
{
    const struct scan_field *field = &found->at[reference];

    if (!references_has(found, reference) || field->type != SCAN_STRING)
        return false;
    *text = slice_of(message.data + field->offset, field->len);
    if (field->escaped)
        *text = slice_of(to, json_string_decode(to, max, *text));
    return text->len <= max;
}
