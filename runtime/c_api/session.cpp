// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Sessions and generation of the C interface.

#include "c_api/handles.h"

#include "generate/text_writer.h"

#include <algorithm>

namespace hone::capi {
namespace {

/// Null for null. Fails for one of another module or entry than the session's.
absl::StatusOr<rt::Speculation *> takeSpeculation(const hone_speculation *given, const rt::Session &session) {
  if (!given)
    return nullptr;
  if (given->module.get() != &session.module() || given->entry != session.entry().name)
    return io::invalid("expected speculation for entry '", session.entry().name, "' of ", session.module().folder(),
                       ", but got that for '", given->entry, "' of ", given->module->folder());
  return given->drafts.get();
}

absl::StatusOr<rt::WritingOptions> takeWritingOptions(const hone_generation_options *given,
                                                      const rt::Session &session) {
  hone_generation_options options;
  hone_generation_options_init(&options);
  HONE_RETURN_IF_ERROR(takeOptions(given, options));
  rt::WritingOptions writing;
  if (options.max_new_tokens < 1 || options.prefill_chunk < 1)
    return io::invalid("expected max_new_tokens and prefill_chunk to be at least 1, but got ", options.max_new_tokens,
                       " and ", options.prefill_chunk);
  writing.generation.maximalNewTokens = options.max_new_tokens;
  writing.generation.prefillChunk = options.prefill_chunk;
  writing.generation.rules = session.module().manifest().generation.rules;
  if (!options.ignore_end)
    writing.generation.endTokens = session.module().manifest().generation.endTokens;
  HONE_ASSIGN_OR_RETURN(writing.speculation, takeSpeculation(options.speculation, session));
  writing.sampling = {options.temperature,        options.top_k, options.top_p, options.min_p,
                      options.repetition_penalty, options.seed};
  for (size_t i = 0; i < options.stop_count; ++i) {
    if (!options.stop || !options.stop[i])
      return io::invalid("expected stop string ", i, " not to be null");
    writing.stop.emplace_back(options.stop[i]);
  }
  return writing;
}

absl::Status generate(hone_session &session, std::span<const int64_t> prompt, const hone_generation_options *options,
                      hone_token_callback callback, void *user) {
  HONE_ASSIGN_OR_RETURN(rt::WritingOptions writing, takeWritingOptions(options, *session.session));
  HONE_ASSIGN_OR_RETURN(rt::LanguageModel model, rt::LanguageModel::over(*session.session));
  auto receive = [&](int64_t token, std::string_view text) -> absl::StatusOr<bool> {
    return !callback || callback(user, token, std::string(text).c_str(), text.size()) == 0;
  };
  std::vector<int64_t> start;
  if (prompt.empty() && model.length() == 0) {
    HONE_ASSIGN_OR_RETURN(start, rt::chooseStart(model));
    prompt = start;
  }
  HONE_ASSIGN_OR_RETURN(std::vector<int64_t> placed, model.placeFeatures(prompt));
  return rt::writeText(model, session.tokenizer.get(), placed, writing, receive).status();
}

absl::StatusOr<std::unique_ptr<rt::Session>> openSession(const hone_module &module, const hone_session_options *given) {
  hone_session_options options = {sizeof options, nullptr, 0, 0, nullptr};
  HONE_RETURN_IF_ERROR(takeOptions(given, options));
  HONE_RETURN_IF_ERROR(checkThreads(options.threads));
  if (options.reserve < 0 || options.reserve > rt::kMostPositions)
    return io::invalid("expected reserve to be 0 to ", rt::kMostPositions, ", but got ", options.reserve);
  std::shared_ptr<rt::StateMemory> memory;
  if (options.offload) {
    HONE_ASSIGN_OR_RETURN(memory, rt::offloadedStateMemory(options.offload));
  }
  HONE_ASSIGN_OR_RETURN(
      std::unique_ptr<rt::Session> session,
      rt::Session::create(module.module, options.entry ? options.entry : "forward", std::move(memory)));
  session->setThreads(options.threads);
  session->state().reserve(options.reserve);
  return session;
}

/// What can fail comes before the call, which changes the state.
absl::Status call(rt::Session &session, const io::EntryInfo &entry, const hone_named_tensor *inputs, size_t count,
                  hone_outputs **outputs) {
  HONE_ASSIGN_OR_RETURN(std::vector<rt::NamedTensor> tensors, takeInputs(inputs, count));
  PendingOutputs pending(entry);
  HONE_ASSIGN_OR_RETURN(std::vector<io::Array> arrays, session.call(entry.name, tensors));
  *outputs = pending.release(std::move(arrays));
  return absl::OkStatus();
}

} // namespace
} // namespace hone::capi

