// Traces as tables: CSV with a header, JSON lists, and what `gacct --json` prints.
#include <fmt/core.h>

#include <algorithm>

#include "common/codec/json_io.h"
#include "ctld/replay/trace.h"

namespace gantry::replay {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t from = text.find_first_not_of(" \t\r");
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(" \t\r") - from + 1);
}

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find(',', at), line.size());
    std::string_view cell = trimmed(line.substr(at, end - at));
    if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"')
      cell = cell.substr(1, cell.size() - 2);
    cells.push_back(cell);
    at = end + 1;
  }
  return cells;
}

Result<void> check(const TraceJob& job, const std::string& name) {
  if (job.run.us <= 0) return {};  // left out
  if (job.gpus == 0 && job.cpus == 0)
    return wrong_line(name, job.line, "gpus", "a job needs gpus or cpus");
  return {};
}

std::string field_names() {
  return "id, submit, run, limit, gpus, cpus, nodes, memory, tenant, project, user, class, "
         "checkpoint, due";
}

// The objects of a list, one after the other, with their lines: a list of millions is no single
// JSON text.
class Objects {
 public:
  explicit Objects(std::string_view text) : text_(text) {}

  // To behind the '[' of the outer list, or of "rows".
  bool open() {
    while (at_ < text_.size() && is_blank(text_[at_])) step();
    if (at_ < text_.size() && text_[at_] == '[') return step(), true;
    const std::size_t rows = text_.find("\"rows\"");
    if (rows == std::string_view::npos) return false;
    const std::size_t list = text_.find_first_not_of(" \t\r\n:", rows + 6);
    if (list == std::string_view::npos || text_[list] != '[') return false;
    while (at_ <= list) step();
    return true;
  }
  // The next object's text; "" at the list's end or where it is no list of objects.
  std::string_view next() {
    while (at_ < text_.size() && (is_blank(text_[at_]) || text_[at_] == ',')) step();
    line_of_object = line_;
    if (at_ >= text_.size() || text_[at_] != '{') return {};
    const std::size_t from = at_;
    int depth = 0;
    bool quoted = false;
    for (; at_ < text_.size(); step()) {
      const char c = text_[at_];
      if (quoted) {
        if (c == '\\') step();
        if (c == '"') quoted = false;
        continue;
      }
      if (c == '"') quoted = true;
      depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
      if (depth == 0) {
        step();
        return text_.substr(from, at_ - from);
      }
    }
    return text_.substr(from);
  }
  [[nodiscard]] bool ended() const { return at_ < text_.size() && text_[at_] == ']'; }
  std::int64_t line_of_object = 1;

 private:
  static bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
  void step() {
    if (at_ < text_.size() && text_[at_] == '\n') ++line_;
    ++at_;
  }
  std::string_view text_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1;
};

std::optional<std::int64_t> integer(codec::JsonNode object, std::string_view name) {
  const auto member = object.find(name);
  return member ? member->sint() : std::nullopt;
}
std::string text_of(codec::JsonNode object, std::string_view name) {
  const auto member = object.find(name);
  const auto text = member ? member->string() : std::nullopt;
  return text ? std::string(*text) : std::string();
}

// A row of `gacct --json`: what ran is replayed with what it held and how long. Jobs that never
// started are left out, and so are those that still run.
Result<std::optional<TraceJob>> history_job(codec::JsonNode row, const std::string& name,
                                            std::int64_t line) {
  const auto submitted = integer(row, "submitted");
  if (!submitted) return wrong_line(name, line, "submitted", "is missing, or no time");
  const auto started = integer(row, "started"), ended = integer(row, "ended");
  if (!started || !ended) return std::optional<TraceJob>{};
  TraceJob job;
  job.line = line;
  job.id = static_cast<std::uint64_t>(integer(row, "job").value_or(0));
  job.submit = Instant{integer(row, "eligible").value_or(*submitted)};
  if (job.submit.us <= 0) job.submit = Instant{*submitted};
  job.run = Instant{*ended} - Instant{*started};
  job.logged_wait = Instant{*started} - job.submit;
  if (const auto limit = integer(row, "time_limit"))
    job.limit = Duration{*limit};
  else
    job.unlimited = true;
  job.cpus =
      static_cast<std::uint32_t>(std::max<std::int64_t>(0, integer(row, "cpus").value_or(0)));
  job.gpus =
      static_cast<std::uint32_t>(std::max<std::int64_t>(0, integer(row, "gpus").value_or(0)));
  job.nodes =
      static_cast<std::uint32_t>(std::max<std::int64_t>(1, integer(row, "nodes").value_or(1)));
  job.memory = integer(row, "memory_per_node").value_or(0);
  job.tenant = text_of(row, "partition");
  job.project = text_of(row, "account");
  job.user = text_of(row, "user");
  job.priority_class = text_of(row, "priority_class");
  return std::optional(std::move(job));
}

