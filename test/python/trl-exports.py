"""
Reads the exports in a folder with `datasets`, and trains a step of SFT and one of DPO on them with TRL. The last line printed is JSON.
Called by trl.interop.test.ts: python trl-exports.py FOLDER MODEL TEMPLATE
"""

import json
import os
import sys
import tempfile

from datasets import load_dataset
from trl import DPOConfig, DPOTrainer, SFTConfig, SFTTrainer

folder, model, template = sys.argv[1:]


def read(name):
    kind = "parquet" if name.endswith(".parquet") else "json"
    return load_dataset(kind, data_files=os.path.join(folder, name), split="train")


def step(trainer_class, config_class, rows, **settings):
    with tempfile.TemporaryDirectory() as out:
        common = dict(output_dir=out, max_steps=1, per_device_train_batch_size=len(rows), max_length=320, use_cpu=True, bf16=False)
        quiet = dict(report_to=[], save_strategy="no", disable_tqdm=True)
        args = config_class(**common, **quiet, **settings)
        trainer = trainer_class(model=model, args=args, train_dataset=rows)
        batch = next(iter(trainer.get_train_dataloader()))
        before = {name: value.clone() for name, value in trainer.model.named_parameters()}
        result = trainer.train()
        moved = max((value - before[name]).abs().max().item() for name, value in trainer.model.named_parameters())
        return trainer.processing_class, batch, {"steps": result.global_step, "loss": result.training_loss, "moved": moved}


loaded = {name: [dict(row) for row in read(name)] for name in sorted(os.listdir(folder))}

tokenizer, batch, sft = step(SFTTrainer, SFTConfig, read("trl-sft.jsonl"), assistant_only_loss=True, chat_template_path=template)
learned = [tokenizer.decode([token for token in labels.tolist() if token != -100]) for labels in batch["labels"]]

_, _, dpo = step(DPOTrainer, DPOConfig, read("trl-preference.jsonl"))

print(json.dumps({"loaded": loaded, "sft": {**sft, "learned": learned}, "dpo": dpo}))
