#include "build_config.h"

#include "upgrade/upgrade.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/datagram.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/terminal.h"
#include "bus/reports.h"
#include "bus/service.h"
#include "config/setup.h"
#include "event/signals.h"
#include "supervisor/bus.h"
#include "upgrade/check.h"
#include "upgrade/state.h"

#define REFUSED "not upgraded, going on: "

#define FORM_BYTES 32 /* the form, filled with NULs */

static const char answer[] = "can go on from " UPGRADE_FORM;

enum upgrade_step { UPGRADE_NONE, UPGRADE_BEGINS, UPGRADE_CHECKS, UPGRADE_EXECUTES };

struct upgrade {
    struct stdio_bus *bus;
    struct upgrade_check check;
    enum upgrade_step step;
    char version[UPGRADE_VERSION_MAX]; /* of the next program */
    char before[UPGRADE_VERSION_MAX];  /* after an upgrade: of the one before */
};

struct upgrade *upgrade_create(struct stdio_bus *bus)
{
    struct upgrade *upgrade = calloc(1, sizeof *upgrade);

    if (upgrade != NULL)
        upgrade->bus = bus;
    return upgrade;
}

void upgrade_destroy(struct upgrade *upgrade)
{
    free(upgrade);
}

/* --- the beginning --- */

/* What is in the way of an upgrade, or NULL. */
static const char *obstacle(const struct stdio_bus *bus)
{
    if (bus->phase == BUS_PHASE_STARTING)
        return "the daemon is still starting";
    if (bus->phase >= BUS_PHASE_DRAINING || bus->stop_noted)
        return "the daemon is shutting down";
    each_service(bus, at, unsaved) {
        const char *reason = at.service->unsaved(at.state);

        if (reason != NULL)
            return reason;
    }
    return NULL;
}

const char *upgrade_request(struct upgrade *upgrade)
{
    struct stdio_bus *bus = upgrade->bus;
    const char *problem = obstacle(bus);

    if (bus->options.argv == NULL)
        problem = "this daemon cannot be upgraded in place";
    if (upgrade->step != UPGRADE_NONE)
        problem = "an upgrade is under way";
    if (problem != NULL) {
        log_error(bus->log, "", REFUSED "%s", problem);
        return problem;
    }
    upgrade->step = UPGRADE_BEGINS;
    bus->attentive++;
    return NULL;
}

/* --- the end --- */

static void report(struct upgrade *upgrade, const char *problem)
{
    struct stdio_bus *bus = upgrade->bus;

    if (problem != NULL)
        log_error(bus->log, "", REFUSED "%s", problem);
    if (problem == NULL)
        reports_send(bus, "upgraded", NULL, NULL, PACKAGE_VERSION);
    else
        reports_send(bus, "not upgraded", NULL, NULL, problem);
    each_service(bus, at, upgraded)
        at.service->upgraded(at.state, upgrade->before, problem);
}

static void end_upgrade(struct upgrade *upgrade)
{
    if (upgrade->step != UPGRADE_NONE)
        upgrade->bus->attentive--;
    upgrade->step = UPGRADE_NONE;
}

void upgrade_stop(struct upgrade *upgrade)
{
    upgrade_check_stop(&upgrade->check);
    end_upgrade(upgrade);
}

static void refuse_upgrade(struct upgrade *upgrade, const char *problem)
{
    report(upgrade, problem);
    end_upgrade(upgrade);
}

/* --- the state --- */

/* Addresses that are saved are only read. */
static struct upgrade_places places_of(const struct stdio_bus *bus)
{
    struct upgrade_places places = {
        .listens = (struct listen_config *)(void *)bus->options.listens,
        .listen_count = bus->options.listen_count,
    };

    for (size_t i = 0; i < SERVICES_MAX; i++) {
        if (bus->options.sockets[i] != NULL)
            (void)snprintf(places.sockets[i], sizeof places.sockets[i], "%s",
                           bus->options.sockets[i]);
    }
    return places;
}

