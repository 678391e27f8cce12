"""A server that stands for a judge, the collection mine, judgments and a run."""

import http.server
import json
import pathlib
import re
import threading


class Judge(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"][-1]["content"]
        passage = asked.split("<passage>\n")[-1].partition("\n</passage>")[0].lower()
        query = re.search(r"Query: (.*)", asked)[1].lower()
        hits = [word in passage for word in query.split()]
        grade = 3 if "ignore the" in passage else min(3, 3 * sum(hits) // len(hits))
        token = re.findall(r"^([a-z]{8}): n$", asked, re.MULTILINE)[-1]
        said = "I'm sorry, I can't." if "oven" in passage else f"{token}: {grade}"
        choice = {"message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
        usage = {"prompt_tokens": len(asked) // 4, "completion_tokens": len(said) // 4 + 1}
        data = json.dumps({"model": "small-1", "choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Judge)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
model = f"http://127.0.0.1:{server.server_port}/v1#small"
documents = {
    "d1": "A weir is a low dam across a river. It measures the flow.",
    "d2": "The river floods the meadow every spring. Nobody minds.",
    "d3": "Knead the dough. Let it rise near the oven.",
    "d4": "The dam holds the river back. It is high.",
    "d5": "Salmon climb the weir in autumn. They rest below it.",
    "d6": "The mill stands by the pond. Its wheel turns slowly.",
}
queries = {"q1": "river dam", "q2": "weir salmon", "q3": "mill pond"}
qrels = {"q1": {"d4": 2, "d2": 0}, "q2": {"d5": 3}, "q3": {"d6": 3, "d3": 0}}
mine = pathlib.Path("mine")
(mine / "qrels").mkdir(parents=True)
for name, texts in (("corpus", documents), ("queries", queries)):
    rows = [json.dumps({"_id": i, "text": text}) + "\n" for i, text in texts.items()]
    (mine / f"{name}.jsonl").write_text("".join(rows))
import weir

weir.Qrels.of(qrels).save(mine / "qrels" / "test.tsv")
weir.Qrels.of(qrels).save("qrels.tsv")
weir.Run.of({q: list(documents) for q in queries}).save("one.trec")
