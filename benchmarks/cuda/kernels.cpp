// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device kernels on the machine's GPU: time, bytes and operations a second, a line of JSON for each case.
//
//   hone-cuda-benchmarks [--small] [FILTER]    cases whose name contains FILTER; with --small all sizes are a
//                                              sixteenth, measured once, for an emulated driver
//
// The data is larger than L2: cases alternate between copies of the weights. bench.py compares the figures.

#include "test_device.h"

#include "hone/kernels/arguments.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <random>
#include <string>

extern const char kReadMemoryPtx[]; // read_memory.cu

namespace hone::benchmarks {
namespace {

using test::TestDevice;

struct Bench {
  TestDevice &device;
  std::string filter;
  int64_t shrink = 1; // sizes are divided by it

  bool wants(const std::string &name) const { return name.find(filter) != std::string::npos; }

  /// Enqueues `call(i)` many times, after a warm-up, and prints the mean of the fastest of five such runs.
  template <typename Call>
  void run(const std::string &name, double bytes, double operations, Call call) {
    double best = 1e30;
    bool isSmall = shrink > 1;
    int calls = isSmall ? 1 : 5;
    for (int round = 0; round < (isSmall ? 2 : 6); ++round) {
      double time = device.measure([&] {
        for (int i = 0; i < calls; ++i)
          call(i);
      }) / calls;
      if (round > 0)
        best = std::min(best, time);
      calls = isSmall ? 1 : std::clamp(static_cast<int>(20000 / time), 5, 500); // about 20 ms a run
    }
    std::printf("{\"case\": \"%s\", \"microseconds\": %.2f, \"GB_per_s\": %.6g, \"TFLOP_per_s\": %.6g}\n", name.c_str(),
                best, bytes / best / 1e3, operations / best / 1e6);
    std::fflush(stdout);
  }
};

/// Device memory with random positive 16-bit floats below 2; as quantized values and as f32 they are arbitrary.
hone_tensor randomTensor(TestDevice &device, std::vector<int64_t> sizes, int32_t dtype, int64_t elementBytes) {
  std::mt19937 random(5);
  int64_t count = std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
  std::vector<uint8_t> bytes(static_cast<size_t>(count * elementBytes));
  for (size_t i = 0; i + 1 < bytes.size(); i += 2) {
    uint16_t half = random() & 0x3bff;
    std::memcpy(bytes.data() + i, &half, 2);
  }
  hone_tensor tensor = {};
  tensor.data = device.upload(bytes);
  tensor.dtype = dtype;
  tensor.rank = static_cast<int32_t>(sizes.size());
  int64_t stride = 1;
  for (size_t axis = sizes.size(); axis-- > 0; stride *= sizes[axis]) {
    tensor.sizes[axis] = sizes[axis];
    tensor.strides[axis] = stride;
  }
  return tensor;
}

const hone_tensor kAbsent = {nullptr, HONE_F32, 1, {0}, {1}};

/// Puts other data into a tensor of as many bytes.
void fill(TestDevice &device, hone_tensor &tensor, const void *data, size_t bytes) {
  device.release(tensor.data);
  const auto *first = static_cast<const uint8_t *>(data);
  tensor.data = device.upload({first, first + bytes});
}

/// The planes of a weight of `format`, and their bytes. Quantized values have a scale of f16 for each 128 inputs.
struct Weight {
  std::vector<hone_tensor> planes;
  double bytes = 0;

  void add(TestDevice &device, const std::vector<int64_t> &sizes, int32_t dtype, int64_t elementBytes) {
    planes.push_back(randomTensor(device, sizes, dtype, elementBytes));
    bytes += static_cast<double>(elementBytes) * std::accumulate(sizes.begin(), sizes.end(), 1.0, std::multiplies<>());
  }

