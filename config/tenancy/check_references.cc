#include "config/tenancy/check_references.h"

#include <fmt/core.h>

#include <algorithm>

#include "config/nearest.h"

namespace gantry::tenancy {

Found References::problem(std::string path, std::string what) const {
  return Problem{std::string(kind_of(*current_)), name_of(*current_), std::move(path),
                 std::move(what)};
}

bool References::exists(std::string_view kind, const std::string& name) const {
  if (kind == PriorityClass::kName &&
      std::find(kBuiltInClasses.begin(), kBuiltInClasses.end(), name) != kBuiltInClasses.end())
    return true;
  const auto names = names_.find(std::string(kind));
  return names != names_.end() && names->second.contains(name);
}

Found References::refer(std::string_view kind, const std::string& name,
                        const std::string& path) const {
  if (name.empty() || exists(kind, name)) return std::nullopt;
  std::vector<std::string_view> known;
  if (const auto names = names_.find(std::string(kind)); names != names_.end())
    known.assign(names->second.begin(), names->second.end());
  if (kind == kind_of(*current_)) std::erase(known, name_of(*current_));
  if (kind == PriorityClass::kName)
    known.insert(known.end(), kBuiltInClasses.begin(), kBuiltInClasses.end());
  return problem(path, fmt::format("there is no {} `{}`{}", kind, name, did_you_mean(name, known)));
}

}  // namespace gantry::tenancy
