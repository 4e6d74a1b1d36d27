// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The C interface of libhone_rt: loading artefacts, calling them, sessions, generation. docs/runtime-c-api.md explains it
// with an example.
//
// Every function that can fail returns a hone_status; the message of the last failure in a thread is hone_last_error().
// Structs whose first member is `struct_size` grow at the end: the caller sets it to sizeof, and members beyond it keep
// their defaults. Strings are UTF-8. A null pointer where a value is needed is HONE_INVALID, never a crash.

#ifndef HONE_RUNTIME_HONE_H
#define HONE_RUNTIME_HONE_H

#include "hone/runtime/dlpack.h"
#include "hone/runtime/program.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(HONE_RT_BUILD)
#define HONE_API __attribute__((visibility("default")))
#else
#define HONE_API
#endif

#define HONE_API_VERSION 1u

typedef enum hone_status {
  HONE_OK = 0,
  HONE_INVALID = 1,       // an argument, a file or an input is at fault
  HONE_OUT_OF_MEMORY = 2, // sessions and modules can be used and closed as if the call had not been
  HONE_INTERNAL = 3       // a bug of Hone
} hone_status;

/// Message of the last failure in this thread; "" before any. Valid until the next failure in this thread.
HONE_API const char *hone_last_error(void);

/// Version of the library ("0.1.0"), and of this interface (HONE_API_VERSION at its build).
HONE_API const char *hone_version(void);
HONE_API uint32_t hone_api_version(void);

//===--------------------------------------------------------------------------------------------------------------------===//
// Modules
//===--------------------------------------------------------------------------------------------------------------------===//

/// A loaded artefact. Calls may run in several threads at once.
typedef struct hone_module hone_module;

HONE_API hone_status hone_module_open(const char *folder, hone_module **module);

/// Sessions and outputs that are still open keep what they need. Null is nothing.
HONE_API void hone_module_close(hone_module *module);

HONE_API size_t hone_module_entry_count(const hone_module *module);
/// Null beyond the last entry.
HONE_API const char *hone_module_entry_name(const hone_module *module, size_t index);

typedef enum hone_role { HONE_INPUT = 0, HONE_OUTPUT = 1, HONE_STATE = 2 } hone_role;

/// What the manifest says of an input, output or state slot. Strings live as long as the module.
typedef struct hone_tensor_info {
  size_t struct_size;
  const char *name;
  int32_t dtype; // hone_dtype
  int32_t rank;
  int64_t sizes[HONE_MAX_RANK];       // -1: each call decides
  const char *symbols[HONE_MAX_RANK]; // the size's name where it is -1, "" for one without; else null
} hone_tensor_info;

HONE_API hone_status hone_module_tensor_count(const hone_module *module, const char *entry, hone_role role,
                                              size_t *count);
HONE_API hone_status hone_module_tensor_info(const hone_module *module, const char *entry, hone_role role, size_t index,
                                             hone_tensor_info *info);

//===--------------------------------------------------------------------------------------------------------------------===//
// Calls
//===--------------------------------------------------------------------------------------------------------------------===//

/// An input by its name. The view may have any strides; dense ones are not copied.
typedef struct hone_named_tensor {
  const char *name;
  hone_tensor tensor;
} hone_named_tensor;

/// What a call returned.
typedef struct hone_outputs hone_outputs;

/// Calls an entry that keeps no state. `threads`, at most 4096, 0: as OpenMP decides.
HONE_API hone_status hone_module_call(const hone_module *module, const char *entry, const hone_named_tensor *inputs,
                                      size_t input_count, int32_t threads, hone_outputs **outputs);

HONE_API size_t hone_outputs_count(const hone_outputs *outputs);
/// Null beyond the last output.
HONE_API const char *hone_outputs_name(const hone_outputs *outputs, size_t index);
/// A dense view, valid until the outputs are freed.
HONE_API hone_status hone_outputs_get(const hone_outputs *outputs, const char *name, hone_tensor *tensor);
HONE_API void hone_outputs_free(hone_outputs *outputs);

/// A view of a DLPack tensor in host memory; it lives as long as that tensor.
HONE_API hone_status hone_tensor_from_dlpack(const DLTensor *source, hone_tensor *tensor);
/// An output as DLPack. It shares the memory, and outlives the outputs until its deleter is called.
HONE_API hone_status hone_outputs_to_dlpack(const hone_outputs *outputs, const char *name,
                                            DLManagedTensorVersioned **managed);

//===--------------------------------------------------------------------------------------------------------------------===//
// Sessions
//===--------------------------------------------------------------------------------------------------------------------===//

/// An entry and its state, which other entries may share. One thread at a time; sessions of one module are independent.
typedef struct hone_session hone_session;

