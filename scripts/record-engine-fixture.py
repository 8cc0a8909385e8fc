"""Records src/engine/fixtures/qwen3.json: a small random Qwen3 model as Hugging Face transformers computes it.

Run by hand where torch and transformers are installed (python scripts/record-engine-fixture.py); nothing in Pawl needs
Python. Weights, ids, logprobs, entropies and gradients go into one JSON file, arrays as base64 of little-endian float32.
"""
import base64
import json
import math
import pathlib

import torch
import transformers
from transformers import Qwen3Config, Qwen3ForCausalLM

torch.manual_seed(7)
torch.set_num_threads(1)
CONFIG = dict(
    hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
    head_dim=12, vocab_size=61, max_position_embeddings=128, rms_norm_eps=1e-5, rope_theta=5000.0,
)
LENGTHS = [17, 5, 30]


def packed(tensor):
    data = tensor.detach().to(torch.float32).contiguous().numpy().astype("<f4").tobytes()
    return base64.b64encode(data).decode()


def record(tied):
    config = Qwen3Config(**CONFIG, tie_word_embeddings=tied, attn_implementation="eager")
    model = Qwen3ForCausalLM(config).to(torch.float32).eval()
    generator = torch.Generator().manual_seed(11)
    with torch.no_grad():
        # Larger than the usual start, so that attention is far from uniform and norms far from 1.
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(1 + 0.3 * noise if parameter.dim() == 1 else 0.25 * noise)
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
        "config": {**CONFIG, "model_type": "qwen3", "tie_word_embeddings": tied},
        "tensors": tensors, "sequences": sequences, "loss": loss.item(), "gradientNorm": norm,
    }


out = {
    "recordedWith": {"torch": torch.__version__, "transformers": transformers.__version__},
    "models": {"tied": record(True), "untied": record(False)},
}
path = pathlib.Path(__file__).parent.parent / "src/engine/fixtures/qwen3.json"
path.parent.mkdir(exist_ok=True)
path.write_text(json.dumps(out, indent=1) + "\n")
print(path, path.stat().st_size)
