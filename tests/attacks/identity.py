"""Answers, questions, sessions and secrets of others."""
import os
import stat
import subprocess
import time

from attempt import Attempt, Limit, mark
from world import TOKEN, Line, need


def equal_ids(world, ident):
    """Both clients use this id at once; each gets what it asked for."""
    victim, thief = world.client(), world.other()
    victim.send({"id": ident, "method": "hold", "params": "victim", "pool": "mcp"})
    time.sleep(0.05)
    thief.send({"id": ident, "method": "hold", "params": "thief", "pool": "mcp"})
    time.sleep(0.05)
    world.client().ask("release", pool="mcp")
    got = [client.message() for client in (victim, thief)]
    victim.close()
    thief.close()
    need(got[0] is not None and got[0]["result"] == "victim", "the victim got %r" % got[0])
    need(got[1] is None or got[1].get("result") in ("thief", None), "the thief got %r" % got[1])


def late_answer(world):
    """The thief comes with the id of a client that has left, and would get its answer."""
    text = mark()
    victim = world.client()
    victim.send({"id": "late", "method": "hold", "params": text, "pool": "plain"})
    time.sleep(0.05)
    victim.close()
    thief = world.other()
    thief.send({"id": "late", "method": "never", "pool": "plain"})
    time.sleep(0.05)
    world.client().ask("release", pool="plain")
    got = thief.rest(0.4)
    thief.close()
    need(text.encode() not in got, "it got the answer")


def false_reply(world, ident):
    """The victim is asked `q`; the thief answers in its place, under whatever id."""
    text = mark()
    victim, thief = world.client(), world.other()
    victim.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                              "clientInfo": {"name": "v", "version": "1"}}, pool="solo")
    victim.send({"id": 2, "method": "ask", "params": {"id": 7}, "pool": "solo"})
    asked = victim.message()
    thief.raw(b'{"jsonrpc":"2.0","id":%s,"pool":"solo","result":"%s"}\n'
              % (ident.encode(), text.encode()))
    time.sleep(0.1)
    victim.message(0.3)
    seen = victim.ask("marks", ident=3, pool="solo")["result"]
    victim.close()
    thief.close()
    need(asked is not None, "the victim was not asked")
    need(not any(text in each for each in seen), "the worker took it for the answer")


def cancelled_by_another(world, method, params):
    victim, thief = world.client(), world.other()
    victim.send({"id": "mine", "method": "hold", "params": "kept", "pool": "mcp"})
    time.sleep(0.05)
    thief.send({"method": method, "params": params, "pool": "mcp"})
    thief.ask("echo", pool="mcp")
    world.client().ask("release", pool="mcp")
    got = victim.message()
    victim.close()
    thief.close()
    need(got is not None and got.get("result") == "kept", "the victim got %r" % got)


def notification_question(world):
    """The thief notifies; what the worker asks then must not be answered by the victim."""
    victim, thief = world.client(), world.other()
    victim.send({"id": 1, "method": "never", "pool": "mcp"})
    thief.ask("echo", pool="mcp")
    thief.send({"method": "say", "params": {"id": "q", "method": "question"}, "pool": "mcp"})
    got = victim.message(0.5)
    victim.close()
    thief.close()
    need(got is None, "the victim is asked: %r" % got)


def guessed_subscription(world):
    """Updates reach subscribers alone, in a process that is shared."""
    thief = world.other()
    thief.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                             "clientInfo": {"name": "t", "version": "1"}}, pool="mcp")
    world.client().ask("say", {"method": "notifications/resources/updated",
                               "params": {"uri": "file:///secret"}}, pool="mcp")
    got = thief.rest(0.3)
    thief.close()
    need(b"secret" not in got, "it was told")


def exclusive_process(world):
    """A process of another client, before or after it."""
    victim = world.client()
    first = victim.ask("echo", pool="solo")["result"]["pid"]
    thief = world.other()
    second = thief.ask("echo", pool="solo")["result"]["pid"]
    victim.close()
    time.sleep(0.2)
    third_client = world.other()
    third = third_client.ask("echo", pool="solo")["result"]["pid"]
    thief.close()
    third_client.close()
    need(len({first, second, third}) == 3, "a process serves two clients")
    return "three processes for three clients"


def path_mode(world, path, allowed):
    mode = stat.S_IMODE(os.stat(getattr(world, path)).st_mode)
    need(mode & ~allowed == 0, "the mode is %o" % mode)
    return "%o" % mode


