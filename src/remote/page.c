#include "build_config.h"

#include "remote/page.h"

#include <string.h>
#include <strings.h>

struct page {
    struct slice left;
    char *to;
    size_t len, size;
    bool blank; /* something has been written, and blanks came after it */
};

static void add(struct page *page, char byte)
{
    bool is_blank = byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';

    if (is_blank) {
        page->blank = page->len > 0;
        return;
    }
    if (page->blank && page->len < page->size)
        page->to[page->len++] = ' ';
    page->blank = false;
    if (page->len < page->size)
        page->to[page->len++] = byte;
}

static void skip(struct page *page, size_t len)
{
    page->left.data += len;
    page->left.len -= len;
}

static bool begins(const struct page *page, const char *word)
{
    size_t len = strlen(word);

    return page->left.len >= len && strncasecmp(page->left.data, word, len) == 0;
}

/* Skips up to the end of the word, or everything. */
static void skip_past(struct page *page, const char *word)
{
    while (page->left.len > 0 && !begins(page, word))
        skip(page, 1);
    if (page->left.len > 0)
        skip(page, strlen(word));
}

static void skip_tag(struct page *page)
{
    static const struct {
        const char *begin, *end;
    } unseen[] = {
        {"<!--", "-->"}, {"<script", "</script"}, {"<style", "</style"}, {"<svg", "</svg"}};

    for (size_t i = 0; i < sizeof unseen / sizeof unseen[0]; i++) {
        if (!begins(page, unseen[i].begin))
            continue;
        skip_past(page, unseen[i].end);
        if (i == 0)
            return;
        break;
    }
    skip_past(page, ">");
}

/* A character that HTML has a name for. False: it is none of these. */
static bool take_entity(struct page *page)
{
    static const struct {
        const char *name;
        char byte;
    } entities[] = {{"&lt;", '<'},   {"&gt;", '>'},    {"&amp;", '&'}, {"&quot;", '"'},
                    {"&#39;", '\''}, {"&apos;", '\''}, {"&nbsp;", ' '}};

    for (size_t i = 0; i < sizeof entities / sizeof entities[0]; i++) {
        if (!begins(page, entities[i].name))
            continue;
        add(page, entities[i].byte);
        skip(page, strlen(entities[i].name));
        return true;
    }
    return false;
}

size_t page_line(char *to, size_t size, struct slice bytes, bool is_html)
{
    struct page page = {.left = bytes, .to = to, .size = size};

    while (page.left.len > 0 && page.len < size) {
        if (is_html && page.left.data[0] == '<') {
            skip_tag(&page);
            add(&page, ' ');
        } else if (!is_html || page.left.data[0] != '&' || !take_entity(&page)) {
            add(&page, page.left.data[0]);
            skip(&page, 1);
        }
    }
    return page.len;
}
