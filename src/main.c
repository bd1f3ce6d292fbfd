#include "build_config.h"

#include <errno.h>
#ifdef HAVE_MALLOPT
#include <malloc.h>
#endif
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/datagram.h"
#include "base/descriptor.h"
#include "base/error.h"
#include "base/terminal.h"
#include "bus/listeners.h"
#include "cli/client.h"
#include "cli/ctl.h"
#include "cli/help.h"
#include "cli/import.h"
#include "cli/log_options.h"
#include "cli/options.h"
#include "cli/parse.h"
#include "cli/ping.h"
#include "cli/settings.h"
#include "cli/succession.h"
#include "config/parts.h"
#include "config/schema.h"
#include "control/service.h"
#include "doctor/doctor.h"
#include "federation/service.h"
#include "federation/topics.h"
#include "page/service.h"
#include "reload/reload.h"
#include "share/care.h"
#include "share/list.h"
#include "share/share.h"
#include "supervisor/bus.h"
#include "topics/service.h"
#include "upgrade/service.h"
#include "upgrade/upgrade.h"
#include "web/service.h"

#define LONG_BUFFER 131072 /* bytes; one that the C library gives back to the system at once */

/* For errors before or without a log. */
static int system_error(const char *what)
{
    terminal_line(stderr, "stdio_bus: %s: %s", what, strerror(errno));
    return EXIT_OS_ERROR;
}

/* Prints all texts, up to a NULL. */
static int print(enum terminal_form form, const char *const *texts)
{
    for (; *texts != NULL; texts++) {
        if (terminal_lines(stdout, form, slice_of_text(*texts)) != STDIO_BUS_OK)
            return system_error("cannot write to stdout");
    }
    return fflush(stdout) != EOF ? EXIT_DONE : system_error("cannot write to stdout");
}

static int print_schema(void)
{
    struct json_text text = {.len = 0};
    int status;

    schema_add(&text);
    json_text_add(&text, slice_of("", 1));
    if (text.failed)
        status = system_error("cannot print the schema");
    else
        status = print(TERMINAL_TEXT, (const char *const[]){text.data, NULL});
    json_text_free(&text);
    return status;
}

/* Parts that were left out are known to no line below: their code is not linked. */
static const struct service *const services[SERVICES_MAX + 1] = {
#if WITH_HTTP
    &http_service,
#endif
#if WITH_PAGE
    &page_service,
#endif
#if WITH_RMP
    &rmp_service,
#endif
#if WITH_NATS
    &nats_service,
#endif
#if WITH_NATS && WITH_RMP
    &nats_topics_service,
#endif
#if WITH_CONTROL
    &control_service,
#endif
#if WITH_RELOAD
    &reload_service,
#endif
#if WITH_UPGRADE
    &upgrade_service,
#endif
    NULL,
};

/* Those of a page that is not of a daemon: ctl page, --list --page. */
static const struct service *const page_services[] = {
#if WITH_HTTP
    &http_service,
#endif
#if WITH_PAGE
    &page_service,
#endif
    NULL,
};

/* The options of sockets that they bring, up to a NULL. */
static const char *const *socket_options(const char *names[SERVICES_MAX + 1])
{
    size_t count = 0;

    for (size_t i = 0; services[i] != NULL; i++) {
        if (services[i]->listener != NULL && services[i]->listener->option != NULL)
            names[count++] = services[i]->listener->option;
    }
    names[count] = NULL;
    return names;
}

static int print_help(void)
{
    int status = print(TERMINAL_TEXT, help_sections());

    for (size_t i = 0; services[i] != NULL && status == EXIT_DONE; i++) {
        if (services[i]->listener != NULL && services[i]->listener->help != NULL)
            status = print(TERMINAL_TEXT, (const char *const[]){services[i]->listener->help, NULL});
    }
    return status;
}

