/* The columns of the tables that stdio_bus ctl prints, by the kind of their rows. */
#ifndef STDIO_BUS_CLI_CTL_COLUMNS_H
#define STDIO_BUS_CLI_CTL_COLUMNS_H

#include "cli/ctl_table.h"

extern const struct ctl_column ctl_pool_columns[], ctl_worker_columns[], ctl_client_columns[],
    ctl_session_columns[], ctl_request_columns[], ctl_node_columns[];

#endif
