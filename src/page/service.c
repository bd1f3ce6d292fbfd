#include "build_config.h"

#include "page/service.h"

#include "page/page.h"

static void *create(struct stdio_bus *bus)
{
    return page_create(bus);
}

static void destroy(void *state)
{
    page_free(state);
}

static struct slice figures(void *state)
{
    struct page *page = state;

    return figures_read(&page->figures);
}

static bool show(void *state, const struct web_look *look, struct web_view *view)
{
    return page_show(state, look, view);
}

const struct service page_service = {
    .create = create, .destroy = destroy, .figures = figures, .show = show};