/* The version, and a line for each kind of part: those that are in, and those that are not. */
static int print_version(void)
{
    char text[512];
    int len = snprintf(text, sizeof text, "%s %s\n", PACKAGE_NAME, PACKAGE_VERSION);

    for (int in = 1; in >= 0; in--) {
        const char *before = in ? "with:" : "without:";

        for (int part = 0; part < PARTS; part++) {
            if (part_is_in((enum part)part) != in)
                continue;
            len += snprintf(text + len, sizeof text - (size_t)len, "%s %s", before,
                            part_names[part]);
            before = "";
        }
        if (before[0] == '\0')
            len += snprintf(text + len, sizeof text - (size_t)len, "\n");
    }
    return print(TERMINAL_TEXT, (const char *const[]){text, NULL});
}

/* For what the program was built without. */
static int without(const char *what, enum part part)
{
    char text[PART_MISSING_MAX];

    terminal_line(stderr, "stdio_bus: %s: %s", what, part_missing(text, part));
    return EXIT_USAGE_ERROR;
}

/* Without a service manager, or one that cannot be reached, the bus reports to none. */
static struct notify *open_notify(struct notify *notify, struct log *log)
{
    const struct notify_variables variables = {getenv("NOTIFY_SOCKET"), getenv("WATCHDOG_USEC"),
                                               getenv("WATCHDOG_PID")};
    int status = notify_open(notify, &variables);

    if (status == STDIO_BUS_OK)
        return notify;
    if (status != STDIO_BUS_ENOTFOUND)
        log_warn(log, "", "cannot reach the service manager at NOTIFY_SOCKET: %s",
                 status == STDIO_BUS_EINVAL ? "not the name of a Unix socket" : strerror(errno));
    return NULL;
}

/* A bus that runs: started, or continuing from a state. NULL: there is none to run, after the
 * reason was logged. */
static struct stdio_bus *start_bus(const struct bus_options *options, struct succession *succession)
{
    struct stdio_bus *bus;

    if (succession_is_on(succession))
        return succession_resume(options, succession);
    bus = bus_create(options);
    if (bus == NULL || bus_start(bus) == STDIO_BUS_OK)
        return bus;
    bus_destroy(bus);
    return NULL;
}

/* Runs until the bus stops. Returns the exit status. */
static int run_bus(const struct bus_options *options, struct succession *succession)
{
    enum bus_outcome outcome = BUS_SYSTEM_ERROR;
    struct stdio_bus *bus = start_bus(options, succession);

    if (bus != NULL) {
        outcome = bus_step(bus, 0); /* what a state has left to do */
        while (outcome == BUS_RUNNING)
            outcome = bus_step(bus, -1);
    }
    bus_destroy(bus);
    return bus_exit_status(outcome);
}

/* The sockets that services bring. Returns EXIT_DONE, or another exit status after the reason was
 * logged. */
static int find_sockets(const struct settings *settings, const struct config *config,
                        struct upgrade_places *places)
{
    int status = EXIT_DONE;

    for (size_t i = 0; services[i] != NULL && status == EXIT_DONE; i++) {
        const struct listener_kind *kind = services[i]->listener;
        const char *asked;

        if (kind == NULL || kind->option == NULL)
            continue;
        asked = options_socket(settings->options, kind->option);
        if (kind->find != NULL)
            status = kind->find(places->sockets[i], asked, config, settings->log);
        else if (asked != NULL)
            snprintf(places->sockets[i], sizeof places->sockets[i], "%s", asked);
    }
    return status;
}

/* Those of the daemon before, and the sockets that the service manager has passed on to it. */
static int take_places(struct settings *settings, struct succession *succession,
                       struct upgrade_places *places)
{
    if (!WITH_UPGRADE ||
        upgrade_load_places(&succession->image, places, &succession->problem) != STDIO_BUS_OK)
        return EXIT_CONFIG_ERROR;
    passed_take(settings->passed, places->listens, places->listen_count);
    return EXIT_DONE;
}

/* Where the daemon listens, by itself or by its service manager. */
static int find_places(struct settings *settings, struct setup *setup,
                       struct succession *succession, struct upgrade_places *places)
{
    if (succession_is_on(succession))
        return take_places(settings, succession, places);
    if (passed_assign(settings->passed, setup->listens, setup->listen_count, settings->log) !=
        STDIO_BUS_OK)
        return EXIT_CONFIG_ERROR;
    return find_sockets(settings, &setup->config, places);
}

