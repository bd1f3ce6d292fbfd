/* How far a key is from another one, to find the key that was meant. */
#ifndef STDIO_BUS_CONFIG_SPELLING_H
#define STDIO_BUS_CONFIG_SPELLING_H

#include "base/slice.h"

#define SPELLING_MAX 64 /* bytes; a longer key resembles none */

/* The number of characters to insert, remove or replace to turn a into b, whatever their case. b
 * has at most SPELLING_MAX bytes. */
size_t spelling_distance(struct slice a, struct slice b);

#endif
