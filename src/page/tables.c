#include "build_config.h"

#include "page/tables.h"

#include "page/html.h"

#define COLUMNS_MAX 13

struct column {
    const char *key, *title;
    enum html_kind kind;
};

/* A list of the figures; `live`: changes are read out by a screen reader. */
struct table {
    const char *heading; /* before it; NULL: none */
    const char *key, *caption;
    bool live;
    struct column columns[COLUMNS_MAX + 1]; /* the last has no key */
};

/* Before the lines for clients: */
static const struct table first_tables[] = {
    {NULL,
     "errors",
     "Warnings and errors of the last ten minutes",
     true,
     {{"time_ms", "Time (UTC)", HTML_CLOCK},
      {"level", "Level", HTML_TEXT},
      {"of", "Of", HTML_TEXT},
      {"text", "Cause", HTML_TEXT}}},
    {"Shared servers",
     "shared",
     "Daemons",
     false,
     {{"name", "Name", HTML_TEXT},
      {"command", "Command", HTML_TEXT},
      {"pid", "PID", HTML_NUMBER},
      {"state", "State", HTML_TEXT},
      {"state_ms", "For", HTML_MS},
      {"calls", "Calls", HTML_NUMBER},
      {"runs_ms", "Runs for", HTML_MS},
      {"clients", "Clients", HTML_NUMBER},
      {"processes", "Processes", HTML_NUMBER},
      {"memory", "Memory", HTML_BYTES},
      {"directory", "Directory", HTML_TEXT},
      {"version", "Version", HTML_TEXT},
      {"failure", "Does not start", HTML_TEXT}}},
    {NULL,
     "differences",
     "The same command, not shared",
     false,
     {{"names", "Daemons", HTML_TEXT}, {"differs", "What differs", HTML_TEXT}}},
};

static const struct table tables[] = {
    {"Who waits",
     "requests",
     "Requests that wait for an answer",
     false,
     {{"from", "From", HTML_TEXT},
      {"to", "Waits for", HTML_TEXT},
      {"request", "Request", HTML_TEXT},
      {"age_ms", "Since", HTML_MS}}},
    {"What runs",
     "pools",
     "Pools",
     false,
     {{"pool", "Pool", HTML_TEXT},
      {"protocol", "Protocol", HTML_TEXT},
      {"sharing", "Sharing", HTML_TEXT},
      {"running", "Running", HTML_NUMBER},
      {"instances", "Of", HTML_NUMBER},
      {"failed", "Failed", HTML_NUMBER},
      {"clients", "Clients", HTML_NUMBER},
      {"requests", "Requests", HTML_NUMBER},
      {"sessions", "Sessions", HTML_NUMBER},
      {"restarts", "Restarts", HTML_NUMBER},
      {"url", "URL", HTML_TEXT}}},
    {NULL,
     "workers",
     "Workers",
     false,
     {{"worker", "Worker", HTML_NUMBER},
      {"pool", "Pool", HTML_TEXT},
      {"state", "State", HTML_TEXT},
      {"pid", "PID", HTML_NUMBER},
      {"runs_ms", "Runs for", HTML_MS},
      {"clients", "Clients", HTML_NUMBER},
      {"requests", "Requests", HTML_NUMBER},
      {"sessions", "Sessions", HTML_NUMBER},
      {"queue", "Queue", HTML_BYTES},
      {"restarts", "Restarts", HTML_NUMBER},
      {"held_for", "Held for", HTML_TEXT},
      {"held_ms", "Since", HTML_MS}}},
    {NULL,
     "clients",
     "Clients and their sessions of HTTP",
     false,
     {{"client", "Client", HTML_NUMBER},
      {"program", "Program", HTML_TEXT},
      {"kind", "Kind", HTML_TEXT},
      {"peer", "From", HTML_TEXT},
      {"pool", "Pool", HTML_TEXT},
      {"since_ms", "For", HTML_MS},
      {"requests", "Requests", HTML_NUMBER},
      {"sessions", "Sessions", HTML_NUMBER},
      {"queue", "Queue", HTML_BYTES},
      {"held_for", "Held for", HTML_TEXT},
      {"held_ms", "Since", HTML_MS}}},
    {NULL,
     "sessions",
     "Sessions",
     false,
     {{"session", "Session", HTML_TEXT},
      {"client", "Client", HTML_TEXT},
      {"worker", "Worker", HTML_TEXT}}},
};

