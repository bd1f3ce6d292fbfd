#include "build_config.h"

#include "chaos_worker.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THROW_MS 20
#define OUT_CROWDED ((size_t)8 << 20) /* with more unwritten bytes it sends nothing optional */
#define OVERSIZE_BYTES 1100000

static void copy_name(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from);
}

/* --- harm --- */

void worker_leave(struct worker *worker, int status)
{
    if (worker->leaving)
        return;
    worker->leaving = true;
    worker->exit_status = status;
    worker->leave_by_ms = worker->now_ms + 1000;
}

static const char *garbage(struct worker *worker)
{
    static const char *const lines[] = {
        "this is no JSON\n",
        "{\"a\":\n",
        "{\"a\":\"\xff\xfe\"}\n",
        "[1,2,3]\n",
        "{\"id\":{},\"result\":1}\n",
        "{\"sessionId\":7,\"method\":\"m\"}\n",
        "{\"id\":\"nobody\",\"result\":1} {\"id\":\"nobody\",\"result\":2}\n",
        "{\"a\":\"\x01\"}\n",
    };

    return lines[dice_below(&worker->dice, sizeof lines / sizeof lines[0])];
}

static void say_garbage(struct worker *worker)
{
    if (dice_chance(&worker->dice, 150)) {
        text_printf(&worker->out, "{\"id\":\"");
        text_fill(&worker->out, 'x', OVERSIZE_BYTES);
        /* Where the line ends nothing, the message after it would be a part of it. */
        if (worker->board->mode.protocol != PROTOCOL_UNKNOWN)
            text_printf(&worker->out, "\n");
    } else if (dice_chance(&worker->dice, 100)) {
        text_printf(&worker->out, "{\"a\":");
        text_fill(&worker->out, '[', 1100);
        text_fill(&worker->out, ']', 1100);
        text_printf(&worker->out, "}\n");
    } else {
        text_printf(&worker->out, "%s", garbage(worker));
    }
}

static void crash(void)
{
    signal(SIGSEGV, SIG_DFL);
    kill(getpid(), SIGSEGV);
}

/* A process of the worker's group, which outlives the worker unless the daemon ends it. */
static void leave_child(struct worker *worker, bool holds_stdout, bool ignores_term)
{
    pid_t pid = fork();

    worker->shares_stdout |= holds_stdout;
    if (pid != 0)
        return;
    signal(SIGTERM, ignores_term ? SIG_IGN : SIG_DFL);
    close(STDIN_FILENO);
    if (!holds_stdout)
        close(STDOUT_FILENO);
    execlp("sleep", "sleep", "60", (char *)NULL);
    _exit(127);
}

static void doom(struct worker *worker, char act)
{
    if (act == 'c' && worker->shares_stdout)
        act = 'X';                                  /* a close of stdout could not be seen */
    if (act == 'g' && wire_framing != WIRE_LINES) { /* a bad frame does not end a worker */
        wire_add_frame(&worker->out, "{\"a\":", 5);
        return;
    }
    if (act == 'g' && worker->board->mode.protocol != PROTOCOL_UNKNOWN) { /* nor does a bad line */
        say_garbage(worker);
        return;
    }
    worker_note(worker, (struct record){.type = RECORD_DOOM, .detail = (uint8_t)act});
    worker_write_journal(worker);
    switch (act) {
    case 'g':
        say_garbage(worker);
        break;
    case 'c':
        worker->out_closed = true;
        close(STDOUT_FILENO);
        break;
    case 'i':
        worker->in_closed = true;
        close(STDIN_FILENO);
        break;
    case 'p':
        text_printf(&worker->out, "{\"jsonrpc\":\"2.0\",\"id\":1,\"resu");
        worker_leave(worker, 3);
        break;
    case 'x':
        worker_leave(worker, (int)dice_below(&worker->dice, 2));
        break;
    case 'X':
        _exit(2);
    default:
        crash();
    }
}

static void stall(struct worker *worker, uint32_t ms)
{
    worker_note(worker, (struct record){.type = RECORD_STALL, .len = ms});
    worker->stalled_until_ms = worker->now_ms + ms;
}

static bool crowded(const struct worker *worker)
{
    return worker->out.len - worker->out_at > OUT_CROWDED;
}

/* --- messages --- */

