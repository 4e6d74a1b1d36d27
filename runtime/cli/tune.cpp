// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Steps of training over windows of tokens.

#include "hone/cli/tune.h"

#include "cli/commands.h"
#include "cli/profile.h"
#include "cli/tuning_checkpoint.h"
#include "cli/window_batch.h"
#include "core/seconds.h"
#include "hone/cli/progress.h"
#include "hone/io/file.h"
#include "hone/io/split_mix.h"
#include "hone/text/tokenizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numbers>
#include <numeric>

namespace hone::cli {

using io::cat;
using io::invalid;

//===- Data -------------------------------------------------------------------------------------------------------===//

static int64_t windowsOf(const TuningData::File &file, int64_t context) { return (std::ssize(file.ids) - 1) / context; }

int64_t TuningData::countWindows() const {
  int64_t count = 0;
  for (const File &file : files)
    count += windowsOf(file, context);
  return count;
}

std::span<const int64_t> TuningData::windowOf(int64_t number) const {
  auto file = files.begin();
  for (int64_t windows = windowsOf(*file, context); number >= windows; windows = windowsOf(*++file, context))
    number -= windows;
  return std::span(file->ids).subspan(static_cast<size_t>(number * context), static_cast<size_t>(context + 1));
}

absl::Status TuningData::add(const std::string &file, std::vector<int64_t> ids) {
  if (std::ssize(ids) <= context)
    return invalid(file, ": expected at least ", context, " tokens and one more, a window, but got ", ids.size());
  files.push_back({file, std::move(ids)});
  return absl::OkStatus();
}

uint32_t TuningData::sum() const {
  uint32_t sum = 0;
  for (const File &file : files)
    sum = io::crcOf({reinterpret_cast<const char *>(file.ids.data()), file.ids.size() * sizeof(int64_t)}, sum);
  return sum;
}

static absl::StatusOr<std::vector<int64_t>> readText(const std::string &file, const text::Tokenizer &tokenizer) {
  HONE_ASSIGN_OR_RETURN(std::string bytes, io::readFile(file));
  absl::StatusOr<std::vector<int32_t>> ids = tokenizer.encode(bytes, /*addSpecialTokens=*/false);
  if (!ids.ok())
    return invalid(file, ": ", io::messageOf(ids.status()));
  return std::vector<int64_t>(ids->begin(), ids->end());
}

absl::StatusOr<TuningData> readTuningData(std::span<const std::string> files, const std::string &tokenizer,
                                          int64_t context) {
  std::optional<text::Tokenizer> texts;
  if (!tokenizer.empty()) {
    HONE_ASSIGN_OR_RETURN(texts, text::Tokenizer::fromFile(tokenizer));
  }
  TuningData data;
  data.context = context;
  for (const std::string &file : files) {
    bool isText = !file.ends_with(".npy");
    if (isText && !texts)
      return invalid(file, ": expected --tokenizer for a file of text; files of token ids end in .npy");
    HONE_ASSIGN_OR_RETURN(std::vector<int64_t> ids, isText ? readText(file, *texts) : readTokenRow(file));
    HONE_RETURN_IF_ERROR(data.add(file, std::move(ids)));
  }
  return data;
}

//===- Order and rate ---------------------------------------------------------------------------------------------===//

WindowOrder::WindowOrder(int64_t count, uint64_t seed) : order(static_cast<size_t>(count)), state(seed) {
  std::iota(order.begin(), order.end(), 0);
  shuffle();
}

uint64_t WindowOrder::draw() { return io::splitMix(state += io::kSplitMixStep); }

/// Fisher and Yates; a remainder of 64 bits is even enough for files that fit into a memory.
void WindowOrder::shuffle() {
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[draw() % i]);
  used = 0;
}

int64_t WindowOrder::next() {
  if (used == order.size())
    shuffle();
  return order[used++];
}

