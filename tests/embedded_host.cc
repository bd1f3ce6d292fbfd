// embedded_host TEST_WORKER REQUESTS: a host in C++17. The header is one of C++, and the bus is owned
// by an object. Requests in sessions: each gets its own answer, each session keeps its worker.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "stdio_bus_embed.h"
#include "stdio_bus_event_loop.h"

namespace {

constexpr std::size_t sessions = 16, window = 32;

struct Destroy {
    void operator()(stdio_bus_t *bus) const { stdio_bus_destroy(bus); }
};

void require(bool is_true, const std::string &text)
{
    if (!is_true)
        throw std::runtime_error(text);
}

// The text after `start`, up to the end of a number or a string.
std::string_view member(std::string_view message, std::string_view start)
{
    const std::size_t at = message.find(start);

    require(at != message.npos, "an answer lacks a member: " + std::string(message));
    message.remove_prefix(at + start.size());
    return message.substr(0, message.find_first_of(",}\""));
}

class Host {
  public:
    Host(const std::string &config, std::size_t requests) : answered(requests)
    {
        stdio_bus_options_t options{};

        options.config_json = config.c_str();
        options.on_message = [](stdio_bus_t *, const char *msg, size_t len, void *user_data) {
            static_cast<Host *>(user_data)->take({msg, len});
        };
        options.user_data = this;
        options.log_level = 3;
        bus.reset(stdio_bus_create(&options));
        require(bus != nullptr, "the bus cannot be created");
        require(stdio_bus_start(bus.get()) == STDIO_BUS_OK, "the bus cannot be started");
    }

    void run()
    {
        send();
        while (count < answered.size()) {
            require(stdio_bus_step(bus.get(), -1) >= 0, "a step has failed");
            require(problem.empty(), problem);
            send();
        }
    }

  private:
    void send()
    {
        for (; sent < answered.size() && sent - count < window; sent++) {
            const std::string n = std::to_string(sent);
            const std::string message = R"({"id":)" + n + R"(,"sessionId":"s)" +
                                        std::to_string(sent % sessions) +
                                        R"(","method":"echo","params":{"own":"n)" + n + R"("}})";

            require(stdio_bus_ingest(bus.get(), message.data(), message.size()) == STDIO_BUS_OK,
                    "request " + n + " was refused");
        }
    }

    // Called by C: no exception may leave it.
    void take(std::string_view message) noexcept
    {
        try {
            check(message);
        } catch (const std::exception &error) {
            problem = error.what();
        }
    }

    void check(std::string_view message)
    {
        const std::size_t n = std::stoul(std::string(member(message, R"("id":)")));
        const std::string pid(member(message, R"("pid":)"));

        require(n < answered.size() && !answered[n], "an id was answered twice");
        require(member(message, R"("own":")") == "n" + std::to_string(n), "an answer of another");
        require(pids.emplace(n % sessions, pid).first->second == pid, "a session has moved");
        answered[n] = true;
        count++;
    }

    std::vector<bool> answered;
    std::size_t sent = 0, count = 0;
    std::unordered_map<std::size_t, std::string> pids; // by session
    std::string problem;
    std::unique_ptr<stdio_bus_t, Destroy> bus; // goes first
};

} // namespace

int main(int argc, char *argv[])
{
    if (argc != 3)
        return 64;
    try {
        const std::string config = R"({"pools":[{"id":"echo","command":")" + std::string(argv[1]) +
                                   R"(","instances":4}]})";
        Host host(config, std::strtoul(argv[2], nullptr, 10));

        host.run();
    } catch (const std::exception &error) {
        std::fprintf(stderr, "embedded_host: %s\n", error.what());
        return 1;
    }
    std::printf("%s requests in %zu sessions\n", argv[2], sessions);
    return 0;
}
