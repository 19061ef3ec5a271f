// Families of metrics in Prometheus's text format (exposition formats, version 0.0.4).
#pragma once

#include <string>
#include <string_view>

namespace gantry::metrics {

// `name="value"`; backslashes and quotes in the value are escaped.
std::string label(std::string_view name, std::string_view value);

class Family {
 public:
  Family(std::string name, std::string_view type, std::string_view help);
  // `labels` are joined by commas.
  void add(const std::string& labels, const std::string& value);
  // A line of a histogram or a summary: NAME with a suffix, such as _bucket.
  void add_part(std::string_view suffix, const std::string& labels, const std::string& value);
  [[nodiscard]] std::string text() const;  // "" if nothing was added

 private:
  std::string name_, head_, lines_;
};

}  // namespace gantry::metrics
