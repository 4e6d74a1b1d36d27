// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The `hrt` dialect: what the machine does. Its operations are the services and kernels of the runtime
// (include/hone/runtime/program.h); they take tensors until bufferization and memrefs after it.

#ifndef HRT_OPS_TD
#define HRT_OPS_TD

include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "Hrt/HrtDialect.td"
include "Hrt/HrtEncodings.td"

def Hrt_CallType : TypeDef<Hrt_Dialect, "Call"> {
  let mnemonic = "call";
  let summary = "one call of an entry point (hone_call)";
}

class Hrt_Op<string mnemonic, list<Trait> traits = []> : Op<Hrt_Dialect, mnemonic, traits>;

def Hrt_Buffer : AnyTypeOf<[AnyRankedTensor, AnyStridedMemRef]>;

def Hrt_InputOp : Hrt_Op<"input", [Pure]> {
  let summary = "an input of the call";
  let description = [{
    *Meaning.* Memory of input number `index`, dense and row-major; the runtime has checked its type and fixed sizes. A result in
    the memory of the device is the input there.

    *Example.* `%0 = hrt.input %call[0] : memref<?x4xf32>`
  }];
  let arguments = (ins Hrt_CallType:$call, I64Attr:$index);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = "$call `[` $index `]` attr-dict `:` type($result)";
}

def Hrt_OutputOp : Hrt_Op<"output", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "memory for an output of the call";
  let description = [{
    *Meaning.* Asks the caller for memory of output number `index` with the run-time `sizes`, one for each dynamic dimension
    of the result, dense and row-major: in the memory that the result's type says. Each output is asked for once.

    *Example.* `%0 = hrt.output %call[0](%n) : memref<?x4xf32>`
  }];
  let arguments = (ins Hrt_CallType:$call, I64Attr:$index, Variadic<Index>:$sizes);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = "$call `[` $index `]` `(` $sizes `)` attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Hrt_WeightOp : Hrt_Op<"weight", [Pure]> {
  let summary = "the mapped bytes of a parameter";
  let description = [{
    *Meaning.* Memory at `offset` bytes into the tensor data of weights.safetensors: a view of a parameter's planes, on the host or on
    the device. Its first axis may be strided.

    *Example.* `%0 = hrt.weight %call[4096] : memref<8x4xf32>`
  }];
  let arguments = (ins Hrt_CallType:$call, I64Attr:$offset);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = "$call `[` $offset `]` attr-dict `:` type($result)";
}

def Hrt_KernelOp : Hrt_Op<"kernel", [AttrSizedOperandSegments, DestinationStyleOpInterface,
                                     DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "a call of a kernel of the runtime";
  let description = [{
    *Meaning.* Calls the kernel `name` with the inputs, then the outputs, as its operands, and `ints` and `floats` as its
    attributes; the loader picks the variant for the machine. The kernel overwrites its outputs and reads nothing of them,
    but for one whose integer `accumulates` is not 0, which adds to them. Outputs that are tensors come before those that are memory.

    *Example.*
    ```mlir
    func.func @matmul(%call: !hrt.call, %a: tensor<?x4xf32>, %b: tensor<4x8xf32>, %init: tensor<?x8xf32>)
        -> tensor<?x8xf32> {
      %y = hrt.kernel "hone.matmul.f32" %call ints [0] ins(%a, %b : tensor<?x4xf32>, tensor<4x8xf32>)
          outs(%init : tensor<?x8xf32>) -> tensor<?x8xf32>
      return %y : tensor<?x8xf32>
    }
    ```
  }];
  let arguments = (ins Hrt_CallType:$call, StrAttr:$name, Variadic<Hrt_Buffer>:$inputs, Variadic<Hrt_Buffer>:$outputs,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$ints, DefaultValuedAttr<DenseF64ArrayAttr, "{}">:$floats);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $name $call (`ints` $ints^)? (`floats` $floats^)? `ins` `(` ($inputs^ `:` type($inputs))? `)`
    `outs` `(` $outputs `:` type($outputs) `)` attr-dict (`->` type($results)^)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getOutputsMutable(); }
    /// Whether the kernel adds to its outputs, and does not overwrite them.
    bool accumulates();
  }];
}

