/* The protocol of NATS between a client and its server: the lines that a server sends, and those
 * that a client does. No I/O. */
#ifndef STDIO_BUS_NATS_PROTOCOL_H
#define STDIO_BUS_NATS_PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "json/text.h"

#define NATS_LINE_MAX 32768 /* bytes of a control line of a server; INFO names all its servers */
#define NATS_URL_MAX 72
#define NATS_URLS_MAX 16

enum nats_kind { NATS_INFO, NATS_MSG, NATS_HMSG, NATS_PING, NATS_PONG, NATS_OK, NATS_ERR };

/* Reads digits, which end a subject or are a word of a control line. False: they are no number, or
 * too many; then *number is anything. */
bool nats_number_read(struct slice text, uint64_t *number);

/* What a control line says. Slices borrow from the line. */
struct nats_line {
    enum nats_kind kind;
    struct slice text;           /* INFO: JSON; -ERR: the reason, without its quotes */
    struct slice subject, reply; /* MSG, HMSG; reply.data NULL: none */
    uint64_t sid;                /* the number of the subscription */
    size_t head_len, len;        /* of the headers; of all that follows, but for its CRLF */
};

/* Reads a control line without its line end. NULL, or the problem as static text. */
const char *nats_line_read(struct nats_line *line, struct slice text);

/* A whole frame of framing_nats. */
struct nats_frame {
    struct nats_line line;
    struct slice headers, payload; /* MSG, HMSG */
};

/* Reads a frame that framing_nats has found. */
void nats_frame_read(struct nats_frame *frame, struct slice bytes);

/* Whether the headers say that no subscription takes the request ("NATS/1.0 503"). */
bool nats_no_responders(struct slice headers);

/* The value of a header, without white space around it. data NULL: it is not there. */
struct slice nats_header(struct slice headers, const char *name);

/* What INFO says, as far as it is used. */
struct nats_info {
    uint64_t max_payload; /* 0: unknown */
    bool tls_required, tls_available, auth_required, headers, lame_duck;
    bool clustered; /* it is one of several, which learn later of a subscription */
    char nonce[8];  /* its beginning: "" unless the server wants a signature */
    char urls[NATS_URLS_MAX][NATS_URL_MAX]; /* connect_urls: HOST:PORT */
    size_t url_count;
};

/* STDIO_BUS_EINVAL: it is no JSON object. STDIO_BUS_ERR: out of memory. */
int nats_info_read(struct nats_info *info, struct slice json);

/* Writes any bytes as parts of a subject; without a NUL. Returns the length, NATS_NAME_SIZE(len) at
 * most. '/' parts them, as '.'; what a subject cannot have, '.' itself and '%' become %XX. No two
 * names have the same parts. A name that is empty has none. */
#define NATS_NAME_SIZE(len) (3 * (len))
size_t nats_write_name(char *to, struct slice name);

struct nats_login {
    const char *name, *version;              /* of the client */
    struct slice user, password, auth_token; /* data NULL: none */
};

/* What a client sends, added to a text. */
void nats_put_connect(struct json_text *to, const struct nats_login *login);
void nats_put_sub(struct json_text *to, const char *subject, const char *queue, uint64_t sid);
void nats_put_unsub(struct json_text *to, uint64_t sid);

/* What precedes a payload. */
struct nats_head {
    struct slice subject;
    struct slice reply;   /* data NULL: none */
    struct slice headers; /* whole lines and the empty one; data NULL: none */
    struct slice prefix;  /* the beginning of the payload; data NULL: none */
};

/* The line of PUB or HPUB, the headers and the prefix, for a payload of that and this number of
 * bytes, which follow, and CRLF. */
void nats_put_pub(struct json_text *to, const struct nats_head *head, size_t len);

#endif
