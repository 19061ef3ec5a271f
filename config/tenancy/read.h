// Reads one YAML document of a native kind into a Document. It is strict: an unknown key, and a
// value of a wrong type or out of range, are refused with their place. check.h checks several
// documents together.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/tenancy/kinds.h"
#include "config/tenancy/place.h"

namespace gantry::tenancy {

// An amount, which may be a part of the cluster.
struct Amount {
  std::int64_t value = 0;
  // Millionths of the cluster; if set, resolve_parts() computes `value`.
  std::optional<std::int64_t> part;
  Place place;
  std::string path;
};

// A quota line with at least one amount that is a part of the cluster.
struct PartialLine {
  std::size_t line = 0;  // index into the document's quota
  std::optional<Amount> nominal, borrow, burst, lend;
};

struct ReadDocument {
  Document document;
  Place place;                          // place of the document
  std::map<std::string, Place> places;  // places of values, by path ("quota.gpu")
  std::vector<PartialLine> parts;
  bool translated = false;  // it was translated from Kubernetes
};

// Reads a document. `root` must have `apiVersion: gantry/v1` and a kind.
Result<ReadDocument> read_document(const Value& root);

// True for a login or group name: up to 64 letters, digits, '-', '_', '.', '@', and '$' at the end.
bool is_account_name(std::string_view text);
// The same, or "oidc:" and such a name: a group from tokens of controller.oidc_issuer.
bool is_group_name(std::string_view text);

std::vector<QuotaLine>* quota_of(Document& document);  // nullptr: this kind has no quota

}  // namespace gantry::tenancy
