/* The JSON Schema of the configuration, made of the tables of its keys. doc/stdio_bus.schema.json
 * is what it prints. */
#ifndef STDIO_BUS_CONFIG_SCHEMA_H
#define STDIO_BUS_CONFIG_SCHEMA_H

#include "json/text.h"

/* Adds it in lines. text->failed: out of memory. */
void schema_add(struct json_text *text);

#endif
