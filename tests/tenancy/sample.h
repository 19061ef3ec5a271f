// Helpers that read documents from text, for the tests.
#pragma once

#include <doctest/doctest.h>

#include <span>
#include <string>
#include <vector>

#include "config/tenancy/read.h"
#include "config/tenancy/write.h"

namespace gantry::test {

inline Result<std::vector<tenancy::ReadDocument>> try_read(const std::string& text,
                                                           const std::string& file = "t.yaml") {
  ASSIGN(trees, config::parse_yaml_documents(text, file));
  std::vector<tenancy::ReadDocument> out;
  for (const config::Yaml& tree : *trees) {
    ASSIGN(read, tenancy::read_document(tenancy::Value(tree, file, "")));
    out.push_back(std::move(*read));
  }
  return out;
}

inline std::vector<tenancy::Document> read_all(const std::string& text) {
  const auto read = try_read(text);
  REQUIRE_MESSAGE(read, read.error().message);
  std::vector<tenancy::Document> out;
  for (const auto& one : *read) out.push_back(one.document);
  tenancy::sort_documents(out);
  return out;
}

inline std::string error_of(const std::string& text) {
  const auto read = try_read(text);
  return read ? "accepted" : read.error().message;
}

}  // namespace gantry::test
