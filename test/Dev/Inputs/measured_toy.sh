#!/bin/sh
# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# measured_toy.sh install DIR: puts itself in the place of hone and hone-run. There it makes an artefact that has nothing but a version, and
# says figures that are known; with TOY_FAILS in the environment it fails.
case $1 in
install) for name in hone hone-run; do cp "$0" "$2/$name" && chmod +x "$2/$name"; done ;;
compile)
  [ -z "$TOY_FAILS" ] || { echo "error: no such model" >&2; exit 1; }
  mkdir -p work/speculation.hone && echo '{"hone": "9"}' > work/speculation.hone/manifest.json ;;
bench) echo '{"categories": {"code": {"plain_tokens_per_second": 100, "tokens_per_second": 250, "same_texts": 1, "prompts": 4}}}' ;;
esac
