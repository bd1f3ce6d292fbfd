#include "build_config.h"

#include "control/reports.h"

void control_write_event(struct json_text *to, const struct event_report *event)
{
    json_text_literal(to, "{\"jsonrpc\":\"2.0\",\"method\":\"event\",\"params\":");
    row_begin(to, NULL, '{');
    row_number(to, "time_ms", (int64_t)event->epoch_ms);
    row_string(to, "event", event->name);
    row_string(to, "of", event->of);
    if (event->pool != NULL)
        row_string(to, "pool", event->pool);
    if (event->text != NULL)
        row_string(to, "text", event->text);
    row_end(to, '}');
    json_text_literal(to, "}\n");
}
