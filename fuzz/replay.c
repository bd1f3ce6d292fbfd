/* Runs a fuzzer's entry point over files: a corpus in `make check`, a reproducer by hand. No fuzzer
 * and no special compiler is needed.
 *
 *     replay_scanner                      every file of $SOURCE_DIR/fuzz/corpora/scanner
 *     replay_scanner FILE|DIRECTORY ...   these
 *
 * Exits 1 when a file could not be read or there was none. A violation ends in abort, with the
 * file's name on stderr. */
#include "build_config.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common.h"

#define FILE_MAX_BYTES ((size_t)1 << 20)
#define NAME_MAX_BYTES 4096

static unsigned long runs;
static const char *current; /* the one global: for the handler of a crash */

static void report_current(int signo)
{
    static const char words[] = "while replaying ";
    ssize_t ignored = write(STDERR_FILENO, words, sizeof words - 1);

    ignored = write(STDERR_FILENO, current, strlen(current));
    ignored = write(STDERR_FILENO, "\n", 1);
    (void)ignored;
    signal(signo, SIG_DFL);
    raise(signo);
}

static bool replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *read = malloc(FILE_MAX_BYTES);
    size_t len = 0;
    bool good = false;
    char *exact;

    if (file == NULL || read == NULL) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        goto end;
    }
    len = fread(read, 1, FILE_MAX_BYTES, file);
    if (ferror(file)) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        goto end;
    }
    current = path;
    exact = fuzz_copy(read, len);
    LLVMFuzzerTestOneInput((const uint8_t *)exact, len);
    free(exact);
    runs++;
    good = true;
end:
    free(read);
    if (file != NULL)
        fclose(file);
    return good;
}

static bool replay_directory(const char *path)
{
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, NULL, alphasort), i;
    bool good = count >= 0;

    if (count < 0)
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
    for (i = 0; i < count; i++) {
        char name[NAME_MAX_BYTES];

        if (entries[i]->d_name[0] != '.') {
            snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
            good = replay_file(name) && good;
        }
        free(entries[i]);
    }
    free(entries);
    return good;
}

static bool replay(const char *path)
{
    struct stat status;

    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return replay_directory(path);
    return replay_file(path);
}

/* The corpus that belongs to a program of this name. */
static bool replay_own_corpus(const char *program)
{
    const char *source = getenv("SOURCE_DIR");
    const char *slash = strrchr(program, '/');
    const char *name = slash != NULL ? slash + 1 : program;
    char path[NAME_MAX_BYTES];

    if (strncmp(name, "replay_", 7) == 0)
        name += 7;
    snprintf(path, sizeof path, "%s/fuzz/corpora/%s", source != NULL ? source : ".", name);
    return replay(path);
}

int main(int argc, char **argv)
{
    bool good = true;

    signal(SIGABRT, report_current);
    signal(SIGSEGV, report_current);
    if (argc < 2)
        good = replay_own_corpus(argv[0]);
    for (int i = 1; i < argc; i++)
        good = replay(argv[i]) && good;
    printf("%lu inputs replayed\n", runs);
    return good && runs > 0 ? 0 : 1;
}
