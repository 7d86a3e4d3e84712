"""A chat server with three models in code, in place of real ones: ``python server.py PORT``."""

import json
import random
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def pupil(text):
    """Add two numbers or count a letter; long numbers and long strings go wrong more often."""
    numbers = re.search(r"What is (\d+) \+ (\d+)", text)
    letters = re.search(r"letter ([A-F]) occur in ([A-F]+)", text)
    if numbers:
        answer, size = int(numbers[1]) + int(numbers[2]), 4 * len(numbers[1])
    elif letters:
        answer, size = letters[2].count(letters[1]), len(letters[2])
    else:
        return "Hello."
    wrong = random.Random(text).random() < size / 40
    return str(answer + wrong)


def examiner(text):
    """Write a question of the form that is asked for; one in ten breaks the form and is written again."""
    rng, demand = random.Random(text), re.search(r"(two whole numbers|a string) of (\d+)", text)
    if demand is None or rng.random() < 0.1:
        return "Which question would you like?"
    if demand[1] == "two whole numbers":
        low = 10 ** (int(demand[2]) - 1)
        first, second = rng.randrange(low, 10 * low), rng.randrange(low, 10 * low)
        return f"Question: What is {first} + {second}?\nAnswer: {first + second}"
    letter, word = "A", "".join(rng.choices("ABCDEF", k=int(demand[2])))
    return f"Question: How many times does the letter {letter} occur in {word}?\nAnswer: {word.count(letter)}"


def supervisor(text):
    """Find no fault in any question."""
    return "no"


MODELS = {"pupil": pupil, "examiner": examiner, "supervisor": supervisor}


class Chat(BaseHTTPRequestHandler):
    protocol_version, wbufsize = "HTTP/1.1", -1  # connections stay open, and a reply is sent in one piece

    def do_GET(self):
        self.reply({"object": "list", "data": [{"id": name, "object": "model"} for name in MODELS]})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = MODELS[asked["model"]](asked["messages"][-1]["content"])
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 300, "completion_tokens": 20, "total_tokens": 320}
        self.reply({"object": "chat.completion", "model": asked["model"], "choices": [choice], "usage": usage})

    def reply(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Chat).serve_forever()
