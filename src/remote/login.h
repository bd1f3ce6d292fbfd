/* A server that asks for a login: what its protected-resource metadata (RFC 9728) says about it. */
#ifndef STDIO_BUS_REMOTE_LOGIN_H
#define STDIO_BUS_REMOTE_LOGIN_H

#include <stdbool.h>

struct call;

/* The server has refused the call with 401, and there is no token: a GET asks where to log in, once
 * in the life of the process. Then, or when it does not answer in time, the call fails. False:
 * nothing is asked. */
bool login_try(struct call *call);

#endif
