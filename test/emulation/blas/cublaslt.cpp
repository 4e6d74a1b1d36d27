// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A libcublasLt.so.13 that computes on the emulated driver, with as much of the interface as Hone calls, under the names and with the
// numbers of NVIDIA's documentation. It launches kernels of its own through the driver, so that it takes part in streams, recordings and
// the driver's checks of memory. What a caller may get wrong it refuses: descriptions that do not fit each other, pointers that are not
// aligned as was promised, a workspace that is too small, combinations that the library does not have.

#include "process_driver.h"
#include "product.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>

#define HONE_CUBLASLT_API extern "C" __attribute__((visibility("default")))

namespace {

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wc23-extensions"
constexpr char kPtx[] = {
#embed HONE_BLAS_PTX
    , 0};
#pragma clang diagnostic pop

enum Status : int { kSuccess = 0, kNotInitialized = 1, kInvalidValue = 7, kExecutionFailed = 13, kNotSupported = 15 };
enum : int { kF32 = 0, kF16 = 2, kBf16 = 14 };
enum : uint32_t { kRelu = 2, kBias = 4, kGelu = 32 };

struct Driver {
  int (*cuModuleLoadData)(void **, const void *);
  int (*cuModuleGetFunction)(void **, void *, const char *);
  int (*cuLaunchKernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                        void **);
};

const Driver *findDriver() {
  return hone::emulation::findDriver<Driver>([](Driver &driver, hone::rt::cuda::FunctionFinder &functions) {
    functions.find(driver.cuModuleLoadData, "cuModuleLoadData");
    functions.find(driver.cuModuleGetFunction, "cuModuleGetFunction");
    functions.find(driver.cuLaunchKernel, "cuLaunchKernel");
  });
}

struct Context {
  void *product, *epilogue; // functions
};

struct Layout {
  int type;
  uint64_t rows, columns;
  int64_t stride;
};

struct Description {
  int32_t transposedA = 0;
  uint32_t epilogue = 1;
  const void *bias = nullptr;
  int32_t biasType = -1; // that of d
};

struct Preference {
  uint64_t workspaceBytes = 0;
  uint32_t alignments[4] = {256, 256, 256, 256}; // of a, b, c and d
};

/// What is in the eight words of an algorithm.
struct Algorithm {
  uint64_t name, workspaceBytes;
  uint32_t alignments[4];
  uint64_t m, n, k, rest[1];
};
static_assert(sizeof(Algorithm) == 64);
constexpr uint64_t kName = 0x686f6e65;

struct HeuristicResult {
  Algorithm algorithm;
  size_t workspaceSize;
  int state;
  float wavesCount;
  int reserved[4];
};

bool isAligned(const void *memory, uint32_t bytes) { return reinterpret_cast<uintptr_t>(memory) % bytes == 0; }

/// What the library's table of types and epilogues has, and whether sizes are those of one product.
int check(const Description &d, const Layout &a, const Layout &b, const Layout &c, const Layout &y) {
  bool areTypes = (a.type == kF16 || a.type == kBf16) && b.type == a.type && c.type == y.type &&
                  (y.type == kF32 || y.type == a.type);
  bool isEpilogue = d.epilogue == 1 || (d.epilogue & ~(kRelu | kBias | kGelu)) == 0;
  bool isBias = d.epilogue == 1 || !(d.epilogue & kBias) || (d.bias && (d.biasType == -1 || d.biasType == y.type));
  if (!areTypes || !isEpilogue || !isBias || !d.transposedA)
    return kNotSupported;
  bool fits =
      a.rows == b.rows && y.rows == a.columns && y.columns == b.columns && c.rows == y.rows && c.columns == y.columns;
  return fits ? kSuccess : kInvalidValue;
}

template <typename Value> bool read(Value &to, const void *value, size_t bytes) {
  if (bytes != sizeof to)
    return false;
  std::memcpy(&to, value, bytes);
  return true;
}

} // namespace

HONE_CUBLASLT_API size_t cublasLtGetVersion() { return 130000; }

HONE_CUBLASLT_API const char *cublasLtGetStatusName(int status) {
  switch (status) {
  case kSuccess:
    return "CUBLAS_STATUS_SUCCESS";
  case kInvalidValue:
    return "CUBLAS_STATUS_INVALID_VALUE";
  case kExecutionFailed:
    return "CUBLAS_STATUS_EXECUTION_FAILED";
  case kNotSupported:
    return "CUBLAS_STATUS_NOT_SUPPORTED";
  default:
    return "unknown status";
  }
}

HONE_CUBLASLT_API int cublasLtCreate(Context **handle) {
  const Driver *driver = findDriver();
  void *module = nullptr;
  auto context = new Context();
  if (driver && driver->cuModuleLoadData(&module, kPtx) == 0 &&
      driver->cuModuleGetFunction(&context->product, module, "emulated_product") == 0 &&
      driver->cuModuleGetFunction(&context->epilogue, module, "emulated_epilogue") == 0) {
    *handle = context;
    return kSuccess;
  }
  delete context;
  return kNotInitialized;
}

HONE_CUBLASLT_API int cublasLtDestroy(Context *handle) {
  delete handle;
  return kSuccess;
}

