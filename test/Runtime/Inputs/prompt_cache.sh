#!/usr/bin/env bash
# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# prompt_cache.sh BIN EXAMPLE: texts with and without a saved state are the same, for each type of keys and values.
set -euo pipefail
head -c 900 "$2/README.md" >prompt.txt
{ cat prompt.txt && printf 'def main('; } >longer.txt
for cache in f32 bf16 int8 int4; do
  "$1/hone" compile --quiet "$2/model.onnx" --kv-cache=$cache --tokenizer="$2/tokenizer.json" -o $cache.hone
  for text in prompt longer; do
    "$1/hone-run" run $cache.hone --prompt-file $text.txt --max-new-tokens 30 >$cache.$text.plain
    "$1/hone-run" run $cache.hone --prompt-file $text.txt --max-new-tokens 30 --prompt-cache $cache.state --stats >$cache.$text.cached 2>>stats.$cache
    cmp $cache.$text.plain $cache.$text.cached
  done
done
