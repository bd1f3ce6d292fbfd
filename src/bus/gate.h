/* The gate: makes clients of the connections of a listener that are admitted (spec 4.1). The
 * first line of a connection may name its pool (framing/first_frame.h) and, where there is a token,
 * the first line of a TCP connection has to show it. Where there is a greeter, it reads the first
 * line of a connection to the Unix socket. */
#ifndef STDIO_BUS_BUS_GATE_H
#define STDIO_BUS_BUS_GATE_H

#include "bus/clients.h"
#include "bus/listeners.h"

#define GATE_SECONDS 10 /* for the first line, or the first token over HTTP */
#define GATE_MAX 64     /* connections without it; the oldest makes way */
#define GATE_POOLS_MAX 256

/* Names the pools that clients of the listener can name, as far as they fit: the end of an error
 * about one that there is not. */
void gate_describe_pools(const struct bus_listener *listener, char text[GATE_POOLS_MAX]);

/* --- a connection, to any listener --- */

/* visitor_judge, after a client that has not shown its token has made room. */
void gate_judge(struct arrival *arrival, struct bus_listener *listener, int fd,
                const struct origin *origin);

/* Makes a client of the connection with these options, in which the descriptors are set here. A
 * refused one is for its error alone; its owner sends that and closes it. Any other has no share
 * yet. NULL, and the descriptor is closed: out of memory, or too many are being refused. */
struct client *gate_take(const struct arrival *arrival, struct stream_options *options);

/* The client has to show its token within GATE_SECONDS; until clients_leave_gate it makes way for
 * other connections if there are too many such. */
void gate_wait(struct client *client);

/* From now on the client has a share, and takes turns with others of its origin. */
void gate_admit(struct client *client);

/* What reads the messages of a client: in an archive, and back. */
enum gate_stage {
    GATE_PASSED,  /* clients_handler_of, or a service's */
    GATE_REFUSED, /* clients_handler, which does not wait */
    GATE_ASKS,    /* for the line with a token, or that of a greeter */
    GATE_FIRST    /* message, which may be an opening line */
};
enum gate_stage gate_stage_of(const struct client *client);

/* Sets the handler of a stage, the framing that goes with it and whether lines may be arrays. */
void gate_set_stage(struct stream_options *options, const struct client *client,
                    enum gate_stage stage);

/* After the client was loaded: its stage continues. The timer of one that has to show its line was
 * started, or not. */
void gate_go_on(struct client *client, enum gate_stage stage);
void gate_prepare_wait(struct client *client);

/* --- a connection to a Unix or TCP listener --- */

extern const struct listener_kind gate_unix_listener, gate_tcp_listener;

#endif