static void say_event(struct worker *worker, const char *session, size_t size)
{
    struct wire_header header = {.kind = WIRE_EVENT};

    if ((session[0] == '\0' && !worker_is_bound(worker)) || crowded(worker))
        return;
    copy_name(header.session, sizeof header.session, session);
    worker_say(worker, &header, size);
}

static struct question *find_question(struct worker *worker, const char *key)
{
    for (size_t i = 0; i < WORKER_QUESTIONS_MAX; i++) {
        if (worker->questions[i].number != 0 && strcmp(worker->questions[i].key, key) == 0)
            return &worker->questions[i];
    }
    return NULL;
}

/* A small id, which other workers use too, or an id of the worker's own. */
static void choose_key(struct worker *worker, char *key)
{
    if (!worker_behaves(worker) && dice_chance(&worker->dice, 500))
        snprintf(key, WIRE_KEY_MAX, "n%u", dice_below(&worker->dice, 4));
    else
        snprintf(key, WIRE_KEY_MAX, "sq%llx-%llu", worker->origin, worker->said);
}

static void ask(struct worker *worker, const char *session, char kind, size_t size)
{
    struct wire_header header = {.kind = kind};
    struct question *unused = worker->questions;

    while (unused->number != 0 && unused < worker->questions + WORKER_QUESTIONS_MAX - 1)
        unused++;
    choose_key(worker, header.key);
    if (unused->number != 0 || crowded(worker) || find_question(worker, header.key) != NULL ||
        (session[0] == '\0' && kind == WIRE_QUESTION && !worker_is_bound(worker)) ||
        worker->out_closed || worker->leaving)
        return;
    copy_name(header.session, sizeof header.session, session);
    worker_say(worker, &header, size);
    unused->number = worker->said;
    unused->kind = kind;
    copy_name(unused->key, sizeof unused->key, header.key);
}

static void say_nowhere(struct worker *worker)
{
    struct wire_header header = {.kind = WIRE_NOWHERE};
    const char *session = dice_chance(&worker->dice, 500) ? "nobody's" : "";

    if (worker_is_bound(worker) || dice_chance(&worker->dice, 300)) {
        header.kind = WIRE_ANSWER; /* to no request: ref is 0 */
        snprintf(header.key, sizeof header.key, "snever-%llu", worker->said);
        worker_say(worker, &header, 200);
    } else if (dice_chance(&worker->dice, 500)) {
        ask(worker, session, WIRE_NOWHERE, 200);
    } else {
        copy_name(header.session, sizeof header.session, session);
        worker_say(worker, &header, 200);
    }
}

static void remember_session(struct worker *worker, const char *session)
{
    if (session[0] == '\0')
        return;
    copy_name(worker->sessions[worker->session_count++ % WORKER_SESSIONS_MAX], WIRE_NAME_MAX,
              session);
}

/* `known`: the request has no answer yet, so that its client gets the progress. */
static void say_progress(struct worker *worker, const struct task *task, bool known)
{
    struct wire_header header = {.kind = WIRE_PROGRESS, .ref.number = known ? task->number : 0};

    if (task->token[0] == '\0' || crowded(worker))
        return;
    copy_name(header.token, sizeof header.token, task->token);
    worker_say(worker, &header, 150);
}

static void answer(struct worker *worker, const struct task *task)
{
    struct wire_header header = {.kind = task->hostile ? WIRE_SPOIL : WIRE_ANSWER,
                                 .ref.number = task->number};

    copy_name(header.key, sizeof header.key, task->key);
    copy_name(header.raw_id, sizeof header.raw_id, task->raw_id);
    if (task->makes_session || dice_chance(&worker->dice, 300))
        copy_name(header.session, sizeof header.session, task->session);
    worker_say(worker, &header, task->size);
    if (task->hostile)
        return;
    if (wire_ids_rewritten && dice_chance(&worker->dice, 100))
        say_progress(worker, task, false);
    if (task->makes_session) {
        remember_session(worker, task->session);
        say_event(worker, task->session, 200);
    }
    if (!task->twice)
        return;
    header.ref.number = 0; /* no client gets the second one */
    worker_say(worker, &header, task->size);
}

static bool is_due(const struct worker *worker, const struct task *task)
{
    return task->due_ms <= worker->now_ms || worker->dying_at_ms != 0 ||
           (worker_behaves(worker) && task->due_ms > worker->now_ms + 25);
}

