// Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Blocks: turns of warps, barriers, and launches on two threads of the host.

#include "ptx/block.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <list>
#include <mutex>
#include <thread>

namespace hone::emulation {
namespace {

// A warp has so many instructions before others have their turn; one that waits in a loop ends its turn itself.
constexpr uint32_t kQuantum = 20000;
// A block that has run so long may be waiting for another one: that one is begun beside it.
constexpr uint64_t kPatience = uint64_t{1} << 22;
// A turn of no more instructions that ends at a barrier which has not come is a look at it, and nothing else.
constexpr uint64_t kLook = 64;
// After so many turns in which all warps of a cluster only looked, nobody comes.
constexpr uint32_t kMostLooks = 1u << 16;
// So many blocks a thread of the host keeps begun, where they wait for each other.
constexpr size_t kMostResident = 16;
// Below so many threads another thread of the host costs more than it brings.
constexpr uint64_t kWorthAThread = 4096;
constexpr std::byte kFill{0xff};

std::string describe(const Block &block, const Warp &warp, const std::string &what) {
  const Kernel &kernel = *block.launch.kernel;
  auto list = [](const auto &three) {
    return "(" + std::to_string(three[0]) + ", " + std::to_string(three[1]) + ", " + std::to_string(three[2]) + ")";
  };
  std::string text = "kernel '" + kernel.name + "': " + what;
  if (warp.pc < kernel.texts.size())
    text += " at '" + std::string(kernel.texts[warp.pc]) + "'";
  return text + ", block " + list(block.position) + ", warp " + std::to_string(warp.index);
}

} // namespace

Block::Block(const Launch &launch) : launch(launch) {
  shared.resize(launch.sharedBytes());
  for (uint32_t first = 0; first < launch.threads(); first += kLanes)
    warps.push_back(std::make_unique<Warp>(*this, first / kLanes));
}

void Block::begin(uint64_t index) {
  position = {static_cast<uint32_t>(index % launch.grid[0]),
              static_cast<uint32_t>(index / launch.grid[0] % launch.grid[1]),
              static_cast<uint32_t>(index / launch.grid[0] / launch.grid[1])};
  std::fill(shared.begin(), shared.end(), kFill);
  barriers = {};
  bulkCopies.clear();
  ended = works = false;
  for (auto &warp : warps)
    warp->reset();
}

uint64_t Block::executed() const {
  uint64_t sum = 0;
  for (const auto &warp : warps)
    sum += warp->executed;
  return sum;
}

bool Block::takeTurn() {
  bool progress = false;
  bool alive = false;
  works = false;
  // Warps go forwards and backwards in turn, so that who needs a barrier does not get its order by chance.
  for (size_t i = 0; i < warps.size(); ++i) {
    Warp &warp = *warps[backwards ? warps.size() - 1 - i : i];
    if (warp.runnable()) {
      progress = true;
      uint64_t before = warp.executed;
      warp.waitsForCluster = false;
      try {
        warp.run(kQuantum);
      } catch (const Fault &fault) {
        throw Fault(fault.kind, describe(*this, warp, fault.what()));
      }
      works |= !warp.waitsForCluster || warp.executed - before > kLook;
    }
    alive |= warp.alive != 0;
  }
  backwards = !backwards;
  if (!alive) {
    checkGroups();
    ended = true;
  }
  return progress || ended;
}

/// What is for all warps of a warpgroup, all of them have executed; and registers were there for who asked for more.
void Block::checkGroups() const {
  uint64_t registers = 0;
  for (const auto &warp : warps) {
    registers += warp->registers;
    const Warp &first = *warps[warp->index / kWarpsOfGroup * kWarpsOfGroup];
    if (warp->groupTrace != first.groupTrace)
      throw Fault(Fault::Kind::IllegalInstruction,
                  describe(*this, *warp, "warps of a warpgroup execute different instructions that are for all of it"));
  }
  if (registers > warps.size() * registersAtLaunch(launch))
    throw Fault(Fault::Kind::Deadlock, describe(*this, *warps[0], "a wait for registers that no warp gives back"));
}

void Block::failStuck() const {
  for (const auto &warp : warps)
    if (warp->alive != 0)
      throw Fault(Fault::Kind::Deadlock, describe(*this, *warp, "all threads wait for threads that never come"));
  throw Fault(Fault::Kind::Deadlock, "no thread can go on");
}

bool Block::isAtCluster(uint64_t arrivals) const {
  return std::ranges::all_of(warps,
                             [&](const auto &warp) { return warp->alive == 0 || warp->clusterArrivals >= arrivals; });
}

Block &Block::peer(uint32_t rank) {
  if (rank >= cluster.size() || cluster[rank]->ended)
    throw Fault(Fault::Kind::IllegalAddress,
                "shared memory of block " + std::to_string(rank) + " of a cluster, which does not exist or has ended");
  return *cluster[rank];
}

bool Block::isComplete(uint32_t index) const {
  const Barrier &barrier = barriers[index];
  uint32_t threads = barrier.arrivedOnly;
  bool all = true;
  bool any = false;
  for (const auto &warp : warps) {
    bool waits = warp->isAt(index);
    threads += waits ? kLanes : 0;
    any |= waits;
    all &= waits || warp->alive == 0;
  }
  if (barrier.expected == 0)
    return any && all;
  return any && threads >= barrier.expected;
}

void Block::update(uint32_t index) {
  if (!isComplete(index))
    return;
  Barrier done = std::move(barriers[index]);
  barriers[index] = {};
  for (auto &warp : warps)
    warp->release(index);
  for (const Barrier::Result &result : done.results) {
    bool holds = done.reduction == Reduction::And ? done.holds == done.threads : done.holds != 0;
    if (done.reduction != Reduction::Count)
      result.warp->setMask(result.slot, result.lanes, holds ? kAllLanes : 0);
    else
      eachLane(result.lanes, [&](uint32_t lane) { result.warp->at<uint32_t>(result.slot)[lane] = done.holds; });
  }
}

void Block::updateAll() {
  for (uint32_t index = 0; index < kNumBarriers; ++index)
    update(index);
}

namespace {

/// Blocks that run side by side: those of a cluster, or one.
class Cluster {
public:
  explicit Cluster(const Launch &launch) {
    std::vector<Block *> all;
    for (uint32_t rank = 0; rank < launch.kernel->cluster; ++rank)
      all.push_back(blocks.emplace_back(std::make_unique<Block>(launch)).get());
    for (auto &block : blocks)
      block->cluster = all;
  }

