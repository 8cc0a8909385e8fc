"""
Presidio's analyzer behind its documented door: POST /analyze with {text, language, score_threshold}, answered with a list of
{entity_type, start, end, score, analysis_explanation}. The package from PyPI has the analyzer but not the server, which comes as a
container; models of spaCy are not on PyPI either, so its pipeline is an empty one with a list of names. Everything else is Presidio's own.
Called by entities.interop.test.ts: python presidio-analyzer.py FOLDER PORT
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import spacy
from presidio_analyzer import AnalyzerEngine, AnalyzerRequest
from presidio_analyzer.nlp_engine import NlpEngineProvider

folder, port = sys.argv[1], int(sys.argv[2])

pipeline = spacy.blank("en")
names = pipeline.add_pipe("entity_ruler")
names.add_patterns([
    {"label": "PERSON", "pattern": "Karen Jones"},
    {"label": "GPE", "pattern": "Springfield"},
    {"label": "ORG", "pattern": "Acme Corp"},
])
pipeline.to_disk(folder)
engine = AnalyzerEngine(
    nlp_engine=NlpEngineProvider(nlp_configuration={
        "nlp_engine_name": "spacy",
        "models": [{"lang_code": "en", "model_name": folder}],
        "ner_model_configuration": {
            "model_to_presidio_entity_mapping": {"PERSON": "PERSON", "GPE": "LOCATION", "ORG": "ORGANIZATION"},
            "labels_to_ignore": [],
        },
    }).create_engine(),
    supported_languages=["en"],
)


class Door(BaseHTTPRequestHandler):
    def do_GET(self):
        self.answer(200, "up")

    def do_POST(self):
        try:
            asked = AnalyzerRequest(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            found = engine.analyze(text=asked.text, language=asked.language, score_threshold=asked.score_threshold)
            self.answer(200, [one.to_dict() for one in found])
        except Exception as error:
            self.answer(500, {"error": str(error)})

    def answer(self, status, value):
        body = json.dumps(value, default=lambda one: one.to_dict()).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", port), Door).serve_forever()
