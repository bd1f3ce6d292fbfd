/* RMP v0, section 5: subscribers that do not read. */
#include "build_config.h"

#include "harness.h"
#include "rmp.h"

int main(void)
{
    return harness_main("RMP: slow subscribers");
}