double learningRateAt(const TuningOptions &options, int64_t step) {
  if (step < options.warmup)
    return options.learningRate * static_cast<double>(step + 1) / static_cast<double>(options.warmup);
  if (options.schedule == RateSchedule::Constant)
    return options.learningRate;
  double part = static_cast<double>(step - options.warmup) /
                static_cast<double>(std::max<int64_t>(options.steps - options.warmup, 1));
  return options.learningRate * (1 + std::cos(std::numbers::pi * part)) / 2;
}

double maskDecayAt(const TuningOptions &options, int64_t step) {
  if (step >= options.maskDecayRamp)
    return *options.maskDecay;
  return *options.maskDecay * static_cast<double>(step) / static_cast<double>(options.maskDecayRamp);
}

//===- Steps ------------------------------------------------------------------------------------------------------===//

namespace {

constexpr std::string_view kStep = "train_step", kEvaluate = "evaluate", kAccumulate = "accumulate",
                           kProject = "project", kRate = "learning_rate", kMaskDecay = "mask_decay";

/// The numbers that a step takes, in the order of numbersAt.
std::vector<std::string_view> listNumbers(const TuningOptions &options) {
  return options.maskDecay ? std::vector{kRate, kMaskDecay} : std::vector{kRate};
}

std::vector<float> numbersAt(const TuningOptions &options, int64_t step) {
  std::vector numbers = {static_cast<float>(learningRateAt(options, step))};
  if (options.maskDecay)
    numbers.push_back(static_cast<float>(maskDecayAt(options, step)));
  return numbers;
}

struct CloseFile {
  void operator()(std::FILE *file) const { std::fclose(file); }
};

/// The first `count` lines of a file, as many as there are of them; nothing of one that is not there.
std::string firstLines(const std::string &path, int64_t count) {
  absl::StatusOr<std::string> text = count > 0 ? io::readFile(path) : "";
  size_t end = 0;
  for (size_t line; text.ok() && count > 0 && (line = text->find('\n', end)) != std::string::npos; --count)
    end = line + 1;
  return text.ok() ? text->substr(0, end) : "";
}

/// A line of JSON a step, written at once.
class StepLog {
public:
  /// Keeps the lines of steps that are done.
  static absl::StatusOr<StepLog> create(const std::string &path, int64_t done) {
    StepLog log;
    log.path = path;
    if (path.empty())
      return log;
    std::string kept = firstLines(path, done);
    log.file = {std::fopen(path.c_str(), "w"), CloseFile()};
    if (!log.file || std::fputs(kept.c_str(), log.file.get()) == EOF)
      return invalid("cannot write ", path, ": ", std::generic_category().message(errno));
    return log;
  }

  absl::Status write(int64_t step, double loss, double norm, double rate, double tokensPerSecond,
                     std::optional<double> valid) {
    if (!file)
      return absl::OkStatus();
    std::fprintf(file.get(),
                 "{\"step\": %lld, \"loss\": %.9g, \"gradient_norm\": %.9g, \"learning_rate\": %.9g, "
                 "\"tokens_per_second\": %.4g",
                 static_cast<long long>(step), loss, norm, rate, tokensPerSecond);
    if (valid)
      std::fprintf(file.get(), ", \"valid_loss\": %.9g", *valid);
    std::fputs("}\n", file.get());
    if (std::fflush(file.get()) != 0)
      return invalid("cannot write ", path, ": ", std::generic_category().message(errno));
    return absl::OkStatus();
  }

private:
  std::string path;
  std::unique_ptr<std::FILE, CloseFile> file;
};

/// What is written is of parameters that are numbers: the loss says so only of those before the last step.
absl::Status checkParameters(rt::State &state, int64_t step) {
  for (const rt::Slot &slot : state.slots()) {
    if (slot.description().beginning.empty())
      continue;
    HONE_ASSIGN_OR_RETURN(rt::StateBuffer held, slot.contentOnHost());
    if (!isFinite(held.view))
      return invalid("step ", step, ": the parameter '", slot.description().name,
                     "' is no longer finite; a smaller --learning-rate may help");
  }
  return absl::OkStatus();
}

/// The loss on data that no step sees.
class Validation {
public:
  /// Fails where the data are less than a batch, or have tokens outside the vocabulary.
  static absl::StatusOr<Validation> create(rt::Session &session, const TuningData &data, const TuningOptions &options);

