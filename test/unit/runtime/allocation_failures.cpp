// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// allocation-failures ARTEFACT TOKENS.npy THREADS: what becomes of a host where the n-th allocation finds no memory, for many n in each
// function of the C interface, in `eval` and in what `calibrate` adds up. A language model's artefact with a tokenizer. Each failure is an
// error or has no effect, the same call gives afterwards what it gave before, and nothing is left allocated.

#include "failing_allocator.h"

#include "calibration/second_moments.h"
#include "hone/cli/main.h"
#include "hone/io/status.h"
#include "hone/runtime/hone.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <omp.h>
#include <string>
#include <utility>
#include <vector>

namespace {

using hone::test::injection;

[[noreturn]] void fault(const std::string &what) {
  injection.isArmed = false;
  std::printf("fault: %s\n", what.c_str());
  std::exit(1);
}

void require(bool isTrue, const std::string &what) {
  if (!isTrue)
    fault(what);
}

/// The call under test; it returns the status, and leaves nothing behind. What is beside it never fails.
using Call = std::function<hone_status()>;

/// Runs `call` with the n-th allocation failing; -1 for none.
hone_status runArmed(const Call &call, int64_t fails, bool persists) {
  injection.allocations = 0;
  injection.fails = fails;
  injection.persists = persists;
  injection.isArmed = true;
  hone_status status = call();
  injection.isArmed = false;
  return status;
}

/// A step of a scenario: what is made before the call, the call, what is looked at and freed after it.
struct Step {
  std::string name;
  std::function<void()> before;
  Call call;
  std::function<void(hone_status status)> after;
};

hone_status runOnce(const Step &step, int64_t fails, bool persists) {
  step.before();
  hone_status status = runArmed(step.call, fails, persists);
  if (status != HONE_OK)
    require(*hone_last_error() != '\0', step.name + " failed without a message");
  step.after(status);
  return status;
}

/// Numbers from 0 to `count`, the first ones and then spread evenly.
std::vector<int64_t> spread(int64_t count) {
  constexpr int64_t first = 12, more = 24;
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < std::min(first, count); ++i)
    numbers.push_back(i);
  for (int64_t i = 0; i < more && first < count; ++i)
    numbers.push_back(first + i * (count - first) / more);
  return numbers;
}

/// Returns how many failures were injected.
int64_t runStep(const Step &step) {
  for (int i = 0; i < 2; ++i) // what libraries keep for good
    require(runOnce(step, -1, false) == HONE_OK, step.name + ": " + hone_last_error());
  int64_t count = injection.allocations, injected = 0, errors = 0;
  for (int64_t number : spread(count))
    for (bool persists : {false, true}) {
      std::string where = step.name + ", allocation " + std::to_string(number) + (persists ? " and all after it" : "");
      errors += runOnce(step, number, persists) != HONE_OK;
      auto recover = [&] {
        require(runOnce(step, -1, false) == HONE_OK, where + ": the next call failed: " + hone_last_error());
      };
      recover(); // and fills again what is kept from call to call
      int64_t live = injection.live;
      (void)runOnce(step, number, persists);
      recover();
      require(injection.live <= live, where + ": memory was left behind");
      ++injected;
    }
  std::printf("%s: %lld allocations, %lld failures injected, %lld errors\n", step.name.c_str(),
              static_cast<long long>(count), static_cast<long long>(injected), static_cast<long long>(errors));
  require(count == 0 || errors > 0, step.name + ": no failure had an effect");
  return injected;
}

/// Everything that is done with one artefact.
class Host {
public:
  Host(std::string artefact, std::string tokens, int threads)
      : artefact(std::move(artefact)), tokensFile(std::move(tokens)), threads(threads) {
    require(hone_module_open(this->artefact.c_str(), &module) == HONE_OK, hone_last_error());
    prompt.resize(20);
    for (size_t i = 0; i < prompt.size(); ++i)
      prompt[i] = static_cast<int64_t>(i % 7);
    makeInputs();
  }
  ~Host() { hone_module_close(module); }