  /// 0.45 % of the elements as outliers, as many for each panel of 16 outputs, at random inputs.
  void addOutliers(TestDevice &device, int64_t outputs, int64_t inputs) {
    int64_t panels = outputs / 16, slots = inputs * 45 / 10000;
    std::vector<int32_t> starts(static_cast<size_t>(panels + 1));
    for (size_t i = 0; i < starts.size(); ++i)
      starts[i] = static_cast<int32_t>(slots * static_cast<int64_t>(i));
    std::mt19937 random(3);
    std::vector<uint16_t> columns(static_cast<size_t>(panels * slots * 16));
    for (uint16_t &column : columns)
      column = static_cast<uint16_t>(random() % static_cast<uint32_t>(inputs));
    add(device, {panels + 1}, HONE_I32, 4);
    add(device, {panels * slots, 16}, HONE_BF16, 2);
    fill(device, planes[0], starts.data(), starts.size() * 4);
    fill(device, planes[1], columns.data(), columns.size() * 2);
    add(device, {panels * slots, 16}, HONE_F16, 2);
  }

  Weight(TestDevice &device, const std::string &format, int64_t outputs, int64_t inputs) {
    bool isSparse = format.starts_with("sparse.");
    int64_t stored = isSparse ? inputs / 2 : inputs;
    if (format.ends_with("bf16"))
      add(device, {outputs, stored}, HONE_BF16, 2);
    else
      addQuantized(device, format, outputs, stored, inputs);
    if (isSparse)
      addIndices(device, outputs, inputs);
  }

private:
  void addQuantized(TestDevice &device, const std::string &format, int64_t outputs, int64_t stored, int64_t inputs) {
    if (format.starts_with("outliers."))
      addOutliers(device, outputs, inputs);
    add(device, {outputs, stored * (format.back() - '0') / 8}, HONE_U8, 1);
    add(device, {outputs, (inputs + 127) / 128}, HONE_F16, 2);
    planes.push_back(kAbsent); // zero points
  }

