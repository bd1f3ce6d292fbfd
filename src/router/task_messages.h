/* Messages of MCP that begin, name or end a task (router/tasks.h). */
#ifndef STDIO_BUS_ROUTER_TASK_MESSAGES_H
#define STDIO_BUS_ROUTER_TASK_MESSAGES_H

#include "router/decision.h"

/* The answer to a request that wanted to become a task. If it did, the task is the asker's, and the
 * tokens of the request stay known. False: the answer is not for the asker, or out of memory. */
bool task_messages_begin(struct decision *decision, struct request *request);

/* The answer to tasks/result: the task has ended. */
void task_messages_fetched(const struct decision *decision, const struct request *request);

/* The client's message names a task that is not the client's: it was refused or discarded. */
bool task_messages_kept_back(struct decision *decision, const struct peer *worker);

/* The owner of the task that the worker's message names. NULL: the task is not known, and the
 * message was refused or dropped. */
struct peer *task_messages_owner(struct decision *decision);

/* The task that the worker's notification names may have ended with it. */
void task_messages_status(const struct decision *decision);

#endif
