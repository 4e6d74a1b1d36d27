# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small tokenizers of every family that models ship, trained on the spot: name -> tokenizer.json as text."""

import json
import struct
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
KIMI = (
    r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
    r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
)
DEEPSEEK_V3 = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
)
CLIP = r"""<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"""

ADDED = ["<|bos|>", "<|eos|>", "<mask>", "[single]", "<norm é>", "<left>", "<right>", "    ", "<|bos|><|eos|>"]


def added_tokens():
    return [
        AddedToken("<|bos|>", special=True, normalized=False),
        AddedToken("<|eos|>", special=True, normalized=False),
        AddedToken("<mask>", special=True, lstrip=True, normalized=False),
        AddedToken("[single]", single_word=True, normalized=False),
        AddedToken("<norm é>", normalized=True),
        AddedToken("<left>", lstrip=True, normalized=False),
        AddedToken("<right>", rstrip=True, normalized=False),
        AddedToken("    ", normalized=False),
        AddedToken("<|bos|><|eos|>", normalized=False),
        AddedToken("over", single_word=True, normalized=True),
    ]


def isolated(*patterns):
    return [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in patterns]


def byte_level_bpe(texts, pre_tokenizer, normalizer=None, vocabulary=6000, **model):
    tokenizer = Tokenizer(models.BPE(**model))
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False,
        end_of_word_suffix=model.get("end_of_word_suffix") or "",
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_tokens(added_tokens())
    return tokenizer


def with_bos(tokenizer, trim_offsets=True):
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=trim_offsets),
        processors.TemplateProcessing(
            single="<|bos|> $A <|eos|>", pair="<|bos|> $A <|bos|> $B:1",
            special_tokens=[("<|bos|>", tokenizer.token_to_id("<|bos|>")), ("<|eos|>", tokenizer.token_to_id("<|eos|>"))],
        ),
    ])
    return tokenizer


def sequence(*stages):
    return pre_tokenizers.Sequence([*stages, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def byte_level_family(texts):
    yield "gpt2", byte_level_bpe(texts, pre_tokenizers.ByteLevel(add_prefix_space=False))
    roberta = byte_level_bpe(texts, pre_tokenizers.ByteLevel(add_prefix_space=True))
    roberta.post_processor = processors.RobertaProcessing(("<|eos|>", 7), ("<|bos|>", 8))
    yield "roberta", roberta
    yield "llama3", with_bos(byte_level_bpe(texts, sequence(*isolated(LLAMA3)), ignore_merges=True))
    yield "qwen2", byte_level_bpe(texts, sequence(*isolated(QWEN2)), normalizers.NFC())
    yield "cl100k", byte_level_bpe(texts, sequence(*isolated(CL100K)))
    yield "o200k", byte_level_bpe(texts, sequence(*isolated(O200K)))
    yield "kimi", byte_level_bpe(texts, sequence(*isolated(KIMI)))
    yield "deepseek-coder", byte_level_bpe(texts, pre_tokenizers.Sequence([
        *isolated(r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", r"[一-龥ࠀ-一가-퟿]+"), pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]))
    yield "deepseek-v3", byte_level_bpe(texts, sequence(*isolated(r"\p{N}{1,3}", r"[一-龥぀-ゟ゠-ヿ]+", DEEPSEEK_V3)))
    yield "starcoder", byte_level_bpe(texts, pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]))
    clip = byte_level_bpe(
        texts, pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(CLIP), "removed", invert=True),
                                        pre_tokenizers.ByteLevel(add_prefix_space=False)]),
        normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]),
        end_of_word_suffix="</w>", unk_token="a")
    clip.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Replace("</w>", " ")])
    yield "clip", clip


