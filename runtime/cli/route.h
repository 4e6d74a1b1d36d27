// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// --router: a text of which a small model writes the steps that are good enough, and a large one the others.

#ifndef HONE_RUNTIME_CLI_ROUTE_H
#define HONE_RUNTIME_CLI_ROUTE_H

#include "cli/generate.h"
#include "speculate/block_router.h"

namespace hone::cli {

struct RouterFlags {
  std::optional<std::string> given, step;
  int64_t mostTokens = 128; // of a step

  // Of `given`, after read():
  std::string draft; // the small model's artefact
  speculate::RoutingOptions options;

  void declare(OptionParser &parser);
  absl::Status read();
};

/// Writes the text that `options` asks for with the steps of both models.
absl::Status routeText(std::shared_ptr<const rt::Module> module, const GenerateOptions &options,
                       const RouterFlags &router);

} // namespace hone::cli

#endif // HONE_RUNTIME_CLI_ROUTE_H
