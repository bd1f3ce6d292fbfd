/* Turns: of origins first, then of the peers of each. */
#include "build_config.h"

#include "router_fixture.h"

static struct peer_origin flood, honest;

static struct peer *add_client_from(struct peer_origin *origin)
{
    struct peer *client = &clients[client_count];

    if (origin->clients == 0)
        peer_origin_init(origin);
    client->origin = origin;
    return add_client();
}

/* However many clients of another origin wait: one of each origin, in turns. */
TEST(room_in_a_queue_goes_to_origins_in_turns)
{
    struct peer *hogs[5], *client;

    add_pool("a", 1);
    set_full(&workers[0], true);
    for (int i = 0; i < 5; i++) {
        hogs[i] = add_client_from(&flood);
        expect_hold(give(hogs[i], notification()));
    }
    client = add_client_from(&honest);
    expect_hold(give(client, notification()));
    set_full(&workers[0], false);
    expect_released(hogs[0]);
    expect_released(client);
    expect_released(hogs[1]);
    client_gone(hogs[2]); /* leads those that are left */
    expect_released(hogs[3]);
    expect_released(hogs[4]);
    expect_none_released();
}

/* The same for an id that many want. */
TEST(free_id_goes_to_origins_in_turns)
{
    struct peer *hogs[4], *client;

    add_pool("a", 1);
    for (int i = 0; i < 4; i++)
        hogs[i] = add_client_from(&flood);
    client = add_client_from(&honest);
    expect_forward(give(hogs[0], request("1")), &workers[0]);
    for (int i = 1; i < 4; i++)
        expect_hold_for_id(give(hogs[i], request("1")));
    expect_hold_for_id(give(client, request("1")));
    expect_forward(give(&workers[0], response("1")), hogs[0]);
    expect_released(hogs[1]);
    expect_forward(retry(hogs[1]), &workers[0]);
    expect_forward(give(&workers[0], response("1")), hogs[1]);
    expect_released(client);
    expect_forward(retry(client), &workers[0]);
    expect_forward(give(&workers[0], response("1")), client);
    expect_released(hogs[2]);
    expect_none_released();
}

/* Such as those that waited for memory. */
TEST(peers_that_are_released_together_take_turns)
{
    struct peer *hogs[3], *client;
    struct list starved;

    list_init(&starved);
    for (int i = 0; i < 3; i++) {
        hogs[i] = add_client_from(&flood);
        waiting_hold(&starved, hogs[i]);
    }
    client = add_client_from(&honest);
    waiting_hold(&starved, client);
    waiting_release_all(&router, &starved);
    router_move_client(&router, hogs[1], &honest);
    expect_released(hogs[0]);
    expect_released(client);
    expect_released(hogs[2]);
    expect_released(hogs[1]);
    expect_none_released();
}

FIXTURE(set_up, tear_down)
