-- For wrk: each request is a POST of a tools/call with an id of its own, in the session that is the
-- argument ("": none). Prints requests, errors, seconds, and the latency in microseconds.

local session, id = "", 0

function init(args)
    session = args[1] or ""
    wrk.method = "POST"
    wrk.headers["Content-Type"] = "application/json"
    wrk.headers["Accept"] = "application/json, text/event-stream"
    if session ~= "" then
        wrk.headers["Mcp-Session-Id"] = session
        wrk.headers["MCP-Protocol-Version"] = "2025-11-25"
    end
end

function request()
    id = id + 1
    return wrk.format(nil, nil, nil, '{"jsonrpc":"2.0","id":' .. id ..
        ',"method":"tools/call","params":{"name":"next","arguments":{}}}')
end

function done(summary, latency)
    local errors = summary.errors
    io.write(string.format("RESULT %d %d %.3f %.0f %.0f\n", summary.requests, errors.connect +
        errors.read + errors.write + errors.status + errors.timeout, summary.duration / 1e6,
        latency:percentile(50), latency:percentile(99)))
end
