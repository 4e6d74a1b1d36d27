# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What text tests and unit tests have in common: the environment, and what this machine has."""

import os
import shutil

for name in ("HOME", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "OMP_TOOL_LIBRARIES", "OMP_NUM_THREADS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
config.environment["HONE_SOURCE_DIR"] = config.hone_source_dir
# The loader finds libhone_rt.so of this build, whatever is installed.
config.environment["LD_LIBRARY_PATH"] = os.path.join(config.hone_binary_dir, "lib")

# Models that only a developer's checkout has beside it.
shared = os.environ.get("HONE_SHARED") or os.path.join(os.path.dirname(config.hone_source_dir), "shared")
if os.path.isdir(os.path.join(shared, "models")):
    config.available_features.add("shared-models")
    config.environment["HONE_SHARED"] = os.path.abspath(shared)
    config.substitutions.append(("%shared", os.path.abspath(shared)))

if os.path.exists("/dev/nvidiactl") and shutil.which("nvidia-smi"):
    config.available_features.add("gpu")

if config.hone_sanitize:
    config.available_features.add("sanitizer")
    # LLVM's arenas poison memory in inlined headers and unpoison it inside libMLIR.so, which is not instrumented.
    # More memory than there is has to be refused by us, as without sanitizers, and not by the allocator's abort.
    own = "allow_user_poisoning=0:allocator_may_return_null=1:"
    config.environment["ASAN_OPTIONS"] = own + config.environment.get("ASAN_OPTIONS", "")
