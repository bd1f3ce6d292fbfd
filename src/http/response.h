/* The head of an HTTP/1.1 message that is written: start line and fields. */
#ifndef STDIO_BUS_HTTP_RESPONSE_H
#define STDIO_BUS_HTTP_RESPONSE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

#define HTTP_RESPONSE_MAX 4096 /* suffices for the heads that the daemon writes */

#define HTTP_CONTINUE "HTTP/1.1 100 Continue\r\n\r\n"

/* A head as far as it is written. `full`: it did not fit, and must not be sent. */
struct http_output {
    char *to;
    size_t size, len;
    bool full;
};

/* The reason phrase of a status that the daemon uses; "" of any other. */
const char *http_reason(int status);

/* HTTP/1.1 STATUS REASON */
void http_write_status(struct http_output *out, int status);

/* METHOD TARGET HTTP/1.1, for a client. */
void http_write_request(struct http_output *out, const char *method, struct slice target);

/* NAME: VALUE. A byte of the value that no field may have becomes a space. */
void http_write_field(struct http_output *out, const char *name, struct slice value);
void http_write_text(struct http_output *out, const char *name, const char *value);
void http_write_number(struct http_output *out, const char *name, uint64_t value);

/* Date: of this number of seconds since 1970. */
void http_write_date(struct http_output *out, int64_t seconds);

/* The empty line. */
void http_write_end(struct http_output *out);

#endif