def splits(texts):
    """One vocabulary under every way to cut a text."""
    base = json.loads(byte_level_bpe(texts[:40], pre_tokenizers.ByteLevel(add_prefix_space=False), vocabulary=2000).to_str())
    stages = {}
    for behavior in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"):
        for invert in (False, True):
            stages[f"split-regex-{behavior}-{invert}"] = pre_tokenizers.Split(Regex(r"[aeiou ]|\d*"), behavior, invert)
            stages[f"split-string-{behavior}-{invert}"] = pre_tokenizers.Split(" ", behavior, invert)
        stages[f"punctuation-{behavior}"] = pre_tokenizers.Punctuation(behavior)
    stages["digits"] = pre_tokenizers.Digits(individual_digits=False)
    stages["whitespace"] = pre_tokenizers.Whitespace()
    stages["whitespace-split"] = pre_tokenizers.WhitespaceSplit()
    stages["bert-words"] = pre_tokenizers.BertPreTokenizer()
    stages["delimiter"] = pre_tokenizers.CharDelimiterSplit("e")
    stages["fixed-length"] = pre_tokenizers.FixedLength(7)
    stages["word-class"] = pre_tokenizers.Split(Regex(r"\w+|[[:punct:]]+|\h+"), "isolated")
    stages["boundaries"] = pre_tokenizers.Split(Regex(r"\b\w{2}?\B|^.|.$|\u00e9"), "isolated")
    for name, stage in stages.items():
        tokenizer = Tokenizer.from_str(json.dumps(base))
        tokenizer.pre_tokenizer = sequence(stage)
        yield name, tokenizer


