#include "common/tenancy/tenancy_cluster.h"

namespace gantry::tenancy {

std::string_view kind_of(const Document& document) {
  return std::visit([](const auto& d) { return std::decay_t<decltype(d)>::kName; }, document);
}

const std::string& name_of(const Document& document) {
  return std::visit([](const auto& d) -> const std::string& { return d.name; }, document);
}

std::vector<PriorityClass> built_in_classes() {
  PriorityClass critical, normal, best_effort;
  critical.name = "production-critical";
  critical.value = 1000;
  critical.description = "Production that cannot wait: may take from lower classes";
  critical.preempts = true;
  critical.preemptible = false;
  normal.name = "normal";
  normal.value = 500;
  normal.description = "Everything that says nothing else";
  normal.is_default = true;
  best_effort.name = "best-effort";
  best_effort.value = 100;
  best_effort.description = "Runs on what is idle, and leaves first";
  return {normal, critical, best_effort};
}

std::vector<std::string> projects_above(const std::vector<Project>& projects,
                                        const std::string& name) {
  std::vector<std::string> out;
  const auto parent_of = [&](const std::string& of) -> std::string {
    for (const Project& p : projects)
      if (p.name == of) return p.parent;
    return "";
  };
  for (std::string at = parent_of(name); !at.empty() && out.size() < projects.size();
       at = parent_of(at))
    out.push_back(at);
  return out;
}

GANTRY_DEFINE_SPECIAL_MEMBERS(Document)
GANTRY_DEFINE_SPECIAL_MEMBERS(Tenant)
GANTRY_DEFINE_SPECIAL_MEMBERS(Service)
GANTRY_DEFINE_SPECIAL_MEMBERS(ServiceVersion)
GANTRY_DEFINE_SPECIAL_MEMBERS(Policy)
GANTRY_DEFINE_SPECIAL_MEMBERS(NodePool)
GANTRY_DEFINE_SPECIAL_MEMBERS(PriceBook)
GANTRY_DEFINE_SPECIAL_MEMBERS(Budget)

}  // namespace gantry::tenancy
