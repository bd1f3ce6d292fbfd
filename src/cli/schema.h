/* The JSON Schema of the configuration: doc/stdio_bus.schema.json. */
#ifndef STDIO_BUS_CLI_SCHEMA_H
#define STDIO_BUS_CLI_SCHEMA_H

/* Its lines, up to a NULL; made of that file by make. */
const char *const *schema_lines(void);

#endif
