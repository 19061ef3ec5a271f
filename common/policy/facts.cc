#include "common/policy/facts.h"

#include <algorithm>

#include <fmt/core.h>
#include <fmt/ranges.h>

namespace gantry::policy {
namespace {

std::string flag(bool value) {
  return value ? "true" : "false";
}

std::string memory_of(const JobShape& shape) {
  if (shape.memory_per_node) return std::to_string(*shape.memory_per_node);
  if (!shape.memory_per_cpu) return {};
  const std::uint32_t nodes = std::max(shape.min_nodes, 1u);
  const std::uint32_t tasks = (std::max(shape.tasks, nodes) + nodes - 1) / nodes;
  return std::to_string(*shape.memory_per_cpu *
                        static_cast<std::int64_t>(shape.cores_on_node(tasks)));
}

std::uint64_t tasks_of(const std::optional<ArraySpec>& array) {
  std::uint64_t out = 0;
  if (array)
    for (const IndexRange& range : array->ranges)
      if (range.step > 0 && range.first <= range.last)
        out += (range.last - range.first) / range.step + 1;
  return out;
}

std::string licenses_of(const JobShape& shape) {
  std::vector<std::string> out;
  for (const GresCount& one : shape.licenses)
    out.push_back(fmt::format("{}:{}", one.name, one.count));
  return fmt::format("{}", fmt::join(out, ","));
}

}  // namespace

bool is_label_key(std::string_view text) {
  constexpr std::size_t kMost = 63;
  return !text.empty() && text.size() <= kMost && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == '/';
  });
}

const FactRow* find_fact(std::string_view name) {
  const auto it = std::find_if(kFacts.begin(), kFacts.end(),
                               [&](const FactRow& row) { return row.name == name; });
  return it == kFacts.end() ? nullptr : &*it;
}

std::optional<Measure> measure_of(std::string_view name) {
  if (name.starts_with(kLabelFact) && name.size() > kLabelFact.size()) return Measure::text;
  const FactRow* row = find_fact(name);
  if (row == nullptr) return std::nullopt;
  return row->measure;
}

Facts facts_of(const JobSpec& spec, const Standing& standing) {
  const JobShape& shape = spec.shape;
  const std::uint64_t nodes = std::max(shape.min_nodes, 1u);
  const std::uint64_t gpus =
      shape.gpu_share != 0 ? nodes : shape.gpus_of(static_cast<std::uint32_t>(nodes));
  Facts out{
      {"account", spec.account},
      {"array_tasks", std::to_string(tasks_of(spec.array))},
      {"class", standing.priority_class},
      {"comment", spec.comment},
      {"constraint", shape.constraint},
      {"cpus", std::to_string(shape.least_cores())},
      {"exclusive", flag(shape.exclusive)},
      {"gpu_model", fmt::format("{}", fmt::join(shape.gpu_models, ","))},
      {"gpu_slice", shape.gpu_slice},
      {"gpus", std::to_string(gpus)},
      {"image", spec.container.image},
      {"interactive", flag(spec.kind == JobKind::allocation)},
      {"licenses", licenses_of(shape)},
      {"memory", memory_of(shape)},
      {"mounts", fmt::format("{}", fmt::join(spec.container.mounts, ","))},
      {"name", spec.name},
      {"network", spec.network ? std::string(enum_name(*spec.network)) : std::string()},
      {"network_profile", spec.network_profile},
      {"nodes", std::to_string(nodes)},
      {"partition", standing.partition},
      {"reservation", spec.reservation},
      {"sandbox", std::string(enum_name(spec.sandbox.value_or(Sandbox::standard)))},
      {"tenant", standing.tenant},
      {"time", standing.time_limit ? std::to_string(standing.time_limit->seconds()) : ""},
      {"type", spec.work_type ? std::string(enum_name(*spec.work_type)) : std::string()},
      {"user", standing.user},
      {"wckey", spec.wckey},
  };
  for (const auto& [key, value] : spec.labels) out.emplace(std::string(kLabelFact) + key, value);
  return out;
}

std::optional<std::string_view> value_of(const Facts& facts, std::string_view name) {
  const auto it = facts.find(name);
  if (it != facts.end()) return it->second;
  if (name.starts_with(kLabelFact) && facts.contains("wckey")) return "";
  return std::nullopt;
}

}  // namespace gantry::policy
