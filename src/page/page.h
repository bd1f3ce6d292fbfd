/* The page for browsers, at / of a listener of HTTP, and its figures at /page.json. It is for this
 * machine alone, or for who shows the token of the listener. */
#ifndef STDIO_BUS_PAGE_PAGE_H
#define STDIO_BUS_PAGE_PAGE_H

#include "bus/service.h"
#include "page/figures.h"

#define PAGE_FIELDS_MAX 640

struct page {
    struct figures figures;
    char fields[PAGE_FIELDS_MAX]; /* of each answer, with the policy; "": no answer yet */
};

/* NULL if out of memory. */
struct page *page_create(struct stdio_bus *bus);

void page_free(struct page *page);

/* Answers a look that is for the page. False: it is not. */
bool page_show(struct page *page, const struct web_look *look, struct web_view *view);

#endif
