// Lookups of State and its smaller tables.
#include "ctld/core/state/state.h"

#include <algorithm>
#include <functional>

#include <fmt/core.h>

#include "ctld/sched/change.h"
#include "ctld/store/store.h"

namespace gantry::core {

ClassId ClassTable::add(const sched::ClassKey& key) {
  if (const auto it = ids_.find(key); it != ids_.end()) {
    ++classes_[it->second.value()].users;
    return it->second;
  }
  ClassId id;
  if (free_.empty()) {
    id = ClassId(static_cast<std::uint32_t>(classes_.size()));
    classes_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  classes_[id.value()] = JobClass{key, 1, ++last_number_};
  ids_.emplace(key, id);
  return id;
}

void ClassTable::drop(ClassId id) {
  JobClass& cls = classes_[id.value()];
  GANTRY_ASSERT(cls.users > 0, "a class dropped more often than added");
  if (--cls.users > 0) return;
  ids_.erase(cls.key);
  cls = JobClass{};
  free_.push_back(id);
}

bool BlobUses::add(const store::Digest& digest, Uid user) {
  Uses& uses = uses_[digest];
  const auto at = std::lower_bound(uses.begin(), uses.end(), std::pair{user, std::uint32_t{0}});
  if (at != uses.end() && at->first == user) {
    ++at->second;
    return false;
  }
  uses.insert(at, {user, 1});
  return true;
}

bool BlobUses::used_by(const store::Digest& digest, Uid user) const {
  const auto it = uses_.find(digest);
  if (it == uses_.end()) return false;
  const auto at =
      std::lower_bound(it->second.begin(), it->second.end(), std::pair{user, std::uint32_t{0}});
  return at != it->second.end() && at->first == user;
}

bool BlobUses::drop(const store::Digest& digest, Uid user) {
  const auto it = uses_.find(digest);
  GANTRY_ASSERT(it != uses_.end(), "a blob dropped more often than added");
  Uses& uses = it->second;
  const auto at = std::lower_bound(uses.begin(), uses.end(), std::pair{user, std::uint32_t{0}});
  GANTRY_ASSERT(at != uses.end() && at->first == user, "a blob dropped by who never used it");
  if (--at->second > 0) return false;
  uses.erase(at);
  if (!uses.empty()) return true;
  uses_.erase(it);
  unused_.push_back(digest);
  return true;
}

std::vector<store::Digest> BlobUses::take_unused() {
  std::vector<store::Digest> out;
  out.swap(unused_);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  std::erase_if(out,
                [this](const store::Digest& d) { return known(d); });  // used again in the meantime
  return out;
}

const Node* State::node_named(std::string_view name) const {
  const auto it = node_ids.find(std::string(name));
  return it == node_ids.end() ? nullptr : &node(it->second);
}

std::vector<PartitionId> State::queues_of_tenant(const std::string& tenant) const {
  std::vector<PartitionId> out;
  if (const auto own = partition_ids.find(tenant); own != partition_ids.end())
    out.push_back(own->second);
  if (const auto parts = parts_of_tenants.find(tenant); parts != parts_of_tenants.end())
    out.insert(out.end(), parts->second.begin(), parts->second.end());
  return out;
}

QueueCounts State::tenant_counts(const std::string& tenant) const {
  QueueCounts sum;
  for (const PartitionId id : queues_of_tenant(tenant)) {
    const QueueCounts part = queue_counts(id);
    sum.queued += part.queued;
    sum.active += part.active;
  }
  return sum;
}

std::uint64_t State::tenant_queued(const std::string& tenant, Uid uid) const {
  std::uint64_t sum = 0;
  for (const PartitionId id : queues_of_tenant(tenant))
    if (const auto own = user_queued.find({id, uid}); own != user_queued.end()) sum += own->second;
  return sum;
}

const Partition* State::partition_named(std::string_view name) const {
  if (name.find('/') != std::string_view::npos) return nullptr;
  const auto it = partition_ids.find(std::string(name));
  return it == partition_ids.end() ? nullptr : &partition(it->second);
}

std::uint64_t request_key(Uid uid, std::string_view request_id) {
  const std::size_t hash = std::hash<std::string_view>{}(request_id);
  return hash ^ (static_cast<std::uint64_t>(uid.value()) * 0x9E3779B97F4A7C15ull);
}

std::string display_id(const State& state, const Job& job) {
  if (const auto& het = class_of(state, job).het)
    return fmt::format("{}+{}", het->leader.value(), het->offset);
  if (job.is_element()) return fmt::format("{}_{}", job.array.value(), job.task);
  return fmt::format("{}", job.id.value());
}

}  // namespace gantry::core
