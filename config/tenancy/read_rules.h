// Reads what documents say about people and rules: roles, labels that jobs must have, patterns.
#pragma once

#include "config/tenancy/read.h"

namespace gantry::tenancy {

// The most labels that a tenant may ask of its jobs.
inline constexpr std::size_t kMostLabelRules = 32;
// The most registries from which a tenant's images may come.
inline constexpr std::size_t kMostRegistries = 32;
// The most patterns of a Policy, and values that it fills in.
inline constexpr std::size_t kMostPatterns = 32;

// Reads {user: {users: [ann], groups: [ml], until: {ann: 2026-12-31}}}. The key of a role is one of
// the built-in ones, or the name of a document of the kind Role.
Result<void> read_roles(const Value& value, std::vector<Grant>& out);

// Reads {team: {}, project-code: {values: [a, b], default: a}}.
Result<void> read_label_rules(const Value& value, std::vector<LabelRule>& out);

// Reads {gpus: ">8", "labels.team": "?*"}.
Result<void> read_patterns(const Value& value, std::map<std::string, std::string>& out);

// Reads registries of images, as "registry.example.com:5000" or "ghcr.io/group".
Result<void> read_registries(const Value& value, std::vector<std::string>& out);

// Reads names of GPU models, in lower case.
Result<void> read_models(const Value& value, std::vector<std::string>& out);

// A date (its first moment) or a time, in UTC: "2026-12-31", "2026-12-31T18:00".
Result<Instant> read_utc(const Value& value);
std::string show_utc(Instant t);

}  // namespace gantry::tenancy
