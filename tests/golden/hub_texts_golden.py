"""Records folders with text networks as Hugging Face's transformers saves them, and what the library answers.

    pip install transformers==4.57.1 tokenizers==0.22.2    into an environment that has torch
    python3 tests/golden/hub_texts_golden.py               rewrites tests/golden/texts

The networks are tiny and every parameter is random, norms and biases as well. texts/tokens.json has the ids of texts
of many scripts, texts/<family>/golden.safetensors the tokens of some texts and the logits.
"""
import json
import os
import random
import shutil

import torch
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (BertConfig, BertForSequenceClassification, BertTokenizerFast, DistilBertConfig,
                          DistilBertForSequenceClassification, DistilBertTokenizerFast, RobertaConfig,
                          RobertaForSequenceClassification, RobertaTokenizerFast)

from pretrained_golden import write

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "texts")
BERT_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ROBERTA_SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
LONGEST, CLASSES, DRAWN = 24, 3, 250

PROSE = """The room was clean and the staff were friendly, but the breakfast wasn't worth the price.
I'd stay here again; they've a lovely garden, and we'll bring the children next year.
It's 2 km from the station (15 minutes on foot) and costs $120.50 per night!
Nothing worked: no hot water, no internet, and nobody answered the phone at 3 a.m.
She said "you're welcome" and didn't charge us for the parking...
A film about a man who can't remember; slow at first, then very good indeed.
The plot is thin, the acting wooden, and the jokes are older than the director.
Ich möchte bitte ein größeres Zimmer, das ruhig ist. Übrigens: schöne Aussicht!
L'hôtel était très bien situé, près de la gare; le café n'était pas cher.
El niño comió piñas en la habitación; ¿quién limpia mañana?
Отель был чистым, персонал приветливым. Ёлка и йогурт.
酒店很干净，服务员很友好。東京の部屋は狭いが、静かだった。 한국어 문장도 있습니다.
Ο ΣΊΣΥΦΟΣ ανέβηκε· ΤΈΛΟΣ."""

# Each tells one thing apart: blanks, controls, marks, long words, added tokens, contractions, surrogates' neighbours.
CASES = [
    "", " ", "  two  blanks ", "\ttab\nline\r\nend", "a\u00a0b\u2003c\u3000d\u200be", "x\u0000y\ufffdz\u0007w\u00ad\ufeffv",
    "naïve café Ångström e\u0301 A\u030a ﬁ Ⅳ ½ ² İstanbul ẞ ǅ", "w" * 100, "w" * 101, "word" * 60, "[MASK] [CLS]x[SEP]y [mask]",
    "a <mask> b<mask>c  <mask>", "</s><s>hello", "New York NEWTOKEN newtoken newtokens xnewtoken", "don't DON'T they'RE we'll'd 'tis",
    "1234567890 ١٢٣ ⅷ 3.14 1,000", "a_b-c/d\\e|f~g^h`i$j+k=l<m>n", "«quotes» “curly” ‘single’ – — … · ¿¡", "😀👩‍👩‍👧🏳️‍🌈 ok ❤️",
    "क्षत्रिय ো ৌ தமிழ் ไทย", "\U0002b81f\U0002b820\U0002b920\U0002f800豈", "ה\u05b7ע\u05b4ברית العَرَبِيَّة", "á\u0323\u0301 q\u0307\u0323",
    "   \n\n  three\n ", "trailing   ", "'s 's''s", " lead", "\u2028line\u2029para\u0085next\u000bvt\u000cff", "ー々〆ヶ",
    "\u1100\u1161\u11a8 각 힣", "zero\u200dwidth\u200cjoin", "\U0001d400\U0001d7d8 \U000e0001", "�", "ab" * 300,
]


