"""Records src/engine/fixtures/{qwen3,qwen2,llama}.json: small random models as Hugging Face transformers computes them.

Run by hand where torch and transformers are installed (python scripts/record-engine-fixture.py [family …]); nothing in Pawl
needs Python. Weights, ids, logprobs, entropies and gradients go into one JSON file, arrays as base64 of little-endian
float32. The checkpoint that each untied model is saved as, in half precision and shards, goes in as the files' bytes.
"""
import base64
import json
import math
import pathlib
import sys
import tempfile

import torch
import transformers
from transformers import (
    LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM,
)

torch.set_num_threads(1)
SMALL = dict(
    hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
    vocab_size=29, max_position_embeddings=128, rms_norm_eps=1e-5,
)
# The original context is short, so that within 30 tokens some rotations are kept, some slowed and some mixed.
LLAMA3_ROPE = dict(
    rope_type="llama3", rope_theta=500.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
    original_max_position_embeddings=64,
)
PLAIN_ROPE = dict(rope_type="default", rope_theta=5000.0)
FAMILIES = {
    "qwen3": (Qwen3Config, Qwen3ForCausalLM, dict(
        hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        head_dim=12, vocab_size=61, max_position_embeddings=128, rms_norm_eps=1e-5, rope_parameters=PLAIN_ROPE,
    ), dict(rope_parameters=PLAIN_ROPE)),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM, dict(SMALL, rope_parameters=PLAIN_ROPE), dict(rope_parameters=PLAIN_ROPE)),
    "llama": (LlamaConfig, LlamaForCausalLM, dict(SMALL, rope_parameters=PLAIN_ROPE),
              dict(head_dim=8, rope_parameters=LLAMA3_ROPE)),
}
DTYPES = {"qwen3": torch.bfloat16, "qwen2": torch.bfloat16, "llama": torch.float16}
LENGTHS = [17, 5, 30]


def packed(tensor):
    data = tensor.detach().to(torch.float32).contiguous().numpy().astype("<f4").tobytes()
    return base64.b64encode(data).decode()


def saved(model, dtype):
    """The files save_pretrained writes for a copy in half precision, and what transformers computes from them."""
    half = type(model)(model.config)
    half.load_state_dict(model.state_dict())
    with tempfile.TemporaryDirectory() as folder:
        half.to(dtype).save_pretrained(folder, max_shard_size="6KB")
        files = {p.name: base64.b64encode(p.read_bytes()).decode() for p in sorted(pathlib.Path(folder).iterdir())}
        again = type(model).from_pretrained(folder, dtype=torch.float32).eval()
    ids = torch.arange(12)[None]
    lp = torch.log_softmax(again(input_ids=ids).logits[0], -1)[:-1].gather(-1, ids[0, 1:, None])[:, 0]
    return {"files": files, "ids": ids[0].tolist(), "logprobs": packed(lp)}


def record(family, tied):
    config_class, model_class, settings, untied = FAMILIES[family]
    settings = {**settings, **({} if tied else untied)}
    torch.manual_seed(7)
    config = config_class(**settings, tie_word_embeddings=tied, attn_implementation="eager")
    model = model_class(config).to(torch.float32).eval()
    generator = torch.Generator().manual_seed(11)
    with torch.no_grad():
        # Larger than the usual start, so that attention is far from uniform and norms far from 1.
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(1 + 0.3 * noise if "norm" in name else 0.25 * noise)
    sequences = []
    loss = torch.zeros(())
    for length in LENGTHS:
        ids = torch.randint(0, config.vocab_size, (length + 1,), generator=generator)
        weights = torch.randn(length, generator=generator)
        logits = model(input_ids=ids[None, :-1]).logits[0]
        logp = torch.log_softmax(logits, -1)
        lp = logp.gather(-1, ids[1:, None])[:, 0]
        loss = loss - (weights * lp).sum()
        sequences.append({
            "ids": ids.tolist(), "weights": packed(weights), "logits": packed(logits), "logprobs": packed(lp),
            "entropies": packed(-(logp.exp() * logp).sum(-1)),
        })
    loss.backward()
    tensors = {}
    for name, parameter in model.named_parameters():
        tensors[name] = {
            "shape": list(parameter.shape), "values": packed(parameter),
            "gradientNorm": parameter.grad.norm().item(), "gradientStart": parameter.grad.flatten()[:4].tolist(),
        }
    norm = math.sqrt(sum(p.grad.double().pow(2).sum().item() for p in model.parameters()))
    return {
        "config": json.loads(config.to_json_string(use_diff=False)),
        "tensors": tensors, "sequences": sequences, "loss": loss.item(), "gradientNorm": norm,
        **({} if tied else {"saved": saved(model, DTYPES[family])}),
    }


for family in sys.argv[1:] or FAMILIES:
    out = {
        "recordedWith": {"torch": torch.__version__, "transformers": transformers.__version__},
        "models": {"tied": record(family, True), "untied": record(family, False)},
    }
    path = pathlib.Path(__file__).parent.parent / f"src/engine/fixtures/{family}.json"
    path.write_text(json.dumps(out, indent=1) + "\n")
    print(path, path.stat().st_size)
