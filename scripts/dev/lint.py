# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""lint.py FILES...: what a machine can say about the text of sources: length, licence, whitespace, unfinished work."""

import pathlib
import re
import sys

import layers

CODE = {".cpp", ".cu", ".h", ".c", ".td", ".py", ".sh"}
INCLUDING = {".cpp", ".cu", ".h", ".c", ".td"}
TEXT = CODE | {".cmake", ".md", ".mlir", ".test", ".txt", ".in", ".json", ".yaml", ".yml", ""}
MAX_LINES = 500
LICENCE = "SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"
LICENCE_WITHIN = 8
# In two halves, so that this file passes.
UNFINISHED = re.compile(r"\b(" + "|".join(("TO" "DO", "FIX" "ME", "XX" "X", "HA" "CK")) + r")\b")
# Words of our own for what the field has a word for (docs/glossary.md, which names them).
BANNED = [(re.compile(pattern, re.IGNORECASE), word) for pattern, word in (
    ("\\baskew\\b", "staggered"),
    ("\\bwaits? for (memory|arithmetic)\\b", "memory-bound, compute-bound"),
    ("\\blevels? of the instruction set\\b|\\blevels\\.def\\b|HONE_LEVEL", "ISA"),
    ("\\b(asks?|asked|asking) (memory )?for (weights|lines|keys|values)\\b", "prefetch"),
    ("\\bask(Far|Near|ForWeights)\\b|\\b(Values|Weights|Units|Tiles|Source|Nothing)Ahead\\b", "prefetch"),
    ("\\bBand(Layer|Mlp|Division)\\b", "M-block, GEMM"),
    ("\\bturn(s|ed)? (by|in) (tiles|blocks)\\b|\\b(can|build)?Turn(ed|Weights|Floats)\\(", "transpose"),
    ("\\b(begin|commit|waitFor|fence)Products\\b|\\b(take|give)Registers(Back)?\\b|\\bcopyBox\\w*|\\bcopy engine\\b",
     "wgmma, setmaxnreg, TMA"),
    ("\\bmeet(All|InCluster)\\b", "barrier"),
    ("\\b(AffineLevels|LevelPlane|LevelLayout|(pack|load|draw)Levels|roundToLevel|levelBits)\\b",
     "quantized value, code"),
    ("\\bUnit(Analysis|Axis|Removal|Rules)\\b|\\bInputUnits\\b|\\b(eliminate|remove|cut|mark)Units\\b",
     "prunable group"),
    ("\\b(kept|keeps?|stored|rounded) apart\\b|\\b(is|mayKeep)Apart\\b", "outliers, stored separately"),
    ("(?<!left )(?<!leaves that )(?<!thing )(?<!'} )\\bbehind (?!a C)", "after, following"),
    ("(?-i:\\b(SecondMoment|OwnedMoment|DampedMoment)\\b)", "Hessian"),
    ("\\b\\w*WithFeedback\\b|\\bhasFeedback\\b|\\b(made|makes?|making) up for\\b|\\bsettle[sd]?\\b",
     "error compensation"),
    ("\\bgroups of heads\\b|\\bheads (that )?share (the )?keys\\b|\\bheads of keys\\b", "GQA, KV heads"),
    ("\\bhone\\.rounded\\b|\\bRounded(Attr|KeyLayout|ValueLayout)\\b|\\brounded state\\b", "quantized KV"),
    ("\\bkv_wanted\\b|\\bKvWanted(Op)?\\b|\\bStateWantedOp\\b", "logits_to_keep"),
    ("\\bdivide-gates\\b|\\bDivideGates\\b|\\bgate and what it scales\\b", "fused gate_up"),
    ("\\brotate-stream\\b|\\bRotateStream\\b|\\bStreamAnalysis\\b", "residual stream"),
    ("obstacle", "blocker, reason"),
    ("\\bword for (this|the) (layout|pattern|storage)\\b", "name"),
    ("\\b(bring|brings|brought) back\\b|\\blieBeside\\b|\\baskForRow\\b", "write back, restore, spill"),
)]
NAMING_THEM = (pathlib.Path("docs/glossary.md"), pathlib.Path("scripts/dev/lint.py"))


def complaints(path):
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return
    lines = text.splitlines()
    # A file has few of them: looked for line by line only where the whole has one.
    banned = [] if path in NAMING_THEM else [rule for rule in BANNED if rule[0].search(text)]
    if path.suffix in CODE:
        if len(lines) > MAX_LINES:
            yield 1, f"{len(lines)} lines, more than {MAX_LINES}: split the file by concern"
        if not any(LICENCE in line for line in lines[:LICENCE_WITHIN]):
            yield 1, f"no licence line '{LICENCE}' in the first {LICENCE_WITHIN} lines"
    if path.suffix in INCLUDING:
        yield from layers.complaints(path, lines)
    for number, line in enumerate(lines, 1):
        if match := UNFINISHED.search(line):
            yield number, f"'{match[0]}': finish it, or write down what is not covered"
        for pattern, word in banned:
            if match := pattern.search(line):
                yield number, f"'{match[0]}': the field says {word} (docs/glossary.md)"
        if line != line.rstrip() and path.suffix != ".test":
            yield number, "space at the end of the line"
        if "\t" in line and path.suffix in CODE:
            yield number, "tab"


def main():
    count = 0
    for name in sys.argv[1:]:
        path = pathlib.Path(name)
        if path.suffix not in TEXT or not path.is_file():
            continue
        for number, text in complaints(path):
            print(f"{path}:{number}: {text}")
            count += 1
    return 1 if count else 0


sys.exit(main())
