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

}  // namespace gantry::tenancy
