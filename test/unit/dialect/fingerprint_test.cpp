// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The fingerprint of a model: another for any other parameter, the same wherever the bytes lie and however they are converted.

#include "hone/Dialect/Hone/HoneParams.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include "gmock/gmock.h"
#include <fstream>
#include <unistd.h>

namespace hone {
namespace {

class Fingerprint : public testing::Test {
protected:
  Fingerprint() { context.loadDialect<HoneDialect>(); }

  std::string of(const std::string &text) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    auto fingerprint = module ? getFingerprint(*module) : llvm::FailureOr<std::string>(mlir::failure());
    return succeeded(fingerprint) ? *fingerprint : "none";
  }

  mlir::MLIRContext context;
  const std::string w = "hone.param @w : tensor<2x1xf32> = dense<[[1.0], [2.0]]> : tensor<2x1xf32>\n";
  const std::string v = "hone.param @v : tensor<1xf32> = dense<3.0> : tensor<1xf32>\n";
};

TEST_F(Fingerprint, TellsModelsApart) {
  std::string known = of(w + v);
  EXPECT_THAT(known, testing::MatchesRegex("[0-9a-f]{32}"));
  EXPECT_EQ(of(w + v), known);
  EXPECT_NE(of(w), known);
  EXPECT_NE(of(v + w), known);
  EXPECT_NE(of("hone.param @u : tensor<2x1xf32> = dense<[[1.0], [2.0]]> : tensor<2x1xf32>\n" + v), known);
  EXPECT_NE(of("hone.param @w : tensor<1x2xf32> = dense<[[1.0, 2.0]]> : tensor<1x2xf32>\n" + v), known);
  EXPECT_NE(of("hone.param @w : tensor<2x1xf32> = dense<[[1.0], [2.5]]> : tensor<2x1xf32>\n" + v), known);
}

TEST_F(Fingerprint, IsThatOfTheBytesWhereverTheyLie) {
  std::string path = testing::TempDir() + "fingerprint." + std::to_string(getpid());
  const float elements[] = {0, 1, 2};
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char *>(elements), sizeof elements);
  std::string external = "#hone.external<\"" + path + "\", 4, 8>";
  EXPECT_EQ(of("hone.param @w : tensor<2x1xf32> = " + external), of(w));
  std::string converted = "#hone.converted<tensor<2x1xf32> = " + external + ">";
  EXPECT_EQ(of("hone.param @w : tensor<2x1xf32, #hone.stored<bf16>> = " + converted), of(w));
  std::remove(path.c_str());
  std::string message;
  context.getDiagEngine().registerHandler([&](mlir::Diagnostic &diagnostic) { message = diagnostic.str(); });
  EXPECT_EQ(of("hone.param @w : tensor<2x1xf32> = " + external), "none");
  EXPECT_THAT(message, testing::HasSubstr("cannot open " + path + ": No such file or directory"));
}

} // namespace
} // namespace hone
