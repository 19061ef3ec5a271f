#include "ctld/sched/queue/request_keys.h"

namespace gantry::sched {
namespace {

constexpr std::uint32_t kUnknown = ~std::uint32_t{0};

std::uint64_t hash_of(const Bits& bits) {
  std::uint64_t h = bits.words();
  for (std::size_t w = 0; w < bits.words(); ++w)
    h = (h ^ bits.word(w)) * 0x9E3779B97F4A7C15ull, h ^= h >> 29;
  return h;
}

}  // namespace

void RequestKeys::begin(std::uint64_t generation) {
  if (generation == generation_) return;
  *this = RequestKeys{};
  generation_ = generation;
}

std::uint32_t RequestKeys::nodes_of(std::uint32_t node_set, const Bits& nodes) {
  if (nodes_by_set_.size() <= node_set) nodes_by_set_.resize(node_set + 1, kUnknown);
  std::uint32_t& number = nodes_by_set_[node_set];
  if (number != kUnknown) return number;
  const std::uint64_t hash = hash_of(nodes);
  for (auto [it, end] = by_hash_.equal_range(hash); it != end; ++it)
    if (nodes_[it->second] == nodes) return number = it->second;
  number = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back(nodes);
  by_hash_.emplace(hash, number);
  return number;
}

std::uint32_t RequestKeys::number_of(std::uint32_t nodes, const Demand& d,
                                     std::optional<Duration> limit, const QuotaNeed& need) {
  const Key key{nodes,           d.min_nodes,     d.max_nodes,     d.tasks,
                d.most_per_node, d.cpus_per_task, d.least_cpus,    d.overcommit,
                d.memory_rule,   d.memory,        d.scratch,       d.gpus,
                d.exclusive,     d.all_gpus,      d.gres,          d.io,
                d.net,           d.gpus_per_task, d.memory_per_gpu};
  const std::uint32_t demand_id =
      demand_ids_.emplace(key, static_cast<std::uint32_t>(demand_ids_.size())).first->second;
  const auto [it, made] =
      by_key_.try_emplace({demand_id, need.flavor, limit ? limit->us : kUnlimited},
                          static_cast<std::uint32_t>(requests_.size()));
  if (made) requests_.push_back({demand_id, nodes, d, limit, need, false, {}});
  return it->second;
}

void RequestKeys::forget_failures() {
  for (RequestKey& w : requests_) w.failed = false;
  for (auto& failures : failures_) failures.clear();
}

namespace {

bool ends_no_sooner(const RequestKey& a, const RequestKey& b) {
  return !a.limit || (b.limit && *a.limit >= *b.limit);
}

}  // namespace

void RequestKeys::failed(std::uint32_t request, Place place) {
  RequestKey& own = requests_[request];
  own.failed_at = own.failed ? std::max(own.failed_at, place) : place;
  own.failed = true;
  ++count_;
  if (failures_.size() <= own.nodes) failures_.resize(own.nodes + 1);
  auto& failures = failures_[own.nodes];
  std::erase_if(failures, [&](std::uint32_t f) {
    const RequestKey& other = requests_[f];
    return !other.failed || (other.failed_at <= own.failed_at && ends_no_sooner(other, own) &&
                             asks_no_less(other.demand, own.demand));
  });
  if (failures.size() < kMaxFailures) failures.push_back(request);
}

bool RequestKeys::known_to_fail(std::uint32_t request, Place place) {
  RequestKey& own = requests_[request];
  if (fails(request, place)) return true;
  if (own.nodes >= failures_.size()) return false;
  for (const std::uint32_t f : failures_[own.nodes]) {
    const RequestKey& other = requests_[f];
    if (!fails(f, place) || !ends_no_sooner(own, other) || !asks_no_less(own.demand, other.demand))
      continue;
    own.failed_at = own.failed ? std::max(own.failed_at, other.failed_at) : other.failed_at;
    own.failed = true;
    ++count_;
    return true;
  }
  return false;
}

}  // namespace gantry::sched
