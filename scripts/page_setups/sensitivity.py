"""A server that stands for a language model."""

import http.server
import json
import re
import threading


class Chat(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"][-1]["content"]
        passages = [part.partition("</passage>")[0] for part in asked.split("<passage>\n")[1:]]
        words = set(re.findall(r"\w+", asked.partition("Search: ")[2].partition("\n")[0].lower()))
        worth = [len(words & set(re.findall(r"\w+", p.lower()))) for p in passages]
        worth = [w + (2 if i == 0 else 0) for i, w in enumerate(worth)]
        token = re.findall(r"^([a-z]{8}): \S", asked, re.MULTILINE)[-1]
        said = f"{token}: " + " > ".join(
            f"[{i + 1}]" for i in sorted(range(len(worth)), key=lambda i: -worth[i])
        )
        choice = {"message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
        usage = {"prompt_tokens": len(asked) // 4, "completion_tokens": len(said) // 4 + 1}
        data = json.dumps({"model": "small-1", "choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Chat)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
model = f"http://127.0.0.1:{server.server_port}/v1#small"