Result<TraceJob> plain_job(codec::JsonNode object, const std::string& name, std::int64_t line) {
  TraceJob job;
  job.line = line;
  for (std::size_t i = 0; i < object.size(); ++i) {
    const std::string field(object.name(i));
    if (!is_field(field))
      return wrong_line(name, line, field,
                        fmt::format("no such field; there are {}", field_names()));
    const codec::JsonNode value = object.member(i);
    std::string text;
    if (const auto s = value.string())
      text = *s;
    else if (const auto n = value.sint())
      text = fmt::format("{}", *n);
    else if (const auto r = value.real())
      text = fmt::format("{}", *r);
    else if (!value.is_null())
      return wrong_line(name, line, field, "must be a number or a text");
    if (auto set = set_field(job, field, text); !set)
      return wrong_line(name, line, field, set.error().message);
  }
  return job;
}

}  // namespace

Result<Trace> parse_csv(const std::string& text, const std::string& name) {
  Trace trace;
  trace.name = name;
  std::vector<std::string> columns;
  std::int64_t line_number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = trimmed(std::string_view(text).substr(at, end - at));
    at = end + 1;
    ++line_number;
    if (line.empty() || line.front() == '#') continue;
    const auto cells = cells_of(line);
    if (columns.empty()) {
      for (const std::string_view cell : cells) {
        if (!is_field(cell))
          return wrong_line(name, line_number, cell,
                            fmt::format("no such column; there are {}", field_names()));
        columns.emplace_back(cell);
      }
      continue;
    }
    if (cells.size() != columns.size())
      return wrong_line(
          name, line_number, "",
          fmt::format("{} values, and the header names {} columns", cells.size(), columns.size()));
    TraceJob job;
    job.id = trace.jobs.size() + 1;
    job.line = line_number;
    for (std::size_t i = 0; i < cells.size(); ++i)
      if (auto set = set_field(job, columns[i], cells[i]); !set)
        return wrong_line(name, line_number, columns[i], set.error().message);
    if (auto good = check(job, name); !good) return tl::unexpected(good.error());
    trace.jobs.push_back(std::move(job));
  }
  return trace;
}

Result<Trace> parse_json(const std::string& text, const std::string& name) {
  Trace trace;
  trace.name = name;
  Objects objects(text);
  if (!objects.open())
    return wrong_line(
        name, 1, "", "must be a list of jobs, or what `gacct --json` prints (an object with rows)");
  std::size_t not_run = 0;
  for (std::string_view object = objects.next(); !object.empty(); object = objects.next()) {
    const std::int64_t line = objects.line_of_object;
    const auto document = codec::JsonDocument::parse(object);
    if (!document) return wrong_line(name, line, "", document.error().message);
    const codec::JsonNode root = document->root();
    const auto row = root.find("row");
    if (row || root.find("submitted")) {
      auto job = history_job(row ? *row : root, name, line);
      if (!job) return tl::unexpected(job.error());
      if (!*job)
        ++not_run;
      else
        trace.jobs.push_back(std::move(**job));
      continue;
    }
    auto job = plain_job(root, name, line);
    if (!job) return tl::unexpected(job.error());
    if (job->id == 0) job->id = trace.jobs.size() + 1;
    if (auto good = check(*job, name); !good) return tl::unexpected(good.error());
    trace.jobs.push_back(std::move(*job));
  }
  if (!objects.ended())
    return wrong_line(name, objects.line_of_object, "", "must be an object, or the list's end");
  if (not_run > 0)
    trace.notes.push_back(fmt::format("{} jobs that have not ended were left out", not_run));
  return trace;
}

}  // namespace gantry::replay