static int serve(struct settings *settings, struct setup *setup, struct succession *succession)
{
    const struct options *options = settings->options;
    const struct config *config = &setup->config;
    struct log *log = settings->log;
    struct upgrade_places places = {.listens = setup->listens, .listen_count = setup->listen_count};
    struct bus_options bus_options = {
        .config = config,
        .setup = setup,
        .read_again = settings_read_again,
        .read_again_data = settings,
        .log = log,
        .stdio = settings_serve_stdin(settings, config),
        .listens = setup->listens,
        .listen_count = setup->listen_count,
        .framing = options->framing != NULL ? options->framing : config->listen.framing,
        .argv = options->config_fd < 0 ? options->argv : NULL,
        .idle_exit_sec = options->idle_exit_sec > 0 ? (unsigned)options->idle_exit_sec : 0,
        .services = services,
        .handle_signals = true,
    };
    struct notify notify;
    int status;

    settings->has_stdin = bus_options.stdio;
    bus_options.notify = open_notify(&notify, log);
    status = find_places(settings, setup, succession, &places);
    for (size_t i = 0; i < SERVICES_MAX; i++)
        bus_options.sockets[i] = places.sockets[i][0] != '\0' ? places.sockets[i] : NULL;
    if (status == EXIT_DONE)
        status = run_bus(&bus_options, succession);
    notify_close(&notify);
    return status;
}

static int run_import(const char *path)
{
    struct import import;
    int status = EXIT_CONFIG_ERROR, code = import_file(&import, path);

    if (import.notes != NULL &&
        terminal_lines(stderr, TERMINAL_TEXT, slice_of_text(import.notes)) != STDIO_BUS_OK)
        status = system_error("cannot write to stderr");
    else if (code == STDIO_BUS_OK)
        status = print(TERMINAL_JSON, (const char *const[]){import.config, NULL});
    import_free(&import);
    return status;
}

static int run_share(const struct options *options)
{
    const struct share_options share = {
        .line = options->line,
        .name = options->share_name,
        .variables = options->share_variables,
        .watched = options->watched,
        .watched_count = options->watched_count,
        .any_directory = options->any_cwd,
        .eager = options->eager,
        .idle_exit_sec = options->idle_exit_sec >= 0 ? (unsigned)options->idle_exit_sec
                                                     : SHARE_IDLE_EXIT_SEC,
        .framing = options->framing,
        .log_level = options->log_level,
        .stderr_level = options->has_log_level ? options->log_level : LOG_LEVEL_ERROR,
    };

    return share_command(&share);
}

/* Of servers that are shared: shows them, or does something with one. */
static int look_after(const struct options *options)
{
    if (options->action == ACTION_LOG)
        return care_run_log(options->cared_for);
    if (options->action == ACTION_FORGET)
        return care_run_forget(options->cared_for);
    if (options->cared_for != NULL)
        return care_run(options->action == ACTION_STOP ? CARE_STOP : CARE_RESTART,
                        options->cared_for);
    return WITH_PAGE && options->page ? list_page_run(page_services) : list_run(options->json);
}

/* Of a valid one. */
static int report_config(const struct options *options, const struct config *config,
                         struct log *log)
{
    struct json_text text = {.data = NULL};
    int status;

    log_info(log, "", "the configuration is valid: %zu pool%s", config->pool_count,
             config->pool_count == 1 ? "" : "s");
    if (!options->json)
        return EXIT_DONE;
    config_json_write(&text, config);
    json_text_add(&text, slice_of("\n", 2)); /* and a NUL */
    errno = ENOMEM;
    status = text.failed ? system_error("cannot list the pools")
                         : print(TERMINAL_JSON, (const char *const[]){text.data, NULL});
    json_text_free(&text);
    return status;
}

