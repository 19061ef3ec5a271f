#include "cli/submit/job_refs.h"

#include <fmt/core.h>

#include <charconv>

#include "common/proto/job_text.h"
#include "common/text/text.h"
#include "config/nearest.h"

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

// Parses --dependency.
namespace {

constexpr std::size_t kMaxDependencies = 1000;
constexpr std::int64_t kMaxDelayMinutes = 525'600;  // one year

std::optional<DependencyKind> dependency_kind(std::string_view name) {
  for (const auto& [kind, word] : enum_names(DependencyKind{}))
    if (word == name) return kind;
  return std::nullopt;
}

tl::unexpected<Error> wrong(std::string message) {
  return fail(ErrorCode::invalid_argument, std::move(message));
}

Result<Dependency> parse_job(DependencyKind kind, std::string_view text) {
  Dependency dependency;
  dependency.kind = kind;
  const std::size_t plus = text.find('+');
  if (plus != std::string_view::npos) {
    if (kind != DependencyKind::after)
      return wrong(fmt::format("\"{}\": only `after` can have a delay", text));
    ASSIGN(delay,
           parse_integer("the delay in minutes", text.substr(plus + 1), 0, kMaxDelayMinutes));
    dependency.delay = minutes(*delay);
  }
  const auto ref = parse_job_ref(text.substr(0, plus));
  if (!ref) return wrong(fmt::format("\"{}\" is not a job id", text.substr(0, plus)));
  dependency.job = ref->job;
  if (!ref->tasks.empty()) {
    if (ref->tasks.size() > 1 || ref->tasks[0].first != ref->tasks[0].last)
      return wrong(fmt::format("\"{}\": a dependency is on a job or on one array task", text));
    dependency.array_task = ref->tasks[0].first;
  }
  return dependency;
}

Result<void> parse_part(std::string_view part, DependencyList& out) {
  if (part == "singleton") {
    out.list.emplace_back().kind = DependencyKind::singleton;
    return {};
  }
  const std::size_t colon = part.find(':');
  std::string_view ids = part;
  DependencyKind kind = DependencyKind::after_any;
  if (part.empty()) return wrong("an empty part");
  if (colon != std::string_view::npos || part[0] < '0' || part[0] > '9') {
    const std::string_view word = part.substr(0, colon);
    const auto found = dependency_kind(word);
    if (!found || *found == DependencyKind::singleton) {
      static constexpr std::string_view kWords[] = {"after",      "afterany",  "afterok",
                                                    "afternotok", "aftercorr", "singleton"};
      return wrong(
          fmt::format("\"{}\" is no kind of dependency{}", word, did_you_mean(word, kWords)));
    }
    if (colon == std::string_view::npos)
      return wrong(fmt::format("\"{}\" needs a job: {}:ID", word, word));
    kind = *found;
    ids = part.substr(colon + 1);
  }
  while (true) {
    const std::size_t end = ids.find(':');
    ASSIGN(dependency, parse_job(kind, ids.substr(0, end)));
    out.list.push_back(*dependency);
    if (out.list.size() > kMaxDependencies)
      return wrong(fmt::format("more than {} dependencies", kMaxDependencies));
    if (end == std::string_view::npos) return {};
    ids.remove_prefix(end + 1);
  }
}

}  // namespace

Result<DependencyList> parse_dependency(std::string_view text) {
  DependencyList out;
  out.any = text.find('?') != std::string_view::npos;
  if (out.any && text.find(',') != std::string_view::npos)
    return wrong(fmt::format("\"{}\" has both , (all) and ? (any); use one of them", text));
  const char separator = out.any ? '?' : ',';
  while (true) {
    const std::size_t end = text.find(separator);
    TRY(parse_part(text.substr(0, end), out));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

}  // namespace gantry::cli