  /// The mean over whole batches, of parameters as they are, in nats a token.
  absl::StatusOr<double> measure();

private:
  Validation(rt::Session &session, const TuningData &data, int64_t size, WindowBatch batch)
      : session(&session), data(&data), size(size), batch(std::move(batch)) {}

  rt::Session *session;
  const TuningData *data;
  int64_t size;
  WindowBatch batch;
};

absl::StatusOr<Validation> Validation::create(rt::Session &session, const TuningData &data,
                                              const TuningOptions &options) {
  int64_t batch = options.batch;
  if (data.countWindows() < batch)
    return invalid(data.files.front().name, ": expected at least ", batch, " windows of ", data.context,
                   " tokens to measure the loss on, a batch, but got ", data.countWindows());
  HONE_ASSIGN_OR_RETURN(WindowBatch windows, WindowBatch::create(session.entry(), data, batch, listNumbers(options)));
  return Validation(session, data, batch, std::move(windows));
}

absl::StatusOr<double> Validation::measure() {
  int64_t batches = data->countWindows() / size;
  double sum = 0;
  for (int64_t number = 0; number < batches; ++number) {
    for (int64_t row = 0; row < size; ++row)
      batch.set(row, data->windowOf(number * size + row));
    HONE_ASSIGN_OR_RETURN(std::vector<io::Array> outputs, session->call(kEvaluate, batch.inputs({})));
    sum += outputs[0].as<float>()[0];
  }
  return sum / static_cast<double>(batches);
}

class Tuning {
public:
  Tuning(rt::Session &session, const TuningData &data, const TuningOptions &options, WindowBatch batch,
         std::optional<Validation> validation)
      : session(session), data(data), options(options), order(data.countWindows(), options.seed),
        batch(std::move(batch)), validation(std::move(validation)) {}

  absl::StatusOr<TuningResult> run();

private:
  struct Measured {
    double loss, norm;
  };

  absl::StatusOr<int64_t> resume();
  void fill();
  absl::StatusOr<Measured> step(int64_t number);
  absl::Status keep(int64_t done);
  absl::StatusOr<std::optional<double>> validate(int64_t done);

