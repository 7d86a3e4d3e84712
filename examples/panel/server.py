"""A chat server with four models in code, in place of real ones: ``python server.py PORT``."""

import json
import random
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

#: Quality of each model's answers, on the scale of the judgments.
QUALITY = {"ant": 3.0, "bee": 3.6, "cat": 4.2, "owl": 4.8}


def reply(model, text):
    """Write a question, answer one with the model's quality, or rate what it reads, with noise."""
    noise = random.Random(model + text).gauss(0, 0.4)
    if text.startswith("Write one question"):
        topic = re.search(r"Topic: (.*)", text)[1]
        return f"Case {abs(noise):.6f}: what follows for {topic}, and why?"
    if text.startswith("Answer the question"):
        return f"A conclusion of quality {QUALITY[model]}."
    if "<rank>" in text:
        qualities = re.findall(r"conclusion of quality (\d\.\d)", text)
        rank = round(float(qualities[-1]) + noise) if qualities else 4
        return f"<rank>{min(max(rank, 1), 5)}</rank>"
    return "Hello."


class Chat(BaseHTTPRequestHandler):
    protocol_version, wbufsize = "HTTP/1.1", -1  # connections stay open, and a reply is sent in one piece

    def do_GET(self):
        self.reply({"object": "list", "data": [{"id": name, "object": "model"} for name in QUALITY]})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = reply(asked["model"], asked["messages"][-1]["content"])
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
