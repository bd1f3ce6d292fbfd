/* The overrides of stdio_bus_rmp submit --params, merged into the text of an opening (RMP 9). */
#ifndef STDIO_BUS_CLI_RMP_PARAMS_H
#define STDIO_BUS_CLI_RMP_PARAMS_H

#include "json/text.h"

#define RMP_PARAMS_PROBLEM_MAX 256

/* Adds the opening to `to`, with the overrides as members of its mapping `params`: in place of the
 * members of the same names, or after the others. The rest of the text stays as it is. An override
 * is KEY=VALUE, where VALUE is JSON or else a string, or a JSON object; of two with the same key
 * the last one counts. The opening is a block mapping, or a JSON object. False, with a line in
 * `problem`: an override or the opening cannot be used, or out of memory. */
bool rmp_params_merge(struct json_text *to, struct slice opening, const char *const *overrides,
                      size_t count, char problem[RMP_PARAMS_PROBLEM_MAX]);

#endif