  rt::Session &session;
  const TuningData &data;
  const TuningOptions &options;
  WindowOrder order;
  WindowBatch batch;
  std::optional<Validation> validation;
};

/// Makes the next windows the batch.
void Tuning::fill() {
  for (int64_t row = 0; row < options.batch; ++row)
    batch.set(row, data.windowOf(order.next()));
}

absl::StatusOr<Tuning::Measured> Tuning::step(int64_t number) {
  double sum = 0; // of the losses of batches
  for (int64_t before = 1; before < options.accumulate; ++before) {
    fill();
    HONE_ASSIGN_OR_RETURN(std::vector<io::Array> outputs, session.call(kAccumulate, batch.inputs({})));
    sum += outputs[0].as<float>()[0];
  }
  fill();
  HONE_ASSIGN_OR_RETURN(std::vector<io::Array> outputs, session.forward(batch.inputs(numbersAt(options, number))));
  Measured measured = {(sum + outputs[0].as<float>()[0]) / static_cast<double>(options.accumulate),
                       outputs[1].as<float>()[0]};
  if (!std::isfinite(measured.loss))
    return invalid("step ", number + 1, ": the loss is ", measured.loss, "; a smaller --learning-rate may help");
  if (!std::isfinite(measured.norm))
    return invalid("step ", number + 1, ": the norm of the gradients is ", measured.norm,
                   "; a smaller --learning-rate may help");
  return measured;
}

/// Returns to the checkpoint; gives how many steps are done.
absl::StatusOr<int64_t> Tuning::resume() {
  if (options.checkpoint.empty())
    return 0;
  HONE_ASSIGN_OR_RETURN(int64_t done, readCheckpoint(options.checkpoint, options.run, session.state()));
  for (int64_t i = 0; i < done * options.batch * options.accumulate; ++i)
    order.next();
  return done;
}

/// Writes a checkpoint after every so many steps, but not at the end, where the model itself is written.
absl::Status Tuning::keep(int64_t done) {
  if (options.checkpoint.empty() || done % options.checkpointEvery != 0 || done == options.steps)
    return absl::OkStatus();
  HONE_RETURN_IF_ERROR(checkParameters(session.state(), done));
  return writeCheckpoint(options.checkpoint, options.run, done, session.state());
}

/// Measures where it is time to.
absl::StatusOr<std::optional<double>> Tuning::validate(int64_t done) {
  if (!validation || (done % options.validEvery != 0 && done != options.steps))
    return std::nullopt;
  HONE_ASSIGN_OR_RETURN(double loss, validation->measure());
  if (!std::isfinite(loss))
    return invalid("step ", done, ": the loss on the validation data is ", loss);
  return loss;
}

absl::StatusOr<TuningResult> Tuning::run() {
  HONE_ASSIGN_OR_RETURN(int64_t done, resume());
  HONE_ASSIGN_OR_RETURN(StepLog log, StepLog::create(options.log, done));
  Progress progress("tuning", options.steps);
  TuningResult result;
  if (validation) {
    HONE_ASSIGN_OR_RETURN(result.validBefore, validation->measure());
    result.validAfter = result.validBefore;
  }
  double seconds = 0; // of steps alone
  for (int64_t number = done; number < options.steps; ++number) {
    auto begin = std::chrono::steady_clock::now();
    HONE_ASSIGN_OR_RETURN(Measured measured, step(number));
    seconds += rt::secondsSince(begin);
    double tokensDone = static_cast<double>((number + 1 - done) * options.batch * options.accumulate * data.context);
    result.tokensPerSecond = tokensDone / seconds;
    result.lastLoss = measured.loss;
    if (number == done)
      result.firstLoss = measured.loss;
    HONE_ASSIGN_OR_RETURN(std::optional<double> valid, validate(number + 1));
    result.validAfter = valid.value_or(result.validAfter);
    HONE_RETURN_IF_ERROR(log.write(number + 1, measured.loss, measured.norm, learningRateAt(options, number),
                                   result.tokensPerSecond, valid));
    HONE_RETURN_IF_ERROR(keep(number + 1)); // after the line, which a run that goes on from the checkpoint keeps
    char about[64];
    std::snprintf(about, sizeof(about), "loss %.4f, %.0f tokens/s", measured.loss, result.tokensPerSecond);
    progress.update(number + 1, about);
  }
  HONE_RETURN_IF_ERROR(checkParameters(session.state(), options.steps));
  return result;
}

} // namespace

absl::StatusOr<TuningResult> runTuning(const std::string &artefact, const TuningData &data, const TuningData *valid,
                                       const TuningOptions &options, const ParameterReceiver &receive) {
  Profiler profiler;
  HONE_RETURN_IF_ERROR(profiler.open(options.profile, /*inputs=*/{}));
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const rt::Module> module, rt::Module::load(artefact, profiler.recorder()));
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<rt::Session> session, rt::Session::create(module, kStep));
  session->setThreads(options.threads);
  HONE_ASSIGN_OR_RETURN(WindowBatch batch,
                        WindowBatch::create(session->entry(), data, options.batch, listNumbers(options)));
  std::optional<Validation> validation;
  if (valid) {
    HONE_ASSIGN_OR_RETURN(validation, Validation::create(*session, *valid, options));
  }
  HONE_ASSIGN_OR_RETURN(TuningResult result,
                        Tuning(*session, data, options, std::move(batch), std::move(validation)).run());
  HONE_RETURN_IF_ERROR(profiler.write(*module));
  if (options.projects) {
    HONE_RETURN_IF_ERROR(session->call(kProject, {}).status());
  }
  for (const rt::Slot &slot : session->state().slots()) {
    if (slot.description().beginning.empty())
      continue;
    HONE_ASSIGN_OR_RETURN(rt::StateBuffer held, slot.contentOnHost());
    HONE_RETURN_IF_ERROR(receive(slot.description().name, bytesOf(held.view)));
  }
  return result;
}

} // namespace hone::cli
