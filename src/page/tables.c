#include "build_config.h"

#include "page/tables.h"

#include <string.h>

#include "page/html.h"

struct column {
    const char *key, *title;
    enum html_kind kind;
};

/* A list of the figures; `live`: changes are read out by a screen reader. The columns are one
 * string, "KEY\0TITLE\0KIND" of each: pointers to them would need three times the room. */
struct table {
    const char *heading; /* before it; NULL: none */
    const char *key, *caption, *columns;
    bool live;
};

/* Before the lines for clients: */
static const struct table first_tables[] = {
    {.key = "errors",
     .caption = "Warnings and errors of the last ten minutes",
     .live = true,
     .columns = "time_ms\0Time (UTC)\0c"
                "level\0Level\0t"
                "of\0Of\0t"
                "text\0Cause\0t"},
    {.heading = "Shared servers",
     .key = "shared",
     .caption = "Daemons",
     .columns = "name\0Name\0t"
                "command\0Command\0t"
                "pid\0PID\0n"
                "state\0State\0t"
                "state_ms\0For\0m"
                "calls\0Calls\0n"
                "runs_ms\0Runs for\0m"
                "clients\0Clients\0n"
                "processes\0Processes\0n"
                "memory\0Memory\0b"
                "directory\0Directory\0t"
                "version\0Version\0t"
                "failure\0Does not start\0t"},
    {.key = "differences",
     .caption = "The same command, not shared",
     .columns = "names\0Daemons\0t"
                "differs\0What differs\0t"},
};

static const struct table tables[] = {
    {.heading = "Who waits",
     .key = "requests",
     .caption = "Requests that wait for an answer",
     .columns = "from\0From\0t"
                "to\0Waits for\0t"
                "request\0Request\0t"
                "age_ms\0Since\0m"},
    {.heading = "What runs",
     .key = "pools",
     .caption = "Pools",
     .columns = "pool\0Pool\0t"
                "protocol\0Protocol\0t"
                "sharing\0Sharing\0t"
                "running\0Running\0n"
                "instances\0Of\0n"
                "failed\0Failed\0n"
                "clients\0Clients\0n"
                "requests\0Requests\0n"
                "sessions\0Sessions\0n"
                "restarts\0Restarts\0n"
                "url\0URL\0t"},
    {.key = "workers",
     .caption = "Workers",
     .columns = "worker\0Worker\0n"
                "pool\0Pool\0t"
                "state\0State\0t"
                "pid\0PID\0n"
                "runs_ms\0Runs for\0m"
                "clients\0Clients\0n"
                "requests\0Requests\0n"
                "sessions\0Sessions\0n"
                "queue\0Queue\0b"
                "restarts\0Restarts\0n"
                "held_for\0Held for\0t"
                "held_ms\0Since\0m"},
    {.key = "clients",
     .caption = "Clients and their sessions of HTTP",
     .columns = "client\0Client\0n"
                "program\0Program\0t"
                "kind\0Kind\0t"
                "peer\0From\0t"
                "pool\0Pool\0t"
                "since_ms\0For\0m"
                "requests\0Requests\0n"
                "sessions\0Sessions\0n"
                "queue\0Queue\0b"
                "held_for\0Held for\0t"
                "held_ms\0Since\0m"},
    {.key = "sessions",
     .caption = "Sessions",
     .columns = "session\0Session\0t"
                "client\0Client\0t"
                "worker\0Worker\0t"},
};

static const char curves[] = "tenths\0Requests a second\0d"
                             "p50_us\0Half answered within\0u"
                             "p99_us\0" /* a digit follows */
                             "99 of 100 within\0u"
                             "resident\0Memory\0b"
                             "waiting\0Waiting requests\0n"
                             "clients\0Clients\0n"
                             "processes\0Processes\0n";

static const char state[] = "version\0version\0t"
                            "phase\0\0t"
                            "runs_ms\0for\0m"
                            "pid\0PID\0n"
                            "clients\0clients\0n";

/* Takes the first column off the others. False: there is none. */
static bool take_column(struct column *column, const char **columns)
{
    if (**columns == '\0')
        return false;
    column->key = *columns;
    column->title = column->key + strlen(column->key) + 1;
    *columns = column->title + strlen(column->title) + 1;
    column->kind = (enum html_kind)(*columns)[0];
    (*columns)++;
    return true;
}

static void add(struct json_text *to, const char *html)
{
    json_text_literal(to, html);
}

/* --- a table --- */

static void add_row(struct json_text *to, const struct table *table, const struct json_value *row)
{
    const char *columns = table->columns;
    struct column column;

    add(to, "<tr>");
    for (bool is_first = true; take_column(&column, &columns); is_first = false) {
        json_text_format(to, is_first ? "<th scope=row class=%c>" : "<td class=%c>", column.kind);
        html_value(to, column.kind, document_member(row, column.key));
        add(to, is_first ? "</th>" : "</td>");
    }
    add(to, "</tr>");
}

/* Wide ones are moved sideways, by keys as well. Nothing, if the figures have no such list. */
static void add_table(struct json_text *to, const struct table *table,
                      const struct json_value *figures)
{
    const struct json_value *list = document_member(figures, table->key),
                            *rows = document_member(list, table->key);
    const char *columns = table->columns;
    struct column column;

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
    while (take_column(&column, &columns))
        json_text_format(to, "<th scope=col data-k=%s class=%c>%s</th>", column.key, column.kind,
                         column.title);
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
    const char *columns = curves;
    struct column curve;

    add(to, "<dl>");
    while (take_column(&curve, &columns)) {
        const struct json_value *value = document_member(now, curve.key);

        if (value == NULL)
            continue;
        json_text_format(to, "<div><dt>%s</dt><dd data-k=%s class=%c>", curve.title, curve.key,
                         curve.kind);
        html_value(to, curve.kind, value);
        add(to, "</dd><svg viewBox=\"0 0 59 20\" preserveAspectRatio=none aria-hidden=true>"
                "<polyline/></svg></div>");
    }
    add(to, "</dl>");
}

static void add_state(struct json_text *to, const struct json_value *status)
{
    const char *columns = state;
    struct column column;

    add(to, "<p id=state>");
    while (take_column(&column, &columns)) {
        const struct json_value *value = document_member(status, column.key);

        if (value == NULL)
            continue;
        json_text_format(to, "%s <b data-k=%s class=%c>", column.title, column.key, column.kind);
        html_value(to, column.kind, value);
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
