// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Names change where IR is read and where it is written; in between they are paths that can be opened.

#include "ExternalFiles.h"

#include "hone/Dialect/Hone/HoneTypes.h"
#include "hone/Dialect/Hone/Shards.h"
#include "hone/io/descriptors.h"

#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <unistd.h>

using namespace mlir;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

namespace hone {

/// Gives every `#hone.external` in `module` the name that `rename` gives its file.
static void renameFiles(ModuleOp module, llvm::function_ref<std::string(StringRef)> rename) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](ExternalAttr external) -> Attribute {
    if (external.getFile() == kNoFile)
      return external;
    std::string name = rename(external.getFile());
    return ExternalAttr::get(external.getContext(), name, external.getOffset(), external.getBytes());
  });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true, /*replaceLocs=*/false, /*replaceTypes=*/false);
}

/// `name` without `.` and `..`, from the root.
static std::string makeAbsolute(StringRef name) {
  llvm::SmallString<128> full(name);
  (void)fs::make_absolute(full);
  path::remove_dots(full, /*remove_dot_dot=*/true);
  return full.str().str();
}

static bool leavesFolder(StringRef name) {
  return name.empty() || path::is_absolute(name) ||
         llvm::any_of(llvm::make_range(path::begin(name), path::end(name)),
                      [](StringRef part) { return part == ".."; });
}

/// Whether a part of `name`, which lies in `folder`, is a symbolic link.
static bool hasLink(StringRef folder, StringRef name) {
  llvm::SmallString<128> part(folder);
  for (StringRef component : llvm::make_range(path::begin(name), path::end(name))) {
    path::append(part, component);
    if (fs::is_symlink_file(part))
      return true;
  }
  return false;
}

/// Why `name` in `folder` is no file to read weights from, or an empty string.
static std::string findFault(StringRef folder, StringRef name, StringRef full, bool anywhere) {
  constexpr llvm::StringLiteral remedy = "; --allow-external-paths reads others";
  if (!anywhere && leavesFolder(name))
    return ("expected a relative name of a file in the folder of the IR" + remedy).str();
  if (!anywhere && hasLink(folder, name))
    return ("expected a file that no symbolic link leads to" + remedy).str();
  uint64_t size = 0;
  absl::StatusOr<int> descriptor = io::openForReading(full.str(), size);
  if (!descriptor.ok())
    return std::string(descriptor.status().message());
  ::close(*descriptor);
  return "";
}

LogicalResult resolveExternalFiles(ModuleOp module, StringRef file, bool anywhere) {
  StringRef folder = path::parent_path(file);
  llvm::StringMap<std::string> found;
  bool isWhole = true;
  renameFiles(module, [&](StringRef name) {
    auto [entry, isNew] = found.try_emplace(name);
    if (!isNew)
      return entry->second;
    llvm::SmallString<128> full(path::is_absolute(name) ? StringRef() : folder);
    path::append(full, name);
    entry->second = full.str().str();
    if (std::string fault = findFault(folder, name, full, anywhere); !fault.empty()) {
      emitError(module.getLoc()) << "cannot read external data '" << name << "': " << fault;
      isWhole = false;
    }
    return entry->second;
  });
  return success(isWhole);
}

/// The name of the file `name` from the absolute `folder`; absolute where it does not lie in it.
static std::string getNameFrom(StringRef folder, StringRef name) {
  std::string full = makeAbsolute(name);
  StringRef inside = full;
  bool isInside = inside.consume_front(folder) && (folder == "/" || inside.consume_front("/"));
  return isInside ? inside.str() : full;
}

void warnAboutNames(ModuleOp module, StringRef file) {
  std::string folder = makeAbsolute(path::parent_path(file)), outside;
  renameFiles(module, [&](StringRef name) {
    if (std::string changed = getNameFrom(folder, name); outside.empty() && path::is_absolute(changed))
      outside = changed;
    return name.str();
  });
  if (outside.empty())
    return;
  InFlightDiagnostic warning = emitWarning(module.getLoc());
  warning << "'" << file << "' names '" << outside << "', which is not in its folder";
  warning.attachNote() << "--allow-external-paths reads it; IR in the folder of its weights needs no option";
}

LogicalResult withNamesFrom(ModuleOp module, StringRef file, llvm::function_ref<LogicalResult()> action) {
  std::string folder = makeAbsolute(path::parent_path(file));
  llvm::StringMap<std::string> before;
  renameFiles(module, [&](StringRef name) {
    std::string changed = getNameFrom(folder, name);
    before.try_emplace(changed, name.str());
    return changed;
  });
  LogicalResult result = action();
  renameFiles(module, [&](StringRef name) { return before.lookup(name); });
  return result;
}

} // namespace hone
