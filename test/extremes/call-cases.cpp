// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// hone-call-cases MODEL.hone CASES.npz SECONDS MEGABYTES: calls `main` for every case of the file and prints a line a case: its name,
// ok, refused or failed, and why, with tabs between. An array <case>/<input> of the file is that input of the case; other inputs are
// those of the case "base". A case runs in a process of its own, with so much time and memory; loading happens once.

#include "cli/arrays.h"
#include "core/module.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hone {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRefused = 1, kBug = 2;
constexpr std::string_view kBase = "base";

struct Limits {
  int64_t seconds, megabytes;
};

/// How a process ended, and what it said.
struct Ending {
  int status = 0;
  bool inTime = true;
  std::string text;
};

/// In the process of a case: calls, and ends it.
[[noreturn]] void callAndExit(const rt::Module &module, const std::vector<rt::NamedTensor> &inputs,
                              const Limits &limits) {
#if !__has_feature(address_sanitizer) // whose shadow is larger than any limit; it has a limit of its own, below
  rlim_t bytes = static_cast<rlim_t>(limits.megabytes) << 20;
  rlimit memory = {bytes, bytes};
  setrlimit(RLIMIT_AS, &memory);
#endif
  rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  absl::Status status = module.call("main", inputs, 1).status();
  if (status.ok())
    _exit(0);
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  _exit(status.code() == absl::StatusCode::kInternal ? kBug : kRefused);
}

/// Removes what libomp registers each process by in shared memory, which a process that does not return from main leaves behind: another one
/// with its number may find it and abort (OMP: Error #15).
void forgetOpenMp(pid_t process) { shm_unlink(io::cat("/__KMP_REGISTERED_LIB_", process, "_", getuid()).c_str()); }

/// Waits for a process whose messages come by `pipe`; one that takes too long is killed.
Ending waitFor(pid_t child, int pipe, const Limits &limits) {
  Ending ending;
  auto deadline = Clock::now() + std::chrono::seconds(limits.seconds);
  for (char buffer[4096];;) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd waited = {pipe, POLLIN, 0};
    if (left <= 0 || poll(&waited, 1, static_cast<int>(left)) == 0) {
      ending.inTime = false;
      kill(child, SIGKILL);
      break;
    }
    ssize_t bytes = read(pipe, buffer, sizeof buffer);
    if (bytes <= 0)
      break;
    ending.text.append(buffer, static_cast<size_t>(bytes));
  }
  waitpid(child, &ending.status, 0);
  forgetOpenMp(child);
  return ending;
}

Ending runApart(const rt::Module &module, const std::vector<rt::NamedTensor> &inputs, const Limits &limits) {
  int ends[2];
  if (pipe(ends) != 0)
    std::abort();
  std::fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    callAndExit(module, inputs, limits);
  }
  close(ends[1]);
  Ending ending = waitFor(child, ends[0], limits);
  close(ends[0]);
  return ending;
}

/// The line of a message that says most, without tabs.
std::string shorten(const std::string &text) {
  size_t begin = 0;
  for (const char *word : {"ERROR: ", "runtime error: "})
    if (size_t place = text.find(word); place != std::string::npos && begin == 0)
      begin = place;
  std::string line = text.substr(begin, text.find('\n', begin) - begin);
  for (char &letter : line)
    letter = letter == '\t' ? ' ' : letter;
  return line;
}

void print(const std::string &name, const Ending &ending, const Limits &limits) {
  std::string text = shorten(ending.text), outcome = "failed";
  bool exited = WIFEXITED(ending.status);
  int code = exited ? WEXITSTATUS(ending.status) : 0;
  if (!ending.inTime)
    text = io::cat("not done after ", limits.seconds, " s");
  else if (!exited)
    text = io::cat("signal ", WTERMSIG(ending.status), " (", strsignal(WTERMSIG(ending.status)), ") ", text);
  else if (code == 0)
    outcome = "ok";
  else if (code == kRefused && !text.empty())
    outcome = "refused";
  else
    text = io::cat("exit ", code, " ", text);
  std::printf("%s\t%s\t%s\n", name.c_str(), outcome.c_str(), text.c_str());
}

absl::Status run(const std::string &artefact, const std::string &path, const Limits &limits) {
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const rt::Module> module, rt::Module::load(artefact));
  const io::EntryInfo *entry = module->manifest().entry("main");
  if (!entry)
    return io::invalid(artefact, ": has no entry 'main'");
  HONE_ASSIGN_OR_RETURN(io::NpzReader file, io::NpzReader::open(path));
  std::map<std::string, cli::NamedArrays> cases;
  for (const std::string &name : file.names()) {
    size_t slash = name.find('/');
    if (slash == std::string::npos)
      return io::invalid(path, ": expected arrays named <case>/<input>, but got ", name);
    HONE_ASSIGN_OR_RETURN(io::Array array, file.read(name));
    cases[name.substr(0, slash)].emplace(name.substr(slash + 1), std::move(array));
  }
  for (auto &[name, arrays] : cases)
    cli::adoptTypes(arrays, entry->inputs);
  const cli::NamedArrays &base = cases[std::string(kBase)];
  for (const auto &[name, arrays] : cases) {
    std::vector<rt::NamedTensor> inputs;
    for (const auto &[input, array] : base)
      inputs.push_back({input, (arrays.contains(input) ? arrays.at(input) : array).view()});
    print(name, runApart(*module, inputs, limits), limits);
  }
  return absl::OkStatus();
}

} // namespace
} // namespace hone

#if __has_feature(address_sanitizer)
/// More memory than this is refused by us, as without sanitizers; reports have an exit code of their own.
extern "C" const char *__asan_default_options() {
  return "exitcode=99:allocator_may_return_null=1:max_allocation_size_mb=512:detect_leaks=0";
}
#endif

int main(int argc, char **argv) {
  if (argc != 5) {
    std::fputs("usage: hone-call-cases MODEL.hone CASES.npz SECONDS MEGABYTES\n", stderr);
    return hone::kRefused;
  }
  absl::Status status = hone::run(argv[1], argv[2], {std::atoll(argv[3]), std::atoll(argv[4])});
  if (status.ok())
    return 0;
  std::fprintf(stderr, "hone-call-cases: %s\n", std::string(status.message()).c_str());
  return hone::kRefused;
}
