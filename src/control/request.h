/* A request on the control socket: a line of JSON-RPC. */
#ifndef STDIO_BUS_CONTROL_REQUEST_H
#define STDIO_BUS_CONTROL_REQUEST_H

#include "json/document.h"
#include "json/scanner.h"
#include "json/text.h"

#define CONTROL_LINE_MAX 16384 /* bytes of a request, its newline included */

enum control_method {
    CONTROL_STATUS,
    CONTROL_POOLS,
    CONTROL_WORKERS,
    CONTROL_CLIENTS,
    CONTROL_SESSIONS,
    CONTROL_REQUESTS,
    CONTROL_NODES,
    CONTROL_FIGURES,
    CONTROL_METRICS,
    CONTROL_EVENTS,
    CONTROL_RESTART,
    CONTROL_DRAIN,
    CONTROL_RESUME,
    CONTROL_DISCONNECT,
    CONTROL_LOG,
    CONTROL_RELOAD,
    CONTROL_UPGRADE,
    CONTROL_METHODS
};

#define CONTROL_NO_MEMORY (-32603) /* the JSON-RPC error code */

extern const char *const control_method_names[CONTROL_METHODS];

/* Elements of a list that are sent unless params.limit says otherwise, and at most. */
#define CONTROL_LIMIT_DEFAULT 1000
#define CONTROL_LIMIT_MAX 10000

struct control_request {
    struct slice id; /* as it was written; data NULL: none, and there is no reply */
    enum control_method method;
    int64_t worker, client; /* their numbers; 0: not given */
    size_t limit;
    struct slice pool, level; /* data NULL: not given */
    struct document document; /* the owner of the slices but id */
};

/* Reads a line, in which the scanner has found the fields; the line lives as long as the request.
 * Returns 0; or a JSON-RPC error code with the problem in words, and then the id alone counts. */
int control_request_read(struct control_request *request, struct slice line,
                         const struct scan_fields *fields, const char **problem);

void control_request_free(struct control_request *request);

/* A reply, with its newline. The result is JSON. */
void control_write_result(struct json_text *to, struct slice id, struct slice result);
void control_write_error(struct json_text *to, struct slice id, int code, const char *problem);

#endif
