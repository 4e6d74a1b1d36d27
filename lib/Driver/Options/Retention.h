// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// How many keys a session keeps. What the pass takes is bound to its own options.

#ifndef HONE_LIB_DRIVER_OPTIONS_RETENTION_H
#define HONE_LIB_DRIVER_OPTIONS_RETENTION_H

#include "Options/Attention.h"
#include "Options/Draft.h"
#include "Options/Speculation.h"
#include "Options/Target.h"
#include "hone/Dialect/Hone/Retention.h"
#include "hone/Transforms/Passes.h"

namespace hone {

struct RetentionOptions {
  std::string policy; // snapkv, h2o, prefix, or empty: all keys are kept
  std::optional<int64_t> budget, recent;
  RetainKeysOptions pass;

  bool isAsked() const { return !policy.empty(); }
  bool needsImportance() const { return !pass.importance.empty(); }
  RetainKeysOptions getPassOptions() const {
    RetainKeysOptions options = pass;
    options.policy = policy;
    options.budget = *budget;
    options.recent = getRecent();
    return options;
  }

  void declare(OptionSet &set, const TargetOptions &target, const DraftOptions &draft,
               const AttentionOptions &attention, const SpeculationOptions &speculation) {
    auto isBounded = [this] { return isAsked(); };
    set.add("kv-retention", policy, "POLICY",
            "Let a session keep a bounded number of keys and values a layer: snapkv, those that the last tokens attend "
            "to; h2o, those that all tokens did; prefix, likewise, with a budget for each layer by --kv-importance")
        .oneOf({"snapkv", "h2o", "prefix"})
        .needs("--kv-budget", [this] { return budget.has_value(); })
        .needs("--kv-importance", [this] { return policy != "prefix" || needsImportance(); })
        .needs("--target=cpu", [&target] { return !target.isCuda(); })
        .needs("--tensor-parallel=1", [&target] { return target.ranks == 1; })
        .check([&]() -> std::string {
          for (auto [isGiven, other] :
               {std::pair(draft.isAsked(), "--draft"), std::pair(attention.isAsked(), "--attention"),
                std::pair(!speculation.drafts.empty(), "--speculate")})
            if (isAsked() && isGiven)
              return "expected --kv-retention or " + std::string(other) + ", but got both";
          return "";
        });
    set.add("kv-budget", budget, "N", "With --kv-retention, how many keys a layer keeps")
        .needs("--kv-retention", isBounded)
        .upTo(kMostRetainedKeys)
        .check([this] { return isAsked() ? checkBudget() : ""; });
    set.add("kv-importance", pass.importance, "FILE",
            "Let --kv-budget be the mean of the layers' own budgets, by the file that hone calibrate --kv-importance "
            "writes")
        .needs("--kv-retention", isBounded);
    set.add("kv-sinks", pass.sinks, "N", "With --kv-retention, how many first keys of a text always stay (default: 4)")
        .needs("--kv-retention", isBounded)
        .check([this] {
          return pass.sinks < 0 || pass.sinks > kMostRetainedKeys
                     ? "expected --kv-sinks to be a whole number from 0 to " + std::to_string(kMostRetainedKeys) +
                           ", but got " + std::to_string(pass.sinks)
                     : "";
        });
    set.add("kv-recent", recent, "N",
            "With --kv-retention, how many last keys always stay (default: 32; with h2o half of the budget)")
        .needs("--kv-retention", isBounded)
        .upTo(kMostRetainedKeys);
  }

private:
  /// The share of H2O's own evaluation: as many recent keys as heavy hitters.
  int64_t getRecent() const { return recent.value_or(policy == "h2o" ? std::max<int64_t>(*budget / 2, 1) : 32); }

  std::string checkBudget() const {
    int64_t block = getEvictedBlock(*budget), least = pass.sinks + getRecent() + block;
    return *budget >= least
               ? ""
               : "expected --kv-budget to be at least " + std::to_string(least) + ", for " +
                     std::to_string(pass.sinks) + " sinks, " + std::to_string(getRecent()) + " recent keys and " +
                     std::to_string(block) + " that are evicted at once, but got " + std::to_string(*budget);
  }
};

} // namespace hone

#endif // HONE_LIB_DRIVER_OPTIONS_RETENTION_H
