// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A thread waits for interrupts, so that removal need not keep to what a signal handler may do.

#include "hone/io/temporary.h"

#include "interrupts.h"

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <mutex>
#include <pthread.h>
#include <set>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

namespace hone::io {
namespace {

/// Never destroyed: the waiting thread may outlive static objects.
struct Registry {
  std::mutex mutex;
  std::set<std::string> paths;
};

Registry &registry() {
  static auto *all = new Registry;
  return *all;
}

/// What cannot be removed stays; there is nobody left to tell. A file takes no memory.
void remove(const std::string &path) noexcept {
  if (unlink(path.c_str()) == 0)
    return;
  try {
    std::error_code error;
    std::filesystem::remove_all(path, error);
  } catch (const std::bad_alloc &) {
  }
}

/// Another thread may still make a file in a folder that is being removed.
constexpr int kAttempts = 10;

void removeAll() {
  for (const std::string &path : registry().paths)
    for (int attempt = 0; attempt < kAttempts && std::filesystem::exists(std::filesystem::symlink_status(path));
         ++attempt)
      remove(path);
}

/// Other threads go on until the end, and may miss files that are removed: that is no error.
void sayNoMore() {
  int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere >= 0)
    dup2(nowhere, STDERR_FILENO);
}

[[noreturn]] void endBy(int signal) {
  std::signal(signal, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  std::raise(signal);
  pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  std::_Exit(128 + signal); // not reached: the signal is delivered above
}

void waitForInterrupt(sigset_t signals, void (*alsoRemove)()) {
  int signal = 0;
  if (sigwait(&signals, &signal) != 0)
    return;
  registry().mutex.lock(); // for good: nothing new begins
  sayNoMore();
  removeAll();
  if (alsoRemove)
    alsoRemove();
  endBy(signal);
}

} // namespace

TemporaryPath TemporaryPath::made(std::string path, const std::function<bool()> &make) {
  TemporaryPath result;
  std::scoped_lock lock(registry().mutex);
  auto place = registry().paths.insert(path).first; // first, as it takes memory
  if (make())
    result.name = std::move(path);
  else
    registry().paths.erase(place);
  return result;
}

TemporaryPath &TemporaryPath::operator=(TemporaryPath &&other) noexcept {
  std::swap(name, other.name);
  return *this;
}

TemporaryPath::~TemporaryPath() {
  if (name.empty())
    return;
  remove(name);
  release();
}

void TemporaryPath::release() {
  std::scoped_lock lock(registry().mutex);
  registry().paths.erase(name);
  name.clear();
}

void withoutInterrupt(const std::function<void()> &action) {
  std::scoped_lock lock(registry().mutex);
  action();
}

void removeTemporaries() {
  // The caller itself may hold the mutex, where what it makes took the last memory.
  constexpr int attempts = 100;
  for (int i = 0; i < attempts; ++i) {
    if (registry().mutex.try_lock()) { // for good
      removeAll();
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void removeTemporariesOnInterrupt(void (*alsoRemove)()) {
  std::signal(SIGXFSZ, SIG_IGN);
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action = {};
    if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN)
      sigaddset(&signals, signal);
  }
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  try {
    std::thread(waitForInterrupt, signals, alsoRemove).detach();
  } catch (const std::system_error &) { // no memory for a thread: an interrupt ends the process as it does others
    pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  }
}

} // namespace hone::io