using namespace hone;
using namespace hone::capi;

hone_status hone_session_open(const hone_module *module, const hone_session_options *options, hone_session **session) {
  if (!module || !session)
    return reportNull("module and session");
  return reported([=]() -> absl::Status {
    auto opened = std::make_unique<hone_session>();
    HONE_ASSIGN_OR_RETURN(opened->session, openSession(*module, options));
    opened->tokenizer = module->tokenizer;
    *session = opened.release();
    return absl::OkStatus();
  });
}

void hone_session_close(hone_session *session) { delete session; }

hone_status hone_session_set_context(hone_session *session, const hone_named_tensor *inputs, size_t input_count) {
  if (!session)
    return reportNull("session");
  return reported([=]() -> absl::Status {
    HONE_ASSIGN_OR_RETURN(std::vector<rt::NamedTensor> tensors, takeInputs(inputs, input_count));
    return session->session->setContext(tensors);
  });
}

hone_status hone_session_encode(hone_session *session, const hone_named_tensor *inputs, size_t input_count) {
  if (!session)
    return reportNull("session");
  return reported([=]() -> absl::Status {
    HONE_ASSIGN_OR_RETURN(std::vector<rt::NamedTensor> tensors, takeInputs(inputs, input_count));
    return session->session->encode(tensors);
  });
}

hone_status hone_session_forward(hone_session *session, const hone_named_tensor *inputs, size_t input_count,
                                 hone_outputs **outputs) {
  if (!session || !outputs)
    return reportNull("session and outputs");
  return reported([=] { return call(*session->session, session->session->entry(), inputs, input_count, outputs); });
}

hone_status hone_session_call(hone_session *session, const char *entry, const hone_named_tensor *inputs,
                              size_t input_count, hone_outputs **outputs) {
  if (!session || !entry || !outputs)
    return reportNull("session, entry and outputs");
  return reported([=]() -> absl::Status {
    HONE_ASSIGN_OR_RETURN(const io::EntryInfo *info, session->session->module().findEntryInfo(entry));
    return call(*session->session, *info, inputs, input_count, outputs);
  });
}

hone_status hone_session_keep(hone_session *session, const int64_t *numbers, size_t count) {
  if (!session || (!numbers && count > 0))
    return reportNull("session and numbers");
  return reported([=] { return session->session->state().keep({numbers, count}); });
}

hone_status hone_session_keep_each(hone_session *session, const int64_t *numbers, const size_t *counts,
                                   size_t sequences) {
  if (!session || (!counts && sequences > 0))
    return reportNull("session and counts");
  return reported([=]() -> absl::Status {
    std::vector<std::vector<int64_t>> kept;
    for (const int64_t *next = numbers; kept.size() < sequences; next += kept.back().size()) {
      size_t count = counts[kept.size()];
      if (!next && count > 0)
        return io::invalid("expected ", count, " numbers of sequence ", kept.size(), ", but got null");
      kept.emplace_back(next, next + count);
    }
    return session->session->state().keepEach(kept);
  });
}

hone_status hone_session_truncate_each(hone_session *session, const int64_t *lengths, size_t sequences) {
  if (!session || (!lengths && sequences > 0))
    return reportNull("session and lengths");
  return reported([=] { return session->session->state().truncateEach({lengths, lengths + sequences}); });
}

