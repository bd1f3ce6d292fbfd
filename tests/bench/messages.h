/* The messages between load and echo_worker. A request
 *
 *     {"jsonrpc":"2.0","id":7,"sessionId":"sess_...","method":"echo","params":{"text":"..."}}
 *
 * becomes its answer by a change of two six-letter words, so that the worker costs little.
 * A request without a session has no sessionId. */
#ifndef TESTS_BENCH_MESSAGES_H
#define TESTS_BENCH_MESSAGES_H

#define MESSAGE_START "{\"jsonrpc\":\"2.0\",\"id\":" /* the id follows, a number */
#define MESSAGE_SESSION ",\"sessionId\":\""
#define MESSAGE_ECHO ",\"method\":\"echo\",\"params\":" /* the text follows */
#define MESSAGE_ECHOED ",\"worker\":\"echo\",\"result\":"
/* Asks for notifications without end. */
#define MESSAGE_PUSH ",\"method\":\"push\",\"params\":"
#define MESSAGE_PUSHED ",\"worker\":\"push\",\"result\":"

/* A notification; the session, NOTE_MIDDLE, a number of NOTE_DIGITS digits and NOTE_END follow. */
#define NOTE_START "{\"jsonrpc\":\"2.0\",\"method\":\"note\",\"sessionId\":\""
#define NOTE_MIDDLE "\",\"params\":{\"count\":"
#define NOTE_END "}}\n"
#define NOTE_DIGITS 10
#define NOTE_FIRST 1000000000u

#define LENGTH(text) (sizeof(text) - 1)

#endif
