#include "build_config.h"

#include "router/numbers.h"

#include <string.h>

void numbers_replace_id(struct decision *decision, const struct scan_field *field, uint32_t number)
{
    char *text = decision->numbers[decision->edit_count];

    decision_replace(decision, field, pending_number_id(text, number).text);
}

void numbers_replace_token(struct decision *decision, const struct scan_field *field,
                           uint32_t number, uint32_t which)
{
    char *digits = decision->numbers[decision->edit_count] + 1;
    struct slice text;

    if (which < NUMBERS_THIRD_TOKEN) {
        numbers_replace_id(decision, field, number + which);
        return;
    }
    text = pending_number_id(digits, number).text;
    digits[PENDING_DIGITS - text.len - 1] = '"';
    memcpy(digits + PENDING_DIGITS, "#\"", 2);
    decision_replace(decision, field, slice_of(text.data - 1, text.len + 3));
}
