#include "build_config.h"

#include "config/transport_keys.h"

#include <string.h>

#include "config/pool_mode.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const framings[] = {"ndjson", "length", NULL};
static const char *const protocols[] = {"json", NULL};
static const char *const modes[] = {"stdio", "unix", "tcp", NULL};

static const struct {
    const char *key;
    const char *const *words;
    const char *wanted;
} keys[] = {
    {"framing", framings, "must be \"ndjson\" or \"length\""},
    {"protocol", protocols, "must be \"json\""},
    {"mode", modes, "must be \"stdio\", \"unix\" or \"tcp\""},
};

static void check_member(struct diagnostics *diagnostics, const struct json_value *member)
{
    for (size_t i = 0; i < COUNT(keys); i++) {
        if (!slice_equal(member->key, slice_of(keys[i].key, strlen(keys[i].key))))
            continue;
        if (diagnostics_check_type(diagnostics, member, JSON_STRING, "a string") &&
            pool_mode_word(member, keys[i].words) < 0)
            diagnostics_value(diagnostics, member, "%s", keys[i].wanted);
        return;
    }
    if (!diagnostics_is_comment(member))
        diagnostics_value(diagnostics, member, "unknown key");
}

void transport_keys_check(struct diagnostics *diagnostics, const struct json_value *transport)
{
    const struct json_value *listen = document_member(transport->parent, "listen"), *member;

    if (!diagnostics_check_type(diagnostics, transport, JSON_OBJECT, "an object"))
        return;
    for (member = transport->first; member != NULL; member = member->next)
        check_member(diagnostics, member);
    member = document_member(transport, "framing");
    if (member != NULL && listen != NULL && listen->type == JSON_OBJECT &&
        document_member(listen, "framing") != NULL)
        diagnostics_value(diagnostics, member, "listen.framing is set already");
}

void transport_keys_read(const struct json_value *transport, const struct framing **framing,
                         const char **socket_mode)
{
    const struct json_value *name = document_member(transport, "framing");
    const struct json_value *mode = document_member(transport, "mode");
    int word = mode != NULL ? pool_mode_word(mode, modes) : 0;

    if (name != NULL)
        *framing = framing_named(name->text.data);
    *socket_mode = word > 0 ? modes[word] : NULL;
}
