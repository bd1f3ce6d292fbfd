/* Integers of the wire: big-endian, at any address (RMP 1). */
#ifndef STDIO_BUS_RMP_WIRE_H
#define STDIO_BUS_RMP_WIRE_H

#include <stdint.h>

static inline uint16_t wire_get_u16(const char *from)
{
    const unsigned char *p = (const unsigned char *)from;

    return (uint16_t)((unsigned)p[0] << 8 | p[1]);
}

static inline uint32_t wire_get_u32(const char *from)
{
    const unsigned char *p = (const unsigned char *)from;

    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint64_t wire_get_u64(const char *from)
{
    return (uint64_t)wire_get_u32(from) << 32 | wire_get_u32(from + 4);
}

static inline void wire_put_u16(char *to, uint16_t value)
{
    to[0] = (char)(value >> 8);
    to[1] = (char)(value & 0xFF);
}

static inline void wire_put_u32(char *to, uint32_t value)
{
    wire_put_u16(to, (uint16_t)(value >> 16));
    wire_put_u16(to + 2, (uint16_t)(value & 0xFFFF));
}

static inline void wire_put_u64(char *to, uint64_t value)
{
    wire_put_u32(to, (uint32_t)(value >> 32));
    wire_put_u32(to + 4, (uint32_t)(value & 0xFFFFFFFF));
}

#endif
