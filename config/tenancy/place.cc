#include "config/tenancy/place.h"

#include <fmt/core.h>

namespace gantry::tenancy {
namespace {

tl::unexpected<Error> wrong_at(const Place& place, std::string_view path, std::string_view what) {
  return fail(ErrorCode::invalid_argument,
              path.empty() ? fmt::format("{}: {}", to_string(place), what)
                           : fmt::format("{}: {}: {}", to_string(place), path, what));
}

}  // namespace

std::string to_string(const Place& place) {
  return place.line > 0 ? fmt::format("{}:{}:{}", place.file, place.line, place.column)
                        : place.file;
}

tl::unexpected<Error> Value::wrong(std::string_view what) const {
  return wrong_at(place(), path_, what);
}

tl::unexpected<Error> Value::Entry::wrong(std::string_view map, std::string_view what) const {
  return wrong_at(at, map, what);
}

Result<std::string> Value::text() const {
  if (!is_scalar()) return wrong(fmt::format("needs a single value, not {}", name_of(yaml_->kind)));
  return yaml_->scalar;
}

Result<std::vector<Value>> Value::items() const {
  std::vector<Value> out;
  if (is_null()) return out;
  if (!is_list()) return wrong(fmt::format("needs a list, not {}", name_of(yaml_->kind)));
  for (std::size_t i = 0; i < yaml_->items.size(); ++i)
    out.emplace_back(yaml_->items[i], *file_, fmt::format("{}[{}]", path_, i));
  return out;
}

Result<std::vector<std::string>> Value::texts() const {
  std::vector<std::string> out;
  if (is_scalar()) {
    out.push_back(yaml_->scalar);
    return out;
  }
  ASSIGN(values, items());
  for (const Value& value : *values) {
    ASSIGN(text, value.text());
    out.push_back(std::move(*text));
  }
  return out;
}

Result<std::vector<Value::Entry>> Value::entries() const {
  std::vector<Entry> out;
  if (is_null()) return out;
  if (!is_map()) return wrong(fmt::format("needs keys, not {}", name_of(yaml_->kind)));
  for (const config::Yaml::Entry& entry : yaml_->entries) {
    std::string path = path_.empty() ? entry.key : path_ + "." + entry.key;
    out.push_back({entry.key, Value(entry.value, *file_, std::move(path)),
                   Place{*file_, entry.line, entry.column}});
  }
  return out;
}

}  // namespace gantry::tenancy
