#include "build_config.h"

#include "rmp/control_message.h"

/* --- reading --- */

static bool read_id(struct slice map, const char *key, struct rmp_id *id)
{
    struct msgpack_value value;

    return msgpack_find(map, key, &value, NULL) && rmp_id_of_value(&value, id);
}

static bool read_submit(struct rmp_control_request *request, const char **problem)
{
    struct msgpack_value yaml;
    struct rmp_id id;

    request->kind = RMP_CONTROL_SUBMIT;
    request->run_id = request->request_id;
    if (!read_id(request->members, "request_id", &id))
        *problem = "RunSubmit has no request_id";
    else if (!rmp_id_equal(id, request->request_id))
        *problem = "request_id is not the trace_id of the frame";
    else if (!msgpack_find(request->members, "opening_yaml", &yaml, NULL) ||
             yaml.type != MSGPACK_STR)
        *problem = "RunSubmit has no opening_yaml";
    else
        return true;
    return false;
}

static bool read_cancel(struct rmp_control_request *request, const char **problem)
{
    request->kind = RMP_CONTROL_CANCEL;
    if (read_id(request->members, "trace_id", &request->run_id))
        return true;
    *problem = "RunCancel has no trace_id";
    return false;
}

bool rmp_control_read(struct rmp_control_request *request, const struct rmp_header *header,
                      const struct rmp_envelope *envelope, const char **problem)
{
    struct msgpack_value value;

    request->request_id = header->trace_id;
    if (msgpack_find(envelope->payload, "RunSubmit", &value, &request->members))
        return read_submit(request, problem);
    if (msgpack_find(envelope->payload, "RunCancel", &value, &request->members))
        return read_cancel(request, problem);
    *problem = "neither RunSubmit nor RunCancel";
    return false;
}

/* --- payloads of answers --- */

void rmp_put_id(struct msgpack_writer *writer, struct rmp_id id)
{
    char bytes[RMP_ID_LEN];

    rmp_id_write(bytes, id);
    msgpack_put_bin(writer, slice_of(bytes, sizeof bytes));
}

static void put_head(struct msgpack_writer *writer, const char *variant, uint32_t members,
                     struct rmp_id request_id)
{
    msgpack_put_map(writer, 1);
    msgpack_put_text(writer, variant);
    msgpack_put_map(writer, members);
    msgpack_put_text(writer, "request_id");
    rmp_put_id(writer, request_id);
}

void rmp_control_put_accepted(struct msgpack_writer *writer, struct rmp_id request_id,
                              struct slice opening_id, struct slice opening_name)
{
    put_head(writer, "RunAccepted", 4, request_id);
    msgpack_put_text(writer, "trace_id");
    rmp_put_id(writer, request_id);
    msgpack_put_text(writer, "opening_id");
    msgpack_put_raw(writer, opening_id);
    msgpack_put_text(writer, "opening_name");
    msgpack_put_raw(writer, opening_name);
}

void rmp_control_put_rejected(struct msgpack_writer *writer, struct rmp_id request_id,
                              struct slice reason)
{
    put_head(writer, "RunRejected", 2, request_id);
    msgpack_put_text(writer, "reason");
    msgpack_put_str(writer, reason);
}

void rmp_control_put_cancelled(struct msgpack_writer *writer, struct rmp_id request_id,
                               struct rmp_id run_id)
{
    put_head(writer, "RunCancelled", 2, request_id);
    msgpack_put_text(writer, "trace_id");
    rmp_put_id(writer, run_id);
}