  std::vector<Step> steps() {
    return {openModule(),         openSession(), encode(),   callMain(),  forward("prefill", 0),
            forward("decode", 9), generate(),    evaluate(), addMoments()};
  }

private:
  static void nothing() {}

  Step openModule() {
    return {"open", nothing, [this] { return hone_module_open(artefact.c_str(), &opened); },
            [this](hone_status status) {
              require((status == HONE_OK) == (opened != nullptr), "a module beside an error");
              hone_module_close(std::exchange(opened, nullptr));
            }};
  }

  Step openSession() {
    return {"session", nothing, [this] { return hone_session_open(module, nullptr, &session); },
            [this](hone_status status) {
              require((status == HONE_OK) == (session != nullptr), "a session beside an error");
              closeSession();
            }};
  }

  Step encode() {
    return {"encode", nothing,
            [this] { return hone_module_encode(module, "class Parser:\n    def é", ids, std::size(ids), &idCount); },
            [](hone_status) {}};
  }

  Step callMain() {
    return {"call", nothing,
            [this] { return hone_module_call(module, "main", inputs.data(), inputs.size(), threads, &outputs); },
            [this](hone_status status) {
              require((status == HONE_OK) == (outputs != nullptr), "outputs beside an error");
              closeSession();
            }};
  }

  /// A call after `held` positions. Where it fails, the session has them still, and the same call gives the same logits.
  Step forward(const std::string &name, int64_t held) {
    return {name, [this, held] { beginSession(held); },
            [this, held] { return feed(prompt.data() + held, 6, &outputs); },
            [this, held](hone_status status) {
              if (status != HONE_OK) {
                require(!outputs && hone_session_length(session) == held, "a failed call changed the session");
                require(feed(prompt.data() + held, 6, &outputs) == HONE_OK, hone_last_error());
              }
              checkLogits(held);
              closeSession();
            }};
  }

  Step generate() {
    return {"generate", [this] { beginSession(0); }, [this] { return write(); },
            [this](hone_status status) {
              if (status != HONE_OK) {
                require(hone_session_reset(session) == HONE_OK, hone_last_error());
                require(write() == HONE_OK, hone_last_error());
              }
              if (expectedWords.empty())
                expectedWords = written;
              require(written == expectedWords, "another text after a failure");
              closeSession();
            }};
  }

  Step evaluate() {
    command = {"eval", artefact, "--tokens", tokensFile, "--window", "8", "--threads", std::to_string(threads)};
    return {"eval", nothing, [this] { return hone::cli::runMain("hone-run", command) == 0 ? HONE_OK : HONE_INVALID; },
            [](hone_status) {}};
  }

  Step addMoments() {
    constexpr int64_t width = 600, count = 64; // three bands
    sums.resize(static_cast<size_t>(hone::calibration::SecondMoments::countSums(width)));
    rows.assign(static_cast<size_t>(count * width), 0.5f);
    return {"moments", [this] { omp_set_num_threads(threads); }, [this] { return add(width, count); },
            [](hone_status) {}};
  }

  hone_status add(int64_t width, int64_t count) {
    try {
      absl::Status status = hone::calibration::SecondMoments(width, sums.data()).add(rows.data(), count);
      return status.ok() ? HONE_OK : HONE_OUT_OF_MEMORY;
    } catch (...) {
      return absl::IsResourceExhausted(hone::io::statusOfException()) ? HONE_OUT_OF_MEMORY : HONE_INTERNAL;
    }
  }

  /// For `main` as exporters write it: 4 new positions of one sequence after 3, all of them visible.
  void makeInputs() {
    size_t count = 0;
    require(hone_module_tensor_count(module, "main", HONE_INPUT, &count) == HONE_OK, hone_last_error());
    for (size_t i = 0; i < count; ++i) {
      hone_tensor_info info = {};
      info.struct_size = sizeof info;
      require(hone_module_tensor_info(module, "main", HONE_INPUT, i, &info) == HONE_OK, hone_last_error());
      hone_tensor tensor = {nullptr, info.dtype, info.rank, {}, {}};
      int64_t elements = 1;
      for (int32_t axis = info.rank; axis-- > 0;) {
        tensor.sizes[axis] = info.sizes[axis] >= 0 ? info.sizes[axis] : sizeOf(info.symbols[axis]);
        tensor.strides[axis] = elements;
        elements *= tensor.sizes[axis];
      }
      bool isInteger = info.dtype == HONE_I64;
      integers.emplace_back(isInteger ? elements : 0, 1);
      floats.emplace_back(isInteger ? 0 : elements, 0.25f);
      tensor.data = isInteger ? static_cast<void *>(integers.back().data()) : floats.back().data();
      inputs.push_back({info.name, tensor});
    }
  }