static int run(const struct options *options, struct log *log, struct succession *succession)
{
    struct passed_sockets passed;
    struct settings settings = {.options = options, .log = log, .passed = &passed};
    struct sources sources = {.first = NULL};
    struct setup *setup;
    int status;

    passed_read(&passed); /* workers must not take the variables for their own */
    if (succession_is_on(succession)) {
        if (!WITH_UPGRADE || upgrade_load_sources(&succession->image, &sources,
                                                  &succession->problem) != STDIO_BUS_OK)
            return EXIT_OS_ERROR;
        settings.is_known = true;
        settings.sources = &sources;
    }
    status = settings_read(&settings, &setup);
    if (status == EXIT_DONE && options->action == ACTION_CHECK_CONFIG)
        status = report_config(options, &setup->config, log);
    else if (status == EXIT_DONE)
        status = serve(&settings, setup, succession);
    setup_release(setup);
    return status;
}

/* glibc would keep the memory of the longest message so far for later ones. */
static void release_long_buffers(void)
{
#if defined HAVE_MALLOPT && defined M_MMAP_THRESHOLD
    mallopt(M_MMAP_THRESHOLD, LONG_BUFFER);
#endif
}

/* Errors of the check of an upgrade go to stdout, and without a log there is no upgrade. After it,
 * stderr is better than the end of the daemon. */
static int open_log(struct log *log, const struct options *options,
                    const struct succession *succession)
{
    int status = log_options_open(log, options);

    if (!succession_is_on(succession))
        return status;
    if (succession->image.is_check && status == EXIT_DONE) {
        log_close(log);
        log_open(log, STDOUT_FILENO, LOG_LEVEL_ERROR);
    } else if (!succession->image.is_check && status != EXIT_DONE) {
        log_open(log, STDERR_FILENO, options->log_level);
        status = EXIT_DONE;
    }
    return status;
}

static int finish(struct succession *succession, char *argv[], int status)
{
    return succession_is_on(succession) ? succession_end(succession, argv) : status;
}

int main(int argc, char *argv[])
{
    const char *names[SERVICES_MAX + 1];
    struct succession succession;
    struct options options;
    struct log log;
    char problem[512];
    bool takes_over;
    int status;

    if (WITH_UPGRADE)
        succession_begin(&succession, &argc, argv);
    /* The daemon before has filled them. The signals that have come since wait, and would be lost
     * if they were ignored. */
    takes_over = succession_is_on(&succession) && !succession.image.is_check;
    /* Until its handler stands: a log rotation must not end a daemon that has just been started, or
     * a client that has no log. */
    if (!takes_over) {
        signal(SIGUSR1, SIG_IGN);
        signal(SIGUSR2, SIG_IGN);
    }
    if (!takes_over && !descriptor_fill_standard())
        return system_error("cannot open /dev/null or /");
    if (argc > 1 && strcmp(argv[1], "ctl") == 0)
        return WITH_CONTROL ? ctl_run(argc - 2, argv + 2, page_services)
                            : without(argv[1], PART_CONTROL);
    if (argc > 1 && strcmp(argv[1], "doctor") == 0)
        return WITH_DOCTOR ? doctor_run(argc - 2, argv + 2) : without(argv[1], PART_DOCTOR);
    if (options_parse(&options, argc, argv, socket_options(names), problem, sizeof problem) !=
        STDIO_BUS_OK) {
        terminal_line(stderr, "stdio_bus: %s", problem);
        return finish(&succession, argv, EXIT_USAGE_ERROR);
    }
    if (options.action >= ACTION_SCHEMA)
        return options.action == ACTION_VERSION ? print_version()
               : options.action == ACTION_HELP  ? print_help()
                                                : print_schema();
    /* Ignored for the whole run: a closed stdout becomes an exit status; an unwritable log is never
     * fatal. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    if (WITH_DOCTOR && options.action == ACTION_IMPORT)
        return run_import(options.import_path);
    release_long_buffers();
    if (options.action == ACTION_CONNECT)
        return client_run(&options);
    if (WITH_SHARE && (options.action == ACTION_LIST || options.cared_for != NULL))
        return look_after(&options);
    if (WITH_CONTROL && options.action == ACTION_PING)
        return ping_run(&options);
    if (WITH_SHARE && options.action == ACTION_SHARE)
        return run_share(&options);
    options.argv = argv;
    status = open_log(&log, &options, &succession);
    if (status == EXIT_DONE) {
        status = run(&options, &log, &succession);
        log_close(&log);
    }
    return finish(&succession, argv, status);
}
