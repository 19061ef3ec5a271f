#include "cli/submit/job_refs.h"

#include <fmt/core.h>

#include "common/proto/job_text.h"
#include "common/text/text.h"

namespace gantry::cli {

Result<void> add_job_refs(std::vector<proto::JobRef>& out, std::string_view text) {
  while (!text.empty()) {
    int depth = 0;
    std::size_t end = 0;
    for (; end < text.size() && (text[end] != ',' || depth > 0); ++end)
      depth += text[end] == '[' ? 1 : text[end] == ']' ? -1 : 0;
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (part.empty()) continue;
    auto ref = parse_job_ref(part);
    if (!ref) return fail(ErrorCode::invalid_argument, fmt::format("Invalid job id {}", part));
    out.push_back(std::move(*ref));
  }
  return {};
}

Result<std::vector<proto::JobRef>> job_refs_of(const std::vector<std::string>& texts) {
  std::vector<proto::JobRef> refs;
  for (const std::string& text : texts) TRY(add_job_refs(refs, text));
  return refs;
}

}  // namespace gantry::cli
