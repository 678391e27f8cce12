"""A server that stands for a language model, and two collections with an instruction."""

import http.server
import json
import re
import threading
import zlib


class Chat(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"][-1]["content"]
        said, _, rest = asked.partition("Search: ")
        words = {word for word in rest.partition("\n")[0].lower().split() if len(word) > 3}
        worth = []
        for passage in [part.partition("</passage>")[0].lower() for part in asked.split("<passage>\n")[1:]]:
            shared = 2 * len(words & set(passage.split()))
            worth.append(min(10, shared) if said else min(10, shared // 4 + zlib.crc32(passage.encode()) % 5))
        token = re.findall(r"^([a-z]{8}): \S", asked, re.MULTILINE)[-1]
        answer = f"{token}: {worth[0]}"
        if "passages in order" in asked:
            answer = f"{token}: " + " > ".join(
                f"[{i + 1}]" for i in sorted(range(len(worth)), key=lambda i: -worth[i])
            )
        choice = {"message": {"role": "assistant", "content": answer}, "finish_reason": "stop"}
        usage = {"prompt_tokens": len(asked) // 4, "completion_tokens": len(answer) // 4 + 1}
        data = json.dumps({"model": "small-1", "choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Chat)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
model = f"http://127.0.0.1:{server.server_port}/v1#small"

import pathlib
import shutil

import weir

for name, wanted in (
    ("news", "Find reports on the event."),
    ("facts", "Find what proves or refutes the claim."),
):
    shutil.copytree(weir.load(f"brook-{name}").layout.root, name, ignore=shutil.ignore_patterns("*.weir"))
    said = f'documents = "{name}/corpus.jsonl"\nqueries = "{name}/queries.jsonl"\nqrels = "{name}/qrels/test.tsv"\n'
    pathlib.Path(f"{name}.toml").write_text(f'{said}instruction = "{wanted}"\n')
