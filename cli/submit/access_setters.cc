// Setters of options about a job's isolation and access; see job_setters.h.
#include <fmt/core.h>

#include "cli/submit/job_setters.h"
#include "common/text/split.h"
#include "common/text/text.h"

namespace gantry::cli::job {
namespace {

using R = JobRequest;

tl::unexpected<Error> bad_value(std::string message) {
  return fail(ErrorCode::invalid_argument, std::move(message));
}

}  // namespace

// NAME[@VERSION][:FILE]; the controller checks the names.
Result<void> set_secret(R& r, std::string_view text) {
  TRY(check_text(text));
  SecretUse use;
  const std::size_t colon = text.find(':');
  if (colon != std::string_view::npos) {
    use.file = text.substr(colon + 1);
    if (use.file.empty()) return bad_value("the name of the file behind ':' is missing");
    text = text.substr(0, colon);
  }
  const std::size_t at = text.find('@');
  use.name = text.substr(0, at);
  if (use.name.empty()) return bad_value("the name of the secret is missing");
  if (at != std::string_view::npos) {
    ASSIGN(version, parse_integer("the version", text.substr(at + 1), 1, UINT32_MAX));
    use.version = static_cast<std::uint32_t>(*version);
  }
  r.spec.secrets.push_back(std::move(use));
  return {};
}

Result<void> set_dataset(R& r, std::string_view text) {
  TRY(check_text(text));
  DatasetUse use;
  const std::size_t colon = text.find(':');
  use.name = text.substr(0, colon);
  if (use.name.empty()) return bad_value("the name of the dataset is missing");
  if (colon != std::string_view::npos) {
    const std::string_view mode = text.substr(colon + 1);
    if (mode != "ro" && mode != "rw")
      return bad_value("behind the name of a dataset stands :ro or :rw, or nothing");
    use.write = mode == "rw";
  }
  r.spec.datasets.push_back(std::move(use));
  return {};
}

// KEY:PATH. A key may be written in full, as s3://BUCKET/...; the controller checks it. A relative
// path is below the job's working directory, which is known only when all options are read.
Result<void> add_stage_in(R& r, std::string_view text) {
  TRY(check_text(text));
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == text.size() ||
      text.substr(colon).starts_with("://"))
    return bad_value("give KEY:PATH");
  r.spec.stage_in.push_back(
      {std::string(text.substr(0, colon)), std::string(text.substr(colon + 1))});
  return {};
}

Result<void> add_stage_out(R& r, std::string_view text) {
  TRY(check_text(text));
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == text.size())
    return bad_value("give PATH:KEY");
  r.spec.stage_out.push_back(
      {std::string(text.substr(colon + 1)), std::string(text.substr(0, colon))});
  return {};
}

Result<void> set_sandbox(R& r, std::string_view text) {
  for (const auto& [level, name] : enum_names(Sandbox{}))
    if (name == text) {
      r.spec.sandbox = level;
      return {};
    }
  return bad_value(
      fmt::format("\"{}\" is no sandbox; there are standard, hardened, gvisor and vm", text));
}

Result<void> set_identity(R& r, std::string_view text) {
  TRY(check_text(text));
  r.spec.identity_audiences = split_list(text);
  if (r.spec.identity_audiences.empty()) return bad_value("name an audience");
  return {};
}

}  // namespace gantry::cli::job
