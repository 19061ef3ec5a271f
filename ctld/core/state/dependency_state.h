// A dependency of a job, and whether it is met. Part of a Job (job.h) and of its record.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "common/fields.h"
#include "common/job/job_spec.h"

namespace gantry::core {

enum class DependencyStatus : std::uint8_t { open = 0, met = 1, never = 2 };
constexpr auto enum_names(DependencyStatus) {
  using enum DependencyStatus;
  return std::array<std::pair<DependencyStatus, std::string_view>, 3>{
      {{open, "open"}, {met, "met"}, {never, "never"}}};
}

struct DependencyState {
  Dependency what;
  DependencyStatus status = DependencyStatus::open;
  GANTRY_FIELDS(FIELD(1, what), FIELD(2, status))
};

struct Dependencies {
  std::vector<DependencyState> list;
  bool any = false;  // one met dependency is enough
  bool cancel_on_never = true;
  GANTRY_FIELDS(FIELD(1, list), FIELD(2, any), FIELD(3, cancel_on_never))
};

}  // namespace gantry::core
