// A host in C++17: the header is one of C++, and the bus is owned by a smart pointer.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "stdio_bus_embed.h"
#include "stdio_bus_event_loop.h"

struct Destroy {
    void operator()(stdio_bus_t *bus) const { stdio_bus_destroy(bus); }
};

struct Host {
    std::vector<std::string> messages;
    std::unique_ptr<stdio_bus_t, Destroy> bus;

    explicit Host(const std::string &config)
    {
        stdio_bus_options_t options{};

        options.config_json = config.c_str();
        options.on_message = [](stdio_bus_t *, const char *msg, size_t len, void *user_data) {
            static_cast<Host *>(user_data)->messages.emplace_back(msg, len);
        };
        options.user_data = this;
        options.log_level = 3;
        bus.reset(stdio_bus_create(&options));
    }

    bool send(const std::string &message)
    {
        return stdio_bus_ingest(bus.get(), message.data(), message.size()) == STDIO_BUS_OK;
    }
};

int main()
{
    const std::string message = R"({"method":"note","params":[1,2]})";
    Host host(R"({"pools":[{"id":"cat","command":"cat","instances":2}]})");

    if (!host.bus || stdio_bus_start(host.bus.get()) != STDIO_BUS_OK || !host.send(message) ||
        !host.send(message))
        return 1;
    while (host.messages.size() < 2 && stdio_bus_step(host.bus.get(), -1) >= 0)
        continue;
    return host.messages == std::vector<std::string>{message, message} ? 0 : 1;
}