void worker_answer_due(struct worker *worker)
{
    size_t i = 0;

    while (i < worker->task_count && !crowded(worker) && !worker->leaving) {
        if (is_due(worker, &worker->tasks[i])) {
            answer(worker, &worker->tasks[i]);
            worker->tasks[i] = worker->tasks[--worker->task_count];
        } else {
            i++;
        }
    }
}

int64_t worker_next_due(const struct worker *worker)
{
    int64_t due = INT64_MAX;

    for (size_t i = 0; i < worker->task_count && !crowded(worker); i++) {
        if (worker->tasks[i].due_ms < due)
            due = worker->tasks[i].due_ms;
    }
    return due;
}

/* --- orders --- */

static struct task *add_task(struct worker *worker, const struct wire_header *header)
{
    struct task *task;

    if (worker->task_count == worker->task_room) {
        worker->task_room = worker->task_room * 2 + 64;
        worker->tasks = realloc(worker->tasks, worker->task_room * sizeof *worker->tasks);
        if (worker->tasks == NULL)
            abort();
    }
    task = &worker->tasks[worker->task_count++];
    *task = (struct task){
        .number = header->serial.number, .size = 120, .hostile = header->kind == WIRE_HOSTILE};
    copy_name(task->key, sizeof task->key, header->key);
    copy_name(task->raw_id, sizeof task->raw_id, header->raw_id);
    copy_name(task->session, sizeof task->session, header->session);
    copy_name(task->token, sizeof task->token, header->token);
    return task;
}

static void make_session(struct worker *worker, struct task *task)
{
    task->makes_session = true;
    snprintf(task->session, sizeof task->session, "w%llx.%u", worker->origin,
             ++worker->made_sessions % 10000);
}

/* The id in the answer is what a program makes of it that reads numbers as doubles, and writes them
 * as Python does: no JSON if the number is too large. */
static void respell_id(struct task *task)
{
    double number = strtod(task->key + 1, NULL);

    if (wire_ids_rewritten)
        return;
    if (isinf(number))
        copy_name(task->raw_id, sizeof task->raw_id, number > 0 ? "Infinity" : "-Infinity");
    else
        snprintf(task->raw_id, sizeof task->raw_id, "%.17g", number);
}

/* The orders about the answer; a notification has none. */
static void order_task(struct worker *worker, struct task *task, char order, uint32_t number)
{
    if (task == NULL)
        return;
    if (order == 'd')
        task->due_ms = worker->now_ms + number;
    else if (order == 'u')
        task->due_ms = INT64_MAX;
    else if (order == 's')
        task->size = number;
    else if (order == 'v')
        task->twice = true;
    else if (order == 'S')
        make_session(worker, task);
    else if (order == 'f')
        respell_id(task);
    else
        for (; number > 0; number--)
            say_progress(worker, task, true);
}

static void order_harm(struct worker *worker, char order, uint32_t number)
{
    if (worker_behaves(worker))
        return;
    if (order == 't')
        worker->ignores_term = true;
    else if (order == 'w')
        worker->slow_ms = number;
    else if (order == 'z')
        stall(worker, number);
    else if (order == 'b' || order == 'B')
        leave_child(worker, order == 'B', number > 0);
    else
        doom(worker, order);
}

static void obey_order(struct worker *worker, const struct wire_header *header, struct task *task,
                       char order, uint32_t number)
{
    if (strchr("dusvoSf", order) != NULL) {
        order_task(worker, task, order, number);
    } else if (order == 'e') {
        say_event(worker, "", number);
    } else if (order == 'Q') {
        ask(worker, "", WIRE_QUESTION, number);
    } else if (order == 'n') {
        for (uint32_t i = 0; i < number; i++)
            say_event(worker, header->session, dice_chance(&worker->dice, 900) ? 150 : 3000);
    } else if (order == 'N') {
        say_event(worker, header->session, number);
    } else if (order == 'q') {
        for (uint32_t i = 0; i < number; i++)
            ask(worker, header->session, WIRE_QUESTION, 150);
    } else {
        order_harm(worker, order, number);
    }
}

static void forget_question(struct worker *worker, unsigned long long number)
{
    for (size_t i = 0; i < WORKER_QUESTIONS_MAX; i++) {
        if (worker->questions[i].number == number)
            worker->questions[i].number = 0;
    }
}

