"""Records src/engine/fixtures/tokenizers.json: small tokenizers and chat templates as Hugging Face transformers reads them.

Run by hand where transformers is installed (python scripts/record-tokenizer-fixture.py); nothing in Pawl needs Python. One
tokenizer per family, with that family's own normalizer, pre-tokenizer, post-processor and switches, but a vocabulary of a few
hundred tokens; a chat template with the constructs that family's uses; and what transformers makes of a table of texts and
conversations with them. The tokenizer's files are those that save_pretrained writes.
"""
import json
import pathlib
import tempfile

import tokenizers
import transformers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

CORPUS = [
    "Where is my order 1234? It was shipped on 2024-03-01, and it's late. I'm sorry, they'll refund $25.00.",
    "주문 번호 1234의 배송 상태를 알려 주세요. 오늘 안에 도착하나요? 네, 주문이 발송되었습니다.",
    "def find(order):\n    if order is None:\n        return {}\n    return {'id': order.id, 'state': order.state}\n",
    "👍 Thanks! 👩‍👩‍👧 Größe, café, naïve, Ελλάδα, 日本語, العربية ٣٤٥ ①② ²½\n\n\n   \t\tx   y\n",
] * 3

TEXTS = [
    "", " ", "a", "Hello, world!", " leading and trailing ", "I'm sure they'll say it's DON'T, WE'VE, I'D or you'Re.",
    "주문 번호 1234의 배송 상태를 알려 주세요.", "오늘은 좋은 날이에요! 🙂 감사합니다…", "한글", "ㄱㄴㄷ ㅏㅑ 각",
    "👍🏽 👩‍👩‍👧‍👦 🇰🇷 emoji\u200dtext", "naïve café Größe", "nai\u0308ve cafe\u0301", "日本語のテキスト、中文文本。",
    "مرحبا بالعالم ٣٤٥", "1234567890 12 1 3.14159 1,000,000 2024-03-01", "x1y22z333", "①② ②③ ²½ Ⅷ ٣٤٥ ३४",
    "def f(a, b):\n\treturn a+b  # sum\n\n\nclass A:\n    pass\n", "if (x<=y) { return a->b[0] == \"z\\n\"; } // ok",
    "<p class=\"x\">A &amp; B</p>", "   three spaces", "trailing   ", "a  b   c    d", "line\n\nline\r\nline\r\n\r\n",
    "\n", "\n\n \n", "  \n  x", "tab\tand\t\ttabs", "a\u00a0b\u3000c\u2003d", "next\u0085line \u0085\u0085 end",
    "\ufeffbyte order mark \ufeff x\ufeff!y", "zero\u200bwidth\u180ex", "\u2028separators\u2029", "\x00\x01\x7f", "e\u0301\u0301\u0301",
    "special words", "the word xyzzy and plugh", "ſt 'ſ 'S", "https://example.com/a?b=c&d=%20#e", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𐍈",
]

# What tool results and people write, with roles and tools as the API has them.
USER = {"role": "user", "content": "Where is my order 1234?"}
SYSTEM = {"role": "system", "content": "  You are a support agent.  "}
ANSWER = {"role": "assistant", "content": "It was shipped. 👍"}
KOREAN = {"role": "user", "content": "감사합니다!\n\n또 있어요."}
CALL = {"role": "assistant", "content": "", "tool_calls": [
    {"id": "c1", "type": "function", "function": {"name": "find_order", "arguments": {"id": "1234", "note": "é <b>"}}},
]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "{\"state\": \"shipped\", \"eta\": \"내일\"}"}
TOOLS = [{"type": "function", "function": {
    "name": "find_order", "description": "Finds an order's state.",
    "parameters": {"type": "object", "properties": {"id": {"type": "string"}, "deep": {"type": "boolean", "default": False}},
                   "required": ["id"]},
}}]
CHATS = [
    dict(messages=[USER], tools=None, generate=True),
    dict(messages=[SYSTEM, USER], tools=None, generate=True),
    dict(messages=[SYSTEM, USER, ANSWER, KOREAN], tools=None, generate=True),
    dict(messages=[USER, ANSWER], tools=None, generate=False),
    dict(messages=[SYSTEM, USER], tools=TOOLS, generate=True),
    dict(messages=[USER, CALL, RESULT], tools=TOOLS, generate=True),
    dict(messages=[SYSTEM, USER, CALL, RESULT, ANSWER, KOREAN], tools=TOOLS, generate=True),
]

SMOL_TEMPLATE = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are a small helper<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

QWEN_TEMPLATE = """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0]['role'] == 'system' %}
        {{- messages[0]['content'] }}
    {%- else %}
        {{- 'You are a middle-sized helper.' }}
    {%- endif %}
    {{- "\\n\\n# Tools\\n\\nOne function per line:\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools><|im_end|>\\n" }}
{%- elif messages[0]['role'] == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0]['content'] + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {{- '<|im_start|>' + message.role }}
        {%- if message.content %}
            {{- '\\n' + message.content }}
        {%- endif %}
        {%- for tool_call in message.tool_calls %}
            {%- if tool_call.function is defined %}
                {%- set tool_call = tool_call.function %}
            {%- endif %}
            {{- '\\n<tool_call>\\n{"name": "' }}
            {{- tool_call.name }}
            {{- '", "arguments": ' }}
            {{- tool_call.arguments | tojson }}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if (loop.index0 == 0) or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' }}
        {{- message.content }}
        {{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""

LLAMA_TEMPLATE = """{{- bos_token }}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "26 Jul 2024" %}
    {%- endif %}
{%- endif %}
{%- set state = namespace(calls=0) %}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content'] | trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if tools is not none %}
    {{- "Environment: ipython\\n" }}
{%- endif %}
{{- "Today Date: " + date_string + "\\n\\n" }}
{%- if tools is not none %}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
{%- endif %}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls | length == 1 %}
            {{- raise_exception("One call at a time!") }}
        {%- endif %}
        {%- set state.calls = state.calls + 1 %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}
        {{- '{"name": "' + tool_call.name + '", ' }}
        {{- '"parameters": ' }}
        {{- tool_call.arguments | tojson }}
        {{- "}" }}
        {{- "<|eot_id|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""

QWEN_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
LLAMA_WORDS = QWEN_WORDS.replace(r"|\p{N}|", r"|\p{N}{1,3}|")


def split_words(pattern):
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), behavior="isolated", invert=False),
        pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False),
    ])


