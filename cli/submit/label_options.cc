#include "cli/submit/label_options.h"

#include <fmt/core.h>

#include "common/text/split.h"

namespace gantry::cli::job {

Result<void> set_labels(JobRequest& r, std::string_view text) {
  const auto wrong = [](std::string what) {
    return fail(ErrorCode::invalid_argument, std::move(what));
  };
  const std::vector<std::string> items = split_list(text);
  if (items.empty()) return wrong("must not be empty; labels are KEY=VALUE,KEY=VALUE");
  for (const std::string& item : items) {
    const std::size_t equals = item.find('=');
    if (equals == 0 || equals == std::string::npos)
      return wrong(fmt::format("\"{}\" is no KEY=VALUE", item));
    const std::string key = item.substr(0, equals), value = item.substr(equals + 1);
    const auto [it, fresh] = r.spec.labels.emplace(key, value);
    if (!fresh && it->second != value)
      return wrong(
          fmt::format("gives the label {} twice, as \"{}\" and \"{}\"", key, it->second, value));
  }
  return {};
}

Result<void> set_work_type(JobRequest& r, std::string_view text) {
  for (const auto& [type, name] : enum_names(WorkType{}))
    if (name == text) {
      r.spec.work_type = type;
      return {};
    }
  return fail(ErrorCode::invalid_argument,
              fmt::format("\"{}\" is none of training, inference and interactive", text));
}

}  // namespace gantry::cli::job
