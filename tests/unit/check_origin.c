#include "build_config.h"

#include "transport/origin.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "suite.h"

static struct sockaddr_storage address_of(const char *host, uint16_t port)
{
    struct sockaddr_storage storage;
    struct sockaddr_in *v4 = (struct sockaddr_in *)&storage;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&storage;

    memset(&storage, 0, sizeof storage);
    if (inet_pton(AF_INET, host, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
    } else {
        ck_assert_int_eq(inet_pton(AF_INET6, host, &v6->sin6_addr), 1);
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
    }
    return storage;
}

TEST(mapped_address_is_the_ipv4_one)
{
    struct sockaddr_storage storage = address_of("::ffff:127.0.0.1", 80);
    const struct sockaddr *address = (const struct sockaddr *)&storage;
    char text[ADDRESS_TEXT_MAX];

    ck_assert_str_eq(address_text(text, sizeof text, address), "127.0.0.1:80");
    ck_assert(address_is_loopback(address));
    storage = address_of("::ffff:10.0.0.1", 80);
    ck_assert_str_eq(address_text(text, sizeof text, address), "10.0.0.1:80");
    ck_assert(!address_is_loopback(address));
}

static const struct {
    const char *one, *other;
    bool equal;
} origins[] = {
    {"10.0.0.1", "10.0.0.1", true},
    {"10.0.0.1", "::ffff:10.0.0.1", true},
    {"10.0.0.1", "10.0.0.2", false},
    {"::ffff:10.0.0.1", "::ffff:10.0.0.2", false},
    {"2001:db8::1", "2001:db8::1", true},
    {"2001:db8::1", "2001:db8::2:0:0:2", true},
    {"2001:db8::1", "2001:db8:0:1::1", false},
    {"fd00::1", "fd00::2", true},
    {"fe80::1", "fe80::1", true},
    {"fe80::1", "fe80::2", false},
    {"::1", "127.0.0.1", false},
    {"::1", "::2", false},
};

/* Ports do not count. The addresses of an IPv6 network of 64 bits are those of one host, but for
 * link-local ones. */
TEST_ROWS(origins_of_one_address_are_equal, COUNT(origins))
{
    struct sockaddr_storage one = address_of(origins[row].one, 1111),
                            other = address_of(origins[row].other, 2222);
    struct origin a, b;

    origin_of_socket(&a, -1, (const struct sockaddr *)&one);
    origin_of_socket(&b, -1, (const struct sockaddr *)&other);
    ck_assert_int_eq(origin_equal(&a, &b), origins[row].equal);
    origin_of_stdio(&b);
    ck_assert(!origin_equal(&a, &b));
}

TEST(origins_of_one_user_are_equal)
{
    const struct sockaddr address = {.sa_family = AF_UNIX};
    struct origin a, b, unknown;
    int ends[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    origin_of_socket(&a, ends[0], &address);
    origin_of_socket(&b, ends[1], &address);
    origin_of_socket(&unknown, -1, &address);
    ck_assert(origin_equal(&a, &b));
    ck_assert(!unknown.has_credentials);
    ck_assert_ptr_nonnull(strstr(unknown.text, "an unknown user"));
    ck_assert_int_eq(origin_equal(&a, &unknown), !a.has_credentials);
}