typedef struct hone_session_options {
  size_t struct_size;
  const char *entry; // default "forward"
  int32_t threads;   // at most 4096; default 0: as OpenMP decides
  int64_t reserve;   // positions to make room for at once, at most 2^40; default 0
  // A folder: what grows of the state, as the KV cache, is kept in files without names there, of which the system holds in memory what was
  // used last. For artefacts of the target cpu. Default null: in memory.
  const char *offload;
} hone_session_options;

/// `options` may be null.
HONE_API hone_status hone_session_open(const hone_module *module, const hone_session_options *options,
                                       hone_session **session);
HONE_API void hone_session_close(hone_session *session);

/// Gives the session the inputs that are the same in all its calls: what an encoder gave. They are copied, replace those of
/// the same names, and stay when the session is reset. Only before the first position.
HONE_API hone_status hone_session_set_context(hone_session *session, const hone_named_tensor *inputs,
                                              size_t input_count);

/// Likewise, of an artefact with an encoder (`hone compile --encoder`): computes these inputs from those of the encoder, by its names. The tokens
/// that the decoder then begins with are those of an empty prompt of hone_session_generate. HONE_INVALID without an encoder.
HONE_API hone_status hone_session_encode(hone_session *session, const hone_named_tensor *inputs, size_t input_count);

/// Appends to the state and returns outputs. Context need not be among the inputs. After a failure the state is as it was before.
/// HONE_INVALID, before anything is computed, where the session would have more positions than the model has rows for.
HONE_API hone_status hone_session_forward(hone_session *session, const hone_named_tensor *inputs, size_t input_count,
                                          hone_outputs **outputs);

/// The same with another entry of the module: one that keeps the session's state, or none.
HONE_API hone_status hone_session_call(hone_session *session, const char *entry, const hone_named_tensor *inputs,
                                       size_t input_count, hone_outputs **outputs);

/// Positions that the state holds.
HONE_API int64_t hone_session_length(const hone_session *session);
/// Drops all but the first `length` positions.
HONE_API hone_status hone_session_truncate(hone_session *session, int64_t length);
/// Of the positions that the last call appended, keeps those of these numbers, which count from 0 and ascend, and drops the others. The
/// state is then, bit for bit, as if the call had appended no others: what verification accepted stays.
HONE_API hone_status hone_session_keep(hone_session *session, const int64_t *numbers, size_t count);
/// The same by sequence, for each of the batch: `numbers` has those of one after those of another, counts[i] of sequence i. Sequences of
/// different lengths need an entry for them ("own_lengths" in the manifest); each goes on from its own.
HONE_API hone_status hone_session_keep_each(hone_session *session, const int64_t *numbers, const size_t *counts,
                                            size_t sequences);
/// Drops, by sequence, for each of the batch, all but the first lengths[i] positions.
HONE_API hone_status hone_session_truncate_each(hone_session *session, const int64_t *lengths, size_t sequences);
/// How many positions a sequence of the batch holds. 0 where `session` is null.
HONE_API int64_t hone_session_length_of(const hone_session *session, size_t sequence);

/// A moment between two calls of a session that it can return to, as often as one likes, until positions that it then held are dropped. It
/// takes no memory but for slots that calls replace as a whole.
typedef struct hone_checkpoint hone_checkpoint;

HONE_API hone_status hone_session_checkpoint(hone_session *session, hone_checkpoint **checkpoint);
HONE_API hone_status hone_session_restore(hone_session *session, const hone_checkpoint *checkpoint);
/// Null is nothing. Before or after the session is closed.
HONE_API void hone_checkpoint_free(hone_checkpoint *checkpoint);

/// Another session of the same entry, with a copy of the state, the context and the options: two that begin alike read a prompt once. Keys and
/// values of the positions that they have in common are shared, page by page, until either session writes there. Sessions that are forked
/// while this one does not go on all share one copy.
HONE_API hone_status hone_session_fork(hone_session *session, hone_session **fork);

/// A session whose sequences are copies of those of others, of the same module and entry and without context, one after the other: each goes
/// on from its own length. For entries that take sequences of different lengths.
HONE_API hone_status hone_session_join(const hone_session *const *sessions, size_t count, hone_session **joined);

/// Forgets everything, the batch size and the padding too.
HONE_API hone_status hone_session_reset(hone_session *session);
/// How many positions at the left of each sequence are padding, at most 2^40. Only before the first position; a call of fewer sequences is
/// then refused.
HONE_API hone_status hone_session_set_padding(hone_session *session, const int64_t *padding, size_t sequences);
/// For how many of the last positions of each call logits are computed; 0, as at first, for all. A language model's logits then
/// have so many rows at most. A model that is not made of one product at its end gives the rows of all positions.
HONE_API hone_status hone_session_set_logits_to_keep(hone_session *session, int64_t positions);

//===--------------------------------------------------------------------------------------------------------------------===//
// Text
//===--------------------------------------------------------------------------------------------------------------------===//

