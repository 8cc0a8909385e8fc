"""An agent as it runs in production, in Python with openai's client: a clerk asks, a calculator is a tool, the clerk answers.

Nothing in it is Pawl's: the client reads OPENAI_BASE_URL and OPENAI_API_KEY, and the task comes as PAWL_TASK while it practises.
"""

import json
import os

from openai import OpenAI

task = json.loads(os.environ["PAWL_TASK"])["input"]
client = OpenAI()
tools = [
    {
        "type": "function",
        "function": {
            "name": "add",
            "description": "Adds two whole numbers.",
            "parameters": {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                "required": ["a", "b"],
            },
        },
    }
]
messages = [
    {"role": "system", "content": "Use the tool to add. Answer with the sum alone."},
    {"role": "user", "content": task["question"]},
]


def run(call) -> str:
    try:
        arguments = json.loads(call.function.arguments)
        return str(int(arguments["a"]) + int(arguments["b"]))
    except (ValueError, KeyError, TypeError) as error:
        return f"error: {error}"


for _ in range(4):
    said = client.chat.completions.create(model="clerk", messages=messages, tools=tools, max_tokens=64).choices[0].message
    messages.append(said.model_dump(exclude_none=True))
    if not said.tool_calls:
        print(said.content)
        break
    for call in said.tool_calls:
        messages.append({"role": "tool", "tool_call_id": call.id, "content": run(call)})