  /// Random indices of two of every four inputs.
  void addIndices(TestDevice &device, int64_t outputs, int64_t inputs) {
    static constexpr uint8_t kPairs[] = {0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110};
    std::mt19937 random(3);
    std::vector<uint8_t> indices(static_cast<size_t>(outputs * inputs / 8));
    for (uint8_t &byte : indices)
      byte = static_cast<uint8_t>(kPairs[random() % 6] | kPairs[random() % 6] << 4);
    hone_tensor plane = randomTensor(device, {outputs, inputs / 8}, HONE_U8, 1);
    fill(device, plane, indices.data(), indices.size());
    planes.insert(planes.begin() + 1, plane);
    bytes += static_cast<double>(indices.size());
  }
};

void release(TestDevice &device, const std::vector<hone_tensor> &tensors) {
  for (const hone_tensor &tensor : tensors)
    if (tensor.data)
      device.release(tensor.data);
}

/// Three siblings, or a gate and an up layer, of one row of f32.
void runLayers(Bench &bench, const std::string &kernel, const std::string &format, const std::vector<int64_t> &outputs,
               int64_t inputs) {
  bool isGated = kernel == "gated_linear";
  std::string name = kernel + "." + format + ".f32.1";
  for (int64_t count : outputs)
    name += "x" + std::to_string(count);
  name += "x" + std::to_string(inputs);
  if (!bench.wants(name))
    return;
  TestDevice &device = bench.device;
  hone_tensor x = randomTensor(device, {1, inputs}, HONE_F32, 4);
  std::vector<std::vector<hone_tensor>> copies; // operands of calls in turn, so that weights are not in the cache
  double bytes = 0, operations = 0, many = 512e6 / static_cast<double>(bench.shrink * bench.shrink * bench.shrink);
  do {
    std::vector<hone_tensor> operands = {x, kAbsent}, results;
    bytes = operations = 0;
    for (int64_t count : outputs) {
      Weight weight(device, format, count, inputs);
      operands.insert(operands.end(), weight.planes.begin(), weight.planes.end());
      operands.push_back(kAbsent);
      bytes += weight.bytes;
      operations += 2.0 * static_cast<double>(count) * static_cast<double>(inputs);
      if (!isGated || results.empty())
        results.push_back(randomTensor(device, {1, count}, HONE_F32, 4));
    }
    operands.insert(operands.end(), results.begin(), results.end());
    copies.push_back(operands);
  } while (copies.size() < 16 && bytes * static_cast<double>(copies.size()) < many);
  std::vector<int64_t> ints;
  if (isGated)
    ints.push_back(2);
  ints.push_back(0);
  if (format != "bf16")
    ints.insert(ints.end(), {128, 0});
  bench.run(name, bytes, operations, [&](int i) {
    device.call("cuda." + kernel + "." + format, copies[static_cast<size_t>(i) % copies.size()], ints, {0});
  });
  for (std::vector<hone_tensor> &operands : copies)
    release(device, {operands.begin() + 1, operands.end()});
  device.release(x.data);
}

/// Activations are bf16, or f32 as most models have them.
void runLinear(Bench &bench, const std::string &format, int64_t rows, int64_t outputs, int64_t inputs,
               bool isF32 = false) {
  std::string name = "linear." + format + (isF32 ? ".f32." : ".") + std::to_string(rows) + "x" +
                     std::to_string(outputs) + "x" + std::to_string(inputs);
  if (!bench.wants(name))
    return;
  TestDevice &device = bench.device;
  std::vector<Weight> weights = {Weight(device, format, outputs, inputs)};
  double weightBytes = weights[0].bytes;
  double many = 512e6 / static_cast<double>(bench.shrink * bench.shrink * bench.shrink);
  auto copies = static_cast<size_t>(std::clamp(static_cast<int>(many / weightBytes), 1, 16));
  while (weights.size() < copies)
    weights.emplace_back(device, format, outputs, inputs);
  int32_t type = isF32 ? HONE_F32 : HONE_BF16, bytes = isF32 ? 4 : 2;
  hone_tensor x = randomTensor(device, {rows, inputs}, type, bytes),
              y = randomTensor(device, {rows, outputs}, type, bytes);
  std::vector<int64_t> ints = {0};
  bool isSparse = format.starts_with("sparse.");
  std::string kernel = isSparse ? "cuda.sparse_linear." + format.substr(7) : "cuda.linear." + format;
  if (!format.ends_with("bf16"))
    ints.insert(ints.end(), {128, 0});
  bench.run(name, weightBytes + double(bytes) * rows * (inputs + outputs), 2.0 * rows * outputs * inputs, [&](int i) {
    std::vector<hone_tensor> operands = weights[static_cast<size_t>(i) % copies].planes;
    operands.insert(operands.begin(), x);
    operands.insert(operands.end(), {kAbsent, kAbsent, kAbsent, y});
    device.call(kernel, operands, ints, {});
  });
  for (const Weight &weight : weights)
    release(device, weight.planes);
  release(device, {x, y});
}

/// A layer of bf16 by our own kernel, by cuBLASLt as layers call it, and by cuBLASLt directly.
void runMatrices(Bench &bench, int64_t size) {
  runLinear(bench, "bf16", size, size, size);
  TestDevice &device = bench.device;
  std::string name = "cublaslt.bf16." + std::to_string(size);
  if (!bench.wants(name))
    return;
  if (!device.useLibrary(true)) {
    std::fprintf(stderr, "%s: skipped: the machine has no cuBLASLt\n", name.c_str());
    return;
  }
  hone_tensor x = randomTensor(device, {size, size}, HONE_BF16, 2),
              weight = randomTensor(device, {size, size}, HONE_BF16, 2),
              y = randomTensor(device, {size, size}, HONE_BF16, 2);
  double bytes = 6.0 * size * size, operations = 2.0 * size * size * size;
  bench.run(name + ".layer", bytes, operations,
            [&](int) { device.call("cuda.linear.bf16", {x, weight, kAbsent, kAbsent, kAbsent, y}, {0}, {}); });
  const cuda::MatrixProduct product = {x.data, weight.data, nullptr, nullptr, y.data,    size,      size, size,
                                       size,   size,        size,    size,    HONE_BF16, HONE_BF16, 0};
  bench.run(name + ".direct", bytes, operations, [&](int) { device.multiply(product); });
  device.useLibrary(false);
  for (const hone_tensor &tensor : {x, weight, y})
    device.release(tensor.data);
}

/// 32 query and 8 KV heads of 128 elements of bf16, causal.
void runAttention(Bench &bench, int64_t queries, int64_t keys) {
  std::string name = "attention.bf16." + std::to_string(queries) + "x" + std::to_string(keys);
  if (!bench.wants(name))
    return;
  TestDevice &device = bench.device;
  hone_tensor query = randomTensor(device, {1, 32, queries, 128}, HONE_BF16, 2),
              out = randomTensor(device, {1, 32, queries, 128}, HONE_BF16, 2);
  hone_tensor key = randomTensor(device, {1, 8, keys, 128}, HONE_BF16, 2),
              value = randomTensor(device, {1, 8, keys, 128}, HONE_BF16, 2);
  double pairs = static_cast<double>(queries) * (keys - (queries - 1) / 2.0);
  bench.run(name, 2.0 * 2 * 8 * keys * 128 + 2.0 * 2 * 32 * queries * 128, 32 * pairs * 128 * 4, [&](int) {
    kernels::TailAttention::Operands<kernels::NoWeight> operands = {};
    operands.query = query, operands.key = key, operands.value = value, operands.out = out;
    device.call("cuda.attention.f32", std::vector<hone_tensor>(&operands.query, &operands.out + 1), {1, -1, 0, 0, 0},
                {0.088388, 0});
  });
  for (const hone_tensor &tensor : {query, out, key, value})
    device.release(tensor.data);
}

/// The gated delta rule with 32 heads of 128 by 128, activations of bf16. Calls of a token alternate between states.
void runLinearAttention(Bench &bench, int64_t sequences, int64_t tokens) {
  std::string name = "linear_attention.bf16." + std::to_string(sequences) + "x" + std::to_string(tokens);
  if (!bench.wants(name))
    return;
  TestDevice &device = bench.device;
  constexpr int64_t kHeads = 32, kSize = 128;
  auto rows = [&](int64_t size) { return randomTensor(device, {sequences, tokens, kHeads, size}, HONE_BF16, 2); };
  hone_tensor query = rows(kSize), key = rows(kSize), value = rows(kSize), decay = rows(1), out = rows(kSize),
              beta = randomTensor(device, {sequences, tokens, kHeads}, HONE_BF16, 2);
  double stateBytes = 4.0 * sequences * kHeads * kSize * kSize, count = 1.0 * sequences * tokens * kHeads;
  auto copies = static_cast<size_t>(std::clamp(static_cast<int>(512e6 / bench.shrink / stateBytes), 1, 64));
  std::vector<hone_tensor> states;
  for (size_t i = 0; i < copies; ++i)
    states.push_back(randomTensor(device, {sequences, kHeads, kSize, kSize}, HONE_F32, 4));
  bench.run(name, 2 * stateBytes + count * (4 * kSize + 2) * 2, 8 * count * kSize * kSize, [&](int i) {
    const hone_tensor &state = states[static_cast<size_t>(i) % copies];
    device.call("cuda.linear_attention.f32", {query, key, value, decay, beta, state, out, state}, {}, {0.088388});
  });
  states.insert(states.end(), {query, key, value, decay, beta, out});
  for (const hone_tensor &tensor : states)
    device.release(tensor.data);
}

/// 32 query and 8 KV heads of 128 elements, whose queries select 16 of so many blocks of 64 keys.
void runSelectBlocks(Bench &bench, int64_t queries, int64_t blocks) {
  std::string name = "select_blocks.bf16." + std::to_string(queries) + "x" + std::to_string(blocks);
  if (!bench.wants(name))
    return;
  TestDevice &device = bench.device;
  constexpr int64_t kBlockKeys = 64;
  hone_tensor query = randomTensor(device, {1, 32, queries, 128}, HONE_BF16, 2),
              pooled = randomTensor(device, {1, 8, (blocks + 1) * kBlockKeys, 2}, HONE_F32, 4),
              lists = randomTensor(device, {1, 8, queries, 16}, HONE_I64, 8);
  auto boundOf = [&](int64_t block) {
    hone_tensor bound = randomTensor(device, {1, queries}, HONE_I64, 8);
    std::vector<int64_t> values(static_cast<size_t>(queries), block);
    fill(device, bound, values.data(), values.size() * sizeof(int64_t));
    return bound;
  };
  hone_tensor begin = boundOf(0), end = boundOf(blocks);
  bench.run(name, 4.0 * 8 * blocks * 128, 2.0 * 32 * queries * blocks * 128, [&](int) {
    device.call("cuda.select_blocks.f32", {query, pooled, begin, end, lists}, {kBlockKeys}, {0.088388});
  });
  for (const hone_tensor &tensor : {query, pooled, lists, begin, end})
    device.release(tensor.data);
}

void runNorm(Bench &bench, int64_t rows, int64_t count) {
  std::string name = "rms_norm.bf16." + std::to_string(rows) + "x" + std::to_string(count);
  if (!bench.wants(name))
    return;
  hone_tensor x = randomTensor(bench.device, {rows, count}, HONE_BF16, 2),
              y = randomTensor(bench.device, {rows, count}, HONE_BF16, 2);
  hone_tensor weight = randomTensor(bench.device, {count}, HONE_BF16, 2);
  bench.run(name, 4.0 * rows * count, 4.0 * rows * count,
            [&](int) { bench.device.call("cuda.rms_norm.f32", {x, weight, y}, {0}, {1e-5}); });
  for (const hone_tensor &tensor : {x, y, weight})
    bench.device.release(tensor.data);
}

/// The products of queries and keys, and of their probabilities and values, in the gradient of attention: matrices of `positions` rows.
void runProducts(Bench &bench, int64_t matrices, int64_t positions, int64_t headSize) {
  std::string name =
      "matmul.f32." + std::to_string(matrices) + "x" + std::to_string(positions) + "x" + std::to_string(headSize);
  if (!bench.wants(name))
    return;
  hone_tensor x = randomTensor(bench.device, {matrices, positions, headSize}, HONE_F32, 4),
              y = randomTensor(bench.device, {matrices, positions, headSize}, HONE_F32, 4),
              logits = randomTensor(bench.device, {matrices, positions, positions}, HONE_F32, 4);
  hone_tensor transposed = y;
  std::swap(transposed.sizes[1], transposed.sizes[2]);
  std::swap(transposed.strides[1], transposed.strides[2]);
  double elements = static_cast<double>(matrices * positions),
         operations = 2.0 * elements * static_cast<double>(positions * headSize);
  double bytes = 4 * elements * static_cast<double>(2 * headSize + positions);
  bench.run(name + ".logits", bytes, operations,
            [&](int) { bench.device.call("cuda.matmul.f32", {x, transposed, logits}, {}, {}); });
  bench.run(name + ".values", bytes, operations,
            [&](int) { bench.device.call("cuda.matmul.f32", {logits, x, y}, {}, {}); });
  for (const hone_tensor &tensor : {x, y, logits})
    bench.device.release(tensor.data);
}

/// The peak read bandwidth: gibibytes, by threads with 128 bytes in flight each.
void runMemory(Bench &bench) {
  std::string name = "memory.read";
  if (!bench.wants(name))
    return;
  TestDevice &device = bench.device;
  constexpr int64_t kMostBytes = int64_t{2} << 30;
  constexpr uint32_t kThreads = 256, kBlocksOfMultiprocessor = 8;
  int64_t bytes = kMostBytes / (bench.shrink * bench.shrink * bench.shrink);
  void *memory = device.acquire(static_cast<uint64_t>(bytes)), *sum = device.acquire(sizeof(uint32_t));
  long long count = bytes / 16;
  void *arguments[] = {&memory, &count, &sum};
  uint32_t blocks = static_cast<uint32_t>(device.limits().multiprocessors) * kBlocksOfMultiprocessor;
  bench.run(name, static_cast<double>(bytes), 0, [&](int) {
    device.launch(kReadMemoryPtx, "read_memory", {{blocks, 1, 1}, {kThreads, 1, 1}, 0}, arguments);
  });
  device.release(memory), device.release(sum);
}

void runAll(Bench &bench) {
  auto size = [&](int64_t full) { return full / bench.shrink; };
  runMemory(bench);
  for (const char *format : {"bf16", "affine8", "affine6", "affine5", "affine4", "affine3", "affine2",
                             "outliers.affine4", "outliers.affine3", "sparse.bf16", "sparse.affine8", "sparse.affine4"})
    for (int64_t rows : {1, 4, 16}) {
      runLinear(bench, format, rows, size(4096), size(14336));
      runLinear(bench, format, rows, size(14336), size(4096));
      runLinear(bench, format, rows, size(1024), size(4096));
    }
  // The layers of decoders of 0.5B and 8B.
  for (const char *format : {"bf16", "affine4"}) {
    runLayers(bench, "sibling_linear", format, {size(896), size(128), size(128)}, size(896));
    runLayers(bench, "gated_linear", format, {size(4864), size(4864)}, size(896));
    runLayers(bench, "sibling_linear", format, {size(4096), size(1024), size(1024)}, size(4096));
    runLayers(bench, "gated_linear", format, {size(14336), size(14336)}, size(4096));
    for (int64_t outputs : {896, 4864})
      runLinear(bench, format, 1, size(outputs), size(896), true);
    runLinear(bench, format, 1, size(896), size(4864), true);
    for (int64_t outputs : {1024, 4096, 14336})
      runLinear(bench, format, 1, size(outputs), size(4096), true);
    runLinear(bench, format, 1, size(4096), size(14336), true);
  }
  for (int64_t side : {size(4096), size(8192)}) {
    runMatrices(bench, side);
    runLinear(bench, "sparse.bf16", side, side, side);
  }
  for (const char *format : {"affine4", "outliers.affine4", "sparse.affine4"}) {
    runLinear(bench, format, 1, size(8192), size(8192));
    runLinear(bench, format, size(2048), size(4096), size(4096));
  }
  runAttention(bench, 1, size(4096));
  runAttention(bench, 1, size(65536));
  runAttention(bench, size(8192), size(8192));
  runLinearAttention(bench, 1, 1);
  runLinearAttention(bench, 16, 1);
  runLinearAttention(bench, 1, size(8192));
  runSelectBlocks(bench, 1, size(2048));
  runSelectBlocks(bench, size(4096), size(1024));
  runProducts(bench, size(128), size(512), 64);
  runNorm(bench, 1, size(4096));
  runNorm(bench, size(8192), size(4096));
  runMemory(bench); // again, as clocks change
}

int run(const char *filter, bool isSmall) {
  setenv("HONE_TEST_CUDA_DRIVER", "libcuda.so.1", 0);
  std::string reason;
  TestDevice *device = TestDevice::get(reason);
  if (!device) {
    std::fprintf(stderr, "hone-cuda-benchmarks: %s\n", reason.c_str());
    return 1;
  }
  Bench bench = {*device, filter, isSmall ? 16 : 1};
  runAll(bench);
  return 0;
}

} // namespace
} // namespace hone::benchmarks

int main(int argc, char **argv) {
  bool isSmall = argc > 1 && std::strcmp(argv[1], "--small") == 0;
  return hone::benchmarks::run(argc > 1 + isSmall ? argv[1 + isSmall] : "", isSmall);
}
