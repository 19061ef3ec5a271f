// Setters of what a job asks of the boundary around it; see job_setters.h.
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

// NAME[@VERSION][:FILE]; the controller says which names are sound.
Result<void> set_secret(R& r, std::string_view text) {
  if (auto ok = check_text(text); !ok) return ok;
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
    const auto version = parse_integer("the version", text.substr(at + 1), 1, UINT32_MAX);
    if (!version) return tl::unexpected(version.error());
    use.version = static_cast<std::uint32_t>(*version);
  }
  r.spec.secrets.push_back(std::move(use));
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
  if (auto ok = check_text(text); !ok) return ok;
  r.spec.identity_audiences = split_list(text);
  if (r.spec.identity_audiences.empty()) return bad_value("name an audience");
  return {};
}

}  // namespace gantry::cli::job