static int save(struct archive *archive, struct stdio_bus *bus)
{
    char form[FORM_BYTES] = UPGRADE_FORM, version[UPGRADE_VERSION_MAX] = PACKAGE_VERSION;
    struct upgrade_places places = places_of(bus);

    archive_begin_saving(archive);
    archive_add(archive, form, sizeof form);
    sources_archive(archive, &bus->options.setup->sources);
    upgrade_state_places(archive, &places);
    upgrade_state(archive, bus, version);
    return archive_ok(archive) ? upgrade_image_write(archive->data, archive->len) : -1;
}

static const char *why_not_saved(const struct archive *archive)
{
    return archive_ok(archive) ? strerror(errno) : archive->problem;
}

/* --- the check --- */

/* What the child has said is its answer and its version, or an error. */
static void checked(void *user_data, const char *said)
{
    struct upgrade *upgrade = user_data;
    size_t len = sizeof answer - 1;
    char problem[UPGRADE_PROBLEM_MAX];

    if (strncmp(said, answer, len) == 0 && said[len] == '\n') {
        snprintf(upgrade->version, sizeof upgrade->version, "%s", said + len + 1);
        upgrade->version[strcspn(upgrade->version, "\n")] = '\0';
        upgrade->step = UPGRADE_EXECUTES;
        return;
    }
    if (said[0] == '\0')
        said = "it has ended without an answer";
    snprintf(problem, sizeof problem, "%s: %.*s", upgrade->bus->options.argv[0],
             (int)strcspn(said, "\n"), said);
    refuse_upgrade(upgrade, problem);
}

void upgrade_print_answer(void)
{
    terminal_line(stdout, "%s", answer);
    terminal_line(stdout, "%s", PACKAGE_VERSION);
}

static const char *ask_next(struct upgrade *upgrade)
{
    struct stdio_bus *bus = upgrade->bus;
    struct archive archive;
    const char *problem = NULL;
    int fd = save(&archive, bus);

    upgrade->step = UPGRADE_CHECKS;
    if (fd < 0)
        problem = why_not_saved(&archive);
    else if (upgrade_check_start(&upgrade->check, bus->loop, bus->options.argv, fd, checked,
                                 upgrade) != STDIO_BUS_OK)
        problem = strerror(errno);
    if (fd >= 0)
        close(fd);
    archive_free(&archive);
    return problem;
}

/* --- the execution --- */

static void notify_manager(const struct stdio_bus *bus, const char *what)
{
    char text[80];

    if (bus->options.notify == NULL)
        return;
    snprintf(text, sizeof text, "%s\nMONOTONIC_USEC=%lld000\n", what,
             (long long)stdio_bus_event_loop_now_ms(bus->loop));
    (void)notify_send(bus->options.notify, text);
}

/* Returns if it fails, with errno set. */
static void execute(struct upgrade *upgrade, struct archive *archive, int fd)
{
    struct stdio_bus *bus = upgrade->bus;
    int program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), error;

    if (upgrade_image_offer(fd, program) == STDIO_BUS_OK) {
        (void)log_report(bus->log);
        log_info(bus->log, "", "upgrading from version %s to %s", PACKAGE_VERSION,
                 upgrade->version);
        notify_manager(bus, "RELOADING=1");
        if (archive_set_cloexec(archive, false) == STDIO_BUS_OK)
            execvp(bus->options.argv[0], bus->options.argv);
        error = errno;
        (void)archive_set_cloexec(archive, true);
        notify_manager(bus, "READY=1");
        errno = error;
    }
    error = errno;
    upgrade_image_withdraw(fd, program);
    errno = error;
}

/* Returns if it fails, or if a signal has come: the next round acts on it before. Signals that come
 * from now on wait for the next program. */
static void go(struct upgrade *upgrade)
{
    struct stdio_bus *bus = upgrade->bus;
    struct archive archive;
    char text[UPGRADE_PROBLEM_MAX];
    int fd;

    if (bus->has_signals && !signals_hold(&bus->signals))
        return;
    fd = save(&archive, bus);
    if (fd < 0) {
        (void)snprintf(text, sizeof text, "%s", why_not_saved(&archive));
    } else {
        execute(upgrade, &archive, fd);
        (void)snprintf(text, sizeof text, "cannot execute %s: %s", bus->options.argv[0],
                       strerror(errno));
    }
    archive_free(&archive);
    signals_let_go();
    refuse_upgrade(upgrade, text);
}

