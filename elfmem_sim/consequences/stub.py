"""A local stand-in for an OpenAI-compatible provider: deterministic, and for topics only.

It assumes what the other stand-ins assume: an embedding is its text's topic with a wording, a
proposal moves half of the way from the principle to the evidence.
"""

import base64
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

from elfmem_sim.scenario import Review
from elfmem_sim.standins import TopicProposer, WordedEmbedding
from elfmem_sim.thin import drive
from elfmem_sim.topics import PREFIX

DIMENSION, EMBEDDING_DIMENSION, WORDING = 8, 64, 0.7
"""Of the topics, of the embeddings, and the wording's length."""

_TOPIC = re.compile(rf"{PREFIX}[0-9a-f]+")
_LOCK = Lock()  # the stand-ins remember what they computed


def embedding() -> WordedEmbedding:
    """Return the embedding model that the stub serves."""
    return WordedEmbedding(EMBEDDING_DIMENSION, WORDING)


@contextmanager
def serving() -> Iterator[str]:
    """Serve on a free port of 127.0.0.1; yield the base URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Provider)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def answer(path: str, request: dict[str, Any]) -> dict[str, Any]:
    """Return the provider's answer.

    Raises:
        ValueError: If a text names no topic, or the path is not served.
    """
    if path == "/v1/embeddings":
        texts = request["input"]
        vectors = drive(_EMBEDDING.embed_batch([texts] if isinstance(texts, str) else texts))
        return {
            "object": "list",
            "model": request["model"],
            "data": [
                {"object": "embedding", "index": i, "embedding": _written(vector, request)}
                for i, vector in enumerate(vectors)
            ],
            "usage": {"prompt_tokens": 0, "total_tokens": 0},
        }
    if path == "/v1/chat/completions":
        content = json.dumps(_reply(request["messages"][-1]["content"]))
        return {
            "id": "stub",
            "object": "chat.completion",
            "created": 0,
            "model": request["model"],
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": content},
                }
            ],
        }
    raise ValueError(f"not served: {path}")


def _written(vector: Any, request: dict[str, Any]) -> Any:
    if request.get("encoding_format") == "base64":
        return base64.b64encode(vector.tobytes()).decode()
    return vector.tolist()


def _reply(prompt: str) -> dict[str, Any]:
    """Answer a prompt by the topics in it: the block's comes first, then the evidence's."""
    first, *rest = dict.fromkeys(_TOPIC.findall(prompt))
    if "proposed_content" not in prompt:
        return {"alignment_score": 0.5, "tags": [], "summary": first}
    return drive(
        _PROPOSER.propose_amendment(
            block_content=first, block_summary=None, drift_score=0.0, evidence_summaries=rest
        )
    )


_EMBEDDING = embedding()
_PROPOSER = TopicProposer(Review(proposer_move=0.5), ("stub",))


class _Provider(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            with _LOCK:
                status, reply = 200, answer(self.path, json.loads(body))
        except ValueError as error:
            status, reply = 400, {"error": {"message": str(error)}}
        data = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""
