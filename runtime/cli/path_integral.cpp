// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gradients at the midpoints of a path.

#include "hone/cli/path_integral.h"

#include "cli/commands.h"
#include "cli/tuning_checkpoint.h"
#include "cli/window_batch.h"
#include "hone/cli/progress.h"

#include <array>
#include <cmath>

namespace hone::cli {

using io::invalid;

namespace {

constexpr std::string_view kStep = "path_step", kPosition = "position", kShare = "share";

class Path {
public:
  Path(rt::Session &session, const TuningData &data, WindowBatch batch, int64_t positions)
      : session(session), data(data), batch(std::move(batch)), windows(data.countWindows()),
        progress("integrating gradients", positions * windows) {}

  struct Measured {
    double loss = 0, slope = 0;
  };

  /// Means over all windows where the weights are at `position`; its gradients count with the weight `share`.
  absl::StatusOr<Measured> visit(double position, double share);

private:
  rt::Session &session;
  const TuningData &data;
  WindowBatch batch;
  int64_t windows, done = 0;
  Progress progress;
};

absl::StatusOr<Path::Measured> Path::visit(double position, double share) {
  Measured sum;
  auto count = static_cast<double>(windows);
  std::array numbers = {static_cast<float>(position), static_cast<float>(share / count)};
  for (int64_t window = 0; window < windows; ++window) {
    batch.set(0, data.windowOf(window));
    HONE_ASSIGN_OR_RETURN(std::vector<io::Array> outputs, session.forward(batch.inputs(numbers)));
    double loss = outputs[0].as<float>()[0], slope = outputs[1].as<double>()[0];
    if (!std::isfinite(loss) || !std::isfinite(slope))
      return invalid("window ", window, ", ", position, " of the way: the loss is ", loss, " and its derivative ",
                     slope);
    sum.loss += loss / count;
    sum.slope += slope / count;
    progress.update(++done);
  }
  return sum;
}

absl::Status receiveAll(rt::State &state, const IntegralReceiver &receive) {
  for (const rt::Slot &slot : state.slots()) {
    if (!isFinite(slot.content().view))
      return invalid("the integral of '", slot.description().name, "' is not finite");
    HONE_RETURN_IF_ERROR(receive(slot.description().name, bytesOf(slot.content().view)));
  }
  return absl::OkStatus();
}

} // namespace

absl::StatusOr<TuningData> readPathTokens(const std::string &file, int64_t context, int64_t most) {
  HONE_ASSIGN_OR_RETURN(std::vector<int64_t> ids, readTokenRow(file));
  if (std::ssize(ids) > most)
    ids.resize(static_cast<size_t>(most) + 1);
  TuningData data;
  data.context = context;
  HONE_RETURN_IF_ERROR(data.add(file, std::move(ids)));
  return data;
}

absl::StatusOr<PathIntegral> integratePath(const std::string &artefact, const TuningData &data,
                                           const PathIntegralOptions &options, const IntegralReceiver &receive) {
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const rt::Module> module, rt::Module::load(artefact));
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<rt::Session> session, rt::Session::create(module, kStep));
  session->setThreads(options.threads);
  HONE_ASSIGN_OR_RETURN(WindowBatch batch,
                        WindowBatch::create(session->entry(), data, /*batch=*/1, std::array{kPosition, kShare}));
  Path path(*session, data, std::move(batch), options.intervals + 2);
  HONE_ASSIGN_OR_RETURN(Path::Measured begin, path.visit(0, 0));
  HONE_ASSIGN_OR_RETURN(Path::Measured end, path.visit(1, 0));
  PathIntegral result = {begin.loss, end.loss, 0, begin.slope};
  double share = 1.0 / static_cast<double>(options.intervals);
  for (int64_t i = 0; i < options.intervals; ++i) {
    HONE_ASSIGN_OR_RETURN(Path::Measured middle, path.visit((static_cast<double>(i) + 0.5) * share, share));
    result.integral += middle.slope * share;
  }
  HONE_RETURN_IF_ERROR(receiveAll(session->state(), receive));
  return result;
}

} // namespace hone::cli