def secrets_in_log(world, secret):
    client = world.other()
    client.ask("echo", {"password": "hunter2-in-params"}, pool="plain")
    client.close()
    with open(world.log, "rb") as file:
        need(secret.encode() not in file.read(), "it is in the log")


def secrets_in_ps(world):
    shown = subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, check=False).stdout
    need(TOKEN.encode() not in shown, "the token is in ps")


def forged_log(world):
    client = world.other()
    client.raw(b'{"id":"a\\n2026-01-01T00:00:00.000Z ERROR forged","method":"echo","pool":"x"}\n')
    client.rest(0.3)
    client.close()
    with open(world.log, "rb") as file:
        need(not any(b" ERROR forged" in line and line.startswith(b"2026-01-01T00:00:00.000Z")
                     for line in file), "there is a line of its own")


def decision_of_an_agent(world, command):
    """The RMP socket: what is the user's or the daemon's alone."""
    data = command.encode()
    client = Line(world.rmp)
    client.raw(len(data).to_bytes(4, "big") + data)
    answer = client.rest(0.4)
    client.close()
    need(b'"Ok"' not in answer, "it was taken: %r" % answer[:80])
    return "closed" if not answer.startswith(b"\0\0") else ascii(answer[4:60].decode("latin-1"))


def publish(topic, schema):
    return ('{"Publish":{"id":1,"topic":"%s","message":{"header":{"header_version":0,'
            '"header_len":64,"flags":0,"schema_id":%d,"body_len":3,"created_at_ms":%d,'
            '"ttl_ms":30000,"trace_id":1,"msg_id":7},"body":[1,2,3]}}}'
            % (topic, schema, time.time() * 1000))


def session_of_another(world):
    """The owner of a session of a plain pool stays who named it first."""
    victim, thief = world.client(), world.other()
    name = mark()
    victim.ask("echo", sessionId=name, pool="plain")
    thief.ask("echo", sessionId=name, pool="plain")
    world.client().ask("say", {"method": "n", "sessionId": name}, pool="plain")
    got, stolen = victim.message(1), thief.message(0.3)
    victim.close()
    thief.close()
    need(got is not None and stolen is None, "the thief got %r" % stolen)


def attempts():
    for ident in (1, "1", 1.5, "a", "\u0000", -0.0, 9007199254740993, "x" * 128):
        yield Attempt("answer", "the same id: %.20r" % (ident,), equal_ids, ident)
    yield Attempt("answer", "the id of a client that has left", late_answer)
    for ident in ("7", '"7"', "7.0", "null", "2", "0", "7e0", '"\\u0037"'):
        yield Attempt("question", "a reply in its place: %s" % ident, false_reply, ident)
    for method, params in (("notifications/cancelled", {"requestId": "mine"}),
                           ("notifications/cancelled", {"requestId": 2}),
                           ("$/cancel_request", {"requestId": "mine"}),
                           ("notifications/progress", {"progressToken": 2, "progress": 1}),
                           ("tasks/cancel", {"taskId": "mine"})):
        yield Attempt("answer", "%s of another's %s" % (method, list(params.values())[0]),
                      cancelled_by_another, method, params)
    yield Limit("question", "caused by another's notification", notification_question)
    yield Attempt("answer", "updates without a subscription", guessed_subscription)
    yield Attempt("answer", "the process of another", exclusive_process)
    yield Attempt("session", "named by another first", session_of_another)
    for path, allowed in (("unix", 0o600), ("control", 0o600), ("rmp", 0o660)):
        yield Attempt("file", "the mode of the socket %s" % path, path_mode, path, allowed)
    for secret in (TOKEN, "hunter2-in-params"):
        yield Attempt("log", "a secret: %s" % secret[:7], secrets_in_log, secret)
    yield Attempt("log", "the token in ps", secrets_in_ps)
    yield Attempt("log", "a line that an id makes", forged_log)
    for name, command in (("a decision", publish("action.decision", 3006)),
                          ("drops", publish("rlp/sys/drops", 3007)),
                          ("metrics", publish("rlp/sys/metrics", 3001)),
                          ("a decision on another topic", publish("a/b", 3006)),
                          ("a topic with a newline", publish("a\\nb", 3003)),
                          ("a schema that is unknown", publish("a/b", 9999)),
                          ("HTTP", "GET / HTTP/1.1\r\n\r\n")):
        yield Attempt("topic", "%s by an agent" % name, decision_of_an_agent, command)
