// apply() of events about secrets.
#include <algorithm>

#include "common/assert.h"
#include "ctld/core/apply.h"
#include "ctld/core/event/events_secret.h"
#include "ctld/core/resources/index.h"
#include "ctld/core/state/mutable_state.h"
#include "ctld/core/state/state.h"

namespace gantry::core {
namespace {

// Jobs that name the secret may start or stop waiting for it. Their tenant is checked later.
void touch_jobs(MutableState& state, const std::string& name) {
  std::vector<JobId> jobs;
  for (const auto& [job, uses] : state.secrets.wanted)
    if (std::any_of(uses.begin(), uses.end(), [&](const SecretUse& u) { return u.name == name; }))
      jobs.push_back(job);
  std::sort(jobs.begin(), jobs.end());
  state.touched.jobs.insert(state.touched.jobs.end(), jobs.begin(), jobs.end());
}

}  // namespace

void apply_event(MutableState& state, Instant at, const event::SecretSet& e) {
  auto& versions = state.secrets.tenants[e.tenant].by_name[e.name].versions;
  GANTRY_ASSERT(versions.empty() || versions.back().number < e.version, "numbers of versions rise");
  SealedVersion& fresh = versions.emplace_back();
  fresh.number = e.version;
  fresh.made = at;
  fresh.by = e.by;
  fresh.sealed = e.sealed;
  if (e.keep > 0 && versions.size() > e.keep)
    versions.erase(versions.begin(), versions.end() - static_cast<std::ptrdiff_t>(e.keep));
  state.unfolded.secrets.emplace_back(e.tenant, e.name);
  touch_jobs(state, e.name);
}

void apply_event(MutableState& state, Instant, const event::SecretRemoved& e) {
  const auto tenant = state.secrets.tenants.find(e.tenant);
  GANTRY_ASSERT(tenant != state.secrets.tenants.end(), "only what is there is removed");
  const auto it = tenant->second.by_name.find(e.name);
  GANTRY_ASSERT(it != tenant->second.by_name.end(), "only what is there is removed");
  auto& versions = it->second.versions;
  const std::uint32_t last = versions.back().number;
  if (e.version == 0) versions.clear();
  std::erase_if(versions, [&](const SealedVersion& one) { return one.number == e.version; });
  // A version number is never used again, neither for a later version nor for a later secret.
  if (versions.empty() || versions.back().number < last) {
    tenant->second.removed = std::max(tenant->second.removed, last);
    state.unfolded.secrets.emplace_back(e.tenant, "");
  }
  if (versions.empty()) tenant->second.by_name.erase(it);
  state.unfolded.secrets.emplace_back(e.tenant, e.name);
  touch_jobs(state, e.name);
}

void apply_event(MutableState& state, Instant at, const event::SecretsTaken& e) {
  JobEdit job(state, e.job);
  GANTRY_ASSERT(job->active != nullptr, "a placed job");
  job->active->secrets = e.uses;
  const auto tenant = state.secrets.tenants.find(e.tenant);
  if (tenant == state.secrets.tenants.end()) return;
  for (const SecretUse& use : e.uses) {
    const auto it = tenant->second.by_name.find(use.name);
    if (it == tenant->second.by_name.end()) continue;
    for (SealedVersion& one : it->second.versions) {
      if (one.number != use.version) continue;
      one.used = at;
      one.used_by = e.job;
      state.unfolded.secrets.emplace_back(e.tenant, use.name);
    }
  }
}

void forget_secrets(MutableState& state, const std::string& tenant) {
  const auto it = state.secrets.tenants.find(tenant);
  if (it == state.secrets.tenants.end()) return;
  for (const auto& [name, secret] : it->second.by_name)
    state.unfolded.secrets.emplace_back(tenant, name);
  state.unfolded.secrets.emplace_back(tenant, "");
  state.secrets.tenants.erase(it);
}

}  // namespace gantry::core
