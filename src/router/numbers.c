#include "build_config.h"

#include "router/numbers.h"

void numbers_replace_id(struct decision *decision, const struct scan_field *field, uint32_t number)
{
    char *text = decision->numbers[decision->edit_count];

    decision_replace(decision, field, pending_number_id(text, number).text);
}

struct message_id numbers_token(char text[NUMBERS_TOKEN_MAX], uint32_t number, uint32_t which)
{
    struct message_id token;

    if (which < NUMBERS_THIRD_TOKEN)
        return pending_number_id(text, number + which);
    token = pending_number_id(text, number);
    text[PENDING_DIGITS] = '#';
    token.text.len++;
    token.type = ID_STRING;
    return token;
}

void numbers_replace_token(struct decision *decision, const struct scan_field *field,
                           uint32_t number, uint32_t which)
{
    char *start = decision->numbers[decision->edit_count], *digits = start + 1;
    struct slice text;

    if (which < NUMBERS_THIRD_TOKEN) {
        numbers_replace_id(decision, field, number + which);
        return;
    }
    text = numbers_token(digits, number, which).text;
    start[PENDING_DIGITS + 1 - text.len] = '"';
    digits[PENDING_DIGITS + 1] = '"';
    decision_replace(decision, field, slice_of(text.data - 1, text.len + 2));
}
