// A YAML document as a plain tree with places, so that errors can name line and column. yaml-cpp is
// included by yaml_tree.cc only; its exceptions end there.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace gantry::config {

inline constexpr std::size_t kMaxConfigBytes = 4u << 20;      // of one file
inline constexpr std::size_t kMaxDocumentsBytes = 64u << 20;  // of one with many documents

struct Yaml {
  enum class Kind : std::uint8_t { null, scalar, list, map };
  struct Entry;
  Kind kind = Kind::null;
  std::string scalar;
  std::vector<Yaml> items;     // of a list
  std::vector<Entry> entries;  // of a map, in file order; anchors and `<<` are worked in
  int line = 0;                // from 1; 0 = made up, in no file
  int column = 0;              // from 1
};
struct Yaml::Entry {
  std::string key;
  int line = 0;
  int column = 0;
  Yaml value;
};

// "a scalar", "a list", ...: for errors.
std::string_view name_of(Yaml::Kind kind);

// The value of a key of a map; nullptr when there is none.
const Yaml* find(const Yaml& map, std::string_view key);

// All documents of a text, parted by `---`; empty ones (comments only) are left out.
Result<std::vector<Yaml>> parse_yaml_documents(const std::string& text, const std::string& name);

// Exactly one document. Errors begin with "NAME:LINE:COL: ".
Result<Yaml> parse_yaml(const std::string& text, const std::string& name);

}  // namespace gantry::config
