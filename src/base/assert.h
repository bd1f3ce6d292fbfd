/* ASSERT(condition) states what a caller must guarantee. A build with assertions (configure
 * --enable-assertions, --enable-sanitizers or --enable-fuzzing) aborts with file, line and text if
 * the condition is false; any other build does not evaluate it. */
#ifndef STDIO_BUS_BASE_ASSERT_H
#define STDIO_BUS_BASE_ASSERT_H

#ifdef STDIO_BUS_ASSERTIONS
#undef NDEBUG
#include <assert.h>
#define ASSERT(condition) assert(condition)
#else
#define ASSERT(condition) ((void)(0 && (condition)))
#endif

#endif