  void begin(uint64_t index) {
    looks = 0;
    for (size_t rank = 0; rank < blocks.size(); ++rank)
      blocks[rank]->begin(index * blocks.size() + rank);
  }

  /// Runs until all threads have ended (true) or about so many instructions were executed. Throws Fault where nobody can go on.
  bool run(uint64_t budget) {
    uint64_t end = executed() + budget;
    while (executed() < end) {
      bool progress = false, works = false;
      const Block *waiting = nullptr;
      for (auto &block : blocks) {
        if (block->hasEnded())
          continue;
        progress |= block->takeTurn();
        works |= block->hasEnded() || block->hasWorked();
        waiting = block->hasEnded() ? waiting : block.get();
      }
      if (waiting == nullptr)
        return true;
      looks = works ? 0 : looks + 1;
      if (!progress || looks > kMostLooks)
        waiting->failStuck();
    }
    return false;
  }

  uint64_t executed() const {
    uint64_t sum = 0;
    for (const auto &block : blocks)
      sum += block->executed();
    return sum;
  }

private:
  std::vector<std::unique_ptr<Block>> blocks;
  uint32_t looks = 0; // turns, one after the other, in which no warp did anything else
};

/// One thread of the host: it takes clusters from a counter until none are left.
class Worker {
public:
  Worker(const Launch &launch, std::atomic<uint64_t> &next, const std::atomic<bool> &stopped)
      : launch(launch), next(next), stopped(stopped) {}

  uint64_t run() {
    uint64_t executed = 0;
    while (!stopped && (beginAnother() || !resident.empty())) {
      std::unique_ptr<Cluster> cluster = std::move(resident.front());
      resident.pop_front();
      uint64_t before = cluster->executed();
      bool done = cluster->run(kPatience);
      executed += cluster->executed() - before;
      (done ? idle : resident).push_back(std::move(cluster));
    }
    return executed;
  }

private:
  bool beginAnother() {
    if (!launch.cooperative && resident.size() >= kMostResident)
      return false;
    uint64_t index = next.fetch_add(1);
    if (index >= launch.blocks() / launch.kernel->cluster)
      return false;
    if (idle.empty())
      idle.push_back(std::make_unique<Cluster>(launch));
    resident.push_front(std::move(idle.front()));
    idle.pop_front();
    resident.front()->begin(index);
    return true;
  }

  const Launch &launch;
  std::atomic<uint64_t> &next;
  const std::atomic<bool> &stopped; // by a fault: blocks may wait for one that never ends
  std::list<std::unique_ptr<Cluster>> resident;
  std::list<std::unique_ptr<Cluster>> idle;
};

} // namespace

uint32_t registersAtLaunch(const Launch &launch) {
  constexpr uint32_t kOfBlock = 65536, kOfThread = 256, kUnit = 8;
  uint32_t threads = (launch.threads() + kLanes - 1) / kLanes * kLanes;
  return std::min(kOfBlock / threads, kOfThread) / kUnit * kUnit;
}

uint64_t execute(const Launch &launch) {
  std::atomic<uint64_t> next{0};
  std::atomic<uint64_t> executed{0};
  std::atomic<bool> stopped{false};
  std::mutex mutex;
  std::exception_ptr fault;
  auto work = [&] {
    try {
      executed += Worker(launch, next, stopped).run();
    } catch (...) {
      stopped = true;
      std::lock_guard lock(mutex);
      if (!fault)
        fault = std::current_exception();
    }
  };
  bool large = launch.blocks() > 1 && launch.blocks() * launch.threads() >= kWorthAThread;
  std::thread helper;
  if (large && std::thread::hardware_concurrency() > 1)
    helper = std::thread(work);
  work();
  if (helper.joinable())
    helper.join();
  if (fault)
    std::rethrow_exception(fault);
  return executed;
}

} // namespace hone::emulation
