#include "ctld/sched/fragment.h"

#include <algorithm>
#include <cmath>

#include "common/assert.h"

namespace gantry::sched {
namespace {

bool fits_model(const DeviceNeed& need, std::uint32_t model) {
  return need.models == 0 || ((need.models >> model) & 1) != 0;
}

std::uint32_t rank_of(const std::vector<std::int64_t>& sorted, std::int64_t value) {
  return static_cast<std::uint32_t>(std::upper_bound(sorted.begin(), sorted.end(), value) -
                                    sorted.begin());
}

}  // namespace

std::vector<TypicalNeed> typical_needs(const std::map<DeviceNeed, std::uint64_t>& counts,
                                       double part) {
  std::vector<std::pair<DeviceNeed, std::uint64_t>> by_count(counts.begin(), counts.end());
  std::stable_sort(by_count.begin(), by_count.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::uint64_t all = 0, covered = 0;
  for (const auto& [need, n] : by_count) all += n;
  std::vector<TypicalNeed> typical;
  for (const auto& [need, n] : by_count) {
    if (static_cast<double>(covered) >= part * static_cast<double>(all)) break;
    covered += n;
    typical.push_back({need, static_cast<double>(n)});
  }
  for (TypicalNeed& t : typical) t.frequency /= static_cast<double>(covered);
  return typical;
}

bool has_room(const DeviceRoom& room, const DeviceNeed& need) {
  if (room.cpu < need.cpu || room.memory < need.memory) return false;
  if (need.gpus == 0) return true;
  if (!fits_model(need, room.model)) return false;
  std::uint32_t able = 0;
  for (std::uint32_t i = 0; i < room.devices; ++i) able += room.free[i] >= need.each ? 1 : 0;
  return able >= need.gpus;
}

void take(DeviceRoom& room, const DeviceNeed& need, std::uint32_t device_bits) {
  room.cpu -= need.cpu;
  room.memory -= need.memory;
  for (std::uint32_t i = 0; i < room.devices; ++i)
    if ((device_bits >> i) & 1) {
      GANTRY_ASSERT(room.free[i] >= need.each, "more of a GPU was given than is free");
      room.free[i] = static_cast<std::uint16_t>(room.free[i] - need.each);
    }
}

// ---- Fragmentation

Fragmentation::Fragmentation(std::vector<TypicalNeed> typical) : typical_(std::move(typical)) {
  for (const TypicalNeed& t : typical_) {
    cpus_.push_back(t.need.cpu);
    memories_.push_back(t.need.memory);
  }
  for (auto* sorted : {&cpus_, &memories_}) {
    std::sort(sorted->begin(), sorted->end());
    sorted->erase(std::unique(sorted->begin(), sorted->end()), sorted->end());
  }
}

std::size_t Fragmentation::Hash::operator()(const Signature& s) const {
  std::uint64_t h = 0x9E3779B97F4A7C15ull;
  for (const std::uint64_t v : s) {
    h = (h ^ v) * 0xFF51AFD7ED558CCDull;
    h ^= h >> 32;
  }
  return static_cast<std::size_t>(h);
}

// Devices largest first: which of them is free does not matter.
Fragmentation::Signature Fragmentation::signature(const DeviceRoom& room) const {
  std::array<std::uint16_t, kMostDevices> free = room.free;
  std::sort(free.begin(), free.begin() + room.devices, std::greater<>());
  Signature s{};
  s[0] = (std::uint64_t{room.model} << 48) | (std::uint64_t{room.devices} << 40) |
         (std::uint64_t{rank_of(cpus_, room.cpu)} << 20) | rank_of(memories_, room.memory);
  for (std::uint32_t i = 0; i < room.devices; ++i)
    s[1 + i / 4] |= std::uint64_t{free[i]} << (16 * (i % 4));
  return s;
}

double Fragmentation::count(const DeviceRoom& room) const {
  std::int64_t all = 0;
  for (std::uint32_t i = 0; i < room.devices; ++i) all += room.free[i];
  double amount = 0;
  for (const TypicalNeed& t : typical_) {
    std::int64_t lost = all;
    if (t.need.gpus > 0 && has_room(room, t.need)) {
      lost = 0;
      for (std::uint32_t i = 0; i < room.devices; ++i)
        if (room.free[i] < t.need.each) lost += room.free[i];
    }
    amount += t.frequency * static_cast<double>(lost);
  }
  return amount;
}

double Fragmentation::amount(const DeviceRoom& room) {
  const Signature s = signature(room);
  if (const auto it = known_.find(s); it != known_.end()) return it->second;
  if (known_.size() >= kMaxKnown) known_.clear();
  return known_.emplace(s, count(room)).first->second;
}

std::optional<DeviceChoice> Fragmentation::choose(const DeviceRoom& room, const DeviceNeed& need) {
  if (!has_room(room, need)) return std::nullopt;
  const double before = amount(room);
  const auto rate = [&](std::uint32_t device_bits) {
    DeviceRoom after = room;
    take(after, need, device_bits);
    const double grows = (amount(after) - before) / kWholeGpu;
    return static_cast<int>(std::lround(100.0 / (1.0 + std::exp(grows))));
  };
  if (need.gpus != 1) {
    // Of several GPUs those that are the least too large.
    std::array<std::uint32_t, kMostDevices> order{};
    std::uint32_t able = 0;
    for (std::uint32_t i = 0; i < room.devices; ++i)
      if (room.free[i] >= need.each) order[able++] = i;
    std::stable_sort(order.begin(), order.begin() + able,
                     [&](std::uint32_t a, std::uint32_t b) { return room.free[a] < room.free[b]; });
    std::uint32_t bits = 0;
    for (std::uint32_t k = 0; k < need.gpus; ++k) bits |= 1u << order[k];
    return DeviceChoice{rate(bits), need.gpus > 0 ? order[0] : 0, bits};
  }
  std::optional<DeviceChoice> best;
  for (std::uint32_t i = 0; i < room.devices; ++i) {
    if (room.free[i] < need.each) continue;
    const bool like_before =
        std::find(room.free.begin(), room.free.begin() + i, room.free[i]) != room.free.begin() + i;
    if (like_before) continue;
    const int score = rate(1u << i);
    if (!best || score > best->score) best = DeviceChoice{score, i, 1u << i};
  }
  return best;
}

// ---- FragmentPlacer

FragmentPlacer::FragmentPlacer(Fragmentation fragmentation, std::vector<DeviceRoom> nodes)
    : fragmentation_(std::move(fragmentation)),
      nodes_(std::move(nodes)),
      versions_(nodes_.size(), 1) {}

std::optional<FragmentPlacer::Placed> FragmentPlacer::place(const DeviceNeed& need) {
  if (known_.size() >= kMaxNeeds && !known_.contains(need)) known_.clear();
  auto& known = known_[need];
  known.resize(nodes_.size());
  std::optional<std::uint32_t> best;
  for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
    if (known[n].version != versions_[n])
      known[n] = {versions_[n], fragmentation_.choose(nodes_[n], need)};
    const auto& choice = known[n].choice;
    if (choice && (!best || choice->score > known[*best].choice->score)) best = n;
  }
  if (!best) return std::nullopt;
  const Placed placed{*best, known[*best].choice->device_bits};
  take(nodes_[*best], need, placed.device_bits);
  ++versions_[*best];
  return placed;
}

void FragmentPlacer::give_back(const DeviceNeed& need, const Placed& placed) {
  DeviceRoom& room = nodes_[placed.node];
  room.cpu += need.cpu;
  room.memory += need.memory;
  for (std::uint32_t i = 0; i < room.devices; ++i)
    if ((placed.device_bits >> i) & 1)
      room.free[i] = static_cast<std::uint16_t>(room.free[i] + need.each);
  ++versions_[placed.node];
}

}  // namespace gantry::sched
