#include "build_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handshake.h"
#include "journal.h"

/* Copies what stands between `before` and `end`; false: nothing does. */
static bool take(char *to, size_t size, const char *line, size_t len, const char *before, char end)
{
    const char *at = memmem(line, len, before, strlen(before)), *stop;

    if (at == NULL)
        return false;
    at += strlen(before);
    stop = memchr(at, end, (size_t)(line + len - at));
    if (stop == NULL || (size_t)(stop - at) >= size)
        return false;
    memcpy(to, at, (size_t)(stop - at));
    to[stop - at] = '\0';
    return true;
}

bool handshake_answer(struct text *out, struct record *record, const char *line, size_t len)
{
    char method[40], id[60] = "", name[40] = "";
    size_t start = out->len;

    *record = (struct record){.type = RECORD_HANDSHAKE};
    if (!take(method, sizeof method, line, len, "\"method\":\"", '"'))
        return false;
    take(id, sizeof id, line, len, "\"id\":", ',');
    if (strcmp(method, "notifications/initialized") == 0) {
        record->detail = HANDSHAKE_CONFIRMED;
        return true;
    }
    if (strcmp(method, "initialize") == 0 &&
        take(name, sizeof name, line, len, "\"name\":\"", '"')) {
        record->detail = HANDSHAKE_ASKED;
        record->serial.number = strtoull(name, NULL, 16);
        text_printf(out,
                    "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"protocolVersion\":\"2025-06-18\","
                    "\"capabilities\":{\"tools\":{\"listChanged\":true}},\"serverInfo\":{"
                    "\"name\":\"chaos\",\"version\":\"1\",\"for\":\"%s\"}}}\n",
                    id, name);
    } else if (strcmp(method, "tools/list") == 0) {
        record->detail = HANDSHAKE_LISTED;
        text_printf(out, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"tools\":[]}}\n", id);
    } else if (strcmp(method, "logging/setLevel") == 0 &&
               take(name, sizeof name, line, len, "\"level\":\"", '"')) {
        for (record->detail = 1; record->detail < HANDSHAKE_LEVELS - 1; record->detail++) {
            if (strcmp(name, handshake_levels[record->detail]) == 0)
                break;
        }
        text_printf(out, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n", id);
    } else {
        return false;
    }
    wire_frame(out, start);
    return true;
}
