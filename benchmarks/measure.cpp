// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors and medians of the ratios.

#include "measure.h"

#include "hone/io/array.h"

#include <algorithm>
#include <cstdlib>
#include <random>

namespace hone::bench {

Floats::Floats(int64_t count, float most) {
  constexpr size_t line = 64;
  size_t bytes = static_cast<size_t>(count) * sizeof(float);
  memory.reset(static_cast<float *>(std::aligned_alloc(line, (bytes + line) / line * line)));
  std::minstd_rand random;
  std::uniform_real_distribution<float> share(-1, 1);
  std::generate_n(memory.get(), count, [&] { return most * share(random); });
}

void Floats::Free::operator()(float *floats) const { std::free(floats); }

hone_tensor viewOf(void *data, hone_dtype dtype, std::vector<int64_t> sizes) {
  return io::denseView(data, dtype, sizes);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void takeTurns(const Options &options, const std::function<void(bool counts)> &turn) {
  for (int i = 0; i <= options.repeats; ++i)
    turn(i > 0);
}

bool isWanted(const Options &options, const std::string &name) {
  return name.find(options.filter) != std::string::npos;
}

} // namespace hone::bench
