#include "ctld/core/resources/licenses.h"

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "common/assert.h"
#include "common/text/text.h"
#include "ctld/core/state/mutable_state.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

std::uint32_t free_of(const License& license) {
  return license.total - std::min(license.total, license.used);
}

std::uint32_t free_of(const State& state, const std::string& name) {
  const auto it = state.licenses.find(name);
  return it == state.licenses.end() ? 0 : free_of(it->second);
}

// Touches waiting jobs for which the change matters: a single job if it may start now and could not
// before, or the reverse; an array in any case, because the number of tasks that may start changes.
void touch_waiting(MutableState& state, const License& license, std::uint32_t before) {
  const std::uint32_t now = free_of(license);
  const auto [low, high] = std::minmax(before, now);
  for (const auto& [asked, id] : license.waiting) {
    if (asked > high) break;
    if (asked > low || state.jobs.at(id).is_array()) state.touched.jobs.push_back(id);
  }
}

}  // namespace

Result<void> check_licenses(const State& state, const JobShape& shape) {
  for (const GresCount& g : shape.licenses) {
    const auto it = state.licenses.find(g.name);
    if (it == state.licenses.end() || it->second.total == 0)
      return fail(ErrorCode::invalid_argument,
                  fmt::format("there is no licence \"{}\" in this cluster", g.name));
    if (g.count > it->second.total)
      return fail(ErrorCode::never_fits, fmt::format("{} licences of {} asked; the cluster has {}",
                                                     g.count, g.name, it->second.total));
  }
  return {};
}

bool licenses_free(const State& state, const JobShape& shape) {
  return std::all_of(shape.licenses.begin(), shape.licenses.end(),
                     [&](const GresCount& g) { return g.count <= free_of(state, g.name); });
}

std::uint32_t licensed_starts(const State& state, const Job& job) {
  std::uint32_t starts = UINT32_MAX;
  for (const GresCount& g : class_of(state, job).shape.licenses)
    starts = std::min(starts, free_of(state, g.name) / g.count);
  return starts;
}

std::optional<Verdict> verdict_of_licenses(const State& state, const Job& job) {
  for (const GresCount& g : class_of(state, job).shape.licenses)
    if (const std::uint32_t left = free_of(state, g.name); left < g.count)
      return Verdict{Reason::licenses, left, g.count, g.name};
  return std::nullopt;
}

void set_shared_licenses(MutableState& state, const std::string& cluster) {
  for (auto& [name, license] : state.licenses)
    if (name.find('@') != std::string::npos) license.total = 0;
  const auto& documents = state.tenancy.documents;
  for (auto it = documents.lower_bound({tenancy::LicenseResource::kKind, ""});
       it != documents.end() && it->first.first == tenancy::LicenseResource::kKind; ++it) {
    const auto& resource = std::get<tenancy::LicenseResource>(it->second);
    const auto part = resource.percent.find(cluster);
    if (part == resource.percent.end()) continue;
    const std::int64_t percent = parse_integer("the part", part->second, 0, 100).value_or(0);
    License& license = state.licenses[resource.name];
    license.total = static_cast<std::uint32_t>(resource.count.value_or(0) * percent / 100);
    license.most = std::max({license.most, license.total, license.used});
  }
}

void take_licenses(MutableState& state, const Job& job) {
  for (const GresCount& g : class_of(state, job).shape.licenses) {
    License& license = state.licenses[g.name];
    const std::uint32_t before = free_of(license);
    license.used += g.count;
    touch_waiting(state, license, before);
  }
}

void give_licenses(MutableState& state, const Job& job) {
  for (const GresCount& g : class_of(state, job).shape.licenses) {
    License& license = state.licenses[g.name];
    GANTRY_ASSERT(license.used >= g.count, "a licence is given back by who has it");
    const std::uint32_t before = free_of(license);
    license.used -= g.count;
    touch_waiting(state, license, before);
  }
}

void wait_for_licenses(MutableState& state, const Job& job, bool waits) {
  for (const GresCount& g : class_of(state, job).shape.licenses) {
    auto& waiting = state.licenses[g.name].waiting;
    if (waits)
      waiting.emplace(g.count, job.id);
    else
      waiting.erase({g.count, job.id});
  }
}

std::string audit_licenses(const State& state) {
  std::map<std::string, std::uint32_t> used;
  std::map<std::string, std::size_t> waiting;
  state.jobs.walk(JobId{}, [&](const Job& job) {
    for (const GresCount& g : class_of(state, job).shape.licenses) {
      if (job.placed()) used[g.name] += g.count;
      if (job.phase == Phase::queued) ++waiting[g.name];
    }
    return true;
  });
  for (const auto& [name, license] : state.licenses) {
    if (license.used != used[name])
      return fmt::format("licence {}: {} are in use, not {}", name, used[name], license.used);
    if (license.waiting.size() != waiting[name])
      return fmt::format("licence {}: the list of those who wait is wrong", name);
    if (license.most > 0 && license.used > license.most)
      return fmt::format("licence {}: {} are in use of {}", name, license.used, license.total);
  }
  return {};
}

}  // namespace gantry::core
