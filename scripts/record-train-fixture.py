"""
Records src/train/fixtures/trl.json: what TRL's own loss code gives on a tiny fixed batch, for trl.test.ts to agree with.

The model is a table of logits [previous token][next token], so torch's autograd gives exact gradients in microseconds. The
losses are TRL's: `_compute_loss` of GRPOTrainer and DPOTrainer and `compute_loss` of SFTTrainer are called on a stand-in for
the trainer object that hands them the table's logprobs. Nothing of TRL is reimplemented but the group mean and the
truncated ratio, which its code computes while generating.

    python -m venv venv && venv/bin/pip install torch==2.15.0 trl==1.16.0 && venv/bin/python scripts/record-train-fixture.py
"""

import json
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import torch
import trl
from trl.trainer.dpo_trainer import DPOTrainer
from trl.trainer.grpo_trainer import GRPOTrainer
from trl.trainer.sft_trainer import SFTTrainer

V = 6
torch.manual_seed(7)
TABLE = torch.randn(V, V, dtype=torch.float64)
REFERENCE = TABLE + 0.3 * torch.randn(V, V, dtype=torch.float64)
# A first Adam step is g/(|g| + eps): with a tiny eps it would blow rounding noise in cancelled gradients up to a full step.
ADAM = dict(lr=0.05, betas=(0.9, 0.95), eps=1e-4, weight_decay=0.0)

# Conversations as (tokens, own): own = 1 where the model wrote the token. Two turns with a tool's result (0) in between.
SEQUENCES = [
    ([0, 1, 2, 3, 4, 5], [0, 0, 1, 1, 1, 1]),
    ([0, 1, 3, 5], [0, 0, 1, 1]),
    ([0, 1, 4, 2, 0, 3, 5], [0, 0, 1, 1, 0, 1, 1]),
    ([0, 1, 5], [0, 0, 1]),
    ([2, 4, 1, 1, 5], [0, 0, 1, 1, 1]),
    ([2, 4, 3, 5], [0, 0, 1, 1]),
    ([2, 4, 0, 4, 2, 5], [0, 0, 1, 0, 1, 1]),
    ([2, 4, 5], [0, 0, 1]),
]


def padded(rows):
    width = max(len(tokens) for tokens, _ in rows)
    ids = torch.tensor([tokens + [5] * (width - len(tokens)) for tokens, _ in rows])
    own = torch.tensor([mask + [0] * (width - len(mask)) for _, mask in rows])
    there = torch.tensor([[1] * len(tokens) + [0] * (width - len(tokens)) for tokens, _ in rows])
    return ids, own, there


def logprobs(table, ids):
    """[sequence][position]: logprob of ids[:, 1:]."""
    rows = torch.log_softmax(table, dim=-1)[ids[:, :-1]]
    return rows.gather(-1, ids[:, 1:, None]).squeeze(-1)


def stand_in(**settings):
    self = MagicMock()
    self.accelerator.gather.side_effect = lambda x: x
    self.accelerator.gather_for_metrics.side_effect = lambda x: x
    self.accelerator.num_processes = 1
    self.accelerator.device = torch.device("cpu")
    self.accelerator.parallelism_config = None
    self.model.training = True
    self.aux_loss_enabled = False
    self.current_gradient_accumulation_steps = 1
    for name, value in settings.items():
        setattr(self, name, value)
    return self


def stepped(table, loss):
    """The gradient with respect to the table, and the table after one AdamW step."""
    optimizer = torch.optim.AdamW([table], **ADAM)
    loss.backward()
    gradient = table.grad.clone()
    optimizer.step()
    return gradient.tolist(), table.detach().tolist()


def record(table, leaf, loss):
    gradient, after = stepped(table, loss)
    return {"loss": loss.item(), "logprobGradient": leaf.grad.tolist(), "gradient": gradient, "after": after}


