// Documents back to YAML, and what differs between two sets of them, in the names of the file.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/proto/tenancy.h"
#include "config/tenancy/kinds.h"
#include "config/yaml_tree.h"

namespace gantry::tenancy {

enum class Style : std::uint8_t {
  file,     // as a person would write it: what has its default is left out
  compare,  // every key with a value, always in the same shape
};
config::Yaml to_yaml(const Document& document, Style style);

// Block style; lists of single values in one line. Read again, it is the same tree.
std::string yaml_text(const config::Yaml& tree);

// "apiVersion: gantry/v1\nkind: ...": one document, or several parted by "---".
std::string to_text(const Document& document);
std::string to_text(std::span<const Document> documents);

// Puts lists whose order means nothing into one order, so that equal documents compare equal.
void normalise(Document& document);

// Sorted by kind (in the order of the variant), then name: how documents are kept.
void sort_documents(std::vector<Document>& documents);

// One line for each document of either set, in that order; `unchanged` ones too. Both sorted.
std::vector<proto::DocumentChange> difference(std::span<const Document> before,
                                              std::span<const Document> after);

// `documents` with `changed` in the place of those of the same kind and name, and without
// `removals`; sorted.
std::vector<Document> with_changes(std::span<const Document> documents,
                                   std::span<const Document> changed,
                                   std::span<const proto::DocumentRef> removals);

}  // namespace gantry::tenancy
