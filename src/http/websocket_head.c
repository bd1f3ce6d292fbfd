#include "build_config.h"

#include "http/websocket_head.h"

#define FINAL 0x80u
#define RESERVED 0x70u
#define OPCODE 0x0Fu
#define MASKED 0x80u

/* What is wrong with the first two bytes of a frame; NULL: nothing. */
static const char *judge(unsigned first, unsigned second, bool is_client)
{
    unsigned opcode = first & OPCODE;

    if (first & RESERVED)
        return "a reserved bit is set";
    if (is_client && (second & MASKED))
        return "a frame of a server is masked";
    if (!is_client && !(second & MASKED))
        return "a frame of a client is not masked";
    if (opcode > WEBSOCKET_PONG || (opcode > WEBSOCKET_BINARY && opcode < WEBSOCKET_CLOSE))
        return "an opcode is unknown";
    if (opcode >= WEBSOCKET_CLOSE && !(first & FINAL))
        return "a control frame is in parts";
    if (opcode >= WEBSOCKET_CLOSE && (second & ~MASKED) > WEBSOCKET_CONTROL_MAX)
        return "a control frame is too long";
    return NULL;
}

/* The length, in `extra` bytes at the third one. False: it has a shorter form, or is too long. */
static bool read_length(struct websocket_head *head, const unsigned char *bytes, size_t extra)
{
    head->len = extra == 0 ? bytes[1] & ~MASKED : 0;
    for (size_t i = 0; i < extra; i++)
        head->len = head->len << 8 | bytes[2 + i];
    return extra == 0 || (extra == 2 && head->len >= 126) ||
           (extra == 8 && head->len >= 65536 && head->len >> 63 == 0);
}

static enum websocket_head_status fail(enum websocket_code *code, enum websocket_code is,
                                       const char **problem, const char *text)
{
    *code = is;
    *problem = text;
    return WEBSOCKET_HEAD_BAD;
}

enum websocket_head_status websocket_head_read(struct websocket_head *head, struct slice input,
                                               bool is_client, size_t *head_len,
                                               enum websocket_code *code, const char **problem)
{
    const unsigned char *bytes = (const unsigned char *)input.data;
    size_t extra, mask_len = is_client ? 0 : WEBSOCKET_MASK_LEN;
    const char *wrong;

    if (input.len < 2)
        return WEBSOCKET_HEAD_MORE;
    wrong = judge(bytes[0], bytes[1], is_client);
    if (wrong != NULL)
        return fail(code, WEBSOCKET_PROTOCOL_ERROR, problem, wrong);
    *head = (struct websocket_head){.opcode = (enum websocket_opcode)(bytes[0] & OPCODE),
                                    .is_final = (bytes[0] & FINAL) != 0};
    if (head->opcode == WEBSOCKET_BINARY)
        return fail(code, WEBSOCKET_UNSUPPORTED, problem, "binary messages are not accepted");
    extra = (bytes[1] & ~MASKED) == 126 ? 2 : (bytes[1] & ~MASKED) == 127 ? 8 : 0;
    if (input.len < 2 + extra)
        return WEBSOCKET_HEAD_MORE;
    if (!read_length(head, bytes, extra))
        return fail(code, WEBSOCKET_PROTOCOL_ERROR, problem,
                    "a length is not in its shortest form");
    if (input.len < 2 + extra + mask_len)
        return WEBSOCKET_HEAD_MORE;
    memcpy(head->mask, bytes + 2 + extra, mask_len);
    *head_len = 2 + extra + mask_len;
    return WEBSOCKET_HEAD_WHOLE;
}