def sentence_piece_base(texts):
    """A vocabulary with byte tokens, trained on words and stripped of how it was trained."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    names = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=5000, special_tokens=names, limit_alphabet=300, show_progress=False))
    document = json.loads(tokenizer.to_str())
    document["added_tokens"] = [token for token in document["added_tokens"] if not token["content"].startswith("<0x")]
    document["pre_tokenizer"] = None
    return document


def sentence_piece_family(texts):
    base = sentence_piece_base(texts)
    fallback = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]

    def variant(normalizer=None, pre_tokenizer=None, decoder=None, **model):
        tokenizer = Tokenizer.from_str(json.dumps({**base, "model": {**base["model"], **model}}))
        if normalizer:
            tokenizer.normalizer = normalizer
        if pre_tokenizer:
            tokenizer.pre_tokenizer = pre_tokenizer
        tokenizer.decoder = decoder or decoders.Sequence([*fallback, decoders.Strip(" ", 1, 0)])
        tokenizer.add_tokens(added_tokens())
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A", pair="<s> $A <s> $B:1", special_tokens=[("<s>", 1)])
        return tokenizer

    underscore = normalizers.Replace(" ", "▁")
    yield "llama2-old", variant(normalizers.Sequence([normalizers.Prepend("▁"), underscore]))
    for scheme in ("first", "always", "never"):
        metaspace = decoders.Metaspace(prepend_scheme=scheme)
        yield f"llama2-{scheme}", variant(
            pre_tokenizer=pre_tokenizers.Metaspace(prepend_scheme=scheme, split=False), decoder=metaspace)
        yield f"llama2-{scheme}-split", variant(
            pre_tokenizer=pre_tokenizers.Metaspace(prepend_scheme=scheme, split=True),
            decoder=decoders.Sequence([decoders.ByteFallback(), metaspace, decoders.Fuse(), decoders.Strip(" ", 2, 0)]))
    yield "digits-metaspace", variant(pre_tokenizer=pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.Metaspace(prepend_scheme="first")]))
    yield "gemma", variant(underscore, pre_tokenizers.Split(" ", "merged_with_previous"), decoders.Sequence(fallback))
    yield "no-fallback", variant(underscore, byte_fallback=False)
    yield "unfused-unknown", variant(underscore, byte_fallback=False, fuse_unk=False)
    yield "no-unknown", variant(underscore, byte_fallback=False, unk_token=None)
    yield "strip-nfkc", variant(normalizers.Sequence([
        normalizers.Nmt(), normalizers.NFKC(), normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " "), underscore]),
        pre_tokenizers.Metaspace(prepend_scheme="first"))
    yield "strip-accents", variant(normalizers.Sequence([
        normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Strip(left=False)]))


def double_array(table):
    """A charsmap that maps the bytes of each key to a text: a double array in the layout of Darts-clone, then the texts."""
    replacements, places, trie = b"", {}, {}
    for key, value in table.items():
        places[key.encode()] = len(replacements)
        replacements += value.encode() + b"\0"
        node = trie
        for byte in key.encode():
            node = node.setdefault(byte, {})
        node[0] = places[key.encode()]
    units, bases = {0: 0}, set()

    def place(node, at):
        labels = sorted(node)
        base = next(b for b in range(1, 1 << 20) if b not in bases and all(b ^ label not in units for label in labels))
        bases.add(base)
        units[at] |= (at ^ base) << 10 | (0 in node) << 8
        for label in labels:
            units[base ^ label] = node[label] | 1 << 31 if label == 0 else label
        for label in labels:
            if label:
                place(node[label], base ^ label)

    place(trie, 0)
    size = (max(units) | 0xFF) + 1
    array = [units.get(i, 0) for i in range(size)]
    return struct.pack(f"<I{size}I", 4 * size, *array) + replacements


def unigram_family(texts):
    base = Tokenizer(models.Unigram())
    base.pre_tokenizer = pre_tokenizers.Metaspace()
    base.train_from_iterator([text for text in texts if text.isascii()], trainers.UnigramTrainer(
        vocab_size=3000, special_tokens=["<unk>", "<s>", "</s>"], unk_token="<unk>", show_progress=False))
    base.decoder = decoders.Metaspace()
    base.add_tokens(added_tokens())
    yield "unigram", base
    document = json.loads(base.to_str())
    document["model"]["vocab"] += [[f"<0x{byte:02X}>", -30.0] for byte in range(256)]
    document["model"]["byte_fallback"] = True
    document["pre_tokenizer"] = None
    table = {chr(c): unicodedata.normalize("NFKC", chr(c)).casefold() for c in [*range(0xA0, 0x250), *range(0xFF01, 0xFF5F)]}
    table.update({"\n": " ", "\t": " ", "\r\n": " ", "e\u0301": "é", "\u200b": "", "ﬁ": "fi", " ": "▁"})
    charsmap = Tokenizer.from_str(json.dumps(document))
    charsmap.normalizer = normalizers.Precompiled(double_array(table))
    yield "unigram-charsmap", charsmap


def word_families(texts):
    bert = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    bert.normalizer = normalizers.BertNormalizer()
    bert.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    bert.decoder = decoders.WordPiece()
    bert.train_from_iterator(texts, trainers.WordPieceTrainer(
        vocab_size=4000, special_tokens=["[UNK]", "[CLS]", "[SEP]"], show_progress=False))
    bert.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    bert.add_tokens(added_tokens())
    yield "bert-uncased", bert
    cased = Tokenizer.from_str(bert.to_str())
    cased.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False, clean_text=True)
    cased.decoder = decoders.WordPiece(cleanup=False)
    yield "bert-cased", cased
    words = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.train_from_iterator(texts, trainers.WordLevelTrainer(
        vocab_size=3000, special_tokens=["[UNK]"], show_progress=False))
    yield "word-level", words
    pairs = Tokenizer(models.BPE(unk_token="[UNK]", continuing_subword_prefix="##", end_of_word_suffix="</w>"))
    pairs.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    pairs.decoder = decoders.BPEDecoder(suffix="</w>")
    pairs.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=3000, special_tokens=["[UNK]"], continuing_subword_prefix="##", end_of_word_suffix="</w>",
        show_progress=False))
    yield "bpe-affixes", pairs


def all_tokenizers(texts):
    for family in (byte_level_family, splits, sentence_piece_family, unigram_family, word_families):
        yield from family(texts)
