// A place in a file, and a value that knows its place; errors and notes show such places.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "config/yaml_tree.h"

namespace gantry::tenancy {

struct Place {
  std::string file;
  int line = 0;  // from 1; 0 = not from a file
  int column = 0;
  friend auto operator<=>(const Place&, const Place&) = default;
};
std::string to_string(const Place& place);  // "FILE:LINE:COL"

// A value with its path from the document's root: "spec.resourceGroups[0].flavors". It refers to
// the tree, which must outlive it.
class Value {
 public:
  Value(const config::Yaml& yaml, const std::string& file, std::string path)
      : yaml_(&yaml), file_(&file), path_(std::move(path)) {}

  struct Entry;  // key, value, and the key's own place
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] Place place() const { return {*file_, yaml_->line, yaml_->column}; }
  [[nodiscard]] bool is_null() const { return yaml_->kind == config::Yaml::Kind::null; }
  [[nodiscard]] bool is_map() const { return yaml_->kind == config::Yaml::Kind::map; }
  [[nodiscard]] bool is_list() const { return yaml_->kind == config::Yaml::Kind::list; }
  [[nodiscard]] bool is_scalar() const { return yaml_->kind == config::Yaml::Kind::scalar; }

  // The error invalid_argument with "FILE:LINE:COL: PATH: WHAT".
  [[nodiscard]] tl::unexpected<Error> wrong(std::string_view what) const;
  [[nodiscard]] tl::unexpected<Error> wrong(const Error& error) const {
    return wrong(error.message);
  }

  Result<std::string> text() const;                // a single value
  Result<std::vector<Value>> items() const;        // items of a list; none for null
  Result<std::vector<std::string>> texts() const;  // a list of single values, or one
  Result<std::vector<Entry>> entries() const;      // entries of a map; none for null

 private:
  const config::Yaml* yaml_;
  const std::string* file_;
  std::string path_;
};
struct Value::Entry {
  std::string key;
  Value value;
  Place at;  // place of the key
  // The error "FILE:LINE:COL: PATH: WHAT" at the place of the key, with the path of the map.
  [[nodiscard]] tl::unexpected<Error> wrong(std::string_view map, std::string_view what) const;
};

}  // namespace gantry::tenancy