HONE_CUBLASLT_API int cublasLtMatmulDescCreate(Description **description, int computeType, int scaleType) {
  if (computeType != 68 || scaleType != kF32)
    return kNotSupported;
  *description = new Description();
  return kSuccess;
}

HONE_CUBLASLT_API int cublasLtMatmulDescDestroy(Description *description) {
  delete description;
  return kSuccess;
}

HONE_CUBLASLT_API int cublasLtMatmulDescSetAttribute(Description *d, int attribute, const void *value, size_t bytes) {
  bool isRead = attribute == 3    ? read(d->transposedA, value, bytes)
                : attribute == 7  ? read(d->epilogue, value, bytes)
                : attribute == 8  ? read(d->bias, value, bytes)
                : attribute == 26 ? read(d->biasType, value, bytes)
                                  : false;
  return isRead ? kSuccess : kInvalidValue;
}

HONE_CUBLASLT_API int cublasLtMatrixLayoutCreate(Layout **layout, int type, uint64_t rows, uint64_t columns,
                                                 int64_t stride) {
  if (stride < static_cast<int64_t>(rows))
    return kInvalidValue;
  *layout = new Layout{type, rows, columns, stride};
  return kSuccess;
}

HONE_CUBLASLT_API int cublasLtMatrixLayoutDestroy(Layout *layout) {
  delete layout;
  return kSuccess;
}

HONE_CUBLASLT_API int cublasLtMatmulPreferenceCreate(Preference **preference) {
  *preference = new Preference();
  return kSuccess;
}

HONE_CUBLASLT_API int cublasLtMatmulPreferenceDestroy(Preference *preference) {
  delete preference;
  return kSuccess;
}

HONE_CUBLASLT_API int cublasLtMatmulPreferenceSetAttribute(Preference *preference, int attribute, const void *value,
                                                           size_t bytes) {
  bool isRead = attribute == 1                     ? read(preference->workspaceBytes, value, bytes)
                : attribute >= 5 && attribute <= 8 ? read(preference->alignments[attribute - 5], value, bytes)
                                                   : false;
  return isRead ? kSuccess : kInvalidValue;
}

HONE_CUBLASLT_API int cublasLtMatmulAlgoGetHeuristic(Context *, const Description *d, const Layout *a, const Layout *b,
                                                     const Layout *c, const Layout *y, const Preference *preference,
                                                     int wanted, HeuristicResult *results, int *found) {
  *found = 0;
  if (int status = check(*d, *a, *b, *c, *y); status != kSuccess || wanted < 1)
    return status == kSuccess ? kInvalidValue : status;
  uint64_t bytes = 4 * y->rows * y->columns;
  // Tensor cores read rows at multiples of 16 bytes.
  bool isFast =
      preference->alignments[0] >= 16 && preference->alignments[1] >= 16 && a->stride % 8 == 0 && b->stride % 8 == 0;
  if (!isFast || bytes > preference->workspaceBytes)
    return kNotSupported;
  Algorithm algorithm = {kName, bytes, {}, y->rows, y->columns, a->rows, {}};
  std::memcpy(algorithm.alignments, preference->alignments, sizeof algorithm.alignments);
  results[0] = {algorithm, bytes, kSuccess, 1, {}};
  *found = 1;
  return kSuccess;
}

HONE_CUBLASLT_API int cublasLtMatmul(Context *handle, const Description *d, const float *alpha, const void *aData,
                                     const Layout *a, const void *bData, const Layout *b, const float *beta,
                                     const void *cData, const Layout *c, void *yData, const Layout *y,
                                     const Algorithm *algorithm, void *workspace, size_t workspaceBytes, void *stream) {
  if (int status = check(*d, *a, *b, *c, *y); status != kSuccess)
    return status;
  const uint32_t *alignments = algorithm->alignments;
  bool isOfShape =
      algorithm->name == kName && algorithm->m == y->rows && algorithm->n == y->columns && algorithm->k == a->rows;
  bool isInPlace = cData == yData && c->stride != y->stride;
  if (!isOfShape || isInPlace || workspaceBytes < algorithm->workspaceBytes || !isAligned(workspace, 256) ||
      !isAligned(aData, alignments[0]) || !isAligned(bData, alignments[1]) || !isAligned(cData, alignments[2]) ||
      !isAligned(yData, alignments[3]))
    return kInvalidValue;
  Product product = {static_cast<const char *>(aData),
                     static_cast<const char *>(bData),
                     static_cast<const char *>(cData),
                     static_cast<const char *>(d->bias),
                     static_cast<char *>(yData),
                     static_cast<float *>(workspace),
                     static_cast<long long>(y->rows),
                     static_cast<long long>(y->columns),
                     static_cast<long long>(a->rows),
                     a->stride,
                     b->stride,
                     c->stride,
                     y->stride,
                     a->type,
                     y->type,
                     d->epilogue == 1 ? 0 : static_cast<int>(d->epilogue),
                     *alpha,
                     *beta};
  void *arguments[] = {&product};
  auto blocks = static_cast<unsigned>((product.m * product.n + 255) / 256);
  for (void *function : {handle->product, handle->epilogue})
    if (findDriver()->cuLaunchKernel(function, blocks, 1, 1, 256, 1, 1, 0, stream, arguments, nullptr) != 0)
      return kExecutionFailed;
  return kSuccess;
}
