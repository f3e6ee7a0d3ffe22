"""Makes the logs of DeepEval, OpenTelemetry, Phoenix, LangSmith and Langfuse of the 96 references
in letters.json, as inspect_task.py and promptfooconfig.yaml do theirs.

``python traces.py`` in this folder, with deepeval 4.3.1, opentelemetry-sdk and
opentelemetry-exporter-otlp-proto-common 1.45.2, arize-phoenix 20.26.1 and langsmith 0.15.1; then
gzip. DeepEval, OpenTelemetry and Phoenix write their files themselves, the last by a server on this
machine. LangSmith's client reads the runs from a server that answers with its run data format.
Langfuse's server takes three databases: its file is written by the reference of its exports
("Enriched observations", JSONL).
"""

import base64
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import uuid
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

LETTERS = json.loads(Path("letters.json").read_text(encoding="utf-8"))
MODEL = "letters"
#: So that a second run makes the same files but for what the tools number and date themselves.
DAY = "2026-11-27"


def prompt_of(letter):
    return f"Write a short {letter['template']} reference for {letter['name']}."


def facts_of(letter):
    return {key: letter[key] for key in ("race", "name", "template")}


def deepeval():
    from deepeval import evaluate
    from deepeval.evaluate.configs import AsyncConfig, DisplayConfig
    from deepeval.metrics import ExactMatchMetric
    from deepeval.test_case import LLMTestCase

    cases = [
        LLMTestCase(
            input=prompt_of(letter),
            actual_output=letter["reply"],
            expected_output=letter["reply"],
            metadata=facts_of(letter),
        )
        for letter in LETTERS
    ]
    with tempfile.TemporaryDirectory() as folder:
        evaluate(
            cases,
            [ExactMatchMetric()],
            async_config=AsyncConfig(run_async=False),
            display_config=DisplayConfig(
                print_results=False, show_indicator=False, results_folder=folder
            ),
        )
        (written,) = Path(folder).glob("test_run_*.json")
        Path("deepeval.json").write_bytes(written.read_bytes())


def spans(exporter, attributes_of):
    """Export a span for each letter."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    provider = TracerProvider(resource=Resource({"service.name": "references"}))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("references")
    for letter in LETTERS:
        with tracer.start_as_current_span(f"chat {MODEL}") as span:
            span.set_attributes(attributes_of(letter))
    provider.shutdown()


def opentelemetry():
    """As the collector's file exporter writes it: a request in OTLP's JSON a line."""
    from google.protobuf.json_format import MessageToDict
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

    class Lines(SpanExporter):
        def __init__(self):
            self.finished = []

        def export(self, batch):
            self.finished.extend(batch)
            return SpanExportResult.SUCCESS

    def message(role, text, **more):
        return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}], **more}])

    def attributes_of(letter):
        return {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": MODEL,
            "gen_ai.response.model": MODEL,
            "gen_ai.input.messages": message("user", prompt_of(letter)),
            "gen_ai.output.messages": message("assistant", letter["reply"], finish_reason="stop"),
            **{f"audit.{key}": value for key, value in facts_of(letter).items()},
        }

    lines = Lines()
    spans(lines, attributes_of)
    with Path("otlp.jsonl").open("w", encoding="utf-8") as file:
        for begin in range(0, len(lines.finished), 48):
            encoded = encode_spans(lines.finished[begin : begin + 48])
            request = MessageToDict(encoded, use_integers_for_enums=True)
            for span in request["resourceSpans"][0]["scopeSpans"][0]["spans"]:
                for name in ("traceId", "spanId"):  # OTLP's JSON has them in hexadecimals
                    span[name] = base64.b64decode(span[name]).hex()
            file.write(json.dumps(request) + "\n")


def phoenix():
    """Phoenix's own server takes OpenInference spans and hands out its table of spans."""
    from openinference.semconv.trace import SpanAttributes as Names
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from phoenix.client import Client

    def attributes_of(letter):
        return {
            Names.OPENINFERENCE_SPAN_KIND: "LLM",
            Names.LLM_MODEL_NAME: MODEL,
            Names.INPUT_VALUE: prompt_of(letter),
            Names.OUTPUT_VALUE: letter["reply"],
            Names.METADATA: json.dumps(facts_of(letter)),
        }

    address = "http://127.0.0.1:6321"
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            **os.environ, "PHOENIX_WORKING_DIR": folder, "PHOENIX_PORT": "6321", "PHOENIX_HOST": "127.0.0.1",
            "PHOENIX_GRPC_PORT": "6322", "PHOENIX_TELEMETRY_ENABLED": "false",
        }  # fmt: skip
        command = [sys.executable, "-m", "phoenix.server.main", "serve"]
        with subprocess.Popen(command, env=settings, stdout=subprocess.DEVNULL) as server:
            try:
                _wait_for(address)
                spans(OTLPSpanExporter(f"{address}/v1/traces"), attributes_of)
                time.sleep(5)  # it takes spans in from a queue
                frame = Client(base_url=address).spans.get_spans_dataframe(limit=1000)
            finally:
                server.terminate()
    frame.sort_values("start_time").to_json("phoenix.json", orient="records", date_format="iso")


