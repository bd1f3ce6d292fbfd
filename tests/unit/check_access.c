#include "build_config.h"

#include <grp.h>
#include <pwd.h>

#include "config_fixture.h"
#include "transport/origin.h"

static void write_config(char *to, size_t size, const char *members)
{
    snprintf(to, size,
             "{\"listen\": {%s},\n"
             "\"pools\": [{\"id\": \"a\", \"command\": \"/bin/cat\", \"instances\": 1}]}",
             members);
}

static void expect_listen(const char *members, const char *expected)
{
    char text[1024];

    write_config(text, sizeof text, members);
    expect_text(text, expected);
}

TEST(owner_alone_may_connect_by_default)
{
    expect_listen("", "");
    ck_assert_uint_eq(config.listen.access.mode, 0600);
    ck_assert(!config.listen.access.has_group);
    ck_assert(!access_is_set(&config.listen.access));
    ck_assert(access_allows(&config.listen.access, 12345));
}

static const struct {
    const char *text;
    mode_t mode;
} modes[] = {{"0600", 0600}, {"660", 0660}, {"0666", 0666}, {"00777", 0777}};

TEST_ROWS(mode_is_octal, COUNT(modes))
{
    char members[64];

    snprintf(members, sizeof members, "\"mode\": \"%s\"", modes[row].text);
    expect_listen(members, "");
    ck_assert_uint_eq(config.listen.access.mode, modes[row].mode);
    ck_assert(access_is_set(&config.listen.access));
}

TEST(group_is_a_name_or_a_number)
{
    const struct group *group = getgrgid(getegid());
    char members[128];

    expect_listen("\"group\": 4294967294", "");
    ck_assert(config.listen.access.has_group);
    ck_assert_uint_eq(config.listen.access.group, 4294967294);
    if (group == NULL)
        return;
    snprintf(members, sizeof members, "\"group\": \"%s\"", group->gr_name);
    expect_listen(members, "");
    ck_assert(config.listen.access.has_group);
    ck_assert_uint_eq(config.listen.access.group, getegid());
}

TEST(users_are_names_or_numbers)
{
    const struct passwd *user = getpwuid(geteuid());
    char members[128];

    if (!ORIGIN_HAS_CREDENTIALS) {
        expect_listen("\"allow_uids\": [1]",
                      "E c.json:1:27: listen.allow_uids: this system does not report which user "
                      "connects\n");
        return;
    }
    snprintf(members, sizeof members, "\"allow_uids\": [54321, \"%s\"]",
             user != NULL ? user->pw_name : "root");
    expect_listen(members, "");
    ck_assert_uint_eq(config.listen.access.uid_count, 2);
    ck_assert(access_allows(&config.listen.access, 54321));
    ck_assert(access_allows(&config.listen.access, user != NULL ? geteuid() : 0));
    ck_assert(!access_allows(&config.listen.access, 12345));
}

static const struct {
    const char *members, *problem;
} faults[] = {
    {"\"mode\": 432",
     "listen.mode: must be a string of octal digits, as in \"0660\", not a number"},
    {"\"mode\": \"\"", "listen.mode: must be octal digits from \"0600\" to \"0777\""},
    {"\"mode\": \"0680\"", "listen.mode: must be octal digits from \"0600\" to \"0777\""},
    {"\"mode\": \"1777\"", "listen.mode: must be octal digits from \"0600\" to \"0777\""},
    {"\"mode\": \"0060\"", "listen.mode: must be octal digits from \"0600\" to \"0777\""},
    {"\"mode\": \"77777777777777777777\"",
     "listen.mode: must be octal digits from \"0600\" to \"0777\""},
    {"\"mode\": \"u=rw\"", "listen.mode: must be octal digits from \"0600\" to \"0777\""},
    {"\"group\": \"no such group\"", "listen.group: there is no group \"no such group\""},
    {"\"group\": -1", "listen.group: must be a name, or a number from 0 to 4294967294"},
    {"\"group\": 4294967295", "listen.group: must be a name, or a number from 0 to 4294967294"},
    {"\"group\": true",
     "listen.group: must be a name, or a number from 0 to 4294967294, not a boolean"},
    {"\"allow_uids\": 1", "listen.allow_uids: must be an array of user ids, not a number"},
    {"\"allow_uids\": []", "listen.allow_uids: must contain at least one user"},
    {"\"allow_uids\": [1.5]",
     "listen.allow_uids[0]: must be a name, or a number from 0 to 4294967294"},
    {"\"allow_uids\": [1, \"no such user\"]",
     "listen.allow_uids[1]: there is no user \"no such user\""},
};

TEST_ROWS(faults_are_reported, COUNT(faults))
{
    char document[512];
    const char *text;

    if (!ORIGIN_HAS_CREDENTIALS && strstr(faults[row].members, "uids") != NULL)
        return;
    write_config(document, sizeof document, faults[row].members);
    ck_assert_int_eq(config_read_text(&config, document, strlen(document), "c.json", note_report,
                                      reports),
                     STDIO_BUS_EINVAL);
    text = strstr(reports, "listen.");
    ck_assert_ptr_nonnull(text);
    ck_assert_int_eq(strncmp(text, faults[row].problem, strlen(faults[row].problem)), 0);
    expect_nothing();
}

FIXTURE(NULL, free_config)
