#include "build_config.h"

#include "orders.h"

#include <stdio.h>
#include <string.h>

#include "chaos.h"

static void add(struct wire_header *header, char order, uint32_t number)
{
    size_t len = strlen(header->orders);

    snprintf(header->orders + len, sizeof header->orders - len, "%s%c%u", len > 0 ? "," : "", order,
             number);
}

size_t orders_huge(struct chaos *chaos)
{
    bool calm = chaos->phase != PHASE_STORM;

    if (chaos->now_ms < chaos->next_huge_ms)
        return 300;
    chaos->next_huge_ms = chaos->now_ms + dice_between(&chaos->dice, 10, calm ? 400 : 150);
    return dice_between(&chaos->dice, 100000, MESSAGE_MAX);
}

static void order_delay(struct chaos *chaos, struct wire_header *header)
{
    struct dice *dice = &chaos->dice;

    if (dice_chance(dice, 400))
        return;
    if (chaos_calm(chaos))
        add(header, 'd', dice_below(dice, 20));
    else if (dice_chance(dice, 5))
        add(header, 'u', 0);
    else if (dice_chance(dice, 20))
        add(header, 'd', dice_between(dice, 300, 1500));
    else if (dice_chance(dice, 150))
        add(header, 'd', dice_between(dice, 40, 300));
    else
        add(header, 'd', dice_below(dice, 40));
}

static void order_size(struct chaos *chaos, struct wire_header *header)
{
    struct dice *dice = &chaos->dice;

    if (dice_chance(dice, 850))
        return;
    if (dice_chance(dice, 750))
        add(header, 's', dice_between(dice, 200, 4000));
    else if (dice_chance(dice, 800))
        add(header, 's', dice_between(dice, 4000, 65536));
    else
        add(header, 's', (uint32_t)orders_huge(chaos));
}

static void order_talk(struct chaos *chaos, struct wire_header *header)
{
    struct dice *dice = &chaos->dice;
    bool storm = chaos->phase == PHASE_STORM;

    if (dice_chance(dice, 150))
        add(header, 'n', dice_between(dice, 1, 4));
    if (dice_chance(dice, 30))
        add(header, 'N', dice_between(dice, 1000, 60000));
    if (storm && dice_chance(dice, 3))
        add(header, 'n', 200);
    if (dice_chance(dice, 50))
        add(header, 'q', dice_between(dice, 1, 2));
}

static void order_harm(struct chaos *chaos, struct wire_header *header)
{
    struct dice *dice = &chaos->dice;

    if (chaos->phase != PHASE_STORM || chaos->now_ms < chaos->next_harm_ms)
        return;
    chaos->next_harm_ms = chaos->now_ms + dice_between(dice, 20, chaos->mood.harm_ms);
    chaos->stats.harms++;
    if (dice_chance(dice, 400))
        add(header, 'z',
            dice_chance(dice, 100) ? dice_between(dice, 2000, 4000) : dice_between(dice, 20, 800));
    else if (dice_chance(dice, 400))
        add(header, "ttwbB"[dice_below(dice, 5)], dice_below(dice, 2) * 1500);
    else
        add(header, "gcixXkp"[dice_below(dice, 7)], 0);
}

/* Messages of bound workers outside sessions. */
static void order_bound_talk(struct chaos *chaos, struct wire_header *header, bool may_make_session)
{
    struct dice *dice = &chaos->dice;

    if (wire_session_in_params && may_make_session && dice_chance(dice, 50))
        add(header, 'S', 0);
    if (header->token[0] != '\0')
        add(header, 'o', dice_below(dice, 4));
    if (dice_chance(dice, 60) && chaos_binds(chaos))
        add(header, 'e', dice_chance(dice, 900) ? 150 : 5000);
    if (dice_chance(dice, 30) && chaos_binds(chaos))
        add(header, 'Q', 150);
}

void orders_write(struct chaos *chaos, struct wire_header *header, bool in_session, bool unique,
                  bool may_make_session)
{
    header->orders[0] = '\0';
    if (header->kind == WIRE_REQUEST) {
        order_delay(chaos, header);
        order_size(chaos, header);
    }
    if (in_session)
        order_talk(chaos, header);
    order_bound_talk(chaos, header, header->kind == WIRE_REQUEST && may_make_session);
    if (unique && header->kind == WIRE_REQUEST && chaos->phase == PHASE_STORM &&
        dice_chance(&chaos->dice, 20))
        add(header, 'v', 0);
    order_harm(chaos, header);
}
