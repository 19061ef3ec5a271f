#include "common/tenancy_cluster.h"

namespace gantry::tenancy {

std::string_view kind_of(const Document& document) {
  return std::visit([](const auto& d) { return std::decay_t<decltype(d)>::kName; }, document);
}

const std::string& name_of(const Document& document) {
  return std::visit([](const auto& d) -> const std::string& { return d.name; }, document);
}

}  // namespace gantry::tenancy
