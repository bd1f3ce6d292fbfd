#include "build_config.h"

#include "router/numbers.h"

void numbers_replace_id(struct decision *decision, const struct scan_field *field, uint32_t number)
{
    char *text = decision->numbers[decision->edit_count];

    decision_replace(decision, field, pending_number_id(text, number).text);
}

void numbers_replace_token(struct decision *decision, const struct scan_field *field,
                           uint32_t number, uint32_t which)
{
    char *text = decision->numbers[decision->edit_count];
    size_t len;

    if (which < NUMBERS_THIRD_TOKEN) {
        numbers_replace_id(decision, field, number + which);
        return;
    }
    len = pending_number_id(text + 1, number).text.len;
    text[0] = '"';
    text[1 + len] = '#';
    text[2 + len] = '"';
    decision_replace(decision, field, slice_of(text, len + 3));
}
