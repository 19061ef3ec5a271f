#include "ctld/replay/fair.h"

#include <algorithm>
#include <numeric>

#include "ctld/sched/tenancy.h"

namespace gantry::replay {

std::vector<double> pour(const std::vector<double>& demands, const std::vector<double>& bases,
                         const std::vector<double>& weights, double amount) {
  const std::size_t n = demands.size();
  std::vector<double> out(n);
  double first = 0;
  for (std::size_t i = 0; i < n; ++i) first += out[i] = std::min(demands[i], bases[i]);
  if (first > amount) {  // the guarantees exceed the cluster, so all shrink in proportion
    for (double& x : out) x *= amount / first;
    return out;
  }
  double rest = amount - first;
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < n; ++i)
    if (demands[i] > out[i] && weights[i] > 0) open.push_back(i);
  const auto full_at = [&](std::size_t i) { return (demands[i] - out[i]) / weights[i]; };
  std::sort(open.begin(), open.end(), [&](std::size_t a, std::size_t b) {
    return std::pair{full_at(a), a} < std::pair{full_at(b), b};
  });
  double weight = 0;
  for (const std::size_t i : open) weight += weights[i];
  for (const std::size_t i : open) {  // the child whose demand is met first comes first
    const double more = std::min(demands[i] - out[i], rest * weights[i] / weight);
    out[i] += more;
    rest -= more;
    weight -= weights[i];
  }
  return out;
}

FairShares::FairShares(sched::TenancyPtr tenancy, std::vector<std::uint32_t> nodes,
                       Resource resource, std::int64_t scale, double total)
    : total_(total) {
  const sched::QuotaTree tree(tenancy);
  const auto r = static_cast<std::size_t>(resource);
  const auto units = [&](std::int64_t amount) {
    return amount >= sched::kUnlimited / 2
               ? total
               : static_cast<double>(amount) / static_cast<double>(scale);
  };
  for (std::uint32_t n = 0; n < tree.size(); ++n) {
    const sched::QuotaNode& q = tenancy->nodes[n];
    Node node;
    node.base = units(tree.subtree(n, 0, resource));
    node.limit = node.base + units(q.limits[0].borrow[r]);
    node.kept = std::min(node.base, units(tree.local(n, 0, resource)));
    node.weight = static_cast<double>(q.weight) / 1000;
    nodes_.push_back(node);
    (q.parent == sched::kNoIndex ? tops_ : nodes_[q.parent].children).push_back(n);
  }
  for (std::size_t t = 0; t < nodes.size(); ++t) {
    const bool known = nodes[t] != sched::kNoIndex;
    const std::size_t at = known ? nodes[t] : nodes_.size();
    if (!known) {
      nodes_.push_back({});
      nodes_.back().limit = total;
      tops_.push_back(at);
    }
    nodes_[at].leaf = true;
    nodes_[at].tenant = t;
    limited_.push_back(known && tree.subtree(nodes[t], 0, resource) < sched::kUnlimited / 2);
    nominal_.push_back(known ? nodes_[at].base : 0);
  }
}

double FairShares::demand_of(std::size_t n, const std::vector<double>& demands,
                             std::vector<double>& of_nodes) const {
  const Node& node = nodes_[n];
  double sum = node.leaf ? demands[node.tenant] : 0;
  for (const std::size_t child : node.children) sum += demand_of(child, demands, of_nodes);
  return of_nodes[n] = std::min(sum, node.limit);
}

void FairShares::give(const std::vector<std::size_t>& nodes, double amount,
                      const std::vector<double>& of_nodes, std::vector<double>& out) const {
  std::vector<double> demands, bases, weights;
  for (const std::size_t n : nodes) {
    demands.push_back(of_nodes[n]);
    bases.push_back(nodes_[n].base);
    weights.push_back(nodes_[n].weight);
    amount -= std::max(0.0, nodes_[n].kept - of_nodes[n]);
  }
  const std::vector<double> parts = pour(demands, bases, weights, std::max(0.0, amount));
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes_[nodes[i]];
    if (node.leaf)
      out[node.tenant] = parts[i];
    else
      give(node.children, parts[i], of_nodes, out);
  }
}

std::vector<double> FairShares::divide(const std::vector<double>& demands) const {
  std::vector<double> of_nodes(nodes_.size(), 0), out(nominal_.size(), 0);
  for (const std::size_t n : tops_) demand_of(n, demands, of_nodes);
  give(tops_, total_, of_nodes, out);
  return out;
}

}  // namespace gantry::replay
