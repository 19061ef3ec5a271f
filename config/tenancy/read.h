// One YAML document of a native kind to a Document. Strict: an unknown key, a value of the wrong
// type or out of range is refused with its place. What several documents say together is checked
// by check.h.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/tenancy/kinds.h"
#include "config/tenancy/place.h"

namespace gantry::tenancy {

// An amount that may be a part of the cluster.
struct Amount {
  std::int64_t value = 0;
  std::optional<std::int64_t> part;  // millionths; set: value is found by resolve_parts()
  Place place;
  std::string path;
};

// A quota line of which something is a part of the cluster.
struct PartialLine {
  std::size_t line = 0;  // index into the document's quota
  std::optional<Amount> nominal, borrow, burst, lend;
};

struct ReadDocument {
  Document document;
  Place place;                          // of the document
  std::map<std::string, Place> places;  // of values, by path ("quota.gpu")
  std::vector<PartialLine> parts;
  bool translated = false;  // from Kubernetes
};

// `root` has `apiVersion: gantry/v1` and a kind.
Result<ReadDocument> read_document(const Value& root);

// A login or group name: up to 64 letters, digits, '-', '_', '.', '@', with '$' at the end.
bool is_account_name(std::string_view text);

std::vector<QuotaLine>* quota_of(Document& document);  // nullptr: the kind has none

}  // namespace gantry::tenancy