  static int64_t sizeOf(const std::string &symbol) {
    bool isPast = symbol.find("past") != std::string::npos, isFresh = symbol.find("+") != std::string::npos || !isPast;
    return symbol.find("batch") != std::string::npos ? 1 : (isPast ? 3 : 0) + (isFresh ? 4 : 0);
  }

  void beginSession(int64_t held) {
    hone_session_options options = {sizeof options, nullptr, threads, 0};
    require(hone_session_open(module, &options, &session) == HONE_OK, hone_last_error());
    if (held == 0)
      return;
    require(feed(prompt.data(), held, &outputs) == HONE_OK, hone_last_error());
    hone_outputs_free(std::exchange(outputs, nullptr));
  }

  void closeSession() {
    hone_outputs_free(std::exchange(outputs, nullptr));
    hone_session_close(std::exchange(session, nullptr));
  }

  hone_status feed(int64_t *tokens, int64_t count, hone_outputs **results) {
    hone_named_tensor input = {inputName(), {tokens, HONE_I64, 2, {1, count}, {count, 1}}};
    return hone_session_forward(session, &input, 1, results);
  }

  const char *inputName() {
    hone_tensor_info info = {};
    info.struct_size = sizeof info;
    return hone_module_tensor_info(module, "forward", HONE_INPUT, 0, &info) == HONE_OK ? info.name : "";
  }

  void checkLogits(int64_t held) {
    hone_tensor logits = {};
    require(hone_outputs_get(outputs, hone_outputs_name(outputs, 0), &logits) == HONE_OK, hone_last_error());
    const auto *values = static_cast<const float *>(logits.data);
    std::vector<float> all(values, values + logits.sizes[1] * logits.sizes[2]);
    std::vector<float> &expected = held == 0 ? expectedPrefill : expectedDecode;
    if (expected.empty())
      expected = all;
    require(std::ranges::equal(all, expected), "other logits after a failure");
  }

  hone_status write() {
    hone_generation_options options;
    hone_generation_options_init(&options);
    options.max_new_tokens = 5;
    options.prefill_chunk = 8;
    options.temperature = 0.5;
    options.repetition_penalty = 1.1;
    options.ignore_end = 1;
    written.clear();
    written.reserve(64);
    auto receive = [](void *user, int64_t token, const char *, size_t) {
      static_cast<std::vector<int64_t> *>(user)->push_back(token);
      return 0;
    };
    return hone_session_generate(session, prompt.data(), prompt.size(), &options, receive, &written);
  }

  std::string artefact, tokensFile;
  int threads;
  std::vector<double> sums;
  std::vector<float> rows;
  std::vector<std::string> command;
  std::vector<int64_t> prompt, written, expectedWords;
  std::vector<float> expectedPrefill, expectedDecode;
  int64_t ids[64];
  size_t idCount = 0;
  std::vector<hone_named_tensor> inputs;
  std::vector<std::vector<int64_t>> integers;
  std::vector<std::vector<float>> floats;
  hone_module *module = nullptr, *opened = nullptr;
  hone_session *session = nullptr;
  hone_outputs *outputs = nullptr;
};

} // namespace

int main(int argc, char **argv) {
  require(argc == 4, "usage: allocation-failures ARTEFACT TOKENS.npy THREADS");
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  require(hone::test::spareOpenMp(), "expected OpenMP to be a library");
  int64_t injected = 0;
  {
    Host host(argv[1], argv[2], std::atoi(argv[3]));
    for (const Step &step : host.steps())
      injected += runStep(step);
  }
  std::printf("%lld failures, no fault\n", static_cast<long long>(injected));
  return 0;
}
