"""
Writes a folder with a small token-classification model as ONNX, and prints as JSON what transformers itself finds with it: of each text
the words with place, label and score. Trained for moments on one sentence, so that it knows two names and nothing else.
Called by entities.interop.test.ts: python token-classifier.py FOLDER TEXTS.json
"""

import json
import sys

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, decoders
from transformers import BertConfig, BertForTokenClassification, PreTrainedTokenizerFast

folder, texts = sys.argv[1], json.load(open(sys.argv[2]))

pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
words = ["my", "name", "is", "kar", "##en", "jon", "##es", "from", "spring", "##field", "hello", "order", "was", "sent", "to", "who", "note"]
marks = list(".,:;!?'\"{}[]()-") + [f"##{c}" for c in "abcdefghijklmnopqrstuvwxyz0123456789"] + list("abcdefghijklmnopqrstuvwxyz0123456789")
vocabulary = {piece: i for i, piece in enumerate([*pieces, *words, *marks])}
tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
tokenizer.decoder = decoders.WordPiece()
tokenizer.post_processor = processors.TemplateProcessing(
    single="[CLS] $A [SEP]", special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])])
fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]",
                               model_input_names=["input_ids", "token_type_ids", "attention_mask"])

labels = ["O", "B-PER", "I-PER", "B-LOC"]
torch.manual_seed(1)
model = BertForTokenClassification(BertConfig(
    vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, max_position_embeddings=512,
    id2label=dict(enumerate(labels)), label2id={label: i for i, label in enumerate(labels)}, attn_implementation="eager"))

known = {"karen": 1, "jones": 2, "springfield": 3}
sentences = ["my name is karen jones", "karen jones from springfield", "hello , order 7 was sent to springfield .", '{ " who " : " karen jones " }',
             "note : name is who ?", "order was sent to karen jones in springfield !"]
coded = fast([s.split() for s in sentences], is_split_into_words=True, padding=True, return_tensors="pt")
targets = torch.full(coded["input_ids"].shape, -100)
for i, sentence in enumerate(sentences):
    split, seen = sentence.split(), set()
    for at, word in enumerate(coded.word_ids(i)):
        if word is not None and word not in seen:
            seen.add(word)
            targets[i, at] = known.get(split[word], 0)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(150):
    optimizer.zero_grad()
    model(**coded, labels=targets).loss.backward()
    optimizer.step()
model.eval()

fast.save_pretrained(folder)
model.config.save_pretrained(folder)
inputs = ["input_ids", "attention_mask", "token_type_ids"]


class Logits(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, input_ids, attention_mask, token_type_ids):
        return self.inner(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids).logits


batch, length = torch.export.Dim("batch"), torch.export.Dim("length", max=512)
example = fast(["my name is karen", "my name is jones"], return_tensors="pt")
torch.onnx.export(Logits(model), tuple(example[name] for name in inputs), f"{folder}/model.onnx", input_names=inputs, output_names=["logits"],
                  dynamic_shapes=[{0: batch, 1: length}] * 3, dynamo=True, external_data=True, verbose=False)

found = []
for text in texts:
    coded = fast(text, return_tensors="pt", return_offsets_mapping=True)
    places = coded.pop("offset_mapping")[0].tolist()
    scores = model(**coded).logits[0].softmax(-1)
    seen, of = {}, []
    for at, word in enumerate(coded.word_ids(0)):
        if word is None:
            continue
        if word in seen:
            of[seen[word]]["end"] = places[at][1]
            continue
        seen[word] = len(of)
        score, label = scores[at].max(-1)
        of.append({"start": places[at][0], "end": places[at][1], "label": labels[label.item()], "score": score.item()})
    found.append(of)
print(json.dumps(found))
