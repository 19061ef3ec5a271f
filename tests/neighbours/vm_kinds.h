// The kinds of scenarios of vm_scenarios, and what is true of each.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "common/proto/neighbours.h"

namespace gantry::vm {

enum class Kind {
  disk_large,
  disk_small,
  disk_write,
  disk_two,
  disk_machine,
  disk_slow,
  disk_self,
  disk_calm,
  link_out,
  link_in,
  link_calm,
  cores,
  cores_self,
  memory,
  memory_self,
  quiet,
};

// Resources of the machine that a scenario needs; those in `alone` exclusively.
enum class Place { disk, link, alone };

struct Facts {
  Kind kind;
  std::string_view name;
  Place place;
  std::optional<proto::SharingCause> cause;  // unset: no job is slowed down
  std::vector<unsigned> by;                  // which of the scenario's jobs 1 to 3 floods
};

inline const std::vector<Facts>& all_kinds() {
  using enum proto::SharingCause;
  static const std::vector<Facts> kAll{
      {Kind::disk_large, "disk, large reads", Place::disk, neighbours, {2}},
      {Kind::link_out, "link, sends", Place::link, neighbours, {2}},
      {Kind::disk_small, "disk, small reads", Place::disk, neighbours, {2}},
      {Kind::cores, "cores", Place::alone, neighbours, {2}},
      {Kind::disk_self, "disk, self-inflicted", Place::disk, itself, {}},
      {Kind::link_in, "link, receives", Place::link, neighbours, {2}},
      {Kind::disk_write, "disk, writes", Place::disk, neighbours, {2}},
      {Kind::disk_slow, "disk becomes slow", Place::disk, unknown, {}},
      {Kind::disk_two, "disk, two floods", Place::disk, neighbours, {2, 3}},
      {Kind::link_calm, "link, busy and well", Place::link, std::nullopt, {}},
      {Kind::memory, "memory", Place::alone, neighbours, {2}},
      {Kind::disk_machine, "disk, by no job", Place::disk, machine, {}},
      {Kind::disk_calm, "disk, busy and well", Place::disk, std::nullopt, {}},
      {Kind::cores_self, "cores, self-inflicted", Place::alone, itself, {}},
      {Kind::disk_large, "disk, large reads", Place::disk, neighbours, {2}},
      {Kind::link_out, "link, sends", Place::link, neighbours, {2}},
      {Kind::disk_small, "disk, small reads", Place::disk, neighbours, {2}},
      {Kind::memory_self, "memory, own limit", Place::alone, itself, {}},
      {Kind::quiet, "quiet", Place::disk, std::nullopt, {}},
      {Kind::link_in, "link, receives", Place::link, neighbours, {2}},
  };
  return kAll;
}

// The kind of the scenario with this seed: they take turns.
inline const Facts& facts_of(unsigned seed) {
  return all_kinds()[seed % all_kinds().size()];
}

}  // namespace gantry::vm
