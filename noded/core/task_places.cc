#include "noded/core/task_places.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <set>

namespace gantry::node {

namespace {

using Set = std::vector<std::uint16_t>;

std::string_view word_of(TaskBind::Kind kind) {
  switch (kind) {
    case TaskBind::Kind::none: return "NONE";
    case TaskBind::Kind::rank: return "RANK";
    case TaskBind::Kind::map: return "MAP";
    case TaskBind::Kind::local: return "LOC";
    default: return "MASK";
  }
}

std::string hex_mask(const Set& set) {
  const std::size_t digits = set.empty() ? 1 : std::size_t{*std::ranges::max_element(set)} / 4 + 1;
  std::string out(digits, '0');
  for (const std::uint16_t bit : set) {
    char& digit = out[digits - 1 - bit / 4];
    const int value = (digit <= '9' ? digit - '0' : digit - 'a' + 10) | 1 << bit % 4;
    digit = "0123456789abcdef"[value];
  }
  return out;
}

Set usual_cpus(const StepHere& here, std::size_t task) {
  const std::size_t share = here.cpus.size() / std::max<std::size_t>(here.ranks.size(), 1);
  if (!here.bind_tasks || share == 0) return here.cpus;
  const auto first = here.cpus.begin() + static_cast<std::ptrdiff_t>(share * task);
  return {first, first + static_cast<std::ptrdiff_t>(share)};
}

// The step's CPUs that are in the same place (core, socket or NUMA node) as one of `own`.
template <class Place>
Set widened(const Set& own, const StepHere& here, const std::map<std::uint16_t, Place>& place_of) {
  std::set<Place> places;
  for (const std::uint16_t cpu : own)
    if (const auto at = place_of.find(cpu); at != place_of.end()) places.insert(at->second);
  Set out;
  for (const std::uint16_t cpu : here.cpus)
    if (const auto at = place_of.find(cpu); at != place_of.end() && places.contains(at->second))
      out.push_back(cpu);
  return out.empty() ? own : out;
}

Result<Set> cpus_of(const TaskBind& bind, const StepHere& here, std::size_t task) {
  Set all = here.cpus;
  std::ranges::sort(all);
  switch (bind.kind) {
    case TaskBind::Kind::none: return all;
    case TaskBind::Kind::rank: return all.empty() ? all : Set{all[task % all.size()]};
    case TaskBind::Kind::socket: return widened(usual_cpus(here, task), here, here.sockets);
    case TaskBind::Kind::numa: return widened(usual_cpus(here, task), here, here.numa);
    case TaskBind::Kind::map:
    case TaskBind::Kind::mask: {
      const Set& asked = bind.sets[task % bind.sets.size()];
      for (const std::uint16_t cpu : asked)
        if (!all.empty() && !std::ranges::binary_search(all, cpu))
          return fail(ErrorCode::invalid_argument,
                      fmt::format("--cpu-bind binds task {} to CPU {} of node {}, which the step "
                                  "does not have there",
                                  here.ranks[task], cpu, here.node));
      return asked;
    }
    default: return usual_cpus(here, task);
  }
}

Result<Set> mems_of(const TaskBind& bind, const StepHere& here, const Set& cpus, std::size_t task) {
  std::set<std::uint16_t> all, own;
  for (const auto& [cpu, node] : here.numa) {
    all.insert(node);
    if (std::ranges::find(cpus, cpu) != cpus.end()) own.insert(node);
  }
  switch (bind.kind) {
    case TaskBind::Kind::local: return Set(own.begin(), own.end());
    case TaskBind::Kind::rank: {
      if (all.empty()) return Set{};
      return Set{*std::next(all.begin(), static_cast<std::ptrdiff_t>(task % all.size()))};
    }
    case TaskBind::Kind::map:
    case TaskBind::Kind::mask: {
      const Set& asked = bind.sets[task % bind.sets.size()];
      for (const std::uint16_t node : asked)
        if (!all.contains(node))
          return fail(ErrorCode::invalid_argument,
                      fmt::format("--mem-bind binds task {} to NUMA node {} of node {}, which has "
                                  "none of this number",
                                  here.ranks[task], node, here.node));
      return asked;
    }
    default: return Set{};
  }
}

std::string note(std::string_view what, const TaskBind& bind, const StepHere& here,
                 std::size_t task, const Set& set) {
  return fmt::format("{}-bind={} - {}, task {:>2} {:>2} [{{pid}}]: mask 0x{} set\n", what,
                     word_of(bind.kind), here.node, here.ranks[task], task, hex_mask(set));
}

// The sockets that still have cores; tasks take cores from them in turn.
class Sockets {
 public:
  Sockets(const std::vector<std::uint16_t>& cores,
          const std::map<std::uint16_t, std::uint32_t>& socket_of) {
    std::map<std::uint32_t, std::deque<std::uint16_t>> of;
    for (const std::uint16_t core : cores) {
      const auto it = socket_of.find(core);
      of[it == socket_of.end() ? 0 : it->second].push_back(core);
    }
    for (auto& [socket, list] : of) left_.push_back(std::move(list));
  }

  // Takes `count` cores of the next socket that has that many; if none has, takes cores from the
  // next sockets.
  void take(std::size_t count, std::vector<std::uint16_t>& out) {
    const auto many = [&](const auto& socket) { return socket.size() >= count; };
    const auto some = [](const auto& socket) { return !socket.empty(); };
    if (std::ranges::any_of(left_, many))
      while (!many(left_.front())) turn();
    while (count > 0 && std::ranges::any_of(left_, some)) {
      auto& socket = left_.front();
      for (; count > 0 && !socket.empty(); --count) {
        out.push_back(socket.front());
        socket.pop_front();
      }
      turn();
    }
  }

 private:
  void turn() { std::rotate(left_.begin(), left_.begin() + 1, left_.end()); }
  std::vector<std::deque<std::uint16_t>> left_;  // the first socket is the next one to be used
};

}  // namespace

Result<TaskPlaces> task_places(const TaskBind& cpu, const TaskBind& mem, const StepHere& here) {
  TaskPlaces out;
  for (std::size_t task = 0; task < here.ranks.size(); ++task) {
    ASSIGN(cpus, cpus_of(cpu, here, task));
    ASSIGN(mems, mems_of(mem, here, *cpus, task));
    std::string said;
    if (cpu.verbose) said += note("cpu", cpu, here, task, *cpus);
    if (mem.verbose) said += note("mem", mem, here, task, *mems);
    out.notes.push_back(std::move(said));
    out.cpus.push_back(std::move(*cpus));
    out.mems.push_back(std::move(*mems));
  }
  return out;
}

std::vector<std::uint16_t> order_cores(CoreOrder order, std::vector<std::uint16_t> cores,
                                       const std::map<std::uint16_t, std::uint32_t>& socket_of,
                                       std::size_t tasks) {
  if (order == CoreOrder::block || tasks == 0 || cores.size() < tasks) return cores;
  const std::size_t share = order == CoreOrder::fcyclic ? 1 : cores.size() / tasks;
  const std::size_t all = cores.size();
  Sockets sockets(cores, socket_of);
  cores.clear();
  while (cores.size() < all) sockets.take(std::min(share, all - cores.size()), cores);
  return cores;
}

}  // namespace gantry::node