void worker_obey(struct worker *worker, const struct wire_header *header)
{
    const char *at = header->orders;
    struct task *task = NULL;

    if (header->kind == WIRE_HOSTILE && header->orders[0] == 'h')
        return; /* a request that hangs */
    if (header->kind != WIRE_HOSTILE)
        remember_session(worker, header->session);
    if (header->kind == WIRE_REQUEST || header->kind == WIRE_HOSTILE)
        task = add_task(worker, header);
    else if (header->kind == WIRE_REPLY && header->ref.origin == worker->origin)
        forget_question(worker, header->ref.number);
    while (*at != '\0') {
        char order = *at, *rest;
        uint32_t number = (uint32_t)strtoul(at + 1, &rest, 10);

        obey_order(worker, header, task, order, number);
        at = *rest == ',' ? rest + 1 : rest;
    }
}

void worker_cancelled(struct worker *worker, const char *id)
{
    struct record record = {.type = RECORD_CANCELLED, .key = wire_key_hash(id)};

    for (size_t i = 0; i < worker->task_count; i++) {
        if (strcmp(worker->tasks[i].raw_id, id) == 0 && wire_cancels_for_good &&
            dice_chance(&worker->dice, 500)) {
            worker->tasks[i] = worker->tasks[--worker->task_count];
            record.detail = 1;
        }
    }
    worker_note(worker, record);
}

static enum question_error error_of_text(const char *text)
{
    static const char *const texts[] = {
        [QUESTION_DUPLICATE] = "id is already in use by a request of yours that is still in flight",
        [QUESTION_UNROUTABLE] = "unroutable: no sessionId to tell which client",
        [QUESTION_NO_SESSION] = "unroutable: no such session",
        [QUESTION_NOBODY] = "unroutable: nothing tells which client",
        [QUESTION_DISCONNECTED] = "client disconnected before answering",
        [QUESTION_INPUT_CLOSED] = "the client cannot answer: it has closed its input",
        [QUESTION_TOO_MANY] = "too many pending requests (max_pending_requests ",
        [QUESTION_ID_BUSY] = "id is still in use by another request that is in flight",
        [QUESTION_SHUTDOWN] = "the daemon is shutting down",
        [QUESTION_UNFETCHED] = "the client does not fetch what it is asked",
    };
    unsigned i;

    for (i = 0; i < QUESTION_UNKNOWN_TEXT; i++) {
        if (strncmp(text, texts[i], strlen(texts[i])) == 0)
            break;
    }
    return (enum question_error)i;
}

bool worker_refused(struct worker *worker, const struct wire_error *error)
{
    struct question *question = find_question(worker, error->key);

    if (question == NULL)
        return false;
    worker_note(worker, (struct record){.type = RECORD_GOT_ERROR,
                                        .kind = (uint8_t)question->kind,
                                        .detail = (uint8_t)error_of_text(error->text),
                                        .serial = {worker->origin, question->number}});
    question->number = 0;
    return true;
}

/* --- random acts --- */

void worker_tire(struct worker *worker)
{
    if (!worker_behaves(worker) && dice_chance(&worker->dice, 20))
        doom(worker, "xXkp"[dice_below(&worker->dice, 4)]);
}

void worker_throw_dice(struct worker *worker)
{
    struct dice *dice = &worker->dice;
    const char *session;

    if (worker_behaves(worker) || worker->now_ms < worker->next_throw_ms || worker->leaving)
        return;
    worker->next_throw_ms = worker->now_ms + THROW_MS;
    session = worker->sessions[dice_below(dice, WORKER_SESSIONS_MAX)];
    if (dice_chance(dice, 50))
        say_event(worker, session, 300);
    if (worker_is_bound(worker) && dice_chance(dice, 30))
        say_event(worker, "", 300);
    if (worker->task_count > 0 && dice_chance(dice, 50))
        say_progress(worker, &worker->tasks[dice_below(dice, (uint32_t)worker->task_count)], true);
    if (dice_chance(dice, 20))
        ask(worker, dice_chance(dice, 500) ? session : "", WIRE_QUESTION, 200);
    if (dice_chance(dice, 20))
        say_nowhere(worker);
    if (dice_chance(dice, 3))
        stall(worker, dice_between(dice, 50, 900));
    if (dice_chance(dice, 2))
        doom(worker, "gcixXkp"[dice_below(dice, 7)]);
}