def grpo(rewards, beta, off_policy):
    ids, own, there = padded(SEQUENCES)
    table = TABLE.clone().requires_grad_()
    leaf = logprobs(table, ids)
    leaf.retain_grad()
    noise = torch.Generator().manual_seed(3)
    drift = 0.4 * torch.randn(leaf.shape, generator=noise, dtype=torch.float64)
    gap = 0.5 * torch.randn(leaf.shape, generator=noise, dtype=torch.float64)
    old = (leaf.detach() + drift) if off_policy else None
    sampled = (old + gap) if off_policy else leaf.detach()
    groups = torch.tensor(rewards, dtype=torch.float64).view(2, 4)
    advantages = (groups - groups.mean(dim=1, keepdim=True)).flatten()  # scale_rewards="none"
    normaliser = 8
    args = SimpleNamespace(use_bias_correction_kl=False, delta=None, steps_per_generation=1)
    self = stand_in(
        top_entropy_quantile=1.0,
        off_policy_mask_threshold=None,
        importance_sampling_level="token",
        beta=beta,
        loss_type="dr_grpo",
        epsilon_low=0.2,
        epsilon_high=0.28,
        args=args,
        use_vllm=off_policy,
        vllm_importance_sampling_correction=True,
        max_completion_length=normaliser,
        _entropy_bonus_enabled=False,
        _get_per_token_logps_and_entropies=lambda *a, **k: (leaf, torch.zeros_like(leaf.detach()), None),
    )
    inputs = {
        "prompt_ids": ids[:, :1],
        "prompt_mask": there[:, :1],
        "completion_ids": ids[:, 1:],
        "completion_mask": there[:, 1:],
        "tool_mask": own[:, 1:],  # what the model did not write, prompts included
        "advantages": advantages,
        "ref_per_token_logps": logprobs(REFERENCE, ids),
    }
    if off_policy:
        inputs["old_per_token_logps"] = old
        inputs["importance_sampling_ratio"] = torch.clamp(torch.exp(old - sampled), max=2.0)
    loss = GRPOTrainer._compute_loss(self, None, inputs)
    return {
        "rewards": rewards,
        "beta": beta,
        "lengthNormaliser": normaliser,
        "old": old.tolist() if off_policy else None,
        "sampled": sampled.tolist(),
        **record(table, leaf, loss),
    }


def dpo():
    pairs = [(0, 1), (2, 3), (4, 5), (7, 6)]  # chosen, rejected
    rows = [SEQUENCES[c] for c, _ in pairs] + [SEQUENCES[r] for _, r in pairs]
    ids, own, there = padded(rows)
    table = TABLE.clone().requires_grad_()
    leaf = logprobs(table, ids)
    leaf.retain_grad()
    kept = leaf * own[:, 1:]
    reference = (logprobs(REFERENCE, ids) * own[:, 1:]).sum(1)
    zeros = torch.zeros_like(kept.detach())
    outputs = SimpleNamespace(log_probs=kept, entropy=zeros, mean_logits=zeros, is_top1=zeros.bool(), log_sum_sq_probs=zeros)
    self = stand_in(
        ld_alpha=None,
        precompute_ref_logps=True,
        f_divergence_type="reverse_kl",
        loss_types=["sigmoid"],
        loss_weights=[1.0],
        beta=0.1,
        label_smoothing=0.0,
        use_weighting=False,
        _total_train_tokens=0,
        _tp_size=1,
    )
    inputs = {
        "input_ids": ids,
        "attention_mask": there,
        "completion_mask": own,
        "ref_chosen_logps": reference[: len(pairs)],
        "ref_rejected_logps": reference[len(pairs) :],
    }
    loss = DPOTrainer._compute_loss(self, lambda **k: outputs, inputs, False)
    return {"pairs": pairs, "beta": 0.1, **record(table, leaf, loss)}


def sft():
    ids, own, there = padded(SEQUENCES)
    table = TABLE.clone().requires_grad_()
    leaf = logprobs(table, ids)
    leaf.retain_grad()
    mask = own[:, 1:]
    zeros = torch.zeros_like(leaf.detach())
    outputs = SimpleNamespace(
        log_probs=leaf * mask, label_mask=mask, entropy=zeros, is_top1=zeros.bool(), mean_logits=zeros, aux_loss=None
    )
    args = SimpleNamespace(loss_type="nll", average_tokens_across_devices=False)
    self = stand_in(compute_loss_func=None, label_smoother=None, args=args, _total_train_tokens=0, _tp_size=1)
    self.get_tp_size = lambda: 1
    inputs = {"input_ids": ids, "attention_mask": there, "labels": ids.masked_fill(own == 0, -100)}
    loss = SFTTrainer.compute_loss(self, lambda **k: outputs, inputs, num_items_in_batch=mask.sum())
    return record(table, leaf, loss)


def rounded(value):
    if isinstance(value, float):
        return round(value, 8)
    if isinstance(value, (list, tuple)):
        return [rounded(v) for v in value]
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return value


fixture = {
    "recordedWith": {"trl": trl.__version__, "torch": torch.__version__.split("+")[0]},
    "table": TABLE.tolist(),
    "reference": REFERENCE.tolist(),
    "sequences": [{"tokens": tokens, "own": own} for tokens, own in SEQUENCES],
    "adam": {"learningRate": 0.05, "beta1": 0.9, "beta2": 0.95, "eps": 1e-4},
    "sft": sft(),
    "dpo": dpo(),
    "grpo": {
        "onPolicy": grpo([1, 0, 0.5, 0, 0.25, 0.25, 0.25, 0.25], 0.0, False),
        "offPolicy": grpo([1, 0, 0.5, 0, 0, 1, 1, 0], 0.0, True),
        "klLoss": grpo([1, 0, 0.5, 0, 0, 1, 1, 0], 0.05, True),
    },
}
path = Path(__file__).parent.parent / "src/train/fixtures/trl.json"
path.write_text(json.dumps(rounded(fixture)) + "\n")
print(f"{path.stat().st_size} bytes, trl {trl.__version__}")
