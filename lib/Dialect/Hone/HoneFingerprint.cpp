//===- HoneFingerprint.cpp - what tells a model from others -------------------------------------------------------===//
//
// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A hash of the hashes of the parameters, so that no more than one is in memory.
//
//===------------------------------------------------------------------------------------------------------------===//

#include "hone/Dialect/Hone/HoneParams.h"
#include "hone/Dialect/Hone/HoneStorage.h"
#include "hone/Dialect/Hone/ParamBytes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace hone;

/// Bytes of a parameter that are hashed.
static constexpr size_t kHashedBytes = 4096;

static llvm::XXH128_hash_t hash(StringRef bytes) {
  return llvm::xxh3_128bits(ArrayRef(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()));
}

/// Appends the first bytes of a plane, no more than `limit`; elements that are no numbers have none.
static LogicalResult appendBytes(ParamOp param, Attribute storage, size_t limit, std::string &text) {
  if (auto stacked = dyn_cast<StackedAttr>(storage)) {
    size_t end = text.size() + limit;
    for (Attribute part : stacked.getParts())
      if (failed(appendBytes(param, part, end - text.size(), text)))
        return failure();
  } else if (auto external = dyn_cast<ExternalAttr>(storage)) {
    FailureOr<StoredBytes> stored = StoredBytes::open(external, param.getLoc());
    if (failed(stored))
      return failure();
    ArrayRef<char> bytes = stored->get();
    text.append(bytes.data(), std::min(limit, bytes.size()));
  } else if (auto resource = dyn_cast<DenseResourceElementsAttr>(storage)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    if (!blob)
      return param.emitError() << "expected the bytes of resource '" << resource.getRawHandle().getKey()
                               << "', but the file has none";
    ArrayRef<char> bytes = blob->getData();
    text.append(bytes.data(), std::min(limit, bytes.size()));
  } else if (auto dense = dyn_cast<DenseElementsAttr>(storage)) {
    text += StringRef(getElements(dense)).take_front(limit);
  }
  return success();
}

FailureOr<std::string> hone::getFingerprint(ModuleOp module) {
  if (auto kept = module->getAttrOfType<StringAttr>(HoneDialect::getModelAttrName()))
    return kept.str();
  std::string digests;
  llvm::raw_string_ostream os(digests);
  for (auto param : module.getOps<ParamOp>()) {
    std::string text;
    llvm::raw_string_ostream(text) << param.getSymName() << '\0' << param.getStorageType() << '\0';
    size_t end = text.size() + kHashedBytes;
    for (Attribute storage : param.getPlaneStorage())
      if (failed(appendBytes(param, storage, end - text.size(), text)))
        return failure();
    llvm::XXH128_hash_t digest = hash(text);
    os << digest.high64 << ' ' << digest.low64 << '\n';
  }
  llvm::XXH128_hash_t digest = hash(digests);
  return llvm::utohexstr(digest.high64, /*LowerCase=*/true, /*Width=*/16) +
         llvm::utohexstr(digest.low64, /*LowerCase=*/true, /*Width=*/16);
}

LogicalResult hone::keepFingerprint(ModuleOp module) {
  FailureOr<std::string> fingerprint = getFingerprint(module);
  if (failed(fingerprint))
    return failure();
  module->setAttr(HoneDialect::getModelAttrName(), StringAttr::get(module.getContext(), *fingerprint));
  return success();
}
