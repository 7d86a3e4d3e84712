"""A chat server that adds two numbers: ``python server.py PORT``."""

import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Chat(BaseHTTPRequestHandler):
    def do_GET(self):
        self.reply({"object": "list", "data": [{"id": "adder", "object": "model"}]})

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        total = sum(map(int, re.findall(r"\d+", asked["messages"][-1]["content"])))
        choice = {"index": 0, "message": {"role": "assistant", "content": str(total)}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}
        self.reply({"id": "1", "object": "chat.completion", "model": "adder", "choices": [choice], "usage": usage})

    def reply(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Chat).serve_forever()
