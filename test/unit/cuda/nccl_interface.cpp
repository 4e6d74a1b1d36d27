// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The runtime's declarations of NCCL against NCCL's own header: compiled where there is one, and never run. Functions
// agree where their parameters and results are passed alike, and constants where their values are equal.

#include "cuda/ranks/nccl_types.h"

#include <nccl.h>
#include <type_traits>

namespace {

/// Pointers are passed as each other, and integers and enumerations of one size; all else has its size.
template <typename Type>
constexpr int passed = std::is_pointer_v<Type>                            ? 1
                       : std::is_integral_v<Type> || std::is_enum_v<Type> ? 2 + int{sizeof(Type)}
                                                                          : 256 + int{sizeof(Type)};

template <typename Theirs, typename Ours> constexpr bool isSame = false;
template <typename A, typename... As, typename B, typename... Bs>
  requires(sizeof...(As) == sizeof...(Bs))
constexpr bool isSame<A(As...), B (*)(Bs...)> = (passed<A> == passed<B>) && (... && (passed<As> == passed<Bs>));

namespace ours {
using namespace hone::rt::cuda;
using hone::rt::cuda::ncclComm_t, hone::rt::cuda::ncclDataType_t, hone::rt::cuda::ncclRedOp_t,
    hone::rt::cuda::ncclResult_t, hone::rt::cuda::ncclUniqueId;
struct Functions {
#define HONE_NCCL_FUNCTION(result, name, parameters) result(*name) parameters;
#include "cuda/ranks/nccl_functions.def"
#undef HONE_NCCL_FUNCTION
};
} // namespace ours

#define HONE_NCCL_FUNCTION(result, name, parameters)                                                                   \
  static_assert(isSame<decltype(::name), decltype(ours::Functions::name)>);
#include "cuda/ranks/nccl_functions.def"
#undef HONE_NCCL_FUNCTION

static_assert(int{::ncclSuccess} == int{ours::ncclSuccess} && int{::ncclInProgress} == int{ours::ncclInProgress});
static_assert(int{::ncclSum} == int{ours::ncclSum});
static_assert(int{::ncclInt8} == int{ours::ncclInt8} && int{::ncclFloat32} == int{ours::ncclFloat32});
static_assert(sizeof(::ncclUniqueId) == sizeof(ours::ncclUniqueId));

} // namespace
