#include "build_config.h"

#include "cli/ctl_page.h"

#include "page/viewer.h"
#include "json/text.h"

#define FIGURES_MS 2000 /* for an answer: the browser waits, and so does Ctrl-C */

struct daemon_figures {
    struct control_link *link;
    const char *path;
};

static void write_figures(void *user_data, struct json_text *to)
{
    const struct daemon_figures *figures = user_data;
    struct control_link *link = figures->link;
    struct slice line;

    if (link->fd < 0 && !control_link_open(link, figures->path))
        return;
    link->answer_ms = FIGURES_MS;
    if (control_link_ask(link, "figures", NULL, &line) != NULL)
        json_text_add(to, control_link_result(line));
    else
        control_link_close(link); /* an answer that comes late would be the next one's */
}

int ctl_page_run(struct control_link *link, const char *path, const struct service *const *services)
{
    struct daemon_figures figures = {link, path};
    struct figures_source source = {
        .write = write_figures, .user_data = &figures, .nothing = "the daemon does not answer\n"};
    struct slice line;

    if (control_link_ask(link, "figures", NULL, &line) == NULL)
        return EXIT_REFUSED;
    return viewer_run(&source, services);
}
