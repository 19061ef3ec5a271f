#include "ctld/sched/tenant/charges.h"

#include <algorithm>

namespace gantry::sched {

Charges::Charges()
    : tenancy_(std::make_shared<const Tenancy>()), tree_(std::make_unique<QuotaTree>(tenancy_)) {}

void Charges::tenancy_changed(TenancyPtr tenancy) {
  tenancy_ = std::move(tenancy);
  stale_ = true;
}

void Charges::partition_changed(const PartitionChanged& partition) {
  const std::uint32_t id = partition.partition.value();
  if (tenants_.size() <= id) tenants_.resize(id + 1, kNoIndex);
  stale_ |= tenants_[id] != partition.quota_node;
  tenants_[id] = partition.quota_node;
}

void Charges::node_changed(const NodeChanged& node) {
  const std::uint32_t n = node.node.value();
  if (flavors_.size() <= n) flavors_.resize(n + 1, 0);
  stale_ |= flavors_[n] != node.flavor;
  flavors_[n] = node.flavor;
}

void Charges::place(const JobPlaced& job) {
  if (const auto old = held_.find(job.job); old != held_.end()) {
    const std::vector<Part> parts = old->second.parts;
    for (const Part& part : parts) release(job.job, part.node);
  }
  if (job.grants.empty()) return;
  Held held;
  held.partition = job.partition;
  held.ends_by = job.ends_by;
  held.parts.reserve(job.grants.size());
  for (const NodeGrant& g : job.grants)
    held.parts.push_back({g.node, flavor(g.node.value()), amount_of(g)});
  Held& kept = held_.emplace(job.job, std::move(held)).first->second;
  if (!stale_) charge(job.job, kept);
}

void Charges::charge(JobId job, Held& held) {
  held.tenant = quota_node(held.partition);
  if (held.tenant == kNoIndex) return;
  for (Part& part : held.parts) {
    if (part.flavor >= tenancy_->flavors.size()) part.flavor = 0;
    tree_->add(held.tenant, {part.flavor, part.amount});
  }
  held.at = jobs_of_[held.tenant].size();
  jobs_of_[held.tenant].push_back({job, held.ends_by});
  busy_.insert(held.tenant);
}

void Charges::release(JobId job, NodeId node) {
  const auto it = held_.find(job);
  if (it == held_.end()) return;
  Held& held = it->second;
  const auto part = std::find_if(held.parts.begin(), held.parts.end(),
                                 [&](const Part& p) { return p.node == node; });
  if (part == held.parts.end()) return;
  if (!stale_ && held.tenant != kNoIndex) tree_->remove(held.tenant, {part->flavor, part->amount});
  held.parts.erase(part);
  if (!held.parts.empty()) return;
  if (!stale_ && held.tenant != kNoIndex) leave_list(held);
  held_.erase(it);
}

void Charges::set_end(JobId job, std::optional<Instant> ends_by) {
  const auto it = held_.find(job);
  if (it == held_.end()) return;
  Held& held = it->second;
  held.ends_by = ends_by;
  if (!stale_ && held.tenant != kNoIndex) jobs_of_[held.tenant][held.at].ends_by = ends_by;
}

void Charges::leave_list(Held& held) {
  auto& list = jobs_of_[held.tenant];
  list[held.at] = list.back();
  held_.at(list[held.at].job).at = held.at;
  list.pop_back();
  if (list.empty()) busy_.erase(held.tenant);
}

void Charges::settle() {
  if (stale_) count_anew();
}

void Charges::count_anew() {
  tree_ = std::make_unique<QuotaTree>(tenancy_);
  const std::size_t nodes = tenancy_->nodes.size();
  jobs_of_.assign(nodes, {});
  busy_.clear();
  for (std::uint32_t& tenant : tenants_)
    if (tenant >= nodes) tenant = kNoIndex;  // the change of its partition will come later
  std::vector<JobId> jobs;
  jobs.reserve(held_.size());
  for (const auto& [job, held] : held_) jobs.push_back(job);
  std::sort(jobs.begin(), jobs.end());
  for (const JobId job : jobs) {
    Held& held = held_.at(job);
    for (Part& part : held.parts) part.flavor = flavor(part.node.value());
    charge(job, held);
  }
  stale_ = false;
}

std::vector<std::uint32_t> Charges::busy_below(std::uint32_t node) const {
  std::vector<std::uint32_t> below;
  for (const std::uint32_t tenant : busy_) {
    std::uint32_t n = tenant;
    while (n != node && n != kNoIndex) n = tenancy_->nodes[n].parent;
    if (n == node) below.push_back(tenant);
  }
  return below;
}

std::vector<QuotaNeed> Charges::needs_of(JobId job) const {
  std::vector<QuotaNeed> needs;
  const auto it = held_.find(job);
  if (it == held_.end()) return needs;
  for (const Part& part : it->second.parts) {
    const auto same = std::find_if(needs.begin(), needs.end(),
                                   [&](const QuotaNeed& n) { return n.flavor == part.flavor; });
    if (same == needs.end())
      needs.push_back({part.flavor, part.amount});
    else
      same->amount += part.amount;
  }
  return needs;
}

std::string Charges::audit() const {
  if (stale_) return "";
  std::vector<std::pair<std::uint32_t, QuotaNeed>> uses;
  std::size_t listed = 0, charged = 0;
  for (const auto& [job, held] : held_) {
    if (held.tenant == kNoIndex) continue;
    ++charged;
    const RunningJob& listed_as = jobs_of_[held.tenant][held.at];
    if (listed_as.job != job || listed_as.ends_by != held.ends_by)
      return "a job is lost in its tenant's list";
    for (const Part& part : held.parts)
      uses.emplace_back(held.tenant, QuotaNeed{part.flavor, part.amount});
  }
  for (std::uint32_t t = 0; t < jobs_of_.size(); ++t) {
    listed += jobs_of_[t].size();
    if (jobs_of_[t].empty() == busy_.contains(t)) return "which tenants have running jobs";
  }
  if (listed != charged) return "tenants' lists of running jobs";
  return tree_->audit(uses);
}

}  // namespace gantry::sched
