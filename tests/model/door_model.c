/* SPDX-License-Identifier: MIT */
/*
 * The door under the model checker: guests see what is behind it, the closer sees what they did,
 * and does not wait for ever.
 */
#include "rt/door.h"

#include "model/model.h"

static struct gi_door door;
static int room; /* what is behind the door; gone once it is closed */
static int deeds[MODEL_THREADS_MAX];

static void set_up(void)
{
    MODEL_CHECK(gi_door_init(&door) == 0);
}

static void visit(void)
{
    if (!gi_door_enter(&door)) {
        return;
    }
    model_read(&room);
    model_write(&deeds[model_self()]);
    gi_door_leave(&door);
}

static void visit_twice(void)
{
    visit();
    visit();
}

static void keep(void)
{
    model_write(&room);
    gi_door_open(&door);
    gi_door_close(&door);
    for (unsigned i = 0; i < MODEL_THREADS_MAX; i++) {
        model_read(&deeds[i]);
    }
    model_write(&room);
}

static void check(void)
{
    MODEL_CHECK(door.state.value == GI_DOOR_CLOSED);
    MODEL_CHECK(!gi_door_enter(&door));
}

int main(int argc, char **argv)
{
    static const struct model_scenario scenarios[] = {
        {"a guest", set_up, {keep, visit_twice}, check, 2, 0},
        {"two guests", set_up, {keep, visit, visit}, check, 1, 0},
        {.name = NULL},
    };
    return model_main(argc, argv, scenarios);
}