class Hrt_StateOp<string mnemonic> : Hrt_Op<mnemonic, [MemoryEffects<[MemRead, MemWrite]>]>;

def Hrt_StateAppendOp : Hrt_StateOp<"state_append"> {
  let summary = "extends a slot of the session's state";
  let description = [{
    *Meaning.* Appends `fresh` to slot number `slot` along its axis; the result views all that the slot then holds.

    *Example.* `%all = hrt.state_append %call[0], %fresh : tensor<1x4x?x32xf32> -> tensor<1x4x?x32xf32>`
  }];
  let arguments = (ins Hrt_CallType:$call, I64Attr:$slot, Hrt_Buffer:$fresh);
  let results = (outs Hrt_Buffer:$all);
  let assemblyFormat = "$call `[` $slot `]` `,` $fresh attr-dict `:` type($fresh) `->` type($all)";
}

def Hrt_StateViewOp : Hrt_StateOp<"state_view"> {
  let summary = "what a slot of the session's state holds";
  let description = [{
    *Meaning.* Views slot number `slot` as it is: with what this call has appended so far.

    *Example.* `%past = hrt.state_view %call[0] : tensor<1x4x?x32xf32>`
  }];
  let arguments = (ins Hrt_CallType:$call, I64Attr:$slot);
  let results = (outs Hrt_Buffer:$all);
  let assemblyFormat = "$call `[` $slot `]` attr-dict `:` type($all)";
}

def Hrt_StateUpdateOp : Hrt_StateOp<"state_update"> {
  let summary = "what a slot of the session's state holds, to be written there";
  let description = [{
    *Meaning.* Views slot number `slot`, which does not grow, as `hrt.state_view` does, dense and in memory of its own that the program may
    write. What is written counts without `hrt.state_append`.

    *Example.* `%moment = hrt.state_update %call[0] : tensor<64x32xf32>`
  }];
  let arguments = (ins Hrt_CallType:$call, I64Attr:$slot);
  let results = (outs Hrt_Buffer:$all);
  let assemblyFormat = "$call `[` $slot `]` attr-dict `:` type($all)";
}

def Hrt_StateExtendOp : Hrt_Op<"state_extend", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "room for fresh positions of a slot of the session's state";
  let description = [{
    *Meaning.* Extends slot number `slot` along its axis and views the positions that are new, of the run-time `sizes`, one for each
    dynamic dimension of the result. Whoever asks writes all of them before anything reads the slot. On a device only.

    *Example.* `%room = hrt.state_extend %call[0](%n) : memref<1x4x?x32xf32, strided<[?, ?, ?, ?], offset: ?>>`
  }];
  let arguments = (ins Hrt_CallType:$call, I64Attr:$slot, Variadic<Index>:$sizes);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = "$call `[` $slot `]` `(` $sizes `)` attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Hrt_StateLengthOp : Hrt_Op<"state_length", [Pure]> {
  let summary = "positions that the longest sequence of the session holds before this call";
  let arguments = (ins Hrt_CallType:$call);
  let results = (outs Index:$result);
  let assemblyFormat = "$call attr-dict";
}

def Hrt_StateLagOp : Hrt_Op<"state_lag", [Pure]> {
  let summary = "positions that a sequence holds fewer than the longest before this call";
  let arguments = (ins Hrt_CallType:$call, Index:$sequence);
  let results = (outs Index:$result);
  let assemblyFormat = "$call `[` $sequence `]` attr-dict";
}

