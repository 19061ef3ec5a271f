// Writes documents as YAML, and finds what differs between two sets of them, in the words of the
// file.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/proto/tenancy.h"
#include "config/tenancy/kinds.h"
#include "config/yaml_tree.h"

namespace gantry::tenancy {

enum class Style : std::uint8_t {
  file,     // as a person would write it: values that equal their default are left out
  compare,  // every key with a value, always in the same shape
};
config::Yaml to_yaml(const Document& document, Style style);

// Writes block style, with lists of single values in one line. Reading the text gives the same
// tree.
std::string yaml_text(const config::Yaml& tree);

// The text "apiVersion: gantry/v1\nkind: ..." of one document, or of several with "---" between
// them.
std::string to_text(const Document& document);
std::string to_text(std::span<const Document> documents);

// Sorts lists whose order has no meaning, so that equal documents compare as equal.
void normalise(Document& document);

// Sorts by kind (in the order of the variant), then by name. Documents are stored in this order.
void sort_documents(std::vector<Document>& documents);

// One entry for each document of either set, in their order, also for unchanged ones. Both sets
// must be sorted.
std::vector<proto::DocumentChange> difference(std::span<const Document> before,
                                              std::span<const Document> after);

// Returns `documents` after a change: those in `changed` replace documents of the same kind and
// name, and those in `removals` are removed; sorted.
std::vector<Document> with_changes(std::span<const Document> documents,
                                   std::span<const Document> changed,
                                   std::span<const proto::DocumentRef> removals);

}  // namespace gantry::tenancy