int64_t hone_session_length_of(const hone_session *session, size_t sequence) {
  return session ? session->session->state().lengths().of(static_cast<int64_t>(sequence)) : 0;
}

hone_status hone_session_join(const hone_session *const *sessions, size_t count, hone_session **joined) {
  if (!sessions || !joined || count == 0 || std::count(sessions, sessions + count, nullptr) > 0)
    return reportNull("sessions and joined");
  return reported([=]() -> absl::Status {
    std::vector<const rt::Session *> all;
    for (size_t i = 0; i < count; ++i)
      all.push_back(sessions[i]->session.get());
    auto whole = std::make_unique<hone_session>();
    HONE_ASSIGN_OR_RETURN(whole->session, rt::Session::join(all));
    whole->tokenizer = sessions[0]->tokenizer;
    *joined = whole.release();
    return absl::OkStatus();
  });
}

hone_status hone_session_checkpoint(hone_session *session, hone_checkpoint **checkpoint) {
  if (!session || !checkpoint)
    return reportNull("session and checkpoint");
  return reported([=]() -> absl::Status {
    auto point = std::make_unique<hone_checkpoint>();
    point->point = session->session->state().checkpoint();
    *checkpoint = point.release();
    return absl::OkStatus();
  });
}

hone_status hone_session_restore(hone_session *session, const hone_checkpoint *checkpoint) {
  if (!session || !checkpoint)
    return reportNull("session and checkpoint");
  return reported([=] { return session->session->state().restore(*checkpoint->point); });
}

void hone_checkpoint_free(hone_checkpoint *checkpoint) { delete checkpoint; }

hone_status hone_session_fork(hone_session *session, hone_session **fork) {
  if (!session || !fork)
    return reportNull("session and fork");
  return reported([=]() -> absl::Status {
    auto copy = std::make_unique<hone_session>();
    HONE_ASSIGN_OR_RETURN(copy->session, session->session->fork());
    copy->tokenizer = session->tokenizer;
    *fork = copy.release();
    return absl::OkStatus();
  });
}

int64_t hone_session_length(const hone_session *session) { return session ? session->session->state().length() : 0; }

hone_status hone_session_truncate(hone_session *session, int64_t length) {
  if (!session)
    return reportNull("session");
  return reported([=] { return session->session->state().truncate(length); });
}

hone_status hone_session_reset(hone_session *session) {
  if (!session)
    return reportNull("session");
  session->session->state().reset();
  return HONE_OK;
}

hone_status hone_session_set_padding(hone_session *session, const int64_t *padding, size_t sequences) {
  if (!session || (!padding && sequences > 0))
    return reportNull("session and padding");
  return reported([=] { return session->session->state().setPadding({padding, padding + sequences}); });
}

hone_status hone_session_set_logits_to_keep(hone_session *session, int64_t positions) {
  if (!session)
    return reportNull("session");
  return reported([=]() -> absl::Status {
    if (positions < 0)
      return io::invalid("expected the number of logits to keep to be 0 or more, but got ", positions);
    (void)session->session->state().setLogitsToKeep(positions);
    return absl::OkStatus();
  });
}

void hone_generation_options_init(hone_generation_options *options) {
  if (!options)
    return;
  *options = {};
  options->struct_size = sizeof *options;
  options->max_new_tokens = rt::GenerationOptions().maximalNewTokens;
  options->prefill_chunk = rt::GenerationOptions().prefillChunk;
  options->top_p = 1;
  options->repetition_penalty = 1;
}

hone_status hone_session_generate(hone_session *session, const int64_t *prompt, size_t prompt_count,
                                  const hone_generation_options *options, hone_token_callback callback, void *user) {
  if (!session || (!prompt && prompt_count > 0))
    return reportNull("session and prompt");
  return reported([=] { return generate(*session, {prompt, prompt_count}, options, callback, user); });
}
