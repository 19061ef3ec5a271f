#include "common/metrics/families.h"

#include <fmt/core.h>

#include "common/text/printable.h"

namespace gantry::metrics {

std::string label(std::string_view name, std::string_view value) {
  std::string out(name);
  out += "=\"";
  for (const char c : printable(value)) {
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out + "\"";
}

Family::Family(std::string name, std::string_view type, std::string_view help)
    : name_(std::move(name)),
      head_(fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name_, help, type)) {}

void Family::add(const std::string& labels, const std::string& value) {
  add_part("", labels, value);
}

void Family::add_part(std::string_view suffix, const std::string& labels,
                      const std::string& value) {
  lines_ += fmt::format("{}{}{{{}}} {}\n", name_, suffix, labels, value);
}

std::string Family::text() const {
  return lines_.empty() ? "" : head_ + lines_;
}

}  // namespace gantry::metrics
