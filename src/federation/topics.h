/* Topics of the topic bus over NATS: a service of its own, which is there where both the topic bus
 * and NATS are. After nats_service in the list of services, and after that of the topic bus. */
#ifndef STDIO_BUS_FEDERATION_TOPICS_H
#define STDIO_BUS_FEDERATION_TOPICS_H

#include "bus/service.h"

extern const struct service nats_topics_service;

#endif