/// What drafts tokens that a call then verifies with others, and what became of its drafts: the texts of a session, one after the other,
/// draft those after them. One thread at a time.
typedef struct hone_speculation hone_speculation;

typedef enum hone_draft_source {
  HONE_DRAFT_AUTOMATON =
      0, // what followed the longest suffix of the text where it occurred before, in it or in earlier texts
  HONE_DRAFT_CORPUS = 1, // where that occurred in a corpus
  HONE_DRAFT_LOOKUP = 2, // what followed the last three tokens where they occurred first
  HONE_DRAFT_MODEL = 3   // what a draft model writes; alone
} hone_draft_source;

/// Which drafted tokens of a model are accepted.
typedef enum hone_acceptance {
  HONE_ACCEPT_IDENTICAL = 0, // those that are drawn without drafts too: the seed gives the same text
  HONE_ACCEPT_EXACT = 1,     // by speculative sampling: the same probabilities, but another text
  HONE_ACCEPT_TYPICAL = 2    // lossy: those that are probable enough
} hone_acceptance;

typedef struct hone_speculation_options {
  size_t struct_size;
  const int32_t
      *sources;         // hone_draft_source, each once; the longest match counts, and of those as long the first one's
  size_t source_count;  // default 0: HONE_DRAFT_AUTOMATON
  const char *corpus;   // the file that HONE_DRAFT_CORPUS needs
  int64_t most_drafted; // verified in one call, 1 to 1024; default 32
  int32_t trees;        // nonzero: drafts may be trees, for modules, and draft models, with an entry "verify"
  int32_t acceptance;   // hone_acceptance; default HONE_ACCEPT_IDENTICAL, which others than models have always
  const hone_module
      *draft; // of HONE_DRAFT_MODEL: its entry "forward" drafts; default null: "draft" of the session's module does
  double draft_confidence; // where the probability of a model's draft falls below, it ends; default 0.1
} hone_speculation_options;

/// Sets all members, `struct_size` too, to their defaults.
HONE_API void hone_speculation_options_init(hone_speculation_options *options);

/// For texts of this session, and of others of its module and entry. `options` may be null. HONE_INVALID for a model that gives logits of
/// the last token alone, for a corpus or a draft model with other tokens, and for what does not go together.
HONE_API hone_status hone_speculation_open(const hone_session *session, const hone_speculation_options *options,
                                           hone_speculation **speculation);
/// Null is nothing. Before or after the session is closed.
HONE_API void hone_speculation_close(hone_speculation *speculation);

typedef struct hone_generation_options {
  size_t struct_size;
  int64_t max_new_tokens;    // default 128
  int64_t prefill_chunk;     // most prompt tokens fed at a time; default 512
  double temperature;        // default 0: always the likeliest token
  int64_t top_k;             // keep this many of the likeliest; default 0: all
  double top_p;              // keep the likeliest that add up to this; default 1: all
  double min_p;              // keep those at least this fraction as probable as the likeliest; default 0: all
  double repetition_penalty; // default 1: none
  uint64_t seed;             // default 0
  const char *const *stop;   // strings that end the text and are not part of it
  size_t stop_count;
  int32_t ignore_end;            // nonzero: go on after tokens that end a text
  hone_speculation *speculation; // drafts tokens; default null: none are drafted
} hone_generation_options;

/// Sets all members, `struct_size` too, to their defaults.
HONE_API void hone_generation_options_init(hone_generation_options *options);

/// Receives a token, and the text that is certain with it: `bytes` bytes, "" while a character is incomplete or a stop
/// string may have begun. Text that was held back comes with token -1 at the end. Nonzero ends the generation.
typedef int (*hone_token_callback)(void *user, int64_t token, const char *text, size_t bytes);

/// Feeds the tokens of `prompt` to the session (one sequence) and writes on; an empty prompt of a session without positions is what the
/// decoder of an encoder begins with. Where the model reads features of images or audio (`hone compile --embedding --encoder`), those of
/// hone_session_encode take the place of the token that stands for them. `options` and `callback` may be null. `text`
/// is "" for an artefact without a tokenizer. Where the model has no more positions the tokens until there have been received, and
/// HONE_INVALID is returned; nothing is computed for a prompt that is too long.
HONE_API hone_status hone_session_generate(hone_session *session, const int64_t *prompt, size_t prompt_count,
                                           const hone_generation_options *options, hone_token_callback callback,
                                           void *user);

/// The token ids of a text by the artefact's tokenizer. `count` is how many there are; the first `capacity` of them are
/// written to `tokens`.
HONE_API hone_status hone_module_encode(const hone_module *module, const char *text, int64_t *tokens, size_t capacity,
                                        size_t *count);

#ifdef __cplusplus
} // extern "C"
#endif

#endif // HONE_RUNTIME_HONE_H