def drawn_texts(seed):
    """Texts of characters of all planes, words and blanks."""
    rng = random.Random(seed)
    words = PROSE.split() + BERT_SPECIAL + ROBERTA_SPECIAL + ["NEWTOKEN", "'re", "'", "\u0301"]
    texts = []
    for _ in range(DRAWN):
        text = ""
        for _ in range(rng.randrange(1, 14)):
            kind = rng.random()
            if kind < 0.45:
                text += rng.choice(words)
            elif kind < 0.7:
                text += rng.choice([" ", " ", "  ", "\n", "\t ", "\u00a0", "\u3000", ""])
            elif kind < 0.85:
                text += "".join(chr(rng.randrange(0x20, 0x530)) for _ in range(rng.randrange(1, 6)))
            else:
                c = rng.randrange(1, 0x30000)
                text += chr(c) if not 0xD800 <= c < 0xE000 else "x"
        texts.append(text)
    return texts


def wordpiece(lower, special=BERT_SPECIAL):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lower)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(PROSE.split("\n") * 3, trainers.WordPieceTrainer(vocab_size=420, special_tokens=special,
                                                                                  show_progress=False))
    ids = {t: tokenizer.token_to_id(t) for t in special}
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])])
    return tokenizer


def byte_bpe():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.train_from_iterator(PROSE.split("\n") * 3, trainers.BpeTrainer(
        vocab_size=420, special_tokens=ROBERTA_SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False))
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return tokenizer


def refill(model, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            norm = "norm" in name.lower() and name.endswith("weight")
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.25 + (1.0 if norm else 0.0))


def record(family, model, tokenizer, texts, seed):
    folder = os.path.join(HERE, family)
    shutil.rmtree(folder, ignore_errors=True)
    refill(model, seed)
    model.eval()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    os.chmod(os.path.join(folder, "model.safetensors"), 0o644)
    for name in ("special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt"):
        if os.path.exists(os.path.join(folder, name)):
            os.remove(os.path.join(folder, name))
    fitting = sorted((t for t in texts if len(tokenizer(t)["input_ids"]) <= LONGEST), key=lambda t: len(tokenizer(t)["input_ids"]))
    chosen = fitting[:2] + fitting[-18:]  # without any word, and as long as may be
    batch = tokenizer(chosen, padding=True, return_tensors="pt")
    batch.pop("token_type_ids", None)
    with torch.no_grad():
        logits = model(**batch).logits
    ids = [tokenizer(t)["input_ids"] for t in chosen]
    ends = torch.tensor([len(i) for i in ids]).cumsum(0)
    write(os.path.join(folder, "golden.safetensors"), {
        "in.tokens": torch.tensor([i for each in ids for i in each], dtype=torch.int64).float(),
        "in.ends": ends.float(), "out": logits})


def main():
    torch.manual_seed(0)
    texts = CASES + PROSE.split("\n") + drawn_texts(1)
    sizes = dict(vocab_size=432, num_labels=CLASSES, attn_implementation="eager")
    width = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=24)

    bert = BertTokenizerFast(tokenizer_object=wordpiece(lower=True))
    bert.add_tokens([AddedToken("NewToken", single_word=True), AddedToken("new york", lstrip=True)])
    record("bert", BertForSequenceClassification(BertConfig(max_position_embeddings=LONGEST, **width, **sizes)), bert, texts, 1)
    cased = DistilBertTokenizerFast(tokenizer_object=wordpiece(lower=False), do_lower_case=False)
    record("distilbert", DistilBertForSequenceClassification(DistilBertConfig(
        dim=16, n_layers=2, n_heads=4, hidden_dim=24, max_position_embeddings=LONGEST, **sizes)), cased, texts, 2)
    # As a folder of an old version: pieces in vocab.txt alone.
    os.remove(os.path.join(HERE, "distilbert", "tokenizer.json"))
    roberta = RobertaTokenizerFast(tokenizer_object=byte_bpe(), add_prefix_space=False)
    record("roberta", RobertaForSequenceClassification(RobertaConfig(
        max_position_embeddings=LONGEST + 2, layer_norm_eps=1e-5, type_vocab_size=1, pad_token_id=1, bos_token_id=0,
        eos_token_id=2, **width, **sizes)), roberta, texts, 3)
    tokens = [{"text": t, "bert": bert(t)["input_ids"], "distilbert": cased(t)["input_ids"],
               "roberta": roberta(t)["input_ids"]} for t in texts]
    with open(os.path.join(HERE, "tokens.json"), "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(t, separators=(",", ":")) for t in tokens) + "\n]\n")


if __name__ == "__main__":
    main()
