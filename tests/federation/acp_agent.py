#!/usr/bin/env python3
"""acp_agent.py: an ACP agent for chaos.py, on stdin and stdout.

A prompt is answered after a session/update and a session/request_permission of its session. Both
have the `n` of the prompt, and the answer has the reply to the question, and the session. Any
session can be loaded, as if all agents had the same disk.
"""
import json
import os
import sys
import uuid

sessions = set()
asked = {}  # by the id of a question: the prompt


def say(**message):
    sys.stdout.write(json.dumps({'jsonrpc': '2.0', **message}) + '\n')
    sys.stdout.flush()


def begin_turn(message):
    params = message['params']
    if params['sessionId'] not in sessions:
        say(id=message['id'], error={'code': -32602, 'message': 'no such session'})
        return
    question = str(uuid.uuid4())
    asked[question] = message
    say(method='session/update', params={'sessionId': params['sessionId'], 'n': params['n']})
    say(method='session/request_permission', id=question,
        params={'sessionId': params['sessionId'], 'n': params['n']})


def end_turn(reply):
    message = asked.pop(reply.get('id'), None)
    if message is None:
        print(f'VIOLATION: an answer to no question: {reply}', file=sys.stderr)
    elif 'error' in reply:
        say(id=message['id'], error=reply['error'])
    else:
        say(id=message['id'], result={'stopReason': 'end_turn', 'pid': os.getpid(),
                                      'n': message['params']['n'],
                                      'of': message['params']['sessionId'],
                                      'reply': reply['result']['n']})


def new_session(_params):
    session = str(uuid.uuid4())
    sessions.add(session)
    return {'sessionId': session}


def load_session(params):
    sessions.add(params['sessionId'])
    return {}


def main():
    results = {
        'initialize': lambda _: {'protocolVersion': 1, 'agentCapabilities': {'loadSession': True}},
        'session/new': new_session,
        'session/load': load_session,
    }
    for line in sys.stdin:
        message = json.loads(line)
        method = message.get('method')
        if method is None:
            end_turn(message)
        elif method == 'session/prompt':
            begin_turn(message)
        elif 'id' in message:
            say(id=message['id'], result=results[method](message['params']))


main()
