// A YAML document as a plain tree with places, so that errors can name line and column. Only
// yaml_tree.cc includes yaml-cpp; its exceptions are caught there.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace gantry::config {

inline constexpr std::size_t kMaxConfigBytes = 4u << 20;      // bytes of one file
inline constexpr std::size_t kMaxDocumentsBytes = 64u << 20;  // bytes of a file with many documents

struct Yaml {
  enum class Kind : std::uint8_t { null, scalar, list, map };
  struct Entry;
  Kind kind = Kind::null;
  std::string scalar;
  std::vector<Yaml> items;     // for a list
  std::vector<Entry> entries;  // for a map, in file order; anchors and `<<` are resolved
  int line = 0;                // from 1; 0 = not from a file
  int column = 0;              // from 1
};
struct Yaml::Entry {
  std::string key;
  int line = 0;
  int column = 0;
  Yaml value;
};

// "a scalar", "a list", ...: words for errors.
std::string_view name_of(Yaml::Kind kind);

// The value of a key in a map; nullptr if the map does not have the key.
const Yaml* find(const Yaml& map, std::string_view key);

// Whether both have the same content; places in files, and quoting there, do not count.
bool same(const Yaml& a, const Yaml& b);

// All documents of a text, which `---` separates. Empty ones (only comments) are left out.
Result<std::vector<Yaml>> parse_yaml_documents(const std::string& text, const std::string& name);

// Reads exactly one document. Errors begin with "NAME:LINE:COL: ".
Result<Yaml> parse_yaml(const std::string& text, const std::string& name);

}  // namespace gantry::config