def Hrt_StatePaddingOp : Hrt_Op<"state_padding", [Pure]> {
  let summary = "positions at the left of a sequence that are padding";
  let arguments = (ins Hrt_CallType:$call, Index:$sequence);
  let results = (outs Index:$result);
  let assemblyFormat = "$call `[` $sequence `]` attr-dict";
}

def Hrt_LogitsToKeepOp : Hrt_Op<"logits_to_keep", [Pure]> {
  let summary = "of how many of the last of `fresh` positions logits are computed";
  let arguments = (ins Hrt_CallType:$call, Index:$fresh);
  let results = (outs Index:$result);
  let assemblyFormat = "$call `of` $fresh attr-dict";
}

def Hrt_ObserveOp : Hrt_Op<"observe", [MemoryEffects<[MemWrite]>]> {
  let summary = "shows rows to the observer of the call";
  let description = [{
    *Meaning.* Hands the rows of `values`, which end with its last dimension, to the call's observer under the number `site`;
    nothing where it has none.

    *Example.* `hrt.observe %call[3], %x : tensor<1x?x896xf32>`
  }];
  let arguments = (ins Hrt_CallType:$call, I64Attr:$site, Arg<Hrt_Buffer, "rows", [MemRead]>:$values);
  let assemblyFormat = "$call `[` $site `]` `,` $values attr-dict `:` type($values)";
}

def Hrt_CheckOp : Hrt_Op<"check", [MemoryEffects<[MemWrite]>]> {
  let summary = "ends the call unless a condition holds";
  let description = [{
    *Meaning.* Nothing where `condition` is true, else the call ends with `message`, whose last `{}` stand for `values`.

    *Constraints.* C1: `message` has a `{}` for each of `values`. C2: not inside a parallel loop.

    *Example.* `hrt.check %fits, "expected at least 3 rows, but got {}"(%rows)`
  }];
  let arguments = (ins I1:$condition, StrAttr:$message, Variadic<Index>:$values);
  let assemblyFormat = "$condition `,` $message (`(` $values^ `)`)? attr-dict";
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def Hrt_ArenaOp : Hrt_Op<"arena", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "the memory of a call, in slots";
  let description = [{
    *Meaning.* One slot of uninitialised memory for each of `bytes`, each at a multiple of 64 bytes and apart from the others,
    until the call ends. The runtime keeps what it takes for the calls that follow. Asked for once in a call, and once more for the
    memory of the device.

    *Constraints.* C1: as many slots as sizes. C2: all slots in one memory.

    *Example.* `%slots:2 = hrt.arena %call(%a, %b) : memref<?xi8>, memref<?xi8>`
  }];
  let arguments = (ins Hrt_CallType:$call, Variadic<Index>:$bytes);
  let results = (outs Variadic<MemRefRankOf<[I8], [1]>>:$slots);
  let assemblyFormat = "$call `(` $bytes `)` attr-dict `:` type($slots)";
  let hasVerifier = 1;
}

def Hrt_ParallelOp : Hrt_Op<"parallel", [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
                                         MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "a function over all positions of a range, on several threads where that pays";
  let description = [{
    *Meaning.* Calls `body(begin, end, captures...)` for ranges that together are `[0, count)`, in any order and at once; the
    runtime splits it by `count · cost`, where `cost` is the work of one position in operations on scalars. No call for an
    empty range.

    *Constraints.* C1: `body` is a function `(index, index, captures...) -> ()`.

    *Example.* `hrt.parallel @body of %count cost %cost(%x, %y : memref<?xf32>, memref<?xf32>)`
  }];
  let arguments = (ins FlatSymbolRefAttr:$body, Index:$count, Index:$cost, Variadic<AnyType>:$captures);
  let assemblyFormat = "$body `of` $count `cost` $cost `(` ($captures^ `:` type($captures))? `)` attr-dict";
}

//===- Memory of a device -----------------------------------------------------------------------------------------===//
// Memrefs with the memory space #gpu.address_space<global> lie on the device, those without one on the host.

