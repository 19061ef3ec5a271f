// The fields of a job that rules may name (kFacts), and their values for one job.
//
// A value is a text; numbers are decimal, memory is in bytes, times are in seconds. A field without
// a value is an empty text: no image, no time limit. A field that is not known (for a job in the
// history, which keeps fewer fields) is absent.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "common/job/job_spec.h"
#include "common/policy/pattern.h"

namespace gantry::policy {

struct FactRow {
  std::string_view name;
  Measure measure;
  bool in_history;  // kept in accounting
  std::string_view doc;
};

inline constexpr std::array<FactRow, 27> kFacts{{
    {"account", Measure::text, true, "the project that pays"},
    {"array_tasks", Measure::number, false, "tasks of an array; 0 for other jobs"},
    {"class", Measure::text, true, "its priority class"},
    {"comment", Measure::text, true, "--comment"},
    {"constraint", Measure::text, false, "features of nodes that it asks for"},
    {"cpus", Measure::number, true, "cores in all"},
    {"exclusive", Measure::flag, false, "whole nodes"},
    {"gpu_model", Measure::text, false, "models of GPUs that it names, with commas; empty for any"},
    {"gpu_slice", Measure::text, false, "its MIG profile; empty for whole GPUs"},
    {"gpus", Measure::number, true, "GPUs or slices in all, parts of one counted as 1"},
    {"image", Measure::text, false, "its container image; empty for the host's files"},
    {"interactive", Measure::flag, false, "an allocation for people, without a script"},
    {"licenses", Measure::text, true, "NAME:N, with commas"},
    {"memory", Measure::memory, false, "on each node; empty where it says nothing"},
    {"mounts", Measure::text, false, "--container-mounts, with commas"},
    {"name", Measure::text, true, "its name"},
    {"network", Measure::text, false, "job, host or loopback"},
    {"network_profile", Measure::text, false, "the profile that it names"},
    {"nodes", Measure::number, true, "nodes at least"},
    {"partition", Measure::text, true, "where it is sent"},
    {"reservation", Measure::text, true, "the reservation that it names"},
    {"sandbox", Measure::text, false, "standard, hardened, gvisor or vm"},
    {"tenant", Measure::text, true, "whose job it is; empty without tenants"},
    {"time", Measure::duration, true, "its time limit; empty for no limit"},
    {"type", Measure::text, true, "training, inference or interactive; empty where not said"},
    {"user", Measure::text, true, "who submits it"},
    {"wckey", Measure::text, true, "--wckey"},
}};

inline constexpr std::string_view kLabelFact = "labels.";  // labels.KEY: a text

// Whether this can be the key of a label: 1 to 63 letters, digits, '-', '_', '.' and '/'.
bool is_label_key(std::string_view text);

// The row of a field; nullptr for labels, and for what is no field.
const FactRow* find_fact(std::string_view name);
// How its values are compared; nothing if there is no such field.
std::optional<Measure> measure_of(std::string_view name);

using Facts = std::map<std::string, std::string, std::less<>>;

// Facts about a job that are not in its request.
struct Standing {
  std::string user, tenant, partition, priority_class;
  std::optional<Duration> time_limit;  // resolved; not set = unlimited
};
Facts facts_of(const JobSpec& spec, const Standing& standing);

// The value; "" for a label that the job does not have. Nothing: it is not known.
std::optional<std::string_view> value_of(const Facts& facts, std::string_view name);

}  // namespace gantry::policy
