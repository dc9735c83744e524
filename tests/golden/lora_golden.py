"""Records how the PEFT library trains low-rank changes of the BERT in tests/golden/texts.

    pip install transformers==4.57.1 peft==0.21.2 accelerate    where torch is
    python3 tests/golden/lora_golden.py                         rewrites tests/golden/lora.safetensors
"""
import os

import torch
from peft import LoraConfig, get_peft_model
from transformers import BertForSequenceClassification

from pretrained_golden import write

HERE = os.path.dirname(os.path.abspath(__file__))
RANK, ALPHA, RATE, STEPS, CLASSES = 3, 6.0, 0.01, 4, 3


def read(path):
    from safetensors.torch import load_file
    return load_file(path)


def main():
    folder = os.path.join(HERE, "texts", "bert")
    texts = read(os.path.join(folder, "golden.safetensors"))
    ends = [int(e) for e in texts["in.ends"]]
    tokens = [int(t) for t in texts["in.tokens"]]
    samples = [tokens[a:b] for a, b in zip([0] + ends, ends)]
    longest = max(len(s) for s in samples)
    ids = torch.tensor([s + [0] * (longest - len(s)) for s in samples])
    mask = torch.tensor([[1] * len(s) + [0] * (longest - len(s)) for s in samples])
    labels = torch.arange(len(samples)) % CLASSES

    network = BertForSequenceClassification.from_pretrained(folder, attn_implementation="eager")
    network = get_peft_model(network, LoraConfig(
        r=RANK, lora_alpha=ALPHA, lora_dropout=0.0, modules_to_save=["pooler", "classifier"],
        target_modules=r".*encoder\.layer\.\d+\..*(query|key|value|dense)"))
    network.eval()  # without dropout
    generator = torch.Generator().manual_seed(5)
    recorded = {}
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if "lora_" not in name:
                continue
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.2)
            recorded["in." + name.replace("base_model.model.", "").replace(".default", "")] = parameter.detach().clone()
    optimizer = torch.optim.AdamW([p for p in network.parameters() if p.requires_grad], lr=RATE, weight_decay=0.0)
    losses = []
    for step in range(STEPS):
        logits = network(input_ids=ids, attention_mask=mask).logits
        if step == 0:
            recorded["out.logits"] = logits.detach().clone()
        loss = torch.nn.functional.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    recorded["out.losses"] = torch.tensor(losses)
    for name, parameter in network.named_parameters():
        if "layer.1.output.dense.lora_" in name:
            recorded["out." + name.replace("base_model.model.", "").replace(".default", "")] = parameter.detach().clone()
    write(os.path.join(HERE, "lora.safetensors"), recorded)
    print(losses, len(recorded))


if __name__ == "__main__":
    main()
