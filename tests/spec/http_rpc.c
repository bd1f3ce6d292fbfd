#include "build_config.h"
#include "harness.h"
int main(void)
{
    return harness_main("http_rpc");
}