class Hrt_TransferOp<string mnemonic> : Hrt_Op<mnemonic, [DestinationStyleOpInterface,
                                                          DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let arguments = (ins Hrt_CallType:$call, Hrt_Buffer:$source, Hrt_Buffer:$target);
  let results = (outs Optional<AnyRankedTensor>:$result);
  let assemblyFormat = [{
    $call `,` $source `into` $target attr-dict `:` type($source) `into` type($target) (`->` type($result)^)?
  }];
  let extraClassDeclaration = [{
    ::mlir::MutableOperandRange getDpsInitsMutable() { return getTargetMutable(); }
  }];
}

def Hrt_FetchOp : Hrt_TransferOp<"fetch"> {
  let summary = "brings elements from the device to the host";
  let description = [{
    *Meaning.* Waits for all that was enqueued, and copies `source`, on the device, into `target`, on the host; both contiguous.

    *Example.* `%h = hrt.fetch %call, %d into %init : tensor<4xi64> into tensor<4xi64> -> tensor<4xi64>`
  }];
}

def Hrt_UploadOp : Hrt_TransferOp<"upload"> {
  let summary = "brings elements from the host to the device";
  let description = [{
    *Meaning.* Enqueues a copy of what `source`, on the host, holds now, into `target`, on the device; both contiguous.

    *Example.* `%d = hrt.upload %call, %h into %init : tensor<4xi64> into tensor<4xi64> -> tensor<4xi64>`
  }];
}

def Hrt_CopyOp : Hrt_TransferOp<"copy"> {
  let summary = "copies elements on the device";
  let description = [{
    *Meaning.* Enqueues a copy of `source` into `target`; both on the device, contiguous, and apart from each other.

    *Example.*
    ```mlir
    #device = #gpu.address_space<global>
    func.func @copy(%call: !hrt.call, %a: memref<4xf32, #device>, %b: memref<4xf32, #device>) {
      hrt.copy %call, %a into %b : memref<4xf32, #device> into memref<4xf32, #device>
      return
    }
    ```
  }];
}

def Hrt_AllocOp : Hrt_Op<"alloc", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "memory of the device";
  let description = [{
    *Meaning.* Uninitialised memory of the device, until it is freed or the call ends, with one of `sizes` for each dynamic
    dimension.

    *Example.* `%0 = hrt.alloc %call(%n) : memref<?x4xf32, #gpu.address_space<global>>`
  }];
  let arguments = (ins Hrt_CallType:$call, Variadic<Index>:$sizes);
  let results = (outs AnyMemRef:$result);
  let assemblyFormat = "$call `(` $sizes `)` attr-dict `:` type($result)";
}

def Hrt_FreeOp : Hrt_Op<"free", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "gives memory of the device back, for what is enqueued later";
  let arguments = (ins Hrt_CallType:$call, AnyMemRef:$memory);
  let assemblyFormat = "$call `,` $memory attr-dict `:` type($memory)";
}

def Hrt_LaunchOp : Hrt_Op<"launch", [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
                                     MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "enqueues a generated kernel";
  let description = [{
    *Meaning.* Enqueues `kernel` with `blocks` blocks of `threads` threads each; nothing where `blocks` is 0.

    *Constraints.* C1: `kernel` is a `gpu.func` of the device's module that takes `arguments`.

    *Example.* `hrt.launch @device::@main_kernel_0 %call blocks %n threads 256 (%x : memref<?xf32, #gpu.address_space<global>>)`
  }];
  let arguments = (ins SymbolRefAttr:$kernel, Hrt_CallType:$call, Index:$blocks, I64Attr:$threads,
                       Variadic<AnyType>:$arguments);
  let assemblyFormat = [{
    $kernel $call `blocks` $blocks `threads` $threads `(` ($arguments^ `:` type($arguments))? `)` attr-dict
  }];
}

#endif // HRT_OPS_TD
