#include "build_config.h"

#include "rmp/peer.h"

static bool same_letters(struct slice name, const char *kind)
{
    size_t i;

    for (i = 0; i < name.len && kind[i] != '\0' && (name.data[i] | 0x20) == kind[i]; i++)
        ;
    return i == name.len && kind[i] == '\0';
}

bool rmp_kind_read(struct slice name, enum rmp_kind *kind)
{
    static const char *const names[] = {
        [RMP_KIND_AGENT] = "agent", [RMP_KIND_UI] = "ui", [RMP_KIND_TUI] = "tui"};

    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (same_letters(name, names[i])) {
            *kind = (enum rmp_kind)i;
            return true;
        }
    }
    return false;
}