static const struct column curves[] = {
    {"tenths", "Requests a second", HTML_TENTHS}, {"p50_us", "Half answered within", HTML_US},
    {"p99_us", "99 of 100 within", HTML_US},      {"resident", "Memory", HTML_BYTES},
    {"waiting", "Waiting requests", HTML_NUMBER}, {"clients", "Clients", HTML_NUMBER},
    {"processes", "Processes", HTML_NUMBER},
};

static const struct column state[] = {
    {"version", "version", HTML_TEXT},   {"phase", "", HTML_TEXT},
    {"runs_ms", "for", HTML_MS},         {"pid", "PID", HTML_NUMBER},
    {"clients", "clients", HTML_NUMBER},
};

static void add(struct json_text *to, const char *html)
{
    json_text_literal(to, html);
}

/* --- a table --- */

static void add_row(struct json_text *to, const struct table *table, const struct json_value *row)
{
    add(to, "<tr>");
    for (const struct column *column = table->columns; column->key != NULL; column++) {
        bool is_first = column == table->columns;

        json_text_format(to, is_first ? "<th scope=row class=%c>" : "<td class=%c>", column->kind);
        html_value(to, column->kind, document_member(row, column->key));
        add(to, is_first ? "</th>" : "</td>");
    }
    add(to, "</tr>");
}

/* Wide ones are moved sideways, by keys as well. Nothing, if the figures have no such list. */
static void add_table(struct json_text *to, const struct table *table,
                      const struct json_value *figures)
{
    const struct json_value *list = document_member(figures, table->key),
                            *rows = list != NULL ? document_member(list, table->key) : NULL;

    if (rows == NULL)
        return;
    if (table->heading != NULL)
        json_text_format(to, "<h2>%s</h2>", table->heading);
    json_text_format(to, "<div class=wide tabindex=0 role=region aria-labelledby=c-%s%s>",
                     table->key, table->live ? " aria-live=polite" : "");
    json_text_format(to, "<table id=%s%s><caption id=c-%s>", table->key,
                     rows->first == NULL ? " class=empty" : "", table->key);
    json_text_format(to, "%s <b>", table->caption);
    html_value(to, HTML_NUMBER, document_member(list, "total"));
    add(to, "</b></caption><thead><tr>");
    for (const struct column *column = table->columns; column->key != NULL; column++)
        json_text_format(to, "<th scope=col data-k=%s class=%c>%s</th>", column->key, column->kind,
                         column->title);
    add(to, "</tr></thead><tbody>");
    for (const struct json_value *row = rows->first; row != NULL; row = row->next)
        add_row(to, table, row);
    add(to, "</tbody></table></div>");
}

static void add_tables(struct json_text *to, const struct table *table, size_t count,
                       const struct json_value *figures)
{
    for (; count > 0; count--)
        add_table(to, table++, figures);
}

/* --- the parts of the page --- */

static void add_curves(struct json_text *to, const struct json_value *now)
{
    add(to, "<dl>");
    for (size_t i = 0; i < sizeof curves / sizeof curves[0]; i++) {
        const struct column *curve = &curves[i];
        const struct json_value *value = document_member(now, curve->key);

        if (value == NULL)
            continue;
        json_text_format(to, "<div><dt>%s</dt><dd data-k=%s class=%c>", curve->title, curve->key,
                         curve->kind);
        html_value(to, curve->kind, value);
        add(to, "</dd><svg viewBox=\"0 0 59 20\" preserveAspectRatio=none aria-hidden=true>"
                "<polyline/></svg></div>");
    }
    add(to, "</dl>");
}

static void add_state(struct json_text *to, const struct json_value *status)
{
    add(to, "<p id=state>");
    for (size_t i = 0; i < sizeof state / sizeof state[0]; i++) {
        const struct json_value *value = document_member(status, state[i].key);

        if (value == NULL)
            continue;
        json_text_format(to, "%s <b data-k=%s class=%c>", state[i].title, state[i].key,
                         state[i].kind);
        html_value(to, state[i].kind, value);
        add(to, "</b> ");
    }
    add(to, "</p>");
}

void tables_add_head(struct json_text *to, const struct json_value *figures)
{
    const struct json_value *status = document_member(figures, "status"),
                            *now = document_member(figures, "now");

    if (status != NULL)
        add_state(to, status);
    add(to, "<h2>Now</h2>");
    if (now != NULL)
        add_curves(to, now);
    add_tables(to, first_tables, sizeof first_tables / sizeof first_tables[0], figures);
}

void tables_add_lists(struct json_text *to, const struct json_value *figures)
{
    add_tables(to, tables, sizeof tables / sizeof tables[0], figures);
}
