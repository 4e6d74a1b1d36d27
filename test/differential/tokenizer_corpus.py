# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Text for tests of tokenizers, the same in every run: documents of all kinds, none of which holds a NUL."""

import os
import random
import unicodedata

WORDS = (
    "the of and to in a is that for it as was with be by on not he his but at are this have from or had an they which "
    "one you were all her she there would their we him been has when who will no more if out so up said what its about "
    "than into them can only other time new some could these two may first then do any like my now over such our man "
    "don't I'll we're they've it's O'Neill's tokenizer naïve café résumé Ångström coöperate Straße ﬁne ﬂow İstanbul"
).split()

EMOJI = (
    "😀 👍🏽 👨‍👩‍👧‍👦 🏳️‍🌈 🇩🇪🇯🇵 ❤️ 👩🏿‍🚀 🤷‍♂️ 1️⃣ #️⃣ ⚡ ☃ 🧑‍🤝‍🧑 🫠 🏴󠁧󠁢󠁥󠁮󠁧󠁿".split()
)

SPACES = " \t\n\r\x0b\x0c\x85\xa0\u1680\u2000\u2003\u2009\u200b\u200d\u2028\u2029\u202f\u205f\u2060\u3000\ufeff"

SCRIPTS = {
    "cjk": (0x4E00, 0x9FA5),
    "kana": (0x3041, 0x30FE),
    "hangul": (0xAC00, 0xD7A3),
    "latin": (0xA1, 0xFF),
    "cyrillic": (0x0410, 0x045F),
    "greek": (0x0391, 0x03C9),
    "arabic": (0x0621, 0x064A),
    "hebrew": (0x05D0, 0x05EA),
    "devanagari": (0x0905, 0x0939),
    "thai": (0x0E01, 0x0E3A),
    "mathematical": (0x1D400, 0x1D4FF),
    "old": (0x20000, 0x20500),
}


# Where libraries and Unicode versions are known to disagree, or once did.
TRICKY = [
    "x²y ¼ m³ ①Ⅻⅻ a‿b ª º", "a\u180eb\u200bc\u200dd\u2060e\ufefff\x85g\xa0h", "漢々〆、ー字 ﾊﾝｶｸ ㍿ ㌀",
    "İstanbul ıI ŞşſSs ẞß ﬁﬃ ǅ ΣΑΣ", "don't DON'T I'LL we'Re x's 'ſ 'K", "\r\n\r\n \r\n\t\n  \n x", "e\u0301 é \u0344 \u0f73 ㅎㅏㄴ 한",
    "$+<=>^`|~ €£¥ ¿¡ ‐‑–—", "<0x41><0xE2><0x82> ▁a ▁▁ Ġb", "١٢٣ 123４５６ ¹²³ ৴",
]


def assigned(first, last):
    """The characters of a range that Unicode 9 has, so that no library's version of the tables matters."""
    old = unicodedata.ucd_3_2_0
    return [chr(c) for c in range(first, last + 1) if old.category(chr(c)) not in ("Cn", "Cs")]


def prose(rng):
    sentences = []
    for _ in range(rng.randint(1, 40)):
        words = [rng.choice(WORDS) for _ in range(rng.randint(2, 20))]
        if rng.random() < 0.3:
            words.insert(rng.randrange(len(words)), str(rng.randint(0, 10 ** rng.randint(1, 12))))
        text = " ".join(words)
        sentences.append(text[0].upper() + text[1:] + rng.choice([". ", "! ", "? ", "; ", ".\n", "...\n\n", ",  ", " — "]))
    return "".join(sentences)


def script_text(rng, letters):
    parts = []
    for _ in range(rng.randint(5, 200)):
        parts.append("".join(rng.choice(letters) for _ in range(rng.randint(1, 9))))
        parts.append(rng.choice([" ", "", "、", "。", "، ", " 12٣ ", ", ", "\n", "「", "」"]))
    return "".join(parts)


def combining(rng):
    marks = assigned(0x300, 0x36F) + assigned(0x591, 0x5BD) + assigned(0x64B, 0x652)
    parts = []
    for _ in range(rng.randint(10, 200)):
        base = rng.choice("aeiounAEIOUNc ßåé한ไあשא")
        parts.append(base + "".join(rng.choice(marks) for _ in range(rng.randint(0, 4))))
    text = "".join(parts)
    return unicodedata.normalize(rng.choice(["NFC", "NFD"]), text) if rng.random() < 0.5 else text


def controls(rng):
    pool = [chr(c) for c in range(1, 32)] + [chr(c) for c in range(0x7F, 0xA0)] + ["�", "￾", "﷐", "", "\U0010ffff"]
    pool += ["Ã©", "â€™", "ï¿½", "\\x00", "%ff", "<0x41>", "<0xE2>", "▁", "Ġ", "Ċ", "<unk>", "</s>"]
    return "".join(rng.choice(pool) + rng.choice(["", "a", " ", "9"]) for _ in range(rng.randint(5, 200)))


def whitespace(rng):
    parts = []
    for _ in range(rng.randint(1, 30)):
        parts.append(rng.choice(SPACES) * rng.choice([1, 1, 2, 3, 4, 7, 8, 16, 33, 100, 1000]))
        parts.append(rng.choice(["", "x", "if", "}", "1", "é", "\n"]))
    return "".join(parts)


def emoji(rng):
    return "".join(rng.choice(EMOJI) + rng.choice(["", " ", "!", "ok"]) for _ in range(rng.randint(1, 100)))


def any_characters(rng, pool):
    return "".join(rng.choice(pool) for _ in range(rng.randint(1, 300)))


def repeats(rng):
    unit = rng.choice(["a", "ab", "=", "-", "/", "0", "9", "。", "é", "🙂", "\n", "Aa", "'s", "x1", "_"])
    return unit * rng.randint(1, 3000)


def python_sources(limit):
    """Pieces of the running interpreter's standard library."""
    folder = os.path.dirname(os.__file__)
    total = 0
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".py") or total > limit:
            continue
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
            text = file.read().replace("\0", "")[:60000]
        total += len(text)
        yield text


def documents(size, seed=20260101, sprinkle=()):
    """Documents of `size` bytes in all, about half of them source code. The strings `sprinkle` are strewn in."""
    rng = random.Random(seed)
    pool = assigned(1, 0xD7FF) + assigned(0xE000, 0xFFFD) + assigned(0x10000, 0x1FFFF)
    scripts = [assigned(*bounds) for bounds in SCRIPTS.values()]
    makers = [prose, prose, prose, combining, controls, whitespace, emoji, repeats,
              lambda r: script_text(r, r.choice(scripts)), lambda r: script_text(r, r.choice(scripts)),
              lambda r: any_characters(r, pool)]
    result = ["", " ", "a", "\n", "  a", "a  "]
    sources = list(python_sources(size // 2))
    result += sources
    remaining = size - sum(len(text.encode()) for text in sources)
    while remaining > 0:
        text = "".join(rng.choice(makers)(rng) for _ in range(rng.choice([1, 1, 1, 2, 5])))
        for _ in range(rng.randint(0, 6) if sprinkle else 0):
            at = rng.randint(0, len(text))
            text = text[:at] + rng.choice(["", " ", "  ", "x", "\n"]) + rng.choice(sprinkle) + text[at:]
        remaining -= len(text.encode())
        result.append(text)
    return result