def _wait_for(address):
    for _ in range(120):
        try:
            urllib.request.urlopen(address, timeout=1)
        except OSError:
            time.sleep(1)
        else:
            return
    raise RuntimeError(f"nobody answers at {address}")


def langsmith():
    """The client's runs, as ``[run.model_dump(mode="json") for run in client.list_runs(…)]``."""
    from langsmith import Client

    project = str(uuid.UUID(int=1))
    answered = [
        {
            "id": str(uuid.UUID(int=100 + number)),
            "name": "reference",
            "run_type": "llm",
            "inputs": {"messages": [{"role": "user", "content": prompt_of(letter)}]},
            "outputs": {"messages": [{"role": "assistant", "content": letter["reply"]}]},
            "extra": {"metadata": {**facts_of(letter), "ls_model_name": MODEL}},
            "start_time": f"{DAY}T09:{number // 60:02}:{number % 60:02}.000000",
            "end_time": f"{DAY}T09:{number // 60:02}:{number % 60:02}.900000",
            "error": None,
            "events": [],
            "tags": [],
            "status": "success",
            "trace_id": str(uuid.UUID(int=100 + number)),
            "dotted_order": f"20261127T09{number // 60:02}{number % 60:02}000000Z{uuid.UUID(int=100 + number)}",
            "session_id": project,
            "feedback_stats": {"polite": {"n": 1, "avg": float("recommend" in letter["reply"])}},
            "child_run_ids": [], "direct_child_run_ids": [], "parent_run_ids": [], "parent_run_id": None,
            "app_path": f"/o/1/projects/p/{project}/r/{number}",
        }
        for number, letter in enumerate(LETTERS)
    ]  # fmt: skip

    class Server(BaseHTTPRequestHandler):
        def _answer(self, body):
            data = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self):
            if "sessions" in self.path:
                known = {"id": project, "tenant_id": project, "name": "references"}
                known |= {"start_time": f"{DAY}T09:00:00", "reference_dataset_id": None}
                self._answer([known])
            else:
                self._answer({})

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self._answer({"runs": answered, "cursors": {}})

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    client = Client(api_url=f"http://127.0.0.1:{server.server_port}", api_key="none")
    runs = [
        run.model_dump(mode="json")
        for run in client.list_runs(project_name="references", run_type="llm")
    ]
    server.shutdown()
    Path("langsmith.json").write_text(json.dumps(runs), encoding="utf-8")


def langfuse():
    with Path("langfuse.jsonl").open("w", encoding="utf-8") as file:
        for number, letter in enumerate(LETTERS):
            moment = f"{DAY} 09:{number // 60:02}:{number % 60:02}"
            observation = {
                "id": f"{number:016x}", "trace_id": f"{number:032x}", "project_id": "references",
                "environment": "default", "type": "GENERATION", "parent_observation_id": "",
                "start_time": f"{moment}.000000", "end_time": f"{moment}.900000", "name": "reference",
                "metadata": facts_of(letter), "level": "DEFAULT", "status_message": "", "version": "",
                "input": json.dumps([{"role": "user", "content": prompt_of(letter)}]),
                "output": json.dumps({"role": "assistant", "content": letter["reply"]}),
                "provided_model_name": MODEL, "model_parameters": json.dumps({"temperature": 1}),
                "usage_details": {"input": 12, "output": 24, "total": 36}, "cost_details": {},
                "completion_start_time": None, "prompt_name": "", "prompt_version": None, "total_cost": 0.0,
                "latency": 0.9, "time_to_first_token": None,
            }  # fmt: skip
            file.write(json.dumps(observation) + "\n")


if __name__ == "__main__":
    for make in (deepeval, opentelemetry, langsmith, langfuse, phoenix):
        if not sys.argv[1:] or make.__name__ in sys.argv[1:]:
            make()
