// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Dimensions of a copy: fewer, then wider.

#include "cuda/copy_plan.h"

#include "hone/io/dtype.h"

#include <algorithm>

namespace hone::rt::cuda {
namespace {

constexpr int kWidest = 16;
constexpr int64_t kMostElements = int64_t{1} << 31; // of a launch, whose indices are 32 bits wide

struct Dimension {
  int64_t size, to, from; // strides in elements of `width` bytes
};

struct Problem {
  char *to;
  const char *from;
  int width;
  std::vector<Dimension> dimensions; // from the outermost to the innermost

  int64_t count() const {
    int64_t product = 1;
    for (const Dimension &each : dimensions)
      product *= each.size;
    return product;
  }
};

void append(std::vector<Dimension> &dimensions, const Dimension &next) {
  if (next.size == 1)
    return;
  if (!dimensions.empty()) {
    Dimension &last = dimensions.back();
    if (last.to == next.size * next.to && last.from == next.size * next.from) {
      last = {last.size * next.size, next.to, next.from};
      return;
    }
  }
  dimensions.push_back(next);
}

bool canWiden(const Problem &problem) {
  if (problem.width == kWidest || problem.dimensions.empty())
    return false;
  const Dimension &last = problem.dimensions.back();
  auto address = reinterpret_cast<uintptr_t>(problem.to) | reinterpret_cast<uintptr_t>(problem.from);
  auto isEven = [](const Dimension &each) { return each.to % 2 == 0 && each.from % 2 == 0; };
  return last.to == 1 && last.from == 1 && last.size % 2 == 0 && address % (2 * problem.width) == 0 &&
         std::all_of(problem.dimensions.begin(), problem.dimensions.end() - 1, isEven);
}

void widen(Problem &problem) {
  while (canWiden(problem)) {
    problem.width *= 2;
    problem.dimensions.back().size /= 2;
    for (auto each = problem.dimensions.begin(); each != problem.dimensions.end() - 1; ++each) {
      each->to /= 2;
      each->from /= 2;
    }
  }
}

CopyStep launchOf(const Problem &problem) {
  CopyStep step = {problem.width, 0, {}};
  step.copy.to = problem.to;
  step.copy.from = problem.from;
  step.copy.count = static_cast<unsigned>(problem.count());
  step.copy.rank = static_cast<int>(problem.dimensions.size());
  for (size_t axis = 0; axis < problem.dimensions.size(); ++axis) {
    step.copy.sizes[axis] = static_cast<unsigned>(problem.dimensions[axis].size);
    step.copy.toStrides[axis] = problem.dimensions[axis].to;
    step.copy.fromStrides[axis] = problem.dimensions[axis].from;
  }
  return step;
}

bool isOneRow(const Problem &problem) {
  return problem.dimensions.empty() ||
         (problem.dimensions.size() == 1 && problem.dimensions[0].to == 1 && problem.dimensions[0].from == 1);
}

/// Halves the outermost dimension until the elements can be counted.
void addSteps(Problem problem, CopyMeans means, std::vector<CopyStep> &steps) {
  int64_t count = problem.count();
  if (means == CopyMeans::Any && isOneRow(problem)) {
    CopyStep step = {0, static_cast<uint64_t>(count) * static_cast<uint64_t>(problem.width), {}};
    step.copy.to = problem.to;
    step.copy.from = problem.from;
    steps.push_back(step);
    return;
  }
  if (count <= kMostElements)
    return steps.push_back(launchOf(problem));
  Problem rest = problem;
  Dimension &first = problem.dimensions[0];
  int64_t half = first.size / 2;
  rest.dimensions[0].size -= half;
  rest.to += half * first.to * problem.width;
  rest.from += half * first.from * problem.width;
  first.size = half;
  addSteps(std::move(problem), means, steps);
  addSteps(std::move(rest), means, steps);
}

} // namespace

std::vector<CopyStep> planCopy(const hone_tensor &from, const hone_tensor &to, CopyMeans means) {
  Problem problem = {static_cast<char *>(to.data),
                     static_cast<const char *>(from.data),
                     static_cast<int>(io::dtypeBytes(static_cast<hone_dtype>(to.dtype))),
                     {}};
  for (int axis = 0; axis < to.rank; ++axis)
    append(problem.dimensions, {to.sizes[axis], to.strides[axis], from.strides[axis]});
  std::vector<CopyStep> steps;
  if (problem.count() == 0)
    return steps;
  widen(problem);
  addSteps(std::move(problem), means, steps);
  return steps;
}

} // namespace hone::rt::cuda