FAMILIES = {
    "SmolLM2": dict(
        normalizer=None,
        pre_tokenizer=pre_tokenizers.Sequence([
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True, use_regex=True),
        ]),
        special=["<|endoftext|>", "<|im_start|>", "<|im_end|>"], plain=[], ignore_merges=False,
        named=dict(bos_token="<|im_start|>", eos_token="<|im_end|>", unk_token="<|endoftext|>", pad_token="<|im_end|>"),
        template=SMOL_TEMPLATE, tools=False,
    ),
    "Qwen2.5": dict(
        normalizer=normalizers.NFC(), pre_tokenizer=split_words(QWEN_WORDS),
        special=["<|endoftext|>", "<|im_start|>", "<|im_end|>"], plain=["<tool_call>", "</tool_call>"], ignore_merges=False,
        named=dict(eos_token="<|im_end|>", pad_token="<|endoftext|>"), template=QWEN_TEMPLATE, tools=True,
    ),
    "Llama 3": dict(
        normalizer=None, pre_tokenizer=split_words(LLAMA_WORDS),
        special=["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"],
        plain=[], ignore_merges=True, named=dict(bos_token="<|begin_of_text|>", eos_token="<|eot_id|>"),
        template=LLAMA_TEMPLATE, tools=True,
    ),
}


def trained(family):
    tokenizer = Tokenizer(models.BPE())
    if family["normalizer"] is not None:
        tokenizer.normalizer = family["normalizer"]
    tokenizer.pre_tokenizer = family["pre_tokenizer"]
    tokenizer.decoder = decoders.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
    tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=420, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False,
    ))
    data = json.loads(tokenizer.to_str())
    data["model"]["ignore_merges"] = family["ignore_merges"]
    # Merges across what only the right pre-tokenizer keeps apart or together: a space and a digit or a NEL, two digits, a byte
    # order mark and punctuation. A large vocabulary has such merges by chance.
    for pair in [["Ġ", "â"], ["ł", "â"], ["Ġ", "Â"], ["ħ", "Â"], ["¿", "!"], ["Ġ", "Ù"]]:
        if "".join(pair) not in data["model"]["vocab"]:
            data["model"]["merges"].append(pair)
            data["model"]["vocab"]["".join(pair)] = len(data["model"]["vocab"])
    if family["ignore_merges"]:
        # A whole word no merges lead to: found only where the vocabulary is asked before the merges.
        data["model"]["vocab"]["Ġxyzzy"] = len(data["model"]["vocab"])
    tokenizer = Tokenizer.from_str(json.dumps(data))
    tokenizer.add_special_tokens([AddedToken(t, special=True) for t in family["special"]])
    tokenizer.add_tokens([AddedToken(t, special=False) for t in family["plain"]])
    bos = family["named"].get("bos_token")
    if family["ignore_merges"]:
        tokenizer.post_processor = processors.Sequence([
            processors.ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False),
            processors.TemplateProcessing(
                single=f"{bos} $A", pair=f"{bos} $A {bos} $B", special_tokens=[(bos, tokenizer.token_to_id(bos))],
            ),
        ])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, chat_template=family["template"], clean_up_tokenization_spaces=False, **family["named"],
    )


def record(family):
    tokenizer = trained(family)
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_pretrained(folder)
        files = {p.name: p.read_text() for p in sorted(pathlib.Path(folder).iterdir())}
    files["tokenizer.json"] = json.dumps(json.loads(files["tokenizer.json"]), ensure_ascii=False, separators=(",", ":"))
    special = family["special"]
    texts = TEXTS + [f"a{special[1]}b {special[-1]}", special[0]]
    chats = []
    for chat in CHATS:
        if chat["tools"] is not None and not family["tools"]:
            continue
        settings = dict(tools=chat["tools"], add_generation_prompt=chat["generate"], date_string="16 Nov 2026")
        chats.append({
            **chat, "text": tokenizer.apply_chat_template(chat["messages"], tokenize=False, **settings),
            "ids": tokenizer.apply_chat_template(chat["messages"], tokenize=True, return_dict=False, **settings),
        })
    return {
        "files": files,
        "texts": [{
            "text": text, "ids": tokenizer(text)["input_ids"], "plain": tokenizer(text, add_special_tokens=False)["input_ids"],
            "decoded": tokenizer.decode(tokenizer(text)["input_ids"]),
        } for text in texts],
        "chats": chats,
    }


out = {
    "recordedWith": {"tokenizers": tokenizers.__version__, "transformers": transformers.__version__},
    "families": {name: record(family) for name, family in FAMILIES.items()},
}
path = pathlib.Path(__file__).parent.parent / "src/engine/fixtures/tokenizers.json"
path.write_text(json.dumps(out, ensure_ascii=False) + "\n")
print(path, path.stat().st_size)
