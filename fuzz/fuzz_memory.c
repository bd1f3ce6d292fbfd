/* A file of what a shared server has answered (share/memory.h): any bytes are loaded, or refused.
 * What was loaded is what a server can answer, and is saved as bytes that are loaded again. */
#include "build_config.h"

#include "base/archive.h"
#include "common.h"
#include "router/versions.h"
#include "share/memory.h"
#include "json/scanner.h"

#define NAME "a-00112233445566778899aabbccddeeff.memory"

enum { AS_IT_IS, WITH_THE_RIGHT_SUM };

/* The client's id is put in place of that of the answer. */
static void check_answer(const struct kept_message *answer)
{
    static const char id[] = "\"a client's\"";
    size_t after = answer->at.offset + answer->at.len;
    struct scanner scanner;
    char *line;
    size_t len;

    EXPECT(after <= answer->line.len, "the id is beyond the end");
    len = answer->line.len - answer->at.len + sizeof id - 1;
    line = fuzz_copy(answer->line.data, len > answer->line.len ? answer->line.len : len);
    line = realloc(line, len);
    EXPECT(line != NULL, "out of memory");
    memcpy(line + answer->at.offset, id, sizeof id - 1);
    memcpy(line + answer->at.offset + sizeof id - 1, answer->line.data + after,
           answer->line.len - after);
    scanner_reset(&scanner);
    EXPECT(scanner_run(&scanner, line, len) == SCAN_MESSAGE && scanner.position == len, "%.*s",
           (int)len, line);
    EXPECT(scanner.fields.has_result, "no result");
    free(line);
}

static void check_versions(const struct remembered *remembered)
{
    const struct list_node *node = remembered->versions.head.next;

    for (; node != &remembered->versions.head; node = node->next)
        check_answer(&list_entry(node, const struct version, node)->answer);
}

/* Asks for all pages that are linked. */
static void check_lists(struct remembered *remembered)
{
    for (int list = 0; list < REMEMBERED_LISTS; list++) {
        char line[80];
        struct scanner scanner;
        struct message_scratch scratch;
        struct message message;
        const struct kept_message *page;
        int len = snprintf(line, sizeof line, "{\"id\":1,\"method\":\"%s\"}\n",
                           remembered_method((enum remembered_list)list));

        scanner_reset(&scanner);
        EXPECT(scanner_run(&scanner, line, (size_t)len) == SCAN_MESSAGE, "%s", line);
        (void)message_from_scan(&message, slice_of(line, (size_t)len), &scanner.fields, &scratch);
        page = remembered_page(remembered, &message);
        if (page != NULL)
            check_answer(page);
    }
}

static void check_again(struct remembered *remembered)
{
    struct remembered again;
    struct archive first, second;

    archive_begin_saving(&first);
    remembered_archive(remembered, &first);
    archive_begin_loading(&second, slice_of(first.data, first.len), -1);
    remembered_init(&again);
    remembered_archive(&again, &second);
    EXPECT(archive_ok(&second), "%s", second.problem);
    archive_begin_saving(&second);
    remembered_archive(&again, &second);
    EXPECT(first.len == second.len && memcmp(first.data, second.data, first.len) == 0,
           "saved in another way");
    archive_free(&first);
    archive_free(&second);
    remembered_clear(&again);
}

/* The stateless era: what is given after its time. */
static void check_fresh(struct fresh *fresh)
{
    struct archive first, second;
    struct fresh again;

    archive_begin_saving(&first);
    fresh_archive_stale(fresh, &first);
    archive_begin_loading(&second, slice_of(first.data, first.len), -1);
    fresh_init(&again);
    fresh_archive_stale(&again, &second);
    EXPECT(archive_ok(&second), "%s", second.problem);
    EXPECT(again.count <= fresh->count && again.bytes <= fresh->bytes, "more than there was");
    archive_free(&first);
    fresh_clear(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct remembered remembered;
    struct fresh fresh;
    const char *problem;
    char *bytes;

    if (size == 0)
        return 0;
    bytes = fuzz_copy(data + 1, size - 1);
    if (data[0] % 2 == WITH_THE_RIGHT_SUM && size - 1 >= MEMORY_HEAD)
        memory_write_head(bytes, NAME, slice_of(bytes + MEMORY_HEAD, size - 1 - MEMORY_HEAD));
    remembered_init(&remembered);
    fresh_init(&fresh);
    problem = memory_load(&remembered, &fresh, NAME, slice_of(bytes, size - 1));
    free(bytes);
    EXPECT(problem == NULL || (remembered_is_empty(&remembered) && fresh.count == 0),
           "half of it is remembered");
    if (problem == NULL) {
        check_versions(&remembered);
        check_lists(&remembered);
        check_again(&remembered);
        check_fresh(&fresh);
    }
    remembered_clear(&remembered);
    fresh_clear(&fresh);
    return 0;
}