void upgrade_go_on(struct upgrade *upgrade)
{
    struct stdio_bus *bus = upgrade->bus;
    const char *problem;

    if (bus->services_noted) /* sessions are to be looked at first: in the next round */
        return;
    if (upgrade->step == UPGRADE_NONE || upgrade->step == UPGRADE_CHECKS)
        return;
    problem = obstacle(bus);
    if (problem == NULL && upgrade->step == UPGRADE_EXECUTES)
        go(upgrade);
    else if (problem != NULL || (problem = ask_next(upgrade)) != NULL)
        refuse_upgrade(upgrade, problem);
}

/* --- the next program --- */

static void read_form(struct archive *archive, const struct upgrade_image *image, int stand_in)
{
    char form[FORM_BYTES] = {0};

    archive_begin_loading(archive, slice_of(image->bytes, image->len), stand_in);
    if (image->error != 0)
        archive_fail(archive, strerror(image->error));
    archive_bytes(archive, form, sizeof form);
    if (!archive_ok(archive) || strncmp(form, UPGRADE_FORM, sizeof form) != 0)
        archive_fail(archive, "it cannot read this state, which is of another form");
}

/* Ends the reading. */
static int finish(struct archive *archive, const char **problem)
{
    const char *found = archive->problem;

    archive_free(archive);
    if (found == NULL)
        return STDIO_BUS_OK;
    *problem = found;
    return STDIO_BUS_ERR;
}

int upgrade_load_sources(const struct upgrade_image *image, struct sources *sources,
                         const char **problem)
{
    struct archive archive;

    read_form(&archive, image, -1);
    sources_archive(&archive, sources);
    return finish(&archive, problem);
}

/* Up to the places, which come after the sources. */
static void read_places(struct archive *archive, const struct upgrade_image *image, int stand_in,
                        struct upgrade_places *places)
{
    struct sources sources = {.first = NULL};

    read_form(archive, image, stand_in);
    sources_archive(archive, &sources);
    sources_free(&sources);
    upgrade_state_places(archive, places);
}

int upgrade_load_places(const struct upgrade_image *image, struct upgrade_places *places,
                        const char **problem)
{
    struct archive archive;

    read_places(&archive, image, -1, places);
    return finish(&archive, problem);
}

static int load(struct upgrade *upgrade, const struct upgrade_image *image, const char **problem)
{
    struct stdio_bus *bus = upgrade->bus;
    struct upgrade_places places = places_of(bus);
    struct archive archive;
    int ends[2] = {-1, -1};

    if (image->is_check && descriptor_open_pipe(ends, 0) != STDIO_BUS_OK) {
        *problem = strerror(errno);
        return STDIO_BUS_ERR;
    }
    read_places(&archive, image, ends[0], &places);
    upgrade_state(&archive, bus, upgrade->before);
    if (archive_ok(&archive) && !image->is_check)
        (void)archive_set_cloexec(&archive, true);
    if (!archive_ok(&archive))
        log_error(bus->log, "", "cannot go on from the state, part %s: %s", archive.part,
                  archive.problem);
    return finish(&archive, problem);
}

static void report_resumed(struct upgrade *upgrade, const char *problem)
{
    if (problem == NULL)
        log_info(upgrade->bus->log, "", "upgraded from version %s to %s", upgrade->before,
                 PACKAGE_VERSION);
    report(upgrade, problem);
}

int upgrade_resume(struct upgrade *upgrade, struct upgrade_image *image, const char **problem)
{
    if (load(upgrade, image, problem) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    if (image->is_check)
        return STDIO_BUS_OK;
    *problem = "it cannot catch signals";
    if (bus_continue(upgrade->bus) != STDIO_BUS_OK)
        return STDIO_BUS_ERR;
    upgrade_image_free(image);
    report_resumed(upgrade, image->problem[0] != '\0' ? image->problem : NULL);
    return STDIO_BUS_OK;
}
