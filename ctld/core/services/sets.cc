#include "ctld/core/services/sets.h"

#include <fmt/core.h>

#include <algorithm>

#include "ctld/core/request.h"
#include "ctld/scale/rollout.h"

namespace gantry::core {
namespace {

constexpr std::size_t kMostKeptBack = 16;  // versions that were rolled back and are remembered

event::ServiceSet as_it_is(const std::string& name, const ServiceState* now) {
  event::ServiceSet out;
  out.name = name;
  if (now == nullptr) return out;
  out.tenant = now->tenant;
  out.last_revision = now->last_revision;
  out.went_back = now->went_back;
  return out;
}

ReplicaSet fresh_set(const tenancy::Service& doc, const tenancy::ServiceVersion& v,
                     std::uint64_t revision, const Identity& who, Instant at) {
  ReplicaSet out;
  out.revision = revision;
  out.what = v;
  out.port = doc.port;
  out.owner = who.owner;
  out.groups = who.groups;
  out.since = at;
  return out;
}

}  // namespace

bool runs_the_same(const tenancy::ServiceVersion& a, const tenancy::ServiceVersion& b) {
  tenancy::ServiceVersion one = a;
  one.weight = b.weight;
  return one == b;
}

std::optional<event::ServiceSet> sets_for(const tenancy::Service& doc, const ServiceState* now,
                                          const Identity& who, Instant at) {
  event::ServiceSet out = as_it_is(doc.name, now);
  out.tenant = doc.tenant;
  bool changed = now == nullptr || now->tenant != doc.tenant;
  std::string text;
  for (const tenancy::ServiceVersion& v : doc.versions) {
    const ReplicaSet* newest = now == nullptr ? nullptr : newest_set(*now, v.name);
    const bool refused =
        std::any_of(out.went_back.begin(), out.went_back.end(),
                    [&](const tenancy::ServiceVersion& b) { return runs_the_same(b, v); });
    const bool same = newest != nullptr && newest->port == doc.port &&
                      (runs_the_same(newest->what, v) || refused);
    const ReplicaSet* before = nullptr;
    if (newest != nullptr) {
      before = set_before(*now, *newest);
      if (before != nullptr) out.sets.push_back(*before);
    }
    if (same) {
      out.sets.push_back(*newest);
      continue;
    }
    changed = true;
    // A third set replaces the second one if that one has not taken over yet.
    if (newest != nullptr && before == nullptr) out.sets.push_back(*newest);
    ReplicaSet fresh = fresh_set(doc, v, ++out.last_revision, who, at);
    if (newest != nullptr) fresh.part = scale::first_part(doc.rollout);
    if (newest != nullptr) out.sets[out.sets.size() - 1].part = 1000 - (fresh.part % 1000);
    text += fmt::format("{}{} {} by {}", text.empty() ? "" : "; ", v.name,
                        newest == nullptr ? "is new," : "was changed", who.owner.user);
    out.sets.push_back(std::move(fresh));
  }
  if (now != nullptr && !changed)
    changed = out.sets.size() != now->sets.size();  // a version was removed
  if (!changed) return std::nullopt;
  std::sort(out.sets.begin(), out.sets.end(),
            [](const ReplicaSet& a, const ReplicaSet& b) { return a.revision < b.revision; });
  out.text = text.empty() ? "its versions were changed by " + who.owner.user : text;
  return out;
}

const ReplicaSet* newest_set(const ServiceState& service, const std::string& version) {
  const ReplicaSet* out = nullptr;
  for (const ReplicaSet& set : service.sets)
    if (set.what.name == version) out = &set;
  return out;
}

const ReplicaSet* set_before(const ServiceState& service, const ReplicaSet& fresh) {
  for (const ReplicaSet& set : service.sets)
    if (set.what.name == fresh.what.name && set.revision < fresh.revision) return &set;
  return nullptr;
}

event::ServiceSet without_sets(const std::string& name, const ServiceState& service,
                               const std::string& version, bool newer) {
  event::ServiceSet out = as_it_is(name, &service);
  for (const ReplicaSet& set : service.sets) {
    const bool is_newest = newest_set(service, set.what.name) == &set;
    const bool goes = set.what.name == version &&
                      (newer ? is_newest && set_before(service, set) != nullptr : !is_newest);
    if (!goes) {
      out.sets.push_back(set);
      if (set.what.name == version) out.sets.back().part = 1000;
    } else if (newer) {
      out.went_back.push_back(set.what);
      if (out.went_back.size() > kMostKeptBack) out.went_back.erase(out.went_back.begin());
    }
  }
  return out;
}

}  // namespace gantry::core
